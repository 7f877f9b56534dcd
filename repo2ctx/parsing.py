"""Text -> syntax tree -> what a file says of itself. Meant to be called in a `Sandbox`, where it can be killed."""

from __future__ import annotations

from functools import cache

import tree_sitter

from repo2ctx.languages import generic, languages
from repo2ctx.records import Syntax


def scan(language: str, path: str, source: bytes) -> Syntax:
    """Parse one file and read its syntax. `language` is a linguist name; without a grammar, only the text is read."""
    if language not in languages():
        return generic.scan_text(source.decode("utf-8", "replace"))
    return languages()[language].scan(_parser(language).parse(source).root_node, path)


@cache
def _parser(language: str) -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(languages()[language].GRAMMARS[language]()))
