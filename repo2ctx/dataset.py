"""A build read back: its manifest, and its tables by name.

Any part is read without the rest: the manifest holds every batch's byte offset. Packed rows are mapped: reading one copies no
tokens.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from repo2ctx.errors import OutputError, rebuild
from repo2ctx.manifest import ManifestError, parse_manifest
from repo2ctx.mapped import MappedTable, Shard
from repo2ctx.schema import MANIFEST, PACKED, SCHEMA_VERSION, SCHEMAS, schema_of


class Dataset:
    """A finished build: its manifest, and its shards read by table name ("files", "packed/32k/train" …).

    Raises OutputError if the directory holds no manifest, or one of another schema version.
    """

    def __init__(self, out: Path, manifest: dict[str, Any] | None = None):
        self.out = out
        self.manifest = read_manifest(out) if manifest is None else manifest
        self._packed: dict[str, MappedTable] = {}

    def tables(self) -> list[str]:
        return list(self.manifest["tables"])

    def shards(self, table: str) -> list[Shard]:
        return [
            Shard(s["path"], s["rows"], s["bytes"], s["sha256"], tuple(s["offsets"]), tuple(s["batch_rows"]))
            for s in self.manifest["tables"].get(table, [])
        ]

    def digest(self, table: str) -> str:
        """SHA-256 of what the rows of a table are, from the shards' own."""
        return hashlib.sha256("".join(s.sha256 for s in self.shards(table)).encode()).hexdigest()

    def batches(self, table: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Every record batch of a table, mapped; only the named columns are decompressed."""
        for shard in self.shards(table):
            yield from self._read(table, shard, range(len(shard.offsets)), columns)

    def rows(self, table: str, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        for batch in self.batches(table, columns):
            yield from batch.to_pylist()

    def repositories(self) -> list[dict[str, Any]]:
        return list(self.rows("repositories"))

    def of_repository(
        self, table: str, repository: str, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The batches of one repository in "files" or "edges", found by the manifest alone."""
        shards = self.shards(table)
        for place in self.manifest["repositories"][repository][table]:
            first = place["batch"]
            yield from self._read(table, shards[place["shard"]], range(first, first + place["batches"]), columns)

    def arrow(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table, or some columns of it, in Arrow, as DuckDB and others query it. Packed tables are views of their shards.

        The compressed tables ("files" …) are unpacked into memory: name the columns, for `text` is most of them.
        Raises OutputError for a table or column that there is not.
        """
        if table not in self.manifest["tables"]:
            raise OutputError(f"{self.out}: has no table {table!r}; it has {', '.join(self.tables())}")
        schema = schema_of(table)
        names = schema.names if columns is None else list(columns)
        if unknown := [name for name in names if name not in schema.names]:
            raise OutputError(f"{self.out}: {table} has no column {unknown[0]!r}; it has {', '.join(schema.names)}")
        read = pa.schema([field for field in schema if field.name in names])
        return pa.Table.from_batches(self.batches(table, names), read).select(names)

    def packed(self, table: str) -> MappedTable:
        """The rows of a packed table by number, for `packed_row`; made once, its maps stay open."""
        if table not in self._packed:
            self._packed[table] = MappedTable(self.out, self.shards(table), PACKED)
        return self._packed[table]

    def packed_row(self, table: str, index: int, columns: Sequence[str] = tuple(PACKED.names)) -> dict[str, Any]:
        """Row `index` of a packed table: `input_ids` as a numpy int32 view of the mapped file, the rest in Python.

        columns: leave out `spans` where they are not needed; those of a row of 5,000 files take 2 ms, the rest 0.1.
        """
        try:
            batch, place = self.packed(table).find(index, columns)
        except IndexError as error:
            raise IndexError(f"{table} has no row {index}") from error
        return packed_row(batch, place)

    def id_range(self, table: str) -> tuple[int, int]:
        """The smallest and the largest id in a packed table's rows; all of them are read. (0, 0) without any."""
        found = [
            (int(ids.min()), int(ids.max()))
            for batch in self.batches(table, ("input_ids",))
            if len(ids := batch.column("input_ids").flatten().to_numpy())
        ]
        return min((low for low, _ in found), default=0), max((high for _, high in found), default=0)

    def check_sizes(self, tables: Iterable[str]) -> None:
        """Raise OutputError unless every shard of these tables is there, whole in size."""
        for table in tables:
            for shard in self.shards(table):
                path = self.out / shard.path
                if not path.is_file() or path.stat().st_size != shard.bytes:
                    raise OutputError(f"{path}: is missing or cut short; {rebuild(self.out, table)}")

    def check(self, table: str) -> None:
        """Raise OutputError unless every shard of a table has the bytes that the manifest names. Reads them all."""
        for shard in self.shards(table):
            path = self.out / shard.path
            try:
                with path.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise OutputError(f"{path}: cannot be read ({error.strerror}); {rebuild(self.out, table)}") from error
            if digest != shard.sha256 or path.stat().st_size != shard.bytes:
                raise OutputError(
                    f"{path}: is damaged: its bytes are not those that were written; {rebuild(self.out, table)}"
                )

    def _read(
        self, table: str, shard: Shard, numbers: Iterable[int], columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        path = self.out / shard.path
        try:
            source = pa.memory_map(str(path))
        except OSError as error:
            raise OutputError(f"{path}: cannot be read ({error}); {rebuild(self.out, table)}") from error
        try:
            yield from self._read_batches(source, schema_of(table), shard, numbers, columns)
        except (pa.ArrowInvalid, OSError, StopIteration) as error:
            raise OutputError(f"{path}: is damaged ({error}); {rebuild(self.out, table)}") from error

    def _read_batches(
        self,
        source: pa.MemoryMappedFile,
        wanted: pa.Schema,
        shard: Shard,
        numbers: Iterable[int],
        columns: Sequence[str] | None,
    ) -> Iterator[pa.RecordBatch]:
        with source:
            options = _reading(source, columns, wanted)
            reader = pa.ipc.open_stream(source, options=options)
            for number in numbers:
                # The reader takes its next message from wherever the file stands.
                source.seek(shard.offsets[number])
                batch = reader.read_next_batch()
                if batch.num_rows != shard.batch_rows[number]:
                    raise pa.ArrowInvalid(f"batch {number} has {batch.num_rows} rows, not {shard.batch_rows[number]}")
                yield batch


def tokens(batch: pa.RecordBatch, index: int) -> npt.NDArray[np.int32]:
    """The token ids of one row of a packed batch, without a copy."""
    view: npt.NDArray[np.int32] = batch.column("input_ids")[index].values.to_numpy(zero_copy_only=True)
    return view


def packed_row(batch: pa.RecordBatch, index: int) -> dict[str, Any]:
    """One row of a packed batch, of the columns that it has: tokens as a view, structures in Python."""
    return {
        name: tokens(batch, index) if name == "input_ids" else column[index].as_py()
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }


def is_output(path: Path) -> bool:
    """Whether a folder is the OUT of a build, finished, unfinished or damaged, and not a repository that has a manifest.json of
    its own."""
    try:
        manifest: Any = json.loads((path / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        manifest = None
    if isinstance(manifest, dict) and "schema_version" in manifest and "tokenizer_fingerprint" in manifest:
        return True
    # What it leaves behind tells an OUT whose manifest is gone or cannot be read.
    try:
        return (path / ".build" / "state.json").is_file() or all((path / t).is_dir() for t in SCHEMAS)
    except OSError:  # no path at all: too long, or a loop of links
        return False


def read_manifest(out: Path) -> dict[str, Any]:
    """The manifest of a finished build, sound in itself. Raises OutputError."""
    path = out / MANIFEST
    try:
        return parse_manifest(path.read_bytes(), SCHEMA_VERSION)
    except FileNotFoundError as error:
        unfinished = (out / ".build").is_dir()
        way = "run the same `repo2ctx build` again to finish it" if unfinished else "give the --out of a finished build"
        raise OutputError(f"{out}: no {MANIFEST}; {way}") from error
    except NotADirectoryError as error:
        raise OutputError(f"{out}: is a file, no output of a build; give the --out of a finished build") from error
    except OSError as error:
        raise OutputError(f"{path}: cannot be read ({error.strerror}); {rebuild(out)}") from error
    except ManifestError as error:
        raise OutputError(f"{path}: {error}; {rebuild(out)}") from error


def stream_batches(folder: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The batches of the Arrow streams in a folder, one by one; only the named columns are decompressed."""
    for path in sorted(folder.glob("*.arrow")):
        with pa.memory_map(str(path)) as source:
            options = _reading(source, columns)
            yield from pa.ipc.open_stream(source, options=options)


def _reading(
    source: pa.MemoryMappedFile, columns: Sequence[str] | None, wanted: pa.Schema | None = None
) -> pa.ipc.IpcReadOptions:
    """How to read the named columns of a stream alone; the file is left at its beginning. wanted: what all of them must be."""
    schema = pa.ipc.open_stream(source).schema
    if wanted is not None and not schema.equals(wanted):
        raise pa.ArrowInvalid("its columns are not those of this table")
    source.seek(0)
    return pa.ipc.IpcReadOptions(
        included_fields=[schema.get_field_index(c) for c in columns] if columns is not None else None
    )
