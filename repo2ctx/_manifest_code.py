"""Texts in manifests that are programs, and where they stand: setup.py, Gradle, gemspecs, mix.exs, Nix, CMake, Dockerfiles.

Nothing is run. Python is read from its syntax tree, the others by the literals that follow a name, with comments and other
strings passed over. Linear in the text: searches that may fail late are tried a limited number of times.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from repo2ctx._manifest_values import Value
from repo2ctx._python_source import PythonSource, emptied_literal, line_ends

_MOST = 100  # names tried in one file
_LONGEST = 300_000  # characters of a setup.py; the tree takes seconds for what is longer
_BOUND = 10  # of the values that a name is given, the last
_DEEPEST = 20  # steps from the argument of setup() to its literal

# setup.py --------------------------------------------------------------------------------------------------


def python_values(text: str, names: Sequence[str]) -> Iterator[Value] | None:
    """Literal arguments of setup(), also by way of names, dictionaries and methods of strings; None if Python cannot read it."""
    source = PythonSource.parse(text) if len(text) <= _LONGEST else None
    return None if source is None else _setup_values(source, names)


def _setup_values(source: PythonSource, names: Sequence[str]) -> Iterator[Value]:
    bound: dict[str, list[ast.expr]] = {}
    keyed: dict[str, list[tuple[str, ast.expr]]] = {}  # variable -> entries set one by one
    calls: list[ast.Call] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    bound.setdefault(target.id, []).append(node.value)
                elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                    key = getattr(target.slice, "value", None)
                    keyed.setdefault(target.value.id, []).append((str(key), node.value))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            bound.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "setup":
            calls.append(node)
    first = source.tree.body[0] if source.tree.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        bound["__doc__"] = [first.value]

    seen: set[int] = set()
    for name, value in _entries(calls, bound, keyed):
        for literal in _literals(value, bound) if name in names else ():
            if id(literal) not in seen:
                seen.add(id(literal))
                start, end = source.span(literal)
                edit = (start, end, emptied_literal(source.text[start:end]))
                yield Value(inspect.cleandoc(str(literal.value)), (edit,), names.index(name))


def _entries(
    calls: list[ast.Call], bound: dict[str, list[ast.expr]], keyed: dict[str, list[tuple[str, ast.expr]]]
) -> Iterator[tuple[str, ast.expr]]:
    """The arguments of setup() by name, those in `**variable` or `**{…}` or `**dict(…)` as well."""
    holders: list[ast.expr] = [*calls]
    seen: set[int | str] = set()
    for holder in holders:  # grows while it is read
        mark = holder.id if isinstance(holder, ast.Name) else id(holder)
        if mark in seen:
            continue
        seen.add(mark)
        if isinstance(holder, ast.Dict):
            for key, value in zip(holder.keys, holder.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
                elif key is None:
                    holders.append(value)
        elif isinstance(holder, ast.Name):
            holders += bound.get(holder.id, ())
            yield from keyed.get(holder.id, ())
        elif isinstance(holder, ast.Call):
            for keyword in holder.keywords:
                if keyword.arg:
                    yield keyword.arg, keyword.value
                else:
                    holders.append(keyword.value)


def _literals(value: ast.expr, bound: dict[str, list[ast.expr]]) -> Iterator[ast.Constant]:
    """The string literals that an expression is made of, as far as it says so itself."""
    pending = [(value, _DEEPEST)]
    seen: set[int] = set()
    while pending:
        node, steps = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node
        elif steps == 0:
            continue
        elif isinstance(node, ast.Name):
            pending += [(v, steps - 1) for v in bound.get(node.id, ())[-_BOUND:]]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
            pending += [(node.right, steps - 1)] * isinstance(node.op, ast.Add) + [(node.left, steps - 1)]
        elif isinstance(node, ast.BoolOp):
            pending += [(v, steps - 1) for v in reversed(node.values)]
        elif isinstance(node, ast.Subscript):
            pending.append((node.value, steps - 1))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            pending += [(a, steps - 1) for a in node.args if node.func.attr in ("join", "dedent", "cleandoc")]
            pending.append((node.func.value, steps - 1))
        elif isinstance(node, ast.Call):
            pending += [(a, steps - 1) for a in node.args if getattr(node.func, "id", "") in ("dedent", "cleandoc")]
        elif isinstance(node, ast.List | ast.Tuple):
            pending += [(v, steps - 1) for v in reversed(node.elts)]


# Literals of other languages -------------------------------------------------------------------------------

_TEXT = r'"""(?:[^"\\]++|\\(?:.|\Z)|"(?!""))*+"{3,5}' + r"|'''(?:[^'\\]++|\\(?:.|\Z)|'(?!''))*+'{3,5}"
_LINE = r'"(?:[^"\\\r\n]++|\\(?:\r\n|.|\Z))*+"' + r"|'(?:[^'\\\r\n]++|\\(?:\r\n|.|\Z))*+'"
_STRING = re.compile(rf"{_TEXT}|{_LINE}", re.DOTALL)
_RUBY_STRING = re.compile(r'"(?:[^"\\]++|\\(?:.|\Z))*+"' + r"|'(?:[^'\\]++|\\(?:.|\Z))*+'", re.DOTALL)
_PLUS = re.compile(r"\s*+\+\s*+")
_RUBY_JOINER = re.compile(r"[ \t]*+(?:\\\r?\n\s*+|\+\s*+|<<[ \t]++)?(?=[\"'%])")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|\r?\n[ \t]*|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "s": " "}
_HEREDOC = re.compile(r"<<([~-]?)(['\"]?)([A-Za-z_]\w{0,99})\2")
_PERCENT = re.compile(r"%[qQ]?([{(\[<|!/])")
_CLOSING = {"{": "}", "(": ")", "[": "]", "<": ">"}

Piece = tuple[int, int, str, str]  # start, end, the text, what to put there


def _unescaped(body: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2] or "", m[2] or ""), body)


def _string(text: str, at: int, pattern: re.Pattern[str] = _STRING) -> Piece | None:
    match = pattern.match(text, at)
    if not match:
        return None
    quote = match[0][:3] if match[0][:3] in ('"""', "'''") and len(match[0]) >= 6 else match[0][0]
    body = match[0][len(quote) : -len(quote)]
    ends = re.findall(r"\\?(?:\r\n|\n)", body) if len(quote) == 1 else line_ends(body)
    return match.start(), match.end(), _unescaped(body), quote + "".join(ends) + quote


def _ruby_string(text: str, at: int) -> Piece | None:
    if text[at : at + 1] != "%":
        return _string(text, at, _RUBY_STRING)
    opening = _PERCENT.match(text, at)
    if not opening:
        return None
    opens, closes, depth = opening[1], _CLOSING.get(opening[1], opening[1]), 1
    for mark in re.compile(rf"\\.|[{re.escape(opens + closes)}]", re.DOTALL).finditer(text, opening.end()):
        depth += -1 if mark[0] == closes else mark[0] == opens
        if depth == 0:
            body = text[opening.end() : mark.start()]
            return at, mark.end(), _unescaped(body), opening[0] + line_ends(body) + closes
    return None


def _heredoc(text: str, at: int) -> Piece | None:
    opening = _HEREDOC.match(text, at)
    line_end = text.find("\n", at)
    if not opening or line_end < 0:
        return None
    indent = r"[ \t]*+" if opening[1] else ""
    closing = re.compile(rf"^{indent}{opening[3]}\r?$", re.MULTILINE).search(text, line_end + 1)
    if not closing:
        return None
    body = text[line_end + 1 : closing.start()]
    return line_end + 1, closing.start(), textwrap.dedent(body), line_ends(body)


def _value(pieces: Sequence[Piece], rank: int) -> Value:
    return Value("".join(p[2] for p in pieces), tuple((p[0], p[1], p[3]) for p in pieces), rank)


def _joined(
    text: str, at: int, read: Callable[[str, int], Piece | None] = _string, joiner: re.Pattern[str] = _PLUS
) -> list[Piece]:
    """The strings from `at`, put together by plus signs, or whatever else joins them."""
    pieces: list[Piece] = []
    while piece := read(text, at):
        pieces.append(piece)
        joint = joiner.match(text, piece[1])
        if not joint:
            break
        at = joint.end()
    return pieces


# Gradle and Nix --------------------------------------------------------------------------------------------


def _gradle(key: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<key>(?<![\w.$\"'])(?:{key})(?:\.set)?[ \t]*+(?:=\s*+|\(\s*+|(?=[\"'])))"
        rf"|//[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)|{_TEXT}|{_LINE}|(?P<brace>[{{}}])",
        re.DOTALL,
    )


_GRADLE = _gradle(r"(?P<owner>(?:project|rootProject|pom|this)\.)?description")
_GRADLE_LICENSE = _gradle(r"(?P<owner>(?!))?name")
_GRADLE_BLOCKS = {
    "pom",
    "pom.project",
    "project",
    "allprojects",
    "subprojects",
    "gradlePlugin",
    "pluginBundle",
    "jreleaser",
}
_NIX_TEXT = r"''(?:[^']++|'(?!')|''[$'\\])*+''"
_NIX = re.compile(
    rf"(?P<key>(?<![\w.$\"'-])(?P<owner>meta\.)?(?:description|longDescription)\s*+=\s*+)"
    rf"|\#[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)|{_NIX_TEXT}|{_LINE}|(?P<brace>[{{}}])",
    re.DOTALL,
)
_NIX_STRING = re.compile(rf"{_NIX_TEXT}|{_LINE}", re.DOTALL)
_GRADLE_HEAD = re.compile(r"\W*([A-Za-z_][\w.]*)")
_NIX_HEAD = re.compile(r".*\b([A-Za-z_][\w.-]*)\s*=", re.DOTALL)
_LONGEST_HEAD = 200  # characters before a brace that may say what the block is


def gradle_values(text: str) -> Iterator[Value]:
    """The project's own: at the top, or in a block such as `pom { … }`, not that of a task."""
    return _block_values(text, _GRADLE, _GRADLE_HEAD, 0, _GRADLE_BLOCKS)


def gradle_license_values(text: str) -> Iterator[Value]:
    """The names in blocks `license { … }`."""
    return _block_values(text, _GRADLE_LICENSE, _GRADLE_HEAD, -1, {"license"})


def nix_values(text: str) -> Iterator[Value]:
    """A flake's own, and those of its packages in `meta`."""
    return _block_values(text, _NIX, _NIX_HEAD, 1, {"meta"})


def _block_values(
    text: str, pattern: re.Pattern[str], naming: re.Pattern[str], top: int, blocks: set[str]
) -> Iterator[Value]:
    heads: list[str] = []
    good = 0  # open blocks whose head is in `blocks`
    tried = 0
    for match in pattern.finditer(text):
        if match["brace"] == "{":
            span = max(0, match.start() - _LONGEST_HEAD), match.start()
            head = len(heads) < _MOST and naming.match(
                text, max(text.rfind(mark, *span) + 1 for mark in "\n{}") or span[0], match.start()
            )
            heads.append(head[1] if head else "")
            good += heads[-1] in blocks
        elif match["brace"] and heads:
            good -= heads.pop() in blocks
        elif match["key"] and (len(heads) <= top or good or match["owner"]) and tried < _MOST:
            tried += 1
            nix = _string(text, match.end(), _NIX_STRING) if pattern is _NIX else None
            pieces = [_nix(nix)] if nix else _joined(text, match.end())
            if pieces:
                yield _value(pieces, min(len(heads), 1))


def _nix(piece: Piece) -> Piece:
    start, end, said, empty = piece
    return (start, end, said.strip("'"), "''" + line_ends(empty) + "''") if empty.startswith("'") else piece


# Ruby, Elixir, CMake, Dockerfiles --------------------------------------------------------------------------

_GEM = re.compile(
    r"^[ \t]*+(?:\w+\.(summary|description)[ \t]*+\+?=[ \t]*+)(?:\w+\.\w+[ \t]*+=[ \t]*+)*(?:\\?\r?\n[ \t]*+)?",
    re.MULTILINE,
)
_GEM_LICENSE = re.compile(
    r"^[ \t]*+\w+\.(?:license[ \t]*+=[ \t]*+|licenses[ \t]*+=[ \t]*+\[\s*+(?=[\"'][^\"'\r\n]*+[\"']\s*+\]))",
    re.MULTILINE,
)
_MIX = re.compile(
    r"^(?:[^#\r\n\"]*?\bdescription:|[ \t]*+@(?:short)?(?:doc|description)\b|[ \t]*+defp?[ \t]++description(?:\(\))?,?\s++do:?)"
    r"\s*+(?:~[sS](?=\"))?",
    re.MULTILINE,
)
_CMAKE = re.compile(r"^[ \t]*+project[ \t]*+\([^()\"]*?\bDESCRIPTION\s++(?=\")", re.MULTILINE | re.IGNORECASE)
_CPACK = re.compile(r"^[ \t]*+set[ \t]*+\([ \t]*+\w*DESCRIPTION(?:_SUMMARY)?\s++(?=\")", re.MULTILINE | re.IGNORECASE)
_LABEL = re.compile(r"^[ \t]*+LABEL\b(?:[^\\\r\n]++|\\(?:\r?\n|.|\Z))*+", re.MULTILINE | re.IGNORECASE)
_LABELLED = re.compile(
    r"(?<![\w.\-])[\"']?(?:[\w-]{1,40}\.){0,6}(?:description|summary)[\"']?=(?=[\"'])", re.IGNORECASE
)


def gem_values(text: str) -> Iterator[Value]:
    """Of a gemspec or podspec: the summary and the description, whatever the literal."""
    for match in islice(_GEM.finditer(text), _MOST):
        rank = int(match[1] == "description")
        heredoc = _heredoc(text, match.end())
        if heredoc:
            yield _value([heredoc], rank)
            continue
        if pieces := _joined(text, match.end(), _ruby_string, _RUBY_JOINER):
            yield _value(pieces, rank)


def gem_license_values(text: str) -> Iterator[Value]:
    """The licence of a gemspec or podspec, where it names just one."""
    return _after(text, _GEM_LICENSE)


def mix_values(text: str) -> Iterator[Value]:
    return _after(text, _MIX)


def cmake_values(text: str) -> Iterator[Value]:
    for pattern in (_CMAKE, _CPACK):
        yield from _after(text, pattern)


def docker_values(text: str) -> Iterator[Value]:
    for label in islice(_LABEL.finditer(text), _MOST):
        yield from _after(text, _LABELLED, *label.span())


def _after(text: str, pattern: re.Pattern[str], start: int = 0, end: int | None = None) -> Iterator[Value]:
    """The string after each match."""
    for match in islice(pattern.finditer(text, start, len(text) if end is None else end), _MOST):
        if piece := _string(text, match.end(), _RUBY_STRING if pattern is _CMAKE else _STRING):
            yield _value([(piece[0], piece[1], textwrap.dedent(piece[2]), piece[3])], 0)
