"""Keeps a target out of its own context.

First its sources leave, whatever the target was taken from: the repository's READMEs in any language, near copies of
them, the front page of the documentation; descriptions in manifests and the module documentation that became the target are
emptied in place. What remains is measured (`overlap.py`) over the whole repository. If that is over the limit, every run that
holds an n-gram or is longer than a run may be is masked: its words are blanked where they stand, with the marks of comments, the
quotes of literals and the lines around them left as they were. A file whose path quotes the target leaves.

What a row holds is a part of what was measured here; its own figures are measured again when it is made (`fitting.py`), and
by `repo2ctx verify` from the row alone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from repo2ctx.config import LeakageConfig
from repo2ctx.metadata import descriptions, emptied
from repo2ctx.overlap import Measure, Overlap, Run
from repo2ctx.prose import is_language, is_readme
from repo2ctx.records import LeakFigures, SourceFile, Target, short_name

TARGET_SOURCE = "target-source"
"""The fate of a file that leaves because of the target."""

_INDEX = re.compile(
    r"(?:(?:docs?|documentation|website|site|guide|manual)/(?:[\w.-]+/){0,3})?(?:index|overview|introduction|intro)"
    r"\.(?:md|mdx|rst|txt|adoc|asciidoc|org|html?)",
    re.IGNORECASE,
)
_OF_SOURCES = ("source", "src", "content", "pages")  # folders between that of the documentation and its front page
_COPY_SHARE = 0.3  # of a README's n-grams: a text that holds as many is a copy
_FEWEST_OF_A_COPY = 24  # words; a shorter README says too little to be recognised
_SHORTEST_LIMIT = 3  # words: "a library for" is nobody's quote
_FEW_FILES, _FILE_SHARE = 3, 0.02  # as many files, or this share of all, may leave for their names
_ROUNDS = 8
_MARKS_BEFORE = re.compile(r"(?:[^\w\\]|_|\\[\W_])*")  # a backslash only with the mark that it escapes, not that of \n
_MARKS_AFTER = re.compile(r"[\W_]*\Z")


def longest_run(words: int, config: LeakageConfig) -> int:
    """The longest run, in words, that a target of so many words may have in its context."""
    return min(config.max_run, max(_SHORTEST_LIMIT, int(config.max_run_share * words)))


def over_limit(overlap: Overlap, measure: Measure, config: LeakageConfig) -> bool:
    """Whether more of a target stands in its context than the configuration allows."""
    return measure.share > config.max_share or measure.run > longest_run(len(overlap.words), config)


def in_context(target: str, name: str, context: str, config: LeakageConfig) -> tuple[Measure, bool]:
    """How much of a target a row's context holds, and whether that is over the limit. name: host/owner/name."""
    overlap = Overlap(target, short_name(name))
    measure = overlap.measure(overlap.runs(context))
    return measure, over_limit(overlap, measure, config)


# Sources ---------------------------------------------------------------------------------------------------


def source_paths(files: Sequence[SourceFile], links: Mapping[str, str]) -> frozenset[str]:
    """Files that hold the target's source whole: the READMEs in all languages, the files they link to (`links`: symbolic link ->
    file), the front page of each documentation folder, and what has the same bytes as one of them."""
    paths = [f.path for f in files]
    sources = {links.get(path, path) for path in (*filter(is_readme, paths), *_front_pages(paths))}
    blobs = {f.blob for f in files if f.path in sources and f.size}
    return frozenset(f.path for f in files if f.path in sources or f.blob in blobs)


def _front_pages(paths: Iterable[str]) -> set[str]:
    """The front pages of the documentation: the indices nearest the root of each documentation folder, and of its part in each
    human language. Those below them are of chapters; folders named `source` and the like count for nothing."""
    depths: dict[str, int] = {}
    found = []
    for path in paths:
        if not _INDEX.fullmatch(path) or ("/" not in path and path.lower().endswith((".html", ".htm"))):
            continue
        folders = [part.lower() for part in path.split("/")[:-1] if part.lower() not in _OF_SOURCES]
        language = next((part for part in folders[1:2] if is_language(part)), "")
        place, depth = f"{''.join(folders[:1])}/{language}", len(folders)
        depths[place] = min(depth, depths.get(place, depth))
        found.append((path, place, depth))
    return {path for path, place, depth in found if depth == depths[place]}


class Copies:
    """Recognises near copies of READMEs: texts in the package's data, long descriptions, older versions."""

    def __init__(self, readmes: Iterable[str]):
        made = [Overlap(text) for text in readmes]
        self._readmes = [overlap for overlap in made if len(overlap.words) >= _FEWEST_OF_A_COPY]

    def has(self, text: str) -> bool:
        return any(o.measure(o.runs(text)).share >= _COPY_SHARE for o in self._readmes)


def is_own(path: str) -> bool:
    """Whether a manifest describes the repository itself, not a part of it."""
    return "/" not in path or path.startswith((".github/", "debian/"))


def without_descriptions(path: str, text: str) -> str | None:
    """A manifest with its descriptions emptied; None if that cannot be done for sure."""
    found = descriptions(path, text)
    return emptied(path, text, found) if found else text


def without_repetitions(path: str, text: str, known: Sequence[str]) -> str | None:
    """The same for the manifest of a part, but only of descriptions that say what the repository's (`known`) say."""
    overlaps = [Overlap(said) for said in known]
    found = [f for f in descriptions(path, text) if any(_says(overlap, f) for overlap in overlaps)]
    return emptied(path, text, found) if found else text


def _says(overlap: Overlap, text: str) -> bool:
    """Whether a short text is the target, or the greater part of it, or lies within it."""
    words = max((len(run.words) for run in overlap.runs(text)), default=0)
    return 2 * words > min(len(overlap.words), len(Overlap(text).words)) > 0


# What remains ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Watched:
    """One target and what is known of it so far."""

    overlap: Overlap
    before: list[Run] = field(default_factory=list)
    sourceless: list[Run] = field(default_factory=list)
    after: list[Run] = field(default_factory=list)
    named: set[str] = field(default_factory=set)  # files whose path quotes it
    masked_lines: int = 0
    masks: bool = False


class Guard:
    """One repository's targets against its files.

    Feed it every file as it was selected (`see`), then as it will be written (`consider`), then ask for each file's
    final text (`clean`); `figures` has the result of each target.
    """

    def __init__(self, targets: Sequence[Target], name: str, config: LeakageConfig):
        self._config = config
        self._watched = [_Watched(Overlap(target.text, name)) for target in targets]
        self._flagged: set[str] = set()
        self._seen = 0

    def see(self, path: str, text: str) -> None:
        """A file before anything is taken out: counts in the figures `before` only."""
        for watched in self._watched:
            watched.before += _shown(watched.overlap, path, text)

    def consider(self, path: str, text: str) -> None:
        """A file that stays, its descriptions emptied."""
        found = [_shown(watched.overlap, path, text) for watched in self._watched]
        pairs = list(zip(self._watched, found, strict=True))
        if any(self._is_quote(watched.overlap, run) for watched, runs in pairs for run in runs):
            self._flagged.add(path)
        self._seen += 1
        for watched, runs in pairs:
            if any(self._is_quote(watched.overlap, run) for run in watched.overlap.runs(path)):
                watched.named.add(path)
            # what is flagged for one target is measured again, for all of them, as it is written
            (watched.sourceless if path in self._flagged else watched.after).extend(runs)

    def decide(self) -> None:
        """After the last file was considered: which targets are over the limit, so that their runs are masked. One that the
        names of many files hold stays over it: without those files there would be no repository to summarize."""
        for watched in self._watched:
            measure = watched.overlap.measure(watched.sourceless + watched.after)
            spare = len(watched.named) <= max(_FEW_FILES, _FILE_SHARE * self._seen)
            watched.masks = (
                spare and self._config.action == "mask" and over_limit(watched.overlap, measure, self._config)
            )

    def clean(self, path: str, text: str) -> str | None:
        """The text without what quotes a target; None if its path does, or if it cannot be had out."""
        if path not in self._flagged:
            return text
        for watched in self._watched:
            if watched.masks:
                cleaned = None if path in watched.named else self._mask(watched, text)
                if cleaned is None:
                    return None
                text = cleaned
        for watched in self._watched:
            watched.after += _shown(watched.overlap, path, text)
        return text

    def figures(self) -> list[LeakFigures]:
        """For each target, in the order given."""
        found = []
        for watched in self._watched:
            before, after = (watched.overlap.measure(runs) for runs in (watched.before, watched.after))
            found.append(LeakFigures(before.share, before.run, after.share, after.run, watched.masked_lines))
        return found

    def name_shares(self) -> list[float]:
        return [round(watched.overlap.name_share, 6) for watched in self._watched]

    def _is_quote(self, overlap: Overlap, run: Run) -> bool:
        """Whether a run alone may be what brings a context over the limit."""
        return len(run.words) > longest_run(len(overlap.words), self._config) or overlap.measure([run]).share > 0

    def _mask(self, watched: _Watched, text: str) -> str | None:
        for _ in range(_ROUNDS):  # what is taken out may bring other words together
            quotes = [run for run in watched.overlap.runs(text) if self._is_quote(watched.overlap, run)]
            if not quotes:
                return text
            text, lines = masked(text, watched.overlap.places(text, quotes))
            watched.masked_lines += lines
        return None


def _shown(overlap: Overlap, path: str, text: str) -> list[Run]:
    return overlap.runs(path) + overlap.runs(text)


def masked(text: str, places: Collection[tuple[int, int]]) -> tuple[str, int]:
    """The text without the characters at `places`, and on how many lines there were any.

    Line ends stay, and so do the marks at the beginning and the end of what is taken from a line: comment leaders, quotes.
    """
    parts: list[str] = []
    at, line_number = 0, 0
    lines: set[int] = set()
    for start, end in places:
        parts.append(text[at:start])
        line_number += text.count("\n", at, start)
        for line in text[start:end].splitlines(keepends=True):
            body = line.rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
            before = _MARKS_BEFORE.match(body)
            after = _MARKS_AFTER.search(body)
            assert before is not None
            assert after is not None
            parts.append(before[0] + (after[0] if before.end() < len(body) else "") + line[len(body) :])
        last = line_number + text.count("\n", start, end)
        lines.update(range(line_number, last + 1))
        at, line_number = end, last
    parts.append(text[at:])
    return "".join(parts), len(lines)


def is_prose_file(path: str, language: str) -> bool:
    """Whether a file may be a copy of a README: text rather than code."""
    suffix = posixpath.splitext(path)[1].lower()
    return (
        language in ("", "Text", "Markdown", "reStructuredText", "AsciiDoc", "HTML", "Org", "MDX") or suffix == ".txt"
    )
