"""How good a build's targets are, and how well its leak guard works: figures, and targets to read.

    python benchmarks/target_quality.py OUT [--repos LIST [--config YAML] [--workers N]] [--sample 30] [--seed 0] [--json FILE]

OUT is that of a finished build; with --repos it is built first. Prints Markdown tables: repositories taken; what each source
gives; why texts were rejected; lengths; leaks before and after the guard, and what the guard took out; the cost of the measure;
and targets drawn at random, to be read.

Nothing that a row states is believed: `repo2ctx verify` measures the packed rows again, and here the share of the project's name
and the leak figures of every target are measured again over the texts of `files`. What differs is listed, and the exit code is 1.
The figures before the guard cannot be measured again from OUT alone, since what was taken out is not in it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean, quantiles
from typing import Any, NamedTuple

from machine import machine

from repo2ctx.choosing import CHOSEN, SPARE
from repo2ctx.config import LeakageConfig
from repo2ctx.dataset import Dataset
from repo2ctx.leakage import TARGET_SOURCE, over_limit
from repo2ctx.overlap import Measure, Overlap
from repo2ctx.progress import ProgressReporter
from repo2ctx.records import KEPT, short_name
from repo2ctx.schema import kind, usable_targets
from repo2ctx.verify import verify

_MOST_MASKED = 0.01
"""Of the lines of the kept files, over all repositories: what the guard may blank."""
_MOST_SAID = 20  # problems that are printed

Row = dict[str, Any]
Table = tuple[str, Sequence[str], Sequence[Sequence[object]]]


class Target(NamedTuple):
    """A target with its repository, and what was measured of it here."""

    repository: Row
    row: Row
    measured: Measure
    name_share: float


class Context(NamedTuple):
    """What the files of one repository come to. seconds: of the measure over `characters`, once for each target."""

    removed: int
    lines: int
    characters: int
    seconds: float


def build_first(out: Path, repos: Path, config: Path | None, workers: int) -> float:
    """Build `out`; the wall seconds that it took, whether or not some repositories could not be had."""
    command = [sys.executable, "-m", "repo2ctx.cli", "build", "--repos", str(repos), "--out", str(out)]
    command += ["--workers", str(workers), "--quiet"] + (["--config", str(config)] if config else [])
    start = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1) or not (out / "manifest.json").exists():
        raise SystemExit(f"the build of {repos} failed")
    return time.monotonic() - start


def measured(dataset: Dataset, repository: Row) -> tuple[list[Target], Context]:
    """A repository's targets, measured anew over its files' texts and paths."""
    name = short_name(repository["name"])
    overlaps = [Overlap(target["text"], name) for target in repository["targets"]]
    runs: list[list[Any]] = [[] for _ in overlaps]
    removed, lines, characters, seconds = 0, 0, 0, 0.0
    for batch in dataset.of_repository("files", repository["id"], ("path", "fate", "text")):
        for file in batch.to_pylist():
            removed += file["fate"] == TARGET_SOURCE
            if file["fate"] != KEPT:
                continue
            lines += len(file["text"].splitlines())
            start = time.perf_counter()
            for overlap, found in zip(overlaps, runs, strict=True):
                found += overlap.runs(file["path"]) + overlap.runs(file["text"])
            seconds += time.perf_counter() - start
            characters += len(overlaps) * len(file["text"])
    targets = [
        Target(repository, row, overlap.measure(found), round(overlap.name_share, 6))
        for row, overlap, found in zip(repository["targets"], overlaps, runs, strict=True)
    ]
    return targets, Context(removed, lines, characters, seconds)


def disagreements(targets: Iterable[Target], limits: LeakageConfig) -> Iterator[str]:
    for repository, row, found, name_share in targets:
        where = f"{repository['id']}, {row['style']}"
        if (found.share, found.run) != (row["leak_share"], row["leak_run"]):
            yield (
                f"{where}: its files hold {found.share:.2%} of the target's 8-grams and a run of {found.run} words; the row "
                f"states {row['leak_share']:.2%} and {row['leak_run']}"
            )
        if name_share != row["name_share"]:
            yield f"{where}: {name_share:.2%} of its words are the project's name; the row states {row['name_share']:.2%}"
        if limits.action == "mask" and over_limit(Overlap(row["text"]), found, limits):
            yield f"{where}: over the limit of leaks"


# Tables ------------------------------------------------------------------------------------------------------


def quartiles(values: Sequence[float]) -> list[float]:
    """Least, quartiles and most."""
    middle = quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return [min(values), *middle, max(values)]


def counted(title: str, head: str, counts: Counter[str]) -> Table:
    return title, (head, "number"), [(said, count) for said, count in counts.most_common()]


def repositories_table(dataset: Dataset, repositories: Sequence[Row]) -> Iterator[Table]:
    taken = [r for r in repositories if not r["refused"]]
    counts = Counter({"taken": len(taken)})
    counts.update(f"refused: {kind(r['refused'])}" for r in repositories if r["refused"])
    counts["failed"] = len(dataset.manifest["failures"])
    yield counted("Repositories", "what became of them", counts)
    styles = [" and ".join(sorted(t["style"] for t in usable_targets(r))) or "none" for r in taken]
    yield counted("Targets of those taken", "styles", Counter(styles))
    main = [r["languages"][0]["language"] or "(none)" if r["languages"] else "(no files)" for r in taken]
    yield counted("Main language of those taken", "language", Counter(main))


def sources_table(targets: Sequence[Target]) -> Iterator[Table]:
    usable = [t for t in targets if t.row["duplicate_of"] is None]
    for head, column in (("source", "source"), ("licence", "license")):
        found = Counter((t.row[column], t.row["style"]) for t in usable)
        names = sorted({name for name, _ in found}, key=lambda n: (-found[n, "line"] - found[n, "paragraph"], n))
        rows = [(name, found[name, "line"], found[name, "paragraph"]) for name in names]
        yield f"Targets by {head}", (head, "line", "paragraph"), rows


def rejections_table(repositories: Sequence[Row], targets: Sequence[Target]) -> Iterator[Table]:
    found = Counter(
        (kind(c["fate"]), c["style"]) for r in repositories for c in r["considered"] if c["fate"] not in (CHOSEN, SPARE)
    )
    found.update(("near-duplicate", t.row["style"]) for t in targets if t.row["duplicate_of"] is not None)
    reasons = sorted({reason for reason, _ in found}, key=lambda n: (-found[n, "line"] - found[n, "paragraph"], n))
    rows = [(reason, found[reason, "line"], found[reason, "paragraph"]) for reason in reasons]
    yield "Texts that were no target", ("reason", "line", "paragraph"), rows


def lengths_table(targets: Sequence[Target], styles: Sequence[str]) -> Iterator[Table]:
    rows: list[Sequence[object]] = []
    for style in styles:
        of_style = [t for t in targets if t.row["style"] == style]
        if of_style:
            words = quartiles([len(t.row["text"].split()) for t in of_style])
            shares = quartiles([t.name_share for t in of_style])
            rows.append((f"{style}: words", *(f"{w:.0f}" for w in words)))
            rows.append((f"{style}: share that is the project's name", *(f"{s:.1%}" for s in shares)))
    yield "Lengths", ("of", "least", "quarter", "half", "three quarters", "most"), rows


def leaks_table(targets: Sequence[Target], styles: Sequence[str], limits: LeakageConfig) -> Iterator[Table]:
    rows: list[Sequence[object]] = []
    for style in styles:
        of_style = [t for t in targets if t.row["style"] == style]
        for when in ("before", "after") if of_style else ():
            found = [
                Measure(t.row["leak_share_before"], t.row["leak_run_before"]) if when == "before" else t.measured
                for t in of_style
            ]
            pairs = zip(of_style, found, strict=True)
            over = sum(over_limit(Overlap(t.row["text"]), measure, limits) for t, measure in pairs)
            shares, runs = [m.share for m in found], [m.run for m in found]
            figures = f"{mean(shares):.2%}", f"{max(shares):.2%}", f"{mean(runs):.1f}", max(runs), over
            rows.append((style, when, len(of_style), *figures))
    head = ("style", "guard", "targets", "8-grams, mean", "most", "longest run, mean", "most", "over the limit")
    yield "Leaks: what the files hold of the targets", head, rows


def masked_table(targets: Sequence[Target], contexts: dict[str, Context]) -> Iterator[Table]:
    """A line that quotes both targets of a repository counts twice."""
    masked: Counter[str] = Counter()
    for target in targets:
        masked[target.repository["id"]] += target.row["masked_lines"]
    lines = sum(context.lines for context in contexts.values())
    share = masked.total() / max(lines, 1)
    rows: list[Sequence[object]] = [
        ("files that left as sources of targets", sum(context.removed for context in contexts.values())),
        ("lines of kept files", f"{lines:,}"),
        (
            "lines of which something was masked",
            f"{masked.total():,} in {sum(n > 0 for n in masked.values())} repositories",
        ),
        (f"their share (at most {_MOST_MASKED:.0%})", f"{share:.4%}: {'pass' if share <= _MOST_MASKED else 'FAIL'}"),
    ]
    shares = {i: count / max(contexts[i].lines, 1) for i, count in masked.items() if count}
    for identity in sorted(shares, key=lambda i: -shares[i])[:5]:
        rows.append((f"worst: {identity.partition('@')[0]}", f"{shares[identity]:.2%}, {masked[identity]} lines"))
    yield "What the guard took out", ("of", "number"), rows


def cost_table(contexts: Iterable[Context], build_s: float | None) -> Iterator[Table]:
    found = list(contexts)
    seconds, characters = sum(c.seconds for c in found), sum(c.characters for c in found)
    rows: list[Sequence[object]] = [
        ("characters measured, once for each target", f"{characters:,}"),
        ("seconds, one process", f"{seconds:.1f}"),
        ("nanoseconds a character", f"{seconds / max(characters, 1) * 1e9:.1f}"),
        ("wall seconds of the build", "built before" if build_s is None else f"{build_s:.1f}"),
    ]
    yield "Cost of the measure", ("of", "number"), rows


def printed(table: Table) -> None:
    title, head, rows = table
    print(f"\n## {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print("| " + " | ".join(str(value).replace("|", "\\|") for value in row) + " |")
    sys.stdout.flush()


def sample(targets: Sequence[Target], number: int, seed: int) -> None:
    """Targets at random, quoted."""
    drawn = random.Random(seed).sample(targets, min(number, len(targets)))
    print(f"\n## {len(drawn)} of {len(targets)} targets, drawn with seed {seed}")
    for repository, row, found, _ in drawn:
        print(
            f"\n{repository['name']}, {row['style']} from {row['source']}; 8-grams {row['leak_share_before']:.0%} before the"
        )
        print(
            f"guard and {found.share:.0%} after, run {row['leak_run_before']} and {found.run}, masked {row['masked_lines']}\n"
        )
        print("\n".join(f"> {line}".rstrip() for line in row["text"].split("\n")))


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--repos", type=Path, help="a list of repositories to build first")
    arguments.add_argument("--config", type=Path, help="of that build")
    arguments.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="of that build")
    arguments.add_argument("--sample", type=int, default=30)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--json", type=Path, help="where to write the tables and the problems, too")
    options = arguments.parse_args()
    build_s = build_first(options.out, options.repos, options.config, options.workers) if options.repos else None
    dataset = Dataset(options.out)
    repositories = dataset.repositories()
    limits = LeakageConfig.model_validate(dataset.manifest["config"]["leakage"])
    styles = dataset.manifest["config"]["targets"]["styles"]
    print(f"# Quality of the targets of {options.out.name}\n\n{machine()}", flush=True)
    targets: list[Target] = []
    contexts: dict[str, Context] = {}
    for repository in repositories:
        if not repository["refused"]:
            found, contexts[repository["id"]] = measured(dataset, repository)
            targets += found
    tables = [*repositories_table(dataset, repositories), *sources_table(targets)]
    tables += [*rejections_table(repositories, targets), *lengths_table(targets, styles)]
    tables += [*leaks_table(targets, styles, limits), *masked_table(targets, contexts)]
    tables += cost_table(contexts.values(), build_s)
    for table in tables:
        printed(table)
    with ProgressReporter(quiet=True) as reporter:
        verified = verify(options.out, reporter)
    problems = [*disagreements(targets, limits), *verified.problems]
    print(f"\n## Measured again\n\n{len(targets)} targets over `files`, {verified.documents} documents of packed rows:")
    print(f"{len(problems)} problems" + "".join(f"\n- {problem}" for problem in problems[:_MOST_SAID]))
    sample(targets, options.sample, options.seed)
    if options.json:
        said = {title: [dict(zip(map(str, head), row, strict=False)) for row in rows] for title, head, rows in tables}
        text = json.dumps({"machine": machine, "tables": said, "problems": problems}, indent=1, ensure_ascii=False)
        options.json.write_text(text + "\n", "utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
