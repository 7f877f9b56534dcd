"""Rust: `mod`, `use` and paths in code, resolved through the module trees of the repository's crates.

`mod x;` needs the child's file. A path that starts at `crate`, `self`, `super`, a name in scope or a crate of the
repository (as Cargo.toml names it) needs the file that declares what it ends in, found through re-exports where
they can be followed, and otherwise the file of the last module that is known. `include!` and its kin need their file.
Soft: whatever a file needs of the files above it in its module tree, since `mod` already leads from there to here; and
what stands under `#[cfg(test)]`, which is of the kind `test`. What `quote!` holds is no code of the file.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate

import tree_sitter_rust
from tree_sitter import Node

from repo2ctx.languages import RepoTree, _rust_outline, join, text, walk
from repo2ctx.languages._places import Places
from repo2ctx.languages._rust_crates import Crates
from repo2ctx.records import Edge, EntryPoint, Found, Import, Strength, Syntax, Unresolved

GRAMMARS = {"Rust": tree_sitter_rust.language}
CONFIG_FILES = ("Cargo.toml",)
OUTLINE = _rust_outline.SHAPE

# Each begins with a literal, which `re` finds fast; what may not come before it is asked for behind it.
_MOD = re.compile(rb"mod(?<!\wmod)\s+(?:r#)?(\w+)\s*([;{])")
_USE = re.compile(rb"use(?<!\wuse)\s((?:[\w:,{}*\s#]++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/){0,20000}+);")
_EXTERN = re.compile(rb"extern\s+crate\s+(?:r#)?(\w+)(?:\s+as\s+(\w+))?\s*;")
_QUOTE = re.compile(rb"quote(?:_spanned)?!\s*[({\[]")
_NOT_LINE_END = re.compile(rb"[^\n]")
_IF_TEST = re.compile(rb"#\[\s*cfg\s*\(\s*(?:all\s*\(\s*)?test\b")
_DERIVE = re.compile(rb"#\[proc_macro_derive\(\s*(\w+)")
_INCLUDE = re.compile(
    rb"include(?:_str|_bytes)?!\s*[(\[{]\s*"
    rb'(?:(concat!\s*\(\s*env!\s*\(\s*"CARGO_MANIFEST_DIR"\s*\)\s*,\s*"/?)|")([^"\n]+)"'
)
_TAIL = re.compile(rb"::(?:r#)?\w++(?:::(?:r#)?\w++)*+")
_NAMES = bytes(byte if byte > 127 or chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(256))
_OUTSIDE = frozenset({b"std", b"core", b"alloc"})
_TOKEN = re.compile(r"\w+|::|[{},*]")
_SIMPLE = re.compile(r"[\w:]+")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ATTRIBUTES = re.compile(rb'(?:\s|#\[(?:[^\]"]|"[^"]*")*+\]|//[^\n]*\n|pub(?:\s*\([^)]*\))?)*+\Z')
_PATH_ATTRIBUTE = re.compile(rb'\bpath\s*=\s*"([^"\n]*)"')
_GENERATED_ITEM = re.compile(
    r"\bpub(?:\s*\([^)]*\))?\s+(?:unsafe\s+|async\s+|const\s+)*(?:fn|struct|enum|union|trait|type|const|static)\s+(\w+)"
)
_ITEMS = frozenset(
    f"{kind}_item" for kind in ("function", "struct", "enum", "union", "trait", "type", "const", "static")
) | {"macro_definition", "macro_invocation", "function_signature_item"}
_BODIES = frozenset({"mod_item", "declaration_list", "foreign_mod_item", "expression_statement"})
_DEEPEST = 64  # levels of a use tree
_LONGEST = 500  # characters of a module's path within its file: keeps the cost of absurd nesting linear


def scan(root: Node, path: str) -> Syntax:
    """Modules, uses, paths and items. The text is searched, so that what macros wrap is found too; the tree says
    what is code, and where inline modules end."""
    source = _Source(root)
    imports = [*source.modules(), *source.uses(), *source.extern_crates(), *source.includes(), *source.paths()]
    defines: dict[str, None] = {}
    exports = 0
    for node in walk(root, _ITEMS, _BODIES):
        inline = source.inline_at(node.start_byte - root.start_byte)
        if node.type == "macro_invocation":
            names = _GENERATED_ITEM.findall(text(node))
        else:
            names = [text(node.child_by_field_name("name")).removeprefix("r#")]
        first = node.child(0)
        exports += first is not None and first.type == "visibility_modifier" and first.child_count == 1
        mark = "!" if node.type == "macro_definition" and source.is_exported(node) else ""
        defines.update(dict.fromkeys(f"{inline}::{name}{mark}" for name in names if name))
    defines.update((f"::{_decode(name)}", None) for name in _DERIVE.findall(source.text))
    return Syntax(imports=tuple(imports), defines=tuple(defines), tags=tuple(source.inline_modules), exports=exports)


class _Source:
    """The text of a file, and what can be found in it."""

    def __init__(self, root: Node):
        self.root = root
        self.places = Places(root)
        self.text = root.text or b""
        self._blank_quoted()
        self.line_starts = [0, *accumulate(map(len, self.text.splitlines(keepends=True)))]
        self.use_spans: list[tuple[int, int]] = []
        self.mods = [m for m in _MOD.finditer(self.text) if self.is_code(m.start())]
        self.inline_modules: dict[str, None] = {}
        self.test_modules: set[str] = set()  # inline ones that are there in tests only, and those in them
        self._set_inline()

    def _blank_quoted(self) -> None:
        """What `quote!` holds is the code of whoever calls the macro, not of this file."""
        kept, done = [], 0
        for match in _QUOTE.finditer(self.text) if b"quote" in self.text else ():
            bracket = self.at(match.end() - 1) if match.start() >= done else None
            if bracket is not None and bracket.parent is not None:
                kept.append(self.text[done : match.end()])
                done = bracket.parent.end_byte - self.root.start_byte
                kept.append(_NOT_LINE_END.sub(b" ", self.text[match.end() : done]))
        self.text = b"".join((*kept, self.text[done:]))

    def is_exported(self, macro: Node) -> bool:
        start = macro.start_byte - self.root.start_byte
        return b"macro_export" in self._attributes(start)

    def _strength(self, inline: str) -> Strength:
        return "soft" if inline in self.test_modules else "hard"

    def is_code(self, offset: int) -> bool:
        node = self.at(offset)
        return node is None or not ("comment" in node.type or "string" in node.type)

    def at(self, offset: int) -> Node | None:
        return self.places.node(self.root.start_byte + offset, self.root.start_byte + offset + 1)

    def line(self, offset: int) -> int:
        return self.root.start_point[0] + bisect_right(self.line_starts, offset)

    def _set_inline(self) -> None:
        """Note where inline modules begin and end, and the path of the one that each stretch of text is in."""
        self._starts, self._inline = [0], [""]
        open_: list[tuple[int, str]] = []
        for match in self.mods:
            if match[2] == b"{":
                brace = self.at(match.end() - 1)
                body = brace.parent if brace is not None else None
                if body is not None:
                    self._close(open_, match.start())
                    outer, name = self._inline[-1], _decode(match[1])
                    inner = _join(outer, name) if len(outer) < _LONGEST else outer
                    open_.append((body.end_byte - self.root.start_byte, inner))
                    self.inline_modules[inner] = None
                    if outer in self.test_modules or _IF_TEST.search(self._attributes(match.start())):
                        self.test_modules.add(inner)
                    self._mark(match.end(), open_[-1][1])
        self._close(open_, len(self.text) + 1)

    def _close(self, open_: list[tuple[int, str]], offset: int) -> None:
        while open_ and open_[-1][0] <= offset:
            end, _ = open_.pop()
            self._mark(end, open_[-1][1] if open_ else "")

    def _mark(self, offset: int, inline: str) -> None:
        self._starts.append(offset)
        self._inline.append(inline)

    def inline_at(self, offset: int) -> str:
        return self._inline[bisect_right(self._starts, offset) - 1] if self.inline_modules else ""

    def modules(self) -> Iterator[Import]:
        for match in self.mods:
            if match[2] == b";":
                attributes = self._attributes(match.start())
                paths = tuple(_decode(value) for value in _PATH_ATTRIBUTE.findall(attributes))
                inline = self.inline_at(match.start())
                strength = "soft" if _IF_TEST.search(attributes) else self._strength(inline)
                yield Import(_join(inline, _decode(match[1])), self.line(match.start()), "mod", strength, paths)

    def _attributes(self, offset: int) -> bytes:
        """The attributes right before an item."""
        before = self.text[max(0, offset - 400) : offset]
        if b"#[" not in before:
            return b""
        starts = [0, *(m.end() for m in re.finditer(rb"[;{}\n]", before))]
        return next((m[0] for m in (_ATTRIBUTES.match(before, start) for start in starts) if m), b"")

    def uses(self) -> Iterator[Import]:
        for match in _USE.finditer(self.text):
            if self.is_code(match.start()):
                self.use_spans.append(match.span())
                inline, line = self.inline_at(match.start()), self.line(match.start())
                for path, binding in _use_tree(_decode(match[1])):
                    yield Import(path, line, "use", self._strength(inline), (inline, binding))

    def extern_crates(self) -> Iterator[Import]:
        for match in _EXTERN.finditer(self.text):
            if match[1] != b"self" and self.is_code(match.start()):
                name, alias = _decode(match[1]), _decode(match[2] or match[1])
                inline = self.inline_at(match.start())
                yield Import(f"::{name}", self.line(match.start()), "use", self._strength(inline), (inline, alias))

    def includes(self) -> Iterator[Import]:
        for match in _INCLUDE.finditer(self.text):
            if self.is_code(match.start()):
                start = ("manifest",) if match[1] else ()
                yield Import(_decode(match[2]), self.line(match.start()), "include", names=start)

    def paths(self) -> Iterator[Import]:
        """Paths in code, each once for each inline module; those of `use` are found by `uses`, which comes first."""
        seen: set[tuple[str, bytes]] = set()
        spans = iter([*self.use_spans, (len(self.text) + 1, 0)])
        start, end = next(spans)
        names = self.text.translate(_NAMES)  # a path's first name is what stands between a space and its first "::"
        for match in _TAIL.finditer(self.text):
            at = names.rfind(b" ", 0, match.start()) + 1
            while start < end <= at:
                start, end = next(spans)
            first = self.text[at : match.start()]
            if at >= start or not (first[:1].islower() or first[:1] == b"_") or first in _OUTSIDE:
                continue
            key = (self.inline_at(at), self.text[at : match.end()])
            if key not in seen and self.text[at - 2 : at] != b"::" and self.is_code(at):
                seen.add(key)
                name = _decode(key[1]).replace("r#", "")
                yield Import(name, self.line(at), "use", self._strength(key[0]), (key[0],))


def _decode(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _join(inline: str, name: str) -> str:
    return f"{inline}::{name}" if inline else name


def _use_tree(source: str) -> Iterator[tuple[str, str]]:
    """Each leaf of a use tree: its path, and the name that it gets ("*" if it is a glob, "_" if none)."""
    if _SIMPLE.fullmatch(source):
        yield _leaf(source.split("::"), None)
        return
    outer: list[list[str]] = []
    path: list[str] = []
    alias: str | None = None
    fresh = False
    for token in [*_TOKEN.findall(_COMMENT.sub(" ", source).replace("r#", "")), ","]:
        if token == "{":
            outer.append(list(path))
            fresh = False
            if len(outer) > _DEEPEST:
                return
        elif token in (",", "}"):
            if fresh:
                yield _leaf(path, alias)
            fresh, alias = False, None
            if token == "}" and outer:
                outer.pop()
            path = list(outer[-1]) if outer else []
        elif token == "::":
            path += [""] * (not path)
        elif token == "as":
            alias = ""
        elif alias == "":
            alias = token
        else:
            path.append(token)
            fresh = True


def _leaf(path: list[str], alias: str | None) -> tuple[str, str]:
    if path[-1] == "*":
        return "::".join(path[:-1]), "*"
    if path[-1] == "self" and len(path) > 1:
        path = path[:-1]
    return "::".join(path), alias or path[-1]


def resolve(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Found]:
    crates = Crates(tree, syntax)
    yield from crates.mod_edges
    for path in sorted(syntax):
        outside: set[tuple[str, bool, str]] = set()  # where paths start that leave the repository: most do
        for imported in syntax[path].imports:
            if imported.kind == "include":
                yield from _included(crates, path, imported)
            elif imported.kind == "use":
                segments = imported.name.split("::")
                start = (imported.names[0], len(imported.names) > 1, segments[0])
                if start in outside:
                    continue
                found = _used(crates, path, imported, segments)
                if found is None and segments[0]:
                    outside.add(start)
                yield from found or ()
    for target in crates.entry_points:
        yield EntryPoint(target, "Cargo.toml")


def _included(crates: Crates, path: str, imported: Import) -> Iterator[Edge | Unresolved]:
    base = crates.manifest_of(path).folder if "manifest" in imported.names else posixpath.dirname(path)
    target = join(base, imported.name)
    if target in crates.tree.paths and target is not None:
        if target != path:
            yield Edge(path, target, "include", "hard")
    elif not imported.name.startswith("/"):
        yield Unresolved(path, imported.name, imported.line)


def _used(crates: Crates, path: str, imported: Import, segments: list[str]) -> list[Edge | Unresolved] | None:
    """What a path leads to; None if it leads out of the repository."""
    declared = len(imported.names) > 1
    inside = False
    found: dict[str, Strength] = {}
    for module in crates.modules_of(path, imported.names[0]):
        target = crates.find(module, segments, declared)
        inside |= target is not None
        if isinstance(target, str):
            found[target] = "soft" if module.is_below(target) else "hard"
    if inside and not found and declared:
        return [Unresolved(path, imported.name, imported.line)]
    if not inside:
        return None
    if imported.strength == "soft":
        return [Edge(path, file, "test", "soft") for file in found if file != path]
    return [Edge(path, file, "use", found[file]) for file in found if file != path]
