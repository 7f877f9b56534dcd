"""A repository's files and targets -> documents of the wanted sizes: the tokenizing half of `packing.Fit`.

Files are read by falling rank, in groups, and tokenized while some document has room: memory holds what some document took, a
group of texts, and the names of the files. A text that is plainly too long for the room that is left is not tokenized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from repo2ctx import prompt
from repo2ctx.config import PackConfig, length_name
from repo2ctx.packing import FULL, HEAD, OUTLINE, PATH, Fit, Offer
from repo2ctx.ranked import Batches, File, Ids, Reader, files_by_rank, longest
from repo2ctx.records import Document, Span
from repo2ctx.tokens import Tokenizer

_SAMPLED_BYTES = 1 << 18  # of outlines, to estimate the others
_MARKER_TOKENS = 16  # about
_LARGEST_TREE = 0.05  # of a document; verify makes the tree again, so a change of it is one of PROMPT_VERSION


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """A document that is wanted: of at most `room` tokens, for rows of `length`, with the target of a style."""

    length: int
    room: int
    style: str

    @property
    def whole(self) -> bool:
        """Whether it may fill a row."""
        return self.room == self.length

    def __str__(self) -> str:
        return f"{length_name(self.length)} {self.style}"


def fit_documents(
    repository: dict[str, Any],
    batches: Batches,
    sizes: Sequence[Size],
    tokenizer: Tokenizer,
    targets: Mapping[str, Sequence[int]],
    config: PackConfig,
) -> tuple[dict[Size, Document], dict[Size, str]]:
    """The document of each size, and why one is missing.

    repository: its row of `repositories`. targets: style -> the ids that end the document. A document that is made for rows
    longer than its room is made only where the repository fills more than half of such a row.
    """
    text = _Text(repository, tokenizer, targets)
    files = files_by_rank(batches)
    trees = {room: tree_of(files, room, tokenizer) for room in {size.room for size in sizes}}
    fits = {
        size: Fit(size.room, text.reserved(size.style) + trees[size.room].tokens, config.outline_share)
        for size in sizes
    }
    reader = Reader(batches, files, tokenizer)
    kept: dict[tuple[int, str], Ids] = {}
    _offer_all(files, reader, list(fits.values()), text, kept)
    heads = {size: _begin(fit, reader) for size, fit in fits.items()}
    for size in [size for size in fits if not size.whole]:
        whole = fits.get(Size(size.length, size.length, size.style))
        if whole is None or whole.used <= size.length // 2:
            del fits[size]
    _read_missing(reader, list(fits.values()), kept)
    documents: dict[Size, Document] = {}
    refused: dict[Size, str] = {}
    for size, fit in fits.items():
        if not fit.possible:
            refused[size] = "target longer than the row"
        elif not fit.taken:
            refused[size] = "no file fits" if files else "no kept file"
        else:
            documents[size] = _document(size, fit, files, trees[size.room], kept, heads[size], text)
    return documents, refused


class _Text:
    """The pieces around the files, as tokens."""

    def __init__(self, repository: dict[str, Any], tokenizer: Tokenizer, targets: Mapping[str, Sequence[int]]):
        self.repository: str = repository["id"]
        self.targets = targets
        self._boundary = repository["boundary"]
        self._tokenizer = tokenizer
        self.openings = {
            style: prompt.opening_ids(tokenizer, repository["name"], style, self._boundary) for style in targets
        }
        self.closings = {style: prompt.closing_ids(tokenizer, style, self._boundary) for style in targets}
        self.after = tokenizer.encode(prompt.file_closing())

    def reserved(self, style: str) -> int:
        return len(self.openings[style]) + len(self.closings[style]) + len(self.targets[style])

    def before(self, path: str, fidelity: str) -> list[int]:
        """The marker line of a file."""
        return self._tokenizer.encode(prompt.file_opening(path, self._boundary, fidelity))

    def frame(self, path: str, fidelity: str) -> int:
        return len(self.before(path, fidelity)) + len(self.after)


# The tree --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree's lines as tokens, with the path of each file's own line."""

    lines: list[tuple[list[int], str | None]]

    @property
    def tokens(self) -> int:
        return sum(len(ids) for ids, _ in self.lines)

    def places(self) -> Iterator[tuple[str, int, int]]:
        """Each path that is shown, with where its line stands in the tree's tokens."""
        at = 0
        for ids, path in self.lines:
            if path is not None:
                yield path, at, at + len(ids)
            at += len(ids)


def tree_of(files: Sequence[File], room: int, tokenizer: Tokenizer) -> Tree:
    """The largest tree, by rank, that a document of `room` tokens may have; one of no file where there is no room for any."""
    budget = int(_LARGEST_TREE * room)
    paths = [file.path for file in files]
    known: dict[str, list[int]] = {}

    def made(shown: int) -> Tree:
        lines = []
        for text, path in prompt.tree(paths, set(paths[:shown])):
            if text not in known:
                known[text] = tokenizer.encode(text)
            lines.append((known[text], path))
        return Tree(lines)

    if len(paths) <= budget and (whole := made(len(paths))).tokens <= budget:
        return whole
    return made(longest(min(len(paths), budget), lambda shown: made(shown).tokens <= budget))


# Choosing --------------------------------------------------------------------------------------------------


def _offer_all(
    files: Sequence[File], reader: Reader, fits: Sequence[Fit], text: _Text, kept: dict[tuple[int, str], Ids]
) -> None:
    """Offer every file to every fit, by rank, until all are full; `kept` gets what some fit took."""
    rests: list[int] = []
    for group in map(list, reader.groups()):
        rests = rests or _following(files, reader, group)
        for index, source, outline in group:
            rest = rests[index]
            frames = {fidelity: text.frame(files[index].path, fidelity) for fidelity in (FULL, OUTLINE, HEAD)}
            ids: dict[str, Ids] = {}
            for fit in fits:
                if fit.full:
                    continue
                # What a fit is offered does not depend on the others: rows of one length are the same beside any other.
                full = cost = None
                if reader.may_fit(source, fit.left):
                    full = _cost(ids, FULL, source, reader) + frames[FULL]
                if (full is None or full > fit.room(rest)) and outline and reader.may_fit(outline, fit.left):
                    cost = _cost(ids, OUTLINE, outline, reader) + frames[OUTLINE]
                fidelity = fit.offer(index, Offer(full, cost, frames[HEAD]), rest)
                if fidelity is not None:
                    kept[index, fidelity] = ids[fidelity]
        if all(fit.full for fit in fits):
            break
    for fit in fits:
        fit.finish()


def _cost(ids: dict[str, Ids], fidelity: str, text: str, reader: Reader) -> int:
    if fidelity not in ids:
        ids[fidelity] = reader.encode(text)
    return len(ids[fidelity])


def _following(files: Sequence[File], reader: Reader, first: Sequence[tuple[int, str, str | None]]) -> list[int]:
    """About what the outlines of the files after each cost in tokens, by the rate of those in the first group."""
    bytes_, tokens = 0, 0
    for _, _, outline in first:
        if outline and bytes_ < _SAMPLED_BYTES:
            bytes_ += len(outline)
            tokens += len(reader.encode(outline))
    costs = [int(f.outline_size * tokens / max(1, bytes_)) + _MARKER_TOKENS if f.outline_size else 0 for f in files]
    found = list(accumulate(reversed(costs)))[::-1]
    return [*found[1:], 0]


def _begin(fit: Fit, reader: Reader) -> Ids | None:
    """The ids of the file that a fit holds the beginning of, if it does."""
    if fit.beginning is None:
        return None
    ((_, source, _),) = reader.read([fit.beginning])
    beginning, ids = reader.beginning(source, fit.head)
    fit.begun(len(ids), whole=beginning == source)
    return ids


def _read_missing(reader: Reader, fits: Sequence[Fit], kept: dict[tuple[int, str], Ids]) -> None:
    """Read again what was taken at the end; drop what no fit has any more."""
    wanted = {(index, fidelity) for fit in fits for index, fidelity in fit.taken.items() if index != fit.beginning}
    for key in kept.keys() - wanted:
        del kept[key]
    missing = wanted - kept.keys()
    for index, text, outline in reader.read(sorted({index for index, _ in missing})) if missing else ():
        for fidelity, source in ((FULL, text), (OUTLINE, outline)):
            if (index, fidelity) in missing:
                assert source is not None
                kept[index, fidelity] = reader.encode(source)


# The document ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Parts:
    """A document as it grows."""

    ids: list[Ids] = field(default_factory=list)
    at: int = 0

    def add(self, ids: Sequence[int] | Ids) -> tuple[int, int]:
        """Append ids; returns where they stand."""
        self.ids.append(np.asarray(ids, np.int32))
        start, self.at = self.at, self.at + len(ids)
        return start, self.at


def _document(
    size: Size,
    fit: Fit,
    files: Sequence[File],
    tree: Tree,
    kept: Mapping[tuple[int, str], Ids],
    head: Ids | None,
    text: _Text,
) -> Document:
    parts = _Parts()
    spans = []
    parts.add(text.openings[size.style])
    taken = {files[index].path for index in fit.taken}
    shown = set()
    first, _ = parts.add([i for ids, _ in tree.lines for i in ids])
    for path, start, end in tree.places():
        shown.add(path)
        if path not in taken:
            spans.append(Span(path, first + start, first + end, PATH, None))
    for index in sorted(fit.taken, key=lambda i: files[i].position):
        fidelity = fit.taken[index]
        sha256 = files[index].text_sha256
        body = kept[index, fidelity] if head is None or index != fit.beginning else head
        parts.add(text.before(files[index].path, fidelity))
        start, end = parts.add(body)
        parts.add(text.after)
        spans.append(Span(files[index].path, start, end, fidelity, sha256))
    parts.add(text.closings[size.style])
    target_start = parts.at
    parts.add(text.targets[size.style])
    document = Document(text.repository, np.concatenate(parts.ids), target_start, size.style, spans)
    document.left_out = sum(file.path not in taken and file.path not in shown for file in files)
    return document
