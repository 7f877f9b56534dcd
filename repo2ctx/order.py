"""Edges -> order and rank: dependencies first, cycles broken where it costs least, the same on every run. Pure.

Order: strongly connected components are condensed and visited depth first, so that a file stands soon after what
it needs; roots go manifests, code, examples, tests, docs, configuration, each by path. Inside a component the hard
edges decide and soft ones give way; a cycle of hard edges is cut by the greedy heuristic of Eades, Lin and Smyth
(1993). Rank: PageRank over the edges that the order satisfies (soft ones at half weight), with the role as the prior;
the others would let weight turn in circles and pile up in any small cycle. Linear but for logarithms; no recursion.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import rustworkx as rx

from repo2ctx.records import Edge, OrderQuality, Placed

_ROLE_ORDER = {role: i for i, role in enumerate(("manifest", "code", "example", "test", "docs", "config"))}
_ROLE_PRIOR = {"manifest": 2.0, "code": 1.0, "docs": 0.5, "example": 0.3, "test": 0.2, "config": 0.1}
_ENTRY_POINTS = frozenset("__init__ __main__ main index app lib mod cli server setup".split())
_SOFT_WEIGHT = 0.5
_ENTRY_BONUS = 2.0
_RANK_DIGITS = 12  # what floating point keeps equal between machines


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order, and how good it is."""

    placed: tuple[Placed, ...]  # by position
    quality: OrderQuality


def order(roles: Mapping[str, str], edges: Collection[Edge]) -> Ordered:
    """Place every file of `roles` (path -> role); `edges` are among them."""
    paths = sorted(roles, key=lambda p: (_ROLE_ORDER[roles[p]], p))
    number = {path: i for i, path in enumerate(paths)}
    needs: list[dict[int, bool]] = [{} for _ in paths]  # file -> {file it needs: whether hard}
    for edge in sorted(edges):
        source, target = number[edge.source], number[edge.target]
        needs[source][target] = needs[source].get(target, False) or edge.strength == "hard"
    components = _components(len(paths), needs)
    sequence = _visit(components, needs)
    position = [0] * len(paths)
    component = [0] * len(paths)
    place = 0
    for index, members in enumerate(sequence):
        for file in _inside(members, needs):
            position[file], component[file] = place, index
            place += 1
    ranks = _ranks(paths, roles, needs, position)
    placed = [Placed(path, position[i], component[i], ranks[i]) for i, path in enumerate(paths)]
    quality = _quality(needs, position, components)
    quality = replace(quality, edges=len(edges), hard_edges=sum(e.strength == "hard" for e in edges))
    return Ordered(tuple(sorted(placed, key=lambda p: p.position)), quality)


def _components(count: int, needs: Sequence[Mapping[int, bool]], hard_only: bool = False) -> list[list[int]]:
    """Strongly connected components, each sorted, sorted by their first member."""
    graph = rx.PyDiGraph()
    graph.add_nodes_from(range(count))
    graph.extend_from_edge_list([(a, b) for a in range(count) for b, hard in needs[a].items() if hard or not hard_only])
    return sorted(sorted(c) for c in rx.strongly_connected_components(graph))


def _visit(components: list[list[int]], needs: Sequence[Mapping[int, bool]]) -> list[list[int]]:
    """The components, each after those it needs: depth first, in order of their first member."""
    home = {file: i for i, members in enumerate(components) for file in members}
    below = [sorted({home[b] for a in members for b in needs[a]} - {i}) for i, members in enumerate(components)]
    done = [False] * len(components)
    sequence: list[list[int]] = []
    for start in range(len(components)):
        stack = [] if done[start] else [(start, iter(below[start]))]
        done[start] = True
        while stack:
            current, rest = stack[-1]
            following = next((n for n in rest if not done[n]), None)
            if following is None:
                stack.pop()
                sequence.append(components[current])
            else:
                done[following] = True
                stack.append((following, iter(below[following])))
    return sequence


def _inside(members: Sequence[int], needs: Sequence[Mapping[int, bool]]) -> list[int]:
    """The files of one component in order: hard edges first, soft ones as far as they then can be."""
    if len(members) == 1:
        return list(members)
    local = {file: i for i, file in enumerate(members)}
    inner = [{local[b]: hard for b, hard in needs[a].items() if b in local} for a in members]
    knots = _components(len(members), inner, hard_only=True)
    home = {file: i for i, knot in enumerate(knots) for file in knot}
    hard: list[set[int]] = [set() for _ in knots]
    soft: list[set[int]] = [set() for _ in knots]
    for a, targets in enumerate(inner):
        for b, is_hard in targets.items():
            if home[a] != home[b]:
                (hard if is_hard else soft)[home[a]].add(home[b])
    result: list[int] = []
    for knot in _hard_then_soft(hard, soft):
        cut = _cut_cycle(knots[knot], inner) if len(knots[knot]) > 1 else knots[knot]
        result += [members[i] for i in cut]
    return result


def _hard_then_soft(hard: Sequence[set[int]], soft: Sequence[set[int]]) -> list[int]:
    """A topological order of the hard needs that leaves few soft ones open: among what is ready, first what has no
    open soft need, then what most others wait for compared with what it needs."""
    users_hard, users_soft = _reversed(hard), _reversed(soft)
    open_hard, open_soft = [len(n) for n in hard], [len(n) for n in soft]
    waiting = [len(u) for u in users_soft]
    done = [False] * len(hard)

    def entry(node: int) -> tuple[bool, int, int]:
        return (open_soft[node] > 0, open_soft[node] - waiting[node], node)

    ready = [entry(i) for i in range(len(hard)) if not open_hard[i]]
    heapq.heapify(ready)
    result = []
    while ready:
        best = heapq.heappop(ready)
        node = best[2]
        if done[node] or best != entry(node):
            continue
        done[node] = True
        result.append(node)
        for need in soft[node]:
            waiting[need] -= 1
        for user in users_soft[node]:
            open_soft[user] -= 1
        for user in users_hard[node]:
            open_hard[user] -= 1
        for other in {*soft[node], *users_soft[node], *users_hard[node]}:
            if not open_hard[other] and not done[other]:
                heapq.heappush(ready, entry(other))
    return result


def _reversed(needs: Sequence[Iterable[int]]) -> list[list[int]]:
    users: list[list[int]] = [[] for _ in needs]
    for a, targets in enumerate(needs):
        for b in sorted(targets):
            users[b].append(a)
    return users


def _cut_cycle(knot: Sequence[int], inner: Sequence[Mapping[int, bool]]) -> list[int]:
    """Greedy feedback-arc order: what needs nothing more goes first, what nothing needs goes last, and where
    neither is left, the file that most others need compared with what it needs goes first."""
    local = {file: i for i, file in enumerate(knot)}
    needs = [{local[b] for b, hard in inner[a].items() if hard and b in local} for a in knot]
    users = [set(u) for u in _reversed(needs)]
    left = set(range(len(knot)))
    balance = [(len(needs[i]) - len(users[i]), i) for i in range(len(knot))]
    heapq.heapify(balance)
    sinks = [i for i in reversed(range(len(knot))) if not needs[i]]
    sources = [i for i in range(len(knot)) if not users[i]]
    first: list[int] = []
    last: list[int] = []
    while left:
        if sinks:
            node, side = sinks.pop(), first
        elif sources:
            node, side = sources.pop(), last
        else:
            score, node = heapq.heappop(balance)
            if node in left and score != len(needs[node]) - len(users[node]):
                continue
            side = first
        if node not in left:
            continue
        left.discard(node)
        side.append(node)
        for other in sorted(needs[node] | users[node]):
            needs[other].discard(node)
            users[other].discard(node)
            if other in left:
                heapq.heappush(balance, (len(needs[other]) - len(users[other]), other))
                if not needs[other]:
                    sinks.append(other)
                elif not users[other]:
                    sources.append(other)
    return [knot[i] for i in (*first, *reversed(last))]


def _ranks(
    paths: Sequence[str], roles: Mapping[str, str], needs: Sequence[Mapping[int, bool]], position: Sequence[int]
) -> list[float]:
    """PageRank: a file's weight is what reaches it by following needs, from files weighted by their role."""
    if not paths:
        return []
    graph = rx.PyDiGraph()
    graph.add_nodes_from(range(len(paths)))
    graph.extend_from_weighted_edge_list(
        [
            (a, b, 1.0 if hard else _SOFT_WEIGHT)
            for a, targets in enumerate(needs)
            for b, hard in targets.items()
            if position[b] < position[a]
        ]
    )
    prior = {i: _prior(path, roles[path]) for i, path in enumerate(paths)}
    found = rx.pagerank(graph, weight_fn=float, personalization=prior, dangling=prior, max_iter=1000, tol=1e-9)
    return [round(found[i], _RANK_DIGITS) for i in range(len(paths))]


def _prior(path: str, role: str) -> float:
    depth = path.count("/")
    stem = path.rpartition("/")[2].partition(".")[0]
    bonus = _ENTRY_BONUS if stem in _ENTRY_POINTS and role == "code" else 1.0
    return _ROLE_PRIOR[role] * bonus / (1 + depth)


def _quality(
    needs: Sequence[Mapping[int, bool]], position: Sequence[int], components: Sequence[Sequence[int]]
) -> OrderQuality:
    pairs = [(a, b) for a, targets in enumerate(needs) for b in targets]
    cycles = [c for c in components if len(c) > 1]
    return OrderQuality(
        cycles=len(cycles),
        largest_cycle=max(map(len, cycles), default=0),
        satisfied=round(sum(position[b] < position[a] for a, b in pairs) / len(pairs), 6) if pairs else 1.0,
    )
