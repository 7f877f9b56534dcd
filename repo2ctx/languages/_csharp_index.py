"""All C# types of a repository, by name and by what they lie in.

A namespace and a type are both containers: a type is found by its name in a container, which a file may see or not.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from repo2ctx.languages import RepoTree
from repo2ctx.languages._csharp_projects import Projects, Using
from repo2ctx.records import Syntax

_DEEPEST = 16  # namespaces around a type: keeps the cost of absurd names linear
_MOST_USINGS = 300  # global ones of a project

Found = tuple[str, list[str]]
"""A type's full name and the files that declare it."""


class Index:
    """All types of the repository."""

    def __init__(self, tree: RepoTree, syntax: Mapping[str, Syntax]):
        self.syntax = syntax
        self.projects = Projects(tree, syntax)
        self.project_of = {path: self.projects.of(path) for path in sorted(syntax)}
        self.by_name: dict[str, dict[str, list[str]]] = {}  # name with arity -> container -> files
        self.containers: set[str] = set()  # those that have types
        self.namespaces: set[str] = {""}
        self.partial: set[str] = set()
        self.supers: dict[str, list[tuple[str, str]]] = {}  # full name -> the file that says so, the base's name
        self.members: dict[str, set[str]] = {}  # full name -> names that hide types
        self.methods: set[str] = set()
        self.extensions: dict[str, dict[str, list[str]]] = {}  # method -> full name of its class -> files
        self.global_usings: dict[tuple[str, ...], list[tuple[str, Using]]] = {}  # projects -> the file, what it says
        for path in sorted(syntax):
            self._add(path, syntax[path])
        self.heads = frozenset(part for name in self.namespaces for part in name.split("."))
        self.known = self.heads.union(self.by_name)
        self.main: dict[tuple[tuple[str, ...], str], list[str]] = {}
        self.visible: dict[tuple[tuple[str, ...], str], list[str]] = {}

    def _add(self, path: str, file: Syntax) -> None:
        for full in file.defines:
            container, _, name = full.rpartition(".")
            self.by_name.setdefault(name, {}).setdefault(container, []).append(path)
            self.containers.add(container)
        for tag in file.tags:
            what, full, names = (*tag.split(":", 2), "")[:3]
            self._note(path, what, full, names.split())
        for item in file.imports:
            if item.names[0].startswith("global "):
                using = (item.names[0].removeprefix("global "), item.name, item.names[2])
                known = self.global_usings.setdefault(self.project_of[path], [])
                if len(known) < _MOST_USINGS:
                    known.append((path, using))

    def _note(self, path: str, what: str, full: str, names: list[str]) -> None:
        if what == "namespace":
            self.namespaces.update(outwards(full))
        elif what == "super":
            self.supers.setdefault(full, []).extend((path, name) for name in names)
        elif what == "partial":
            self.partial.add(full)
        else:
            self.members.setdefault(full, set()).update(names)
        if what == "method":
            self.methods.update(names)
        elif what == "extension":
            for name in names:
                self.extensions.setdefault(name, {}).setdefault(full, []).append(path)

    def declaring(self, full: str) -> list[str]:
        """The files that declare a type, given its full name; [] if it is none."""
        container, _, name = full.rpartition(".")
        return self.by_name.get(name, {}).get(container, [])

    def seen(self, project: tuple[str, ...], full: str, files: list[str]) -> list[str]:
        """Of the files that declare a type, those that files of a project (of several, if linked) may need."""
        key = project, full
        if key not in self.visible:
            sees, of = self.projects.sees, self.project_of
            found = [f for f in files if of[f] == project or sees(project, of[f])]
            self.visible[key] = files if len(found) == len(files) else found
        return self.visible[key]

    def main_parts(self, project: tuple[str, ...], full: str) -> list[str]:
        """Of the parts of a type, those that have its name, or the only one that says what its bases are."""
        key = project, full
        if key not in self.main:
            files = self.seen(project, full, self.declaring(full))
            named = [f for f in files if _stem(f) == _plain(full)]
            deriving = {path for path, _ in self.supers.get(full, ())}
            self.main[key] = named or ([f for f in files if f in deriving] if len(deriving) == 1 else [])
        return self.main[key]

    def down(self, container: str, parts: Sequence[str]) -> Found | None:
        """The type that dotted names lead to from a container; where they end in members, the type around these."""
        found: Found | None = None
        for part in parts:
            full = f"{container}.{part}" if container else part
            files = self.by_name.get(part, {}).get(container)
            if files:
                found = full, files
            elif found or full not in self.namespaces:
                break
            container = full
        return found


def outwards(namespace: str) -> Iterator[str]:
    """A namespace and those around it, innermost first; the global one last."""
    for _ in range(_DEEPEST):
        if not namespace:
            break
        yield namespace
        namespace = namespace.rpartition(".")[0]
    yield ""


def _plain(full: str) -> str:
    return full.rpartition(".")[2].partition("`")[0]


def _stem(path: str) -> str:
    """A file's name without `.cs`, and without the type parameters of `Pair{T}.cs`."""
    return re.split(r"[{`]", posixpath.basename(path).removesuffix(".cs"), maxsplit=1)[0]
