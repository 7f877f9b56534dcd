"""What an import looks like in each language, and which file of the repository it means.

A language is one module here. It defines

    GRAMMARS      {linguist name: function that returns the tree-sitter grammar}
    CONFIG_FILES  base-name patterns of the small files that its rules read (`go.mod`, `tsconfig*.json`)
    scan(root: Node, path: str) -> Syntax
                  pure syntax, one file at a time: what it imports, declares and uses. Runs where it can be
                  killed, so it must not need anything but the tree. Walk with `walk`, never by recursion.
    resolve(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Edge | Unresolved | EntryPoint]
                  all files of the language at once, so that it can index them first. An import that is
                  surely external yields nothing; one that looks internal and leads nowhere is Unresolved.
                  An EntryPoint is a file that a manifest names as one.
    OUTLINE       what of a file stands in its outline: a `Shape` (`_shapes.py`)

The kind of an edge is import, include, mod, use or require, as the language says it; autoload, where nothing in the file says it
but the language finds the name; implements, from a header to its source; test, where only a test run makes the tie, or a test's
name alone (`repo2ctx.testnames`).

The module is named in `MODULES`. Nothing else has to change. Languages that have no module share `generic`.
"""

from __future__ import annotations

import importlib
import posixpath
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, cached_property
from types import ModuleType
from typing import Protocol, cast

from tree_sitter import Node

from repo2ctx.languages._shapes import Shape
from repo2ctx.records import Found, Syntax

_LONGEST_LINE = 20_000
_MOST_DOTS = 100
_CROWD = 64  # files that declare one name
_DEEP_KEY = re.compile(rf"[\s\[]*(?:(?:[\w-]+|\"[^\"]*\"|'[^']*')\s*\.\s*){{{_MOST_DOTS}}}")

MODULES = ("python", "javascript", "go", "java", "csharp", "c", "rust", "ruby", "php")
"""The modules of this package that are languages, in the order in which they resolve."""


class Language(Protocol):
    """The shape of a language module."""

    __name__: str
    GRAMMARS: Mapping[str, Callable[[], object]]
    CONFIG_FILES: Collection[str]
    OUTLINE: Shape

    def scan(self, root: Node, path: str) -> Syntax: ...

    def resolve(self, tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Found]: ...


@cache
def languages() -> dict[str, Language]:
    """Linguist name -> the module that handles it."""
    found: dict[str, Language] = {}
    for name in MODULES:
        module = cast(Language, importlib.import_module(f"repo2ctx.languages.{name}"))
        found.update(dict.fromkeys(module.GRAMMARS, module))
    return found


def rules(name: str) -> ModuleType:
    """The module that resolves what files of a language import: its own, or the generic one."""
    own = languages().get(name)
    return importlib.import_module(own.__name__ if own else "repo2ctx.languages.generic")


@cache
def _config_patterns() -> tuple[str, ...]:
    return tuple(sorted({pattern for module in languages().values() for pattern in module.CONFIG_FILES}))


@cache
def is_config_file(name: str) -> bool:
    """Whether some language's rules read the file with this base name."""
    return any(fnmatchcase(name, pattern) for pattern in _config_patterns())


class RepoTree:
    """The names of a repository's files, and the text of the few that import rules read.

    `paths` are repo-relative with "/"; the repository root is "". Directories exist if a file lies in them.
    `links` are symbolic links to files of the repository: their names count as files too, and an edge to one
    becomes an edge to the file it names.
    """

    def __init__(
        self,
        paths: Collection[str],
        config_texts: Mapping[str, str] | None = None,
        links: Mapping[str, str] | None = None,
    ):
        self.links = dict(links or {})
        self.paths = frozenset((*paths, *self.links))
        self._texts = dict(config_texts or {})

    def text(self, path: str) -> str | None:
        """The text of a configuration file; None if there is none, or no person would write it so.

        Outside JSON, that is a line of over 20,000 characters, or one of over 100 dots before an `=` or a `]`: parsers of
        TOML and INI are quadratic on such.
        """
        found = self._texts.get(path)
        if found is None or path.endswith(".json"):
            return found
        lines = found.split("\n")
        if max(map(len, lines)) > _LONGEST_LINE:
            return None
        if path.endswith(".toml") and any(row.count(".") > _MOST_DOTS and _DEEP_KEY.match(row) for row in lines):
            return None
        return found

    def configs(self, pattern: str) -> list[str]:
        """Paths of the readable configuration files whose base name matches, shortest path first."""
        found = [p for p in self._texts if fnmatchcase(posixpath.basename(p), pattern)]
        return sorted(found, key=lambda p: (p.count("/"), p))

    @cached_property
    def directories(self) -> frozenset[str]:
        """Every directory that holds a file, directly or below; "" among them."""
        seen: set[str] = {""}
        for path in self.paths:
            folder = posixpath.dirname(path)
            while folder not in seen:
                seen.add(folder)
                folder = posixpath.dirname(folder)
        return frozenset(seen)

    @cached_property
    def by_name(self) -> Mapping[str, tuple[str, ...]]:
        """Base name -> the paths that have it, sorted."""
        found: dict[str, list[str]] = {}
        for path in sorted(self.paths):
            found.setdefault(posixpath.basename(path), []).append(path)
        return {name: tuple(paths) for name, paths in found.items()}

    @cached_property
    def by_directory(self) -> Mapping[str, tuple[str, ...]]:
        """Directory -> the paths directly in it, sorted."""
        found: dict[str, list[str]] = {}
        for path in sorted(self.paths):
            found.setdefault(posixpath.dirname(path), []).append(path)
        return {folder: tuple(paths) for folder, paths in found.items()}

    def first(self, candidates: Collection[str] | Iterator[str]) -> str | None:
        """The first candidate that is a file of the repository."""
        return next((c for c in candidates if c in self.paths), None)


def join(folder: str, relative: str) -> str | None:
    """`relative` seen from `folder`, normalised and repo-relative; None if it leaves the repository."""
    if relative.startswith("/"):
        return None
    path = posixpath.normpath(posixpath.join(folder, relative))
    if path == ".":
        return ""
    return None if path == ".." or path.startswith("../") else path


def ancestors(folder: str) -> Iterator[str]:
    """The folder itself, then each above it, to the root."""
    yield folder
    while folder:
        folder = posixpath.dirname(folder)
        yield folder


class Crowds:
    """Of very many files that declare one name, only those beside a file are looked at; each name's are grouped once."""

    def __init__(self) -> None:
        self._folders: dict[Hashable, dict[str, list[str]]] = {}

    def near(self, name: Hashable, files: Collection[str], folder: str) -> list[str]:
        """The files that declare a name, or, of a crowd, the first few of them in the folder."""
        if len(files) <= _CROWD:
            return list(files)
        if name not in self._folders:
            folders = self._folders[name] = {}
            for file in files:
                folders.setdefault(posixpath.dirname(file), []).append(file)
        return self._folders[name].get(folder, [])[:_CROWD]


def walk(root: Node, want: Collection[str], descend: Collection[str] | None = None) -> Iterator[Node]:
    """Nodes whose type is in `want`, in source order, entering only nodes whose type is in `descend`
    (the root and syntax errors always; every node if None). A wanted node is entered only if its type
    is in `descend` too. Iterative, so deep trees are safe; cost is in proportion to the nodes looked at.
    """
    for node, _ in walk_within(root, want, descend):
        yield node


def walk_within(
    root: Node, want: Collection[str], descend: Collection[str] | None = None
) -> Iterator[tuple[Node, Sequence[Node]]]:
    """The same with the nodes around each, outermost first; the list changes as the walk goes on.

    Asking a node for its parent searches from the root, which deep trees make quadratic.
    """
    cursor = root.walk()
    around: list[Node] = [root]
    if not cursor.goto_first_child():
        return
    while True:
        node = cursor.node
        assert node is not None
        kind = node.type
        if kind in want:
            yield node, around
        if (descend is None or kind in descend or kind == "ERROR") and cursor.goto_first_child():
            around.append(node)
            continue
        while not cursor.goto_next_sibling():
            cursor.goto_parent()
            around.pop()
            if not around:
                return


def text(node: Node | None) -> str:
    """The source text of a node; undecodable bytes become U+FFFD, a missing node the empty string."""
    if node is None or node.text is None:
        return ""
    return node.text.decode("utf-8", "replace")


def line(node: Node) -> int:
    """The line a node starts on, counted from 1."""
    return node.start_point[0] + 1
