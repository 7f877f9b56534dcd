"""What a language says of its outlines: which syntax is shown, with its head alone, or not at all.

A `Shape` is mostly tables of node types; `look` is for what a type alone does not tell. `repo2ctx.outline` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tree_sitter import Node

Kind = Literal["open", "lazy", "cut", "value", "enter", "silent", "gap"]
"""What becomes of a node.

open: its head, what is declared in its body, its end. lazy: the same, but only if something in it is shown. cut: its head, up to
the body. value: all of it if short, else without its value. enter: what is in it, as if it were not there. silent: nothing.
gap: nothing but a mark that something was left out.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """What becomes of one node.

    body: what is entered or left out; owner: the node that has it as a child (None: the node itself).
    around: what the body is called when its children are asked about (empty: the type of its owner). rest: other nodes that are
    looked at after the body, such as an else."""

    kind: Kind
    body: Node | None = None
    owner: Node | None = None
    around: str = ""
    rest: tuple[Node, ...] = ()


GAP, SILENT, ENTER = Part("gap"), Part("silent"), Part("enter")


@dataclass(frozen=True, slots=True)
class Shape:
    """The outline of a language.

    open, lazy, cut, value: node type -> the field that holds the body or the value ("" if there is none). wrappers: type -> the
    field that holds what is declared ("": its last named child); what stands around that belongs to the head. prefixes: nodes
    that belong to the next. before_body: types that end a head though no body has begun.

    look(node, around): asked first, with what the node stands in; None leaves it to the tables. private(around, head): whether a
    declaration is. section: whether what follows in a body is private (None: the node says nothing of that). docstring: the
    string that a body begins with. noise: a pattern of what is taken off the beginning of a head. end: what closes a body that
    has no brace.
    """

    comments: frozenset[str]
    open: Mapping[str, str] = field(default_factory=dict)
    lazy: Mapping[str, str] = field(default_factory=dict)
    cut: Mapping[str, str] = field(default_factory=dict)
    value: Mapping[str, str] = field(default_factory=dict)
    wrappers: Mapping[str, str] = field(default_factory=dict)
    enter: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    before_body: frozenset[str] = frozenset()
    look: Callable[[Node, str], Part | None] = lambda node, around: None
    private: Callable[[str, str], bool] = lambda around, head: False
    section: Callable[[Node], bool | None] = lambda node: None
    docstring: Callable[[Node], Node | None] = lambda body: None
    noise: str = ""
    end: str = ""


def types(names: str) -> frozenset[str]:
    """Node types from one string."""
    return frozenset(names.split())


def fields(**groups: str) -> dict[str, str]:
    """{type: field} from `field="type type"`; `none` stands for no field."""
    return {name: "" if at == "none" else at for at, names in groups.items() for name in names.split()}


def tabled(shape: Shape, node: Node) -> Part:
    """What the tables of a shape say of a node; a gap if they do not know its type."""
    kind = node.type
    if kind in shape.enter or kind == "ERROR":
        return ENTER
    if kind in shape.silent:
        return SILENT
    tables: tuple[tuple[Kind, Mapping[str, str]], ...]
    tables = (("cut", shape.cut), ("value", shape.value), ("open", shape.open), ("lazy", shape.lazy))
    for name, table in tables:
        if kind in table:
            body = node.child_by_field_name(table[kind]) if table[kind] else None
            return Part("cut") if body is None and name != "value" else Part(name, body)
    return GAP
