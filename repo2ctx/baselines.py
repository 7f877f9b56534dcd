"""Orders to compare ours with: by path, at random, reversed, and DeepSeek-Coder's least in-degree. Pure.

They change the positions only. Components and ranks stay those of the real order, so that what fits in a row is the same
and a difference between two builds is the order's alone.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection, Sequence
from dataclasses import replace

import rustworkx as rx

from repo2ctx.order import Ordered
from repo2ctx.records import Edge, OrderMethod


def rearranged(ordered: Ordered, edges: Collection[Edge], method: OrderMethod, seed: str = "") -> Ordered:
    """The same files in another order. `edges` are those that `ordered` was made from; seed: of the random order."""
    paths = [p.path for p in ordered.placed]
    if method == "dependency":
        return ordered
    if method == "path":
        paths.sort()
    elif method == "random":
        paths.sort(key=lambda p: (hashlib.sha256(f"{seed}\0{p}".encode("utf-8", "backslashreplace")).digest(), p))
    elif method == "reversed":
        paths.reverse()
    else:
        paths = least_indegree(sorted(paths), {(e.source, e.target) for e in edges})
    place = {path: i for i, path in enumerate(paths)}
    placed = sorted((replace(p, position=place[p.path]) for p in ordered.placed), key=lambda p: p.position)
    return Ordered(tuple(placed), replace(ordered.quality, satisfied=satisfied(place, edges)))


def least_indegree(paths: Sequence[str], needs: Collection[tuple[str, str]]) -> list[str]:
    """The repository-level order of DeepSeek-Coder (Guo et al. 2024, arXiv:2401.14196, algorithm 1).

    Each disconnected part by itself: again and again the file that needs the fewest files still to come, which in a
    cycle may be one whose needs have not come. Ties go by path; the paper leaves them open. needs: (file, file it needs).
    """
    number = {path: i for i, path in enumerate(paths)}
    graph = rx.PyDiGraph()
    graph.add_nodes_from(range(len(paths)))
    graph.extend_from_edge_list(sorted((number[b], number[a]) for a, b in needs))
    result: list[str] = []
    for part in sorted(sorted(p) for p in rx.weakly_connected_components(graph)):
        open_needs = {i: graph.in_degree(i) for i in part}
        ready = [(count, i) for i, count in open_needs.items()]
        heapq.heapify(ready)
        while ready:
            count, node = heapq.heappop(ready)
            if open_needs.get(node) != count:
                continue
            del open_needs[node]
            result.append(paths[node])
            for user in graph.successor_indices(node):
                if user in open_needs:
                    open_needs[user] -= 1
                    heapq.heappush(ready, (open_needs[user], user))
    return result


def satisfied(place: dict[str, int], edges: Collection[Edge]) -> float:
    """Share of the pairs of files with an edge whose needed file comes first; 1 if there is none."""
    pairs = {(e.source, e.target) for e in edges}
    return round(sum(place[b] < place[a] for a, b in pairs) / len(pairs), 6) if pairs else 1.0
