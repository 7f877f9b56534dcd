"""What an outline of a Ruby file shows."""

from __future__ import annotations

from tree_sitter import Node

from repo2ctx.languages._shapes import GAP, SILENT, Part, Shape, fields, types

_CLASSES = types("class module singleton_class concern")
_LOADS = frozenset({b"require", b"require_relative", b"load", b"autoload"})
_CONCERN = frozenset({b"included", b"class_methods", b"prepended", b"concerning"})
_GROUPS = frozenset(
    b"describe context feature shared_examples shared_examples_for shared_context namespace group resources scope draw"
    b" configure define".split()
)
_VISIBILITY = {b"private": True, b"protected": True, b"public": False, b"module_function": False}
_DEFINITIONS = types("method singleton_method")


def _look(node: Node, around: str) -> Part | None:
    if node.type == "assignment":
        left = node.child_by_field_name("left")
        named = left is not None and left.type in ("constant", "scope_resolution")
        return Part("value", node.child_by_field_name("right")) if named else GAP
    if node.type != "call":
        return None
    method = node.child_by_field_name("method")
    name = method.text if method is not None else None
    block = node.child_by_field_name("block")
    body = block.child_by_field_name("body") if block is not None else None
    if name in _LOADS and node.child_by_field_name("receiver") is None:
        return SILENT
    if block is not None and body is not None:
        if block.type == "do_block" and (name in _GROUPS or name in _CONCERN):
            return Part("open", body, block, "concern" if name in _CONCERN else "")
        return Part("cut", body, block) if around in _CLASSES or _is_named(node) else GAP
    if around not in _CLASSES or node.child_by_field_name("receiver") is not None:
        return GAP
    given = node.child_by_field_name("arguments")
    defined = next((c for c in given.children if c.type in _DEFINITIONS), None) if given is not None else None
    return Part("cut", defined.child_by_field_name("body"), defined) if defined is not None else Part("value")


def _is_named(call: Node) -> bool:
    """Whether a call with a block says by a first argument what the block is: `it "works" do`, `task :build do`."""
    given = call.child_by_field_name("arguments")
    return given is not None and any(c.type in ("string", "simple_symbol", "constant", "pair") for c in given.children)


def _section(node: Node) -> bool | None:
    if node.type != "identifier" or node.text is None:
        return None
    return _VISIBILITY.get(node.text)


SHAPE = Shape(
    comments=types("comment"),
    open=fields(body="class module singleton_class"),
    lazy=fields(consequence="if unless"),
    cut=fields(body="method singleton_method"),
    value=fields(none="alias"),
    silent=types("uninterpreted heredoc_body empty_statement"),
    look=_look,
    private=lambda around, head: head.startswith(
        ("private ", "private_class_method ", "private_constant ", "protected ")
    ),
    section=_section,
    end="end",
)
