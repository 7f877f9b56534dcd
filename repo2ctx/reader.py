"""Packed rows for data-parallel ranks: one endless order of rows, of which every rank takes its share.

Position p of the stream is row `permutation(seed, epoch)[place]` with epoch, place = divmod(p, rows). A run that starts, or goes
on, at position s gives rank r of W the positions s + r, s + r + W, s + r + 2 W … When every rank has taken n rows, the stream
stands at s + n W, and W is not part of that: a run that goes on there with another W loses no row and sees none twice. For
example, rows 0 to 4 unshuffled, three steps on 2 ranks, then 3 ranks:

    rank 0:  0 2 4 | 1 4 …
    rank 1:  1 3 0 | 2 0 …        position 6 after three steps; epochs run on into each other,
    rank 2:        | 3 1 …        so that every rank has a row in every round

A rank and the world are plain numbers. Ranks that must see the same row, such as those of one sequence-parallel group, are given
one number: the group's, of so many groups.

Cost: 4 bytes a row for an epoch's order, half a second to make it for 10 million rows, and two binary searches a row. torch is
imported by `for_torch` alone; in the workers of its DataLoader, where it is loaded, the reader deals its rank's rows among them.
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from repo2ctx.dataset import Dataset, packed_row
from repo2ctx.errors import ConfigError
from repo2ctx.schema import PACKED

if TYPE_CHECKING:
    from torch.utils.data import IterableDataset

_STATE_VERSION = 1
_END = 1 << 63  # positions lie below it: more rows than anything deals


class Order:
    """Which row stands at a position of the stream. Holds one epoch's permutation, and makes it again after pickling."""

    def __init__(self, rows: int, seed: int, shuffle: bool):
        self.rows, self.seed, self.shuffle = rows, seed, shuffle
        self._epoch: tuple[int, npt.NDArray[Any]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_epoch": None}

    def row_at(self, position: int) -> int:
        epoch, place = divmod(position, self.rows)
        if not self.shuffle:
            return place
        held = self._epoch
        if held is None or held[0] != epoch:
            self._epoch = held = None  # so that there are never two at a time
            rows: npt.NDArray[Any] = np.arange(self.rows, dtype=np.int32 if self.rows < 1 << 31 else np.int64)
            np.random.default_rng((self.seed, epoch)).shuffle(rows)
            self._epoch = held = epoch, rows
        return int(held[1][place])


def positions(
    start: int, rank: int, world: int, worker: int = 0, workers: int = 1, batch_size: int = 1
) -> Iterator[int]:
    """The positions of one worker of one rank, without end.

    DataLoader takes a batch of `batch_size` rows from each worker in turn, so each has such runs of the rank's rounds in turn,
    and what the loader gives is in the order that it has without workers.
    """
    for first in itertools.count(worker * batch_size, workers * batch_size):
        for round_ in range(first, first + batch_size):
            yield start + round_ * world + rank


class RowReader:
    """Deals the rows of one packed table: an iterable of dicts, each with the columns asked for, `row` (its number in the table)
    and `position` (in the stream). `input_ids` is a read-only view of the mapped file.

    data: OUT of a build, or its Dataset. table: such as "packed/32k/train".
    rank, world: this process among those that each get rows of their own.
    seed, shuffle: the order of the rows; not shuffled, it is the table's.
    epochs: None is without end. Else it ends with the round in which the last row of the last epoch is dealt; the places that are
        left in that round go to the first rows of the next epoch, so that no rank is short of a row.
    columns: `spans` only if asked for; to decode those of 5,000 files takes 2 ms.
    batch_size: the DataLoader's, where it has workers; 1 where that is None.
    worker: (number, of how many) to deal a rank's rows further by hand; the workers of a DataLoader are known without it.

    Every iterator starts where `load_state_dict` last set the reader, else at the beginning. Raises ConfigError for arguments
    that cannot be, and OutputError for a damaged shard when it comes to it; `Dataset.check` compares every byte beforehand.
    """

    def __init__(
        self,
        data: Dataset | Path | str,
        table: str,
        *,
        rank: int = 0,
        world: int = 1,
        seed: int = 0,
        shuffle: bool = True,
        epochs: int | None = None,
        columns: Sequence[str] = ("input_ids", "segments"),
        batch_size: int = 1,
        worker: tuple[int, int] | None = None,
    ):
        dataset = data if isinstance(data, Dataset) else Dataset(Path(data))
        self.rank, self.world = _rank_of(rank, world)
        self.epochs = None if epochs is None else _number("epochs", epochs, 1, ", or None for no end")
        self.batch_size = _number("batch_size", batch_size, 1, ": the DataLoader's; 1 where it has None")
        self.worker = None if worker is None else _worker_of(worker)
        if isinstance(columns, str):
            raise ConfigError(f"columns {columns!r}: give a tuple of names, such as ({columns!r},)")
        if unknown := [name for name in columns if name not in PACKED.names]:
            raise ConfigError(f"columns: packed rows have no {unknown[0]!r}; they have {', '.join(PACKED.names)}")
        self.name, self.columns = f"{dataset.out}, {table}", tuple(columns)
        self.digest = dataset.digest(table)
        self._table = dataset.packed(table)
        self.rows = self._table.rows
        if not self.rows or not table.startswith("packed/"):
            tables = [t for t in dataset.tables() if t.startswith("packed/")]
            raise ConfigError(f"{dataset.out} has no packed rows in {table}; it has {', '.join(tables) or 'none'}")
        self._order = Order(self.rows, _number("seed", seed, 0), bool(shuffle))
        self._start = self._given = 0
        self._ended = False

    def row_at(self, position: int) -> int:
        """The number in the table of the row at a position of the stream."""
        return self._order.row_at(position)

    def read(self, row: int) -> dict[str, Any]:
        """A row by its number in the table."""
        return packed_row(*self._table.find(row, self.columns))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker, workers = self._worker()
        self._given, self._ended = 0, False
        for position in positions(self._start, self.rank, self.world, worker, workers, self.batch_size):
            # The whole round is dealt while any of it is within the epochs.
            if self.epochs is not None and position - self.rank >= self.epochs * self.rows:
                break
            row = self.row_at(position)
            found = self.read(row) | {"row": row, "position": position}
            self._given += 1
            yield found
        self._ended = True

    def _worker(self) -> tuple[int, int]:
        """(number, of how many): as given, else as DataLoader tells its workers."""
        if self.worker is not None:
            return self.worker
        loaded = sys.modules.get("torch.utils.data")
        info = loaded.get_worker_info() if loaded is not None else None
        return (0, 1) if info is None else (info.id, info.num_workers)

    def state_dict(self) -> dict[str, Any]:
        """Where the newest iterator over this object stands, as JSON can hold it.

        Take it when all ranks have taken equally many rows: it is then the same on each, and resumes any number of them. With the
        workers of a plain DataLoader it is their copies that are iterated over, and read ahead: use `state_after`.
        StatefulDataLoader asks the copies, and can go on with as many workers only.
        """
        _, workers = self._worker()
        if workers > 1 and not self._ended and self._given % self.batch_size:
            raise ConfigError(
                f"a worker has given {self._given} rows, which is no number of whole batches of {self.batch_size}; "
                "make the RowReader with the batch_size of the DataLoader"
            )
        # A worker goes on at its own place in the next turn of them all.
        return self.state_after(self._given * workers)

    def state_after(self, taken: int) -> dict[str, Any]:
        """The state when every rank has taken `taken` rows since the reader was made, or last set."""
        taken = _number("taken", taken, 0)
        position = self._start + taken * self.world
        return {
            "version": _STATE_VERSION,
            "position": position,
            "next_row": self.row_at(position),
            "seed": self._order.seed,
            "shuffle": self._order.shuffle,
            "rows": self.rows,
            "digest": self.digest,
            "numpy": np.__version__,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, whatever the rank and world that it was saved by. Raises ConfigError if it is not of these rows."""
        if not isinstance(state, Mapping) or state.get("version") != _STATE_VERSION:
            raise ConfigError(
                f"{self.name}: the state is none of this version's RowReader; give what `state_dict` returned, or start "
                "without a state"
            )
        if state.get("digest") != self.digest:
            raise ConfigError(
                f"{self.name}: holds other rows than those that the state was saved on (there {state.get('rows')} rows, digest "
                f"{str(state.get('digest'))[:12]}; here {self.rows}, {self.digest[:12]}); give the build that it was saved on, "
                "or start without a state"
            )
        for name, here in (("seed", self._order.seed), ("shuffle", self._order.shuffle)):
            if state.get(name) != here:
                raise ConfigError(
                    f"{self.name}: the state was saved with {name}={state.get(name)}, and this reader has {name}={here}; "
                    f"make it with {name}={state.get(name)}, or start without a state"
                )
        position = state.get("position")
        if type(position) is not int or not 0 <= position < _END:
            raise ConfigError(
                f"{self.name}: the state was changed: its position is {position!r:.40}, no number of rows; give what "
                "`state_dict` returned, or start without a state"
            )
        if state.get("next_row") != (here := self.row_at(position)):
            if not self._order.shuffle or state.get("numpy") == np.__version__:
                raise ConfigError(
                    f"{self.name}: the state was changed: at its position, {position}, stands row {here}, and it says "
                    f"{str(state.get('next_row'))[:40]}; give what `state_dict` returned, or start without a state"
                )
            raise ConfigError(
                f"{self.name}: numpy {np.__version__} shuffles otherwise than numpy {state.get('numpy')}, with which the state "
                "was saved; install that one, or start without a state"
            )
        self._start, self._given, self._ended = position, 0, False

    def for_torch(self) -> IterableDataset[dict[str, Any]]:
        """This reader, known to torch as an IterableDataset, for DataLoader, with any number and kind of worker processes."""
        from torch.utils.data import IterableDataset

        IterableDataset.register(RowReader)
        return cast("IterableDataset[dict[str, Any]]", self)


def _number(name: str, value: object, least: int, more: str = "") -> int:
    """A whole number of any type, as an int, which JSON can hold."""
    try:
        number = int(operator.index(value))  # type: ignore[arg-type]
    except TypeError as error:
        raise ConfigError(f"{name} {value!r}: give a whole number, {least} or more{more}") from error
    if number < least:
        raise ConfigError(f"{name} {number}: give {least} or more{more}")
    return number


def _rank_of(rank: object, world: object) -> tuple[int, int]:
    try:
        number, of = (int(operator.index(value)) for value in (rank, world))  # type: ignore[arg-type]
    except TypeError as error:
        raise ConfigError(f"rank {rank!r} of {world!r}: give whole numbers") from error
    if not 0 <= number < of:
        raise ConfigError(f"rank {number} of {of}: ranks count from 0, so give world=1 or more, and a rank below it")
    return number, of


def _worker_of(worker: tuple[int, int]) -> tuple[int, int]:
    try:
        number, of = (int(operator.index(value)) for value in worker)
    except (TypeError, ValueError):
        number, of = 0, 0
    if not 0 <= number < of:
        raise ConfigError(f"worker {worker}: give (number, of how many), the number counted from 0 and below the other")
    return number, of
