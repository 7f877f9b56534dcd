"""Metrics as JSON lines, on TensorBoard where that is installed, and progress on stderr: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from repo2ctx.progress import printable
from repo2ctx.shards import write_text

_RECENT = 0.2  # the weight of the newest step in the speed that the time left is told by


class Metrics:
    """Appends a line per event to `path` and shows it; use as a context manager.

    On resume, lines after the checkpoint's step are dropped: those steps are made again. tensorboard: the folder of its events.
    stages: the names of all, to tell which of them is at work.
    """

    def __init__(self, path: Path, after: int, tensorboard: Path | None = None, stages: Sequence[str] = ()):
        self.path, self.stages = path, stages
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = []
        if path.exists() and after:
            kept = [line for line in path.read_text("utf-8", "replace").splitlines() if _step(line) <= after]
        write_text(path, "".join(line + "\n" for line in kept))
        self.events = _tensorboard(tensorboard, after) if tensorboard else None
        self.console = Console(stderr=True)
        self.bar = Progress(
            TextColumn("{task.description:>12}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("after"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[state]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("training", total=1.0, state="")
        self._speed: tuple[str, float] | None = None  # of which stage; share of it a second

    def __enter__(self) -> Metrics:
        self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.bar.stop()
        if self.events is not None:
            self.events.close()

    def write(self, record: dict[str, Any], before: float, after: float) -> None:
        """Record one step. before, after: the share of its stage that was done before and after it."""
        self._append(record)
        stage = self._stage(record["stage"])
        left = self._left(record["stage"], after - before, record["seconds"], 1 - after)
        left += " left of the stage" if len(self.stages) > 1 else " left"
        skipped = f"  skipped: {record['skipped']}" if record.get("skipped") else ""
        self.notice(
            f"step {record['step']:>5}  {stage} {after:>4.0%}  loss {record['loss']:.4f}  "
            f"norm {record['grad_norm']:.3f}  lr {record['lr']:.2e}  {record['tokens_per_s']:,.0f} tokens/s  "
            f"{record['memory_gb']:.1f} GB  {left}{skipped}"
        )
        self.bar.update(
            self.task,
            description=escape(printable(stage)),
            completed=after,
            state=f"loss {record['loss']:.4f}, {left}",
        )

    def validated(self, record: dict[str, Any], base: Mapping[str, float] | None = None) -> None:
        """Record losses on rows that are not trained on: {"step", "stage", "validation": {table: loss}}.

        base: those of the base before training, which are told beside them.
        """
        self._append(record)
        were = {table: f" (base {loss:.4f})" for table, loss in (base or {}).items()}
        losses = ", ".join(f"{table} {loss:.4f}{were.get(table, '')}" for table, loss in record["validation"].items())
        self.notice(f"step {record['step']:>5}  validation: {losses}")

    def _append(self, record: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        if self.events is not None:
            flat = {k: v for k, v in record.items() if k not in ("step", "validation")}
            flat |= {f"validation/{table}": loss for table, loss in record.get("validation", {}).items()}
            for name, value in flat.items():
                if isinstance(value, int | float):
                    self.events.add_scalar(name, value, record["step"])

    def _stage(self, name: str) -> str:
        """A stage's name, and which of how many it is."""
        if len(self.stages) < 2:
            return name
        return f"{name} ({self.stages.index(name) + 1} of {len(self.stages)})"

    def _left(self, stage: str, share: float, seconds: float, rest: float) -> str:
        """How long the stage will still take, at the speed of late."""
        now = share / max(seconds, 1e-9)
        held = self._speed
        speed = now if held is None or held[0] != stage else (1 - _RECENT) * held[1] + _RECENT * now
        self._speed = stage, speed
        if speed <= 0:
            return "?"
        return _time(rest / speed)

    def notice(self, text: str) -> None:
        """Say something without disturbing the bar."""
        try:
            self.console.print(printable(text), markup=False, highlight=False, soft_wrap=True)
        except BrokenPipeError:  # who was told has gone; the training goes on
            self.console.quiet = True


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{round(seconds)} s"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


def _tensorboard(folder: Path, after: int) -> Any:
    """A writer of events, or None where TensorBoard is not installed."""
    if importlib.util.find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), purge_step=after + 1)


def _step(line: str) -> float:
    """The step of a line; infinite for one that was cut off as the process died."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
