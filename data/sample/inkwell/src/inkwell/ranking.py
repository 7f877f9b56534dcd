"""BM25 scores."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .index import InvertedIndex

K1 = 1.4
B = 0.7


def bm25(index: InvertedIndex, terms: Iterable[str], key: str) -> float:
    score = 0.0
    for term in terms:
        count = index.frequency(term, key)
        if not count:
            continue
        holders = len(index.matching(term))
        rarity = math.log(1 + (len(index.lengths) - holders + 0.5) / (holders + 0.5))
        damping = K1 * (1 - B + B * index.lengths[key] / index.average_length)
        score += rarity * count * (K1 + 1) / (count + damping)
    return score
