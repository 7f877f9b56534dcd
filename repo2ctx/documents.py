"""One repository's documents on disk: made by a worker, read back when rows are packed.

A folder per repository, whole under its name or not there; in it a stream of documents per length, and `summary.json`. Each
document is measured for what its context holds of its target, and one that is over the limit is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from repo2ctx.config import LeakageConfig, PackConfig, TokensConfig, length_name
from repo2ctx.dataset import Dataset, stream_batches, tokens
from repo2ctx.fitting import Size, fit_documents
from repo2ctx.id_cache import CachedTokenizer, IdCache
from repo2ctx.leakage import in_context
from repo2ctx.packing import PARTS
from repo2ctx.records import Document, Span
from repo2ctx.schema import PACKED, packed_batch, target_text
from repo2ctx.shards import ShardWriter, finish_folder, partial_folder, reading_folder, write_json
from repo2ctx.tokens import Tokenizer, load_tokenizer

_SHORTEST = 1 << 10


@dataclass(frozen=True, slots=True)
class FitTask:
    """What a worker needs to make the documents of one repository in `folder`. short: whether they are for training, where
    a long repository gives short documents too. ids: where token ids are kept, or None."""

    out: Path
    manifest: dict[str, Any]
    repository: dict[str, Any]
    folder: Path
    tokens: TokensConfig
    pack: PackConfig
    leakage: LeakageConfig
    styles: tuple[str, ...]
    short: bool
    ids: Path | None


@dataclass(frozen=True, slots=True)
class Made:
    """A document as the summary tells it. targets: tokens of it that are the target. room: what it was fitted to. key: orders
    documents as by chance, but always the same. files: how many stand in it by fidelity; left_out: of how many not even the path
    does."""

    tokens: int
    targets: int
    room: int
    key: str
    files: dict[str, int]
    left_out: int


@dataclass(frozen=True, slots=True)
class FitSummary:
    """documents: for each length, in the order written. refused: for each length and style without a document (`32k line`),
    why. notice: what the tokenizer had to say."""

    documents: dict[str, list[Made]]
    refused: dict[str, str]
    notice: str


@lru_cache(maxsize=1)
def _tokenizer(settings: str, ids: Path | None) -> Tokenizer:
    tokenizer = load_tokenizer(TokensConfig.model_validate_json(settings))
    return tokenizer if ids is None else CachedTokenizer(tokenizer, IdCache(ids))


def fit_repository(task: FitTask) -> FitSummary:
    """Make the documents and write them; the folder exists under its name only when it is whole."""
    tokenizer = _tokenizer(task.tokens.model_dump_json(), task.ids)
    dataset = Dataset(task.out, task.manifest)
    texts = {style: target_text(task.repository, style) for style in task.styles}
    targets = {style: [*tokenizer.encode(text), tokenizer.eos] for style, text in texts.items()}
    files = partial(dataset.of_repository, "files", task.repository["id"])
    fitted, missing = fit_documents(task.repository, files, list(_sizes(task)), tokenizer, targets, task.pack)
    # That a long repository has no document of some shorter size is nothing to tell.
    refused = {str(size): why for size, why in missing.items() if size.whole}
    aside = partial_folder(task.folder)
    made: dict[str, list[Made]] = {}
    for length in task.pack.lengths:
        name = length_name(length)
        with ShardWriter(aside, name, PACKED, max_bytes=1 << 62, batch_bytes=1 << 62, compression="zstd") as writer:
            for size, document in fitted.items():
                if size.length != length:
                    continue
                if leaks(document, texts[size.style], tokenizer, task.leakage):
                    if size.whole:
                        refused[str(size)] = "leak"
                    continue
                writer.write_batch(packed_batch([document]))
                writer.flush()
                made.setdefault(name, []).append(_made(size, document))
    summary = FitSummary(made, refused, tokenizer.notice)
    write_json(aside / "summary.json", asdict(summary))
    finish_folder(aside, task.folder)
    if isinstance(tokenizer, CachedTokenizer):
        tokenizer.cache.flush()
    return summary


def _sizes(task: FitTask) -> Iterator[Size]:
    for length in task.pack.lengths:
        for style in task.styles:
            yield Size(length, length, style)
        if task.short and task.pack.long_share:
            for part in PARTS:
                if length // part >= _SHORTEST:
                    yield from (Size(length, length // part, style) for style in task.styles)


def _made(size: Size, document: Document) -> Made:
    name = f"{document.repository}\0{size.room}\0{size}"
    return Made(
        tokens=len(document),
        targets=len(document) - document.target_start,
        room=size.room,
        key=hashlib.sha256(name.encode()).hexdigest()[:16],
        files=dict(sorted(Counter(span.fidelity for span in document.spans).items())),
        left_out=document.left_out,
    )


def leaks(document: Document, target: str, tokenizer: Tokenizer, config: LeakageConfig) -> bool:
    """Measure how much of its target a document's context holds, note it there, and say whether it is over the limit."""
    context = tokenizer.decode(document.input_ids[: document.target_start].tolist())
    measure, over = in_context(target, document.repository.rpartition("@")[0], context, config)
    document.leak_share, document.leak_run = measure.share, measure.run
    return over


def read_fit_summary(folder: Path) -> FitSummary:
    """What `fit_repository` made there. Raises OutputError if it is damaged."""
    with reading_folder(folder):
        found = json.loads((folder / "summary.json").read_text("utf-8"))
        documents = {name: [Made(**made) for made in documents] for name, documents in found["documents"].items()}
        return FitSummary(documents, found["refused"], found["notice"])


def read_document(folder: Path, length: str, number: int) -> Document:
    """Document `number` of a length that `fit_repository` wrote."""
    with reading_folder(folder):
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
