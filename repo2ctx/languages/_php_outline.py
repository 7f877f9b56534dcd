"""What an outline of a PHP file shows."""

from __future__ import annotations

import re

from tree_sitter import Node

from repo2ctx.languages._shapes import Part, Shape, fields, types

_PRIVATE = re.compile(r"(?:#\[[^\]]*\]\s*)*(?:static |final |abstract |readonly )*(?:private|protected)\b")


def _look(node: Node, around: str) -> Part | None:
    if node.type in ("property_declaration", "const_declaration"):
        element = next((c for c in node.children if c.type in ("property_element", "const_element")), None)
        value = element.children[-1] if element is not None and element.child_count > 1 else None
        return Part("value", value)
    return None


SHAPE = Shape(
    comments=types("comment"),
    open=fields(body="class_declaration interface_declaration trait_declaration enum_declaration"),
    lazy=fields(body="if_statement"),
    cut=fields(body="function_definition method_declaration namespace_definition"),
    value=fields(none="use_declaration enum_case"),
    silent=types("php_tag text_interpolation namespace_use_declaration declare_statement empty_statement php_end_tag"),
    look=_look,
    private=lambda around, head: bool(_PRIVATE.match(head)),
)
