"""Whether rows hold the ids of the model's own tokenizer, and the prompt of its chat template."""

from __future__ import annotations

from collections.abc import Iterator

from repo2ctx import prompt
from repo2ctx.dataset import Dataset
from repo2ctx.errors import ConfigError
from repo2ctx.schema import target_text
from repo2ctx.tokens import Tokenizer

_LONGEST_CHECKED = 1 << 16  # characters of a file


def check_tokenizer(dataset: Dataset, table: str, tokenizer: Tokenizer, model: str) -> None:
    """Raise ConfigError if the rows hold another tokenizer's ids than the model's.

    Tokenizers of the same vocabulary can come as different files, so the ids themselves are compared: of the first
    document's target, of its files, and of what the model's chat template puts around them.
    """
    if dataset.manifest["tokenizer_fingerprint"] == tokenizer.fingerprint:
        return
    for what, want, have in _pieces(dataset, table, tokenizer):
        if have != want:
            first = next((i for i, pair in enumerate(zip(have, want, strict=False)) if pair[0] != pair[1]), 0)
            packed = dataset.manifest["config"]["tokens"]["tokenizer"]
            raise ConfigError(
                f"{dataset.out}: was packed with tokenizer {packed!r}, whose ids are not those of the model: {what} has "
                f"{have[first : first + 4]} where the model reads {want[first : first + 4]}; build with --tokenizer {model}"
            )


def _pieces(dataset: Dataset, table: str, tokenizer: Tokenizer) -> Iterator[tuple[str, list[int], list[int]]]:
    """(what it is, the ids that it should have, those that it has) of the first document's parts."""
    row = dataset.packed_row(table, 0)
    segment = row["segments"][0]
    repository, ids = segment["repository"], row["input_ids"]
    row_of = next(r for r in dataset.repositories() if r["id"] == repository)
    target = target_text(row_of, segment["style"])
    start, answer, end = segment["start"], segment["target_start"], segment["target_end"]
    yield f"the target of {repository}", tokenizer.encode(target), ids[answer : end - 1].tolist()
    yield f"the end of {repository}", [tokenizer.eos], ids[end - 1 : end].tolist()
    opening = prompt.opening_ids(tokenizer, row_of["name"], segment["style"], row_of["boundary"])
    yield f"the beginning of {repository}", opening, ids[start : start + len(opening)].tolist()
    before = prompt.closing_ids(tokenizer, segment["style"], row_of["boundary"])
    yield f"what stands before the target of {repository}", before, ids[answer - len(before) : answer].tolist()
    spans = {s["path"]: s for s in row["spans"] if s["segment"] == 0 and s["fidelity"] == "full"}
    for batch in dataset.of_repository("files", repository, ("path", "text")):
        for path, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if path in spans and len(text) <= _LONGEST_CHECKED:
                have = ids[spans[path]["start"] : spans[path]["end"]].tolist()
                yield f"{path} of {repository}", tokenizer.encode(text), have
