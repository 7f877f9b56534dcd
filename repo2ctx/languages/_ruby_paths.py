"""Where Ruby looks for the file that a `require` names."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cache

from repo2ctx.languages import RepoTree, ancestors, join
from repo2ctx.records import Import, Syntax

_REQUIRE_PATHS = re.compile(r"\.require_paths?\s*=\s*(?:\[([^\]]{0,500})\]|%w[\[({]([^\])}]{0,500})|([^\n]{0,200}))")
_WORD = re.compile(r"[^\s,\"'\[\]]+")
_TESTS = frozenset({"test", "tests", "spec", "specs", "features"})
_CODE = frozenset({"lib", "app"})


@cache
def is_test(path: str) -> bool:
    """Whether a path lies among tests: in `test` or `spec`, unless that is itself in `lib` or `app`."""
    first = next((p for p in path.split("/")[:-1] if p in _TESTS or p in _CODE), "")
    return first in _TESTS


@cache
def project(path: str) -> str:
    """The folder that a file's `lib`, `app`, `test` or `spec` lies in; else the file's own."""
    parts = path.split("/")[:-1]
    return "/".join(next((parts[:i] for i, p in enumerate(parts) if p in _TESTS or p in _CODE), parts))


def distance(path: str, other: str) -> int:
    """How far two paths are apart: fewer shared folders is farther."""
    return -len(posixpath.commonprefix([path.split("/"), other.split("/")]))


def gem_roots(tree: RepoTree) -> list[str]:
    """The `require_paths` of every gem of the repository: `lib`, unless its gemspec says otherwise."""
    found: dict[str, None] = {}
    for config in tree.configs("*.gemspec"):
        folder = posixpath.dirname(config)
        said = _REQUIRE_PATHS.search(tree.text(config) or "")
        names = _WORD.findall(next(filter(None, said.groups()), "")) if said else []
        for name in names or ["lib"]:
            root = join(folder, name)
            if root is not None and root in tree.directories:
                found[root] = None
    return list(found)


def gem_commands(tree: RepoTree) -> Iterator[str]:
    """The commands of every gem, and the file that is required by its name."""
    for config in tree.configs("*.gemspec"):
        folder, name = posixpath.split(config.removesuffix(".gemspec"))
        for commands in ("exe", "bin"):
            yield from tree.by_directory.get(posixpath.join(folder, commands), ())
        yield from (posixpath.join(folder, "lib", f"{stem}.rb") for stem in (name, name.replace("-", "/")))


class LoadPath:
    """Looks up what is required, for one repository."""

    def __init__(self, tree: RepoTree, syntax: Mapping[str, Syntax]):
        self.tree = tree
        self.in_gems: dict[str, list[str]] = {}  # a name as required, with its ending -> files of gem roots
        roots = set(gem_roots(tree))
        for folder, paths in sorted(tree.by_directory.items()):
            for root in ancestors(folder):
                for path in paths if root in roots else ():
                    self.in_gems.setdefault(path[len(root) :].lstrip("/"), []).append(path)
        self.added: dict[str, list[str]] = {}  # folder -> roots that a file in it adds to the load path
        for path in sorted(syntax):
            for tag in syntax[path].tags:
                root_added = join("", tag.removeprefix("root:")) if tag.startswith("root:") else None
                if root_added is not None and root_added in tree.directories:
                    self.added.setdefault(posixpath.dirname(path), []).append(root_added)
        self.near: dict[tuple[str, bool], list[str]] = {}

    def find(self, item: Import, path: str) -> str | None:
        """The file that an import of `path` names; None if it is external, "" if it should be here and is not."""
        mode = item.names[0]
        ending = "" if mode.startswith("load") or item.name.endswith(".rb") else ".rb"
        name = item.name + ending
        if mode in ("relative", "here", "load-here"):
            place = join(posixpath.dirname(path) if mode == "relative" else "", name)
            if place in self.tree.paths:
                return place
            # A path without an ending may be a built extension's, and a folder is no file to need.
            return None if item.name.endswith((".so", ".bundle")) or item.name in self.tree.directories else ""
        if name.startswith(("./", "../")):
            return self._from_working_folder(name, path)
        if mode == "load":
            return self._on_load_path(name, path) or self._from_working_folder(name, path)
        return self._on_load_path(name, path) or ("" if self._looks_internal(item.name, path) else None)

    def _on_load_path(self, name: str, path: str) -> str | None:
        folder, test = posixpath.dirname(path), is_test(path)
        if (folder, test) not in self.near:
            self.near[folder, test] = list(self._near_roots(folder, test))
        found = self.tree.first(join(root, name) or "" for root in self.near[folder, test])
        return found or min(self.in_gems.get(name, ()), key=lambda p: (distance(path, p), p), default=None)

    def _near_roots(self, folder: str, test: bool) -> Iterator[str]:
        for outer in ancestors(folder):
            yield from self.added.get(outer, ())
            for name in ("lib", "test", "spec") if test else ("lib",):
                root = posixpath.join(outer, name)
                if root in self.tree.directories:
                    yield root

    def _from_working_folder(self, name: str, path: str) -> str | None:
        """Programs are started in some folder above the file."""
        return self.tree.first(join(outer, name) or "" for outer in ancestors(posixpath.dirname(path)))

    def _looks_internal(self, name: str, path: str) -> bool:
        """Whether the folder that the name is in is here, and so is the file that stands for that folder."""
        main = self._on_load_path(f"{posixpath.dirname(name)}.rb", path) if "/" in name else None
        return main is not None and main.removesuffix(".rb") in self.tree.directories
