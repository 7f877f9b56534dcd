"""Whether packed rows are what they say: every document's parts against its repository, its files and the prompt, and how much of
its target its context holds, measured anew.

Everything is checked on the decoded tokens. Memory: one row, and what `files` says of a few repositories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from repo2ctx import prompt
from repo2ctx.config import LeakageConfig, parse_length
from repo2ctx.dataset import Dataset
from repo2ctx.leakage import in_context
from repo2ctx.packing import FIDELITIES, PATH
from repo2ctx.progress import Reporter
from repo2ctx.records import Style
from repo2ctx.schema import MANIFEST, TRAIN, usable_targets
from repo2ctx.span_check import FilesOf
from repo2ctx.tokens import Tokenizer

_REMEMBERED = 64  # repositories whose files are kept in memory: rows of one length share many


class Rows:
    """Checks packed tables one by one, and counts what they hold. Problems name table, row and segment."""

    def __init__(
        self,
        dataset: Dataset,
        repositories: Mapping[str, dict[str, Any]],
        tokenizer: Tokenizer,
        reporter: Reporter,
    ):
        self.dataset, self.repositories, self.tokenizer, self.reporter = dataset, repositories, tokenizer, reporter
        self.limits = LeakageConfig.model_validate(dataset.manifest["config"]["leakage"])
        self.vocabulary = _Vocabulary(tokenizer)
        self.files = lru_cache(maxsize=_REMEMBERED)(partial(FilesOf, dataset, tokenizer))
        self.documents = self.spans = self.longest_run = 0
        self.largest_share = 0.0
        self.counts: dict[str, Counter[tuple[str, str, int]]] = {}
        self.figures: dict[str, Counter[str]] = {}

    def check(self, table: str) -> Iterator[str]:
        length = table.split("/")[1]
        if parse_length(length) not in self.dataset.manifest["config"]["pack"]["lengths"]:
            yield f"{table}: is of a length that the configuration in {MANIFEST} does not name"
        count = sum(shard.rows for shard in self.dataset.shards(table))
        self.reporter.stage(table, count)
        for index in range(count):
            row = self.dataset.packed_row(table, index)
            where = f"{table}, row {index}"
            problems = [f"{where}: {problem}" for problem in self._bounds(row, parse_length(length))]
            yield from problems
            if not problems:
                yield from self._row(table, where, row)
            self.reporter.advance("")

    def _bounds(self, row: Mapping[str, Any], length: int) -> Iterator[str]:
        """What must hold before the row can be cut into its parts."""
        ids, at = row["input_ids"], 0
        if not row["segments"]:
            yield "holds no document"
        if len(ids) > length:
            yield f"has {len(ids):,} tokens, more than its length"
        if unknown := self.vocabulary.unknown(ids):
            yield f"holds ids that are no tokens of the vocabulary: {', '.join(map(str, unknown[:5]))}"
        for number, segment in enumerate(row["segments"]):
            start, target_start, end = (segment[name] for name in ("start", "target_start", "target_end"))
            if start != at or not start < target_start < end:
                yield f"segment {number} is from {start} over {target_start} to {end}, and should begin at {at}"
            at = end
        if at != len(ids):
            yield f"its segments end at {at}, its tokens at {len(ids)}"
        for span in row["spans"]:
            if not 0 <= span["segment"] < len(row["segments"]):
                yield f"{span['path']}: is said to be in segment {span['segment']}, which is not there"

    def _row(self, table: str, where: str, row: Mapping[str, Any]) -> Iterator[str]:
        _, length, split = table.split("/")
        counted = self.counts.setdefault(length, Counter())
        figures = self.figures.setdefault(length, Counter())
        for number, segment in enumerate(row["segments"]):
            here = f"{where}, segment {number} ({segment['repository']}, {segment['style']})"
            spans = [span for span in row["spans"] if span["segment"] == number]
            repository = self.repositories.get(segment["repository"])
            self.documents += 1
            self.spans += len(spans)
            tokens = segment["target_end"] - segment["start"]
            counted[segment["repository"], segment["style"], tokens] += 1
            figures.update(span["fidelity"] for span in spans)
            figures.update(documents=1, tokens=tokens, target_tokens=segment["target_end"] - segment["target_start"])
            if split == TRAIN:
                figures.update(train_tokens=tokens, long_tokens=tokens * (tokens > parse_length(length) // 2))
            if repository is None or segment["style"] not in get_args(Style):
                yield f"{here}: its repository has no row in repositories, or its style is none"
                continue
            if repository["split"] != split:
                yield f"{here}: its repository is of split {repository['split']}"
            files = self.files(repository["id"])
            figures["left_out"] += len(files.position.keys() - {span["path"] for span in spans})
            document = Document(
                row["input_ids"], segment, spans, repository, files, self.tokenizer, self.limits, parse_length(length)
            )
            yield from (f"{here}: {problem}" for problem in document.problems())
            self.largest_share = max(self.largest_share, document.share)
            self.longest_run = max(self.longest_run, document.run)


class _Vocabulary:
    """Which ids are tokens."""

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer
        self.beyond: dict[int, bool] = {}

    def unknown(self, ids: npt.NDArray[np.int32]) -> list[int]:
        odd = np.unique(ids[(ids < 0) | (ids >= self.tokenizer.vocabulary_size)])
        return [i for i in odd.tolist() if not self.beyond.setdefault(i, i >= 0 and self._is_token(i))]

    def _is_token(self, token: int) -> bool:
        """A vocabulary with holes has ids that are larger than its size."""
        try:
            return bool(self.tokenizer.decode([token]))
        except Exception:  # noqa: BLE001 - tokenizers differ in what they raise for an id that they do not know
            return False


class Document:
    """One segment of a packed row, read back; its bounds are sound."""

    def __init__(
        self,
        ids: npt.NDArray[np.int32],
        segment: Mapping[str, Any],
        spans: list[dict[str, Any]],
        repository: dict[str, Any],
        files: FilesOf,
        tokenizer: Tokenizer,
        limits: LeakageConfig,
        length: int,
    ):
        self.length = length
        self.ids, self.segment, self.spans = ids, segment, spans
        self.repository, self.files, self.tokenizer, self.limits = repository, files, tokenizer, limits
        self.share, self.run = 0.0, 0

    def problems(self) -> Iterator[str]:
        said = [t["text"] for t in usable_targets(self.repository) if t["style"] == self.segment["style"]]
        if len(said) != 1:
            yield "its target is not the one in repositories: that has none of this style"
            return
        yield from self._target(said[0])
        yield from self._context()
        yield from self._leak(said[0])

    def _text(self, start: int, end: int) -> str:
        return self.tokenizer.decode(self.ids[start:end].tolist())

    def _holds(self, start: int, ids: Sequence[int]) -> bool:
        """Whether these tokens stand there, before the target."""
        end = start + len(ids)
        return start >= self.segment["start"] and np.array_equal(
            self.ids[start : min(end, self.segment["target_start"])], ids
        )

    def _target(self, target: str) -> Iterator[str]:
        """The target is whole."""
        ids = [*self.tokenizer.encode(target), self.tokenizer.eos]
        if not np.array_equal(self.ids[self.segment["target_start"] : self.segment["target_end"]], ids):
            yield "its target is not the one in repositories, whole and with the end token"

    def _context(self) -> Iterator[str]:
        """Token by token: the prompt, the tree, then files in their order, each under its marker."""
        boundary, style = self.repository["boundary"], self.segment["style"]
        opening = prompt.opening_ids(self.tokenizer, self.repository["name"], style, boundary)
        if not self._holds(self.segment["start"], opening):
            yield "does not begin with the prompt"
            return
        at = self.segment["start"] + len(opening)
        if problems := list(self._bounds(at)):
            yield from problems
            return
        files = [span for span in self.spans if span["fidelity"] != PATH]
        for span in self.spans:
            if problem := self.files.problem(span, self.ids[span["start"] : span["end"]]):
                yield f"{span['path']}: {problem}"
        yield from self._order(files)
        if all(span["fidelity"] in FIDELITIES for span in files):
            yield from self._between(at, files)

    def _bounds(self, at: int) -> Iterator[str]:
        """Spans stand one after another, and of a file one."""
        seen: set[str] = set()
        for span in self.spans:
            path, start, end = span["path"], span["start"], span["end"]
            if not at <= start <= end < self.segment["target_start"]:
                yield f"{path}: its span {start} to {end} lies outside of the context, or over another"
                return
            if path in seen:
                yield f"{path}: stands here twice"
            seen.add(path)
            at = end

    def _order(self, files: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        position = -1
        for span in files:
            here = self.files.position.get(span["path"], position)
            if here < position:
                yield f"{span['path']}: does not stand in the order of files"
            position = max(position, here)

    def _between(self, at: int, files: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """What stands before, between and after the files is the tree, their markers and the prompt, and nothing else."""
        boundary = self.repository["boundary"]
        after = self.tokenizer.encode(prompt.file_closing())
        start = at
        for number, span in enumerate(files):
            marker = self.tokenizer.encode(prompt.file_opening(span["path"], boundary, span["fidelity"]))
            before = marker if number == 0 else [*after, *marker]
            first = span["start"] - len(before)
            if first < start or not self._holds(first, before):
                yield f"{span['path']}: the line before it does not name it, or how much of it follows"
            if _markers(self._text(start, span["start"]), boundary) != 1:
                yield f"{span['path']}: before it stands a file that has no span"
            elif number and first != start:
                yield f"{span['path']}: between it and the file before it stands what is of no file"
            elif number == 0 and not self._is_tree(at, first):
                yield "its tree, or a span of a path in it, is not what its repository gives"
            start = span["end"]
        last = [*after, *prompt.closing_ids(self.tokenizer, self.segment["style"], boundary)]
        if not files or start + len(last) != self.segment["target_start"] or not self._holds(start, last):
            yield "what stands between its files and its target is not the prompt's, or a file there has no span"

    def _is_tree(self, start: int, end: int) -> bool:
        """Whether the tree stands there, and the spans of paths are those of files of which nothing else is here."""
        ids = self.ids[start:end].tolist()
        spans = {span["path"]: (span["start"], span["end"]) for span in self.spans if span["fidelity"] == PATH}
        held = {span["path"] for span in self.spans if span["fidelity"] != PATH}
        for tree in self.files.trees(self.length, self.segment["target_end"] - self.segment["start"]):
            if tree.tokens == len(ids) and [i for line, _ in tree.lines for i in line] == ids:
                places = {path: (start + a, start + b) for path, a, b in tree.places()}
                return spans == {path: place for path, place in places.items() if path not in held}
        return False

    def _leak(self, target: str) -> Iterator[str]:
        """What the row states of its leak is so, and within the limits."""
        segment = self.segment
        context = self._text(segment["start"], segment["target_start"])
        measure, over = in_context(target, self.repository["name"], context, self.limits)
        self.share, self.run = measure.share, measure.run
        if (measure.share, measure.run) != (segment["leak_share"], segment["leak_run"]):
            yield (
                f"its context holds {measure.share:.2%} of the target's 8-grams and a run of {measure.run} words; the row "
                f"states {segment['leak_share']:.2%} and {segment['leak_run']}"
            )
        if over:
            yield f"leak: {measure.share:.2%} of the target's 8-grams, a run of {measure.run} words: over the limit"


def _markers(text: str, boundary: str) -> int:
    """Lines that begin a file, or end the files."""
    return f"\n{text}".count(f"\n== {boundary} ")
