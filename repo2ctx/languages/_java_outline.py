"""What an outline of a Java file shows."""

from __future__ import annotations

import re

from tree_sitter import Node

from repo2ctx.languages._shapes import Part, Shape, fields, types

_PRIVATE = re.compile(r"(?:@[\w.]+(?:\([^()]*\))?\s+)*(?:static |final |synchronized )*private\b")


def _look(node: Node, around: str) -> Part | None:
    if node.type == "field_declaration":
        declared = node.child_by_field_name("declarator")
        return Part("value", declared.child_by_field_name("value") if declared is not None else None)
    if node.type == "enum_constant":
        body = node.child_by_field_name("body")
        return Part("cut", body) if body is not None else Part("value", node.child_by_field_name("arguments"))
    return None


SHAPE = Shape(
    comments=types("line_comment block_comment"),
    open=fields(
        body="class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration"
        " module_declaration"
    ),
    cut=fields(body="method_declaration constructor_declaration compact_constructor_declaration"),
    value=fields(
        none="package_declaration annotation_type_element_declaration exports_module_directive requires_module_directive"
        " provides_module_directive opens_module_directive uses_module_directive",
        value="constant_declaration",
    ),
    enter=types("enum_body_declarations"),
    silent=types("import_declaration"),
    look=_look,
    private=lambda around, head: bool(_PRIVATE.match(head)),
    noise=r"(?:@(?:Override|SuppressWarnings|Nullable|NonNull|NotNull|SafeVarargs|Deprecated|Test|Generated|CanIgnoreReturnValue"
    r"|GwtCompatible|GwtIncompatible|J2ktIncompatible)\b(?:\([^()]*\))?\s*)+",
)
