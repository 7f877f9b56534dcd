"""Which C# files are compiled together: the .csproj files and what they import.

A project is the folder of its .csproj files; a file belongs to the nearest one above it, and to those that link it with
`Compile Include`. Every project imports the nearest Directory.Build.props and .targets. Conditions are not evaluated:
whatever some build refers to counts. A package or assembly that has the name of a project here is taken for it. A
project is open, so that it sees all others, if its file cannot be read or a project that it refers to is not found.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from xml.etree import ElementTree

from repo2ctx.languages import RepoTree, join

Using = tuple[str, str, str]
"""How (namespace, static or alias), the name, and the alias."""

PATTERNS = ("*.csproj", "*.props", "*.targets", "*.projitems")
_INHERITED = ("Directory.Build.props", "Directory.Build.targets")
_IMPLICIT = tuple(
    "System System.Collections.Generic System.IO System.Linq System.Net.Http System.Threading System.Threading.Tasks".split()
)
_THIS_FOLDER = "$(MSBuildThisFileDirectory)"
_MOST_REACHED = 300  # projects that one may refer to before it counts as open: keeps hostile graphs cheap
_MOST_FILES = 50  # that one project imports
_MOST_USINGS = 300  # of one project
_MOST_ITEMS = 500_000  # that all projects together may name, and files that they may look at to link some
_DECLARES = re.compile("<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)


@dataclass(slots=True)
class _Text:
    """What one MSBuild file says, as it is written there."""

    references: list[str] = field(default_factory=list)
    assemblies: list[str] = field(default_factory=list)
    imported: list[str] = field(default_factory=list)
    compiled: list[str] = field(default_factory=list)
    usings: list[Using] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    implicit: bool = False


@dataclass(slots=True)
class _Project:
    refers_to: dict[str, None] = field(default_factory=dict)
    usings: list[Using] = field(default_factory=list)
    open: bool = False


class Projects:
    """The projects of a repository, and which of them see which."""

    def __init__(self, tree: RepoTree, sources: Collection[str]):
        self.tree = tree
        self.files = sorted((p for p in tree.paths if p.endswith(".csproj")), key=lambda p: (p.count("/"), p))
        self.folders = frozenset(posixpath.dirname(p) for p in self.files)
        self.by_lower: dict[str, str] = {}
        self.by_name: dict[str, list[str]] = {}  # lower-case base name -> paths
        for pattern in PATTERNS:
            for path in tree.configs(pattern):
                self.by_lower.setdefault(path.lower(), path)
                self.by_name.setdefault(posixpath.basename(path).lower(), []).append(path)
        self.texts: dict[str, _Text | None] = {}
        self.imports: dict[str, list[str]] = {}
        self.linked: dict[str, list[str]] = {}
        self.items_left = _MOST_ITEMS
        self.sources = sorted(sources)
        self.nearest: dict[str, tuple[str, ...]] = {}
        self.reached: dict[str, frozenset[str] | None] = {}
        self.projects: dict[str, _Project] = {}
        for path in self.files:
            self._read(path)

    def of(self, path: str) -> tuple[str, ...]:
        """The folders of the projects that compile the file, its own first; none if there are no project files."""
        own = self._above(posixpath.dirname(path))
        linked = self.linked.get(path)
        return tuple(dict.fromkeys((*own, *linked))) if linked else own

    def sees(self, source: tuple[str, ...], target: tuple[str, ...]) -> bool:
        """Whether a file of the projects `source` may name types of one in `target`."""
        if source == target or not source or not target:
            return True
        for project in source:
            reached = self._reach(project)
            if reached is None or not reached.isdisjoint(target):
                return True
        return False

    def usings(self, projects: tuple[str, ...]) -> Iterator[Using]:
        """What the project files make visible in every file."""
        for project in projects:
            yield from self.projects[project].usings[:_MOST_USINGS]

    def _above(self, folder: str) -> tuple[str, ...]:
        passed: list[str] = []
        at = folder
        while at not in self.nearest and at not in self.folders and at:
            passed.append(at)
            at = posixpath.dirname(at)
        found = self.nearest.get(at, (at,) if at in self.folders else ())
        self.nearest.update(dict.fromkeys((*passed, at), found))
        return found

    def _reach(self, project: str) -> frozenset[str] | None:
        """The project and all that it refers to, directly or through others; None if that cannot be known."""
        if project not in self.reached:
            seen = {project}
            waiting = [project]
            while waiting and len(seen) <= _MOST_REACHED:
                for other in self.projects[waiting.pop()].refers_to:
                    if other not in seen and other in self.projects:  # a reference may name a file of properties
                        seen.add(other)
                        waiting.append(other)
            known = not waiting and not self.projects[project].open
            self.reached[project] = frozenset(seen) if known else None
        return self.reached[project]

    def _read(self, path: str) -> None:
        folder = posixpath.dirname(path)
        project = self.projects.setdefault(folder, _Project())
        said = [(posixpath.dirname(file), part) for file, part in self._all_of(path)]
        project.open |= not said
        removed = {name for _, part in said for name in part.removed}
        if any(part.implicit for _, part in said):
            project.usings += [("namespace", name, "") for name in _IMPLICIT if name not in removed]
        for this, part in said:
            project.usings += [using for using in part.usings if using[1] not in removed]
            self.items_left -= len(part.references) + len(part.assemblies) + len(part.compiled)
            if self.items_left < 0:
                project.open = True
                return
            for name in part.references:
                target = self._found(folder, this, name)
                project.open |= target is None
                if target is not None:
                    project.refers_to[posixpath.dirname(target)] = None
            for name in part.assemblies:
                named = self.by_name.get(f"{name.lower()}.csproj", [])
                if len(named) == 1:
                    project.refers_to[posixpath.dirname(named[0])] = None
            for name in part.compiled:
                self._link(folder, this, name)

    def _all_of(self, path: str) -> Iterator[tuple[str, _Text]]:
        """A project file, what it inherits and what these import; nothing if the file itself cannot be read."""
        folder = posixpath.dirname(path)
        waiting = [path, *(found for name in _INHERITED if (found := self._nearest(folder, name)))]
        seen: set[str] = set()
        for file in waiting:  # which grows
            if file in seen or len(seen) >= _MOST_FILES:
                continue
            seen.add(file)
            if file not in self.texts:
                self.texts[file] = _parse(self.tree.text(file))
            part = self.texts[file]
            if part is None and file == path:
                return
            if part is not None:
                yield file, part
                waiting += self._imports(file, part)

    def _nearest(self, folder: str, name: str) -> str | None:
        return next((p for p in (posixpath.join(at, name) for at in _upwards(folder)) if p in self.tree.paths), None)

    def _imports(self, file: str, part: _Text) -> list[str]:
        if file not in self.imports:
            this = posixpath.dirname(file)
            found = [self._imported(this, name) for name in part.imported[:_MOST_FILES]]
            self.imports[file] = list(dict.fromkeys(path for path in found if path))
        return self.imports[file]

    def _imported(self, this: str, name: str) -> str | None:
        if "OfFileAbove" in name:
            wanted = next((inherited for inherited in _INHERITED if inherited in name), None)
            return self._nearest(posixpath.dirname(this), wanted) if wanted and this else None
        return self._found(this, this, name)

    def _found(self, base: str, this: str, name: str) -> str | None:
        """The MSBuild file that a path means; by its name alone if the path has variables."""
        path = _inside(base, this, name)
        if path is not None and path.lower() in self.by_lower:
            return self.by_lower[path.lower()]
        named = self.by_name.get(posixpath.basename(name.replace("\\", "/")).lower(), []) if "$(" in name else []
        return named[0] if len(named) == 1 else None

    def _link(self, folder: str, this: str, name: str) -> None:
        """Take the files that `Compile Include` names from outside the folder into the project."""
        path = _inside(folder, this, name)
        if path is None or not folder or path.startswith(f"{folder}/"):
            return
        fixed, star, _ = path.partition("*")
        if not star:
            found = [path] if path in self.tree.paths else []
        else:
            above = posixpath.dirname(fixed)
            below = self._below(above) if "**" in path else self.tree.by_directory.get(above, ())
            self.items_left -= len(below)
            found = [p for p in below if fnmatchcase(posixpath.basename(p), posixpath.basename(path))]
        if self.items_left >= 0:
            for file in found:
                self.linked.setdefault(file, []).append(folder)

    def _below(self, folder: str) -> list[str]:
        """The sources in the folder and below."""
        start = f"{folder}/" if folder else ""
        first, last = bisect_left(self.sources, start), bisect_left(self.sources, f"{start}\U0010ffff")
        return self.sources[first:last]


def _upwards(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
    yield ""


def _inside(base: str, this: str, name: str) -> str | None:
    """A path as MSBuild writes it, repo-relative; None if it leaves the repository or has variables. `base`: the folder
    that it counts from; `this`: that of the file that has it."""
    if name.startswith(_THIS_FOLDER):
        base, name = this, f"./{name[len(_THIS_FOLDER) :]}"
    name = name.removeprefix("$(MSBuildProjectDirectory)").replace("\\", "/")
    return None if "$(" in name else join(base, name.lstrip("/"))


def _parse(source: str | None) -> _Text | None:
    """What an MSBuild file says; None if it cannot be read, or declares what project files never do."""
    if source is None or _DECLARES.search(source):
        return None
    try:
        root = ElementTree.fromstring(source.lstrip("\ufeff"))
    except (ElementTree.ParseError, ValueError):
        return None
    said = _Text()
    lists = {
        "ProjectReference": said.references, "Reference": said.assemblies, "PackageReference": said.assemblies,
        "Compile": said.compiled,
    }  # fmt: skip
    for element in root.iter():
        kind = element.tag.rpartition("}")[2]
        included = [part.strip() for part in element.get("Include", "").split(";") if part.strip()]
        if kind in lists:
            lists[kind].extend(name.partition(",")[0].strip() for name in included)
        elif kind == "Import":
            said.imported.append(element.get("Project", ""))
        elif kind == "Using":
            alias = element.get("Alias", "")
            how = "alias" if alias else "static" if element.get("Static", "").lower() == "true" else "namespace"
            said.usings += [(how, name, alias) for name in included]
            said.removed += [part.strip() for part in element.get("Remove", "").split(";")]
        elif kind == "ImplicitUsings":
            said.implicit |= (element.text or "").strip().lower() in ("enable", "true")
    return said
