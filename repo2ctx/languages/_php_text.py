"""The names in PHP code, read off its text: a query over the syntax tree costs twice as much. PHP's lexis is regular;
what is not closed ends with the file, so that a search never goes back."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal

_NO_CODE = rb"""
    /(?:/[^\n?]*+(?:\?(?!>)[^\n?]*+)*+ | \*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?)
  | \#(?!\[)[^\n?]*+(?:\?(?!>)[^\n?]*+)*+
  | '[^'\\]*+(?:\\.[^'\\]*+)*+'?
  | "[^"\\]*+(?:\\.[^"\\]*+)*+"?
  | `[^`\\]*+(?:\\.[^`\\]*+)*+`?
  | <<<[ \t]*+(?P<quote>["']?)(?P<end>\w+)(?P=quote)\r?\n(?:(?![ \t]*+(?P=end)\b)[^\n]*+\n)*+[ \t]*+(?:(?P=end))?
  | \?>[^<]*+(?:<(?!\?(?:php\b|=|\s))[^<]*+)*+(?:<\?(?:php|=)?)?
"""
_STRIPPED = re.compile(_NO_CODE, re.VERBOSE | re.DOTALL)
# Every branch begins with a literal, which makes the search fast; the group at its end says which one it was.
_STATEMENT = (
    _NO_CODE
    + rb"""
  | include(?<![\w$>:\\]include)(?:_once)?(?P<include>)\b[\s(]*+
  | require(?<![\w$>:\\]require)(?:_once)?(?P<require>)\b[\s(]*+
  | define(?<![\w$>:]define)\s*+\((?P<define>)
  | class_alias(?<![\w$>:]class_alias)\s*+\((?P<class_alias>)
"""
)
_MARKS = {
    False: re.compile(_STATEMENT, re.VERBOSE | re.DOTALL),
    True: re.compile(
        _STATEMENT + rb"| function(?<![\w$>:]function)\s*+&?\s*+\((?P<closure>) | \{(?P<open>) | \}(?P<close>)",
        re.VERBOSE | re.DOTALL,
    ),
}
"""Without and with what it takes to find closures."""
_STATEMENTS = (
    (b"include", re.compile(rb"""include(?:_once)?[\s(]++(?:['"_\\]|dirname|DIR)""")),
    (b"require", re.compile(rb"""require(?:_once)?[\s(]++(?:['"_\\]|dirname|DIR)""")),
    (b"define", re.compile(rb"define\s*\(")),
    (b"class_alias", re.compile(rb"class_alias\s*\(")),
)
_CLOSURE = re.compile(rb"function\s*+&?\s*+\(")

_QUOTED = rb"""['"]([\w\\\x80-\xff]+)['"]"""
_DEFINE = re.compile(rb"\s*" + _QUOTED)
_CLASS_ALIAS = re.compile(rb"[^,()]*,\s*(?:" + _QUOTED + rb"|([\w\\\x80-\xff]+)\s*::\s*class\b)", re.IGNORECASE)
_PIECE = re.compile(
    rb"""\s*(?:'([^'\\]*)'|"([^"\\$]*)"|(DIRECTORY_SEPARATOR)"""
    rb"""|((?:\\?dirname\s*\(\s*)*)(__DIR__|__FILE__)((?:\s*(?:,\s*\d\s*)?\))*))\s*(\.?)""",
    re.IGNORECASE,
)
_MOST_PIECES = 16
_LONGEST_PATH = 1000

_NAMES_ONLY = bytes(c if chr(c).isalnum() or c in b"_\\$:(\x01\x02" or c >= 0x80 else 0x20 for c in range(256))
# What is not used but declared, or belongs to a value, gets a `$`, like the names of variables.
_MARKED = (
    (b"->", b" $"), (b"new ", b"new\x01"), (b"function ", b"function $"), (b"const ", b"const $"), (b"(", b"( "),
    (b"#[", b" \x02"),
)  # fmt: skip
_ENUM_CASE = re.compile(rb"\bcase\s++\w++\s*+[=;]")
_RESERVED = frozenset(
    """
    abstract and array as bool boolean break callable case catch class clone const continue declare default die do echo
    else elseif empty enddeclare endfor endforeach endif endswitch endwhile eval exit extends false final finally float
    fn for foreach function global goto if implements include include_once instanceof insteadof int interface isset
    iterable list match mixed namespace never new null object or parent print private protected public readonly require
    require_once return self static string switch throw trait true try unset use var void while xor yield
    """.split()
)
_SKIPPED = frozenset(
    word.encode() + end for name in _RESERVED for word in (name, name.upper(), "") for end in (b"", b"(", b":")
)

How = Literal["class", "type", "attribute", "call", "hint"]


def words(code: bytes) -> Iterator[tuple[How, str]]:
    """The names in code, and how each is used: as a class (`new X`, `X::`), as one that is only named (`X::class`), in
    an attribute, called like a function, or otherwise (a hint: perhaps a type, perhaps a constant)."""
    code = _STRIPPED.sub(b"''", code)
    if b"case " in code:
        code = _ENUM_CASE.sub(b" ", code)
    for plain, marked in _MARKED:
        code = code.replace(plain, marked)
    for word in dict.fromkeys(code.translate(_NAMES_ONLY).split()):
        if word[0] == 0x24 or word in _SKIPPED:  # a variable, or the member of something
            continue
        if word.isalpha():
            yield "hint", word.decode()
        else:
            how, name = _use(word)
            if name and not name[0].isdigit() and name.lower() not in _RESERVED:
                yield how, name


def _use(word: bytes) -> tuple[How, str]:
    how: How = "hint"
    name, colons, member = word.partition(b"::")
    if colons:
        how = "type" if member.lower() == b"class" else "class"
    elif name.startswith(b"new\x01"):
        how, name = "class", name[4:].rstrip(b"(")
    elif name.startswith(b"\x02"):
        how, name = "attribute", name[1:].rstrip(b"(")
    elif name.endswith(b"("):
        how, name = "call", name[:-1]
    name = name.rpartition(b":")[2]  # `):X`, but nothing of `label:`
    return how, "" if b"$" in name or b"\x01" in name else name.decode("utf-8", "replace")


def has_statements(source: bytes) -> bool:
    """Whether a file may hold what `Marks` looks for, closures aside."""
    return any(word in source and statement.search(source) for word, statement in _STATEMENTS)


class Marks:
    """The statements in a stretch of code that the names do not tell: what it includes, what its calls declare, and
    where its closures are."""

    def __init__(self, source: bytes, start: int, end: int, statements: bool, closures: bool):
        self.includes: list[tuple[int, str]] = []  # offset, path
        self.constants: list[str] = []
        self.classes: list[str] = []  # names as in code: full ones start with a backslash
        self.closures: list[tuple[int, int]] = []
        opened, depth = -1, 0
        closures = closures and _CLOSURE.search(source, start, end) is not None
        if not (closures or statements):
            return
        for mark in _MARKS[closures].finditer(source, start, end):
            kind = mark.lastgroup
            if kind in ("include", "require"):
                if path := _path(source, mark.end()):
                    self.includes.append((mark.start(), path))
            elif kind == "define":
                if matched := _DEFINE.match(source, mark.end()):
                    self.constants.append(_unquoted(matched[1]))
            elif kind == "class_alias":
                if matched := _CLASS_ALIAS.match(source, mark.end()):
                    self.classes.append(f"\\{_unquoted(matched[1])}" if matched[1] else _decoded(matched[2]))
            elif kind == "closure" and opened < 0:
                opened, depth = mark.start(), 0
            elif kind in ("open", "close") and opened >= 0:
                depth += 1 if kind == "open" else -1
                if depth <= 0:
                    self.closures.append((opened, mark.end()))
                    opened = -1

    def is_in_closure(self, offset: int) -> bool:
        i = bisect_right(self.closures, (offset, offset))
        return i > 0 and offset < self.closures[i - 1][1]


def _unquoted(name: bytes) -> str:
    return _decoded(name).replace("\\\\", "\\").lstrip("\\")


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _path(source: bytes, at: int) -> str | None:
    """The path that starts at an offset, after `__DIR__` if it is seen from the file's folder; None if computed."""
    path = ""
    for _ in range(_MOST_PIECES):
        piece = _PIECE.match(source, at)
        if piece is None:
            return None
        single, double, separator, opened, base, closed, more = piece.groups()
        if base:
            # `dirname` of a file is its folder; its second argument says how many times.
            levels = sum(int(part.strip(b" ,\t\r\n") or b"1") for part in closed.split(b")")[:-1])
            up = levels - (base.upper() == b"__FILE__")
            if path or up < 0 or opened.lower().count(b"dirname") != closed.count(b")"):
                return None
            path = "__DIR__" + "/.." * up
        else:
            path += "/" if separator else _decoded(single or double or b"")
        at = piece.end()
        if len(path) > _LONGEST_PATH:
            return None
        if not more:
            return path if path.strip("/") and "\0" not in path else None
    return None
