"""What an outline of a Python file shows."""

from __future__ import annotations

import re

from tree_sitter import Node

from repo2ctx.languages._shapes import SILENT, Part, Shape, fields, types

_PRIVATE = re.compile(r"(?:@[^\n]*\n\s*)*(?:(?:async )?def |class )?_(?!_)")

_BRANCHES = types("if_statement elif_clause else_clause try_statement except_clause except_group_clause finally_clause")


def _look(node: Node, around: str) -> Part | None:
    """Assignments that give a name, branches, and what is no code."""
    if node.type in _BRANCHES:
        blocks = [child for child in node.children if child.type == "block"]
        return Part("lazy", blocks[0], rest=tuple(c for c in node.children if c.type in _BRANCHES)) if blocks else None
    if node.type == "import_from_statement":
        return Part("value") if any(map(_is_offered, node.children_by_field_name("name"))) else SILENT
    if node.type != "expression_statement":
        return None
    said = node.child(0)
    if said is None or said.type in ("string", "concatenated_string", "ellipsis"):
        return SILENT
    if (
        said.type == "assignment"
        and (left := said.child_by_field_name("left")) is not None
        and left.type == "identifier"
    ):
        return Part("value", said.child_by_field_name("right"))
    return None


def _is_offered(imported: Node) -> bool:
    """Whether an import is there for others: `from .app import Flask as Flask`."""
    name, alias = imported.child_by_field_name("name"), imported.child_by_field_name("alias")
    return name is not None and alias is not None and name.text == alias.text


def _docstring(body: Node) -> Node | None:
    if body.type not in ("block", "module"):
        return None
    cursor = body.walk()
    found = cursor.goto_first_child()
    while found and cursor.node is not None and cursor.node.type == "comment":
        found = cursor.goto_next_sibling()
    statement = cursor.node if found else None
    said = statement.child(0) if statement is not None and statement.type == "expression_statement" else None
    return said if said is not None and said.type == "string" else None


SHAPE = Shape(
    comments=types("comment"),
    open=fields(body="class_definition"),
    cut=fields(body="function_definition", none="type_alias_statement"),
    wrappers=fields(definition="decorated_definition"),
    silent=types("import_statement future_import_statement pass_statement"),
    look=_look,
    private=lambda around, head: bool(_PRIVATE.match(head)),
    docstring=_docstring,
)
