"""What an outline of a C# file shows."""

from __future__ import annotations

import re

from tree_sitter import Node

from repo2ctx.languages._shapes import Part, Shape, fields, types

_PRIVATE = re.compile(r"(?:\[[^\]]*\]\s*)*(?:static |readonly |sealed |async |unsafe |const )*private\b(?! protected)")
_PROPERTIES = types("property_declaration indexer_declaration event_declaration")


def _look(node: Node, around: str) -> Part | None:
    """Properties by their accessors, fields by their values."""
    if node.type in _PROPERTIES:
        accessors = node.child_by_field_name("accessors") or node.child_by_field_name("value")
        listed = accessors.children if accessors is not None and accessors.type == "accessor_list" else []
        plain = listed and not any(c.child_by_field_name("body") for c in listed)  # { get; set; }
        return Part("value") if plain else Part("cut", accessors)
    if node.type == "field_declaration":
        declared = next((c for c in node.children if c.type == "variable_declaration"), None)
        variable = next((c for c in declared.children if c.type == "variable_declarator"), None) if declared else None
        value = variable.children[-1] if variable is not None and variable.child_count > 2 else None
        return Part("value", value)
    return None


SHAPE = Shape(
    comments=types("comment"),
    open=fields(
        body="namespace_declaration class_declaration struct_declaration interface_declaration enum_declaration"
        " record_declaration"
    ),
    cut=fields(
        body="method_declaration constructor_declaration destructor_declaration operator_declaration"
        " conversion_operator_declaration local_function_statement",
        none="delegate_declaration",
    ),
    value=fields(none="event_field_declaration enum_member_declaration file_scoped_namespace_declaration"),
    enter=types(
        "preproc_if preproc_ifdef preproc_else preproc_elif preproc_if_in_top_level declaration_list global_statement"
    ),
    silent=types(
        "using_directive extern_alias_directive preproc_region preproc_endregion preproc_pragma preproc_nullable"
        " preproc_define preproc_undef preproc_line preproc_warning preproc_error identifier unary_expression binary_expression"
        " parenthesized_expression attribute_list global_attribute"
    ),
    before_body=types("constructor_initializer"),
    look=_look,
    private=lambda around, head: bool(_PRIVATE.match(head)),
    noise=r"(?:\[(?:Fact|Test|TestMethod|Theory|Obsolete|DebuggerStepThrough|MethodImpl|EditorBrowsable|SuppressMessage|Pure"
    r"|GeneratedCode|ExcludeFromCodeCoverage|DebuggerDisplay|UnconditionalSuppressMessage|RequiresUnreferencedCode"
    r"|RequiresDynamicCode)\b[^\]]*\]\s*)+",
)
