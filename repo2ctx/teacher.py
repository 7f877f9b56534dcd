"""A teacher: a larger model that writes a repository's summary from the same files that a student will read.

Files that fit the teacher's context go into one request. Otherwise they are grouped, in dependency order, into parts that fit;
the teacher writes notes on each part, and the summary from the notes, which are condensed in turn while they do not fit. Files of
one component (a cycle) stay in one part unless they fill more than one; a file longer than a part is cut at line ends.
The same files give the same requests, and a file that changes leaves the parts before it as they were, so that kept answers
(`teacher_client.py`) serve again.

A summary costs the repository's tokens once, and for each request the instructions and an answer. A request holds at most 7/8 of
the context. Another style of the same files takes its notes from the cache.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from repo2ctx.config import TeacherConfig
from repo2ctx.errors import ConfigError
from repo2ctx.prose import first_sentence
from repo2ctx.records import Style, short_name
from repo2ctx.teacher_client import Answer, Client
from repo2ctx.teacher_text import FILES, NOTES, PART, SOME_NOTES, TASKS, clean, prompt, unfit, whole_sentences

_MARGIN = 8  # 1/8 of the context stays free: the teacher's tokenizer is not the one that counts
_LEAST_ROOM = 256  # tokens for files, below which nothing can be said
_NOTE_SHARE = 4  # notes on a part take at most 1/4 of a request, so that condensing them always makes them fewer
_CENTRAL = 3  # files that stand for a part
_SHOWN_PATH = 200  # characters


@dataclass(frozen=True, slots=True)
class TeacherFile:
    """A file as the student sees it. component: files of a cycle share one; rank: how central it is; tokens: of `text`."""

    path: str
    text: str
    component: int
    rank: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Written:
    """A summary, or `reason`: why there is none (no-files, empty, content-filter, cut-off,
    or as `unfit` says).

    requests and tokens are those that it took, `cached` of them answered before: but for `cached`, a rerun says the same.
    """

    text: str
    reason: str
    requests: int
    prompt_tokens: int
    completion_tokens: int
    cached: int


@dataclass(frozen=True, slots=True)
class _Part:
    """What it is about: `first` to `last` file, and the `central` ones among them, as (-rank, file)."""

    first: str
    last: str
    central: tuple[tuple[float, str], ...]

    def __str__(self) -> str:
        ends = self.first if self.first == self.last else f"{self.first} to {self.last}"
        between = [file for _, file in self.central if file not in (self.first, self.last)]
        return f"{ends}; central: {', '.join(between)}" if between else ends


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a marker line begins: a file, a stretch of one, or notes. tokens: with the marker."""

    label: str
    text: str
    tokens: int
    about: _Part


class Teacher(Client):
    """A client that summarizes repositories."""

    @staticmethod
    def room(config: TeacherConfig, count_tokens: Callable[[str], int]) -> int:
        """Tokens for files in any request, beside the longest instructions and an answer of twice the usual length.

        Raises ConfigError if too few are left.
        """
        frame = max(count_tokens(prompt("x" * _SHOWN_PATH, task, PART, ())) for task in TASKS)
        room = config.context - config.context // _MARGIN - 2 * config.max_answer_tokens - frame
        if room < _LEAST_ROOM:
            raise ConfigError(
                f"teacher.context is {config.context}, which leaves {max(0, room)} tokens for files; raise it, or lower "
                "teacher.max_answer_tokens"
            )
        return room

    def summarize(
        self, name: str, files: Sequence[TeacherFile], style: Style, count_tokens: Callable[[str], int]
    ) -> Written:
        """A summary of the repository `name` (host/owner/name) from its files, in dependency order.

        count_tokens: with any tokenizer, best the one that counted `files`. Raises TeacherError as `ask` does.
        """
        work = _Work(self, short_name(name), count_tokens)
        text, reason = work.summary(files, style) if files else ("", "no-files")
        if why := unfit(text):
            text, reason = "", why
        answers = work.answers
        return Written(
            text,
            reason,
            len(answers),
            sum(answer.prompt_tokens for answer in answers),
            sum(answer.completion_tokens for answer in answers),
            sum(answer.cached for answer in answers),
        )


@dataclass(slots=True)
class _Work:
    """One repository's requests."""

    client: Client
    name: str
    count: Callable[[str], int]
    answers: list[Answer] = field(default_factory=list)

    def summary(self, files: Sequence[TeacherFile], style: Style) -> tuple[str, str]:
        """(text, "") or ("", reason)."""
        room = Teacher.room(self.client.config, self.count)
        groups = list(_grouped(self._units(files, room), room))
        if len(groups) == 1:
            return self._write(style, FILES, groups[0])
        task, what = "part", PART
        while True:
            notes, reason = self._notes(task, what, groups, room)
            if not notes:
                return "", reason
            groups = list(_grouped(([note] for note in notes), room))
            if len(groups) == 1:
                return self._write(style, NOTES, notes)
            task, what = "condense", SOME_NOTES

    def _notes(self, task: str, what: str, groups: Sequence[Sequence[_Piece]], room: int) -> tuple[list[_Piece], str]:
        """Notes on each group, and why the last of those that have none has none: the summary does without them."""
        notes, reason = [], ""
        for number, group in enumerate(groups, 1):
            text, why = self._write(task, what, group)
            about = _about(group)
            label = f"part {number}: {about}"
            marker = self._marker_tokens(label)
            if text := self._shortened(text, room // _NOTE_SHARE - marker):
                notes.append(_Piece(label, text, marker + self.count(text), about))
            else:
                reason = why or "empty"
        return notes, reason

    def _write(self, task: str, what: str, pieces: Sequence[_Piece]) -> tuple[str, str]:
        """One request: (cleaned text, "") or ("", reason). A paragraph that is cut off is asked for again with twice the room,
        and so is any answer of which nothing whole is left; notes and lines may end where they were cut."""
        request = prompt(self.name, task, what, [(piece.label, piece.text) for piece in pieces])
        messages = [{"role": "user", "content": request}]  # the one role that every chat template knows
        most = self.client.config.max_answer_tokens
        tokens = self.count(request)
        for allowed in (most, 2 * most):
            answer = self.client.ask(messages, allowed, tokens)
            self.answers.append(answer)
            cut = answer.finish == "length"
            text = clean(answer.text)
            if cut:  # notes may be a list, without a sentence's end
                text = whole_sentences(text) or ("" if task in ("line", "paragraph") else text)
            if task == "line":
                text = first_sentence(" ".join(text.partition("\n\n")[0].split()))
            if not cut or (text and task != "paragraph"):
                break
        if answer.finish == "content_filter":
            return "", "content-filter"
        return (text, "") if text else ("", "cut-off" if cut else "empty")

    def _marker_tokens(self, label: str) -> int:
        return self.count(f"== 0a1b2c {label}\n\n") + 1

    # Files -> pieces ---------------------------------------------------------------------------------------

    def _units(self, files: Sequence[TeacherFile], room: int) -> Iterator[list[_Piece]]:
        """Pieces that stay together: a component, else a file of one that is too long, else a stretch of such a file."""
        for _, members in groupby(files, key=lambda file: file.component):
            pieces = [self._piece(file) for file in members]
            if sum(piece.tokens for piece in pieces) <= room:
                yield pieces
                continue
            for piece in pieces:
                yield from ([stretch] for stretch in self._cut(piece, room))

    def _piece(self, file: TeacherFile) -> _Piece:
        label = json.dumps(_shown(file.path), ensure_ascii=False)
        about = _Part(label, label, ((-file.rank, label),))
        return _Piece(label, file.text, file.tokens + self._marker_tokens(label), about)

    def _cut(self, piece: _Piece, room: int) -> list[_Piece]:
        if piece.tokens <= room:
            return [piece]
        marker = self._marker_tokens(f"{piece.label}, stretch 9999 of 9999")
        texts = _stretches(piece.text, max(room - marker, 1), self.count)
        labels = [f"{piece.label}, stretch {i} of {len(texts)}" for i in range(1, len(texts) + 1)]
        return [
            _Piece(label, text, marker + self.count(text), piece.about)
            for label, text in zip(labels, texts, strict=True)
        ]

    def _shortened(self, text: str, most: int) -> str:
        """The text cut to at most so many tokens, at a sentence's end if it has one."""
        most = max(most, 1)
        while len(text) > 1 and (tokens := self.count(text)) > most:
            kept = text[: min(len(text) - 1, max(1, len(text) * most // tokens))]
            text = whole_sentences(kept) or kept
        return text


def _shown(path: str) -> str:
    return path if len(path) <= _SHOWN_PATH else f"{path[: _SHOWN_PATH // 2]}…{path[-_SHOWN_PATH // 2 :]}"


def _about(group: Sequence[_Piece]) -> _Part:
    central = {file for piece in group for file in piece.about.central}
    return _Part(group[0].about.first, group[-1].about.last, tuple(heapq.nsmallest(_CENTRAL, central)))


def _grouped(units: Iterable[list[_Piece]], room: int) -> Iterator[list[_Piece]]:
    """Consecutive units together, as many as fit."""
    group: list[_Piece] = []
    used = 0
    for unit in units:
        tokens = sum(piece.tokens for piece in unit)
        if group and used + tokens > room:
            yield group
            group, used = [], 0
        group += unit
        used += tokens
    if group:
        yield group


def _stretches(text: str, room: int, count: Callable[[str], int]) -> list[str]:
    """The text in pieces of at most `room` tokens, cut at line ends, or inside a line that is longer than that."""
    found = []
    waiting = [text]
    while waiting:
        text = waiting.pop()
        tokens = count(text)
        if tokens <= room or len(text) < 2:
            found.append(text)
            continue
        # a little less than the share that fits, as tokens are not spread evenly; the rest is looked at again
        aim = max(1, min(len(text) - 1, len(text) * room // tokens * 15 // 16))
        cut = text.rfind("\n", 0, aim) + 1 or aim
        waiting += [text[cut:], text[:cut]]
    return found
