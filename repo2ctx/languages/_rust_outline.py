"""What an outline of a Rust file shows."""

from __future__ import annotations

import re

from tree_sitter import Node

from repo2ctx.languages._shapes import SILENT, Part, Shape, fields, types

_PUBLIC = re.compile(r"(?:#\[[^\]]*\]\s*)*(?:pub\b|impl\b|macro_rules!)")
_PUBLIC_INSIDE = frozenset({"trait_item", "enum_item", "foreign_mod_item"})


def _look(node: Node, around: str) -> Part | None:
    kind = node.type
    if kind in ("struct_item", "union_item"):
        body = node.child_by_field_name("body")
        return Part("open", body) if body is not None and body.type == "field_declaration_list" else Part("cut")
    if kind == "macro_definition":
        return Part("cut", next((c for c in node.children if c.type in ("{", "(", "[")), None), node)
    if kind == "use_declaration" or (kind == "mod_item" and node.child_by_field_name("body") is None):
        public = node.child_count > 0 and node.children[0].type == "visibility_modifier"
        return Part("value", node.child_by_field_name("argument")) if public else SILENT
    return None


def _private(around: str, head: str) -> bool:
    return around not in _PUBLIC_INSIDE and not _PUBLIC.match(head)


SHAPE = Shape(
    comments=types("line_comment block_comment"),
    open=fields(body="enum_item trait_item impl_item mod_item foreign_mod_item"),
    cut=fields(body="function_item", none="function_signature_item type_item associated_type extern_crate_declaration"),
    value=fields(value="const_item static_item", none="field_declaration enum_variant"),
    prefixes=types("attribute_item"),
    silent=types("inner_attribute_item shebang empty_statement"),
    look=_look,
    private=_private,
    noise=r"#\[(?:derive|inline|allow|expect|deny|warn|cfg|cfg_attr|doc|must_use|cold|track_caller|test|non_exhaustive|repr|stable"
    r"|unstable|rustc_\w+|macro_use|macro_export|deprecated|serde|automatically_derived|default|no_mangle|ignore"
    r"|should_panic)\b",
)
