"""A repository's files and targets -> a document for each target and length: the tokenizing half of packing.

Files are tokenized by falling rank, in groups read together, until every length is full: what a repository has
beyond its longest row is never tokenized, and memory holds only what some length took. Each document is measured for what
its context holds of its target, and one that is over the limit is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from repo2ctx import prompt
from repo2ctx.config import LeakageConfig, TokensConfig, length_name
from repo2ctx.leakage import in_context
from repo2ctx.packing import Fit
from repo2ctx.records import KEPT, Document, Span
from repo2ctx.schema import PACKED, Dataset, packed_batch, stream_batches, target_text, tokens
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
    leakage: LeakageConfig
    styles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FitSummary:
    """documents: for each length the documents' tokens and how many kept files they leave out, in the order written.
    refused: for each length and style without a document (`32k line`), why."""

    documents: dict[str, list[dict[str, int]]]
    refused: dict[str, str]


@lru_cache(maxsize=1)
def _tokenizer(settings: str) -> Tokenizer:
    return load_tokenizer(TokensConfig.model_validate_json(settings))


def fit_repository(task: FitTask) -> FitSummary:
    """Make the documents and write them; the folder exists under its name only when it is whole."""
    tokenizer = _tokenizer(task.tokens.model_dump_json())
    dataset = Dataset(task.out, task.manifest)
    texts = {style: target_text(task.repository, style) for style in task.styles}
    targets = {style: [*tokenizer.encode(text), tokenizer.eos] for style, text in texts.items()}
    files = partial(dataset.of_repository, "files", task.repository["id"])
    fitted, refused = fit_documents(task.repository, files, task.lengths, tokenizer, targets)
    aside = partial_folder(task.folder)
    made: dict[str, list[dict[str, int]]] = {}
    for name, documents in fitted.items():
        with ShardWriter(aside, name, PACKED, max_bytes=1 << 62, batch_bytes=1 << 62, compression="zstd") as writer:
            for document in documents:
                if leaks(document, texts[document.style], tokenizer, task.leakage):
                    refused[f"{name} {document.style}"] = "leak"
                    continue
                writer.write_batch(packed_batch([document]))
                writer.flush()
                made.setdefault(name, []).append({"tokens": len(document), "left_out": document.left_out})
    summary = FitSummary(made, refused)
    write_json(aside / "summary.json", asdict(summary))
    finish_folder(aside, task.folder)
    return summary


def leaks(document: Document, target: str, tokenizer: Tokenizer, config: LeakageConfig) -> bool:
    """Measure how much of its target a document's context holds, note it there, and say whether it is over the limit."""
    context = tokenizer.decode(document.input_ids[: document.target_start].tolist())
    measure, over = in_context(target, document.repository.rpartition("@")[0], context, config)
    document.leak_share, document.leak_run = measure.share, measure.run
    return over


def read_fit_summary(folder: Path) -> FitSummary:
    return FitSummary(**json.loads((folder / "summary.json").read_text("utf-8")))


def read_document(folder: Path, length: str, number: int) -> Document:
    """Document `number` of a length that `fit_repository` wrote."""
    batch = next(islice(stream_batches(folder / length), number, None))
    segment = batch.column("segments")[0].as_py()[0]
    spans = [
        Span(s["path"], s["start"], s["end"], s["fidelity"], s["text_sha256"]) for s in batch.column("spans")[0].as_py()
    ]
    return Document(
        segment["repository"],
        tokens(batch, 0),
        segment["target_start"],
        segment["style"],
        spans,
        leak_share=segment["leak_share"],
        leak_run=segment["leak_run"],
    )


Batches = Callable[[Sequence[str]], Iterable[pa.RecordBatch]]
"""Gives the named columns of a repository's rows of `files`, from the first row, at each call."""


def fit_documents(
    repository: dict[str, Any],
    batches: Batches,
    lengths: Sequence[int],
    tokenizer: Tokenizer,
    targets: Mapping[str, Sequence[int]],
) -> tuple[dict[str, list[Document]], dict[str, str]]:
    """The documents of each length (by its short name), one for each target, and why one is missing (by length and style).

    repository: its row of `repositories`. targets: style -> the ids that end the document.
    """
    boundary = repository["boundary"]
    openings, closings = {}, {}
    for style in targets:
        openings[style] = [*tokenizer.bos, *tokenizer.encode(prompt.opening(repository["name"], style, boundary))]
        closings[style] = tokenizer.encode(prompt.closing(style, boundary))
    reserved = {style: len(openings[style]) + len(closings[style]) + len(ids) for style, ids in targets.items()}
    fits = {(n, style): Fit(n, reserved[style]) for n in lengths for style in targets}
    taken: dict[int, _Encoded] = {}
    files = _files_by_rank(batches)
    for index, encoded in _encode_by_rank(batches, files, tokenizer, boundary):
        takers = [fit for fit in fits.values() if fit.possible and fit.offer(index, encoded.cost)]
        if takers:
            taken[index] = encoded
        if all(fit.full or not fit.possible for fit in fits.values()):
            break
    documents: dict[str, list[Document]] = {}
    refused: dict[str, str] = {}
    for (length, style), fit in fits.items():
        name = length_name(length)
        if not fit.possible:
            refused[f"{name} {style}"] = "target longer than the row"
        elif not fit.taken:
            refused[f"{name} {style}"] = "no file fits" if files else "no kept file"
        else:
            chosen = [(files[i], taken[i]) for i in sorted(fit.taken, key=lambda i: files[i].position)]
            document = _document(repository["id"], style, openings[style], chosen, closings[style], targets[style])
            document.left_out = len(files) - len(chosen)
            documents.setdefault(name, []).append(document)
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
    style: str,
    opening: Sequence[int],
    files: Sequence[tuple[_File, _Encoded]],
    closing: Sequence[int],
    target: Sequence[int],
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
    return Document(repository, np.concatenate(parts), at + len(closing), style, spans)
