"""Progress on stderr: a live bar on a terminal, a line per repository elsewhere."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Reporter(Protocol):
    """Who is told how far the build is."""

    def stage(self, name: str, total: int, done: int = 0) -> None:
        """A stage of `total` steps begins, of which an earlier run did some."""

    def advance(self, what: str) -> None: ...

    def notice(self, text: str) -> None: ...


class ProgressReporter:
    """Tells a person how far a build is; use as a context manager."""

    def __init__(self, quiet: bool = False):
        self.console = Console(stderr=True, quiet=quiet)
        self.live = self.console.is_terminal
        self.bar = Progress(
            TextColumn("{task.description:>12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.live,
        )
        self.current = self.bar.add_task("", total=None, visible=False)

    def __enter__(self) -> ProgressReporter:
        self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.bar.stop()
        self.bar.stop_task(self.current)

    @property
    def seconds(self) -> dict[str, float]:
        """What each stage took, or has taken so far."""
        return {task.description: task.elapsed or 0.0 for task in self.bar.tasks if task.description}

    def stage(self, name: str, total: int, done: int = 0) -> None:
        self.bar.stop_task(self.current)
        self.bar.update(self.current, visible=False)
        self.current = self.bar.add_task(
            name, total=total, completed=done
        )  # the rest's time is told by what is done now

    def advance(self, what: str) -> None:
        self.bar.advance(self.current)
        if what:
            self._say(what)

    def notice(self, text: str) -> None:
        self._say(f"[yellow]{escape(text)}[/yellow]" if self.live else text, markup=self.live)

    def _say(self, text: str, markup: bool = False) -> None:
        self.console.print(printable(text), markup=markup, highlight=False, soft_wrap=True)


def printable(text: str) -> str:
    """Text that cannot steer a terminal, as one line: control characters and line breaks, which names and messages may hold, are
    escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """The same of text whose lines are to be seen as they are: with a name in it, they could be forged."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(value: Any) -> str:
    """JSON that a person can read and that cannot steer a terminal: what is not printable is escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
