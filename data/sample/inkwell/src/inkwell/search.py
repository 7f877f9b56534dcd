"""Evaluate a query against an index and order what matches."""

from typing import NamedTuple

from inkwell.query import And, Node, Not, Or, Phrase, Tag, Term, parse

from .index import InvertedIndex
from .ranking import bm25


class Hit(NamedTuple):
    key: str
    score: float


def search(index: InvertedIndex, query: str, limit: int = 10) -> list[Hit]:
    tree = parse(query)
    terms = sorted(_wanted(tree))
    hits = [Hit(key, bm25(index, terms, key)) for key in _evaluate(index, tree)]
    hits.sort(key=lambda hit: (-hit.score, hit.key))
    return hits[:limit]


def _evaluate(index: InvertedIndex, node: Node) -> set[str]:
    match node:
        case Term(word):
            return index.matching(word)
        case Phrase(words):
            return index.phrase(words)
        case Tag(name):
            return set(index.tags.get(name, ()))
        case Not(child):
            return set(index.lengths) - _evaluate(index, child)
        case And(left, right):
            return _evaluate(index, left) & _evaluate(index, right)
        case Or(left, right):
            return _evaluate(index, left) | _evaluate(index, right)
    raise TypeError(f"not a query node: {node!r}")


def _wanted(node: Node) -> set[str]:
    """The terms that should raise a note's score; negated ones do not."""
    match node:
        case Term(word):
            return {word}
        case Phrase(words):
            return set(words)
        case And(left, right) | Or(left, right):
            return _wanted(left) | _wanted(right)
    return set()
