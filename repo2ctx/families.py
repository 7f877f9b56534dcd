"""Which repositories are one work: forks, mirrors, copies. Pure.

Two repositories are tied by a name, a root commit, the same set of counted blobs, or because they share at least 30% of the
counted blobs of the smaller one, and at least eight; of fewer than eight it takes all, and fewer than four tie nobody. Eight,
so that small projects made from one template are not tied by its few files. What is counted, the caller decides
(`splitting.counted_blobs`). Families are what ties join.

A blob that more than 20 origins hold ties nobody: a framework hands it to everyone. An origin is a root commit, or where none
is known a set of blobs, so that a hundred forks do not make a project's own files common. Such a blob still counts in the size
of a repository: as a list grows, no two of its repositories come closer. More than 20 copies without a history that differ a
little from each other, and copies changed in every file, are not found: MinHash will.

Cost: an inverted index, as arrays. B blobs of all repositories together: B log B to sort; then, for each blob that several
origins hold, the square of its holders, which are at most 20 but for forks. Memory: about 60 bytes a blob.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

SHARE = 0.3
"""Of the counted blobs of the smaller of two repositories, how many the other must hold."""

_LEAST = 8  # blobs
_TOO_FEW = 4  # blobs: an example of three files says nothing
_MOST_ORIGINS = 20

BlobIds = npt.NDArray[np.uint64]
By = Literal["name", "family", "family-name", "family-root", "root", "blobs"]
"""What ties two. family-name, family-root: the earlier family of one is named like the other, or like its root commit."""


@dataclass(frozen=True, slots=True)
class Member:
    """What a repository is tied by. blobs: `blob_ids` of its counted blobs. earlier: the family that it was in, or ""."""

    name: str
    roots: tuple[str, ...]
    blobs: BlobIds
    earlier: str = ""


@dataclass(frozen=True, slots=True)
class Tie:
    """Two members, by index, are one family. share: of the counted blobs of the smaller one, what the other holds."""

    first: int
    second: int
    by: By
    share: float = 1.0


def blob_ids(hexadecimal: Iterable[str]) -> BlobIds:
    """The first 8 bytes of each object id, sorted, each once. 5 million of them hold a false match once in a million times."""
    joined = "".join(text[:16] for text in hexadecimal)
    return np.unique(np.frombuffer(bytes.fromhex(joined), ">u8").astype(np.uint64))


class Sets:
    """Disjoint sets of the numbers below `size` (union-find)."""

    def __init__(self, size: int):
        self._parent = list(range(size))

    def find(self, item: int) -> int:
        """The number that stands for the set of `item`."""
        while self._parent[item] != item:
            self._parent[item] = self._parent[self._parent[item]]
            item = self._parent[item]
        return item

    def unite(self, one: int, other: int) -> int:
        """Join two sets; the smaller number stands for the result."""
        low, high = sorted((self.find(one), self.find(other)))
        self._parent[high] = low
        return low


def ties(members: Sequence[Member]) -> list[Tie]:
    """Enough ties to join every family: what all of one name, root or set share ties each to the first of them. Which
    members are joined does not depend on their order."""
    return [*_same(members), *_sharing(members)]


def families(members: Sequence[Member]) -> list[int]:
    """The family of each member, as the index of its first one."""
    sets = Sets(len(members))
    for tie in ties(members):
        sets.unite(tie.first, tie.second)
    return [sets.find(index) for index in range(len(members))]


def _same(members: Sequence[Member]) -> Iterator[Tie]:
    """Ties by what only one family has. A family may be named like a root commit or a repository: it is then theirs."""
    first: dict[str | bytes, int] = {}
    for index, member in enumerate(members):
        keys: list[str | bytes] = [member.name, *member.roots, *filter(None, [member.earlier])]
        if len(member.blobs) >= _TOO_FEW:
            keys.append(member.blobs.tobytes())
        for key in keys:
            if (earlier := first.setdefault(key, index)) != index:
                yield Tie(earlier, index, _by(key, members[earlier], member))


def _by(key: str | bytes, one: Member, other: Member) -> By:
    """What a key is to both who have it."""
    if isinstance(key, bytes):
        return "blobs"
    if key == one.name == other.name:
        return "name"
    if key in one.roots and key in other.roots:
        return "root"
    if key == one.earlier == other.earlier:
        return "family"
    return "family-name" if key in (one.name, other.name) else "family-root"


def _needed(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Blobs that two repositories must share, by the size of the smaller one."""
    needed: npt.NDArray[np.int64] = np.maximum(np.ceil(SHARE * sizes).astype(np.int64), np.minimum(_LEAST, sizes))
    return np.maximum(needed, _TOO_FEW, out=needed)


def _sharing(members: Sequence[Member]) -> Iterator[Tie]:
    """A tie for every two members of different origins that share enough."""
    sizes = np.array([len(member.blobs) for member in members], np.int64)
    if not sizes.sum():
        return
    origins = _origins(members)
    holders, starts, number_of = _index(members, sizes)
    origins_of = _origins_of_blobs(holders, starts, origins)
    end = 0
    for index, size in enumerate(sizes):
        end += size
        blobs = number_of[end - size : end]
        blobs = blobs[(origins_of[blobs] > 1) & (origins_of[blobs] <= _MOST_ORIGINS)]
        first, count = starts[blobs], starts[blobs + 1] - starts[blobs]
        # the places first, first + 1, … of every blob's holders, one after another
        places = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
        shared = np.bincount(holders[places], minlength=len(members))[:index]
        smaller = np.minimum(sizes[:index], size)
        for other in np.flatnonzero((shared >= _needed(smaller)) & (origins[:index] != origins[index])).tolist():
            yield Tie(other, index, "blobs", int(shared[other]) / int(smaller[other]))


def _origins(members: Sequence[Member]) -> npt.NDArray[np.int64]:
    """A number for each member, the same for members of one origin; those are tied already."""
    numbers: dict[str | bytes, int] = {}
    keys = (min(member.roots) if member.roots else member.blobs.tobytes() for member in members)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _index(
    members: Sequence[Member], sizes: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(members that hold each blob, where each blob's begin in them, the number of each member's blobs, end to end)."""
    ids, number_of = np.unique(np.concatenate([m.blobs for m in members]), return_inverse=True)
    order = np.argsort(number_of, kind="stable")
    starts = np.searchsorted(number_of[order], np.arange(len(ids) + 1))
    return np.repeat(np.arange(len(members)), sizes)[order], starts, number_of


def _origins_of_blobs(
    holders: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], origins: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """How many origins hold each blob."""
    blobs = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    distinct = np.unique(blobs * len(origins) + origins[holders]) // len(origins)
    return np.bincount(distinct, minlength=len(starts) - 1)
