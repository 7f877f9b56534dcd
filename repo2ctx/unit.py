"""One repository's finished work: a directory that exists under its name only when it is whole.

`build_unit` runs the stages from crawl to leakage guard for one repository and writes its rows; the assembly
copies them into shards. Texts pass through a spool on disk, so memory does not grow with the repository.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from repo2ctx import parsing
from repo2ctx.admission import Admission, admit
from repo2ctx.analysis import Analysis, analyse
from repo2ctx.choosing import Choice, choose
from repo2ctx.config import BuildConfig
from repo2ctx.crawl import CrawlOptions, open_snapshot
from repo2ctx.dataset import Dataset, stream_batches
from repo2ctx.guarding import Guarded, changed, without_sources
from repo2ctx.history import root_commits
from repo2ctx.languages import languages
from repo2ctx.leakage import TARGET_SOURCE
from repo2ctx.prompt import Boundary
from repo2ctx.records import KEPT, LanguageShare, Repository, RepoSpec, SourceFile, short_name
from repo2ctx.sandbox import Sandbox
from repo2ctx.schema import EDGES, FILES, REPOSITORIES, edge_row, file_row, repository_row
from repo2ctx.shards import ShardWriter, finish_folder, partial_folder, reading_folder, write_json
from repo2ctx.teaching import Lesson, TeacherOptions
from repo2ctx.usage import peak_memory

_SPOOL = pa.schema([("path", pa.string()), ("text", pa.string()), ("outline", pa.string())])
_BATCH_BYTES = 4 << 20
_ROW_BYTES = 256  # a row's columns besides its text, about


@dataclass(frozen=True, slots=True)
class UnitTask:
    """What a worker needs to make one unit in `folder`."""

    spec: RepoSpec
    folder: Path
    config: BuildConfig
    crawl: CrawlOptions
    teacher: TeacherOptions | None = None


@dataclass(frozen=True, slots=True)
class UnitSummary:
    """What the table and the progress say of a unit."""

    id: str
    fates: dict[str, int]
    kept_bytes: int
    targets: dict[str, str]  # style -> source
    refused: str  # why the repository was not taken, or ""
    edges: int
    seconds: float
    peak_bytes: int  # of the worker and its parser so far


def build_unit(task: UnitTask) -> UnitSummary:
    """Crawl, select, parse, order, find the target, guard against leaks, write; then make it final."""
    start = time.monotonic()
    aside = partial_folder(task.folder)
    parse = task.config.parse
    with (
        open_snapshot(task.spec, task.crawl) as snapshot,
        Sandbox(parse.timeout_s, parse.memory_bytes) as sandbox,
    ):
        admission = admit(snapshot, task.config.limits, task.config.selection, sandbox)
        if admission.refused:
            summary = _write_refused(task, admission, snapshot.commit, aside)
        else:
            roots = root_commits(task.spec, snapshot, task.crawl) if task.config.split.by_root else ()
            with _writer(aside, "spool", _SPOOL, "lz4") as spool:
                analysis = analyse(snapshot, task.config, sandbox, partial(_spool, spool), outlined=True)
            summary = _write(task, analysis, admission, snapshot.commit, roots, sandbox, aside)
            shutil.rmtree(aside / "spool")
    summary = replace(summary, seconds=round(time.monotonic() - start, 3), peak_bytes=sum(peak_memory()))
    write_json(aside / "summary.json", asdict(summary))
    finish_folder(aside, task.folder)
    return summary


def read_summary(folder: Path) -> UnitSummary:
    return UnitSummary(**json.loads((folder / "summary.json").read_text("utf-8")))


def _spool(spool: ShardWriter, file: SourceFile, text: str, outline: str | None) -> None:
    spool.write({"path": file.path, "text": text, "outline": outline}, len(text) + len(outline or ""))


def _spooled(folder: Path) -> Iterator[tuple[str, str]]:
    for batch in stream_batches(folder / "spool"):
        yield from zip(batch.column("path").to_pylist(), batch.column("text").to_pylist(), strict=True)


def _prepared(
    files: Iterable[SourceFile], guarded: Guarded, sandbox: Sandbox, folder: Path
) -> Iterator[tuple[str | None, str | None]]:
    """(final text, its outline) of each kept file; None, None for one that leaves.

    The outline of a text that the guard changed is made anew, so that it does not hold what was masked.
    """
    spooled = (row for batch in stream_batches(folder / "spool") for row in batch.to_pylist())
    for file, (path, text), before in zip(files, guarded, spooled, strict=True):
        assert path == file.path == before["path"]
        if text == before["text"]:
            yield text, before["outline"]
        elif text is not None and file.language in languages():
            yield text, sandbox.call_or(None, parsing.outline, file.language, text.encode())
        else:
            yield text, None


def _write(
    task: UnitTask,
    analysis: Analysis,
    admission: Admission,
    commit: str,
    roots: tuple[str, ...],
    sandbox: Sandbox,
    folder: Path,
) -> UnitSummary:
    spec, config = task.spec, task.config
    identity = f"{spec.name}@{commit}"
    linked = {path: analysis.texts[to] for path, to in analysis.links.items() if to in analysis.texts}
    small = analysis.texts | linked
    texts = partial(_spooled, folder)
    changes = without_sources(analysis, texts, sandbox)
    kept = [f.path for f in analysis.files if f.fate == KEPT and changes.get(f.path, "") is not None]

    def guard(choice: Choice) -> Guarded:
        return Guarded(choice, texts, changes, small, short_name(spec.name), config.leakage, sandbox)

    choice = choose(
        spec,
        small,
        kept,
        partial(changed, texts, changes),
        admission.license,
        config.targets,
        sandbox,
        Lesson(task.teacher, config, spec.name, analysis.ordered.placed, guard) if task.teacher else None,
    )
    guarded = guard(choice)
    written = _write_files(identity, analysis, guarded, commit, sandbox, folder)
    edges = [e for e in analysis.graph.edges if e.source in written.kept and e.target in written.kept]
    with _writer(folder, "edges", EDGES) as writer:
        for edge in edges:
            writer.write(edge_row(identity, edge), _ROW_BYTES)
    repository = replace(
        _repository(spec, commit, admission),
        roots=roots,
        languages=tuple(written.languages),
        targets=guarded.targets(),
        considered=tuple(choice.considered),
        boundary=written.boundary,
        quality=analysis.ordered.quality,
        files=len(analysis.files),
        kept_files=len(written.kept),
        kept_bytes=written.kept_bytes,
    )
    write_json(folder / "repository.json", repository_row(repository))
    return _summary(repository, written.fates, len(edges))


def _write_refused(task: UnitTask, admission: Admission, commit: str, folder: Path) -> UnitSummary:
    """A repository that is not taken: a row that says why, and nothing of what it holds."""
    repository = _repository(task.spec, commit, admission)
    write_json(folder / "repository.json", repository_row(repository))
    return _summary(repository, Counter(), 0)


def _repository(spec: RepoSpec, commit: str, admission: Admission) -> Repository:
    """What is known of a repository before it is read."""
    return Repository(
        id=f"{spec.name}@{commit}",
        name=spec.name,
        commit=commit,
        ref=spec.ref or "HEAD",
        license=admission.license,
        refused=admission.refused,
    )


def _summary(repository: Repository, fates: Counter[str], edges: int) -> UnitSummary:
    return UnitSummary(
        id=repository.id,
        fates=dict(sorted(fates.items())),
        kept_bytes=repository.kept_bytes,
        targets={guarded.target.style: guarded.target.source for guarded in repository.targets},
        refused=repository.refused,
        edges=edges,
        seconds=0.0,
        peak_bytes=0,
    )


@dataclass(slots=True)
class _Written:
    kept: set[str]
    fates: Counter[str]
    languages: list[LanguageShare]
    kept_bytes: int
    boundary: str


def _write_files(
    identity: str, analysis: Analysis, guarded: Guarded, commit: str, sandbox: Sandbox, folder: Path
) -> _Written:
    """Write a row per file, joining the guarded texts and their outlines with their places."""
    placed = {p.path: p for p in analysis.ordered.placed}
    prepared = _prepared((file for file in analysis.files if file.fate == KEPT), guarded, sandbox, folder)
    boundary = Boundary(commit)
    written = _Written(set(), Counter(), [], 0, "")
    files_of: Counter[str] = Counter()
    bytes_of: Counter[str] = Counter()
    with _writer(folder, "files", FILES) as writer:
        for file in analysis.files:
            text = outline = None
            if file.fate == KEPT:
                text, outline = next(prepared)
                if text is None:
                    file = replace(file, fate=TARGET_SOURCE)
            row = file_row(identity, file)
            written.fates[file.fate] += 1
            if text is not None:
                data = text.encode()
                place = placed[file.path]
                row |= {"position": place.position, "component": place.component, "rank": place.rank}
                row |= {"entry_point": place.entry_point or None, "exports": place.exports}
                row |= {"text": text, "outline": outline, "text_sha256": hashlib.sha256(data).hexdigest()}
                boundary.see(text)
                boundary.see(outline or "")
                boundary.see(file.path)
                written.kept.add(file.path)
                written.kept_bytes += len(data)
                files_of[file.language] += 1
                bytes_of[file.language] += len(data)
            writer.write(row, _ROW_BYTES + len(text or "") + len(outline or ""))
    written.boundary = boundary.choose()
    names = sorted(bytes_of, key=lambda name: (-bytes_of[name], name))
    written.languages = [LanguageShare(name, files_of[name], bytes_of[name]) for name in names]
    return written


def _writer(folder: Path, table: str, schema: pa.Schema, compression: str = "zstd") -> ShardWriter:
    return ShardWriter(folder, table, schema, max_bytes=1 << 62, batch_bytes=_BATCH_BYTES, compression=compression)


def restore_unit(dataset: Dataset, repository: dict[str, Any], folder: Path) -> None:
    """Take a repository back out of a finished dataset, so that it need not be made again."""
    aside = partial_folder(folder)
    counts: dict[str, Counter[str]] = {"files": Counter(), "edges": Counter()}
    for table, schema, column in (("files", FILES, "fate"), ("edges", EDGES, "strength")):
        with _writer(aside, table, schema) as writer:
            for batch in dataset.of_repository(table, repository["id"]):
                counts[table].update(batch.column(column).to_pylist())
                writer.write_batch(batch)
                writer.flush()
    summary = UnitSummary(
        id=repository["id"],
        fates=dict(sorted(counts["files"].items())),
        kept_bytes=repository["kept_bytes"],
        targets={target["style"]: target["source"] for target in repository["targets"]},
        refused=repository["refused"],
        edges=counts["edges"].total(),
        seconds=0.0,
        peak_bytes=0,
    )
    targets = [{**target, "duplicate_of": None} for target in repository["targets"]]
    write_json(aside / "repository.json", {**repository, "family": "", "split": "", "targets": targets})
    write_json(aside / "summary.json", asdict(summary))
    finish_folder(aside, folder)


@dataclass(frozen=True, slots=True)
class Unit:
    """A finished unit, read back."""

    folder: Path
    repository: dict[str, Any]
    summary: UnitSummary

    def batches(self, table: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        with reading_folder(self.folder):
            yield from stream_batches(self.folder / table, columns)


def read_unit(folder: Path) -> Unit:
    """A finished unit. Raises OutputError if it is damaged."""
    with reading_folder(folder):
        repository = json.loads((folder / "repository.json").read_text("utf-8"))
        if pa.RecordBatch.from_pylist([repository], REPOSITORIES).to_pylist() != [repository]:
            raise ValueError("its row of repositories is not whole")
        return Unit(folder, repository, read_summary(folder))
