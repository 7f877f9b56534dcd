"""Repositories -> packed rows: documents in parallel, then best-fit packing, length by length and split by split.

For training, long documents (over half of the length) and short ones come in a set proportion by tokens. Where a list has too
few short ones, long repositories give documents of a half, a quarter and an eighth of the length as well; where it has too
many, the rest is held back, by a hash of their names. Validation and test hold each document once. Rows stand in an order of
chance, though always the same, so that whoever reads them as they come meets long and short ones mixed.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repo2ctx.config import BuildConfig, length_name
from repo2ctx.documents import FitTask, Made, fit_repository, read_document, read_fit_summary
from repo2ctx.engine import Workers
from repo2ctx.packing import FIDELITIES, pack, within_share
from repo2ctx.progress import Reporter
from repo2ctx.records import Failure
from repo2ctx.schema import PACKED, SPLITS, TRAIN, packed_batch, usable_targets
from repo2ctx.shards import ShardWriter, shard_entries
from repo2ctx.state import DOCUMENTS, WORK, failed


@dataclass(frozen=True, slots=True)
class Packed:
    """What was packed. tables: for the manifest. figures: of each length. refused: why documents are missing -> how many."""

    tables: dict[str, Any]
    figures: dict[str, dict[str, int]]
    refused: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Document:
    """A document that a row may hold, and where it lies."""

    made: Made
    folder: Path
    number: int


def tasks_of(
    repositories: Sequence[dict[str, Any]],
    manifest: dict[str, Any],
    config: BuildConfig,
    out: Path,
    cache: Path | None,
) -> list[FitTask]:
    """What makes the documents of the repositories (rows of `repositories`) that have a target. cache: for token ids."""
    tasks = []
    for row in repositories:
        styles = tuple(target["style"] for target in usable_targets(row))
        styles = styles[:1] if config.pack.documents == "first-style" else styles
        if not styles:
            continue
        own = {
            "tables": {"files": manifest["tables"]["files"]},
            "repositories": {row["id"]: manifest["repositories"][row["id"]]},
        }
        settings = [config.tokens.model_dump(mode="json"), config.pack.model_dump(mode="json")]
        made_from = json.dumps([row, settings, config.leakage.model_dump(mode="json"), styles], sort_keys=True)
        folder = out / WORK / DOCUMENTS / hashlib.sha256(made_from.encode()).hexdigest()[:20]
        tasks.append(
            FitTask(
                out=out,
                manifest=own,
                repository=row,
                folder=folder,
                tokens=config.tokens,
                pack=config.pack,
                leakage=config.leakage,
                styles=styles,
                short=row["split"] == TRAIN,
                ids=cache and cache / "ids",
            )
        )
    return tasks


def make_documents(tasks: Sequence[FitTask], out: Path, workers: Workers, reporter: Reporter) -> list[Failure]:
    """Make the documents that are not there yet; returns what could not be made."""
    todo = [task for task in tasks if not task.folder.exists()]
    reporter.stage("documents", len(tasks), len(tasks) - len(todo))
    failures = []
    notices: set[str] = set()
    for outcome in workers.run(fit_repository, todo):
        identity = todo[outcome.index].repository["id"]
        if outcome.result is None:
            failure = Failure(identity, 0, f"its rows could not be made: {outcome.error}")
            failures.append(failed(outcome, failure, out, reporter))
            continue
        if (notice := outcome.result.notice) and notice not in notices:
            notices.add(notice)
            reporter.notice(notice)
        sizes = ", ".join(
            f"{len(made)} of up to {max(d.tokens for d in made):,} tokens for {name}"
            for name, made in outcome.result.documents.items()
        )
        reporter.advance(f"{identity.rpartition('@')[0]}: " + (f"documents: {sizes}" if sizes else "no document"))
    return failures


def write_packed(tasks: Sequence[FitTask], config: BuildConfig, out: Path, reporter: Reporter) -> Packed:
    """Pack the documents of the tasks that were done into `out`."""
    summaries = [(task, read_fit_summary(task.folder)) for task in tasks if task.folder.exists()]
    tables: dict[str, Any] = {}
    figures: dict[str, dict[str, int]] = {}
    reporter.stage("rows", len(config.pack.lengths) * len(SPLITS))
    for length in config.pack.lengths:
        name = length_name(length)
        figures[name] = _no_figures()
        for split in SPLITS:
            found = [
                _Document(made, task.folder, number)
                for task, summary in summaries
                if task.repository["split"] == split
                for number, made in enumerate(summary.documents.get(name, []))
            ]
            chosen = _in_proportion(found, length, config.pack.long_share, figures[name]) if split == TRAIN else found
            if chosen:
                table = f"packed/{name}/{split}"
                tables[table] = _write_table(chosen, table, length, config, out)
                _count(chosen, figures[name])
            reporter.advance("")
    refused = Counter(f"{name}: {why}" for _, summary in summaries for name, why in summary.refused.items())
    return Packed(tables, figures, dict(sorted(refused.items())))


def _in_proportion(found: Sequence[_Document], length: int, share: float, figures: dict[str, int]) -> list[_Document]:
    """The documents for training: all long ones, and short ones as the proportion allows, first those that are no part of a
    long one. In the order of `found`."""
    whole = [d for d in found if d.made.room == length]
    long = [d for d in whole if d.made.tokens > length // 2]
    short = sorted((d for d in whole if d.made.tokens <= length // 2), key=lambda d: d.made.key)
    parts = sorted((d for d in found if d.made.room < length), key=lambda d: d.made.key)
    candidates = [*short, *parts]
    long_tokens = sum(d.made.tokens for d in long)
    taken = [candidates[i] for i in within_share(long_tokens, [d.made.tokens for d in candidates], share)]
    chosen = {(d.folder, d.number) for d in [*long, *taken]}
    figures["held_back"] = sum((d.folder, d.number) not in chosen for d in short)
    figures["long_tokens"] = long_tokens
    figures["train_tokens"] = long_tokens + sum(d.made.tokens for d in taken)
    return [d for d in found if (d.folder, d.number) in chosen]


def _write_table(
    chosen: Sequence[_Document], table: str, length: int, config: BuildConfig, out: Path
) -> list[dict[str, Any]]:
    with ShardWriter(out, table, PACKED, **config.shards.model_dump(), compression=None) as writer:
        rows = pack([d.made.tokens for d in chosen], length)
        for row in sorted(rows, key=lambda row: min(chosen[i].made.key for i in row)):
            documents = [read_document(chosen[i].folder, length_name(length), chosen[i].number) for i in row]
            writer.write_batch(packed_batch(documents))
    return shard_entries(writer.shards)


def _no_figures() -> dict[str, int]:
    names = (
        "documents",
        "tokens",
        "target_tokens",
        "train_tokens",
        "long_tokens",
        "held_back",
        *FIDELITIES,
        "left_out",
    )
    return dict.fromkeys(names, 0)


def _count(chosen: Sequence[_Document], figures: dict[str, int]) -> None:
    for document in chosen:
        figures["documents"] += 1
        figures["tokens"] += document.made.tokens
        figures["target_tokens"] += document.made.targets
        figures["left_out"] += document.made.left_out
        for fidelity in FIDELITIES:
            figures[fidelity] += document.made.files.get(fidelity, 0)
