"""A repository's files and target -> one document per length: the tokenizing half of packing.

Files are tokenized by falling rank, in groups read together, until every length is full: what a repository has
beyond its longest row is never tokenized, and memory holds only what some length took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from repo2ctx import prompt
from repo2ctx.config import TokensConfig, length_name
from repo2ctx.packing import Fit
from repo2ctx.records import KEPT, Document, Span
from repo2ctx.schema import PACKED, Dataset, packed_batch, stream_batches, tokens
from repo2ctx.shards import ShardWriter, finish_folder, partial_folder, write_json
from repo2ctx.tokens import Tokenizer, load_tokenizer

_GROUP_BYTES = 32 << 20  # text read at a time
FULL = "full"


@dataclass(frozen=True, slots=True)
class FitTask:
    """What a worker needs to make the documents of one repository in `folder`."""

    out: Path
    manifest: dict[str, Any]
    repository: dict[str, Any]
    folder: Path
    lengths: tuple[int, ...]
    tokens: TokensConfig


@dataclass(frozen=True, slots=True)
class FitSummary:
    """Per length: tokens of the document and kept files left out, or why there is none."""

    tokens: dict[str, int]
    left_out: dict[str, int]
    refused: dict[str, str]


@lru_cache(maxsize=1)
def _tokenizer(settings: str) -> Tokenizer:
    return load_tokenizer(TokensConfig.model_validate_json(settings))


def fit_repository(task: FitTask) -> FitSummary:
    """Make the documents and write them; the folder exists under its name only when it is whole."""
    tokenizer = _tokenizer(task.tokens.model_dump_json())
    dataset = Dataset(task.out, task.manifest)
    target = [*tokenizer.encode(task.repository["target"]), tokenizer.eos]
    files = partial(dataset.of_repository, "files", task.repository["id"])
    documents, refused = fit_documents(task.repository, files, task.lengths, tokenizer, target)
    aside = partial_folder(task.folder)
    for name, document in documents.items():
        with ShardWriter(aside, name, PACKED, max_bytes=1 << 62, batch_bytes=1 << 62, compression="zstd") as writer:
            writer.write_batch(packed_batch([document]))
    summary = FitSummary(
        {name: len(d) for name, d in documents.items()}, {name: d.left_out for name, d in documents.items()}, refused
    )
    write_json(aside / "summary.json", {"tokens": summary.tokens, "left_out": summary.left_out, "refused": refused})
    finish_folder(aside, task.folder)
    return summary


def read_document(folder: Path, length: str) -> Document:
    """A document that `fit_repository` wrote."""
    batch = next(stream_batches(folder / length))
    segment = batch.column("segments")[0].as_py()[0]
    spans = [
        Span(s["path"], s["start"], s["end"], s["fidelity"], s["text_sha256"]) for s in batch.column("spans")[0].as_py()
    ]
    return Document(segment["repository"], tokens(batch, 0), segment["target_start"], spans)


Batches = Callable[[Sequence[str]], Iterable[pa.RecordBatch]]
"""Gives the named columns of a repository's rows of `files`, from the first row, at each call."""


def fit_documents(
    repository: dict[str, Any], batches: Batches, lengths: Sequence[int], tokenizer: Tokenizer, target: Sequence[int]
) -> tuple[dict[str, Document], dict[str, str]]:
    """The document for each length (by its short name), and why a length has none.

    repository: its row of `repositories`. target: the ids that end the document.
    """
    boundary, style = repository["boundary"], repository["target_style"]
    opening = [*tokenizer.bos, *tokenizer.encode(prompt.opening(repository["name"], style, boundary))]
    closing = tokenizer.encode(prompt.closing(style, boundary))
    fits = {n: Fit(n, len(opening) + len(closing) + len(target)) for n in lengths}
    taken: dict[int, _Encoded] = {}
    files = _files_by_rank(batches)
    for index, encoded in _encode_by_rank(batches, files, tokenizer, boundary):
        takers = [fit for fit in fits.values() if fit.possible and fit.offer(index, encoded.cost)]
        if takers:
            taken[index] = encoded
        if all(fit.full or not fit.possible for fit in fits.values()):
            break
    documents: dict[str, Document] = {}
    refused: dict[str, str] = {}
    for length, fit in fits.items():
        if not fit.possible:
            refused[length_name(length)] = "target longer than the row"
        elif not fit.taken:
            refused[length_name(length)] = "no file fits" if files else "no kept file"
        else:
            chosen = sorted(fit.taken, key=lambda i: files[i].position)
            documents[length_name(length)] = _document(
                repository["id"], opening, [(files[i], taken[i]) for i in chosen], closing, target, len(files)
            )
    return documents, refused


@dataclass(frozen=True, slots=True)
class _File:
    """A kept file as the table has it; `row` is its row among the repository's."""

    row: int
    path: str
    position: int
    rank: float
    text_sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class _Encoded:
    before: npt.NDArray[np.int32]
    body: npt.NDArray[np.int32]
    after: npt.NDArray[np.int32]

    @property
    def cost(self) -> int:
        return len(self.before) + len(self.body) + len(self.after)


def _files_by_rank(batches: Batches) -> list[_File]:
    """The kept files, highest rank first; equal ranks by path, so that the same files fit under every order."""
    columns = ("path", "fate", "position", "rank", "text_sha256", "size")
    found = []
    row = 0
    for batch in batches(columns):
        for f in batch.to_pylist():
            if f["fate"] == KEPT:
                found.append(_File(row, f["path"], f["position"], f["rank"], f["text_sha256"], f["size"]))
            row += 1
    return sorted(found, key=lambda f: (-f.rank, f.path))


def _encode_by_rank(
    batches: Batches, files: Sequence[_File], tokenizer: Tokenizer, boundary: str
) -> Iterator[tuple[int, _Encoded]]:
    """(index in `files`, tokens) by rank. Texts are read in groups, one pass over the table for each."""
    after = np.asarray(tokenizer.encode(prompt.file_closing()), np.int32)
    start = 0
    while start < len(files):
        end, size = start, 0
        while end < len(files) and (end == start or size + files[end].size <= _GROUP_BYTES):
            size += files[end].size
            end += 1
        texts = _texts(batches, {f.row for f in files[start:end]})
        for index in range(start, end):
            before = tokenizer.encode(prompt.file_opening(files[index].path, boundary))
            body = tokenizer.encode(texts.pop(files[index].row))
            yield index, _Encoded(np.asarray(before, np.int32), np.asarray(body, np.int32), after)
        start = end


def _texts(batches: Batches, rows: set[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    first = 0
    for batch in batches(("text",)):
        column = batch.column(0)
        found.update({row: column[row - first].as_py() for row in range(first, first + len(column)) if row in rows})
        first += len(column)
    return found


def _document(
    repository: str,
    opening: Sequence[int],
    files: Sequence[tuple[_File, _Encoded]],
    closing: Sequence[int],
    target: Sequence[int],
    kept: int,
) -> Document:
    parts = [np.asarray(opening, np.int32)]
    spans = []
    at = len(opening)
    for file, encoded in files:
        start = at + len(encoded.before)
        spans.append(Span(file.path, start, start + len(encoded.body), FULL, file.text_sha256))
        parts += [encoded.before, encoded.body, encoded.after]
        at += encoded.cost
    parts += [np.asarray(closing, np.int32), np.asarray(target, np.int32)]
    return Document(repository, np.concatenate(parts), at + len(closing), spans, kept - len(files))
