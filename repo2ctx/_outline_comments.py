"""The comments of a file, in source order -> what documents the file, what a declaration, and what stands behind one.

A comment is kept until something comes that it may belong to. It documents what begins in the row below it. Of those above
the first that is no comment, the first that says something else is the file's. Each is read once, and no more of it than may be
shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from repo2ctx._outline_docs import Doc, read_doc

_LONGEST_ASIDE = 100  # bytes of a comment behind a declaration
_LONGEST_COMMENT = 20_000  # bytes that are read of one


@dataclass(slots=True)
class _Block:
    """One comment of any number of lines, or comments of a line each, one below the other."""

    start: int
    end: int
    first_row: int
    last_row: int
    in_lines: bool


class Comments:
    """Those of one file that wait for what they belong to. source: the bytes that were parsed."""

    def __init__(self, source: bytes):
        self._source = source
        self._blocks: list[_Block] = []  # since the last declaration; before the first, all
        self._begun = False  # whether anything but comments has come

    def add(self, node: Node) -> None:
        """Keep a comment with the line above it, or by itself."""
        start, end = node.start_byte, node.end_byte
        row, last_row = node.start_point.row, _last_row(node)
        in_lines = not self._source.startswith(b"/*", start)
        last = self._blocks[-1] if self._blocks else None
        if last is not None and in_lines and last.in_lines and row == last.last_row + 1:
            last.end, last.last_row = end, last_row
            return
        if self._begun and last is not None and row > last.last_row + 1:
            self._blocks.clear()
        self._blocks.append(_Block(start, end, row, last_row, in_lines))

    def lower(self, attribute: Node) -> None:
        """The comment right above an attribute belongs to what follows the attribute."""
        if self._blocks and attribute.start_point.row <= self._blocks[-1].last_row + 1:
            self._blocks[-1].last_row = attribute.end_point.row

    def above(self, row: int) -> Doc | None:
        """What the comment right above a row says; if it says nothing, the one right above that."""
        doc = None
        while doc is None and self._blocks and self._blocks[-1].last_row + 1 >= row:
            block = self._blocks.pop()
            doc, row = self._said(block.start, block.end), block.first_row
        return doc

    def leave(self) -> Doc | None:
        """Forget those that wait, since something comes that is no comment; the first time, what they say of the file."""
        doc = None
        if not self._begun:
            self._begun = True
            said = (self._said(block.start, block.end) for block in self._blocks)
            doc = next((doc for doc in said if doc is not None), None)
        self._blocks.clear()
        return doc

    def clear(self) -> None:
        """Forget those that wait."""
        self._blocks.clear()

    def aside(self, node: Node) -> str:
        """A comment as it stands behind a declaration; "" if it is long or says nothing."""
        if node.start_point.row != _last_row(node) or node.end_byte - node.start_byte > _LONGEST_ASIDE:
            return ""
        aside = self._source[node.start_byte : node.end_byte].decode("utf-8", "ignore").strip()
        return aside if read_doc(aside) is not None else ""

    def docstring(self, string: Node) -> Doc | None:
        """What a string says that documents what it stands in."""
        return self._said(string.start_byte, string.end_byte)

    def _said(self, start: int, end: int) -> Doc | None:
        return read_doc(self._source[start : min(end, start + _LONGEST_COMMENT)].decode("utf-8", "ignore").strip())


def _last_row(node: Node) -> int:
    return node.end_point.row - (node.end_point.column == 0)
