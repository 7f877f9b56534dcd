"""build(): the one file that imports every stage.

    list -> units (one a repository, in parallel) -> tables -> documents (in parallel) -> packed rows -> manifest, card

Everything unfinished lies under `OUT/.build`; what is there under its final name is whole, so a build that was
killed goes on where it was. The manifest comes last: an OUT without one is not finished. The same list,
configuration and commits give the same bytes whatever the number of workers.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from repo2ctx.card import write_card
from repo2ctx.choosing import CHOSEN, SPARE
from repo2ctx.config import BuildConfig, length_name, parse_length
from repo2ctx.crawl import CrawlOptions, check_git
from repo2ctx.engine import Outcome, Workers
from repo2ctx.filters import Duplicates
from repo2ctx.fitting import FitTask, fit_repository, read_document, read_fit_summary
from repo2ctx.packing import pack
from repo2ctx.progress import Reporter
from repo2ctx.records import KEPT, Failure, RepoSpec
from repo2ctx.safegit import isolate_environment
from repo2ctx.schema import (
    EDGES,
    FILES,
    MANIFEST,
    PACKED,
    REPOSITORIES,
    SPLITS,
    kind,
    packed_batch,
    read_manifest,
    usable_targets,
)
from repo2ctx.shards import ShardWriter, shard_entries, write_json, write_text
from repo2ctx.state import WORK, already_finished, explained, identity_of, locked, retract, scratch, unit_folder
from repo2ctx.teacher_client import identity as identity_of_teacher
from repo2ctx.teaching import TeacherOptions, check_teacher
from repo2ctx.tokens import load_tokenizer
from repo2ctx.unit import Unit, UnitSummary, UnitTask, build_unit, read_unit

_COPIED = {"files": FILES, "edges": EDGES}


@dataclass(slots=True)
class BuildResult:
    """What a build did: for the table at its end, and for programs."""

    out: Path
    repositories: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    targets: dict[str, dict[str, int]] = field(default_factory=dict)  # style -> source -> repositories
    rejected: Counter[str] = field(default_factory=Counter)  # reason -> texts
    not_taken: Counter[str] = field(default_factory=Counter)  # reason -> repositories
    splits: Counter[str] = field(default_factory=Counter)
    packed: dict[str, dict[str, int]] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    teacher_tokens: int = 0  # spent on a teacher now and in the runs that this one went on from
    unchanged: bool = False


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

    Repositories that cannot be had are in the result's `failures`; everything else is done. teacher: needed if
    targets.sources names one. Raises OutputError if `out` holds something else or another configuration; TokenizerError and
    ConfigError before anything is fetched; TeacherUnavailableError when it comes to that, with what is finished kept.
    """
    isolate_environment()
    check_git()
    tokenizer = load_tokenizer(config.tokens)
    if tokenizer.notice:
        reporter.notice(tokenizer.notice)
    check_teacher(config, teacher, lambda text: len(tokenizer.encode(text)))
    identity = identity_of(specs, config, tokenizer.fingerprint)
    with explained(out), locked(out):
        if already_finished(out, identity, reporter):
            return _result_of(out, read_manifest(out), unchanged=True)
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
    _mark_duplicates(units, config)
    retract(out)
    manifest = {**identity, **_write_tables(units, config, out, reporter)}
    identities = {unit.folder.name: unit.repository["id"] for unit in units}
    manifest["list"] = [{**entry, "id": identities.get(entry["unit"])} for entry in identity["list"]]
    ready = [u for u in units if usable_targets(u.repository)]
    failures += _fit(ready, manifest, config, out, workers, reporter)
    ready = [u for u in ready if _documents_folder(out, u).exists()]
    manifest["tables"] |= _write_packed(ready, config, out, reporter)
    manifest["failures"] = [{"source": f.source, "line": f.line, "reason": f.reason} for f in failures]
    manifest["summary"] = _summarize(units, ready, config, out)
    spent = 0
    if "teacher" in config.targets.sources and teacher is not None:
        manifest["teacher"] = identity_of_teacher(config.teacher, teacher.endpoint)
        spent = teacher.spent
    write_card(out, manifest)
    write_json(out / MANIFEST, manifest)
    if not failures:
        shutil.rmtree(out / WORK)
    result = _result_of(out, manifest)
    result.failures = failures
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
    reporter.stage("repositories", len(specs))
    if len(todo) < len(specs):
        reporter.notice(f"going on: {len(specs) - len(todo)} of {len(specs)} repositories are done")
    for _ in range(len(specs) - len(todo)):
        reporter.advance("")
    tasks = [UnitTask(spec, unit_folder(out, spec), config, crawl, teacher) for spec in todo]
    failures = []
    for outcome in workers.run(build_unit, tasks):
        spec = todo[outcome.index]
        if outcome.result is not None:
            reporter.advance(_line(spec, outcome.result))
            continue
        failures.append(_failed(outcome, Failure(spec.source, spec.line, outcome.error), out, reporter))
    return sorted(failures, key=lambda f: f.line)


def _failed(outcome: Outcome[Any], failure: Failure, out: Path, reporter: Reporter) -> Failure:
    """Tell of a failure at once; the traceback of one that we did not foresee is kept for a report. Raises what is fatal."""
    if outcome.fatal is not None:
        raise outcome.fatal
    reporter.advance("")
    if outcome.trace:
        place = out / WORK / "errors" / f"{hashlib.sha256(failure.source.encode()).hexdigest()[:12]}.txt"
        place.parent.mkdir(exist_ok=True)
        write_text(place, outcome.trace)
        failure = replace(failure, reason=f"{failure.reason}; a fault of repo2ctx: please report {place}")
    where = f" (line {failure.line})" if failure.line else ""
    reporter.notice(f"failed: {failure.source}{where}: {failure.reason}")
    return failure


def _line(spec: RepoSpec, unit: UnitSummary) -> str:
    if unit.refused:
        return f"{spec.name}: not taken: {unit.refused}"
    dropped = sum(n for fate, n in unit.fates.items() if fate != KEPT)
    target = ", ".join(f"{style} from {source}" for style, source in unit.targets.items()) or "no target, so no row"
    return (
        f"{spec.name}: kept {unit.fates.get(KEPT, 0):,} files ({unit.kept_bytes / 1e6:.1f} MB), dropped {dropped:,}, "
        f"{unit.edges:,} edges, {target}, {unit.seconds:.1f} s, memory {unit.peak_bytes / 1e6:.0f} MB"
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


def _split(family: str, config: BuildConfig) -> str:
    """By hash of the family, so that it does not depend on what else the list holds."""
    digest = hashlib.sha256(f"{config.split.seed}\0{family}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    if share < config.split.test:
        return "test"
    return "validation" if share < config.split.test + config.split.validation else "train"


# Tables ----------------------------------------------------------------------------------------------------


def _write_tables(units: Sequence[Unit], config: BuildConfig, out: Path, reporter: Reporter) -> dict[str, Any]:
    """Copy the units' rows into shards; returns the manifest's `tables` and `repositories`."""
    reporter.stage("tables", 3)
    sizes = config.shards.model_dump()
    places: dict[str, dict[str, Any]] = {}
    with ShardWriter(out, "repositories", REPOSITORIES, **sizes) as writer:
        for unit in units:
            row = unit.repository
            row["split"] = row["split"] or _split(row["family"], config)
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


# Packs -----------------------------------------------------------------------------------------------------


def _documents_folder(out: Path, unit: Unit) -> Path:
    return out / WORK / "documents" / unit.folder.name


def _fit(
    units: Sequence[Unit],
    manifest: dict[str, Any],
    config: BuildConfig,
    out: Path,
    workers: Workers,
    reporter: Reporter,
) -> list[Failure]:
    """Make the documents that are not there yet; returns what could not be made."""
    reporter.stage("documents", len(units))
    todo = [u for u in units if not _documents_folder(out, u).exists()]
    for _ in range(len(units) - len(todo)):
        reporter.advance("")
    tasks = []
    for unit in todo:
        identity = unit.repository["id"]
        own = {
            "tables": {"files": manifest["tables"]["files"]},
            "repositories": {identity: manifest["repositories"][identity]},
        }
        folder = _documents_folder(out, unit)
        styles = tuple(target["style"] for target in usable_targets(unit.repository))
        styles = styles[:1] if config.pack.documents == "first-style" else styles
        tasks.append(
            FitTask(out, own, unit.repository, folder, config.pack.lengths, config.tokens, config.leakage, styles)
        )
    failures = []
    for outcome in workers.run(fit_repository, tasks):
        identity = todo[outcome.index].repository["id"]
        if outcome.result is None:
            failure = Failure(identity, 0, f"its rows could not be made: {outcome.error}")
            failures.append(_failed(outcome, failure, out, reporter))
            continue
        sizes = ", ".join(
            f"{name} {' + '.join(format(d['tokens'], ',') for d in made)}"
            for name, made in outcome.result.documents.items()
        )
        name, _, commit = identity.rpartition("@")
        reporter.advance(f"{name}@{commit[:12]}: " + (f"{sizes} tokens" if sizes else "no row"))
    return failures


def _write_packed(units: Sequence[Unit], config: BuildConfig, out: Path, reporter: Reporter) -> dict[str, Any]:
    """Pack each length's documents, split by split."""
    sizes = config.shards.model_dump()
    tables: dict[str, Any] = {}
    reporter.stage("rows", len(config.pack.lengths) * len(SPLITS))
    for length in config.pack.lengths:
        name = length_name(length)
        for split in SPLITS:
            table = f"packed/{name}/{split}"
            chosen = [u for u in units if u.repository["split"] == split]
            have = []  # tokens, folder, number
            for folder in (_documents_folder(out, unit) for unit in chosen):
                made = read_fit_summary(folder).documents.get(name, [])
                have += [(document["tokens"], folder, number) for number, document in enumerate(made)]
            with ShardWriter(out, table, PACKED, **sizes, compression=None) as writer:
                for row in pack([n for n, _, _ in have], length):
                    documents = [read_document(have[i][1], name, have[i][2]) for i in row]
                    writer.write_batch(packed_batch(documents))
            tables[table] = shard_entries(writer.shards)
            if not have:
                (out / table).rmdir()
                del tables[table]
            reporter.advance("")
    return tables


def _summarize(units: Sequence[Unit], ready: Sequence[Unit], config: BuildConfig, out: Path) -> dict[str, Any]:
    """The figures of the table and the card."""
    fates: Counter[str] = Counter()
    for unit in units:
        fates.update(unit.summary.fates)
    packed = {length_name(n): {"documents": 0, "tokens": 0, "left_out": 0} for n in config.pack.lengths}
    refused: Counter[str] = Counter()
    for unit in ready:
        found = read_fit_summary(_documents_folder(out, unit))
        for name, documents in found.documents.items():
            packed[name]["documents"] += len(documents)
            packed[name]["tokens"] += sum(document["tokens"] for document in documents)
            packed[name]["left_out"] += sum(document["left_out"] for document in documents)
        refused.update(f"{name}: {reason}" for name, reason in found.refused.items())
    taken = [unit.repository for unit in units if not unit.repository["refused"]]
    without = sum(not usable_targets(repository) for repository in taken)
    if without:
        refused["no target"] = without
    return {
        "fates": dict(sorted(fates.items())),
        "splits": dict(sorted(Counter(u.repository["split"] for u in units).items())),
        "targets": {style: _sources(taken, style) for style in config.targets.styles},
        "rejected": dict(sorted(_rejected(taken).items())),
        "not_taken": dict(sorted(Counter(kind(u.summary.refused) for u in units if u.summary.refused).items())),
        "packed": packed,
        "refused": dict(sorted(refused.items())),
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


def _result_of(out: Path, manifest: dict[str, Any], unchanged: bool = False) -> BuildResult:
    summary = manifest["summary"]
    packed = {name: dict(summary["packed"][name]) for name in sorted(summary["packed"], key=parse_length)}
    for name, values in packed.items():
        tables = [t for t in manifest["tables"] if t.startswith(f"packed/{name}/")]
        values["rows"] = sum(s["rows"] for t in tables for s in manifest["tables"][t])
    return BuildResult(
        out=out,
        repositories=len(manifest["repositories"]),
        fates=Counter(summary["fates"]),
        targets=summary["targets"],
        rejected=Counter(summary["rejected"]),
        not_taken=Counter(summary["not_taken"]),
        splits=Counter(summary["splits"]),
        packed=packed,
        refused=Counter(summary["refused"]),
        unchanged=unchanged,
    )
