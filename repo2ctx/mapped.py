"""Shards mapped into memory: any row of a table by its number, without reading what stands before it.

The manifest says how many rows each record batch has and where it starts, so a row is two binary searches and one batch header
away. The columns of a batch are views of the mapped file. A shard is mapped when it is first asked for, and stays so until
OPEN_MAPS others were asked for later; a map holds no file descriptor, and lives on while anything that was read from it does.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from repo2ctx.errors import OutputError, rebuild

OPEN_MAPS = 256
"""Shards of one table that stay mapped; at their usual 512 MiB, 128 GiB of address space, and no memory of their own."""

_DAMAGE = (pa.ArrowException, OSError, EOFError)  # what Arrow raises for bytes that it cannot read


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard as the manifest describes it; `offsets[i]` is where batch i starts, `batch_rows[i]` its rows."""

    path: str  # relative to the output directory
    rows: int
    bytes: int
    sha256: str
    offsets: tuple[int, ...]
    batch_rows: tuple[int, ...]


class MappedTable:
    """Random access to the rows of one table of uncompressed shards; safe in threads, and pickled without its maps.

    Raises OutputError where a shard cannot be read, or is not what the manifest says. Bytes are not hashed here.
    """

    def __init__(self, out: Path, shards: Sequence[Shard], schema: pa.Schema):
        self.out, self.shards, self.schema = out, tuple(shards), schema
        self._batch_ends = np.cumsum([rows for shard in self.shards for rows in shard.batch_rows], dtype=np.int64)
        self._shard_ends = np.cumsum([len(shard.offsets) for shard in self.shards], dtype=np.int64)
        self.rows = int(self._batch_ends[-1]) if len(self._batch_ends) else 0
        self._keep_maps()

    def _keep_maps(self) -> None:
        self._mapped = functools.lru_cache(maxsize=OPEN_MAPS)(self._map)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_mapped"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._keep_maps()

    def find(self, index: int, columns: Sequence[str]) -> tuple[pa.RecordBatch, int]:
        """The named columns of the batch that holds row `index`, and the row's number in it. Raises IndexError."""
        if not 0 <= index < self.rows:
            raise IndexError(f"row {index} of {self.rows:,}")
        batch = int(np.searchsorted(self._batch_ends, index, side="right"))
        shard = int(np.searchsorted(self._shard_ends, batch, side="right"))
        number = batch - (int(self._shard_ends[shard - 1]) if shard else 0)
        place = index - (int(self._batch_ends[batch - 1]) if batch else 0)
        return self._batch(shard, number, columns), place

    def _batch(self, shard: int, number: int, columns: Sequence[str]) -> pa.RecordBatch:
        described = self.shards[shard]
        try:
            message = pa.ipc.read_message(self._mapped(shard).slice(described.offsets[number]))
            batch = pa.ipc.read_record_batch(message, self.schema).select(list(columns))
            batch.validate(full=True)  # offsets and texts, as wrong ones would end the process; numbers stay untouched
        except _DAMAGE as error:
            raise self._damaged(described, f"batch {number}: {error}") from error
        if batch.num_rows != described.batch_rows[number]:
            raise self._damaged(described, f"batch {number} has {batch.num_rows} rows")
        return batch

    def _map(self, shard: int) -> pa.Buffer:
        """The whole shard as a view. Its length is checked: what lies beyond a file's end would end the process."""
        described = self.shards[shard]
        path = self.out / described.path
        try:
            size = path.stat().st_size
            if size != described.bytes:
                raise self._damaged(described, f"has {size:,} bytes of {described.bytes:,}")
            with pa.memory_map(str(path)) as source:
                buffer = source.read_buffer()
        except OSError as error:
            raise OutputError(f"{path}: cannot be read ({error}); {rebuild(self.out)}") from error
        try:
            schema = pa.ipc.read_schema(buffer)
        except _DAMAGE as error:
            raise self._damaged(described, str(error)) from error
        if not schema.equals(self.schema):
            raise self._damaged(described, "its columns are others")
        return buffer

    def _damaged(self, shard: Shard, what: str) -> OutputError:
        return OutputError(f"{self.out / shard.path}: is damaged ({what}); {rebuild(self.out)}")
