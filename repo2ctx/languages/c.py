"""C and C++: `#include`, resolved as a compiler with the repository's own include directories would.

A quoted name is looked for beside the including file first; then both kinds go through the directories that
compile_commands.json names for the file, those of build files in the folders above it (nearest first), and the
usual places (the folders above and their `include` and `src`). Last comes a file whose path ends in the name: in a
known include directory, or the only one anywhere. A name of the system's own (`<string.h>`) is taken from directories
that a build file names, and from nowhere else (`"string.h"`: or from beside). An include under `#if` counts, and
so does one of a macro that the same file defines as a name. A header that a build makes means its template (`config.h.in`).
C++ modules: `import x;` needs the file with `export module x;`, and so does its implementation unit (`module x;`).
Soft: `implements`, from a header to the one source of the same stem that includes it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cached_property

import tree_sitter_c
import tree_sitter_cpp
from tree_sitter import Node

from repo2ctx.languages import RepoTree, _c_outline, join, walk
from repo2ctx.languages._c_search import (
    BUILD_FILES,
    IncludeDirectories,
    is_in_system_folder,
    is_system_header,
    near_ancestors,
)
from repo2ctx.languages._places import Places
from repo2ctx.records import Edge, Found, Import, Syntax, Unresolved

GRAMMARS = {"C": tree_sitter_c.language, "C++": tree_sitter_cpp.language}
CONFIG_FILES = BUILD_FILES
OUTLINE = _c_outline.SHAPE
_INCLUDE = re.compile(
    rb'#(?:[ \t]|\\\r?\n)*(include_next|include|import)(?:[ \t]|\\\r?\n)*(?:"([^"\r\n]+)"|<([^>\r\n]+)>|(\w++))'
)
_DEFINE = re.compile(rb'#[ \t]*define[ \t]+(\w+)[ \t]+("[^"\r\n]+"|<[^>\r\n]+>)')
_MODULE = re.compile(
    rb'^[ \t]*(export[ \t]+)?(import|module)\b[ \t]*([\w.]*(?:[ \t]*:[ \t]*[\w.]+)?|"[^"\r\n]+"|<[^>\r\n]+>)[ \t]*;',
    re.MULTILINE,
)
_NO_CODE = frozenset({"comment", "string_literal", "string_content", "raw_string_literal", "raw_string_content"})
_MOST_DEFINITIONS = 16  # of one macro
_FARTHEST = 1000  # bytes of a line before a directive; more is no source that anyone wrote
_INLINE_COMMENT = re.compile(rb"/\*.*?\*/")

_MAIN = re.compile(rb"^(?:int|void)\s+main\s*\(", re.MULTILINE)
_DECLARATIONS = frozenset(
    {"declaration", "function_definition", "type_definition", "class_specifier", "struct_specifier", "enum_specifier"}
)
_AROUND_DECLARATIONS = frozenset(
    {"preproc_ifdef", "preproc_if", "preproc_else", "linkage_specification", "declaration_list", "namespace_definition"}
)
_HEADER_ENDS = (".h", ".hh", ".hpp", ".hxx", ".h++", ".H")
_SOURCE_ENDS = (".c", ".cc", ".cpp", ".cxx", ".c++", ".C", ".m", ".mm", ".cu")
_NO_SOURCES = frozenset({"test", "tests", "testing", "example", "examples", "demo", "demos", "bench", "benchmarks"})


def scan(root: Node, path: str) -> Syntax:
    """Include lines and module declarations, found in the text: the grammar loses them among macros that it cannot
    parse. The tree says which of them are not code."""
    source = root.text or b""
    imports: list[Import] = []
    tags: list[str] = []
    package = ""
    places = Places(root)
    names: dict[str, list[str]] | None = None
    lines = _Lines(source, root.start_point[0] + 1)
    for found in _INCLUDE.finditer(source):
        if _is_code(places, source, found.start()):
            how, quoted, bracketed, macro = (_decode(group) for group in found.groups())
            if macro and names is None:
                names = _named_by_macros(source)
            at = lines.at(found.start())
            for name in (names or {}).get(macro, ()) if macro else [quoted or f"<{bracketed}>"]:
                imports.append(Import(name, at, "include", names=("next",) * (how == "include_next")))
    lines = _Lines(source, root.start_point[0] + 1)
    for found in _MODULE.finditer(source) if b"module" in source or b"import" in source else ():
        at = found.start(2)
        if not _is_code(places, source, found.start()):
            continue
        exported, how, name = (_decode(group) for group in found.groups())
        name = "".join(name.split())
        if how == "import" and name[:1] in ('"', "<"):
            imports.append(Import(name.strip('"'), lines.at(at), "include"))
        elif how == "module" and name.strip(":") and name != ":private":
            package = name
            tags += ["interface"] * bool(exported)
            if not exported:
                imports.append(Import(name.partition(":")[0], lines.at(at), "import", names=("module",)))
        elif how == "import" and name:
            full = package.partition(":")[0] + name if name.startswith(":") else name
            imports.append(Import(full, lines.at(at), "import", names=("module",)))
    return Syntax(
        imports=tuple(imports),
        package=package,
        tags=tuple(tags),
        exports=_exports(root) if path.endswith(_HEADER_ENDS) else 0,
        main=b"main" in source and any(_is_code(places, source, found.start()) for found in _MAIN.finditer(source)),
    )


def _named_by_macros(source: bytes) -> dict[str, list[str]]:
    """What `#include MACRO` may mean: every file that the same source defines the macro as."""
    found: dict[str, list[str]] = {}
    for macro, value in _DEFINE.findall(source):
        known = found.setdefault(_decode(macro), [])
        if len(known) < _MOST_DEFINITIONS:
            known.append(_decode(value).strip('"'))
    return found


def _exports(root: Node) -> int:
    """How many functions, types and values a header declares, by its tree; macros that guard it are entered."""
    return sum(1 for _ in walk(root, _DECLARATIONS, _AROUND_DECLARATIONS))


class _Lines:
    """Line numbers of growing offsets, each stretch of text counted once."""

    def __init__(self, source: bytes, first: int):
        self.source, self.offset, self.line = source, 0, first

    def at(self, offset: int) -> int:
        self.line += self.source.count(b"\n", self.offset, offset)
        self.offset = offset
        return self.line


def _decode(group: bytes | None) -> str:
    return (group or b"").decode("utf-8", "replace")


def _is_code(places: Places, source: bytes, offset: int) -> bool:
    """Whether a line's first token may be at `offset`, and is neither commented out nor in a string."""
    start = source.rfind(b"\n", 0, offset) + 1
    start = max(start, source.rfind(b"\r", start, offset) + 1)
    if offset - start > _FARTHEST or _INLINE_COMMENT.sub(b"", source[start:offset]).strip():
        return False
    at = places.root.start_byte + offset
    node = places.node(at, at + 1)
    return node is None or node.type not in _NO_CODE


def resolve(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Found]:
    finder = _Finder(tree)
    modules = {syntax[path].package: path for path in sorted(syntax, reverse=True) if "interface" in syntax[path].tags}
    included: dict[str, list[str]] = {}
    for path in sorted(syntax):
        for imported in syntax[path].imports:
            if "module" in imported.names:
                target = modules.get(imported.name)
            else:
                target = finder.find(path, imported.name, "next" in imported.names)
                if target is None and finder.is_ours(path, imported.name):
                    yield Unresolved(path, imported.name, imported.line)
            if target is not None and target != path:
                yield Edge(path, target, imported.kind, "hard")
                if imported.kind == "include":
                    included.setdefault(target, []).append(path)
    for header in sorted(included):
        source = _implementation(header, included[header])
        if source is not None:
            yield Edge(header, source, "implements", "soft")


def _implementation(header: str, includers: list[str]) -> str | None:
    """The one source of the header's stem that includes it: beside it, or, if it lies in an `include` folder, in
    another folder beside that one."""
    stem, end = posixpath.splitext(header)
    folder, name = posixpath.split(stem)
    if end not in _HEADER_ENDS:
        return None
    sources = sorted({path for path in includers if path.endswith(_SOURCE_ENDS) and _stem(path) == name})
    beside = [path for path in sources if posixpath.dirname(path) == folder]
    if not beside:
        public = next((f for f in near_ancestors(folder) if posixpath.basename(f) in ("include", "inc")), None)
        if public is None:
            return None
        base = posixpath.dirname(public)
        prefix = f"{base}/" if base else ""
        inner = ((path, path[len(prefix) :].split("/")) for path in sources if path.startswith(prefix))
        beside = [path for path, parts in inner if not _NO_SOURCES.intersection(parts[:-1])]
    return beside[0] if len(beside) == 1 else None


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]


class _Finder:
    """Looks names of includes up, each once per folder."""

    def __init__(self, tree: RepoTree):
        self.tree = tree
        self.directories = IncludeDirectories(tree)
        self._endings: dict[str, tuple[str, ...]] = {}
        self._found: dict[tuple[str, str, bool], str | None] = {}

    def find(self, path: str, name: str, beyond: bool) -> str | None:
        """The file that the include names; `beyond`: not the including file itself (include_next)."""
        if beyond or path in self.directories.by_file:
            return self._search(path, name, beyond)
        key = (posixpath.dirname(path), name, False)
        if key not in self._found:
            self._found[key] = self._search(path, name, False) or self._template(path, name)
        return self._found[key]

    def _template(self, path: str, written: str) -> str | None:
        """`config.h.in` or `config.h.cmake`, of which a build makes `config.h`."""
        for ending in (".in", ".cmake", ".cmake.in"):
            name = written[:-1] + ending + ">" if written.startswith("<") else written + ending
            if posixpath.basename(name.strip("<>")) in self.tree.by_name:
                return self._search(path, name, False)
        return None

    def _search(self, path: str, written: str, beyond: bool) -> str | None:
        quoted = not written.startswith("<")
        name = written.strip("<>").replace("\\", "/")
        folder = posixpath.dirname(path)
        if quoted and not beyond:
            beside = join(folder, name)
            if beside in self.tree.paths:
                return beside
        found = (join(f, name) for f in self.directories.of(path))
        target = self.tree.first(f for f in found if f and not (beyond and f == path))
        if target is not None or is_system_header(name):
            return target
        usual = (join(posixpath.join(a, sub), name) for a in near_ancestors(folder) for sub in ("include", "src", ""))
        target = self.tree.first(f for f in usual if f and (quoted or posixpath.dirname(f) != folder))
        if target is not None or (is_in_system_folder(name) and not quoted):
            return target
        return self._by_ending(folder, posixpath.normpath(name), quoted)

    def _by_ending(self, folder: str, name: str, quoted: bool) -> str | None:
        """The file whose path ends in the name: where some include directory is, or wherever the only one is."""
        endings = self._ending_in(name)
        roots = {path: path[: -len(name)].rstrip("/") for path in endings}
        known = [p for p, r in roots.items() if r in self.directories.named or posixpath.basename(r) == "include"]
        for candidates in (known, endings):
            if len(candidates) == 1:
                return candidates[0]
            if candidates and quoted:
                return _nearest(folder, candidates)
        return None

    def _ending_in(self, name: str) -> tuple[str, ...]:
        if name not in self._endings:
            paths = self.tree.by_name.get(posixpath.basename(name), ())
            self._endings[name] = tuple(p for p in paths if p == name or p.endswith(f"/{name}"))
        return self._endings[name]

    def is_ours(self, path: str, written: str) -> bool:
        """Whether an include that led nowhere should have led into the repository."""
        name = written.strip("<>").replace("\\", "/")
        if is_system_header(name) or (is_in_system_folder(name) and written.startswith("<")):
            return False
        top, slash, _ = name.partition("/")
        if not written.startswith("<"):
            return not slash or top in ("", ".", "..") or top in self._folder_names
        return slash != "" and any(posixpath.join(f, top) in self.tree.directories for f in self.directories.of(path))

    @cached_property
    def _folder_names(self) -> frozenset[str]:
        return frozenset(posixpath.basename(folder) for folder in self.tree.directories)


def _nearest(folder: str, candidates: list[str] | tuple[str, ...]) -> str | None:
    """The one candidate that shares the most leading folders with `folder`."""
    own = folder.split("/") if folder else []
    shared: dict[str, int] = {}
    for path in candidates:
        pairs = zip(own, path.split("/")[:-1], strict=False)
        shared[path] = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(own), path.count("/")))
    best = max(shared.values())
    nearest = [path for path in candidates if shared[path] == best]
    return nearest[0] if len(nearest) == 1 else None
