"""Writes Arrow shards: aside, synced, renamed; and remembers what the manifest says of them.

A file under its final name is whole. The manifest is written last of all: a directory without one is not finished.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from repo2ctx.errors import OutputError
from repo2ctx.mapped import Shard


class _HashingFile:
    """A file that knows how much was written to it, and the SHA-256 of it."""

    def __init__(self, path: Path):
        self.file = path.open("wb")
        self.hash = hashlib.sha256()
        self.position = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        self.position += len(data)
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()

    def abandon(self) -> None:
        """Close it unsynced; what could not be written, on a full disk say, is not tried again."""
        self.closed = True
        with suppress(OSError):
            self.file.close()


class ShardWriter:
    """Writes one table into `out/table/00000.arrow`, `00001.arrow` … as a context manager.

    Rows gather into record batches of about `batch_bytes`; a shard that has grown over `max_bytes` is closed.
    compression: "zstd", or None for tables that are mapped.
    """

    def __init__(
        self,
        out: Path,
        table: str,
        schema: pa.Schema,
        *,
        max_bytes: int,
        batch_bytes: int,
        compression: str | None = "zstd",
    ):
        self.out, self.table, self.schema = out, table, schema
        self.max_bytes, self.batch_bytes = max_bytes, batch_bytes
        self.options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
        self.shards: list[Shard] = []
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0
        self._batches: list[pa.RecordBatch] = []
        self._file: _HashingFile | None = None
        self._writer: Any = None
        self._offsets: list[int] = []
        self._batch_rows: list[int] = []
        make_folder(out / table, out)

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        elif self._file is not None:
            self._file.abandon()
            self._aside().unlink(missing_ok=True)

    def write(self, row: dict[str, Any], size: int) -> None:
        """Add a row of about `size` bytes."""
        self._rows.append(row)
        self._bytes += size
        if self._bytes >= self.batch_bytes:
            self.flush()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Add a batch of rows; small ones are joined."""
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= self.batch_bytes:
            self.flush()

    def flush(self) -> tuple[int, int]:
        """End the record batch; what follows starts a new one. Returns (shard, batch) where the next would go."""
        batch = self._gathered()
        if batch is not None:
            if self._file is None:
                self._open()
            assert self._file is not None
            # pyarrow writes the schema with the first batch, which therefore stands behind it.
            self._offsets.append(self._file.position or self.schema.serialize().size)
            self._batch_rows.append(batch.num_rows)
            self._writer.write_batch(batch)
            if self._file.position >= self.max_bytes:
                self._finish_shard()
        return len(self.shards), len(self._offsets)

    def close(self) -> None:
        """Finish the last shard, and remove shards of an earlier, longer table."""
        self.flush()
        if self._file is not None:
            self._finish_shard()
        names = {Path(s.path).name for s in self.shards}
        folder = self.out / self.table
        stale = [path for path in folder.iterdir() if path.is_file() and path.name not in names]
        for path in stale:
            path.unlink()
        if stale:
            sync_directory(folder)

    def _gathered(self) -> pa.RecordBatch | None:
        batch = None
        if self._rows:
            batch = pa.RecordBatch.from_pylist(self._rows, schema=self.schema)
        elif self._batches:
            batch = self._batches[0] if len(self._batches) == 1 else pa.concat_batches(self._batches)
        self._rows, self._batches, self._bytes = [], [], 0
        return batch

    def _name(self) -> str:
        return f"{len(self.shards):05d}.arrow"

    def _aside(self) -> Path:
        return self.out / self.table / f".{self._name()}.partial"

    def _open(self) -> None:
        self._file = _HashingFile(self._aside())
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, mode="w"), self.schema, options=self.options)
        self._offsets, self._batch_rows = [], []

    def _finish_shard(self) -> None:
        assert self._file is not None
        self._writer.close()
        self._file.close()
        path = self.out / self.table / self._name()
        self._aside().rename(path)
        sync_directory(path.parent)
        self.shards.append(
            Shard(
                path=str(path.relative_to(self.out)),
                rows=sum(self._batch_rows),
                bytes=self._file.position,
                sha256=self._file.hash.hexdigest(),
                offsets=tuple(self._offsets),
                batch_rows=tuple(self._batch_rows),
            )
        )
        self._file, self._offsets, self._batch_rows = None, [], []


def partial_folder(folder: Path) -> Path:
    """A new folder beside `folder`, of this process alone, to work in until `finish_folder`. What is above it must be there."""
    aside = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    return aside


def finish_folder(aside: Path, folder: Path) -> None:
    """Give a whole folder its final name, which nothing else has."""
    sync_directory(aside)
    aside.rename(folder)
    sync_directory(folder.parent)


@contextmanager
def reading_folder(folder: Path) -> Iterator[None]:
    """Tell of what cannot be in a folder that was finished: something else has damaged it."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, StopIteration, RecursionError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None and not isinstance(error, FileNotFoundError):
            raise  # what the disk says; Arrow's own errors have no number
        if not folder.exists():
            raise
        raise OutputError(
            f"{folder}: is damaged; remove it and run the same command again: it alone is made anew"
        ) from error


def make_folder(path: Path, root: Path) -> None:
    """Make a folder below `root`, and those between, so that they last through a power cut. `root` must be there: one that has
    vanished is not made anew."""
    for folder in [*(p for p in reversed(path.parents) if p.is_relative_to(root) and p != root), path]:
        folder.mkdir(exist_ok=True)
        sync_directory(folder.parent)  # also where it was there: who made it may have been killed before


def sync_directory(path: Path) -> None:
    """Make what was named, renamed and removed in a directory last through a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network filesystems cannot sync a directory
            raise
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a small file aside, sync it and rename it."""
    aside = path.with_name(f".{path.name}.partial")
    with aside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.rename(path)
    sync_directory(path.parent)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_text(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def shard_entries(shards: list[Shard]) -> list[dict[str, Any]]:
    """What the manifest holds of a table's shards."""
    return [asdict(s) for s in shards]
