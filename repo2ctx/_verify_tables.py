"""Whether the tables of a build agree with each other, with the manifest and with themselves: repositories, files and edges.

Each check is an iterator of problems, lines that name table and row.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any, get_args

import pyarrow as pa

from repo2ctx.config import BuildConfig, length_name
from repo2ctx.dataset import Dataset
from repo2ctx.families import ties
from repo2ctx.progress import Reporter
from repo2ctx.records import KEPT, Strength, Style
from repo2ctx.schema import MANIFEST, SPLITS, usable_targets
from repo2ctx.selection import REASONS
from repo2ctx.splitting import COUNTED_COLUMNS, member_of, why

_MAY_BE_NULL = {"repositories": {"targets.duplicate_of"}, "packed": {"spans.text_sha256"}}
_NEVER_NULL_IN_FILES = ("repository", "path", "blob", "size", "fate")
_OF_KEPT = ("position", "component", "rank", "text", "text_sha256")


def check_nulls(table: str, batch: pa.RecordBatch, first: int) -> Iterator[str]:
    """Values that must be there; `first`: the batch's first row in its shard."""
    names = _NEVER_NULL_IN_FILES if table == "files" else batch.schema.names
    for name in names:
        for path, array in _parts(name, batch.column(name)):
            if array.null_count and path not in _MAY_BE_NULL.get(table.partition("/")[0], ()):
                yield f"rows {first} to {first + batch.num_rows - 1}: {path} is empty in {array.null_count}"


def _parts(name: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """A column and what it is made of."""
    yield name, array
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        values = array.flatten()
        if pa.types.is_struct(values.type):
            yield from _fields(name, values)
        else:
            yield name, values
    elif pa.types.is_struct(array.type):
        yield from _fields(name, array)


def _fields(name: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    yield name, array
    for field, values in zip(array.type, array.flatten(), strict=True):
        yield f"{name}.{field.name}", values


def check_repositories(dataset: Dataset) -> Iterator[str]:
    """One row a repository, the same in the manifest; families in one split only."""
    known = dataset.manifest["repositories"]
    seen: dict[str, int] = {}
    splits: dict[str, dict[str, int]] = {}
    ids = {row["id"] for row in dataset.rows("repositories", ("id",))}
    for number, row in enumerate(dataset.repositories()):
        where = f"repositories, row {number} ({row['id']})"
        if (earlier := seen.setdefault(row["id"], number)) != number:
            yield f"{where}: is the same repository as row {earlier}"
        splits.setdefault(row["family"], {}).setdefault(row["split"], number)
        yield from (f"{where}: {problem}" for problem in _repository(row, known.get(row["id"]), ids))
    for family, found in sorted(splits.items()):
        if len(found) > 1:
            places = ", ".join(f"{split} (row {number})" for split, number in sorted(found.items()))
            yield f"repositories: family {family} lies in several splits: {places}"
    for identity in known.keys() - seen.keys():
        yield f"{dataset.out / MANIFEST}: {identity} has no row in repositories"
    counted = dict(sorted(Counter(row["split"] for row in dataset.rows("repositories", ("split",))).items()))
    if counted != (said := dataset.manifest["summary"]["splits"]):
        yield f"repositories: has {counted} repositories of each split; {MANIFEST} counts {said}"


def check_families(dataset: Dataset) -> Iterator[str]:
    """Repositories of different splits that the rule of families ties, whatever families their rows name."""
    known = dataset.manifest["repositories"]
    rows = [(number, row) for number, row in enumerate(dataset.repositories()) if row["id"] in known]
    members = [member_of(row, dataset.of_repository("files", row["id"], COUNTED_COLUMNS)) for _, row in rows]
    closest = sorted(ties(members), key=lambda tie: -tie.share)
    told: set[tuple[int, int]] = set()
    for tie in closest:
        (number, one), (_, other) = rows[tie.first], rows[tie.second]
        if one["split"] != other["split"] and (tie.first, tie.second) not in told:
            told.add((tie.first, tie.second))
            yield (
                f"repositories, row {number} ({one['id']}): is in {one['split']}, but {other['id']} in {other['split']}, and "
                f"{why(tie.by, tie.share)}"
            )


def _repository(row: Mapping[str, Any], known: Mapping[str, Any] | None, ids: set[str]) -> Iterator[str]:
    if row["id"] != f"{row['name']}@{row['commit']}":
        yield f"its id is not made of its name {row['name']!r} and its commit {row['commit']!r}"
    if row["split"] not in SPLITS:
        yield f"its split is {row['split']!r}"
    if known is None:
        yield f"{MANIFEST} does not know it"
    elif (known["commit"], known["split"]) != (row["commit"], row["split"]):
        yield f"{MANIFEST} has commit {known['commit']}, split {known['split']}; the row {row['commit']}, {row['split']}"
    styles = Counter(target["style"] for target in row["targets"])
    for style, count in styles.items():
        if count > 1 or style not in get_args(Style):
            yield f"has {count} targets of style {style!r}"
    for target in row["targets"]:
        if target["duplicate_of"] is not None and target["duplicate_of"] not in ids - {row["id"]}:
            yield f"its {target['style']} is said to repeat {target['duplicate_of']}, which has no row"


def check_files(dataset: Dataset, repositories: Mapping[str, Mapping[str, Any]], reporter: Reporter) -> Iterator[str]:
    """Each repository's rows of `files` and `edges`."""
    fates: Counter[str] = Counter()
    starts: dict[str, Callable[[str], int]] = {table: _row_numbers(dataset, table) for table in ("files", "edges")}
    for identity, row in repositories.items():
        if identity in dataset.manifest["repositories"]:
            files = _Files(row)
            yield from files.check(dataset, starts["files"](identity))
            fates += files.fates
            yield from _edges(dataset, identity, files.kept.keys(), starts["edges"](identity))
        reporter.advance("")
    if dict(sorted(fates.items())) != (said := dataset.manifest["summary"]["fates"]):
        yield f"files: has {dict(sorted(fates.items()))} files of each fate; {MANIFEST} counts {said}"


def _row_numbers(dataset: Dataset, table: str) -> Callable[[str], int]:
    """Gives a repository's first row in a table."""
    firsts = []
    rows = 0
    for shard in dataset.shards(table):
        firsts.append([rows + sum(shard.batch_rows[:i]) for i in range(len(shard.batch_rows))])
        rows += shard.rows

    def first(repository: str) -> int:
        places = dataset.manifest["repositories"][repository][table]
        return firsts[places[0]["shard"]][places[0]["batch"]] if places else 0

    return first


class _Files:
    """One repository's rows of `files`: what they say, against each other and against its row of `repositories`."""

    def __init__(self, repository: Mapping[str, Any]):
        self.repository = repository
        self.fates: Counter[str] = Counter()
        self.rows = 0
        self.kept: dict[str, int] = {}  # path -> row
        self.kept_bytes = 0
        self.positions: list[int] = []

    def check(self, dataset: Dataset, number: int) -> Iterator[str]:
        """number: of the first row."""
        identity = self.repository["id"]
        for batch in dataset.of_repository("files", identity):
            for row in batch.to_pylist():
                where = f"files, row {number} ({identity}, {row['path']})"
                yield from (f"{where}: {problem}" for problem in self._row(row, number))
                number += 1
        # What left the context after it was placed leaves gaps.
        if len(set(self.positions)) != len(self.positions) or min(self.positions, default=0) < 0:
            yield f"files ({identity}): two of its kept files have the same position, or one is negative"
        found = (self.rows, len(self.kept), self.kept_bytes)
        said = tuple(self.repository[name] for name in ("files", "kept_files", "kept_bytes"))
        if found != said and not self.repository["refused"]:
            yield f"files ({identity}): has (files, kept, their bytes) {found}; its row in repositories says {said}"

    def _row(self, row: Mapping[str, Any], number: int) -> Iterator[str]:
        if row["repository"] != self.repository["id"]:
            yield f"belongs to {row['repository']}"
        self.rows += 1
        kept = row["fate"] == KEPT
        if not kept and row["fate"] not in REASONS:
            yield f"its fate is {row['fate']!r}"
        self.fates[row["fate"]] += 1
        if wrong := [name for name in _OF_KEPT if (row[name] is not None) != kept]:
            yield f"its fate is {row['fate']}, and {', '.join(wrong)} {'is missing' if kept else 'is there'}"
        elif kept:
            if (earlier := self.kept.setdefault(row["path"], number)) != number:
                yield f"has the path of row {earlier}"
            self.positions.append(row["position"])
            data = row["text"].encode()
            self.kept_bytes += len(data)
            if hashlib.sha256(data).hexdigest() != row["text_sha256"]:
                yield "its text is not the one with its hash"
            if self.repository["boundary"] in row["text"]:
                yield "its text holds the marker that begins a file"


def _edges(dataset: Dataset, identity: str, kept: Set[str], number: int) -> Iterator[str]:
    for batch in dataset.of_repository("edges", identity):
        for row in batch.to_pylist():
            where = f"edges, row {number} ({identity}, {row['from']} to {row['to']})"
            if row["repository"] != identity:
                yield f"{where}: belongs to {row['repository']}"
            elif not {row["from"], row["to"]} <= kept or row["strength"] not in get_args(Strength):
                yield f"{where}: joins what is no kept file, or is neither hard nor soft"
            number += 1


Counted = Mapping[str, Counter[tuple[str, str, int]]]
"""Length -> (repository, style, tokens) -> documents."""


def check_counts(
    dataset: Dataset,
    repositories: Mapping[str, Mapping[str, Any]],
    counts: Counted,
    figures: Mapping[str, Counter[str]],
) -> Iterator[str]:
    """No document is missing or there twice, and the manifest's figures are those of the rows (`figures`, by length)."""
    config = BuildConfig.model_validate(dataset.manifest["config"])
    summary = dataset.manifest["summary"]
    usable: Counter[str] = Counter()
    for row in repositories.values():
        styles = [target["style"] for target in usable_targets(dict(row))]
        usable.update(styles[:1] if config.pack.documents == "first-style" else styles)
    for length in map(length_name, config.pack.lengths):
        found = Counter(counts.get(length, {}))
        for (repository, style, size), number in found.items():
            if number > 1:
                yield f"packed/{length}: has {number} documents of {repository}, {style}, of {size:,} tokens each"
        said = summary["packed"].get(length, {})
        have = figures.get(length, Counter())
        for name in sorted({*have, *said} - {"held_back"}):
            if have[name] != said.get(name):
                yield f"packed/{length}: {name}: its rows have {have[name]:,}; {MANIFEST} says {said.get(name)}"
        if dataset.manifest["failures"]:
            continue
        # A repository may give shorter documents beside its whole one, and that one may be held back for the proportion.
        made = len({(repository, style) for repository, style, _ in found})
        refused = sum(n for why, n in summary["refused"].items() if why.startswith(f"{length} "))
        held_back = said.get("held_back", 0)
        if made + refused + held_back != usable.total():
            yield (
                f"packed/{length}: has documents of {made} targets, and {MANIFEST} names {refused} that could not be made and "
                f"{held_back} held back; repositories have {usable.total()} targets"
            )
