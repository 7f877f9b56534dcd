"""C#: the types that a file names, wherever `using`, namespaces and projects let it see them.

Types are indexed by namespace, outer type, name and number of type parameters. A simple name means, in this order: a
type nested in the file's own types or in their base classes; then, from the innermost enclosing namespace outwards, a
type of that namespace or one that a `using`, `using static` or alias in it brings; the file's own and the project's
`global` ones come last. A dotted name is followed from a namespace, an alias or a type. `[Name]` also means
`NameAttribute`. Where a value can stand, properties, fields and methods of the file's types and of their bases hide types.
Of the files that declare a type, only those count that are in the file's own project or one that it refers to.

Every edge is a `use`, and hard: the compiler wants all types at once, and also the file whose `global using` a name
needs. Soft: types named only in `nameof` or in a comment's `cref`, and classes whose extension methods are called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

import tree_sitter_c_sharp
from tree_sitter import Node

from repo2ctx.languages import RepoTree, _csharp_outline, line, walk
from repo2ctx.languages._csharp_index import Index
from repo2ctx.languages._csharp_lookup import Files
from repo2ctx.languages._csharp_names import base_names, code_of, used_names
from repo2ctx.languages._csharp_projects import PATTERNS
from repo2ctx.records import Found, Import, Syntax

GRAMMARS = {"C#": tree_sitter_c_sharp.language}
CONFIG_FILES = PATTERNS
OUTLINE = _csharp_outline.SHAPE

_TYPES = frozenset(
    {
        "class_declaration", "struct_declaration", "interface_declaration", "record_declaration", "enum_declaration",
        "delegate_declaration",
    }
)  # fmt: skip
_NAMESPACES = frozenset({"namespace_declaration", "file_scoped_namespace_declaration"})
_MEMBERS = frozenset({"variable_declaration", "property_declaration", "event_declaration", "method_declaration"})
_WANTED = _TYPES | _NAMESPACES | _MEMBERS | {"using_directive", "base_list", "enum_member_declaration", "ERROR"}
# Members and what they declare, but no parameters, bodies or initializers.
_ENTERED = (_TYPES - {"delegate_declaration"}) | frozenset(
    {
        "namespace_declaration", "declaration_list", "enum_member_declaration_list", "field_declaration",
        "event_field_declaration", "preproc_if", "preproc_elif", "preproc_else",
    }
)  # fmt: skip
_DEEPEST = 16  # how many types are named around a nested one: keeps the cost of absurd nesting linear
_LONGEST = 500  # characters of a namespace: does the same

_USING = re.compile(r"(global\s+)?using\s+((?:static|unsafe)\s+)*(?:(\w+)\s*=\s*)?([\w.\s]+)(<.*>)?\s*;?", re.DOTALL)
_AFTER_NAME = re.compile(rb"(?:\s*<([^<>]*)>)?(?:\s*\(\s*(?:\[[^\]]*\]\s*)?(this)\s)?")  # of a type or method
_MAIN = re.compile(rb"\bstatic\s+(?:async\s+)?(?:void|int|Task(?:<int>)?)\s+Main\(")
# What a syntax error swallowed.
_LOST_NAMESPACE = re.compile(rb"\bnamespace\s+([\w.]+)\s*[{;]")
_LOST_TYPE = re.compile(
    rb"\b(?:class|struct|interface|enum|record) ([A-Za-z_]\w*+) ?(?:<([^<>{;]*)>)? ?(?:(:[^{;]*+)|[{;(])"
)


def scan(root: Node, path: str) -> Syntax:
    """What the file declares, from the tree; the names that it uses, from its text."""
    source = root.text or b""
    declared = _Declared(source, root.start_byte)
    for node in walk(root, _WANTED, _ENTERED):
        declared.add(node)
    code = code_of(source)
    if root.has_error:
        declared.recover(code)
    uses = used_names(code, source, declared.values)
    if hidden := declared.type_parameters:
        uses = [use for use in uses if use.lstrip("?@~").partition(".")[0] not in hidden]
    namespace = next(iter(declared.namespaces), "")
    return Syntax(
        tuple(declared.imports),
        namespace,
        tuple(declared.types),
        tuple(uses),
        tuple(declared.tags()),
        exports=len(declared.types),
        main=b" Main(" in source and bool(_MAIN.search(code)),
    )


class _Declared:
    """What one file declares. A full name is made of the namespace, the types around and the name, with a dot
    between them, and a backtick and the number of type parameters after each type that has any."""

    def __init__(self, source: bytes, offset: int):
        self.source = source
        self.offset = offset  # the root need not start with the file
        self.around: list[tuple[int, str, int]] = []  # of namespaces and types: the end, the full name, types around
        self.imports: list[Import] = []
        self.namespaces: dict[str, None] = {}
        self.types: dict[str, None] = {}
        self.listed: dict[tuple[str, str], dict[str, None]] = {}  # what a tag says, of which type -> names
        self.values: set[str] = set()  # members of enums
        self.type_parameters: set[str] = set()

    def add(self, node: Node) -> None:
        """Take in a node; they come in source order."""
        while self.around and self.around[-1][0] <= node.start_byte:
            self.around.pop()
        kind = node.type
        if kind == "method_declaration":
            self._method(node)
        elif kind in _MEMBERS:
            self._fields(node)
        elif kind in _TYPES:
            self._type(node)
        elif kind == "enum_member_declaration":
            self.values.add(self._text(node.child_by_field_name("name")))
        elif kind == "base_list":
            self._note("super", *base_names(self._text(node)))
        elif kind == "using_directive":
            self._using(node)
        elif kind == "ERROR":
            self._error(node)
        else:
            end = node.end_byte if kind == "namespace_declaration" else self.offset + len(self.source)
            self._namespace(self._text(node.child_by_field_name("name")), end)

    def tags(self) -> Iterator[str]:
        """`namespace:Full`, and `what:Full name:names` of types."""
        yield from (f"namespace:{name}" for name in self.namespaces)
        for (what, full), names in self.listed.items():
            yield f"{what}:{full}:{' '.join(names)}"

    def recover(self, code: bytes) -> None:
        """Types that the tree lost in a syntax error: taken for types of the file's first namespace."""
        for found in _LOST_NAMESPACE.findall(code)[:1]:
            self.namespaces.setdefault(found.decode("utf-8", "replace"))
        namespace = next(iter(self.namespaces), "")
        known = {name.rpartition(".")[2] for name in self.types}
        for match in _LOST_TYPE.finditer(code):
            key = _with_arity(match[1].decode("utf-8", "replace"), match[2] or b"")
            if key not in known:
                self.around = [(0, _dotted(namespace, key), 1)]
                self.types[self._outer()] = None
                self._note("super", *base_names((match[3] or b"").decode("utf-8", "replace").partition(" where ")[0]))
                if code.endswith(b"partial ", 0, match.start()):
                    self._note("partial")

    def _error(self, node: Node) -> None:
        """A syntax error can leave the head of a namespace as mere words; its types follow, maybe after the error."""
        for word, name in pairwise(node.children):
            if word.type == "namespace" and not self.namespaces:
                self._namespace(self._text(name), self.offset + len(self.source))

    def _namespace(self, name: str, end: int) -> None:
        outer = self._outer()
        full = _dotted(outer if len(outer) < _LONGEST else "", "".join(name.split()))
        self.around.append((end, full, 0))
        self.namespaces[full] = None

    def _outer(self) -> str:
        return self.around[-1][1] if self.around else ""

    def _note(self, what: str, *names: str) -> None:
        listed = self.listed.setdefault((what, self._outer()), {})
        for name in names:
            listed[name] = None

    def _after(self, name: Node) -> tuple[bytes, bool]:
        """The type parameters after a declared name, which hide types in this file, and whether `this` follows."""
        match = _AFTER_NAME.match(self.source, name.end_byte - self.offset)
        assert match  # it may be empty
        if match[1]:
            words = [part.split()[-1:] for part in match[1].split(b",")]
            self.type_parameters.update(word[0].decode("utf-8", "replace") for word in words if word)
        return match[1] or b"", bool(match[2])

    def _type(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is None:
            return
        deep = self.around[-1][2] if self.around else 0
        key = _with_arity(self._text(name), self._after(name)[0])
        full = _dotted(self._outer() if deep < _DEEPEST else "", key)
        self.around.append((node.end_byte, full, deep + 1))
        self.types[full] = None
        if b"partial" in self.source[node.start_byte - self.offset : name.start_byte - self.offset].split():
            self._note("partial")
        if node.type == "record_declaration":
            for parameters in (c for c in node.named_children if c.type == "parameter_list"):
                for parameter in parameters.named_children:
                    name, kind = parameter.child_by_field_name("name"), parameter.child_by_field_name("type")
                    self._member(self._text(name), self._text(kind))

    def _method(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is not None:
            self._note("extension" if self._after(name)[1] else "method", self._text(name))

    def _fields(self, node: Node) -> None:
        kind = self._text(node.child_by_field_name("type"))
        if node.type == "variable_declaration":
            for child in node.named_children:
                if child.type == "variable_declarator":
                    self._member(self._text(child.child_by_field_name("name")), kind)
        else:
            self._member(self._text(node.child_by_field_name("name")), kind)

    def _member(self, name: str, kind: str) -> None:
        """A member of the name of its own type does not hide the type."""
        if kind.partition("<")[0].rstrip("?[] ").rpartition(".")[2] != name:
            self._note("member", name)

    def _text(self, node: Node | None) -> str:
        """The same as `text`, in less time, and without the `@` of a name that is a keyword."""
        if node is None:
            return ""
        return (
            self.source[node.start_byte - self.offset : node.end_byte - self.offset]
            .decode("utf-8", "replace")
            .lstrip("@")
        )

    def _using(self, node: Node) -> None:
        """`names`: how it is written, the namespace that it stands in, and the alias."""
        source = self._text(node)
        words = source.rstrip(";").split()
        if len(words) == 2 and words[1].replace(".", "").replace("_", "").isalnum():
            self.imports.append(Import(words[1], line(node), "use", "hard", ("namespace", self._outer(), "")))
            return
        match = _USING.fullmatch(source) or _USING.fullmatch(code_of(node.text or b"").decode("utf-8", "replace"))
        if match:
            how = "alias" if match[3] else "static" if (match[2] or "").startswith("static") else "namespace"
            name = _with_arity("".join(match[4].split()), (match[5] or "").encode())
            names = (f"global {how}" if match[1] else how, self._outer(), match[3] or "")
            self.imports.append(Import(name, line(node), "use", "hard", names))


def _dotted(outer: str, name: str) -> str:
    name = name.replace("@", "")
    return f"{outer}.{name}" if outer else name


def _with_arity(name: str, parameters: bytes) -> str:
    return f"{name}`{parameters.count(b',') + 1}" if parameters.strip() else name


def resolve(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Found]:
    files = Files(Index(tree, syntax))
    for path in sorted(syntax):
        yield from files[path].edges()
