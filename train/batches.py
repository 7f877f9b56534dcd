"""Packed rows -> the documents of each step, in the order of `repo2ctx.reader`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from repo2ctx import prompt
from repo2ctx.dataset import Dataset
from repo2ctx.errors import ConfigError
from repo2ctx.reader import RowReader
from repo2ctx.schema import target_text
from repo2ctx.tokens import Tokenizer

_LONGEST_CHECKED = 1 << 16  # characters of a file


@dataclass(frozen=True, slots=True)
class TrainingDocument:
    """One document of a row: int64 ids, and where its target starts."""

    ids_T: torch.Tensor
    target_start: int

    @property
    def counted(self) -> int:
        """Tokens that have a label."""
        return len(self.ids_T) - self.target_start


class Rows:
    """The rows of one table, in shuffled epochs; a resumed run needs only the number of rows that it had taken.

    Raises OutputError unless every byte of the table is as written.
    """

    def __init__(self, data: Path, table: str, seed: int):
        self.dataset = Dataset(data)
        self.table = table
        self.reader = RowReader(self.dataset, table, seed=seed)
        self.dataset.check(table)
        self.count = self.reader.rows
        self.digest = self.reader.digest  # of what the rows are: a resumed run must find the same

    def check_tokenizer(self, tokenizer: Tokenizer, model: str) -> None:
        """Raise ConfigError if the rows hold another tokenizer's ids than the model's.

        Tokenizers of the same vocabulary can come as different files, so the ids themselves are compared: of the first
        document's target, of its files, and of what the model's chat template puts around them.
        """
        if self.dataset.manifest["tokenizer_fingerprint"] == tokenizer.fingerprint:
            return
        for what, want, have in self._pieces(tokenizer):
            if have != want:
                first = next((i for i, pair in enumerate(zip(have, want, strict=False)) if pair[0] != pair[1]), 0)
                packed = self.dataset.manifest["config"]["tokens"]["tokenizer"]
                raise ConfigError(
                    f"{self.dataset.out}: was packed with tokenizer {packed!r}, whose ids are not those of the model: {what} has "
                    f"{have[first : first + 4]} where the model reads {want[first : first + 4]}; build with --tokenizer {model}"
                )

    def _pieces(self, tokenizer: Tokenizer) -> Iterator[tuple[str, list[int], list[int]]]:
        """(what it is, the ids that it should have, those that it has) of the first document's parts."""
        row = self.dataset.packed_row(self.table, 0)
        segment = row["segments"][0]
        repository, ids = segment["repository"], row["input_ids"]
        row_of = next(r for r in self.dataset.repositories() if r["id"] == repository)
        target = target_text(row_of, segment["style"])
        start, answer, end = segment["start"], segment["target_start"], segment["target_end"]
        yield f"the target of {repository}", tokenizer.encode(target), ids[answer : end - 1].tolist()
        yield f"the end of {repository}", [tokenizer.eos], ids[end - 1 : end].tolist()
        opening = prompt.opening_ids(tokenizer, row_of["name"], segment["style"], row_of["boundary"])
        yield f"the beginning of {repository}", opening, ids[start : start + len(opening)].tolist()
        before = prompt.closing_ids(tokenizer, segment["style"], row_of["boundary"])
        yield f"what stands before the target of {repository}", before, ids[answer - len(before) : answer].tolist()
        spans = {s["path"]: s for s in row["spans"] if s["segment"] == 0 and s["fidelity"] == "full"}
        for batch in self.dataset.of_repository("files", repository, ("path", "text")):
            for path, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                if path in spans and len(text) <= _LONGEST_CHECKED:
                    have = ids[spans[path]["start"] : spans[path]["end"]].tolist()
                    yield f"{path} of {repository}", tokenizer.encode(text), have

    def index(self, k: int) -> int:
        """The number in the table of row `k` of the run."""
        return self.reader.row_at(k)

    def documents(self, k: int) -> Iterator[TrainingDocument]:
        """The documents of row `k` of the run."""
        row = self.reader.read(self.index(k))
        ids = torch.from_numpy(row["input_ids"].astype(np.int64))
        for segment in row["segments"]:
            start, end = segment["start"], segment["target_end"]
            yield TrainingDocument(ids[start:end], segment["target_start"] - start)
