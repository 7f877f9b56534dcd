"""The names that a Go file's declarations use, read off its text."""

from __future__ import annotations

import re
from itertools import chain

from tree_sitter import Node

FUNCTIONS = frozenset({"function_declaration", "method_declaration"})
_WITHOUT_NAMES = frozenset({"comment", "package_clause", "import_declaration"})

# Names are read off the text, which costs a third of what a tree query for them does; Go's lexis is regular.
# NUL separates the parts of a file, and nothing crosses it.
# Whatever is not closed ends with the line or the part, so that the search never goes back.
_NO_CODE = re.compile(
    rb"""/(?:/[^\n\0]*+|\*[^*\0]*+(?:\*(?!/)[^*\0]*+)*+(?:\*/)?)|`[^`\0]*+`?"""
    rb"""|"[^"\\\n\0]*+(?:\\[^\0][^"\\\n\0]*+)*+"?|'[^'\\\n\0]*+(?:\\[^\0][^'\\\n\0]*+)*+'?"""
)
_W = rb"[\w\x80-\xff]"
# In Go, a name right before another name is being declared: a parameter, a field, a variable with its type. What
# stands before tells names from types: in `a T, b U` the list of names before U is not `T, b`.
_DECLARED = re.compile(
    rb"(?<=[(\[{,;\n\t ])(?<![^(\[{,; ] )(%b++(?:\s*+,\s*+%b++){0,50}+)[ \t]+(?=[\w\x80-\xff*\[]|<-)" % (_W, _W)
)
_METHOD = re.compile(rb"(?:^|[{;])[ \t]*%b+\(" % _W, re.MULTILINE)
_LITERAL = re.compile(rb"func\s*\([^{\n]*")
_LOCALS = tuple(
    (word, re.compile(rb"%b\s+(%b+(?:\s*,\s*%b+)*)" % (word, _W, _W))) for word in (b"var", b"const", b"type")
)
_STRUCT = re.compile(rb"struct\s*\{[^{}]*\}")
_BROKEN_CHAIN = re.compile(rb"\.\n\s*")
_NAMES_ONLY = bytes(c if chr(c).isalnum() or c in b"_.:" or c >= 0x80 else 0x20 for c in range(256))


def used_names(root: Node, imported: set[bytes]) -> set[bytes]:
    """Dotted names that the declarations use; `.x` is a selector, `x:` a key, a case or a label.

    A variable with the name of an import mostly comes after the last use of the import in its function, so such
    names do not count as local.
    """
    found: set[bytes] = set()
    source = (root.text or b"").replace(b"\0", b" ")
    parts = [_split(source, root.start_byte, node) for node in root.named_children if node.type not in _WITHOUT_NAMES]
    clean = _NO_CODE.sub(b" ", b"\0".join(chain.from_iterable(parts)))
    clean = _BROKEN_CHAIN.sub(b".", clean).replace(b"...", b" ").replace(b":", b": ")
    pieces = clean.split(b"\0") if parts else []
    plain: list[bytes] = []  # what has no local names
    for parameters, heading, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        generic = _DECLARED.findall(parameters) if parameters else []
        # Split by a pattern with one group, every other part is what the group matched: the names declared.
        between = _DECLARED.split(heading)
        if generic:
            _gather(b" ".join(between[::2]), _names(generic), found)
        else:
            plain += between[::2]
        if b"struct" in body:
            body = _STRUCT.sub(lambda fields: _DECLARED.sub(b" ", fields[0]), body)
        if body:
            _gather(body, _names(generic + between[1::2] + _locals(body)) - imported, found)
    _gather(b" ".join(plain), set(), found)
    return found


def _split(source: bytes, shift: int, node: Node) -> tuple[bytes, bytes, bytes]:
    """A declaration as its type parameters; the part where a name before a name is being declared, without the
    declaration's own name; and the rest. `shift`: where the source starts, in the tree's offsets.
    """
    kind, start, end = node.type, node.start_byte - shift, node.end_byte - shift
    if kind == "type_declaration":
        specs = (spec.child_by_field_name("type_parameters") for spec in node.named_children)
        parameters = b" ".join(source[n.start_byte - shift : n.end_byte - shift] for n in specs if n is not None)
        return parameters, _METHOD.sub(b"(", source[start:end]), b""
    name = node.child_by_field_name("name") if kind in FUNCTIONS else None
    if name is None:
        return b"", b"", source[start:end]
    block = node.child_by_field_name("body")
    middle = end if block is None else block.start_byte - shift
    own, after = name.start_byte - shift, name.end_byte - shift
    parameters = b""
    if source[after : after + 1] == b"[" and (listed := node.child_by_field_name("type_parameters")) is not None:
        parameters = source[after : listed.end_byte - shift]
    return parameters, b"%b %b" % (source[start:own], source[after:middle]), source[middle:end]


def _names(lists: list[bytes]) -> set[bytes]:
    return set(b" ".join(lists).replace(b",", b" ").split())


def _locals(body: bytes) -> list[bytes]:
    """Names that code declares, in lists: `x, y := …`, `var x T` and the parameters of function literals."""
    found: list[bytes] = []
    for word, pattern in _LOCALS:
        if word in body:
            found += pattern.findall(body)
    if b"func" in body:
        for literal in _LITERAL.findall(body):
            found += _DECLARED.findall(literal)
    for part in body.split(b": =")[:-1]:
        found.append(part[max(part.rfind(b"\n"), part.rfind(b"{"), part.rfind(b";")) + 1 :])
    return found


def _gather(code: bytes, local: set[bytes], to: set[bytes]) -> None:
    """Add the dotted names in code to a set, those that begin with a local name as selectors only."""
    words = set(code.translate(_NAMES_ONLY).split())
    words -= local
    words -= to
    selectors: list[bytes] = []
    for word in words:
        dot = word.find(b".")
        if dot >= 0 or b":" in word:
            head = word[:dot].rstrip(b":")  # a word without a dot ends with a colon
            if not head or head in local:
                selectors.append(word)
    if selectors:
        words.difference_update(selectors)
        for word in selectors:
            words.update([b"." + part for part in word.rstrip(b":").split(b".")[1:] if part])
    to |= words
