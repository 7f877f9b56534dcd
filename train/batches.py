"""Packed rows -> the documents of each step, in an order that a seed and a position determine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from repo2ctx.errors import ConfigError
from repo2ctx.schema import Dataset


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
    """The rows of one table, dealt in shuffled epochs.

    Row k of the run is row `permutation(seed, epoch)[k mod rows]`: a resumed run needs only k.
    """

    def __init__(self, data: Path, table: str, seed: int):
        self.dataset = Dataset(data)
        self.table = table
        self.seed = seed
        self.count = sum(shard.rows for shard in self.dataset.shards(table))
        if not self.count:
            tables = [t for t in self.dataset.tables() if t.startswith("packed/")]
            raise ConfigError(f"{data} has no rows in {table}; it has {', '.join(tables) or 'no packed rows'}")

    def index(self, k: int) -> int:
        epoch, place = divmod(k, self.count)
        order = np.random.default_rng((self.seed, epoch)).permutation(self.count)
        return int(order[place])

    def documents(self, k: int) -> Iterator[TrainingDocument]:
        """The documents of row `k` of the run."""
        row = self.dataset.packed_row(self.table, self.index(k))
        ids = torch.from_numpy(row["input_ids"].astype(np.int64))
        for segment in row["segments"]:
            start, end = segment["start"], segment["target_end"]
            yield TrainingDocument(ids[start:end], segment["target_start"] - start)
