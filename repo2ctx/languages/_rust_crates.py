"""The crates of a repository: the module tree of each, and the lookup of paths in it.

Every target that Cargo would build, named or found, is the root of a crate. A file that no root reaches is taken as
a root of its own, so that its `mod` and `self` still mean something.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from repo2ctx.languages import RepoTree, join
from repo2ctx.languages._rust_cargo import Manifest, entry_points, library, read_manifests, targets
from repo2ctx.records import Edge, Syntax, Unresolved

_MOST_CRATES = 4  # that one file's paths are looked up in
_DEEPEST = 24  # re-exports followed one after the other
_MOST_STEPS = 300  # modules looked into for one path


@dataclass(eq=False, slots=True)
class Module:
    """A module of one crate: a file, or an inline module in one."""

    file: str
    inline: str
    crate: Crate
    parent: Module | None
    folder: str  # where the files of its children are
    children: dict[str, Module] = field(default_factory=dict)

    def is_below(self, file: str) -> bool:
        """Whether the file's `mod` leads, at whatever remove, to this module."""
        above = self.parent
        while above is not None and above.file != file:
            above = above.parent
        return above is not None


@dataclass(eq=False, slots=True)
class Crate:
    """One target that Cargo builds, and the modules reached from its root."""

    manifest: Manifest
    modules: dict[tuple[str, str], Module] = field(default_factory=dict)
    macros: dict[str, str] = field(default_factory=dict)  # name -> file
    root: Module = field(init=False)


@dataclass(slots=True)
class _Scope:
    """What an inline module, or the file itself, declares."""

    items: set[str] = field(default_factory=set)
    bindings: dict[str, list[list[str]]] = field(default_factory=dict)  # name -> paths that `use` gives it
    globs: list[list[str]] = field(default_factory=list)


class Lost:
    """The answer for a path that starts in the repository and leads nowhere."""


LOST = Lost()


@dataclass(frozen=True, slots=True)
class Outside:
    """The answer for a name that a `use` in `file` takes from outside the repository."""

    file: str


Found = Module | str | Lost | Outside | None
"""A module, the file of an item, or why there is neither; None: the name is not known here."""


class Crates:
    """All crates; `mod_edges` are their `mod` declarations, `find` looks a path up."""

    def __init__(self, tree: RepoTree, syntax: Mapping[str, Syntax]):
        self.tree = tree
        self.syntax = syntax
        self._scopes = {path: _scopes(syntax[path]) for path in sorted(syntax)}
        self._modules: dict[str, list[dict[tuple[str, str], Module]]] = {}
        self._steps: dict[tuple[Module, str], Found] = {}
        self._mods: dict[tuple[str, str], dict[str, None]] = {}
        self._nowhere = Manifest("", None)
        self.manifests = read_manifests(tree)
        self._libraries: dict[str, Module] = {}  # manifest's folder -> root
        self.entry_points: list[str] = []  # root files of the libraries and programs that Cargo builds
        self._grow()
        self.mod_edges = list(self._edges())

    def _grow(self) -> None:
        mains: dict[str, list[str]] = {}
        for path in self.tree.by_name.get("main.rs", ()):
            mains.setdefault(posixpath.dirname(posixpath.dirname(path)), []).append(path)
        for manifest in self.manifests.values():
            roots = targets(self.tree, manifest, mains)
            self.entry_points += entry_points(manifest, roots)
            for root in roots:
                crate = self._crate(manifest, root, posixpath.dirname(root))
                if root == library(manifest):
                    self._libraries[manifest.folder] = crate.root
        usual = ("lib.rs", "main.rs", "mod.rs")
        by_depth = sorted(self.syntax, key=lambda p: (p.count("/"), posixpath.basename(p) not in usual, p))
        for path in by_depth:
            if path not in self._modules:
                own = posixpath.splitext(path)[0]
                folder = own if own in self.tree.directories else posixpath.dirname(path)
                self._crate(self.manifest_of(path), path, folder)

    def _crate(self, manifest: Manifest, file: str, folder: str) -> Crate:
        crate = Crate(manifest)
        crate.root = Module(file, "", crate, None, folder)
        pending = [crate.root]
        while pending:
            module = pending.pop()
            pending += self._expand(module)
        return crate

    def _expand(self, module: Module) -> list[Module]:
        """Give a file's module its inline modules and children; return the children that are new to the crate."""
        crate, file = module.crate, module.file
        crate.modules[file, ""] = module
        homes = self._modules.setdefault(file, [])
        homes.append(crate.modules)
        if len(homes) > _MOST_CRATES:  # its paths are not looked up here, and neither are its children's
            return []
        syntax = self.syntax.get(file, Syntax())
        for inline in syntax.tags:
            above, _, name = inline.rpartition("::")
            parent = crate.modules.get((file, above), module)
            inner = Module(file, inline, crate, parent, posixpath.join(parent.folder, name))
            crate.modules[file, inline] = parent.children.setdefault(name, inner)
        for name in syntax.defines:
            if name.endswith("!"):
                crate.macros.setdefault(name.rpartition("::")[2][:-1], file)
        new: dict[str, Module] = {}
        for imported in syntax.imports:
            if imported.kind == "mod":
                above, _, name = imported.name.rpartition("::")
                parent = crate.modules.get((file, above), module)
                found = self._mods.setdefault((file, imported.name), {})
                for child, folder in self._child_files(parent, name, imported.names):
                    found[child] = None
                    known = crate.modules.get((child, "")) or new.get(child)
                    if known is None:
                        known = new[child] = Module(child, "", crate, parent, folder)
                    parent.children.setdefault(name, known)
        return list(new.values())

    def _child_files(self, parent: Module, name: str, paths: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """The files that `mod name;` may mean, each with the folder of its own children."""
        base = parent.folder if parent.inline else posixpath.dirname(parent.file)
        for path in paths:
            child = join(base, path)
            if child is not None and child in self.tree.paths:
                yield child, posixpath.dirname(child)
        folder = posixpath.join(parent.folder, name)
        beside = posixpath.join(posixpath.dirname(parent.file), name)
        places = [folder] if parent.parent is not None or parent.inline else [folder, beside]
        child = self.tree.first(f"{place}{end}" for place in places for end in (".rs", "/mod.rs"))
        if child is not None:
            yield child, child.removesuffix(".rs").removesuffix("/mod")

    def _edges(self) -> Iterator[Edge | Unresolved]:
        for path in sorted(self.syntax):
            for imported in self.syntax[path].imports:
                if imported.kind == "mod":
                    found = self._mods.get((path, imported.name), {})
                    kind = "mod" if imported.strength == "hard" else "test"
                    yield from (Edge(path, child, kind, imported.strength) for child in found if child != path)
                    if not found:
                        yield Unresolved(path, imported.name, imported.line)

    def manifest_of(self, path: str) -> Manifest:
        folder = posixpath.dirname(path)
        while folder and folder not in self.manifests:
            folder = posixpath.dirname(folder)
        return self.manifests.get(folder, self._nowhere)

    def modules_of(self, path: str, inline: str) -> Iterator[Module]:
        for modules in self._modules.get(path, [])[:_MOST_CRATES]:
            yield modules.get((path, inline)) or modules[path, ""]

    def find(self, module: Module, segments: list[str], declared: bool) -> str | Lost | None:
        """The file that a path in the module needs; None if it is not the repository's. `declared`: by `use`."""
        found = self._find(module, segments, declared, 0, set())
        return found.file if isinstance(found, Module | Outside) else found

    def _find(
        self, module: Module, segments: list[str], declared: bool, depth: int, seen: set[tuple[Module, str]]
    ) -> Found:
        start, rest = self._start(module, segments, declared, depth, seen)
        if not isinstance(start, Module):
            return start
        for number, name in enumerate(rest):
            if number == len(rest) - 1 and name in start.children and name in self._scope(start).items:
                return start.file  # a function or macro, and the module that holds what it does
            found = self._step(start, name, depth, seen)
            if isinstance(found, str | Outside):
                return found
            if not isinstance(found, Module):
                # Made by a macro, or re-exported from elsewhere: the module that has it is as far as one can see.
                is_module = number < len(rest) - 1 and name[:1].islower()
                return LOST if is_module and not self._scope(start).globs else start.file
            start = found
        return start

    def _start(
        self, module: Module, segments: list[str], declared: bool, depth: int, seen: set[tuple[Module, str]]
    ) -> tuple[Found, list[str]]:
        """The module or item that a path's first segments mean, and the segments after them."""
        first, rest = segments[0], segments[1:]
        old = module.crate.manifest.old
        if first == "crate":
            return module.crate.root, rest
        if first in ("self", "super"):
            at: Module | None = module if first == "self" else module.parent
            while at is not None and rest and rest[0] == "super":
                at, rest = at.parent, rest[1:]
            return at or LOST, rest
        if not first:
            if not rest:
                return (module.crate.root if old else None), rest
            inside = self._step(module.crate.root, rest[0], depth, seen) if old else None
            return inside or self._extern(module, rest[0]), rest[1:]
        found = self._step(module.crate.root if declared and old else module, first, depth, seen)
        return (None if isinstance(found, Outside) else found or self._extern(module, first)), rest

    def _extern(self, module: Module, name: str) -> Module | None:
        """The root of the crate that a target calls by this name."""
        manifest = module.crate.manifest
        if name in manifest.depends:
            return self._libraries.get(manifest.depends[name])
        if manifest.data is None:
            return self._by_name.get(name)
        return self._libraries.get(manifest.folder) if name == manifest.library_name else None

    @cached_property
    def _by_name(self) -> dict[str, Module]:
        return {self.manifests[folder].library_name: root for folder, root in reversed(self._libraries.items())}

    def _scope(self, module: Module) -> _Scope:
        return self._scopes.get(module.file, {}).get(module.inline) or _Scope()

    def _step(self, module: Module, name: str, depth: int, seen: set[tuple[Module, str]]) -> Found:
        """What a name means in a module: a child, the file of an item, or what `use` brings in by that name."""
        key = (module, name)
        if key in self._steps:
            return self._steps[key]
        if key in seen or depth > _DEEPEST or len(seen) > _MOST_STEPS:
            return None
        alone = not seen
        seen.add(key)
        found = self._own(module, name) or self._brought_in(module, name, depth, seen)
        if alone:  # otherwise the answer may lack what an unfinished lookup stands in the way of
            self._steps[key] = found
            seen.clear()
        return found

    def _own(self, module: Module, name: str) -> Found:
        if name in module.children:
            return module.children[name]
        if name in self._scope(module).items:
            return module.file
        return module.crate.macros.get(name) if module is module.crate.root else None

    def _brought_in(self, module: Module, name: str, depth: int, seen: set[tuple[Module, str]]) -> Found:
        scope = self._scope(module)
        for path in scope.bindings.get(name, ()):
            found = self._find(module, path, True, depth + 1, seen)
            if isinstance(found, Module | str | Outside):
                return found
        if name in scope.bindings:
            return Outside(module.file)
        for path in scope.globs:
            source = self._find(module, path, True, depth + 1, seen)
            inner = self._step(source, name, depth + 1, seen) if isinstance(source, Module) else None
            if inner is not None:
                return inner
        return None


def _scopes(syntax: Syntax) -> dict[str, _Scope]:
    """Inline module ("" for the file itself) -> what it declares."""
    scopes: dict[str, _Scope] = {}
    for name in syntax.defines:
        inline, _, item = name.rpartition("::")
        scopes.setdefault(inline, _Scope()).items.add(item)
    for imported in syntax.imports:
        if imported.kind == "use" and len(imported.names) == 2:
            scope = scopes.setdefault(imported.names[0], _Scope())
            path, binding = imported.name.split("::"), imported.names[1]
            if binding == "*":
                scope.globs.append(path)
            else:
                scope.bindings.setdefault(binding, []).append(path)
    return scopes
