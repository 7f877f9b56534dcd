"""Packed rows -> the rows of each step, of one table or of several in proportion, in the order of `repo2ctx.reader`.

Of several tables, the next row comes from the one that is furthest behind its share of the stage's tokens. Nothing of that is
random, and a table that several stages read goes on where the stage before left it: how many rows of each were taken, and how
many tokens in this stage, is all that a resumed run needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from repo2ctx.config import length_name
from repo2ctx.dataset import Dataset
from repo2ctx.errors import ConfigError, OutputError
from repo2ctx.reader import RowReader
from train.config import LossSection
from train.stages import Part, Stage

_LOOK = "look at the rows with `repo2ctx verify`"


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One row: int64 ids_T; the lengths of its documents, which add up to T; which tokens count (int64 positions_P, ascending,
    never a document's first), and how much (float32 weights_P); how many of them are of targets; and its name for messages."""

    ids_T: torch.Tensor
    documents: tuple[int, ...]
    positions_P: torch.Tensor
    weights_P: torch.Tensor
    target_tokens: int
    name: str

    @property
    def weight(self) -> float:
        """What the row's tokens weigh together."""
        return float(self.weights_P.sum(dtype=torch.float64))


def training_row(row: Mapping[str, Any], loss: LossSection, name: str) -> TrainingRow:
    """A packed row with the weights of its tokens: `target_weight` for a target's, `context_weight` for the rest.

    Raises OutputError unless its documents follow each other from its first token to its last.
    """
    ids_T = torch.from_numpy(row["input_ids"].astype(np.int64))
    weights_T = torch.full((len(ids_T),), loss.context_weight, dtype=torch.float32)
    documents, targets, at = [], 0, 0
    for segment in row["segments"] or ():
        start, target, end = segment["start"], segment["target_start"], segment["target_end"]
        if not at == start < target <= end <= len(ids_T):
            raise OutputError(f"{name}: a document of it cannot be from {start} over {target} to {end}; {_LOOK}")
        at = end
        weights_T[target:end] = loss.target_weight
        weights_T[start] = 0.0  # nothing of this document stands before it
        documents.append(end - start)
        targets += end - target
    if not documents or at != len(ids_T):
        raise OutputError(f"{name}: its documents hold {at:,} of its {len(ids_T):,} tokens; {_LOOK}")
    positions_P = weights_T.nonzero().squeeze(1)
    return TrainingRow(ids_T, tuple(documents), positions_P, weights_T[positions_P], targets, name)


class Supply:
    """The rows of a whole run. Raises ConfigError for a table that is not there, OutputError unless every byte is as written."""

    def __init__(self, stages: Sequence[Stage], loss: LossSection, seed: int):
        self.stages, self.loss = stages, loss
        self.readers: dict[str, RowReader] = {}
        self.datasets: dict[str, Dataset] = {}
        for part in (part for stage in stages for part in stage.parts):
            key, path = _key(part), str(part.path)
            if path not in self.datasets:
                self.datasets[path] = Dataset(part.path)
            if key not in self.readers:
                self.readers[key] = RowReader(self.datasets[path], part.table, seed=seed)
                self.datasets[path].check(part.table)
        self.taken = dict.fromkeys(self.readers, 0)  # rows, of the run
        self.given = dict.fromkeys(self.readers, 0)  # tokens, of this stage
        self.over = 0  # by how much the rows drawn in this stage go beyond its steps so far, by their lengths

    @property
    def digest(self) -> dict[str, str]:
        """What the rows are: a resumed run must find the same."""
        return {key: reader.digest for key, reader in self.readers.items()}

    def tables(self) -> list[tuple[Dataset, str]]:
        """(dataset, table) of each table that the run reads."""
        parts = {_key(part): part for stage in self.stages for part in stage.parts}
        return [(self.datasets[str(part.path)], part.table) for part in parts.values()]

    def begin(self) -> None:
        """A stage begins: its shares are counted from here."""
        self.given = dict.fromkeys(self.readers, 0)
        self.over = 0

    def step(self, stage: Stage) -> list[TrainingRow]:
        """The rows of the next step: at least one, since what the steps before drew too much is less than a row."""
        rows: list[TrainingRow] = []
        drawn = self.over
        while drawn < stage.tokens_per_step:
            part = min(stage.parts, key=lambda part: self.given[_key(part)] / part.share)
            row = self._next(part)
            rows.append(row)
            drawn += part.length
        self.over = drawn - stage.tokens_per_step
        if not any(len(row.positions_P) for row in rows):
            raise ConfigError(f"{rows[0].name}: no token of the step counts; {_LOOK}")
        return rows

    def peek(self, stage: Stage) -> TrainingRow:
        """A row of the stage, which counts as not taken."""
        part = stage.parts[0]
        return training_row(self.readers[_key(part)].read(0), self.loss, f"row 0 of {self._where(part)}")

    def _next(self, part: Part) -> TrainingRow:
        key = _key(part)
        reader = self.readers[key]
        index = reader.row_at(self.taken[key])
        row = training_row(reader.read(index), self.loss, f"row {index} of {self._where(part)}")
        self.taken[key] += 1
        self.given[key] += len(row.ids_T)
        return row

    def _where(self, part: Part) -> str:
        return part.table if len(self.datasets) == 1 else f"{part.path}/{part.table}"

    def count(self, stage: Stage) -> int:
        """Rows that the tables of a stage hold."""
        return sum(self.readers[_key(part)].rows for part in stage.parts)

    def state_dict(self) -> dict[str, Any]:
        return {"taken": dict(self.taken), "given": dict(self.given), "over": self.over}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if "over" not in state:
            raise ConfigError("the checkpoint is of an earlier version, which drew rows otherwise; give another `out`")
        self.taken, self.given, self.over = dict(state["taken"]), dict(state["given"]), state["over"]


def _key(part: Part) -> str:
    return f"{part.path}:{length_name(part.length)}"
