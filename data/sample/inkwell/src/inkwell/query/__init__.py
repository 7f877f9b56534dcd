"""The query language: syntax tree and parser."""

from .ast import And, Node, Not, Or, Phrase, Tag, Term
from .parser import QueryError, parse

__all__ = ["And", "Node", "Not", "Or", "Phrase", "QueryError", "Tag", "Term", "parse"]
