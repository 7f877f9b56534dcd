"""A repository's lesson: its files as the student will read them, put before the teacher (`teacher.py`) in their order."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from repo2ctx.choosing import Choice
from repo2ctx.config import BuildConfig, TeacherConfig
from repo2ctx.errors import ConfigError
from repo2ctx.records import Placed, Style
from repo2ctx.teacher import Teacher, TeacherFile
from repo2ctx.teacher_client import Endpoint
from repo2ctx.teacher_ledger import Ledger
from repo2ctx.tokens import load_tokenizer

CountTokens = Callable[[str], int]
Guard = Callable[[Choice], Iterable[tuple[str, str | None]]]
"""Gives (path, text) of every kept file as it would be written with the targets chosen so far; None for one that leaves."""


@dataclass(frozen=True, slots=True)
class TeacherOptions:
    """How a teacher is asked; none of it changes what an answer says.

    endpoint: None gives only what is answered already. budget: tokens that a build may spend, answers kept earlier not
    counted; None for no limit. cache: where answers are kept. ledger: the file that counts what is spent. The pipeline
    places the last two in its own scratch where they are None.
    """

    endpoint: Endpoint | None
    budget: int | None = None
    cache: Path | None = None
    ledger: Path | None = None

    def prepare(self) -> None:
        """Make the folder of the cache. Raises ConfigError if answers cannot be kept there: they would be paid for twice."""
        assert self.cache
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.cache):
                pass
        except OSError as error:
            raise ConfigError(
                f"{self.cache}: a teacher's answers cannot be kept there ({error.strerror}); give another --cache"
            ) from error

    def teacher(self, config: TeacherConfig) -> Teacher:
        assert self.cache
        return Teacher(config, self.endpoint, self.cache, self._ledger)

    @property
    def spent(self) -> int:
        """Tokens spent so far."""
        return self._ledger.spent

    @property
    def _ledger(self) -> Ledger:
        assert self.ledger
        return Ledger(self.ledger, self.budget)


def check_teacher(config: BuildConfig, options: TeacherOptions | None, count_tokens: CountTokens) -> None:
    """Raise ConfigError if a teacher is wanted, and cannot work with what it is given."""
    if "teacher" not in config.targets.sources:
        return
    if options is None or not config.teacher.model:
        raise ConfigError("targets.sources names teacher; give build() its TeacherOptions, and set teacher.model")
    if options.endpoint is not None and importlib.util.find_spec("openai") is None:
        raise ConfigError("a teacher needs the `openai` package: pip install 'repo2ctx[teacher]', or 'openai>=3,<4'")
    Teacher.room(config.teacher, count_tokens)


class Lesson:
    """Asks the teacher for summaries of one repository, when the first is wanted and not before."""

    def __init__(
        self, options: TeacherOptions, config: BuildConfig, name: str, placed: Sequence[Placed], guard: Guard
    ) -> None:
        self.source = f"teacher:{config.teacher.model}"
        self._options, self._config, self._name, self._placed, self._guard = options, config, name, placed, guard
        self._files: list[TeacherFile] | None = None
        self._count: CountTokens | None = None

    def write(self, style: Style, choice: Choice) -> tuple[str, str]:
        """See `choosing.Writer`. Raises TeacherError."""
        if self._count is None:
            tokenizer = load_tokenizer(self._config.tokens)
            self._count = lambda text: len(tokenizer.encode(text))
        if self._files is None:
            self._files = self._read(choice, self._count)
        with closing(self._options.teacher(self._config.teacher)) as teacher:
            written = teacher.summarize(self._name, self._files, style, self._count)
        return written.text, written.reason

    def _read(self, choice: Choice, count: CountTokens) -> list[TeacherFile]:
        texts = {path: text for path, text in self._guard(choice) if text is not None}
        in_order = sorted((p for p in self._placed if p.path in texts), key=lambda p: p.position)
        return [TeacherFile(p.path, texts[p.path], p.component, p.rank, count(texts[p.path])) for p in in_order]
