"""The manifest's text and shape: how it is sealed when it is written, and what must hold before anything in it is believed.

The seal is a line of the manifest, the SHA-256 of its bytes with that line empty, so that a flipped bit or an edit shows. The
shape is checked as well, since a seal can be made anew: names of tables, paths below the directory, counts that add up, places
that exist. Costs about a second for a manifest of 100 MB.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from repo2ctx.config import BuildConfig, length_name
from repo2ctx.families import By

_SEAL = "manifest_sha256"
# One space before it: only a key of the manifest itself stands so, and no string holds a raw line break.
_SEAL_LINE = re.compile(rb'^ "' + _SEAL.encode() + rb'": "([0-9a-f]{64})"', re.MULTILINE)
_SHOWN = 3  # problems of a shape that are told

_MOST = 2**63 - 1  # what a column, a file or a map can count

Count = Annotated[int, Field(ge=0, le=_MOST)]
Some = Annotated[int, Field(ge=1, le=_MOST)]
Counts = dict[str, Count]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
TableName = Annotated[str, Field(pattern=r"^(repositories|files|edges|packed/[0-9]+[km]?/(train|validation|test))$")]


class ManifestError(ValueError):
    """What is wrong with a manifest, in words fit to follow its path."""


def sealed(manifest: Mapping[str, Any]) -> str:
    """The text of a manifest, with its seal; the same values give the same text."""
    text = json.dumps({**manifest, _SEAL: ""}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()
    return text.replace(f'\n "{_SEAL}": ""', f'\n "{_SEAL}": "{digest}"', 1)


def parse_manifest(data: bytes, schema_version: int) -> dict[str, Any]:
    """The manifest in a file's bytes. What its configuration does not name has its default: another repo2ctx of this schema
    may have had fewer keys. Raises ManifestError unless it is sealed, of this version and consistent in itself."""
    try:
        manifest: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"is damaged: it is no JSON ({str(error)[:100]})") from error
    if not isinstance(manifest, dict) or "schema_version" not in manifest:
        raise ManifestError("is no manifest of repo2ctx, or is damaged")
    if (version := manifest["schema_version"]) != schema_version or type(version) is not int:
        raise ManifestError(f"has schema version {str(version)[:40]}, but this repo2ctx reads version {schema_version}")
    if not is_sealed(data):
        raise ManifestError("was damaged or changed after it was written: its own hash does not match")
    try:
        config = _Manifest.model_validate(manifest).build_config()
    except ValidationError as error:
        raise ManifestError(f"is damaged: {_told(error)}") from error
    return {**manifest, "config": config.model_dump(mode="json")}


def is_sealed(data: bytes) -> bool:
    """Whether a manifest's bytes are those that were written."""
    found = list(_SEAL_LINE.finditer(data))
    if len(found) != 1:
        return False
    start, end = found[0].span(1)
    return hashlib.sha256(data[:start] + data[end:]).hexdigest().encode() == found[0][1]


def _few(names: Iterable[str]) -> str:
    return ", ".join(name[:20] for name in sorted(names)[:10]) or "none"


def _told(error: ValidationError) -> str:
    errors = error.errors(include_url=False)
    said = []
    for problem in errors[:_SHOWN]:
        place = ".".join(str(part)[:100] for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        said.append(f"{place}: {message}" if place else message)
    more = f", and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
    return "; ".join(said) + more


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


class _Shard(_Part):
    path: str
    rows: Count
    bytes: Count
    sha256: Digest
    offsets: list[Count]
    batch_rows: list[Some]

    @model_validator(mode="after")
    def _adds_up(self) -> _Shard:
        if len(self.offsets) != len(self.batch_rows) or sum(self.batch_rows) != self.rows:
            raise ValueError("offsets, batch_rows and rows do not agree")
        if any(a >= b for a, b in pairwise([*self.offsets, self.bytes])):
            raise ValueError("offsets do not grow, or lie beyond the end of the shard")
        return self


class _Place(_Part):
    """Where a repository's rows stand in a table."""

    shard: Count
    batch: Count
    batches: Some


class _Repository(_Part):
    commit: str
    split: Literal["train", "validation", "test"]
    files: list[_Place]
    edges: list[_Place]


class _Listed(_Part):
    name: str
    ref: str | None
    split: str | None
    unit: str
    id: str | None


class _Failure(_Part):
    source: str
    line: int
    reason: str


class _Tie(_Part):
    unit: str
    split: str
    by: By
    share: float


class _LeftOut(_Part):
    """A repository that would tie two splits (`splitting.py`). says: the split that its line gives, or ""."""

    unit: str
    says: str
    ties: Annotated[list[_Tie], Field(min_length=1)]


class _Packed(_Part):
    documents: Count
    tokens: Count
    target_tokens: Count
    train_tokens: Count
    long_tokens: Count
    held_back: Count
    full: Count
    outline: Count
    head: Count
    path: Count
    left_out: Count


class _Summary(_Part):
    fates: Counts
    splits: Counts
    targets: dict[str, Counts]
    rejected: Counts
    not_taken: Counts
    packed: dict[str, _Packed]
    refused: Counts
    without_target: Count


class _Teacher(_Part):
    model: str
    host: str | None
    prompt_version: int


class _Manifest(_Part):
    tool: str
    prompt_version: int
    tokenizer_fingerprint: str
    config: dict[str, Any]
    config_sha256: Digest
    card_sha256: Digest
    listed: list[_Listed] = Field(alias="list")
    tables: dict[TableName, list[_Shard]]
    repositories: dict[str, _Repository]
    failures: list[_Failure]
    left_out: list[_LeftOut]
    summary: _Summary
    teacher: _Teacher | None = None

    @model_validator(mode="after")
    def _agrees(self) -> _Manifest:
        lengths = set(map(length_name, self.build_config().pack.lengths))
        if self.summary.packed.keys() != lengths:
            raise ValueError(f"summary.packed: has the lengths {_few(self.summary.packed)}; the config {_few(lengths)}")
        if missing := {"repositories", "files", "edges"} - self.tables.keys():
            raise ValueError(f"tables: {', '.join(sorted(missing))} is missing")
        for table, shards in self.tables.items():
            if table.startswith("packed/") and table.split("/")[1] not in lengths:
                raise ValueError(f"tables: {table} is of no length of the config, which has {_few(lengths)}")
            for number, shard in enumerate(shards):
                # Every path is known beforehand, so that none can lead anywhere else.
                if shard.path != (wanted := f"{table}/{number:05d}.arrow"):
                    raise ValueError(f"tables.{table}.{number}.path: is {shard.path[:100]!r}, not {wanted}")
        for table in ("files", "edges"):
            _check_places(table, self.tables[table], (getattr(r, table) for r in self.repositories.values()))
        for entry in self.listed:
            if entry.id is not None and entry.id not in self.repositories:
                raise ValueError(f"list: {entry.name[:100]!r} names a repository that is not in `repositories`")
        if unknown := self.units_left_out() - {entry.unit for entry in self.listed}:
            raise ValueError(f"left_out: {min(unknown)[:100]!r} is not in the list")
        return self

    def build_config(self) -> BuildConfig:
        """The configuration, whole. What is written must be what it would be written as: nothing is read in two ways."""
        text = json.dumps(self.config, sort_keys=True)
        if hashlib.sha256(text.encode()).hexdigest() != self.config_sha256:
            raise ValueError("config: is not the one that config_sha256 names")
        try:
            config = BuildConfig.model_validate(self.config)
        except ValidationError as error:
            raise ValueError(f"config: {_told(error)}") from error
        dumped = config.model_dump(mode="json")
        for section, values in self.config.items():
            for key, value in values.items():
                if json.dumps(value, sort_keys=True) != (whole := json.dumps(dumped[section][key], sort_keys=True)):
                    raise ValueError(f"config.{section}.{key}: is {json.dumps(value)[:100]}, not {whole[:100]}")
        return config

    def units_left_out(self) -> set[str]:
        """Every unit that `left_out` names."""
        return {unit for entry in self.left_out for unit in (entry.unit, *(tie.unit for tie in entry.ties))}


def _check_places(table: str, shards: Sequence[_Shard], places: Iterable[Sequence[_Place]]) -> None:
    """Every batch of the table must be named once, by one repository."""
    there = [(number, batch) for number, shard in enumerate(shards) for batch in range(len(shard.offsets))]
    at = 0
    for place in sorted((p for parts in places for p in parts), key=lambda p: (p.shard, p.batch)):
        end = at + place.batches
        if end > len(there) or there[at] != (place.shard, place.batch) or there[end - 1][0] != place.shard:
            raise ValueError(
                f"repositories: {table} of shard {place.shard}, batch {place.batch} are not there, or are named twice"
            )
        at = end
    if at != len(there):
        raise ValueError(f"tables.{table}: has {len(there)} batches, of which the repositories name {at}")
