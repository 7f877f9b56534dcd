"""Checks a finished build from what it wrote alone: nothing is fetched, cloned or parsed.

Hashes of every shard; each document's parts against its repository (texts by hash, target, split); families in one split
only, and what shares a name, a root commit or too many files, too; and the leak figures of every row, measured anew on the
decoded context and compared with those that the row states and with the limits of the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from repo2ctx.config import LeakageConfig, TokensConfig
from repo2ctx.errors import OutputError
from repo2ctx.families import ties
from repo2ctx.leakage import in_context
from repo2ctx.progress import Reporter
from repo2ctx.schema import Dataset, usable_targets
from repo2ctx.span_check import FilesOf
from repo2ctx.splitting import COUNTED_COLUMNS, member_of, why
from repo2ctx.tokens import Tokenizer, load_tokenizer

_REPOSITORIES_HELD = 64  # whose hashes of files are kept at hand


@dataclass(slots=True)
class Verified:
    """What was checked, the leak figures found, and every problem, each as a line that names its place."""

    shards: int = 0
    documents: int = 0
    spans: int = 0
    largest_share: float = 0.0
    longest_run: int = 0
    problems: list[str] = field(default_factory=list)


def verify(out: Path, reporter: Reporter) -> Verified:
    """Check a build. Raises OutputError if it has no readable manifest; what is wrong below it is in `problems`."""
    dataset = Dataset(out)
    found = Verified()
    reporter.stage("tables", len(dataset.tables()))
    sound = []
    for table in dataset.tables():
        found.shards += len(dataset.shards(table))
        try:
            dataset.check(table)
            sound.append(table)
        except OutputError as error:
            found.problems.append(str(error))
        reporter.advance("")
    if "repositories" not in sound:
        return found
    repositories = {row["id"]: row for row in dataset.repositories()}
    found.problems += _splits(repositories)
    if "files" in sound:
        found.problems += _ties(dataset, list(repositories.values()))
    tokenizer = load_tokenizer(TokensConfig.model_validate(dataset.manifest["config"]["tokens"]))
    if tokenizer.fingerprint != dataset.manifest["tokenizer_fingerprint"]:
        found.problems.append(f"{out}: the tokenizer that the configuration names is not the one it was packed with")
        return found
    limits = LeakageConfig.model_validate(dataset.manifest["config"]["leakage"])
    for table in sound:
        if table.startswith("packed/"):
            reporter.stage(table, sum(shard.rows for shard in dataset.shards(table)))
            _packed(dataset, table, repositories, tokenizer, limits, found, reporter)
    return found


def _splits(repositories: dict[str, Any]) -> Iterator[str]:
    splits: dict[str, set[str]] = {}
    for row in repositories.values():
        splits.setdefault(row["family"], set()).add(row["split"])
    for family, names in sorted(splits.items()):
        if len(names) > 1:
            yield f"family {family}: lies in several splits: {', '.join(sorted(names))}"


def _ties(dataset: Dataset, repositories: list[dict[str, Any]]) -> Iterator[str]:
    """Repositories of different splits that the rule of families ties, whatever family their rows name."""
    members = [member_of(row, dataset.of_repository("files", row["id"], COUNTED_COLUMNS)) for row in repositories]
    for tie in ties(members):
        one, other = repositories[tie.first], repositories[tie.second]
        if one["split"] != other["split"]:
            yield f"{one['id']} is in {one['split']} and {other['id']} in {other['split']}: {why(tie.by, tie.share)}"


def _packed(
    dataset: Dataset,
    table: str,
    repositories: dict[str, Any],
    tokenizer: Tokenizer,
    limits: LeakageConfig,
    found: Verified,
    reporter: Reporter,
) -> None:
    split = table.rpartition("/")[2]
    files = lru_cache(maxsize=_REPOSITORIES_HELD)(partial(FilesOf, dataset))
    for index in range(sum(shard.rows for shard in dataset.shards(table))):
        row = dataset.packed_row(table, index)
        for number, segment in enumerate(row["segments"]):
            where = f"{table}, row {index}, segment {number} ({segment['repository']}, {segment['style']})"
            spans = [span for span in row["spans"] if span["segment"] == number]
            repository = repositories.get(segment["repository"])
            found.documents += 1
            found.spans += len(spans)
            if repository is None:
                found.problems.append(f"{where}: its repository has no row in `repositories`")
                continue
            if repository["split"] != split:
                found.problems.append(f"{where}: its repository is of split {repository['split']}")
            said = _Document(row["input_ids"], segment, spans, repository, files(repository["id"]), tokenizer, limits)
            found.problems += [f"{where}: {problem}" for problem in said.problems()]
            found.largest_share = max(found.largest_share, said.share)
            found.longest_run = max(found.longest_run, said.run)
        reporter.advance("")


class _Document:
    """One segment of a packed row, read back."""

    def __init__(
        self,
        ids: npt.NDArray[np.int32],
        segment: dict[str, Any],
        spans: list[dict[str, Any]],
        repository: dict[str, Any],
        files: FilesOf,
        tokenizer: Tokenizer,
        limits: LeakageConfig,
    ):
        self.ids, self.segment, self.spans = ids, segment, spans
        self.repository, self.files, self.tokenizer, self.limits = repository, files, tokenizer, limits
        self.share, self.run = 0.0, 0

    def problems(self) -> Iterator[str]:
        segment = self.segment
        target_ids = self.ids[segment["target_start"] : segment["target_end"]]
        target = self.tokenizer.decode(target_ids[:-1].tolist())
        said = [t["text"] for t in usable_targets(self.repository) if t["style"] == segment["style"]]
        if said != [target] or target_ids[-1:].tolist() != [self.tokenizer.eos]:
            yield "its target is not the one in `repositories`"
        for span in self.spans:
            text = self.tokenizer.decode(self.ids[span["start"] : span["end"]].tolist())
            if problem := self.files.problem(span, text):
                yield f"{span['path']}: {problem}"
        context = self.tokenizer.decode(self.ids[segment["start"] : segment["target_start"]].tolist())
        measure, over = in_context(target, self.repository["name"], context, self.limits)
        self.share, self.run = measure.share, measure.run
        if (measure.share, measure.run) != (segment["leak_share"], segment["leak_run"]):
            yield (
                f"its context holds {measure.share:.2%} of the target's 8-grams and a run of {measure.run} words; the row "
                f"states {segment['leak_share']:.2%} and {segment['leak_run']}"
            )
        if over:
            yield f"leak: {measure.share:.2%} of the target's 8-grams, a run of {measure.run} words: over the limit"
