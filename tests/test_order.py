"""The order's promises, on every graph."""

import json
import random

import pytest
from conftest import outputs_by_hash_seed
from hypothesis import given
from hypothesis import strategies as st

from repo2ctx.baselines import rearranged
from repo2ctx.order import order
from repo2ctx.records import Edge


def edges(*pairs: str) -> list[Edge]:
    """ "a>b" is hard, "a~b" soft."""
    return [
        Edge(*(p.split(">") if ">" in p else p.split("~")), "import", "hard" if ">" in p else "soft") for p in pairs
    ]


def paths(names: str, *pairs: str, **roles: str) -> str:
    found = order({n: roles.get(n, "code") for n in names}, edges(*pairs))
    return "".join(p.path for p in found.placed)


def test_needed_files_come_first():
    assert paths("abc", "a>b", "b>c") == "cba"
    assert paths("abc") == "abc"
    assert paths("abcd", "a>d", "b>d") == "dabc"


def test_manifests_come_first_and_tests_after_what_they_test():
    assert paths("abcm", "a>b", m="manifest", a="test") == "mbca"


def test_a_file_stands_soon_after_what_it_needs():
    assert paths("abxy", "a>x", "b>y") == "xayb"


def test_soft_edges_give_way_inside_a_cycle():
    assert paths("ab", "a>b", "b~a") == "ba"
    assert paths("ab", "a~b", "b>a") == "ab"
    assert paths("abc", "a>b", "b>c", "c~a") == "cba"


def test_what_the_file_does_not_spell_out_gives_way_first():
    for kind in ("autoload", "test", "implements"):
        weak = Edge("a", "b", kind, "soft")
        strong = Edge("b", "a", "use", "soft")
        for pair in ([weak, strong], [strong, weak]):
            assert [p.path for p in order(dict.fromkeys("ab", "code"), pair).placed] == ["a", "b"]
        hard = Edge("a", "b", kind, "hard")
        assert [p.path for p in order(dict.fromkeys("ab", "code"), [hard, strong]).placed] == ["b", "a"]


def test_soft_edges_hold_where_they_can():
    # d~a cannot hold if both c~d and b~d do
    assert paths("abcd", "a>b", "b>c", "c~d", "b~d", "d~a") == "dcba"


def test_a_file_of_a_cycle_never_comes_before_what_the_cycle_needs():
    assert paths("abcz", "a>b", "b>a", "b>z") in ("zabc", "zbac")


def test_hard_cycles_break_few_edges():
    found = order(dict.fromkeys("abcde", "code"), edges("a>b", "b>c", "c>d", "d>e", "e>a"))
    assert found.quality.cycles == 1
    assert found.quality.largest_cycle == 5
    assert found.quality.satisfied == 0.8


graphs = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.just(n), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.booleans()), max_size=40)
    )
)


def _made(graph: tuple[int, set[tuple[int, int, bool]]]) -> tuple[dict[str, str], list[Edge]]:
    count, pairs = graph
    names = [f"{i:02d}.py" for i in range(count)]
    found = [Edge(names[a], names[b], "import", "hard" if hard else "soft") for a, b, hard in pairs if a != b]
    return dict.fromkeys(names, "code"), found


def _reach(names: list[str], found: list[Edge]) -> dict[str, set[str]]:
    reach = {n: {e.target for e in found if e.source == n} for n in names}
    for _ in names:
        for n in names:
            reach[n] |= {t for m in list(reach[n]) for t in reach[m]}
    return reach


@given(graphs)
def test_outside_cycles_every_needed_file_comes_first(graph):
    roles, found = _made(graph)
    result = order(roles, found)
    place = {p.path: p.position for p in result.placed}
    component = {p.path: p.component for p in result.placed}
    reach = _reach(list(roles), found)
    hard_reach = _reach(list(roles), [e for e in found if e.strength == "hard"])
    assert sorted(place.values()) == list(range(len(roles)))
    for edge in found:
        together = edge.source in reach[edge.target]
        assert together == (component[edge.source] == component[edge.target])
        if not together or (edge.strength == "hard" and edge.source not in hard_reach[edge.target]):
            assert place[edge.target] < place[edge.source]
    assert [component[p.path] for p in result.placed] == sorted(component.values())


@given(graphs)
def test_no_file_of_a_cycle_would_be_better_elsewhere(graph):
    roles, found = _made(graph)
    placed = order(roles, found).placed

    hard = {(e.source, e.target) for e in found if e.strength == "hard"}
    hard_reach = _reach(list(roles), [e for e in found if e.strength == "hard"])
    firm = {(a, b) for a, b in hard if a not in hard_reach[b]}
    soft = {(e.source, e.target) for e in found} - hard

    def held(paths: list[str]) -> list[int]:
        place = {p: i for i, p in enumerate(paths)}
        return [sum(place[b] < place[a] for a, b in kind if {a, b} <= {*paths}) for kind in (firm, hard - firm, soft)]

    for component in {p.component for p in placed}:
        members = [p.path for p in placed if p.component == component]
        for file in members:
            rest = [m for m in members if m != file]
            assert all(held([*rest[:i], file, *rest[i:]]) <= held(members) for i in range(len(members)))


@given(graphs, st.randoms())
def test_the_input_order_does_not_matter(graph, rng):
    roles, found = _made(graph)
    shuffled_roles = list(roles.items())
    shuffled_edges = list(found)
    rng.shuffle(shuffled_roles)
    rng.shuffle(shuffled_edges)
    assert order(dict(shuffled_roles), shuffled_edges) == order(roles, found)


def test_the_hash_seed_does_not_matter():
    code = (
        "import random, json; from repo2ctx.order import order; from repo2ctx.records import Edge\n"
        "rng = random.Random(1); names = [f'{i}.py' for i in range(60)]\n"
        "edges = {Edge(rng.choice(names), rng.choice(names), 'import', rng.choice(['hard', 'soft'])) for _ in range(200)}\n"
        "found = order({n: 'code' for n in set(names)}, {e for e in edges if e.source != e.target})\n"
        "print(json.dumps([[p.path, p.rank, p.component] for p in found.placed]))"
    )
    outputs = outputs_by_hash_seed(code)
    assert len(outputs) == 1
    assert len(json.loads(outputs.pop())) == 60


def test_long_chains_and_large_cycles_end():
    count = 20_000
    names = [f"{i:05d}.py" for i in range(count)]
    chain = [Edge(names[i], names[i + 1], "import", "hard") for i in range(count - 1)]
    found = order(dict.fromkeys(names, "code"), chain)
    assert [p.path for p in found.placed] == names[::-1]
    ring = order(dict.fromkeys(names, "code"), [*chain, Edge(names[-1], names[0], "import", "hard")])
    assert ring.quality.largest_cycle == count
    assert ring.quality.satisfied > 0.9999
    rng = random.Random(0)
    knot = [Edge(rng.choice(names), rng.choice(names), "import", "hard") for _ in range(3 * count)]
    assert len(order(dict.fromkeys(names, "code"), [e for e in knot if e.source != e.target]).placed) == count


def test_rank_follows_need_and_role():
    found = {
        p.path: p.rank for p in order(dict.fromkeys("abcd", "code") | {"t": "test"}, edges("a>d", "b>d", "t>c")).placed
    }
    assert found["d"] > found["a"]
    assert found["d"] > found["c"] > found["t"]
    assert order({}, []).placed == ()


METHODS = ("path", "random", "reversed", "least-indegree")


@given(graphs)
def test_another_order_changes_the_positions_and_nothing_else(graph):
    roles, found = _made(graph)
    ours = order(roles, found)
    assert rearranged(ours, found, "dependency") == ours
    for method in METHODS:
        other = rearranged(ours, list(reversed(found)), method)
        assert other == rearranged(ours, found, method)
        assert [p.position for p in other.placed] == list(range(len(roles)))
        assert {(p.path, p.rank, p.component) for p in other.placed} == {
            (p.path, p.rank, p.component) for p in ours.placed
        }
        place = {p.path: p.position for p in other.placed}
        pairs = {(e.source, e.target) for e in found}
        if pairs:
            first = sum(place[b] < place[a] for a, b in pairs)
            assert other.quality.satisfied == pytest.approx(first / len(pairs), abs=1e-6)


def test_the_other_orders():
    found = edges("a>d", "b>a", "c>b", "a>c")  # a, b, c in a cycle that needs d
    ours = order(dict.fromkeys("dcbaxy", "code"), found)
    names = {m: "".join(p.path for p in rearranged(ours, found, m).placed) for m in METHODS}
    assert names["path"] == "abcdxy"
    assert names["reversed"] == "".join(p.path for p in reversed(ours.placed))
    # d needs nothing; then b and c need one each and a two less d: all one, by path
    assert names["least-indegree"] == "dabcxy"
    assert sorted(names["random"]) == list("abcdxy")
    assert names["random"] != "".join(p.path for p in rearranged(ours, found, "random", "7").placed)


def test_least_indegree_can_put_a_file_before_the_cycle_that_it_needs():
    found = edges("a>x", "x>y", "x>z", "y>x", "y>z", "z>x", "z>y")  # a lacks one file, each file of the cycle two
    ours = order(dict.fromkeys("axyz", "code"), found)
    assert ours.placed[-1].path == "a"
    assert rearranged(ours, found, "least-indegree").placed[0].path == "a"
