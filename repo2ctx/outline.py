"""Syntax tree -> the outline of a file: what it declares, with the beginning of its documentation and without bodies.

A language says by a `Shape` which syntax is shown (`languages/_shapes.py`), a walk finds it (`_outline_walk.py`). What was
found can be written at several levels of detail, and the outline is the first that has at most a share of the file's
characters: a file with long bodies keeps whole paragraphs of documentation, one that is mostly signatures loses first the
documentation of functions, then private declarations. Signatures of what is public always stand.

`…` stands for what was left out: a body, a value, a run of statements or of private declarations. Imports leave without a
mark, since the graph has them, and so does the rest of a comment. Cost: linear, about half of the parse.
"""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from repo2ctx._outline_docs import MARK
from repo2ctx._outline_walk import Item, Walk
from repo2ctx.languages import languages

_SHARE = 0.3  # of the file's characters that are not blank; over whole repositories it comes to less, in tokens too
_BLANKS = b" \t\r\n\v\f"


@dataclass(frozen=True, slots=True)
class Level:
    """How much is shown. Documentation of the file, types, functions, values: 0 none, 1 a sentence, 2 a paragraph."""

    module: int
    type: int
    function: int
    value: int
    private_docs: bool = False
    asides: bool = False  # comments behind declarations
    private_values: bool = True
    private_functions: bool = True


_LEVELS = (
    Level(2, 2, 2, 1, private_docs=True, asides=True),
    Level(2, 2, 1, 1, asides=True),
    Level(2, 1, 1, 0),
    Level(2, 1, 0, 0, private_values=False),
    Level(1, 1, 0, 0, private_values=False, private_functions=False),
    Level(1, 0, 0, 0, private_values=False, private_functions=False),
)


def outline(root: Node, source: bytes, language: str) -> str | None:
    """The outline of a file from its tree; None where nothing is declared, or the outline is not shorter than the text.

    source: the bytes that were parsed, UTF-8. language: a linguist name with a grammar.
    """
    items = Walk(languages()[language].OUTLINE, source).items(root)
    most = _SHARE * _weight(source)
    written = b""
    for level in _LEVELS:
        written = _Page(level).write(items).encode()
        if _weight(written) <= most:
            break
    return written.decode() if written and len(written) < len(source) else None


def _weight(text: bytes) -> int:
    """Bytes that are not blank: nearer to tokens than all bytes, since indentation is cheap."""
    return len(text.translate(None, _BLANKS))


@dataclass(frozen=True, slots=True)
class _Opened:
    """A head whose body is being written, and the lines before and with it, all and those that are no marks.

    Numbers, so that its end need not look through its body: that would be quadratic in how deep declarations nest.
    """

    head: Item
    lines: int
    said: int
    lines_with_head: int
    said_with_head: int


class _Page:
    """The lines of one outline at one level."""

    def __init__(self, level: Level):
        self._level = level
        self._lines: list[str] = []
        self._said = 0  # of the lines, how many are no marks
        self._first: Item | None = None  # whose documentation is that of the file, as far as there is any

    def write(self, items: list[Item]) -> str:
        """All items as text; "" if there is nothing but marks."""
        self._first = next((item for item in items if item.doc is not None), None)
        opened: list[_Opened] = []
        for item in items:
            if item.kind == "open":
                before, said = len(self._lines), self._said
                self._head(item)
                opened.append(_Opened(item, before, said, len(self._lines), self._said))
            elif item.kind == "close":
                self._close(item, opened.pop())
            elif item.kind == "gap" or self._hidden(item):
                self._gap(item.indent)
            elif item.kind == "note":
                self._add(self._doc(item))
            else:
                self._head(item)
        return "\n".join(self._lines) + "\n" if self._said else ""

    def _add(self, lines: list[str]) -> None:
        self._lines += lines
        self._said += sum(not _is_mark(line) for line in lines)

    def _hidden(self, item: Item) -> bool:
        if not item.private or item.rank == "type":
            return False
        return not (self._level.private_values if item.rank == "value" else self._level.private_functions)

    def _gap(self, indent: str) -> None:
        if not self._lines or not _is_mark(self._lines[-1]):
            self._lines.append(indent + MARK)

    def _head(self, item: Item, collapsed: bool = False) -> None:
        """A declaration with its documentation. collapsed: as one whose body is left out."""
        doc = self._doc(item)
        line = item.indent + item.text
        if item.opener and not collapsed:
            line += item.opener if line.endswith("(") else f" {item.opener}"
        if item.aside and self._level.asides:
            line += f" {item.aside}"
        mark = f" {MARK}" if item.mark or collapsed else ""
        if doc and item.inside is not None:
            lines = [line, *(item.inside + said for said in doc)]
            lines[-1] += mark
        else:
            lines = [*(item.indent + said for said in doc), line + mark]
        self._add(lines)

    def _close(self, item: Item, opened: _Opened) -> None:
        """The end of what is open; where nothing in it is shown, it is written anew without a body, or not at all."""
        if self._said > opened.said_with_head:
            if item.text:
                self._add([item.indent + item.text])
            return
        empty = len(self._lines) == opened.lines_with_head
        del self._lines[opened.lines :]
        self._said = opened.said
        if not opened.head.lazy:
            self._head(opened.head, collapsed=True)
        elif not empty:
            self._gap(item.indent)

    def _doc(self, item: Item) -> list[str]:
        if item.doc is None:
            return []
        amount: int = getattr(self._level, item.rank)
        if item.private and not self._level.private_docs:
            amount = 0
        return item.doc.shown(self._level.module if item is self._first else amount)


def _is_mark(line: str) -> bool:
    return line.strip() == MARK
