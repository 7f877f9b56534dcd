"""Which repositories are one work: forks, mirrors, copies. Pure.

Repositories are tied by a name, a root commit, or the same set of counted blobs: those make a *group*. And a repository is
tied to a group that holds at least 30% of its counted blobs, and at least eight of them; with fewer than eight it has to be
held whole, and with fewer than four no blobs tie it. (Between two repositories that is a share of the smaller one.) Eight, so
that small projects made from one template are not tied by its few files. What is counted, the caller decides
(`splitting.counted_blobs`).

A blob held by more than 20 groups ties nobody: a framework hands it to everyone. Groups and not repositories, so that a
hundred forks do not make a project's own files common. It still counts in the size of a repository: as a list grows, no two
of its repositories come closer. More than 20 copies without a history that differ from each other a little, and copies
changed in every file, are not found: MinHash will.

Cost: an inverted index, as arrays. B blobs of all repositories together: time B log B to sort, then at most 20 steps a blob;
memory about 60 bytes a blob.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

SHARE = 0.3
"""Of a repository's counted blobs, how many another group must hold."""

_LEAST = 8  # blobs
_TOO_FEW = 4  # blobs: an example of three files says nothing
_MOST_HOLDERS = 20  # groups

BlobIds = npt.NDArray[np.uint64]
By = Literal["name", "family", "root", "blobs"]


@dataclass(frozen=True, slots=True)
class Member:
    """What a repository is tied by. blobs: `blob_ids` of its counted blobs. earlier: the family that it was in, or ""."""

    name: str
    roots: tuple[str, ...]
    blobs: BlobIds
    earlier: str = ""


@dataclass(frozen=True, slots=True)
class Tie:
    """Two members, by index, are one family. share: of the counted blobs of one, what the other's group holds."""

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
    """Enough ties to join every family; which members are joined does not depend on their order."""
    found = list(_same(members))
    groups = Sets(len(members))
    for tie in found:
        groups.unite(tie.first, tie.second)
    return [*found, *_held(members, [groups.find(index) for index in range(len(members))])]


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
        keys: list[tuple[By, str | bytes]] = [("name", member.name), *(("root", root) for root in member.roots)]
        if member.earlier:
            keys.append(("family", member.earlier))
        if len(member.blobs) >= _TOO_FEW:
            keys.append(("blobs", member.blobs.tobytes()))
        for by, key in keys:
            if (earlier := first.setdefault(key, index)) != index:
                yield Tie(earlier, index, by)


def _needed(blobs: int) -> int:
    """Blobs of a repository of so many that another group must hold."""
    return max(math.ceil(SHARE * blobs), min(_LEAST, blobs), _TOO_FEW)


def _held(members: Sequence[Member], group_of: list[int]) -> Iterator[Tie]:
    """A tie for each repository and each other group that holds enough of it."""
    sizes = [len(member.blobs) for member in members]
    if not sum(sizes):
        return
    holders, starts, number_of = _index(members, np.asarray(group_of, np.int64))
    end = 0
    for index, size in enumerate(sizes):
        end += size
        blobs = number_of[end - size : end]
        first, count = starts[blobs], starts[blobs + 1] - starts[blobs]
        wide = (count > 1) & (count <= _MOST_HOLDERS)
        first, count = first[wide], count[wide]
        # the places first, first + 1, … of every blob's holders, one after another
        places = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
        shared = np.bincount(holders[places], minlength=len(members))
        for group in np.flatnonzero(shared >= _needed(size)).tolist():
            if group != group_of[index]:
                yield Tie(min(group, index), max(group, index), "blobs", int(shared[group]) / size)


def _index(
    members: Sequence[Member], group_of: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(groups that hold each blob, where each blob's begin in them, the number of each member's blobs, end to end)."""
    ids, number_of = np.unique(np.concatenate([m.blobs for m in members]), return_inverse=True)
    groups = np.repeat(group_of, [len(m.blobs) for m in members])
    pairs = np.unique(number_of * len(members) + groups)
    starts = np.searchsorted(pairs, np.arange(len(ids) + 1) * len(members))
    return pairs % len(members), starts, number_of
