"""A Ruby file's text and tree together: the text says where to look, the tree what is there.

Searching the text costs a third of what a tree query does, and the tree is asked only at the few places found.
Patterns begin with a character or a set of few, which makes the search fast.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import takewhile

from tree_sitter import Node

from repo2ctx.languages import join, text
from repo2ctx.languages._places import Places

_COMMENTS = re.compile(rb"\n[ \t]*+#(?!\{)[^\n]*+(?:\n[ \t]*+#(?!\{)[^\n]*+)*+")
_CLASS = re.compile(rb"class(?<![\w.:@$]class)[ \t]+(?:::)?[A-Z][\w:]*")
_MODULE = re.compile(rb"module(?<![\w.:@$]module)[ \t]+(?:::)?[A-Z][\w:]*")
NAME = re.compile(r"(?:::)?[A-Z]\w*(?:::[A-Z]\w*)*")
_DEEPEST = 200  # syntax nodes around an import that a person would write
LONGEST = 500  # characters of a name with its nesting
ROOT = "\0/"  # begins an absolute path of the repository


class Scope:
    """A class or module body: where it lies, and the nesting within it."""

    __slots__ = ("end", "inner", "named_at", "reopens", "start", "super_at", "wrapper")

    def __init__(self, node: Node, outer: str, name: str, stem: str):
        parent = node.child_by_field_name("superclass")
        value = child_of(parent, 0) if parent else None
        named = node.child_by_field_name("name")
        assert named is not None
        self.start = parent.end_byte if parent else named.end_byte
        self.end = node.end_byte
        self.named_at = named.end_byte
        self.super_at = value.end_byte if value is not None and value.type in ("constant", "scope_resolution") else -1
        self.inner = f"{outer}|{name}" if outer and not name.startswith("::") else name
        body = node.child_by_field_name("body")
        # A module that holds nothing but others is a namespace: any file may open it, none defines it.
        self.wrapper = node.type == "module" and (body is None or _only_scopes(body))
        # `class Other::Thing` with no superclass, in a file of another name, may add to a class that is elsewhere.
        short = name.rpartition("::")[2]
        self.reopens = node.type == "class" and short != name and parent is None and short.lower() != stem


def _only_scopes(body: Node) -> bool:
    first = child_of(body, 0)
    kinds = ("class", "module", "comment")
    return first is None or (first.type in kinds and all(child.type in kinds for child in body.named_children))


class Source:
    """One file's tree, asked only at the places that the text points to."""

    def __init__(self, root: Node, path: str):
        self.root = root
        self.path = path
        # The root starts at the first token, and its text too. Comments, often the larger part, are blanked.
        source = b" " * root.start_byte + (root.text or b"")
        self.source = _COMMENTS.sub(lambda found: b" " * len(found[0]), source)
        self.places = Places(root)

    def node(self, start: int, end: int) -> Node | None:
        """The smallest node that covers a piece of the text; None if there is none."""
        return self.places.node(start, end)

    def scopes(self) -> Iterator[Scope]:
        """Class and module bodies, in the order in which they start."""
        open_: list[Scope] = []
        stem = posixpath.basename(self.path).partition(".")[0].replace("_", "").lower()
        openings = [found.span() for pattern in (_CLASS, _MODULE) for found in pattern.finditer(self.source)]
        for start, end in sorted(openings):
            node = self.node(start, end)
            if node is None or node.type not in ("class", "module") or node.start_byte != start:
                continue
            name = "".join(text(node.child_by_field_name("name")).split())
            while open_ and open_[-1].end <= start:
                open_.pop()
            outer = open_[-1].inner if open_ else ""
            if NAME.fullmatch(name) and len(outer) + len(name) < LONGEST:
                scope = Scope(node, outer, name, stem)
                open_.append(scope)
                yield scope

    def around(self, node: Node) -> list[Node]:
        """The nodes around one, outermost first; asking for parents would search from the root each time."""
        return list(takewhile(lambda outer: outer != node, self.places.around(node.start_byte)[:_DEEPEST]))

    def value(self, node: Node | None, depth: int = 4) -> str:
        """The path that an expression makes; "" if only running it could tell."""
        if node is None or depth == 0:
            return ""
        kind = node.type
        if kind == "identifier" and (word := text(node)) in ("__dir__", "__FILE__"):
            return ROOT + (self.path if word == "__FILE__" else posixpath.dirname(self.path))
        if kind == "string":
            parts = [text(n) if n.type == "string_content" else self.value(n, depth - 1) for n in node.named_children]
            return "".join(parts) if all(parts) else ""
        if kind == "interpolation" or kind == "parenthesized_statements":
            return self.value(child_of(node, 0), depth - 1) if node.named_child_count == 1 else ""
        if kind == "binary" and text(node.child_by_field_name("operator")) == "+":
            ends = [self.value(node.child_by_field_name(side), depth - 1) for side in ("left", "right")]
            return "".join(ends) if all(ends) else ""
        if kind == "call" and text(node.child_by_field_name("receiver")) in ("File", "::File"):
            arguments = node.child_by_field_name("arguments")
            values = [self.value(n, depth - 1) for n in arguments.named_children] if arguments else []
            return _file_method(text(node.child_by_field_name("method")), values) if all(values) else ""
        return ""


class Nesting:
    """Which scope a place is in, for places asked in order."""

    def __init__(self, scopes: Sequence[Scope]):
        self.waiting = list(reversed(scopes))
        self.open: list[Scope] = []
        self.until = 0  # the next place where the scope changes

    def at(self, place: int) -> str:
        while self.waiting and self.waiting[-1].start <= place:
            self._leave(self.waiting[-1].start)
            self.open.append(self.waiting.pop())
        self._leave(place)
        ends = [scope.end for scope in self.open[-1:]] + [scope.start for scope in self.waiting[-1:]]
        self.until = min(ends, default=sys.maxsize)
        return self.open[-1].inner if self.open else ""

    def _leave(self, place: int) -> None:
        while self.open and self.open[-1].end <= place:
            self.open.pop()


def child_of(node: Node, number: int) -> Node | None:
    return node.named_child(number) if number < node.named_child_count else None


def _file_method(method: str, values: Sequence[str]) -> str:
    """What `File.join(*values)` and the like return."""
    if method == "join" and values:
        return _normal("/".join(values))
    if method == "dirname" and len(values) == 1:
        inside = values[0].removeprefix(ROOT)
        return (ROOT if inside != values[0] else "") + posixpath.dirname(inside) if inside else ""
    if method in ("expand_path", "absolute_path") and len(values) == 2:
        return _normal(posixpath.join(values[1], values[0]))
    if method in ("expand_path", "absolute_path", "realpath") and len(values) == 1:
        return _normal(values[0]) if values[0].startswith(ROOT) else f"./{values[0]}"
    return ""


def _normal(path: str) -> str:
    """The path without `..`; "" if it leaves the repository."""
    if not path.startswith(ROOT):
        return posixpath.normpath(path)
    inside = join("", path.removeprefix(ROOT).lstrip("/"))
    return "" if inside is None else ROOT + inside
