"""Text -> syntax tree -> what a file says of itself, and its outline.

Meant to be called in a `Sandbox`, where it can be killed.
"""

from __future__ import annotations

from functools import cache

import tree_sitter

from repo2ctx import outline as outlines
from repo2ctx.languages import generic, languages
from repo2ctx.records import Syntax


def scan(language: str, path: str, source: bytes) -> Syntax:
    """Parse one file and read its syntax. `language` is a linguist name; without a grammar, only the text is read."""
    return _read(language, path, source, outlined=False)[0]


def scan_and_outline(language: str, path: str, source: bytes) -> tuple[Syntax, str | None]:
    """The same and the file's outline, from one parse; None where there is no outline, as in a language without a grammar."""
    return _read(language, path, source, outlined=True)


def outline(language: str, source: bytes) -> str | None:
    """The outline of one file alone."""
    if language not in languages():
        return None
    return outlines.outline(_parser(language).parse(source).root_node, source, language)


def _read(language: str, path: str, source: bytes, outlined: bool) -> tuple[Syntax, str | None]:
    if language not in languages():
        return generic.scan_text(source.decode("utf-8", "replace")), None
    root = _parser(language).parse(source).root_node
    return languages()[language].scan(root, path), outlines.outline(root, source, language) if outlined else None


@cache
def _parser(language: str) -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(languages()[language].GRAMMARS[language]()))
