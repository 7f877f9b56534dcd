"""Fit and pack: nothing cut, nothing lost, little wasted."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repo2ctx.packing import Fit, pack


def test_the_example_of_the_docstring():
    assert pack([5, 4, 3, 2], 7) == [[0, 3], [1, 2]]


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


def test_a_document_longer_than_the_row_is_refused():
    with pytest.raises(ValueError, match="fit it first"):
        pack([3, 8], 7)


def test_mixed_lengths_fill_rows():
    rng = random.Random(0)
    lengths = [min(131072, int(rng.paretovariate(0.9) * 500)) for _ in range(1000)]
    rows = pack(lengths, 131072)
    assert sum(lengths) / (len(rows) * 131072) > 0.98


@given(st.lists(st.integers(0, 60), max_size=30), st.integers(0, 100))
def test_fit_takes_by_rank_and_never_overflows(costs, reserved):
    fit = Fit(100, reserved)
    for index, cost in enumerate(costs):
        room = 100 - fit.used
        assert fit.offer(index, cost) == (cost <= room)
    assert fit.possible == (reserved < 100)
    assert fit.used == reserved + sum(costs[i] for i in fit.taken)
    assert fit.used <= 100 or not fit.taken
    assert fit.taken == sorted(fit.taken)
