"""Syntax tree -> the items of an outline, before it is known how much of each is shown.

One walk with a stack of our own, not into what is left out. A node is never asked for its parent, and of a node's text no more is
looked at than may be shown, so that the cost is in proportion to the nodes and bytes that stand outside bodies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from repo2ctx._outline_comments import Comments
from repo2ctx._outline_docs import MARK, Doc
from repo2ctx.languages._shapes import Part, Shape, tabled

_MOST_ITEMS = 20_000  # of one file; a longer outline would say no more
_LONGEST_HEAD = 500  # bytes, of a declaration without a body too
_LONGEST_VALUE = 100  # bytes of a constant or a field with its value, on one line
_LONGEST_LIST = 400  # bytes of what names the exports of a file, on any number of lines
_SMALL_BODY = 14  # bytes: as short as the mark, about
_SMALL_TYPE = 80  # bytes of a type that is shown as it is, on one line
_LONGEST_INDENT = 64  # bytes
_FIRST_FEW = 3  # children of a body among which its brace is
_ENDS = {"{": "}", "(": ")", "[": "]"}
_EXPORTS = re.compile(rb"__all__\b|module\.exports\b|export\b")
_UP_TO_BRACKET = {  # what ends a value -> the value up to the bracket whose inside is left out
    b"}": re.compile(rb"[^\n{]{0,80}\{"),
    b")": re.compile(rb"[^\n(]{0,80}\("),
    b"]": re.compile(rb"[^\n\[]{0,80}\["),
}

Rank = Literal["module", "type", "function", "value"]


@dataclass(slots=True)
class Item:
    """A declaration, or what else gives a line of an outline.

    open begins what close ends; gap is a mark alone; note the documentation of the file. indent: before the first line.
    opener: the brace after an open head. mark: whether a body follows that is left out. lazy: shown only if something in
    it is. inside: the indentation of documentation that stands after the head. aside: a comment behind it.
    """

    kind: Literal["open", "close", "line", "gap", "note"]
    indent: str = ""
    text: str = ""
    rank: Rank = "value"
    opener: str = ""
    mark: bool = False
    lazy: bool = False
    private: bool = False
    doc: Doc | None = None
    inside: str | None = None
    aside: str = ""


@dataclass(slots=True)
class _Frame:
    """A node whose children are looked at.

    indent: of those that share a line with others. item: what they belong to; end: what closes that.
    """

    nodes: Iterator[Node]
    around: str
    indent: str
    private: bool
    item: Item | None = None
    end: str = ""


class Walk:
    """One walk over one tree. source: the bytes that were parsed."""

    def __init__(self, shape: Shape, source: bytes):
        self._shape, self._source = shape, source
        self._noise = re.compile(shape.noise.encode()) if shape.noise else None
        self._items: list[Item] = []
        self._comments = Comments(source)
        self._prefix: Node | None = None
        self._last: tuple[int, Item] | None = None  # the row where the last declaration ends, or its head

    def items(self, root: Node) -> list[Item]:
        """What a file declares, in source order."""
        string = self._shape.docstring(root)
        if string is not None and (doc := self._comments.docstring(string)) is not None:
            self._items.append(Item("note", rank="module", doc=doc))
        stack = [_Frame(iter(root.children), root.type, "", False)]
        while stack:
            frame = stack[-1]
            node = next(frame.nodes, None)
            if node is not None and len(self._items) >= _MOST_ITEMS:
                self._gap(frame.indent)
                frame.nodes, node = iter(()), None
            if node is not None:
                below = self._visit(node, frame)
                if below is not None:
                    stack.append(below)
                continue
            stack.pop()
            if frame.item is not None:
                self._comments.clear()
                self._items.append(Item("close", frame.item.indent, frame.end))
        self._leave_comments()
        return self._items

    def _visit(self, node: Node, frame: _Frame) -> _Frame | None:
        """Add what a node gives; the frame of its body, if that is to be looked at."""
        shape = self._shape
        if node.type in shape.comments:
            self._comment(node)
        elif node.type in shape.prefixes:
            self._take_prefix(node)
        elif (private := shape.section(node)) is not None:
            frame.private = private
            self._comments.clear()
            end = node.end_byte + self._source.startswith(b":", node.end_byte)
            self._items.append(Item("line", self._indent(node, frame), self._text(node.start_byte, end), "type"))
        elif node.is_named:
            inner = self._unwrapped(node)
            part = shape.look(inner, frame.around) or tabled(shape, inner)
            if part.kind == "enter":
                return _Frame(iter((part.body or inner).children), frame.around, frame.indent, frame.private)
            if part.kind not in ("silent", "gap"):
                return self._declare(node, inner, part, frame)
            self._leave_comments()
            self._prefix = None
            if part.kind == "gap":
                self._gap(self._indent(node, frame))
        return None

    def _comment(self, node: Node) -> None:
        """A comment behind a declaration belongs to that, any other to what comes."""
        if self._last is not None and self._last[0] == node.start_point.row:
            item = self._last[1]
            item.aside = item.aside or self._comments.aside(node)
        else:
            self._comments.add(node)

    def _take_prefix(self, node: Node) -> None:
        """An attribute: it belongs to what follows unless it is noise."""
        self._comments.lower(node)
        text = self._source[node.start_byte : node.end_byte]
        if self._prefix is None and not (self._noise and self._noise.match(text)) and len(text) <= _LONGEST_VALUE:
            self._prefix = node

    def _leave_comments(self) -> None:
        """At what is no comment. What those above the first such say of the file begins the outline."""
        doc = self._comments.leave()
        if doc is not None and not self._items:
            self._items.append(Item("note", rank="module", doc=doc))

    def _gap(self, indent: str) -> None:
        if not self._items or self._items[-1].kind != "gap":
            self._items.append(Item("gap", indent))

    def _unwrapped(self, node: Node) -> Node:
        """What a decorated, exported or otherwise wrapped node declares."""
        while (field := self._shape.wrappers.get(node.type)) is not None:
            inner = node.child_by_field_name(field) if field else None
            if not field:
                inner = next((child for child in reversed(node.children) if child.is_named), None)
            if inner is None:
                break
            node = inner
        return node

    def _declare(self, node: Node, inner: Node, part: Part, frame: _Frame) -> _Frame | None:
        item = Item("line", self._indent(node, frame))
        item.doc = self._comments.above((self._prefix or node).start_point.row)
        self._leave_comments()
        start, end = (self._prefix or node).start_byte, node.end_byte
        self._prefix = None
        self._items.append(item)
        below = None
        if part.kind == "value":
            item.text = self._value(start, end, part.body)
        elif part.body is None:
            item.rank, item.text = "function", self._text(start, end)
        elif part.kind == "cut":
            self._cut(item, start, end, inner, part)
        else:
            below = self._open(item, start, end, inner, part)
        item.private = frame.private or self._shape.private(frame.around, item.text)
        row = node.end_point.row - (node.end_point.column == 0)
        if below is not None and part.body is not None:
            below.private |= item.private
            row = part.body.start_point.row
        self._last = (row, item)
        return below

    def _cut(self, item: Item, start: int, end: int, inner: Node, part: Part) -> None:
        """A head whose body is left out, or not if it is as short as the mark."""
        assert part.body is not None
        item.rank = "function"
        if end - part.body.start_byte <= _SMALL_BODY and b"\n" not in self._source[part.body.start_byte : end]:
            item.text = self._text(start, end)
        else:
            item.text, item.mark = self._head(start, inner, part)[0], True
            self._take_docstring(item, part.body)

    def _open(self, item: Item, start: int, end: int, inner: Node, part: Part) -> _Frame | None:
        """A head and the frame of its body, or all of it if short."""
        assert part.body is not None
        item.rank = "type"
        if part.kind == "open" and end - start <= _SMALL_TYPE and b"\n" not in self._source[start:end]:
            item.text = self._text(start, end)
            return None
        item.kind, item.lazy = "open", part.kind == "lazy"
        item.text, item.opener = self._head(start, inner, part)
        self._take_docstring(item, part.body)
        owner = part.owner or inner
        indent = (item.indent + ("\t" if item.indent.startswith("\t") else "  "))[:_LONGEST_INDENT]
        nodes = (*self._comments_before(owner, part.body), *part.body.children, *part.rest)
        close = self._end(item.opener, part.body.end_byte, end) if item.opener else self._shape.end
        return _Frame(iter(nodes), part.around or owner.type, indent, False, item, close)

    def _comments_before(self, owner: Node, body: Node) -> list[Node]:
        """Comments that begin a body, where the grammar has them before it."""
        found: list[Node] = []
        for child in owner.children:
            if child.start_byte >= body.start_byte:
                break
            if child.type in self._shape.comments:
                found.append(child)
            else:
                found.clear()
        return found

    def _end(self, opener: str, start: int, end: int) -> str:
        """The brace that closes a body, and what follows it in the declaration: `} name;`."""
        tail = self._source[start:end].strip() if end - start <= _LONGEST_VALUE else b""
        between = " " if tail[:1].isalpha() else ""
        return _ENDS[opener] + between + tail.partition(b"\n")[0].decode("utf-8", "ignore")

    def _take_docstring(self, item: Item, body: Node) -> None:
        string = self._shape.docstring(body)
        if string is not None and (doc := self._comments.docstring(string)) is not None:
            item.doc = doc
            item.inside = " " * min(string.start_point.column, _LONGEST_INDENT)

    def _head(self, start: int, inner: Node, part: Part) -> tuple[str, str]:
        """(what stands before a body, the brace that opens it or "")."""
        assert part.body is not None
        first = part.body.children[:_FIRST_FEW] if part.kind != "cut" else []
        opener = next((child for child in first if child.type in _ENDS), None)
        until = (opener or part.body).start_byte
        last = start
        for child in (part.owner or inner).children:
            if child.start_byte >= until or child.type in self._shape.before_body:
                break
            if child.type not in self._shape.comments:
                last = min(child.end_byte, until)
        return self._text(start, last).rstrip(), opener.type if opener is not None else ""

    def _value(self, start: int, end: int, value: Node | None) -> str:
        """A constant, a field or the like: all of it if short, else with brackets around the mark or the mark alone."""
        head = self._source[start : min(end, start + _LONGEST_LIST + 1)].rstrip()
        if (len(head) <= _LONGEST_VALUE and b"\n" not in head) or (len(head) <= _LONGEST_LIST and _EXPORTS.match(head)):
            return self._text(start, end)
        code = head.partition(b"/*")[0]
        if head.startswith(b"#") and b"\n" not in code and len(code) <= _LONGEST_VALUE:  # a comment is part of a macro
            return self._text(start, start + len(code))
        if value is None and len(head) <= 2 * _LONGEST_VALUE:
            return self._text(start, end)
        if value is None or value.start_byte - start > _LONGEST_HEAD:
            line = head.partition(b"\n")[0][:_LONGEST_VALUE].decode("utf-8", "ignore").rstrip()
            return f"{line} {MARK}"
        before = self._text(start, value.start_byte).rstrip()
        last = self._source[value.end_byte - 1 : value.end_byte]
        bracket = (
            _UP_TO_BRACKET[last].match(self._source, value.start_byte, value.end_byte)
            if last in _UP_TO_BRACKET
            else None
        )
        if bracket is None:
            return f"{before} {MARK}"
        return f"{before} {bracket[0].decode('utf-8', 'ignore')}{MARK}{last.decode()}"

    def _text(self, start: int, end: int) -> str:
        """A piece of the source, cut between two words where it is long."""
        if self._noise is not None and (
            noise := self._noise.match(self._source, start, min(end, start + _LONGEST_HEAD))
        ):
            start = noise.end()
        text = (
            self._source[start : min(end, start + _LONGEST_HEAD)]
            .decode("utf-8", "ignore")
            .replace("\r\n", "\n")
            .strip()
        )
        if end - start <= _LONGEST_HEAD:
            return text
        cut = max(text.rfind(" "), text.rfind("\n"))
        return f"{text[:cut].rstrip() if cut > 0 else text} {MARK}"

    def _indent(self, node: Node, frame: _Frame) -> str:
        """The blanks before a node that begins its line, else those of its frame."""
        column = (self._prefix or node).start_point.column
        if column <= _LONGEST_INDENT:
            start = (self._prefix or node).start_byte
            before = self._source[start - column : start]
            if not before.strip():
                return before.decode("utf-8", "ignore")
        return frame.indent
