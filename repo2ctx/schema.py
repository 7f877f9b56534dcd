"""The disk format: Arrow schemas, row <-> record, and the reader of shards. Nothing else knows the columns.

Shards are Arrow streams (what `datasets` loads). Rows of one repository are contiguous and start a record batch
of their own, and the manifest holds every batch's byte offset, so that any part is read without the rest.
Packed rows are uncompressed and mapped: reading one copies no tokens.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from repo2ctx.errors import OutputError
from repo2ctx.manifest import ManifestError, parse_manifest
from repo2ctx.mapped import MappedTable, Shard
from repo2ctx.records import Document, Edge, GuardedTarget, Repository, SourceFile

SCHEMA_VERSION = 5
MANIFEST = "manifest.json"
SPLITS = ("train", "validation", "test")

_ORDER = pa.struct(
    [
        ("edges", pa.int64()),
        ("hard_edges", pa.int64()),
        ("unresolved", pa.int64()),
        ("resolved", pa.float64()),
        ("cycles", pa.int64()),
        ("largest_cycle", pa.int64()),
        ("satisfied", pa.float64()),
        ("fallbacks", pa.int64()),
    ]
)
_TARGET = pa.struct(
    [
        ("style", pa.string()),
        ("text", pa.string()),
        ("source", pa.string()),
        ("license", pa.string()),
        ("name_share", pa.float64()),
        ("leak_share_before", pa.float64()),
        ("leak_run_before", pa.int64()),
        ("leak_share", pa.float64()),
        ("leak_run", pa.int64()),
        ("masked_lines", pa.int64()),
        ("duplicate_of", pa.string()),
    ]
)
_CONSIDERED = pa.struct([("style", pa.string()), ("source", pa.string()), ("fate", pa.string())])
_LANGUAGE = pa.struct([("language", pa.string()), ("files", pa.int64()), ("bytes", pa.int64())])

REPOSITORIES = pa.schema(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("commit", pa.string()),
        ("ref", pa.string()),
        ("roots", pa.list_(pa.string())),
        ("family", pa.string()),
        ("split", pa.string()),
        ("license", pa.string()),
        ("languages", pa.list_(_LANGUAGE)),
        ("targets", pa.list_(_TARGET)),
        ("considered", pa.list_(_CONSIDERED)),
        ("refused", pa.string()),
        ("boundary", pa.string()),
        ("order", _ORDER),
        ("files", pa.int64()),
        ("kept_files", pa.int64()),
        ("kept_bytes", pa.int64()),
    ]
)
FILES = pa.schema(
    [
        ("repository", pa.string()),
        ("path", pa.string()),
        ("blob", pa.string()),
        ("size", pa.int64()),
        ("language", pa.string()),
        ("role", pa.string()),
        ("encoding", pa.string()),
        ("fate", pa.string()),
        ("position", pa.int32()),
        ("component", pa.int32()),
        ("rank", pa.float64()),
        ("entry_point", pa.string()),
        ("exports", pa.int32()),
        ("text", pa.string()),
        ("outline", pa.string()),
        ("text_sha256", pa.string()),
    ]
)
EDGES = pa.schema(
    [
        ("repository", pa.string()),
        ("from", pa.string()),
        ("to", pa.string()),
        ("kind", pa.string()),
        ("strength", pa.string()),
    ]
)
_SEGMENT = pa.struct(
    [
        ("repository", pa.string()),
        ("style", pa.string()),
        ("start", pa.int64()),
        ("target_start", pa.int64()),
        ("target_end", pa.int64()),
        ("leak_share", pa.float64()),
        ("leak_run", pa.int64()),
    ]
)
_SPAN = pa.struct(
    [
        ("segment", pa.int32()),
        ("path", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("fidelity", pa.string()),
        ("text_sha256", pa.string()),
    ]
)
PACKED = pa.schema(
    [
        ("input_ids", pa.large_list(pa.int32())),
        ("segments", pa.list_(_SEGMENT)),
        ("spans", pa.list_(_SPAN)),
    ]
)

SCHEMAS = {"repositories": REPOSITORIES, "files": FILES, "edges": EDGES}


def schema_of(table: str) -> pa.Schema:
    """The columns of a table, by its name."""
    return SCHEMAS.get(table, PACKED)


def kind(said: str) -> str:
    """What comes before the details: `too-short` of `too-short: 3 words`, `metadata` of `metadata:pom.xml`."""
    return said.partition(":")[0]


def usable_targets(repository: dict[str, Any]) -> list[dict[str, Any]]:
    """The targets of a row of `repositories` that documents are made of: all but those that repeat another repository's."""
    return [target for target in repository["targets"] if target["duplicate_of"] is None]


def target_text(repository: dict[str, Any], style: str) -> str:
    """The text of a repository's target in a style."""
    text: str = next(target["text"] for target in repository["targets"] if target["style"] == style)
    return text


# Records -> rows -------------------------------------------------------------------------------------------


def repository_row(repository: Repository) -> dict[str, Any]:
    return {
        "id": repository.id,
        "name": repository.name,
        "commit": repository.commit,
        "ref": repository.ref,
        "roots": list(repository.roots),
        "family": "",  # family and split are given at assembly, when all repositories are known
        "split": "",
        "license": repository.license,
        "languages": [asdict(share) for share in repository.languages],
        "targets": [_target_row(guarded) for guarded in repository.targets],
        "considered": [asdict(considered) for considered in repository.considered],
        "refused": repository.refused,
        "boundary": repository.boundary,
        "order": asdict(repository.quality),
        "files": repository.files,
        "kept_files": repository.kept_files,
        "kept_bytes": repository.kept_bytes,
    }


def _target_row(guarded: GuardedTarget) -> dict[str, Any]:
    target, leak = guarded.target, guarded.leak
    return {
        "style": target.style,
        "text": target.text,
        "source": target.source,
        "license": target.license,
        "name_share": guarded.name_share,
        "leak_share_before": leak.share_before,
        "leak_run_before": leak.run_before,
        "leak_share": leak.share,
        "leak_run": leak.run,
        "masked_lines": leak.masked_lines,
        "duplicate_of": None,  # told at assembly, when all targets are known
    }


def file_row(repository: str, file: SourceFile) -> dict[str, Any]:
    """A file's row before it is placed; what that gives it, `text`, its outline and its hash are None."""
    return {
        "repository": repository,
        "path": file.path,
        "blob": file.blob,
        "size": file.size,
        "language": file.language,
        "role": file.role,
        "encoding": file.encoding,
        "fate": file.fate,
        "position": None,
        "component": None,
        "rank": None,
        "entry_point": None,
        "exports": None,
        "text": None,
        "outline": None,
        "text_sha256": None,
    }


def edge_row(repository: str, edge: Edge) -> dict[str, Any]:
    return {
        "repository": repository,
        "from": edge.source,
        "to": edge.target,
        "kind": edge.kind,
        "strength": edge.strength,
    }


def packed_batch(documents: Sequence[Document]) -> pa.RecordBatch:
    """One packed row: the documents one after another, offsets absolute in the row."""
    segments, spans, ids = [], [], []
    base = 0
    for index, document in enumerate(documents):
        end = base + len(document)
        segments.append(
            {
                "repository": document.repository,
                "style": document.style,
                "start": base,
                "target_start": base + document.target_start,
                "target_end": end,
                "leak_share": document.leak_share,
                "leak_run": document.leak_run,
            }
        )
        for span in document.spans:
            spans.append(
                {
                    "segment": index,
                    "path": span.path,
                    "start": base + span.start,
                    "end": base + span.end,
                    "fidelity": span.fidelity,
                    "text_sha256": span.text_sha256,
                }
            )
        ids.append(document.input_ids)
        base = end
    tokens = pa.LargeListArray.from_arrays(pa.array([0, base], pa.int64()), pa.array(np.concatenate(ids)))
    return pa.RecordBatch.from_arrays(
        [tokens, pa.array([segments], PACKED.field("segments").type), pa.array([spans], PACKED.field("spans").type)],
        schema=PACKED,
    )


# Reading ---------------------------------------------------------------------------------------------------


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

    def check(self, table: str) -> None:
        """Raise OutputError unless every shard of a table has the bytes that the manifest names. Reads them all."""
        for shard in self.shards(table):
            path = self.out / shard.path
            try:
                with path.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise OutputError(f"{path}: cannot be read ({error.strerror}); {rebuild(self.out)}") from error
            if digest != shard.sha256 or path.stat().st_size != shard.bytes:
                raise OutputError(f"{path}: is damaged: its bytes are not those that were written; {rebuild(self.out)}")

    def _read(
        self, table: str, shard: Shard, numbers: Iterable[int], columns: Sequence[str] | None
    ) -> Iterator[pa.RecordBatch]:
        path = self.out / shard.path
        try:
            source = pa.memory_map(str(path))
        except OSError as error:
            raise OutputError(f"{path}: cannot be read ({error}); {rebuild(self.out)}") from error
        try:
            yield from self._read_batches(source, schema_of(table), shard, numbers, columns)
        except (pa.ArrowInvalid, OSError, StopIteration) as error:
            raise OutputError(f"{path}: is damaged ({error}); {rebuild(self.out)}") from error

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
    except OSError as error:
        raise OutputError(f"{path}: cannot be read ({error.strerror}); {rebuild(out)}") from error
    except ManifestError as error:
        raise OutputError(f"{path}: {error}; {rebuild(out)}") from error


def rebuild(out: Path) -> str:
    """The way out of damage."""
    return f"put back a sound copy, or remove {out} and run the same `repo2ctx build` again"


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
