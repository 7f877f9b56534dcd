"""Metrics as JSON lines, and progress on stderr: a live bar on a terminal, a line per step elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from repo2ctx.shards import write_text


class Metrics:
    """Appends a line per step to `path` and shows it; use as a context manager.

    On resume, lines after the checkpoint's step are dropped: those steps are made again.
    """

    def __init__(self, path: Path, steps: int, after: int):
        self.path, self.steps = path, steps
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = []
        if path.exists():
            kept = [line for line in path.read_text("utf-8").splitlines() if _step(line) <= after]
        write_text(path, "".join(line + "\n" for line in kept))
        self.console = Console(stderr=True)
        self.bar = Progress(
            TextColumn("{task.description:>12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            TextColumn("{task.fields[state]}"),
            console=self.console,
            speed_estimate_period=3600,  # a step can take longer than the 30 seconds that rich looks back
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("training", total=steps, completed=after, state="")

    def __enter__(self) -> Metrics:
        self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.bar.stop()

    def write(self, record: dict[str, Any]) -> None:
        """Record one step: step, loss, grad_norm and tokens_per_s are shown."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        self.notice(
            f"step {record['step']:>5}/{self.steps}  loss {record['loss']:.4f}  norm {record['grad_norm']:.3f}  "
            f"lr {record['lr']:.2e}  {record['tokens_per_s']:,.0f} tokens/s"
        )
        self.bar.update(self.task, completed=record["step"], state=f"loss {record['loss']:.4f}")

    def notice(self, text: str) -> None:
        """Say something without disturbing the bar."""
        try:
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)
        except BrokenPipeError:  # who was told has gone; the training goes on
            self.console.quiet = True


def _step(line: str) -> float:
    """The step of a line; infinite for one that was cut off as the process died."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
