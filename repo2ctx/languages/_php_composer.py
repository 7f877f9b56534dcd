"""Where composer.json files say that PHP classes lie: `psr-4`, `psr-0`, `classmap` and `files`, of `autoload` and
`autoload-dev`. Every composer.json of the repository counts, so path repositories need no rule of their own."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from typing import Any

from repo2ctx.languages import RepoTree, join

_DEEPEST = 32  # parts of a name that are looked at: keeps the cost of absurd names linear
_DEEPEST_FOLDER = 64
_MOST_FOLDERS = 64  # for one prefix; of a great many packages, those nearest to the root

Mapped = dict[str, list[tuple[str, str]]]
"""Prefix of class names -> the folder of the composer.json that says so, and the folder that it names."""


class Autoload:
    """What the autoloaders of a repository's packages would do with a name."""

    def __init__(self, tree: RepoTree):
        self.tree = tree
        self.psr4: Mapped = {}
        self.psr0: Mapped = {}
        self.commands: list[str] = []  # files that composer.json names under `bin`
        self.listed: dict[str, str] = {}  # file or folder of `files` and `classmap` -> the package's folder
        for path in tree.configs("composer.json"):
            self._read(posixpath.dirname(path), _object(tree.text(path)))

    def _read(self, owner: str, config: dict[str, Any]) -> None:
        self.commands += [path for path in _inside(owner, config.get("bin")) if path in self.tree.paths]
        for key in ("autoload", "autoload-dev"):
            section = config.get(key)
            if not isinstance(section, dict):
                continue
            for kind, mapped in (("psr-4", self.psr4), ("psr-0", self.psr0)):
                prefixes = section.get(kind)
                for prefix, folders in prefixes.items() if isinstance(prefixes, dict) else ():
                    known = mapped.setdefault(prefix.lstrip("\\"), [])
                    known += [(owner, folder) for folder in _inside(owner, folders)][: _MOST_FOLDERS - len(known)]
            for kind in ("files", "classmap"):
                self.listed.update(dict.fromkeys(_inside(owner, section.get(kind)), owner))

    def paths(self, name: str) -> dict[str, str]:
        """The files of the repository in which a class may be, the best first -> the folder of their package."""
        short = name.rpartition("\\")[2]
        if not any(f"{last}.php" in self.tree.by_name for last in (short, short.rpartition("_")[2])):
            return {}
        found: dict[str, str] = {}
        for owner, path in self._candidates(name, 0):
            if path in self.tree.paths:
                found.setdefault(path, owner)
        return found

    def owner_of_listed(self, path: str) -> str | None:
        """The folder of the package whose `files` or `classmap` has the file, itself or by a folder above it."""
        for _ in range(_DEEPEST_FOLDER):
            if path in self.listed:
                return self.listed[path]
            if not path:
                return None
            path = posixpath.dirname(path)
        return None

    def is_mapped(self, name: str) -> bool:
        """Whether the class would have to be in a folder that the repository has: prefixes are shared with packages
        that are elsewhere (a repository with `Acme\\` needs `Acme\\Http\\Client` from another)."""
        return any(posixpath.dirname(path) in self.tree.directories for _, path in self._candidates(name, 1))

    def _candidates(self, name: str, shortest: int) -> Iterator[tuple[str, str]]:
        """Package's folder and path, longest prefix first; `shortest`: how long a prefix must be."""
        if self.psr4:
            ends = [i + 1 for i, c in enumerate(name) if c == "\\"][:_DEEPEST]
            for end in (*reversed(ends), 0):
                for owner, folder in self.psr4.get(name[:end], ()) if end >= shortest else ():
                    yield owner, posixpath.join(folder, f"{name[end:].replace(chr(92), '/')}.php")
        if self.psr0:
            space, _, short = name.rpartition("\\")
            inner = posixpath.join(space.replace("\\", "/"), f"{short.replace('_', '/')}.php")
            ends = [end for i, c in enumerate(name) if c in "\\_" for end in (i, i + 1)][: 2 * _DEEPEST]
            for end in (len(name), *reversed(ends), 0):
                if end >= shortest:
                    for owner, folder in self.psr0.get(name[:end], ()):
                        yield owner, posixpath.join(folder, inner)


def _object(source: str | None) -> dict[str, Any]:
    try:
        config = json.loads((source or "").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


def _inside(owner: str, names: object) -> Iterator[str]:
    """The paths that one value or list names, as far as they are in the repository."""
    for name in names if isinstance(names, list) else [names]:
        path = join(owner, name) if isinstance(name, str) else None
        if path is not None:
            yield path
