"""Files -> documents -> rows of a length. Pure: token counts in, choices out; nothing here knows text or disk.

Fit: the instruction, the tree and the target are reserved first and never cut. Then files are offered by falling rank.
Each is taken in full while that leaves the outlines of what follows their share of the room; then as an outline, within
that share, of which one outline may have half; and what has no room at all stands in the tree by its path alone. What
is left over goes, by rank, to lowered files that fit in full, then to outlines, and at last to the beginning of one
more file. For example, with room for 100 tokens, a quarter of it for outlines, and files of 60, 35, 20 and 20 tokens
with outlines of 5 each: the first is full (60 + 15 for the other outlines fit), the second an outline, the third and
the fourth are offered with 35 and 15 left: full, and an outline (90 in all); 10 tokens are left for the beginning of
the second file, with the 5 of its outline.

Pack: best-fit decreasing (Johnson 1974): each document goes where it leaves the least room. For example, lengths
[5, 4, 3, 2] in rows of 7 give [[0, 3], [1, 2]]: 5 + 2 and 4 + 3, without padding. A million documents take some seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FIDELITIES = FULL, OUTLINE, HEAD, PATH = ("full", "outline", "head", "path")
"""How much of a file a row holds: all of it, its outline, its beginning, or its path in the tree."""

PARTS = (2, 4, 8)
"""A long repository's documents for the short share of rows are of a half, a quarter and an eighth of the length."""
SPARE = 0.005
"""Share of a length that need not be used."""
_SHORTEST_HEAD = 32  # tokens: less of a file's beginning says nothing


@dataclass(frozen=True, slots=True)
class Offer:
    """What a file costs, in tokens with what surrounds it: in full (None: more than what is left), as an outline (None:
    it has none), and what surrounds it alone (`frame`)."""

    full: int | None
    outline: int | None
    frame: int


class Fit:
    """Chooses files for one document of up to `length` tokens, of which `reserved` are not the files'.

    outline_share: of the room for files, what is kept for outlines while there are files that need it. After the last offer,
    `finish` uses what is left. `taken` is then file -> fidelity; of one file, `beginning`, there may be `head` tokens of its
    text, and `begun` takes how many it came to.
    """

    def __init__(self, length: int, reserved: int, outline_share: float = 0.25):
        self.length = length
        self.used = reserved
        self.possible = reserved < length
        self.taken: dict[int, str] = {}
        self.beginning: int | None = None
        self.head = 0
        self._for_outlines = int(outline_share * max(0, length - reserved))  # tokens, falling as outlines are taken
        self._longest_outline = self._for_outlines // 2
        self._lowered: dict[int, Offer] = {}

    @property
    def left(self) -> int:
        """Tokens that are not used yet."""
        return self.length - self.used

    @property
    def full(self) -> bool:
        """Whether nothing worth having can be added."""
        return not self.possible or self.left <= SPARE * self.length

    def room(self, following: int) -> int:
        """Tokens that a file in full may have. following: about what the outlines of the files after it cost."""
        return self.left - min(self._for_outlines, following)

    def offer(self, index: int, offer: Offer, following: int) -> str | None:
        """Take file `index` in full, as an outline, or not at all (None). following: as for `room`."""
        if not self.possible:
            return None
        if offer.full is not None and offer.full <= self.room(following):
            return self._take(index, FULL, offer.full)
        self._lowered[index] = offer
        most = min(self.left, self._longest_outline, self._for_outlines)
        if offer.outline is not None and offer.outline <= most:
            self._for_outlines -= offer.outline
            return self._take(index, OUTLINE, offer.outline)
        return None

    def finish(self) -> None:
        """Use what is left: full text for lowered files by rank, outlines, then the beginning of one more."""
        for index, offer in list(self._lowered.items()):
            if self.full:
                return
            more = self._more(index, offer)
            if more is not None and more <= self.left:
                del self._lowered[index]
                self._take(index, FULL, more)
        for index, offer in self._lowered.items():
            if index not in self.taken and offer.outline is not None and offer.outline <= self.left:
                self._take(index, OUTLINE, offer.outline)
        if self._lowered and not self.full:
            index, offer = next(iter(self._lowered.items()))
            self.head = self.left + self._now(index, offer) - offer.frame
            if self.head >= _SHORTEST_HEAD:
                self.beginning = index
                self._take(index, HEAD, self.left)

    def begun(self, tokens: int, whole: bool) -> None:
        """The beginning came to so many tokens, and is the whole text or not."""
        assert self.beginning is not None
        self.used -= self.head - tokens
        if whole:
            self.taken[self.beginning] = FULL

    def _now(self, index: int, offer: Offer) -> int:
        return (offer.outline or 0) if self.taken.get(index) == OUTLINE else 0

    def _more(self, index: int, offer: Offer) -> int | None:
        return None if offer.full is None else offer.full - self._now(index, offer)

    def _take(self, index: int, fidelity: str, cost: int) -> str:
        self.taken[index] = fidelity
        self.used += cost
        return fidelity


def within_share(long_tokens: int, candidates: Sequence[int], long_share: float) -> list[int]:
    """The short documents, of `candidates` (their tokens) in this order, that keep long ones at `long_share` of all tokens.

    Each is taken if it fits in what the share leaves; without long documents, or with a share of 0, all are. Returns indices.
    """
    if not long_tokens or not long_share:
        return list(range(len(candidates)))
    budget = int(long_tokens * (1 - long_share) / long_share)
    chosen = []
    for index, tokens in enumerate(candidates):
        if tokens <= budget:
            budget -= tokens
            chosen.append(index)
    return chosen


def pack(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Group documents into rows of at most `capacity` tokens, none cut; returns indices, each row's in given order.

    Best-fit decreasing; equal lengths by index, so the same input gives the same rows. Raises ValueError for a
    document longer than a row.
    """
    sizes = np.asarray(lengths, np.int64)
    if len(sizes) and sizes.max() > capacity:
        raise ValueError("a document is longer than the row; fit it first")
    rows: list[list[int]] = []
    rooms = _Rooms(capacity)
    for index in np.argsort(-sizes, kind="stable").tolist():
        size = lengths[index]
        found = rooms.take(size)
        if found is None:
            room, row = capacity, len(rows)
            rows.append([])
        else:
            room, row = found
        rows[row].append(index)
        if room > size:
            rooms.add(room - size, row)
    return [sorted(row) for row in rows]


class _Rooms:
    """Rows by their free room, with the smallest room that is enough found in constant time: a bit for each room that some
    row has, in words of 1,024 bits, and a bit for each word that is not 0."""

    _BITS = 10

    def __init__(self, capacity: int):
        self._words = [0] * ((capacity >> self._BITS) + 1)
        self._summary = 0
        self._rows: dict[int, list[int]] = {}

    def add(self, room: int, row: int) -> None:
        rows = self._rows.get(room)
        if rows is not None:
            rows.append(row)
            return
        self._rows[room] = [row]
        word = room >> self._BITS
        self._words[word] |= 1 << (room & ((1 << self._BITS) - 1))
        self._summary |= 1 << word

    def take(self, size: int) -> tuple[int, int] | None:
        """(room, row) of a row with the smallest room of at least `size`, which is taken out; None if there is none."""
        room = self._smallest(size)
        if room is None:
            return None
        rows = self._rows[room]
        row = rows.pop()
        if not rows:
            del self._rows[room]
            word = room >> self._BITS
            self._words[word] ^= 1 << (room & ((1 << self._BITS) - 1))
            if not self._words[word]:
                self._summary ^= 1 << word
        return room, row

    def _smallest(self, size: int) -> int | None:
        word = size >> self._BITS
        here = self._words[word] >> (size & ((1 << self._BITS) - 1))
        if here:
            return size + _lowest_bit(here)
        above = self._summary >> (word + 1)
        if not above:
            return None
        word += 1 + _lowest_bit(above)
        return (word << self._BITS) + _lowest_bit(self._words[word])


def _lowest_bit(number: int) -> int:
    return (number & -number).bit_length() - 1
