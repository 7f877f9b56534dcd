"""What an outline of a JavaScript or TypeScript file shows."""

from __future__ import annotations

import re

from tree_sitter import Node

from repo2ctx.languages._shapes import GAP, SILENT, Part, Shape, fields, types

_FUNCTIONS = types("arrow_function function_expression generator_function function")
_CLASSES = types("class class_expression")
_GROUPS = re.compile(rb"(?:describe|context|suite)\b")  # of tests
_MODULES = re.compile(rb"(?:define|require|requirejs|jQuery|\$|(?:angular\.)?module)\b")
_LOADED = re.compile(rb"(?:await\s+import|require)\s*\(")
_PRIVATE = re.compile(
    r"(?:(?:static|async|readonly|get|set|override) )*(?:private\b|[#_])|(?:const|let|var|function|class) _"
)
_OPEN = types(
    "class_declaration abstract_class_declaration interface_declaration enum_declaration internal_module module"
)
_MOST_NAMES = 8  # assignments in a row


def _look(node: Node, around: str) -> Part | None:
    kind = node.type
    if kind in ("lexical_declaration", "variable_declaration"):
        declared = next((c for c in node.children if c.type == "variable_declarator"), None)
        return _valued(declared, declared.child_by_field_name("value")) if declared is not None else Part("value")
    if kind in ("public_field_definition", "field_definition", "pair"):
        return _valued(node, node.child_by_field_name("value"))
    if kind == "export_statement":  # of no declaration: the wrapper was taken off where there is one
        listed = next((child for child in node.children if child.type == "export_clause"), None)
        return Part("value", listed) if listed is not None else _valued(node, _exported(node))
    if kind == "expression_statement":
        said = next((c for c in node.children if c.is_named), None)
        return _statement(said) if said is not None else SILENT
    return None


def _exported(statement: Node) -> Node | None:
    """What `export default` or `export =` gives."""
    given = statement.children[1:]
    if given and given[0].type == "=":
        return next((child for child in given if child.is_named and child.type != "comment"), None)
    return statement.child_by_field_name("value")


def _statement(said: Node) -> Part:
    """What an expression by itself declares."""
    if said.type in ("string", "comment"):
        return SILENT
    if said.type == "internal_module":
        return Part("open", said.child_by_field_name("body"), said)
    if said.type == "assignment_expression":
        left = said.child_by_field_name("left")
        exported = left is not None and (left.text or b"").startswith((b"module.exports", b"exports"))
        right = said.child_by_field_name("right")
        for _ in range(_MOST_NAMES):
            if right is None or right.type != said.type:
                break
            said, right = right, right.child_by_field_name("right")
        return _valued(said, right, exported)
    if said.type in ("unary_expression", "parenthesized_expression"):
        said = next((c for c in said.children if c.is_named), said)
    return _call(said) if said.type == "call_expression" else GAP


def _call(call: Node) -> Part:
    """Tests with a title, modules in a function, and what else is told by its last argument."""
    callee, given = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    if callee is None or given is None:
        return GAP
    functions = [c for c in given.children if c.type in _FUNCTIONS]
    if callee.type == "parenthesized_expression" or callee.type in _FUNCTIONS:
        itself = next((c for c in callee.children if c.type in _FUNCTIONS), callee)
        called = max([itself, *functions], key=lambda f: f.end_byte - f.start_byte)
        body = called.child_by_field_name("body")
        return Part("enter", body) if body is not None and body.type == "statement_block" else GAP
    body = functions[-1].child_by_field_name("body") if functions else None
    name = (callee.text or b"")[:40]
    if body is None or body.type != "statement_block":
        return GAP
    if _MODULES.match(name):
        return Part("enter", body)
    return Part("open" if _GROUPS.match(name) else "cut", body, functions[-1])


def _valued(owner: Node, value: Node | None, declares: bool = True) -> Part:
    """A name by its value. owner: what has the value as a child. declares: whether it counts whatever its value is."""
    while value is not None and value.type in ("as_expression", "satisfies_expression", "parenthesized_expression"):
        owner = value if value.type == "parenthesized_expression" else owner
        value = next((c for c in value.children if c.is_named and c.type != "comment"), None)
    if value is None:
        return Part("value") if declares else GAP
    if value.type in _FUNCTIONS:
        return Part("cut", value.child_by_field_name("body"), value)
    if value.type in _CLASSES:
        return Part("open", value.child_by_field_name("body"), value)
    if value.type == "object" and any(_is_method(child) for child in value.children):
        return Part("open", value, owner)  # an object begins with its brace: what stands before is its owner's
    if value.type in ("call_expression", "member_expression", "await_expression") and _LOADED.match(
        (value.text or b"")[:40]
    ):
        return SILENT
    return Part("value", value) if declares else GAP


def _is_method(child: Node) -> bool:
    value = child.child_by_field_name("value") if child.type == "pair" else None
    return child.type == "method_definition" or (value is not None and value.type in _FUNCTIONS)


SHAPE = Shape(
    comments=types("comment"),
    open=dict.fromkeys(sorted(_OPEN), "body"),
    cut=fields(
        body="function_declaration generator_function_declaration method_definition",
        none="function_signature method_signature abstract_method_signature call_signature construct_signature index_signature"
        " type_alias_declaration",
    ),
    value=fields(
        none="property_signature property_identifier shorthand_property_identifier spread_element export_specifier string",
        value="enum_assignment",
    ),
    wrappers=fields(declaration="export_statement", none="ambient_declaration"),
    silent=types("import_statement empty_statement hash_bang_line import_alias class_static_block decorator"),
    look=_look,
    private=lambda around, head: bool(_PRIVATE.match(head)),
)
