"""Where the literals of a Python source stand, from its syntax tree. Nothing is run; linear in the source."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\r|\n")
_OPENING = re.compile(r"[rRuU]?(\"\"\"|'''|\"|')")
_BOM = "\ufeff"


def line_ends(text: str) -> str:
    """The line ends of a text, as they are, without what is between them."""
    return "".join(_LINE_END.findall(text))


@dataclass(frozen=True, slots=True)
class PythonSource:
    """A parsed source: its tree, and characters instead of the tree's lines and UTF-8 bytes."""

    text: str
    tree: ast.Module
    _line_starts: list[int]

    @classmethod
    def parse(cls, text: str) -> PythonSource | None:
        """None where Python itself does not read it."""
        bom = len(text) - len(text.removeprefix(_BOM))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text[bom:])
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return cls(text, tree, [bom, *(m.end() for m in _LINE_END.finditer(text))])

    def span(self, node: ast.expr) -> tuple[int, int]:
        """Where the expression begins and ends, in characters."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        start = self._line_starts[line - 1]
        return start + len(self.text[start : start + column].encode()[:column].decode(errors="ignore"))


def emptied_literal(literal: str) -> str:
    """A string literal without its text, on as many lines; a concatenation becomes one literal."""
    ends = line_ends(literal)
    opening = _OPENING.match(literal)
    quote = opening[1] if opening else '"'
    if ends and len(quote) < 3:
        quote *= 3
    return quote + ends + quote
