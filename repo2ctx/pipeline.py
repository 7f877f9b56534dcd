"""build(): the one file that imports every stage.

    list -> units (one a repository, in parallel) -> tables -> documents (in parallel) -> packed rows -> manifest, card

Everything unfinished lies under `OUT/.build`; what is there under its final name is whole, so a build that was
killed goes on where it was. The manifest comes last: an OUT without one is not finished. The same list,
configuration and commits give the same bytes whatever the number of workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from repo2ctx.card import write_card
from repo2ctx.choosing import CHOSEN, SPARE
from repo2ctx.config import BuildConfig
from repo2ctx.crawl import CrawlOptions, check_git
from repo2ctx.dataset import read_manifest
from repo2ctx.engine import Workers
from repo2ctx.filters import Duplicates
from repo2ctx.packs import make_documents, tasks_of, write_packed
from repo2ctx.progress import Reporter
from repo2ctx.records import KEPT, Failure, RepoSpec
from repo2ctx.repack import complete_change, remove_stale_rows
from repo2ctx.results import BuildResult, result_of
from repo2ctx.safegit import isolate_environment
from repo2ctx.schema import EDGES, FILES, REPOSITORIES, kind, usable_targets
from repo2ctx.shards import ShardWriter, shard_entries
from repo2ctx.splitting import assign, left_out_failures
from repo2ctx.state import (
    WORK,
    already_finished,
    earlier_splits,
    explained,
    failed,
    finish,
    identity_of,
    locked,
    retract,
    scratch,
    unit_folder,
)
from repo2ctx.teacher_client import identity as identity_of_teacher
from repo2ctx.teaching import TeacherOptions, check_teacher
from repo2ctx.tokens import load_tokenizer
from repo2ctx.unit import Unit, UnitSummary, UnitTask, build_unit, read_unit

_COPIED = {"files": FILES, "edges": EDGES}


def build(
    specs: Sequence[RepoSpec],
    config: BuildConfig,
    out: Path,
    crawl: CrawlOptions,
    workers: int,
    reporter: Reporter,
    repo_timeout_s: float = 7200,
    teacher: TeacherOptions | None = None,
) -> BuildResult:
    """Build a dataset from the list into `out`, or finish one that was begun there.

    Repositories that cannot be had are in the result's `failures`, those that would tie two splits in `left_out`; everything
    else is done. teacher: needed if targets.sources names one. Raises OutputError if `out` holds something else or another
    configuration; TokenizerError and ConfigError before anything is fetched; TeacherUnavailableError when it comes to that,
    with what is finished kept.
    """
    isolate_environment()
    check_git()
    tokenizer = load_tokenizer(config.tokens)
    check_teacher(config, teacher, lambda text: len(tokenizer.encode(text)))
    identity = identity_of(specs, config, tokenizer.fingerprint)
    with explained(out), locked(out):
        complete_change(out)
        if already_finished(out, identity, reporter):
            manifest = read_manifest(out)
            result = result_of(out, manifest, unchanged=True)
            result.left_out = left_out_failures(manifest["left_out"], specs)
            return result
        crawl = replace(crawl, scratch=scratch(out))
        if teacher is not None:
            work = out / WORK / "teacher"
            teacher = replace(teacher, cache=teacher.cache or work / "answers", ledger=work / "spent.sqlite")
            teacher.prepare()
        with Workers(min(workers, len(specs)), repo_timeout_s) as pool:
            return _build(specs, config, out, identity, crawl, teacher, pool, reporter)


def _build(
    specs: Sequence[RepoSpec],
    config: BuildConfig,
    out: Path,
    identity: dict[str, Any],
    crawl: CrawlOptions,
    teacher: TeacherOptions | None,
    workers: Workers,
    reporter: Reporter,
) -> BuildResult:
    """The stages, one after another."""
    failures = _build_units(specs, config, out, crawl, teacher, workers, reporter)
    units = _units(specs, out, reporter)
    units, left_out = assign(units, earlier_splits(out), config.split)
    _mark_duplicates(units, config)
    retract(out)
    manifest = {**identity, **_write_tables(units, config, out, reporter)}
    identities = {unit.folder.name: unit.repository["id"] for unit in units}
    manifest["list"] = [{**entry, "id": identities.get(entry["unit"])} for entry in identity["list"]]
    tasks = tasks_of([unit.repository for unit in units], manifest, config, out, crawl.cache)
    failures += make_documents(tasks, out, workers, reporter)
    packed = write_packed(tasks, config, out, reporter)
    manifest["tables"] |= packed.tables
    remove_stale_rows(out, manifest["tables"])
    manifest["failures"] = [{"source": f.source, "line": f.line, "reason": f.reason} for f in failures]
    manifest["left_out"] = left_out
    manifest["summary"] = {**_summarize(units, config), "packed": packed.figures, "refused": packed.refused}
    spent = 0
    if "teacher" in config.targets.sources and teacher is not None:
        manifest["teacher"] = identity_of_teacher(config.teacher, teacher.endpoint)
        spent = teacher.spent
    manifest["card_sha256"] = write_card(out, manifest)
    finish(out, manifest, keep_work=bool(failures))
    result = result_of(out, manifest)
    result.failures = failures
    result.left_out = left_out_failures(left_out, specs)
    result.teacher_tokens = spent
    return result


# Units -----------------------------------------------------------------------------------------------------


def _build_units(
    specs: Sequence[RepoSpec],
    config: BuildConfig,
    out: Path,
    crawl: CrawlOptions,
    teacher: TeacherOptions | None,
    workers: Workers,
    reporter: Reporter,
) -> list[Failure]:
    """Make the units that are not there yet; returns what could not be had."""
    todo = [spec for spec in specs if not unit_folder(out, spec).exists()]
    reporter.stage("repositories", len(specs), len(specs) - len(todo))
    if len(todo) < len(specs):
        reporter.notice(f"going on: {len(specs) - len(todo)} of {len(specs)} repositories are done")
    tasks = [UnitTask(spec, unit_folder(out, spec), config, crawl, teacher) for spec in todo]
    failures = []
    for outcome in workers.run(build_unit, tasks):
        spec = todo[outcome.index]
        if outcome.result is not None:
            reporter.advance(_line(spec, outcome.result))
            continue
        failures.append(failed(outcome, Failure(spec.source, spec.line, outcome.error), out, reporter))
    return sorted(failures, key=lambda f: f.line)


def _line(spec: RepoSpec, unit: UnitSummary) -> str:
    if unit.refused:
        return f"{spec.name}: not taken: {unit.refused}"
    dropped = sum(n for fate, n in unit.fates.items() if fate != KEPT)
    target = ", ".join(f"{style} from {source}" for style, source in unit.targets.items()) or "no target, so no row"
    return (
        f"{spec.name}: kept {unit.fates.get(KEPT, 0):,} files ({unit.kept_bytes / 1e6:.1f} MB), dropped {dropped:,}, "
        f"{unit.edges:,} edges, {target}, {unit.seconds:.1f} s, {unit.peak_bytes / 1e6:.0f} MB in worker and parser"
    )


def _units(specs: Sequence[RepoSpec], out: Path, reporter: Reporter) -> list[Unit]:
    """The finished units in the list's order. Two lines that turn out to be one commit give one unit."""
    units: list[Unit] = []
    lines: dict[str, int] = {}
    for spec in specs:
        folder = unit_folder(out, spec)
        if not folder.exists():
            continue
        unit = read_unit(folder)
        identity = unit.repository["id"]
        if identity in lines:
            reporter.notice(f"{spec.source} (line {spec.line}): the same commit as line {lines[identity]}; skipped")
            continue
        lines[identity] = spec.line
        unit.repository["split"] = spec.split or ""
        units.append(unit)
    return units


def _mark_duplicates(units: Sequence[Unit], config: BuildConfig) -> None:
    """Mark targets that nearly repeat an earlier repository's, in the list's order: they make no document. What the list
    itself says may repeat."""
    most = config.targets.max_similarity
    if most is None:
        return
    duplicates = {style: Duplicates(most) for style in config.targets.styles}
    for unit in units:
        for target in unit.repository["targets"]:
            if target["source"] == "list":
                continue
            earlier = duplicates[target["style"]].add(unit.repository["id"], target["text"])
            target["duplicate_of"] = earlier or None


# Tables ----------------------------------------------------------------------------------------------------


def _write_tables(units: Sequence[Unit], config: BuildConfig, out: Path, reporter: Reporter) -> dict[str, Any]:
    """Copy the units' rows into shards; returns the manifest's `tables` and `repositories`."""
    reporter.stage("tables", 3)
    sizes = config.shards.model_dump()
    places: dict[str, dict[str, Any]] = {}
    with ShardWriter(out, "repositories", REPOSITORIES, **sizes) as writer:
        for unit in units:
            row = unit.repository
            places[row["id"]] = {"commit": row["commit"], "split": row["split"]}
            writer.write(row, 1024)
    tables = {"repositories": shard_entries(writer.shards)}
    reporter.advance("")
    for table, schema in _COPIED.items():
        with ShardWriter(out, table, schema, **sizes) as writer:
            for unit in units:
                places[unit.repository["id"]][table] = list(_copy(unit.batches(table), writer))
        tables[table] = shard_entries(writer.shards)
        reporter.advance("")
    return {"tables": tables, "repositories": places}


def _copy(batches: Iterable[pa.RecordBatch], writer: ShardWriter) -> Iterator[dict[str, int]]:
    """Copy one repository's batches as they are; yields where they went, a run of batches per shard."""
    current: dict[str, int] | None = None
    for batch in batches:
        shard, number = writer.flush()
        writer.write_batch(batch)
        writer.flush()
        if current is None or current["shard"] != shard:
            if current is not None:
                yield current
            current = {"shard": shard, "batch": number, "batches": 0}
        current["batches"] += 1
    if current is not None:
        yield current


# Figures ---------------------------------------------------------------------------------------------------


def _summarize(units: Sequence[Unit], config: BuildConfig) -> dict[str, Any]:
    """The figures of the table and the card."""
    fates: Counter[str] = Counter()
    for unit in units:
        fates.update(unit.summary.fates)
    taken = [unit.repository for unit in units if not unit.repository["refused"]]
    return {
        "fates": dict(sorted(fates.items())),
        "splits": dict(sorted(Counter(u.repository["split"] for u in units).items())),
        "targets": {style: _sources(taken, style) for style in config.targets.styles},
        "rejected": dict(sorted(_rejected(taken).items())),
        "not_taken": dict(sorted(Counter(kind(u.summary.refused) for u in units if u.summary.refused).items())),
        "without_target": sum(not usable_targets(repository) for repository in taken),
    }


def _sources(repositories: Sequence[dict[str, Any]], style: str) -> dict[str, int]:
    """How many repositories have their target of a style from each source, or from none."""
    found: Counter[str] = Counter()
    for repository in repositories:
        sources = [kind(t["source"]) for t in usable_targets(repository) if t["style"] == style]
        found[sources[0] if sources else "none"] += 1
    return dict(sorted(found.items()))


def _rejected(repositories: Sequence[dict[str, Any]]) -> Counter[str]:
    """How many texts were no target, by reason."""
    fates = (considered["fate"] for r in repositories for considered in r["considered"])
    found = Counter(kind(fate) for fate in fates if fate not in (CHOSEN, SPARE))
    if repeated := sum(len(r["targets"]) - len(usable_targets(r)) for r in repositories):
        found["near-duplicate"] = repeated
    return found
