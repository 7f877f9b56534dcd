"""Files -> edges: every language's rules over the files it handles, gathered into one sorted graph.

An edge says "source needs target". Between two files there is at most one edge of a kind; where a file needs
another both hard and soft, the hard one stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from repo2ctx.languages import RepoTree, rules
from repo2ctx.records import Edge, EntryPoint, Found, Syntax, Unresolved
from repo2ctx.testnames import test_edges

Resolved = list[Found]

MAIN = "its main function"
"""What says that a file is an entry point, where no manifest does."""


@dataclass(frozen=True, slots=True)
class Graph:
    """All edges of a repository, sorted, and the references that should have made one and did not.

    problems: files whose language's rules were given up -> why; they have no edges. entry_points: path -> what
    makes the file one. exports: path -> how many names it offers, if any.
    """

    edges: tuple[Edge, ...]
    unresolved: tuple[Unresolved, ...]
    problems: Mapping[str, str]
    entry_points: Mapping[str, str] = field(default_factory=dict)
    exports: Mapping[str, int] = field(default_factory=dict)

    def among(self, paths: Collection[str]) -> Graph:
        """The part of the graph whose files are all in `paths`."""
        keep = frozenset(paths)
        return Graph(
            tuple(e for e in self.edges if e.source in keep and e.target in keep),
            tuple(u for u in self.unresolved if u.source in keep),
            {path: problem for path, problem in self.problems.items() if path in keep},
            {path: said_by for path, said_by in self.entry_points.items() if path in keep},
            {path: count for path, count in self.exports.items() if path in keep},
        )


def resolve(language: str, tree: RepoTree, files: Mapping[str, Syntax]) -> Resolved:
    """What the rules of a language say of its files. `language`: any linguist name that they handle."""
    return list(rules(language).resolve(tree, files))


def build_graph(
    tree: RepoTree,
    parsed: Mapping[str, tuple[str, Syntax]],
    resolver: Callable[[str, RepoTree, Mapping[str, Syntax]], Resolved | str] = resolve,
) -> Graph:
    """Resolve what the parsed files import. `parsed`: path -> (linguist language, syntax). `resolver` runs `resolve`,
    or says why it was given up."""
    by_module: dict[str, tuple[str, dict[str, Syntax]]] = {}
    for path in sorted(parsed):
        language, syntax = parsed[path]
        by_module.setdefault(rules(language).__name__, (language, {}))[1][path] = syntax
    edges: dict[tuple[str, str, str], Edge] = {}
    unresolved: set[Unresolved] = set()
    problems: dict[str, str] = {}
    named: set[EntryPoint] = set()
    for module in sorted(by_module):
        language, files = by_module[module]
        answer = resolver(language, tree, files)
        if isinstance(answer, str):
            problems.update(dict.fromkeys(files, answer))
            continue
        for found in answer:
            if isinstance(found, Unresolved):
                unresolved.add(found)
                continue
            if isinstance(found, EntryPoint):
                named.add(EntryPoint(tree.links.get(found.path, found.path), found.said_by))
                continue
            target = tree.links.get(found.target, found.target)
            key = (found.source, target, found.kind)
            if found.source != target and (key not in edges or found.strength == "hard"):
                edges[key] = Edge(found.source, target, found.kind, found.strength)
        edges.update(((e.source, e.target, e.kind), e) for e in test_edges(files, list(edges.values())))
    return Graph(
        tuple(edges[key] for key in sorted(edges)),
        tuple(sorted(unresolved)),
        problems,
        {path: MAIN for path, (_, syntax) in parsed.items() if syntax.main}
        | {entry.path: entry.said_by for entry in sorted(named, reverse=True)},
        {path: syntax.exports for path, (_, syntax) in sorted(parsed.items()) if syntax.exports},
    )
