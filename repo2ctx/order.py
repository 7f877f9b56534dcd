"""Edges -> order and rank: dependencies first, cycles broken where it costs least, the same on every run. Pure.

Order: strongly connected components are condensed and visited depth first, so that a file stands soon after what
it needs; roots go manifests, code, examples, tests, docs, configuration, each by path. Inside a component the weakest
edges give way first: soft ones that the file does not spell out (autoload, implements, test), then the other soft ones;
a cycle of hard edges is cut by the greedy heuristic of Eades, Lin and Smyth (1993). Then single files move to where more
of their edges hold, as long as one gains by it (sifting).

Rank: PageRank over the edges that the order satisfies (soft ones at half weight); the others would let weight turn in
circles and pile up in any small cycle, so what would follow them goes to all files by their prior. The prior of a file
is its role's, less the deeper it lies, doubled for an entry point (one that a manifest or its main function makes one, or
whose name does) and raised by the logarithm of the number of names that it exports. Linear but for logarithms; no deep
recursion.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import rustworkx as rx

from repo2ctx.records import Edge, OrderQuality, Placed

_ROLE_ORDER = {role: i for i, role in enumerate(("manifest", "code", "example", "test", "docs", "config", "generated"))}
_ROLE_PRIOR = {"manifest": 2.0, "code": 1.0, "docs": 0.5, "example": 0.3, "test": 0.2, "config": 0.1, "generated": 0.05}
_ENTRY_NAMES = frozenset("__init__ __main__ main index app lib mod cli server program".split())
_BY_NAME = "its name"
_IMPLICIT, _SOFT, _HARD = range(3)  # how firmly an edge holds
_IMPLICIT_KINDS = frozenset({"autoload", "implements", "test"})
_SOFT_WEIGHT = 0.5
_ENTRY_BONUS = 2.0
_EXPORTS_TO_DOUBLE = 8  # in powers of two: 255 names
_SIFT_ROUNDS = 10
_SIFT_STEPS = 20_000_000  # of files shifted, in one component
_RANK_DIGITS = 12  # what floating point keeps equal between machines


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order, and how good it is."""

    placed: tuple[Placed, ...]  # by position
    quality: OrderQuality


def order(
    roles: Mapping[str, str],
    edges: Collection[Edge],
    entry_points: Mapping[str, str] | None = None,
    exports: Mapping[str, int] | None = None,
) -> Ordered:
    """Place every file of `roles` (path -> role); `edges` are among them.

    entry_points: path -> what makes the file one; files that their name makes one need not be there.
    exports: path -> how many names the file offers, where known.
    """
    by_name = {p: _BY_NAME for p, role in roles.items() if role == "code" and _is_entry_name(p)}
    entry_points = by_name | dict(entry_points or {})
    exports = exports or {}
    paths = sorted(roles, key=lambda p: (_ROLE_ORDER[roles[p]], p))
    number = {path: i for i, path in enumerate(paths)}
    needs: list[dict[int, int]] = [{} for _ in paths]  # file -> {file it needs: how firmly}
    for edge in sorted(edges):
        source, target = number[edge.source], number[edge.target]
        if edge.strength == "soft" and roles[edge.source] == "manifest" != roles[edge.target]:
            continue  # a list of what is built, not a need
        needs[source][target] = max(needs[source].get(target, _IMPLICIT), _firmness(edge))
    components = _components(len(paths), needs, _IMPLICIT)
    sequence = _visit(components, needs)
    knot = {file: i for i, files in enumerate(_components(len(paths), needs, _HARD)) for file in files}
    position = [0] * len(paths)
    component = [0] * len(paths)
    place = 0
    for index, members in enumerate(sequence):
        for file in _sifted(_inside(members, needs, _IMPLICIT), needs, knot):
            position[file], component[file] = place, index
            place += 1
    prior = {i: _prior(p, roles[p], p in entry_points, exports.get(p, 0)) for i, p in enumerate(paths)}
    ranks = _ranks(prior, needs, position)
    placed = [
        Placed(path, position[i], component[i], ranks[i], entry_points.get(path, ""), exports.get(path, 0))
        for i, path in enumerate(paths)
    ]
    quality = _quality(needs, position, components)
    quality = replace(quality, edges=len(edges), hard_edges=sum(e.strength == "hard" for e in edges))
    return Ordered(tuple(sorted(placed, key=lambda p: p.position)), quality)


def _firmness(edge: Edge) -> int:
    if edge.strength == "hard":
        return _HARD
    return _IMPLICIT if edge.kind in _IMPLICIT_KINDS else _SOFT


def _components(count: int, needs: Sequence[Mapping[int, int]], least: int) -> list[list[int]]:
    """Strongly connected components under the edges at least so firm, each sorted, sorted by their first member."""
    graph = rx.PyDiGraph()
    graph.add_nodes_from(range(count))
    graph.extend_from_edge_list([(a, b) for a in range(count) for b, firm in needs[a].items() if firm >= least])
    return sorted(sorted(c) for c in rx.strongly_connected_components(graph))


def _visit(components: list[list[int]], needs: Sequence[Mapping[int, int]]) -> list[list[int]]:
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


def _inside(members: Sequence[int], needs: Sequence[Mapping[int, int]], least: int) -> list[int]:
    """The files of one component in order: edges as firm as `least` hold as far as the firmer ones let them."""
    if len(members) == 1:
        return list(members)
    local = {file: i for i, file in enumerate(members)}
    inner = [{local[b]: firm for b, firm in needs[a].items() if b in local} for a in members]
    if least == _HARD:
        return [members[i] for i in _cut_cycle(range(len(members)), inner)]
    knots = _components(len(members), inner, least + 1)
    home = {file: i for i, knot in enumerate(knots) for file in knot}
    firm: list[set[int]] = [set() for _ in knots]
    weak: list[set[int]] = [set() for _ in knots]
    for a, targets in enumerate(inner):
        for b, firmness in targets.items():
            if home[a] != home[b]:
                (firm if firmness > least else weak)[home[a]].add(home[b])
    result: list[int] = []
    for knot in _firm_then_weak(firm, weak):
        result += [members[i] for i in _inside(knots[knot], inner, least + 1)]
    return result


def _sifted(sequence: list[int], needs: Sequence[Mapping[int, int]], knot: Mapping[int, int]) -> list[int]:
    """Move files of a component, one at a time, to where most of their edges hold, as long as one gains by it.

    A firmer edge outweighs any number of others, and a hard one in no cycle of hard ones most of all. `knot`: which files
    are in a cycle of hard edges together. Ends after a few rounds, or when the moves have cost enough.
    """
    if len(sequence) < 3:
        return sequence
    place = {file: i for i, file in enumerate(sequence)}
    weigh = [(2 * len(sequence)) ** firm for firm in (_IMPLICIT, _SOFT, _HARD, _HARD + 1)]
    # File -> its neighbours, each with what the edge is worth: positive if the other comes first, negative if after.
    ties: dict[int, list[tuple[int, int]]] = {file: [] for file in sequence}
    for file in sequence:
        for need, firm in needs[file].items():
            if need in place:
                weight = weigh[firm + (firm == _HARD and knot[file] != knot[need])]
                ties[file].append((need, weight))
                ties[need].append((file, -weight))
    budget = _SIFT_STEPS
    for _ in range(_SIFT_ROUNDS):
        moved = False
        for file in sorted(sequence):
            target = _best_place(place[file], [(place[other], weight) for other, weight in ties[file]])
            if target == place[file] or budget < 0:
                continue
            start = place[file]
            sequence.insert(target, sequence.pop(start))
            for i in range(min(start, target), max(start, target) + 1):
                place[sequence[i]] = i
            budget -= abs(start - target)
            moved = True
        if not moved:
            break
    return sequence


def _best_place(now: int, others: list[tuple[int, int]]) -> int:
    """Where, counted without itself, a file gains most; where it is, unless another place is better. `others`: the
    places of its neighbours, each with what it is worth if it comes before (positive) or after (negative)."""
    gain = best = 0
    target = now
    for place, weight in sorted(other for other in others if other[0] > now):  # to the right
        gain += weight
        if gain > best:
            best, target = gain, place
    gain = 0
    for place, weight in sorted((other for other in others if other[0] < now), reverse=True):  # to the left
        gain -= weight
        if gain > best:
            best, target = gain, place
    return target


def _firm_then_weak(firm: Sequence[set[int]], weak: Sequence[set[int]]) -> list[int]:
    """A topological order of the firm needs that leaves few weak ones open: among what is ready, first what has no
    open weak need, then what most others wait for compared with what it needs."""
    users_firm, users_weak = _reversed(firm), _reversed(weak)
    open_firm, open_weak = [len(n) for n in firm], [len(n) for n in weak]
    waiting = [len(u) for u in users_weak]
    done = [False] * len(firm)

    def entry(node: int) -> tuple[bool, int, int]:
        return (open_weak[node] > 0, open_weak[node] - waiting[node], node)

    ready = [entry(i) for i in range(len(firm)) if not open_firm[i]]
    heapq.heapify(ready)
    result = []
    while ready:
        best = heapq.heappop(ready)
        node = best[2]
        if done[node] or best != entry(node):
            continue
        done[node] = True
        result.append(node)
        for need in weak[node]:
            waiting[need] -= 1
        for user in users_weak[node]:
            open_weak[user] -= 1
        for user in users_firm[node]:
            open_firm[user] -= 1
        for other in {*weak[node], *users_weak[node], *users_firm[node]}:
            if not open_firm[other] and not done[other]:
                heapq.heappush(ready, entry(other))
    return result


def _reversed(needs: Sequence[Iterable[int]]) -> list[list[int]]:
    users: list[list[int]] = [[] for _ in needs]
    for a, targets in enumerate(needs):
        for b in sorted(targets):
            users[b].append(a)
    return users


def _cut_cycle(knot: Sequence[int], inner: Sequence[Mapping[int, int]]) -> list[int]:
    """Greedy feedback-arc order: what needs nothing more goes first, what nothing needs goes last, and where
    neither is left, the file that most others need compared with what it needs goes first."""
    local = {file: i for i, file in enumerate(knot)}
    needs = [{local[b] for b, firm in inner[a].items() if firm == _HARD and b in local} for a in knot]
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


def _ranks(prior: dict[int, float], needs: Sequence[Mapping[int, int]], position: Sequence[int]) -> list[float]:
    """PageRank: a file's weight is what reaches it by following needs, from files weighted by their prior."""
    if not needs:
        return []
    graph = rx.PyDiGraph()
    graph.add_nodes_from(range(len(needs) + 1))
    lost = len(needs)  # takes what would follow an edge that does not hold, and gives it to all by their prior
    graph.extend_from_weighted_edge_list(
        [
            (a, b if position[b] < position[a] else lost, 1.0 if firm == _HARD else _SOFT_WEIGHT)
            for a, targets in enumerate(needs)
            for b, firm in targets.items()
        ]
    )
    found = rx.pagerank(graph, weight_fn=float, personalization=prior, dangling=prior, max_iter=1000, tol=1e-9)
    share = sum(found[i] for i in range(len(needs)))
    return [round(found[i] / share, _RANK_DIGITS) for i in range(len(needs))]


def _is_entry_name(path: str) -> bool:
    return path.rpartition("/")[2].partition(".")[0].lower() in _ENTRY_NAMES


def _prior(path: str, role: str, is_entry: bool, exports: int) -> float:
    bonus = (_ENTRY_BONUS if is_entry else 1.0) * (1 + math.log2(1 + exports) / _EXPORTS_TO_DOUBLE)
    return _ROLE_PRIOR[role] * bonus / (1 + path.count("/"))


def _quality(
    needs: Sequence[Mapping[int, int]], position: Sequence[int], components: Sequence[Sequence[int]]
) -> OrderQuality:
    pairs = [(a, b) for a, targets in enumerate(needs) for b in targets]
    cycles = [c for c in components if len(c) > 1]
    return OrderQuality(
        cycles=len(cycles),
        largest_cycle=max(map(len, cycles), default=0),
        satisfied=round(sum(position[b] < position[a] for a, b in pairs) / len(pairs), 6) if pairs else 1.0,
    )
