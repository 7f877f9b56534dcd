"""Which folder of the repository a Go import path means."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping

from repo2ctx.languages import RepoTree, ancestors, join
from repo2ctx.records import Syntax

_DEEPEST = 64  # slashes of an import path: keeps the cost of absurd ones linear


class ImportPaths:
    """Import path -> folder of the repository. Every module of the repository counts, used by go.work or not."""

    def __init__(self, tree: RepoTree, syntax: Mapping[str, Syntax]):
        self.tree = tree
        self.code = frozenset(posixpath.dirname(path) for path in syntax)
        self.modules: dict[str, str] = {}  # folder of a go.mod -> module path
        self.replaced: dict[str, dict[str, str]] = {}  # go.mod or go.work -> path -> folder
        for config in (*tree.configs("go.mod"), *tree.configs("go.work")):
            self._read(config)
        self.homes: dict[str, str] = {}  # module path -> folder, the shallowest
        for folder, name in self.modules.items():
            self.homes.setdefault(name, folder)
        if not self.modules:
            self.homes.update(_guessed_home(syntax, self.code))
        self.tables: dict[str, dict[str, str]] = {}
        self.vendors: dict[str, list[str]] = {}  # folder -> those below it that hold packages by import path
        older = () if self.modules else ("src",)
        for start in ("vendor", "Godeps/_workspace/src", *older):
            for folder in sorted(f for f in tree.directories if f"/{f}".endswith(f"/{start}")):
                self.vendors.setdefault(folder[: -len(start)].rstrip("/"), []).append(folder)

    def _read(self, config: str) -> None:
        folder = posixpath.dirname(config)
        replaced = self.replaced.setdefault(config, {})
        for verb, first, target in _directives(self.tree.text(config) or ""):
            if verb == "module" and config.endswith("go.mod"):
                self.modules.setdefault(folder, first)
            elif verb == "replace" and target.startswith("."):
                local = join(folder, target)
                if local is not None:
                    replaced[first] = local

    def folder(self, path: str, name: str) -> str | None:
        """The folder that an import means, whether it exists or not; None if the import is external."""
        here = posixpath.dirname(path)
        if name.startswith(("./", "../")):
            return join(here, name)
        if name.count("/") > _DEEPEST:
            return None
        above = tuple(ancestors(here))
        home = next((folder for folder in above if folder in self.modules), None)
        found = self._in_modules(self._table(here, home, above), name)
        if home is None or found is None or not _inside(name, self.modules[home]):
            for vendor in (vendor for folder in above for vendor in self.vendors.get(folder, ())):
                if f"{vendor}/{name}" in self.code:
                    return f"{vendor}/{name}"
        return found

    def _table(self, here: str, home: str | None, above: tuple[str, ...]) -> dict[str, str]:
        """Module path -> folder, as a file in `here` sees it: the replacements of go.work are the strongest."""
        if here not in self.tables:
            table = dict(self.homes)
            if home is not None:
                table[self.modules[home]] = home
                table.update(self.replaced.get(posixpath.join(home, "go.mod"), {}))
            works = (posixpath.join(folder, "go.work") for folder in above)
            table.update(next((self.replaced[work] for work in works if work in self.replaced), {}))
            self.tables[here] = table
        return self.tables[here]

    def _in_modules(self, table: Mapping[str, str], name: str) -> str | None:
        module = name
        while module not in table:
            module = module.rpartition("/")[0]
            if not module:
                return None
        folder = posixpath.join(table[module], name[len(module) :].lstrip("/")).rstrip("/")
        # A folder below that is a module of its own does not belong to this one.
        nearest = next((f for f in ancestors(folder) if f in self.modules), table[module])
        return folder if nearest == table[module] or table[module] not in self.modules else None


def _directives(source: str) -> Iterator[tuple[str, str, str]]:
    """Lines of go.mod and go.work as verb, first word, and the word after `=>`."""
    block = ""
    for row in source.splitlines():
        left, _, right = row.partition("//")[0].partition("=>")
        words = [word.strip('"`') for word in left.replace("(", " ( ").split()]
        if words[:1] == [")"]:
            block = ""
        elif len(words) > 1 and words[1] == "(":
            block = words[0]
        elif block or len(words) > 1:
            verb, *rest = [block, *words] if block else words
            if rest:
                yield verb, rest[0], "".join(right.split()[:1]).strip('"`')


def _inside(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}/")


def _guessed_home(syntax: Mapping[str, Syntax], code: frozenset[str]) -> dict[str, str]:
    """The repository's own import path where no go.mod tells: most imports below it must lead to a folder."""
    names = {item.name for file in syntax.values() for item in file.imports if item.name.count("/") <= _DEEPEST}
    good: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    for parts in (name.split("/") for name in sorted(names)):
        for size in (2, 3):
            if len(parts) > size and "." in parts[0]:
                (good if "/".join(parts[size:]) in code else bad)["/".join(parts[:size])] += 1
    best = max(sorted(good), key=lambda name: good[name], default="")
    return {best: ""} if good[best] > bad[best] else {}
