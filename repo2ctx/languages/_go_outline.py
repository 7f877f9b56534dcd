"""What an outline of a Go file shows."""

from __future__ import annotations

import re

from tree_sitter import Node

from repo2ctx.languages._shapes import Part, Shape, fields, types

_PRIVATE = re.compile(r"(?:func (?:\([^)]*\) )?|type |const |var )?[a-z_]\w*")
_DECLARATIONS = types("type_declaration const_declaration var_declaration")


def _look(node: Node, around: str) -> Part | None:
    """Groups in parentheses, structs and interfaces."""
    if node.type in _DECLARATIONS:
        grouped = next((c for c in node.children[1:2] if c.type in ("(", "var_spec_list")), None)
        if grouped is not None:
            return Part("open", node if grouped.type == "(" else grouped, node)
        spec = next((child for child in node.children if child.is_named and child.type != "comment"), None)
        return (_look(spec, around) or Part("value", spec.child_by_field_name("value"))) if spec is not None else None
    if node.type in ("type_spec", "type_alias"):
        kind = node.child_by_field_name("type")
        if kind is not None and kind.type == "struct_type" and kind.children[-1].type == "field_declaration_list":
            return Part("open", kind.children[-1], kind)
        if kind is not None and kind.type == "interface_type":
            return Part("open", kind, kind)
        return Part("cut")
    return None


def _private(around: str, head: str) -> bool:
    return around != "interface_type" and bool(_PRIVATE.match(head)) and not head.startswith(("package ", "func main("))


SHAPE = Shape(
    comments=types("comment"),
    cut=fields(body="function_declaration method_declaration", none="method_elem type_elem"),
    value=fields(value="const_spec var_spec", none="package_clause field_declaration"),
    silent=types("import_declaration"),
    look=_look,
    private=_private,
)
