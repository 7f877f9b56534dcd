"""Kept files by falling rank, their texts and outlines as tokens: what `fitting` reads.

One pass over the table for each group of 32 MB of text, so that memory holds a group and not a repository.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from repo2ctx.records import KEPT
from repo2ctx.tokens import Tokenizer

GROUP_BYTES = 32 << 20
"""Text read at a time."""
_MOST_A_TOKEN = 8  # characters, but for rulers, blanks and the like
_MARGIN = 16  # tokens that a cut may add
_LONGEST_REST = 64  # tokens of a beginning that may be lost to its ending with a line

Ids = npt.NDArray[np.int32]
Batches = Callable[[Sequence[str]], Iterable[pa.RecordBatch]]
"""Gives the named columns of a repository's rows of `files`, from the first row, at each call."""


@dataclass(frozen=True, slots=True)
class File:
    """A kept file as the table has it; `row` is its row among the repository's, sizes are in bytes."""

    row: int
    path: str
    position: int
    rank: float
    text_sha256: str
    size: int
    outline_size: int


def files_by_rank(batches: Batches) -> list[File]:
    """The kept files, highest rank first; equal ranks by path, so that the same files fit under every order."""
    columns = ("path", "fate", "position", "rank", "text_sha256", "size")
    found = []
    row = 0
    for batch in batches((*columns, "outline")):
        lengths = pc.binary_length(batch.column("outline")).to_pylist()
        for f, outline_size in zip(batch.select(columns).to_pylist(), lengths, strict=True):
            if f["fate"] == KEPT:
                place = f["position"], f["rank"], f["text_sha256"], f["size"]
                found.append(File(row, f["path"], *place, outline_size or 0))
            row += 1
    return sorted(found, key=lambda f: (-f.rank, f.path))


class Reader:
    """Texts and outlines of the files, read in groups by rank: one pass over the table for each group."""

    def __init__(self, batches: Batches, files: Sequence[File], tokenizer: Tokenizer):
        self._batches, self._files, self._tokenizer = batches, files, tokenizer

    def groups(self) -> Iterator[Iterator[tuple[int, str, str | None]]]:
        """(index in `files`, text, outline), group by group."""
        start = 0
        while start < len(self._files):
            end, size = start, 0
            while end < len(self._files) and (end == start or size + self._bytes_of(end) <= GROUP_BYTES):
                size += self._bytes_of(end)
                end += 1
            yield self.read(range(start, end))
            start = end

    def read(self, indices: Collection[int]) -> Iterator[tuple[int, str, str | None]]:
        """(index, text, outline) of some files, in the order given."""
        rows = {self._files[index].row for index in indices}
        found: dict[int, tuple[str, str | None]] = {}
        first = 0
        for batch in self._batches(("text", "outline")):
            texts, outlines = batch.column("text"), batch.column("outline")
            for row in sorted(rows.intersection(range(first, first + len(texts)))):
                found[row] = texts[row - first].as_py(), outlines[row - first].as_py()
            first += len(texts)
        for index in indices:
            yield (index, *found.pop(self._files[index].row))

    def encode(self, text: str) -> Ids:
        return self._tokenizer.encode_array(text)

    def may_fit(self, text: str, tokens: int) -> bool:
        """Whether a text may be of at most `tokens`: False where it is plainly of more, by its words or by a part of it."""
        tried = _MOST_A_TOKEN * tokens
        if len(text) <= tried:
            return True
        if tried <= 0 or len(text[: 2 * tried].split()) > tokens:
            return False
        while tried < len(text):
            if len(self.encode(text[:tried])) > tokens + _MARGIN:
                return False
            tried *= 2
        return True

    def beginning(self, text: str, tokens: int) -> tuple[str, Ids]:
        """The longest beginning of a text within `tokens`, whole lines where that loses little, and its ids."""
        tried = _MOST_A_TOKEN * tokens
        while tried < len(text) and len(self.encode(text[:tried])) <= tokens:
            tried *= 2
        text = text[:tried]
        lines = [0]
        while (at := text.find("\n", lines[-1])) >= 0:
            lines.append(at + 1)
        cut = lines[longest(len(lines) - 1, lambda n: len(self.encode(text[: lines[n]])) <= tokens)]
        if cut == 0 or tokens - len(self.encode(text[:cut])) > _LONGEST_REST:
            cut += longest(len(text) - cut, lambda n: len(self.encode(text[: cut + n])) <= tokens)
        return text[:cut], self.encode(text[:cut])

    def _bytes_of(self, index: int) -> int:
        return self._files[index].size + self._files[index].outline_size


def longest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest n from 0 to `most` that fits, where 0 does, by bisection."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
