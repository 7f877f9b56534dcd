"""Python: `import` and `from … import`, resolved from source roots as the interpreter would.

Roots, nearest first: the folder above the file's own top-level package; the file's own folder, when it is
no package (a script's `sys.path[0]`); the repository root; roots named by pyproject.toml or setup.cfg and
the usual `src` and `lib`; and, for packages with an `__init__.py` only, the folder above any top-level package.
A name of the standard library is never taken for a file of the repository, unless the repository's own root
package has it. Soft: imports inside functions, under TYPE_CHECKING and where the file is run as a program, those by
`import_module` with a literal name, and a test's conftest.py.
"""

from __future__ import annotations

import configparser
import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice, pairwise
from typing import Any

import stdlibs.py3
import tree_sitter_python
from tree_sitter import Node

from repo2ctx.languages import RepoTree, _python_outline, ancestors, join, line, text, walk_within
from repo2ctx.languages._places import Places
from repo2ctx.records import Edge, EntryPoint, Found, Import, Strength, Syntax, Unresolved

GRAMMARS = {"Python": tree_sitter_python.language}
CONFIG_FILES = ("pyproject.toml", "setup.cfg")
OUTLINE = _python_outline.SHAPE

_USUAL_ROOTS = ("src", "lib", "python")
_IMPORTS = frozenset({"import_statement", "import_from_statement"})
_TEST = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")
_DEEPEST = 100  # parts of a dotted name
_MOST_FOLDERS = 32  # above a test, that may have a conftest.py
_IF_MAIN = re.compile(r"""__name__\s*==\s*["']__main__["']""")
_IMPORT_MODULE = re.compile(rb"""import_module\(\s*["'](\w{1,100}(?:\.\w{1,100}){0,30})["']\s*[,)]""")
_PUBLIC = re.compile(rb"^(?:async[ \t]+)?(?:def|class)[ \t]+([A-Za-z]\w*)", re.MULTILINE)
_BODIES = frozenset(
    """
    module block function_definition class_definition decorated_definition if_statement elif_clause else_clause
    try_statement except_clause except_group_clause finally_clause with_statement for_statement while_statement
    match_statement case_clause
""".split()
)


def scan(root: Node, path: str) -> Syntax:
    """Imports anywhere in the file, without entering expressions."""
    imports: list[Import] = []
    for node, around in walk_within(root, _IMPORTS, _BODIES):
        strength = _strength(node, around)
        if node.type == "import_statement":
            for name in node.children_by_field_name("name"):
                dotted = name.child_by_field_name("name") if name.type == "aliased_import" else name
                imports.append(Import(_dotted(dotted), line(node), "import", strength))
        else:
            module = node.child_by_field_name("module_name")
            members = [
                _dotted(n.child_by_field_name("name") if n.type == "aliased_import" else n)
                for n in node.children_by_field_name("name")
            ]
            if any(child.type == "wildcard_import" for child in node.children):
                members.append("*")
            imports.append(Import(_dotted(module), line(node), "import", strength, tuple(members)))
    imports += _by_name(root)
    return Syntax(imports=tuple(imports), exports=len(set(_PUBLIC.findall(root.text or b""))))


def _by_name(root: Node) -> Iterator[Import]:
    """`importlib.import_module("a.b")`, if the name is literal."""
    source = root.text or b""
    places = Places(root)
    for match in _IMPORT_MODULE.finditer(source) if b"import_module" in source else ():
        start = root.start_byte + match.start()
        node = places.node(start, start + 1)
        if node is not None and node.type == "identifier":
            name = match[1].decode()
            yield Import(name, root.start_point[0] + source.count(b"\n", 0, match.start()) + 1, "import", "soft")


def _dotted(node: Node | None) -> str:
    return "".join(text(node).split())


def _strength(node: Node, around: Sequence[Node]) -> Strength:
    """Soft if the statement does not run when the module loads."""
    for outer, inner in pairwise((*around, node)):
        if outer.type == "function_definition":
            return "soft"
        if outer.type == "if_statement" and inner == outer.child_by_field_name("consequence"):
            condition = text(outer.child_by_field_name("condition"))
            if "TYPE_CHECKING" in condition or _IF_MAIN.fullmatch(condition):
                return "soft"
    return "hard"


def resolve(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Found]:
    finder = _Finder(tree)
    for path in sorted(syntax):
        for imported in syntax[path].imports:
            targets = _targets(finder, path, imported)
            if targets is None:
                yield Unresolved(path, imported.name, imported.line)
                continue
            for target in targets:
                if target != path:
                    yield Edge(path, target, imported.kind, imported.strength)
    yield from _conftests(tree, syntax)
    yield from _entry_points(finder)


def _conftests(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Edge]:
    """pytest loads the conftest.py of a test's folder and of those above it, and nothing in the test says so."""
    for path in sorted(syntax) if "conftest.py" in tree.by_name else ():
        if _TEST.fullmatch(posixpath.basename(path)):
            above = islice(ancestors(posixpath.dirname(path)), _MOST_FOLDERS + 1)
            for conftest in (posixpath.join(folder, "conftest.py") for folder in {"": None, **dict.fromkeys(above)}):
                if conftest in tree.paths and conftest != path:
                    yield Edge(path, conftest, "test", "soft")


def _entry_points(finder: _Finder) -> Iterator[EntryPoint]:
    """The modules that `console_scripts` and other entry points name, as `package.module:function`."""
    for config, name in finder.scripts:
        parts = [part.strip() for part in name.partition(":")[0].split(".")]
        root = finder.root_of(config, parts[0]) if all(parts) else None
        target = None if root is None else finder.module(root, parts)
        if target is not None:
            yield EntryPoint(target, posixpath.basename(config))


def _targets(finder: _Finder, path: str, imported: Import) -> list[str] | None:
    """The files that one import needs; [] if it is external, None if it should be here and is not."""
    dots = len(imported.name) - len(imported.name.lstrip("."))
    if dots:
        base = posixpath.dirname(path)
        for _ in range(dots - 1):
            if not base:
                return None
            base = posixpath.dirname(base)
        parts = [p for p in imported.name[dots:].split(".") if p]
        if len(parts) > _DEEPEST:
            return None
        return finder.members(base, parts, imported.names)
    parts = imported.name.split(".")
    if len(parts) > _DEEPEST:
        return []
    root = finder.root_of(path, parts[0])
    return [] if root is None else finder.members(root, parts, imported.names)


@cache
def _standard_names() -> frozenset[str]:
    """Top-level names of the standard library of every Python 3, so that the answer does not depend on ours."""
    return frozenset(stdlibs.py3.module_names)


class _Finder:
    """Looks dotted names up in the roots of one repository."""

    def __init__(self, tree: RepoTree):
        self.tree = tree
        self.scripts: list[tuple[str, str]] = []  # config, and the entry point that it names
        self.named_roots = self._named_roots()
        self.package_roots = self._package_roots()
        self.roots: dict[tuple[str, str], str | None] = {}
        self.named: dict[str, str | None] = {}

    def _named_roots(self) -> list[str]:
        roots = [""]
        for config in (*self.tree.configs("pyproject.toml"), *self.tree.configs("setup.cfg")):
            folder = posixpath.dirname(config)
            source = self.tree.text(config) or ""
            named, scripts = _read_pyproject(source) if config.endswith(".toml") else _read_setup_cfg(source)
            self.scripts += [(config, name) for name in scripts]
            roots += [r for r in (join(folder, name) for name in (*named, ".", *_USUAL_ROOTS)) if r is not None]
        roots += _USUAL_ROOTS
        return [r for r in dict.fromkeys(roots) if r in self.tree.directories]

    def _package_roots(self) -> dict[str, list[str]]:
        """Top-level package name -> the folders that hold a package of that name."""
        found: dict[str, list[str]] = {}
        for init in self.tree.by_name.get("__init__.py", ()):
            package = posixpath.dirname(init)
            if package and not self.is_package(posixpath.dirname(package)):
                found.setdefault(posixpath.basename(package), []).append(posixpath.dirname(package))
        return {name: sorted(roots, key=lambda r: (r.count("/"), r)) for name, roots in found.items()}

    def is_package(self, folder: str) -> bool:
        return bool(folder) and (
            f"{folder}/__init__.py" in self.tree.paths or f"{folder}/__init__.pyi" in self.tree.paths
        )

    def own_root(self, path: str) -> str:
        folder = posixpath.dirname(path)
        while self.is_package(folder):
            folder = posixpath.dirname(folder)
        return folder

    def root_of(self, path: str, top: str) -> str | None:
        """The root in which the top-level name `top` is found for the file at `path`."""
        own = self.own_root(path)
        if top in _standard_names():
            # Only a repository that is the home of that module may mean its own.
            return own if top == path[len(own) :].lstrip("/").split("/")[0] else None
        if (own, top) not in self.roots:
            self.roots[own, top] = self._look_for(own, top)
        return self.roots[own, top]

    def _look_for(self, own: str, top: str) -> str | None:
        if self.module(own, [top]) or self.is_namespace(posixpath.join(own, top), own=True):
            return own
        if top not in self.named:
            self.named[top] = next((r for r in self.named_roots if self._has(r, top)), None)
        roots = self.package_roots.get(top)
        found = self.named[top]
        return roots[0] if found is None and roots else found

    def _has(self, root: str, top: str) -> bool:
        return self.module(root, [top]) is not None or self.is_namespace(posixpath.join(root, top), own=False)

    def is_namespace(self, folder: str, own: bool) -> bool:
        """Whether a folder without `__init__.py` may be a package: one that holds Python, or any beside the file."""
        python = any(p.endswith((".py", ".pyi")) for p in self.tree.by_directory.get(folder, ()))
        return python or (own and folder in self.tree.directories)

    def module(self, root: str, parts: list[str]) -> str | None:
        base = posixpath.join(root, *parts)
        inits = (f"{base}/__init__.py", f"{base}/__init__.pyi") if base else ("__init__.py", "__init__.pyi")
        return self.tree.first((*inits, f"{base}.py", f"{base}.pyi") if parts else inits)

    def members(self, root: str, parts: list[str], names: tuple[str, ...]) -> list[str] | None:
        """Files for `from root.parts import names`, or `import root.parts` without names."""
        module = self.module(root, parts)
        if not names:
            return [module] if module else self._shorter(root, parts)
        found: list[str] = []
        missing = False
        for name in names:
            submodule = None if name == "*" else self.module(root, [*parts, name])
            target = submodule or module
            missing |= target is None
            if target:
                found.append(target)
        return None if missing and not found else list(dict.fromkeys(found))

    def _shorter(self, root: str, parts: list[str]) -> list[str] | None:
        """`import a.b.c` where a.b is a plain folder (a namespace): nothing to need; otherwise unresolved."""
        return [] if posixpath.join(root, *parts) in self.tree.directories else None


def _read_pyproject(source: str) -> tuple[list[str], list[str]]:
    """The source roots that a pyproject.toml names, and the entry points."""
    try:
        data: Any = tomllib.loads(source)
    except (ValueError, RecursionError):  # not only TOMLDecodeError: numbers of 5,000 digits
        return [], []
    return _pyproject_roots(data.get("tool", {})), _pyproject_scripts(data)


def _pyproject_roots(tool: Any) -> list[str]:
    found: list[object] = []
    setuptools = _table(tool, "setuptools")
    found += _values(_table(setuptools, "package-dir"))
    where = _table(setuptools, "packages", "find").get("where", [])
    found += where if isinstance(where, list) else [where]
    packages = _table(tool, "poetry").get("packages", [])
    found += [p.get("from") for p in packages if isinstance(p, dict)] if isinstance(packages, list) else []
    found += _values(_table(tool, "pdm", "build").get("package-dir", ""))
    hatch = _table(tool, "hatch", "build", "targets", "wheel").get("packages", [])
    found += [posixpath.dirname(p) for p in hatch if isinstance(p, str)] if isinstance(hatch, list) else []
    return [f for f in found if isinstance(f, str) and f]


def _pyproject_scripts(data: Any) -> list[str]:
    tables = [_table(data, "project", kind) for kind in ("scripts", "gui-scripts")]
    tables += [_table(data, "project", "entry-points", group) for group in _table(data, "project", "entry-points")]
    tables.append(_table(data, "tool", "poetry", "scripts"))
    return [name for values in tables for name in values.values() if isinstance(name, str)]


def _table(value: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _values(value: object) -> list[object]:
    return list(value.values()) if isinstance(value, dict) else [value]


def _read_setup_cfg(source: str) -> tuple[list[str], list[str]]:
    """The source roots that a setup.cfg names, and the entry points."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(source)
    except configparser.Error:
        return [], []
    found = [parser.get("options.packages.find", "where", fallback="")]
    found += [entry.partition("=")[2] for entry in parser.get("options", "package_dir", fallback="").splitlines()]
    groups = parser["options.entry_points"].values() if parser.has_section("options.entry_points") else ()
    scripts = [row.partition("=")[2] for group in groups for row in group.splitlines() if "=" in row]
    return [f.strip() for f in found if f.strip()], scripts
