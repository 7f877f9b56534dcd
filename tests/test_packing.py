"""Fit and pack: nothing cut, nothing lost, little wasted."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repo2ctx.packing import FULL, HEAD, OUTLINE, SPARE, Fit, Offer, pack, within_share


def test_the_examples_of_the_docstring():
    assert pack([5, 4, 3, 2], 7) == [[0, 3], [1, 2]]
    fit = Fit(100, 0, 0.25)
    for index, full in enumerate([60, 35, 20, 20]):
        fit.offer(index, Offer(full, 5, 0), following=5 * (3 - index))
    assert fit.taken == {0: FULL, 1: OUTLINE, 2: FULL, 3: OUTLINE}
    assert fit.left == 10
    fit = Fit(150, 0, 0.25)
    for index, full in enumerate([60, 100, 20, 20]):
        fit.offer(index, Offer(full, 5, 3), following=5 * (3 - index))
    fit.finish()
    assert (fit.taken, fit.head, fit.left) == ({0: FULL, 1: HEAD, 2: FULL, 3: FULL}, 50 - 3, 0)


@given(st.lists(st.integers(1, 100), max_size=60))
def test_every_document_once_and_no_row_too_long(lengths):
    rows = pack(lengths, 100)
    assert sorted(i for row in rows for i in row) == list(range(len(lengths)))
    assert all(sum(lengths[i] for i in row) <= 100 for row in rows)
    # best-fit decreasing never needs more than 11/9 of the optimum, and one row
    assert len(rows) <= 11 / 9 * max(1, -(-sum(lengths) // 100)) * 2 + 1
    # no two rows could have been one
    sums = sorted(sum(lengths[i] for i in row) for row in rows)
    assert len(sums) < 2 or sums[0] + sums[1] > 100


def best_fit_decreasing(lengths, capacity):
    """The rule as it is written, in square time. Of rows with equal room the one that has had it for the shortest time."""
    rows: list[list[int]] = []
    room: list[int] = []
    touched: list[int] = []
    for step, index in enumerate(sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))):
        found = [r for r in range(len(rows)) if room[r] >= lengths[index]]
        if found:
            row = min(found, key=lambda r: (room[r], -touched[r]))
        else:
            row = len(rows)
            rows.append([])
            room.append(capacity)
            touched.append(0)
        rows[row].append(index)
        room[row] -= lengths[index]
        touched[row] = step
    return [sorted(row) for row in rows]


@given(st.integers(1, 5000).flatmap(lambda c: st.tuples(st.just(c), st.lists(st.integers(1, c), max_size=40))))
def test_rows_are_those_of_the_rule(given_):
    capacity, lengths = given_
    assert pack(lengths, capacity) == best_fit_decreasing(lengths, capacity)


def test_a_document_longer_than_the_row_is_refused():
    with pytest.raises(ValueError, match="fit it first"):
        pack([3, 8], 7)


def test_mixed_lengths_fill_rows():
    rng = random.Random(0)
    lengths = [min(131072, int(rng.paretovariate(0.9) * 500)) for _ in range(1000)]
    rows = pack(lengths, 131072)
    assert sum(lengths) / (len(rows) * 131072) > 0.98


OFFERS = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 300)), st.one_of(st.none(), st.integers(0, 60))), max_size=30
)


@given(OFFERS, st.integers(0, 250), st.floats(0, 0.9))
def test_fit_never_overflows_and_loses_little(costs, reserved, outline_share):
    fit = Fit(200, reserved, outline_share)
    following = sum(outline or 0 for _, outline in costs)
    frame = 2
    for_outlines = int(outline_share * max(0, 200 - reserved))
    longest = for_outlines // 2
    for index, (full, outline) in enumerate(costs):
        following -= outline or 0
        room, left = fit.room(following), fit.left
        taken = fit.offer(index, Offer(full, outline, frame), following)
        if not fit.possible:
            assert taken is None
        elif full is not None and full <= room:
            assert taken == FULL
        else:
            within = outline is not None and outline <= min(left, longest, for_outlines)
            assert taken == (OUTLINE if within else None)
            for_outlines -= outline if within else 0
    before = dict(fit.taken)
    fit.finish()
    assert fit.possible == (reserved < 200)
    if not fit.possible:
        assert not fit.taken
        return
    cost = {FULL: lambda i: costs[i][0], OUTLINE: lambda i: costs[i][1], HEAD: lambda i: fit.head + frame}
    assert fit.used == reserved + sum(cost[fidelity](i) for i, fidelity in fit.taken.items()) <= 200
    assert all(fit.taken[i] == FULL for i in before if before[i] == FULL)
    assert list(fit.taken.values()).count(HEAD) <= 1
    lowered = [i for i in range(len(costs)) if fit.taken.get(i) not in (FULL, HEAD)]
    if lowered and not fit.full:  # what is left is too little for a beginning and for any file that is lowered
        assert HEAD not in fit.taken.values()
        assert fit.left < 32 + frame
        for i in lowered:
            if i not in fit.taken:
                assert all(cost is None or cost > fit.left for cost in costs[i])
    assert fit.full == (fit.left <= SPARE * 200)


@given(st.integers(0, 1000), st.lists(st.integers(1, 200), max_size=20), st.floats(0.1, 0.9))
def test_short_documents_stay_within_their_share(long_tokens, candidates, share):
    chosen = within_share(long_tokens, candidates, share)
    total = sum(candidates[i] for i in chosen)
    if not long_tokens:
        assert chosen == list(range(len(candidates)))
        return
    assert long_tokens / (long_tokens + total) >= share - 1e-9
    for i in set(range(len(candidates))) - set(chosen):  # the next one would have been too much
        before = sum(candidates[j] for j in chosen if j < i)
        assert (before + candidates[i]) > int(long_tokens * (1 - share) / share)
