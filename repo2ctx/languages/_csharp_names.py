"""The names that C# text uses, with what their surroundings say of them.

Names are read off the text, which costs a third of what a tree query does and survives errors in the tree. A dotted
name ends with a backtick and the number of its type arguments, if any: ``A.Pair`2``. A sign says where it stands:

    Name       where only a type can
    ?Name      where a value can too, so that a member of that name hides the type
    @Name      in an attribute
    ~Name      in `nameof` or a comment's `cref`
    .Name(Head a called method; Head is what it is called on, if that is one capitalised name
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

# Whatever is not closed ends with the line or the file, so that the search never goes back.
_HOLE = rb"""\{[^{}"\n]*+(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"[^{}"\n]*+)*+\}"""
_NO_CODE = re.compile(
    rb"""/(?:/[^\n]*+|\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?)"""  # comments
    rb"""|\#[^\n]*+"""  # directives
    rb"""|"(?:""(?P<more>"*+)(?s:.*?)(?:\"{3}(?P=more)"*+|\Z)|[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?)"""  # raw strings, strings
    rb"""|@\$?"[^"]*+(?:""[^"]*+)*+"?"""  # verbatim ones
    rb"""|\$(?:@"[^"]*+(?:""[^"]*+)*+"?|"(?!"")(?P<holes>[^"\\{\n]*+(?:(?:\\.|\{\{|%s|\{)[^"\\{\n]*+)*+)"?)"""
    rb"""|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'?""" % _HOLE
)
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?')
_IN_HOLE = re.compile(rb"\{([^{}]*+)\}")
# Types begin with a capital; whatever else does not is taken for a keyword or a variable, and so is its member.
_NAME = re.compile(rb"([A-Z\xc3-\xff](?<![\w.\x80-\xff].)[\w.\x80-\xff]*+)")
_BEFORE = re.compile(
    rb"(?:\b(new|as|is|not|case|using|namespace) |\b((?:typeof|default|sizeof|catch|nameof) ?\()|(\[|,) ?|(<)| (:) "
    rb"|(\[) ?(?:assembly|module|return|field|property|param|type|method|event|typevar): ?)\Z"
)
_MAY_BE_BEFORE = tuple(
    b"<|[|[ |,|, |: |new |as |is |not |case |using |namespace |of(|lt(|ch(|of (|lt (|ch (".split(b"|")
)
_LONGEST_BEFORE = 12
_AFTER = re.compile(
    rb"( \?)| ?((?:is|as|in|and|or|when|where|select|group|let|from|orderby|join|equals|on|ascending|descending|into|with|switch)"
    rb"\b|=[=>]?|\[[\],]?|[^\w\s]?)"
)
_LONG_AFTER = frozenset({b" ", b"=", b"["})
_CALL = re.compile(
    rb"\.(?<!\bstring\.)(?<!\bobject\.)(?<!\bchar\.)(?<!\bint\.)(?<!\bbase\.)(?<!\bdouble\.)([A-Z]\w*+)(?: ?\(|<)"
)
_FLAT_ARGUMENTS = re.compile(rb"<[\w. ,]*>")
_CREF = re.compile(rb'cref\s*=\s*"(?:[A-Z!]:)?([\w.\x80-\xff`]++)(\{[^}"\n]*\})?')
_BASE = re.compile(r"[\s:]*@?((?!\d)[\w.\s]*\w)\s*(<)?")

_BEFORE_TYPES = frozenset(b"new as is typeof( default( sizeof( catch(".split())
_BEFORE_PATTERNS = frozenset(b"not case".split())
_AFTER_TYPES = frozenset({b"", b"?", b"[]", b"[,"})
_AFTER_ARGUMENTS = frozenset({b">", b",", b"<>"})
_AFTER_VALUES = frozenset({b" ?", *b"; = == : ( < + - / % ^ | & ! is as in with switch equals".split()})
_LONGEST = 500  # characters of a dotted name
_DEEPEST = 6  # type arguments within type arguments
_FARTHEST = 300  # characters from the beginning of type arguments to their end


def code_of(source: bytes) -> bytes:
    """The text without comments, directives and strings, but with what is computed inside strings; on one line."""
    code = _NO_CODE.sub(_replacement if b'$"' in source else b" ", source)
    code = code.replace(b"@", b"").replace(b"global::", b"").replace(b"::", b".").replace(b"..", b" ")
    return b" ".join(code.split()).replace(b" .", b".").replace(b". ", b".").replace(b"?.", b".")


def _replacement(match: re.Match[bytes]) -> bytes:
    holes: bytes | None = match["holes"]
    return b" (%s) " % b",".join(_IN_HOLE.findall(_STRING.sub(b" ", holes.replace(b"{{", b"")))) if holes else b" "


def used_names(code: bytes, source: bytes, enum_values: Collection[str]) -> list[str]:
    """The names in `code`, and those in the comments of `source`, each once and in order."""
    parts = _NAME.split(code)
    found: dict[bytes, None] = {}
    for name, before, after in _tokens(parts):
        if len(name) <= _LONGEST:
            dotted = b"." in name
            if dotted and after in (b"(", b"<>"):
                head, _, method = name.partition(b"`")[0].rpartition(b".")
                found[b".%s(%s" % (method, b"" if b"." in head else head)] = None
            for sign in _signs(before, after, dotted):
                found[sign + name] = None
    found.update(dict.fromkeys(b".%s(" % method for method in dict.fromkeys(_CALL.findall(b" ".join(parts[::2])))))
    for name, arguments in dict.fromkeys(_CREF.findall(source) if b"cref" in source else ()):
        found[b"~%s%s" % (name, b"`%d" % (arguments.count(b",") + 1) if arguments else b"")] = None
    uses = b"\n".join(found).decode("utf-8", "replace").split("\n") if found else []
    return [use for use in uses if use[0] != "?" or use[1:] not in enum_values]


def _tokens(parts: list[bytes]) -> dict[tuple[bytes, bytes, bytes], None]:
    """Every name with what matters of the text before and after it. Of `parts`, each second one is a name."""
    gaps, names = parts[::2], parts[1::2]
    before = dict.fromkeys(gaps, b"")
    after = before.copy()
    for gap in before:
        if gap.endswith(_MAY_BE_BEFORE) and (match := _BEFORE.search(gap, max(0, len(gap) - _LONGEST_BEFORE))):
            before[gap] = match[match.lastindex or 0].replace(b" ", b"")
        after[gap] = gap[:1]
        if gap[:1] in _LONG_AFTER and (match := _AFTER.match(gap)):
            after[gap] = match[match.lastindex or 0]
    lefts, rights = [before[gap] for gap in gaps], [after[gap] for gap in gaps]
    for at, mark in enumerate(rights):
        if mark == b"<" and at and (arity := _arity(parts[2 * at : 2 * at + 40])):
            names[at - 1] += b"`%d" % arity
            rights[at] = b"<>"
    return dict.fromkeys(zip(names, lefts, rights[1:], strict=False))


@cache
def _signs(before: bytes, after: bytes, dotted: bool) -> tuple[bytes, ...]:
    """The signs of a name in these surroundings; none if it is no type."""
    if before == b"namespace" or (before == b"using" and after in (b";", b"=")):
        return ()
    if before == b"[":
        return (b"@", b"?") if dotted else (b"@",)
    if before == b"nameof(":
        return (b"~",)
    attribute = (b"@",) if before == b"," and after in (b"(", b"]", b",") else ()
    if before in _BEFORE_TYPES or after in _AFTER_TYPES or (before == b"<" and after in _AFTER_ARGUMENTS):
        return (*attribute, b"")
    if dotted or before in _BEFORE_PATTERNS or after not in _AFTER_VALUES or before + after == b":;":
        return (*attribute, b"?")
    return attribute


def _arity(parts: list[bytes]) -> int:
    """How many type arguments the text has, which starts with `<`; 0 if that is a comparison."""
    text = b"".join([part[:_FARTHEST] for part in parts])[:_FARTHEST]
    if flat := _FLAT_ARGUMENTS.match(text):
        return flat[0].count(b",") + 1
    angles = others = commas = 0
    for char in text.decode("latin-1"):
        if char == "<":
            angles += 1
        elif char == ">":
            angles -= 1
            if not angles:
                return commas + 1
        elif char in "([":
            others += 1
        elif char in ")]":
            others -= 1
        elif char == "," and angles == 1 and not others:
            commas += 1
        if others < 0 or angles > _DEEPEST or char in ";{}=&|+-/!":
            return 0
    return 0


def base_names(code: str) -> list[str]:
    """The types that a base list names."""
    if not any(bracket in code for bracket in "<(["):
        return [name for part in code.lstrip(": ").split(",") if (name := "".join(part.split()))]
    found: list[str] = []
    start = deep = 0
    for at, char in enumerate(f"{code},"):
        if char in "<([":
            deep += 1
        elif char in ">)]":
            deep -= 1
        elif char == "," and deep <= 0:
            if match := _BASE.match(code, start, at):
                arity = _arity([code[match.end(1) : at].strip().encode()]) if match[2] else 0
                name = "".join(match[1].split())
                found.append(f"{name}`{arity}" if arity else name)
            start = at + 1
    return found
