"""Texts in manifests that are data, and where they stand: JSON, TOML, YAML, XML, INI, header fields, RPM.

Each reader takes the manifest and the places of the texts in it, and gives `Value`s in the order of the file, whose `rank` is
that of the place. JSON, TOML, INI and header fields are read token by token or line by line, which says where a value is and
forgives what is broken elsewhere; XML by expat, of YAML only the top-level entry in question. All linear in the text.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from xml.parsers import expat

import yaml

from repo2ctx._python_source import line_ends

Place = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A text of a manifest, and the edits (start, end, what to put there) that empty it; without any it cannot be."""

    text: str
    edits: tuple[tuple[int, int, str], ...]
    rank: int = 0


# JSON and TOML ---------------------------------------------------------------------------------------------

_JSON = re.compile(
    r'"(?:[^"\\]++|\\(?:.|\Z))*+(?:"|\Z)|//[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)|[{}\[\]:,]', re.DOTALL
)


def json_values(text: str, names: Sequence[str]) -> Iterator[Value]:
    """Members of the outermost object; comments are passed over."""
    depth, key, colon = 0, "", False
    for match in _JSON.finditer(text):
        token = match[0]
        if token[0] == "/":
            continue
        elif token[0] == ":":
            colon = True
            continue
        elif token[0] == '"' and depth == 1 and not colon:
            key = _from_json(token)
            continue
        elif token[0] == '"' and depth == 1 and key in names:
            yield Value(_from_json(token), ((*match.span(), '""' + line_ends(token)),), names.index(key))
        depth += (token in ("{", "[")) - (token in ("}", "]"))
        key, colon = "", False


def _from_json(token: str) -> str:
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        return ""


_TOML = re.compile(
    r'(?P<text>"""(?:[^"\\]++|\\(?:.|\Z)|"(?!""))*+(?:"{3,5}|\Z)' + r"|'''(?:[^']++|'(?!''))*+(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\r\n]++|\\[^\r\n])*+"?'
    + r"|'[^'\r\n]*+'?)|(?P<comment>\#[^\r\n]*+)|(?P<bare>[\w-]++)|(?P<mark>[][{}=,\n])",
    re.DOTALL,
)


def toml_values(text: str, places: Sequence[Place]) -> Iterator[Value]:
    """Strings at paths of keys, in tables, dotted keys and inline tables."""
    table: Place = ()
    key: list[str] = []
    open_: list[Place | None] = []  # inline tables by their path, arrays as None
    header = in_value = False
    for match in _TOML.finditer(text):
        token, kind = match[0], match.lastgroup
        if kind == "bare":
            if not in_value:
                key.append(token)
        elif kind == "text":
            prefix = open_[-1] if open_ else table
            if not in_value:
                key.append(_from_toml(token))
            elif prefix is not None and (place := (*prefix, *key)) in places:
                quote = token[:3] if token[:3] in ('"""', "'''") else token[0]
                edit = (*match.span(), quote + line_ends(token) + quote)
                yield Value(_from_toml(token), (edit,), places.index(place))
        elif token == "\n" and not open_:
            key, header, in_value = [], False, False
        elif token == "=":
            in_value = True
        elif token == "[" and not in_value:
            header = True
        elif token == "]" and header:
            table, key = (tuple(key) or table), []
        elif token == "[":
            open_.append(None)
        elif token == "{" and in_value:
            inside = open_[-1] if open_ else table
            open_.append(("", "") if inside is None else (*inside[:8], *key[:8]))  # no place is as deep
            key, in_value = [], False
        elif token in ("]", "}") and open_:
            open_.pop()
            in_value = True
        elif token == "," and open_ and open_[-1] is not None:
            key, in_value = [], False


def _from_toml(token: str) -> str:
    try:
        return str(tomllib.loads(f"x = {token}")["x"])
    except (ValueError, RecursionError):
        return ""


# YAML ------------------------------------------------------------------------------------------------------

_NEXT_ENTRY = re.compile(r"^[^\s#]", re.MULTILINE)
_LONGEST_ENTRY = 100_000  # characters; PyYAML is slow
_MOST_ENTRIES = 20
_MOST_BRACKETS = 200  # open ones cost it their square


def yaml_values(text: str, places: Sequence[Place]) -> Iterator[Value]:
    """Strings at paths of keys in block mappings. Only the top-level entry is parsed: templates elsewhere do not matter."""
    tops = "|".join(sorted({re.escape(place[0]) for place in places}))
    for match in islice(re.finditer(rf"^\ufeff?(?:{tops})[ \t]*+:(?=\s)", text, re.MULTILINE), _MOST_ENTRIES):
        start = match.start() + match[0].startswith("\ufeff")
        following = _NEXT_ENTRY.search(text, match.end(), start + _LONGEST_ENTRY)
        end = following.start() if following else len(text)
        brackets = text.count("[", start, end) + text.count("{", start, end)
        if end - start <= _LONGEST_ENTRY and brackets <= _MOST_BRACKETS:
            for place, node in _yaml_nodes(text[start:end], places):
                yield _yaml_value(text, start, node, places.index(place))


def _yaml_nodes(entry: str, places: Sequence[Place]) -> Iterator[tuple[Place, yaml.ScalarNode]]:
    try:
        root = yaml.compose(entry, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    for place in places:
        node: yaml.Node | None = root
        for name in place:
            members = node.value if isinstance(node, yaml.MappingNode) else []
            node = next((value for key, value in members if key.value == name), None)
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:str":
            yield place, node


def _yaml_value(text: str, offset: int, node: yaml.ScalarNode, rank: int) -> Value:
    start, end = offset + node.start_mark.index, offset + node.end_mark.index
    if text[start : start + 1] in ("&", "!"):  # an alias may need it
        return Value(node.value, (), rank)
    return Value(node.value, ((start, end, '""' + line_ends(text[start:end])),), rank)


# XML -------------------------------------------------------------------------------------------------------

_TAG_REST = re.compile(rb"""(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""")


def xml_values(text: str, places: Sequence[Place]) -> Iterator[Value]:
    """The content of elements by their path, in lower case, whatever the namespace. Entities are never declared or expanded."""
    if "<!ENTITY" in text:  # no project needs entities of its own, and they can explode
        return
    bom = len(text) - len(text.removeprefix("\ufeff"))
    data = text[bom:].encode("utf-8", "replace")
    done = bom, 0  # characters and bytes
    for rank, said, start, end in _xml_contents(data, places):
        first = done[0] + len(data[done[1] : start].decode())
        content = data[start:end].decode()
        done = first + len(content), end
        yield Value(said, ((first, done[0], line_ends(content)),), rank)


def _xml_contents(data: bytes, places: Sequence[Place]) -> list[tuple[int, str, int, int]]:
    """For each element: the rank of its place, its text, and where its content begins and ends, in bytes."""
    deepest = max(map(len, places))
    stack: list[str] = []
    found: list[tuple[int, str, int, int]] = []
    said: list[str] = []
    opened = -1
    parser = expat.ParserCreate("utf-8")

    def start(name: str, _attributes: dict[str, str]) -> None:
        nonlocal opened
        stack.append(name.rpartition(":")[2].lower())
        if len(stack) <= deepest and tuple(stack) in places:
            opened = parser.CurrentByteIndex
            said.clear()

    def end(_name: str) -> None:
        nonlocal opened
        if opened >= 0 and len(stack) <= deepest and tuple(stack) in places:
            tag = _TAG_REST.match(data, opened)
            if tag and parser.CurrentByteIndex > opened:
                found.append((places.index(tuple(stack)), "".join(said), tag.end(), parser.CurrentByteIndex))
            opened = -1
        stack.pop()

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda words: said.append(words) if opened >= 0 else None
    parser.buffer_text = True
    try:
        parser.Parse(data, True)
    except expat.ExpatError:
        return []
    return found


# Fields of a line and what is indented below: setup.cfg, debian/control, cabal, DESCRIPTION, PKG-INFO ---------

_LINES = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++")
_FIELD = re.compile(r"([A-Za-z][\w-]*)[ \t]*([:=])[ \t]*")


def ini_values(text: str, section: str, names: Sequence[str]) -> Iterator[Value]:
    """Fields of one section, or of a file without sections."""
    inside = not section
    for key, start, end in _fields(text):
        if key.startswith("["):
            inside = key == f"[{section}]"
        elif inside and key.replace("-", "_") in names:
            lines = [line for line in text[start:end].splitlines() if not line.lstrip().startswith(("#", ";"))]
            said = "\n".join(line.strip() for line in lines)
            yield Value(said, ((start, end, line_ends(text[start:end])),), names.index(key.replace("-", "_")))


def header_values(text: str, names: Sequence[str], *, synopsis: bool = False, needs: str = "") -> Iterator[Value]:
    """Fields as of mail headers, where ` .` stands for a blank line. `needs`: a field without which the file is something else;
    `synopsis`: the first line is a text by itself."""
    if needs and not re.search(rf"^{needs}:", text, re.MULTILINE | re.IGNORECASE):
        return
    for key, start, end in _fields(text):
        if key not in names:
            continue
        first = _LINES.match(text, start, end)
        cut = first.end() if synopsis and first else start
        for rank, (begin, stop) in enumerate([(start, cut), (cut, end)]):
            raw = text[begin:stop]
            lines = [line.strip() for line in raw.splitlines()]
            said = "\n".join("" if line == "." else line for line in lines)
            empty = "".join(_dotted(line) for line in _LINES.findall(raw))
            yield Value(said, ((begin, stop, empty),), 2 * names.index(key) + rank)


def _dotted(line: str) -> str:
    return (" ." if line[0] in " \t" and line.strip() else "") + line_ends(line)


def _fields(text: str) -> Iterator[tuple[str, int, int]]:
    """Each field's name in lower case, and where its value begins and ends (after the last line end); sections as `[name]`."""
    key, start, end = "", 0, 0
    for line in _LINES.finditer(text.removeprefix("\ufeff")):
        bom = text.startswith("\ufeff")
        content = line[0]
        if content[0] in " \t" and key and not key.startswith("["):
            end = line.end() + bom if content.strip() else end
        elif content[0] in "#;\r\n" or content.startswith("--"):
            continue
        else:
            if key:
                yield key, start, end
            field = _FIELD.match(content)
            key = field[1].lower() if field else content.strip().lower()
            start, end = line.start() + bom + (field.end() if field else 0), line.end() + bom
    if key:
        yield key, start, end


def package_info_values(text: str) -> Iterator[Value]:
    """PKG-INFO and METADATA of a Python distribution: the summary, and the long description as a field or as the body."""
    if not text.removeprefix("\ufeff").startswith("Metadata-Version:"):
        return
    blank = re.search(r"(?:\r\n|\n)(?=\r?\n)|\Z", text)
    body = blank.end() if blank else len(text)
    yield from header_values(text[:body], ("summary", "description"))
    yield Value(text[body:], ((body, len(text), line_ends(text[body:])),), 9)


_SPEC = re.compile(
    r"^(?:Summary[ \t]*:[ \t]*+(?P<summary>[^\r\n]*+)|%description\b(?P<name>[^\r\n]*+)(?P<body>(?:\r?\n(?!%[a-z])[^\r\n]*+)*+))",
    re.MULTILINE | re.IGNORECASE,
)


def rpm_values(text: str) -> Iterator[Value]:
    if not re.search(r"^Name[ \t]*:", text, re.MULTILINE):
        return
    for match in _SPEC.finditer(text):
        group = "summary" if match["summary"] is not None else "body"
        rank = 0 if group == "summary" else 2 if match["name"].strip() else 1
        yield Value(match[group], ((*match.span(group), line_ends(match[group])),), rank)
