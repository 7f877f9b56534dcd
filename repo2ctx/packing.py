"""Files -> rows of a length. Pure: token counts in, choices out; nothing here knows text or disk.

Fit: the instruction and the target are reserved first and never cut; then files are taken whole by rank while they
fit. Pack: best-fit decreasing (Johnson 1974): each document goes where it leaves the least room. For example, lengths
[5, 4, 3, 2] in rows of 7 give [[0, 3], [1, 2]]: 5 + 2 and 4 + 3, without padding.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

FULL_ENOUGH = 0.98
"""Share of a length after which no further file is tried."""


class Fit:
    """Chooses files for one repository and one length, offered by falling rank.

    length: tokens of the row. reserved: tokens of the instruction, the target and what surrounds the files.
    """

    def __init__(self, length: int, reserved: int):
        self.length = length
        self.used = reserved
        self.possible = reserved < length
        self.taken: list[int] = []

    @property
    def full(self) -> bool:
        return self.used >= FULL_ENOUGH * self.length

    def offer(self, index: int, cost: int) -> bool:
        """Take file `index` if its `cost` tokens still fit."""
        if self.used + cost > self.length:
            return False
        self.used += cost
        self.taken.append(index)
        return True


def pack(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Group documents into rows of at most `capacity` tokens, none cut; returns indices, each row's in given order.

    Best-fit decreasing; equal lengths by index, so the same input gives the same rows. Raises ValueError for a
    document longer than a row.
    """
    if any(n > capacity for n in lengths):
        raise ValueError("a document is longer than the row; fit it first")
    rows: list[list[int]] = []
    open_rooms: list[int] = []  # distinct free rooms, sorted
    rows_with_room: dict[int, list[int]] = {}
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        size = lengths[index]
        at = bisect.bisect_left(open_rooms, size)
        if at < len(open_rooms):
            room = open_rooms[at]
            row = rows_with_room[room].pop()
            if not rows_with_room[room]:
                del rows_with_room[room]
                open_rooms.pop(at)
        else:
            room, row = capacity, len(rows)
            rows.append([])
        rows[row].append(index)
        left = room - size
        if left > 0:
            if left not in rows_with_room:
                rows_with_room[left] = []
                bisect.insort(open_rooms, left)
            rows_with_room[left].append(row)
    return [sorted(row) for row in rows]
