"""Loss on rows that are not trained on: of the stage's lengths, and of the model's native length, which must not get worse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from repo2ctx.config import length_name
from repo2ctx.dataset import Dataset
from repo2ctx.reader import RowReader
from train.attention import row_inputs
from train.batches import training_row
from train.config import LossSection, TrainConfig
from train.loss import loss_sum
from train.stages import Stage

_TARGETS_ALONE = LossSection()


class Validation:
    """The tables that a run is measured on: `packed/<length>/validation` of each stage's rows, and of `validation.short`.

    The loss is the mean over target tokens of the first `validation.rows` rows, whatever counts in training. Raises ConfigError
    if the table of `validation.short` is not there; a stage without validation rows is measured on what there is.
    """

    def __init__(self, config: TrainConfig, stages: tuple[Stage, ...]):
        self.section, self.across = config.validation, config.attention.across_documents
        self.chunk = config.loss.chunk
        self.readers: dict[str, RowReader] = {}
        self.of_stage: list[tuple[str, ...]] = []
        self._tables: list[tuple[Dataset, str]] = []
        if not self.section.rows:
            self.of_stage = [()] * len(stages)
            return
        datasets: dict[str, Dataset] = {}
        short = self.section.short
        always = (
            (self._open(datasets, self.section.short_path or config.data.path, short, needed=True),) if short else ()
        )
        for stage in stages:
            parts = sorted(stage.parts, key=lambda part: -part.length)
            names = [self._open(datasets, part.path, part.length) for part in parts]
            self.of_stage.append(tuple(dict.fromkeys(n for n in (*names, *always) if n is not None)))

    def _open(self, datasets: dict[str, Dataset], path: Any, length: int, needed: bool = False) -> str | None:
        """The name of a table, which is opened; None if it has no rows and is not needed."""
        table = f"packed/{length_name(length)}/validation"
        dataset = datasets.setdefault(str(path), Dataset(path))
        several = len({str(path), *datasets}) > 1
        name = f"{path}/{table}" if several else table
        if name not in self.readers:
            if not needed and not any(shard.rows for shard in dataset.shards(table)):
                return None
            self.readers[name] = RowReader(dataset, table, shuffle=False)
            dataset.check(table)
            self._tables.append((dataset, table))
        return name

    def tables(self) -> list[tuple[Dataset, str]]:
        """(dataset, table) of each table that is read."""
        return self._tables

    @torch.no_grad()
    def losses(self, model: Any, stage: int, between: Callable[[], None]) -> dict[str, float]:
        """{table: mean loss of a target token, in nats}, the stage's longest first. `between` is called before every row."""
        found = {}
        model.eval()
        try:
            for name in self.of_stage[stage]:
                total, counted = 0.0, 0.0
                for row in self._rows(self.readers[name], name):
                    between()
                    inputs = row_inputs(row.documents, model.device, self.across)
                    total += loss_sum(model, row, inputs, self.chunk).item()
                    counted += row.weight
                found[name] = total / counted
        finally:
            model.train()
        return found

    def _rows(self, reader: RowReader, name: str) -> Iterator[Any]:
        for index in range(min(reader.rows, self.section.rows)):
            yield training_row(reader.read(index), _TARGETS_ALONE, f"row {index} of {name}")
