"""Loss on rows that are not trained on: of the stage's lengths, and of the model's native length, which must not get worse.

On rows of native length every token is measured too: a target's loss falls as the model learns how summaries are written, also
where it forgets how text goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from repo2ctx.config import length_name
from repo2ctx.dataset import Dataset
from repo2ctx.reader import RowReader
from train.attention import row_inputs
from train.batches import TrainingRow, training_row
from train.config import LossSection, TrainConfig
from train.loss import loss_sum
from train.stages import Stage

_TARGETS_ALONE, _EVERY_TOKEN = LossSection(), LossSection(context_weight=1.0)
ALL_TOKENS = "/all-tokens"  # after a table's name: the mean over every token, not over those of targets


class Validation:
    """The tables that a run is measured on: `packed/<length>/validation` of each stage's rows, and of `validation.short`.

    The loss is the mean over target tokens of the first `validation.rows` rows, whatever counts in training. `short` is the name
    of the table of `validation.short`, or None. Raises ConfigError if that is not there; a stage without validation rows is
    measured on what there is.
    """

    def __init__(self, config: TrainConfig, stages: tuple[Stage, ...]):
        self.section, self.across = config.validation, config.attention.across_documents
        self.chunk = config.loss.chunk
        self.readers: dict[str, RowReader] = {}
        self.of_stage: list[tuple[str, ...]] = []
        self._tables: list[tuple[Dataset, str]] = []
        self.short: str | None = None
        if not self.section.rows:
            self.of_stage = [()] * len(stages)
            return
        datasets: dict[str, Dataset] = {}
        short = self.section.short
        if short is not None:
            self.short = self._open(datasets, self.section.short_path or config.data.path, short, needed=True)
        for stage in stages:
            parts = sorted(stage.parts, key=lambda part: -part.length)
            names = [self._open(datasets, part.path, part.length) for part in parts]
            self.of_stage.append(tuple(dict.fromkeys(n for n in (*names, self.short) if n is not None)))

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

    def losses(self, model: Any, stage: int, between: Callable[[], None]) -> dict[str, float]:
        """{table: mean loss of a target token, in nats}, the stage's longest first, and {short + ALL_TOKENS: that of any token}.

        `between` is called before every row.
        """
        found = {name: self._mean(model, name, _TARGETS_ALONE, between) for name in self.of_stage[stage]}
        return found | self._all_tokens(model, between)

    def short_losses(self, model: Any, between: Callable[[], None]) -> dict[str, float]:
        """What `losses` says of the table of `validation.short`; nothing without one."""
        if self.short is None:
            return {}
        return {self.short: self._mean(model, self.short, _TARGETS_ALONE, between)} | self._all_tokens(model, between)

    def _all_tokens(self, model: Any, between: Callable[[], None]) -> dict[str, float]:
        if self.short is None:
            return {}
        return {self.short + ALL_TOKENS: self._mean(model, self.short, _EVERY_TOKEN, between)}

    @torch.no_grad()
    def _mean(self, model: Any, name: str, tokens: LossSection, between: Callable[[], None]) -> float:
        total, counted = 0.0, 0.0
        model.eval()
        try:
            for row in self._rows(name, tokens):
                between()
                inputs = row_inputs(row.documents, model.device, self.across)
                total += loss_sum(model, row, inputs, self.chunk).item()
                counted += row.weight
        finally:
            model.train()
        return total / counted

    def _rows(self, name: str, tokens: LossSection) -> Iterator[TrainingRow]:
        reader = self.readers[name]
        for index in range(min(reader.rows, self.section.rows)):
            yield training_row(reader.read(index), tokens, f"row {index} of {name}")
