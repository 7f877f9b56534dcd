"""Go: the files that declare what a file uses, in its own package and in the packages that it imports.

A package is the files of one folder with one package name. A bare name means a declaration at the top of the own
package, unless the function declares it itself; `pkg.Name` one of the imported package; `x.name`, whose type is
unknown here, the method or field of that name if just one file of the own package declares one. Import paths are
looked up in the file's own module, `vendor` folders, `replace` lines of go.work and go.mod, and the repository's
other modules; without any go.mod, under the path that most imports share. A test file is a target for tests of its
own folder only. Files whose build constraints exclude each other do not need each other. A blank import needs the
whole package.

Every edge is hard: the compiler wants a whole package at once.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

import tree_sitter_go
from tree_sitter import Node

from repo2ctx.languages import RepoTree, _go_outline, line, text, walk
from repo2ctx.languages._go_builds import build_lines, name_rules, satisfiable
from repo2ctx.languages._go_modules import ImportPaths
from repo2ctx.languages._go_names import FUNCTIONS, used_names
from repo2ctx.records import Edge, Found, Import, Syntax, Unresolved

GRAMMARS = {"Go": tree_sitter_go.language}
CONFIG_FILES = ("go.mod", "go.work")
OUTLINE = _go_outline.SHAPE

_VALUES = frozenset({"const_spec", "var_spec"})
_TYPES = frozenset({"type_spec", "type_alias"})
_LISTS = _VALUES | {"field_declaration"}  # several names in one
_MEMBERS = frozenset({"field_declaration", "method_elem"})
_WANTED = FUNCTIONS | _VALUES | _TYPES | _MEMBERS | {"package_clause", "import_spec"}
# Declarations and the insides of types, but no bodies of functions and no values.
_ENTERED = frozenset(
    {
        "import_declaration", "import_spec_list", "const_declaration", "var_declaration", "var_spec_list",
        "type_declaration", "type_spec", "struct_type", "field_declaration_list", "interface_type",
    }
)  # fmt: skip

_UNNAMED = ("_", "init", "._", ".init")
_VERSION = re.compile(r"/v\d+$")

# Methods that types outside the repository are most likely to have.
_COMMON = frozenset(
    {
        "Close", "Decode", "Encode", "Error", "Flush", "Format", "Get", "Header", "Len", "Less", "Lock", "Name", "Open",
        "Read", "ReadAt", "ReadFrom", "Run", "Scan", "Seek", "ServeHTTP", "Set", "Size", "Stat", "String", "Swap",
        "Type", "Unlock", "Unwrap", "Value", "Write", "WriteHeader", "WriteString", "WriteTo",
    }
)  # fmt: skip


def scan(root: Node, path: str) -> Syntax:
    """Imports and declarations from the tree; the names that each declaration uses from its text."""
    imports: list[Import] = []
    defines: list[str] = []
    package = ""
    for node in walk(root, _WANTED, _ENTERED):
        kind = node.type
        if kind == "package_clause":
            package = text(node.named_child(0))
        elif kind == "import_spec":
            alias = text(node.child_by_field_name("name"))
            name = text(node.child_by_field_name("path")).strip('"`')
            imports.append(Import(name, line(node), "import", "hard", (alias,) if alias else ()))
        else:
            dot = "." if kind in _MEMBERS or kind == "method_declaration" else ""
            several = node.children_by_field_name("name") if kind in _LISTS else [node.child_by_field_name("name")]
            defines += [dot + text(name) for name in several if name is not None and name.is_named]
            if not several:  # an embedded field is called as its type
                kind_of = text(node.child_by_field_name("type"))
                defines.append(f".{kind_of.partition('[')[0].rpartition('.')[2].strip('* ')}")
    words = b" ".join(sorted(used_names(root, _import_names(imports)))).decode("utf-8", "replace").split()
    names = [word for word in words if not word[0].isdigit()]
    tags = tuple(f"build:{rule}" for rule in build_lines(root, root.text or b""))
    declared = dict.fromkeys(defines)
    for name in _UNNAMED:
        declared.pop(name, None)
    exports = sum(name[0].isupper() for name in declared)
    main = package == "main" and "main" in declared
    return Syntax(tuple(imports), package, tuple(declared), tuple(names), tags, exports=exports, main=main)


def _import_names(imports: list[Import]) -> set[bytes]:
    """The names that imports most likely have in the file."""
    names = (item.names[0] if item.names else _VERSION.sub("", item.name).rpartition("/")[2] for item in imports)
    return {name.encode() for name in names}


def resolve(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Found]:
    index = _Index(syntax)
    paths = ImportPaths(tree, syntax)
    for path in sorted(syntax):
        file = _File(path, syntax[path], index)
        for item in syntax[path].imports:
            folder = paths.folder(path, item.name)
            if folder is not None:
                file.take(item, index.importable(folder))
        for use in syntax[path].uses:
            file.use(use)
        for target, kind in file.targets:
            if target != path:
                yield Edge(path, target, kind, "hard")
        for item in file.unresolved():
            yield Unresolved(path, item.name, item.line)


class _Package:
    """The files of one folder with one package name, and which of them declare what."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.files: list[str] = []
        self.declared: dict[str, list[str]] = {}  # name, or .name of a method or field

    def add(self, path: str, file: Syntax) -> None:
        self.files.append(path)
        for name in file.defines:
            self.declared.setdefault(name, []).append(path)


class _Index:
    """All packages of the repository."""

    def __init__(self, syntax: Mapping[str, Syntax]):
        self.folders: dict[str, dict[str, _Package]] = {}
        self.constraints: dict[str, tuple[str, ...]] = {}
        for path in sorted(syntax):
            name = syntax[path].package
            packages = self.folders.setdefault(posixpath.dirname(path), {})
            packages.setdefault(name, _Package(name)).add(path, syntax[path])
            rules = tuple(tag.removeprefix("build:") for tag in syntax[path].tags) + name_rules(path)
            if rules:
                self.constraints[path] = rules

    def importable(self, folder: str) -> _Package | None:
        """The package that importing the folder means: tests apart, and a program only if there is nothing else."""
        found = [p for p in self.folders.get(folder, {}).values() if not all(map(_is_test, p.files))]
        return min(found, key=lambda p: (p.name == "main", -len(p.files), p.name), default=None)

    def visible(self, path: str, declaring: Iterable[str]) -> list[str]:
        """Those of the files that can be compiled together with `path`; none if it declares the name itself."""
        found = []
        for other in declaring:
            if other == path:
                return []
            if _is_test(other) and not (_is_test(path) and posixpath.dirname(path) == posixpath.dirname(other)):
                continue
            rules = (self.constraints.get(path), self.constraints.get(other))
            if rules[0] and rules[1] and not satisfiable(rules[0] + rules[1]):
                continue
            found.append(other)
        return found


class _File:
    """Gathers what one file needs."""

    def __init__(self, path: str, syntax: Syntax, index: _Index):
        self.path = path
        self.index = index
        self.own = index.folders[posixpath.dirname(path)][syntax.package]
        self.targets: dict[tuple[str, str], None] = {}  # (file, kind) in the order found
        self.imported: dict[str, tuple[Import, _Package]] = {}  # local name -> what it stands for
        self.needed: dict[tuple[str, ...], bool] = {}
        self.dotted: list[_Package] = []
        self.lost: list[Import] = []
        self.found: set[str] = set()  # imports of which a name led somewhere

    def take(self, item: Import, package: _Package | None) -> None:
        """Note an import of a package of the repository; None if there is no such package."""
        if package is None:
            self.lost.append(item)
        elif item.names == ("_",):
            self.targets.update(((f, "import"), None) for f in self.index.visible(self.path, package.files))
        elif item.names == (".",):
            self.dotted.append(package)
        else:
            self.imported[item.names[0] if item.names else package.name] = (item, package)

    def use(self, use: str) -> None:
        if use in self.own.declared:
            self._own(use)
        elif use.endswith(":"):
            # A name that is also a field is more likely the key of a struct; the struct's own name is there too.
            if "." in use or f".{use[:-1]}" not in self.own.declared:
                self.use(use[:-1])
        elif use.startswith("."):
            return
        elif "." in use:
            head, *rest = use.split(".")
            if head in self.imported:
                if self._need(self.imported[head][1].declared.get(rest[0], []), "import"):
                    self.found.add(head)
            elif head in self.own.declared:
                for name in (head, *(f".{part}" for part in rest)):
                    self._own(name)
            else:
                self._dotted(head)
        else:
            self._dotted(use)

    def _own(self, name: str) -> None:
        """A name of the own package. `x.name` is worth a guess if one file alone has it, which is no test, and
        no interface of the standard library has it as well.
        """
        files = self.own.declared.get(name, [])
        if not name.startswith(".") or (len(files) == 1 and name[1:] not in _COMMON and not _is_test(files[0])):
            self._need(files, "use")

    def _dotted(self, name: str) -> None:
        for package in self.dotted:
            self._need(package.declared.get(name, []), "import")

    def _need(self, files: list[str], kind: str) -> bool:
        # Where a package has a file for each system, hundreds of names have the same dozens of files.
        key = (kind, *files)
        if key not in self.needed:
            visible = self.index.visible(self.path, files)
            self.targets.update(((f, kind), None) for f in visible)
            self.needed[key] = bool(visible)
        return self.needed[key]

    def unresolved(self) -> Iterator[Import]:
        yield from self.lost
        yield from (item for name, (item, _) in self.imported.items() if name not in self.found)


def _is_test(path: str) -> bool:
    return path.endswith("_test.go")
