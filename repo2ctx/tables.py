"""The short table at a build's end, for people, and the same as JSON, for programs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from repo2ctx.config import parse_length
from repo2ctx.progress import printable, printable_json
from repo2ctx.records import KEPT
from repo2ctx.results import BuildResult
from repo2ctx.usage import peak_memory

_START = time.monotonic()


def print_result(result: BuildResult, stages: Mapping[str, float], as_json: bool) -> None:
    """Print what a build did to stdout. stages: the seconds of each."""
    seconds = round(time.monotonic() - _START, 1)
    memory = max(peak_memory())
    if as_json:
        cost = {"seconds": seconds, "stages": {n: round(s, 1) for n, s in stages.items()}, "peak_bytes": memory}
        print(printable_json(_as_dict(result) | cost))
        return
    console = Console(highlight=False, soft_wrap=True)
    files = _files_table(result)
    parts = ", ".join(f"{name} {s:,.1f}" for name, s in stages.items())
    files.add_row("seconds", f"{seconds:,.1f}" + (f": {parts}" if parts else ""))
    files.add_row("memory", f"{memory / 1e6:,.0f} MB at most in one process; a worker and its parser are two")
    console.print(files)
    if result.packed:
        console.print(_rows_table(result))
        console.print(_fidelity_table(result))
    for failure in result.failures:
        console.print(
            f"failed: {printable(failure.source)} (line {failure.line}): {printable(failure.reason)}", markup=False
        )
    for left in result.left_out:
        console.print(f"{printable(left.source)} (line {left.line}): {printable(left.reason)}", markup=False)
    state = "nothing to do: it is finished" if result.unchanged else "finished"
    if result.left_out:
        state = "finished but for what was left out"
    if result.failures:
        state = "finished but for the failures; run the same command again to try those once more"
    console.print(f"{printable(str(result.out))}: {state}", markup=False)


def _files_table(result: BuildResult) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    failed = f" ({len(result.failures)} failed)" if result.failures else ""
    left_out = f" ({len(result.left_out)} left out)" if result.left_out else ""
    table.add_row("repositories", f"{result.repositories:,}{failed}{left_out}")
    dropped = {fate: n for fate, n in result.fates.items() if fate != KEPT}
    table.add_row("files kept", f"{result.fates.get(KEPT, 0):,}")
    reasons = ", ".join(f"{fate} {n:,}" for fate, n in sorted(dropped.items(), key=lambda x: (-x[1], x[0])))
    table.add_row("files dropped", f"{sum(dropped.values()):,}" + (f": {reasons}" if reasons else ""))
    for style, sources in result.targets.items():
        said = ", ".join(f"{source} {n:,}" for source, n in sources.items()) or "none"
        table.add_row("targets", f"{style}: {said}")
    if result.rejected:
        table.add_row("texts refused", ", ".join(f"{reason} {n:,}" for reason, n in result.rejected.items()))
    if result.teacher_tokens:
        table.add_row("teacher", f"{result.teacher_tokens:,} tokens")
    if result.not_taken:
        table.add_row("not taken", ", ".join(f"{reason} {n:,}" for reason, n in result.not_taken.items()))
    table.add_row("splits", ", ".join(f"{split} {n:,}" for split, n in result.splits.items()) or "none")
    if result.refused:
        table.add_row("no row", ", ".join(f"{reason} {n:,}" for reason, n in result.refused.items()))
    return table


def _rows_table(result: BuildResult) -> Table:
    headings = ("length", "rows", "documents", "tokens", "fill", "long", "held back")
    table = _table(headings)
    for name, values in result.packed.items():
        room = values["rows"] * parse_length(name)
        table.add_row(
            name,
            f"{values['rows']:,}",
            f"{values['documents']:,}",
            f"{values['tokens']:,}",
            f"{values['tokens'] / room:.1%}" if room else "-",
            f"{values['long_tokens'] / values['train_tokens']:.0%}" if values["train_tokens"] else "-",
            f"{values['held_back']:,}",
        )
    return table


def _fidelity_table(result: BuildResult) -> Table:
    """How much of the files the documents hold."""
    kinds = {
        "full": "files in full",
        "outline": "outlines",
        "head": "beginnings",
        "path": "paths",
        "left_out": "left out",
    }
    table = _table(("in documents of", *kinds.values()))
    for name, values in result.packed.items():
        table.add_row(name, *(f"{values[kind]:,}" for kind in kinds))
    return table


def _table(headings: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading == headings[0] else "right", no_wrap=True)
    return table


def _as_dict(result: BuildResult) -> dict[str, object]:
    return {
        "out": str(result.out),
        "repositories": result.repositories,
        "files": dict(result.fates),
        "targets": result.targets,
        "rejected_targets": dict(result.rejected),
        "teacher_tokens": result.teacher_tokens,
        "not_taken": dict(result.not_taken),
        "splits": dict(result.splits),
        "packed": result.packed,
        "no_row": dict(result.refused),
        "failures": [{"source": f.source, "line": f.line, "reason": f.reason} for f in result.failures],
        "left_out": [{"source": f.source, "line": f.line, "reason": f.reason} for f in result.left_out],
        "unchanged": result.unchanged,
    }
