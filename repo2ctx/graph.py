"""Files -> edges: every language's rules over the files it handles, gathered into one sorted graph.

An edge says "source needs target". Between two files there is at most one edge of a kind; where a file needs
another both hard and soft, the hard one stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from repo2ctx.languages import Language, RepoTree, languages
from repo2ctx.records import Edge, Syntax, Unresolved


@dataclass(frozen=True, slots=True)
class Graph:
    """All edges of a repository, sorted, and the references that should have made one and did not."""

    edges: tuple[Edge, ...]
    unresolved: tuple[Unresolved, ...]

    def among(self, paths: Collection[str]) -> Graph:
        """The part of the graph whose files are all in `paths`."""
        keep = frozenset(paths)
        return Graph(
            tuple(e for e in self.edges if e.source in keep and e.target in keep),
            tuple(u for u in self.unresolved if u.source in keep),
        )


def build_graph(tree: RepoTree, parsed: Mapping[str, tuple[str, Syntax]]) -> Graph:
    """Resolve what the parsed files import. `parsed`: path -> (linguist language, syntax)."""
    by_module: dict[str, tuple[Language, dict[str, Syntax]]] = {}
    for path in sorted(parsed):
        language, syntax = parsed[path]
        module = languages()[language]
        by_module.setdefault(module.__name__, (module, {}))[1][path] = syntax
    edges: dict[tuple[str, str, str], Edge] = {}
    unresolved: set[Unresolved] = set()
    for name in sorted(by_module):
        module, files = by_module[name]
        for found in module.resolve(tree, files):
            if isinstance(found, Unresolved):
                unresolved.add(found)
                continue
            target = tree.links.get(found.target, found.target)
            key = (found.source, target, found.kind)
            if found.source != target and (key not in edges or found.strength == "hard"):
                edges[key] = Edge(found.source, target, found.kind, found.strength)
    return Graph(tuple(sorted(edges.values())), tuple(sorted(unresolved)))
