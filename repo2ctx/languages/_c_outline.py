"""What an outline of a C or C++ file or header shows."""

from __future__ import annotations

import re

from tree_sitter import Node

from repo2ctx.languages._shapes import SILENT, Part, Shape, fields, types

_SPECIFIERS = types("struct_specifier union_specifier class_specifier enum_specifier")
_STATIC = re.compile(r"\bstatic\b(?! const)")


def _look(node: Node, around: str) -> Part | None:
    """Declarations by what they declare: a type with a body, a value, or a name alone."""
    kind = node.type
    if kind in _SPECIFIERS:
        body = node.child_by_field_name("body")
        return Part("open", body) if body is not None else SILENT  # without a body it is declared elsewhere
    if kind == "preproc_def":
        value = node.child_by_field_name("value")
        return Part("value", value) if value is not None else SILENT
    if kind not in _DECLARATIONS:
        return None
    of = node.child_by_field_name("type")
    body = of.child_by_field_name("body") if of is not None and of.type in _SPECIFIERS else None
    if body is not None:
        return Part("open", body, of)
    if kind == "function_definition":
        body = node.child_by_field_name("body")
        if body is not None and of is not None and of.type in _SPECIFIERS and not _is_function(node):
            return Part("open", body, node)  # `struct API Name {`, with a macro
        return Part("cut", body)
    if _is_function(node):
        return Part("cut")
    value = node.child_by_field_name("default_value")
    for child in node.children_by_field_name("declarator"):
        value = value or (child.child_by_field_name("value") if child.type == "init_declarator" else None)
    return Part("value", value)


def _is_function(node: Node) -> bool:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    return declarator is not None


def _section(node: Node) -> bool | None:
    if node.type != "access_specifier" or node.text is None:
        return None
    return node.text.startswith(b"private")


def _private(around: str, head: str) -> bool:
    return around not in _SPECIFIERS and bool(_STATIC.search(head.partition("(")[0]))


_DECLARATIONS = types("declaration field_declaration type_definition function_definition")
SHAPE = Shape(
    comments=types("comment"),
    open=fields(body="namespace_definition"),
    cut=fields(none="concept_definition inline_method_clause"),
    value=fields(value="preproc_function_def enumerator", none="namespace_alias_definition", type="alias_declaration"),
    wrappers=fields(none="template_declaration"),
    enter=types(
        "preproc_if preproc_ifdef preproc_else preproc_elif preproc_elifdef linkage_specification declaration_list"
        " field_declaration_list labeled_statement"
    ),
    silent=types(
        "preproc_include preproc_call using_declaration friend_declaration static_assert_declaration string_literal"
        " identifier preproc_defined binary_expression unary_expression number_literal call_expression"
        " parenthesized_expression type_identifier statement_identifier preproc_directive preproc_arg"
    ),
    before_body=types("field_initializer_list"),
    look=_look,
    private=_private,
    section=_section,
)
