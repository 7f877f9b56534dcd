"""Java: imports, and the types that a file names without importing them.

Types are indexed by the `package` that their file declares, so no build file is needed. A simple name means, in
this order: a type of the file itself; a nested type inherited from a named superclass; a single-type import; a type
of the same package; a type of a package or class imported with `*`. A dotted name is followed from its first part,
or from the longest package of the repository that it starts with. Type parameters, enum constants and fields of the
file hide types. Where several files declare a type of one name, the one in the same source root is meant, then the
same module, then the one closest by path; only tests see tests. `requires` in module-info.java names modules.

Every edge is hard: the compiler wants all types at once. Comments, Javadoc included, make none.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cache

import tree_sitter_java
from tree_sitter import Node

from repo2ctx.languages import Crowds, RepoTree, _java_outline, line, text, walk
from repo2ctx.records import Edge, Found, Import, Syntax, Unresolved

GRAMMARS = {"Java": tree_sitter_java.language}
CONFIG_FILES = ()
OUTLINE = _java_outline.SHAPE

_TYPES = frozenset(
    {
        "class_declaration", "interface_declaration", "enum_declaration", "record_declaration",
        "annotation_type_declaration",
    }
)  # fmt: skip
_SUPERS = frozenset({"superclass", "super_interfaces", "extends_interfaces"})
_IMPORTS = frozenset({"package_declaration", "import_declaration", "module_declaration", "requires_module_directive"})
_HIDING = frozenset({"type_parameter", "enum_constant", "variable_declarator"})
_WANTED = _TYPES | _SUPERS | _IMPORTS | _HIDING
# Members and what they declare, but no bodies of methods and no initializers.
_ENTERED = _TYPES | frozenset(
    {
        "class_body", "interface_body", "enum_body", "enum_body_declarations", "annotation_type_body",
        "field_declaration", "constant_declaration", "method_declaration", "constructor_declaration", "type_parameters",
        "module_declaration", "module_body",
    }
)  # fmt: skip

# Names are read off the text, which costs a third of what a tree query for them does; Java's lexis is regular.
# Whatever is not closed ends with the line or the file, so that the search never goes back.
_NO_CODE = re.compile(
    rb"""/(?:/[^\n]*+|\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/)?)"""  # comments
    rb"""|"(?:""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+(?:\"{3})?|[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?)"""  # blocks, strings
    rb"""|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'?""",
    re.DOTALL,
)
_NEW = re.compile(rb"new(?<![\w$]new)\s+([\w$.]+)\(")  # begins with a literal, which makes the search fast
_PACKAGE = re.compile(rb"([^;{]*?)\bpackage\s+([\w$.\x80-\xff]+)\s*;")
_NAMES_ONLY = bytes(c if chr(c).isalnum() or c in b"_$.@(" or c >= 0x80 else 0x20 for c in range(256))
_MOST_PARENTS = 64  # that one file's classes inherit from, directly or through others
_DEEPEST = 16  # parts of a package or of a nested type: keeps the cost of absurd names linear


def scan(root: Node, path: str) -> Syntax:
    """What the file imports and declares, from the tree; the names that it uses, from its text."""
    imports: list[Import] = []
    defines: list[str] = []
    tags: list[str] = []
    hidden: set[str] = set()
    package, start = "", 0
    chunks: list[bytes] = []
    outer: list[tuple[int, str]] = []  # the types around the current node: where they end, and their name
    for node in walk(root, _WANTED, _ENTERED):
        kind = node.type
        if kind in _TYPES:
            while outer and outer[-1][0] <= node.start_byte:
                outer.pop()
            name = text(node.child_by_field_name("name"))
            dotted = f"{outer[-1][1]}.{name}" if 0 < len(outer) < _DEEPEST else name
            outer.append((node.end_byte, dotted))
            defines.append(dotted)
        elif kind in _HIDING:
            hidden.add(_hidden_name(node))
        elif kind in _SUPERS:
            tags += [f"super:{name.partition('.')[0]}" for name in _names(node.text or b"")]
        elif kind == "import_declaration":
            imports += _import(node)
            start = node.end_byte
        elif kind == "package_declaration":
            chunks += [child.text or b"" for child in node.named_children[:-1]]  # annotations
            start = node.end_byte
            package = _dotted(node.named_child(node.named_child_count - 1))
        elif kind == "module_declaration":
            tags.append(f"module:{_dotted(node.child_by_field_name('name'))}")
        else:
            imports.append(Import(_dotted(node.child_by_field_name("module")), line(node), "require"))
    source = root.text or b""
    start = max(0, start - root.start_byte)
    if not package and (head := _PACKAGE.match(_NO_CODE.sub(b" ", source[:start] or source))):
        # The grammar does not know a package declaration with annotations.
        package = head[2].decode("utf-8", "replace")
        chunks.append(head[1])
    chunks.append(source[start:])
    uses = [name for name in _names(b" ".join(chunks)) if name not in hidden]
    return Syntax(
        tuple(imports),
        package,
        tuple(defines),
        tuple(uses),
        tuple(dict.fromkeys(tags)),
        exports=len(defines),
        main=b"static void main(" in source,
    )


def _hidden_name(node: Node) -> str:
    return text(node.child_by_field_name("name") or node.named_child(0))


def _import(node: Node) -> Iterator[Import]:
    """`names` says what is taken from `name`: nothing for one type, `*`, or a static member."""
    words = text(node).rstrip(";").split()[1:]
    static = words[:1] == ["static"]
    name = "".join(words[static:])
    member = ""
    if static or name.endswith(".*"):
        name, _, member = name.rpartition(".")
    if name:
        yield Import(name, line(node), "import", "hard", (member,) if member else ())


def _dotted(node: Node | None) -> str:
    return "".join(text(node).split())


def _names(source: bytes) -> list[str]:
    """First parts of the dotted names that could be types; whole ones where the first part may be a package."""
    code = _NO_CODE.sub(b" ", source)
    words = code.replace(b"(", b"( ").translate(_NAMES_ONLY) + b" " + b" ".join(_NEW.findall(code))
    found: dict[str, None] = {}
    for name in dict.fromkeys(words.decode("utf-8", "replace").split()):
        if "." not in name:
            if name[-1] != "(" or name[0] == "@":  # else a method, or the declaration of a constructor
                found[name.strip("@(")] = None
        elif name[0] != ".":
            dotted = name.strip("@.(")
            first, _, rest = dotted.partition(".")
            found[first] = None
            if first[:1].islower() and not rest.islower():
                found[dotted] = None
    return list(found)


def resolve(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Found]:
    index = _Index(syntax)
    files = {path: _File(index, path, syntax[path]) for path in sorted(syntax)}
    for file in files.values():
        yield from file.edges(files)


class _Index:
    """All types of the repository."""

    def __init__(self, syntax: Mapping[str, Syntax]):
        self.syntax = syntax
        self.packages: dict[str, dict[str, list[str]]] = {}  # package -> dotted type name -> files
        self.modules: dict[str, list[str]] = {}
        self.crowds = Crowds()
        self.simple: set[str] = set()  # the last part of every type's name
        self.seen: dict[str, tuple[str, str, list[str]] | None] = {}
        for path in sorted(syntax):
            file = syntax[path]
            types = self.packages.setdefault(file.package, {})
            for name in file.defines:
                types.setdefault(name, []).append(path)
                self.simple.add(name.rpartition(".")[2])
            for tag in file.tags:
                if tag.startswith("module:"):
                    self.modules.setdefault(tag.removeprefix("module:"), []).append(path)
        self.roots = {path: _source_root(path, file.package) for path, file in syntax.items()}
        self.heads = frozenset(package.partition(".")[0] for package in self.packages if package)

    def lookup(self, dotted: str) -> tuple[str, str, list[str]] | None:
        """The package, the type and the files of a full name that is, or starts with, a type."""
        if dotted not in self.seen:
            self.seen[dotted] = self._lookup(dotted)
        return self.seen[dotted]

    def _lookup(self, dotted: str) -> tuple[str, str, list[str]] | None:
        parts = dotted.split(".")
        if parts[0] not in self.heads:
            return None
        for end in range(min(len(parts) - 1, _DEEPEST), 0, -1):
            package = ".".join(parts[:end])
            types = self.packages.get(package, {})
            for last in range(min(len(parts), end + _DEEPEST), end, -1):
                name = ".".join(parts[end:last])
                if name in types:
                    return package, name, types[name]
        return None

    def looks_internal(self, package: str) -> bool:
        """Whether the repository has the package, or one above it that is too specific to be shared."""
        parts = package.split(".")[:_DEEPEST]
        return package in self.packages or any(".".join(parts[:n]) in self.packages for n in range(3, len(parts)))


class _File:
    """One file's names, and which files they mean."""

    def __init__(self, index: _Index, path: str, syntax: Syntax):
        self.index = index
        self.path = path
        self.syntax = syntax
        self.root = index.roots[path]
        self.test = _is_test(self.root)
        self.own = frozenset(part for name in syntax.defines for part in name.split("."))
        self.package = index.packages[syntax.package]
        self.named: dict[str, list[str]] = {}  # simple name -> files, from single-type imports
        self.wildcards: list[tuple[str, str]] = []  # package, and what stands before the type's name in it
        self.imported: list[Edge | Unresolved] = []
        for item in syntax.imports:
            self.imported += self._import(item)

    def _import(self, item: Import) -> Iterator[Edge | Unresolved]:
        """The edge of one import; notes which simple names it brings."""
        star = item.names == ("*",)
        if item.kind == "require":
            yield from self._edge(self.index.modules.get(item.name, []), "require")
        elif found := self.index.lookup(item.name):
            package, name, files = found
            if star:
                self.wildcards.append((package, f"{name}."))
            else:
                self.named.setdefault((item.names or (item.name,))[0].rpartition(".")[2], files)
            yield from self._edge(files, "import")
        elif star and item.name in self.index.packages:
            self.wildcards.append((item.name, ""))
        else:
            if not item.names:
                self.named.setdefault(item.name.rpartition(".")[2], [])  # hides the package's type of that name
            if self.index.looks_internal(item.name if star else item.name.rpartition(".")[0]):
                yield Unresolved(self.path, item.name, item.line)

    def edges(self, files: Mapping[str, _File]) -> Iterator[Edge | Unresolved]:
        yield from self.imported
        inherited = self._inherited(files)
        for name in self.syntax.uses:
            if "." not in name:
                if name in self.index.simple and name not in self.own:
                    yield from self._edge(*self._simple(name, inherited))
            elif not self._simple(name.partition(".")[0], inherited)[0]:
                found = self.index.lookup(name)
                yield from self._edge(found[2] if found else [], "use")

    def _simple(self, name: str, inherited: Mapping[str, str]) -> tuple[list[str], str]:
        """The files that may declare a type of this simple name, and the kind of the edge."""
        if name in inherited:
            return [inherited[name]], "use"
        if name in self.named:
            return self.named[name], "import"
        if name in self.package:
            return self.package[name], "use"
        for package, before in self.wildcards:
            if before + name in self.index.packages[package]:
                return self.index.packages[package][before + name], "import"
        return [], "use"

    def _inherited(self, files: Mapping[str, _File]) -> dict[str, str]:
        """Nested types that the file's classes inherit from classes of the repository: simple name -> file."""
        found: dict[str, str] = {}
        seen: set[str] = {self.path}
        waiting: deque[_File] = deque([self])
        while waiting and len(seen) <= _MOST_PARENTS:
            file = waiting.popleft()
            for tag in file.syntax.tags:
                parent = file._nearest(file._simple(tag.removeprefix("super:"), {})[0])
                if parent is None or parent in seen:
                    continue
                seen.add(parent)
                waiting.append(files[parent])
                for name in files[parent].syntax.defines:
                    if name.count(".") == 1:
                        found.setdefault(name.partition(".")[2], parent)
        return found

    def _edge(self, files: list[str], kind: str) -> Iterator[Edge]:
        target = self._nearest(files)
        if target is not None and target != self.path:
            yield Edge(self.path, target, kind, "hard")

    def _nearest(self, files: list[str]) -> str | None:
        """Of the files that declare a type, the one that this file is compiled with; only tests see tests."""
        # The index keeps one list for each type, so that the list itself can stand for the type.
        files = self.index.crowds.near(id(files), files, posixpath.dirname(self.path))
        seen = [f for f in files if self.test or not _is_test(self.index.roots[f])]
        return min(seen, key=self._distance) if len(seen) > 1 else next(iter(seen), None)

    def _distance(self, other: str) -> tuple[bool, bool, bool, bool, int, str]:
        root = self.index.roots[other]
        return (
            other != self.path,
            root != self.root,
            _module(root) != _module(self.root),
            _is_test(root),
            -len(posixpath.commonprefix([self.path.split("/"), other.split("/")])),
            other,
        )


def _source_root(path: str, package: str) -> str:
    """The folder that the package's own folders start in; the file's folder if they do not match."""
    folder = posixpath.dirname(path)
    inner = package.replace(".", "/")
    return folder[: -len(inner)].rstrip("/") if inner and f"/{folder}".endswith(f"/{inner}") else folder


def _module(root: str) -> str:
    """The folder above `src`."""
    return f"/{root}/".rpartition("/src/")[0]


@cache
def _is_test(root: str) -> bool:
    """Whether the source root holds tests: `src/test/java`, `tests`, `src/androidTest/java`."""
    return any(part in ("test", "tests") or part.endswith("Test") for part in root.split("/"))
