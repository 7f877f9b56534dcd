"""Recursive-descent parser; OR binds loosest, then AND (which may be left out), then -."""

import re

from ..tokenizer import tokenize
from .ast import And, Node, Not, Or, Phrase, Tag, Term

_LEXEME = re.compile(r"""\s*("[^"]*"|\#[\w-]+|[()-]|[\w']+(?:-[\w']+)*)""")


class QueryError(ValueError):
    """The query is not well formed."""


def parse(text: str) -> Node:
    parser = _Parser(_lex(text))
    node = parser.either()
    if parser.peek() is not None:
        raise QueryError(f"unexpected {parser.peek()!r}")
    return node


def _lex(text: str) -> list[str]:
    text, lexemes, at = text.rstrip(), [], 0
    while at < len(text):
        match = _LEXEME.match(text, at)
        if match is None:
            raise QueryError(f"cannot read {text[at:]!r}")
        lexemes.append(match.group(1))
        at = match.end()
    return lexemes


class _Parser:
    def __init__(self, lexemes: list[str]) -> None:
        self._lexemes = lexemes
        self._at = 0

    def peek(self) -> str | None:
        return self._lexemes[self._at] if self._at < len(self._lexemes) else None

    def _take(self) -> str:
        lexeme = self.peek()
        if lexeme is None:
            raise QueryError("the query ends too early")
        self._at += 1
        return lexeme

    def either(self) -> Node:
        node = self._both()
        while self.peek() == "OR":
            self._take()
            node = Or(node, self._both())
        return node

    def _both(self) -> Node:
        node = self._unary()
        while self.peek() not in (None, "OR", ")"):
            if self.peek() == "AND":
                self._take()
            node = And(node, self._unary())
        return node

    def _unary(self) -> Node:
        lexeme = self._take()
        if lexeme == "-":
            return Not(self._unary())
        if lexeme == "(":
            node = self.either()
            if self._take() != ")":
                raise QueryError("missing )")
            return node
        if lexeme in (")", "AND", "OR"):
            raise QueryError(f"unexpected {lexeme!r}")
        if lexeme.startswith("#"):
            return Tag(lexeme[1:].lower())
        words = tuple(token.term for token in tokenize(lexeme))
        return Term(words[0]) if len(words) == 1 else Phrase(words)
