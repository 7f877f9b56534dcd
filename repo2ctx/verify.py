"""Checks a finished build from what it wrote alone: nothing is fetched, cloned or parsed.

The manifest and the card by their hashes; every shard by its hash, its columns and where its batches stand; files that nobody
knows; then what the tables say of each other (`_verify_tables.py`), and every document of every row against its repository and
its files, with the leak figures measured anew (`_verify_packed.py`). Reads everything two or three times; memory is that of the
largest repository.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import yaml

from repo2ctx._verify_packed import Rows
from repo2ctx._verify_tables import check_counts, check_families, check_files, check_nulls, check_repositories
from repo2ctx.card import CARD, front_matter
from repo2ctx.config import TokensConfig
from repo2ctx.dataset import Dataset
from repo2ctx.errors import OutputError, TokenizerError, rebuild
from repo2ctx.mapped import Shard
from repo2ctx.progress import Reporter
from repo2ctx.prompt import PROMPT_VERSION
from repo2ctx.schema import MANIFEST, SCHEMAS, schema_of
from repo2ctx.tokens import Tokenizer, load_tokenizer


@dataclass(slots=True)
class Verified:
    """What was checked, the leak figures found, and every problem: a line that names its place, and the way out."""

    shards: int = 0
    documents: int = 0
    spans: int = 0
    largest_share: float = 0.0
    longest_run: int = 0
    problems: list[str] = field(default_factory=list)


def verify(out: Path, reporter: Reporter) -> Verified:
    """Check a build. Raises OutputError if its manifest cannot be believed; what is wrong below it is in `problems`."""
    dataset = Dataset(out)
    found = Verified()

    def tell(problems: Iterable[str], way: str = rebuild(out)) -> None:
        found.problems += [f"{problem}; {way}" for problem in _readable(problems)]

    tell(_card(dataset))
    tell(_strangers(dataset), "remove it")
    sound = set()
    reporter.stage("tables", len(dataset.tables()))
    for table in dataset.tables():
        found.shards += len(dataset.shards(table))
        before = len(found.problems)
        tell(_shards(dataset, table), rebuild(out, table))
        if len(found.problems) == before:
            sound.add(table)
        reporter.advance("")
    if not sound >= SCHEMAS.keys():
        return found
    repositories = {row["id"]: row for row in dataset.repositories()}
    tell(check_repositories(dataset))
    tell(check_families(dataset))
    reporter.stage("files", len(repositories))
    tell(check_files(dataset, repositories, reporter))
    if (wrote := dataset.manifest["prompt_version"]) != PROMPT_VERSION:
        tell([f"{out / MANIFEST}: its rows have prompt version {wrote}, this repo2ctx has {PROMPT_VERSION}"], _OTHER)
        return found
    try:
        tokenizer = _tokenizer(dataset)
    except (TokenizerError, OutputError) as error:
        found.problems.append(str(error))
        return found
    rows = Rows(dataset, repositories, tokenizer, reporter)
    for table in sorted(sound - SCHEMAS.keys()):
        tell(rows.check(table), rebuild(out, table))
    if sound == set(dataset.tables()):
        tell(check_counts(dataset, repositories, rows.counts, rows.figures))
    found.documents, found.spans = rows.documents, rows.spans
    found.largest_share, found.longest_run = rows.largest_share, rows.longest_run
    return found


_OTHER = "use the repo2ctx that wrote it, or build it again into a new directory"


def _readable(problems: Iterable[str]) -> Iterator[str]:
    """The problems, and that a table cannot be read on, where that is one."""
    try:
        yield from problems
    except OutputError as error:
        yield str(error).rpartition("; ")[0]


def _tokenizer(dataset: Dataset) -> Tokenizer:
    settings = TokensConfig.model_validate(dataset.manifest["config"]["tokens"])
    tokenizer = load_tokenizer(settings)
    if tokenizer.fingerprint != dataset.manifest["tokenizer_fingerprint"]:
        raise OutputError(
            f"{dataset.out}: its rows cannot be read: {settings.tokenizer!r} is not the tokenizer that they were packed with; "
            "put that one back, or build it again into a new directory"
        )
    return tokenizer


def _card(dataset: Dataset) -> Iterator[str]:
    """The card is the one that was written, and leads `datasets` to the shards of the manifest."""
    path = dataset.out / CARD
    try:
        data = path.read_bytes()
    except OSError as error:
        yield f"{path}: cannot be read ({error.strerror})"
        return
    if hashlib.sha256(data).hexdigest() != dataset.manifest["card_sha256"]:
        yield f"{path}: was damaged or changed after it was written"
        return
    try:
        found = yaml.safe_load(data.decode().split("---\n", 2)[1])
    except (ValueError, IndexError, RecursionError, yaml.YAMLError):
        found = None
    if found != front_matter(dataset.manifest):
        yield f"{path}: does not lead `datasets` to the tables of {MANIFEST}"


def _strangers(dataset: Dataset) -> Iterator[str]:
    """Files that the manifest does not know, where `datasets` would load them or take them for a table."""
    known = {shard.path for table in dataset.tables() for shard in dataset.shards(table)}
    found = set()
    for folder, below, names in os.walk(dataset.out):
        below[:] = [name for name in below if not name.startswith(".")]
        here = Path(folder).relative_to(dataset.out)
        for name in (*names, *(b for b in below if (Path(folder) / b).is_symlink())):
            path = (here / name).as_posix()
            if name.endswith(".arrow") or here.parts[:1] in _TABLE_FOLDERS:
                found.add(path)
    for table in dataset.tables():  # what the card's patterns match, through links too
        if (dataset.out / table).is_dir():
            found |= {f"{table}/{path.name}" for path in (dataset.out / table).iterdir()}
    for path in sorted(found - known):
        if not any(shard.startswith(f"{path}/") for shard in known):
            yield f"{dataset.out / path}: is not in {MANIFEST}, and `datasets` may load it"


_TABLE_FOLDERS = {("repositories",), ("files",), ("edges",), ("packed",)}


def _shards(dataset: Dataset, table: str) -> Iterator[str]:
    """A table's shards have the bytes, columns, batches and rows that the manifest names, and no hole where a value must be."""
    dataset.check(table)
    for shard in dataset.shards(table):
        path = dataset.out / shard.path
        try:
            with pa.memory_map(str(path)) as source:
                yield from (f"{path}: {problem}" for problem in _stream(source, table, shard))
        except (pa.ArrowException, OSError) as error:
            yield f"{path}: cannot be read ({str(error)[:200]})"


def _stream(source: pa.MemoryMappedFile, table: str, shard: Shard) -> Iterator[str]:
    with pa.ipc.open_stream(source) as reader:
        if not reader.schema.equals(schema_of(table), check_metadata=True):
            yield "its columns are not those of this table"
            return
        first = 0
        for number, (offset, rows) in enumerate(zip(shard.offsets, shard.batch_rows, strict=True)):
            at = source.tell()
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                yield f"ends after {number} batches; {MANIFEST} names {len(shard.offsets)}"
                return
            if (at, batch.num_rows) != (offset, rows):
                yield (
                    f"batch {number} stands at {at} and has {batch.num_rows} rows; {MANIFEST} says at {offset}, with {rows} rows"
                )
                return
            batch.validate(full=True)
            yield from check_nulls(table, batch, first)
            first += rows
        try:
            reader.read_next_batch()
        except StopIteration:
            if source.tell() == shard.bytes:
                return
        yield f"holds more than the {len(shard.offsets)} batches that {MANIFEST} names"
