"""Rows dealt to ranks: none lost, none twice, whatever stops, and however many go on."""

import json
import pickle
import subprocess
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from repo2ctx import mapped, reader
from repo2ctx.dataset import Dataset
from repo2ctx.errors import ConfigError, OutputError
from repo2ctx.reader import Order, RowReader
from repo2ctx.records import Document, Span
from repo2ctx.schema import PACKED, packed_batch
from repo2ctx.shards import ShardWriter, shard_entries

ROOT = Path(__file__).parents[1]
TABLE = "packed/1k/train"
MOST_ROWS = 13


def made_up(out: Path, rows: int, batch_bytes: int = 300, max_bytes: int = 4000, first: int = 0) -> Dataset:
    """Rows whose tokens say their number, in batches of two rows and shards of a few batches."""
    out.mkdir(parents=True, exist_ok=True)
    with ShardWriter(out, TABLE, PACKED, max_bytes=max_bytes, batch_bytes=batch_bytes, compression=None) as writer:
        for number in range(first, first + rows):
            ids = np.full(10 + number % 3, number, np.int32)
            spans = [Span(f"f{number}.py", 1, 5, "full", "0" * 64)]
            writer.write_batch(packed_batch([Document(f"r{number}", ids, 6, "line", spans)]))
    return Dataset(out, {"tables": {TABLE: shard_entries(writer.shards), "files": []}})


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> list[Dataset]:
    """`made[n]` has n rows."""
    folder = tmp_path_factory.mktemp("made")
    return [made_up(folder / str(n), n) for n in range(MOST_ROWS + 1)]


def numbers(rows) -> list[int]:
    return [r["row"] for r in rows]


def deal(data: Dataset, world: int, steps: int, state=None, **options) -> tuple[list[dict], dict]:
    """What all ranks get in so many steps, round by round, and the state on which they agree."""
    readers = [RowReader(data, TABLE, rank=rank, world=world, **options) for rank in range(world)]
    if state is not None:
        for one in readers:
            one.load_state_dict(state)
    dealt = [list(islice(one, steps)) for one in readers]
    states = [one.state_dict() for one in readers]
    assert all(state == states[0] for state in states)
    assert {len(rows) for rows in dealt} == {len(dealt[0])}
    assert states[0] == readers[0].state_after(len(dealt[0]))
    return [row for round_ in zip(*dealt, strict=True) for row in round_], states[0]


def test_every_row_is_what_the_table_holds(made):
    dataset = made[13]
    assert len(dataset.shards(TABLE)) > 1
    assert any(rows > 1 for shard in dataset.shards(TABLE) for rows in shard.batch_rows)
    assert any(len(shard.offsets) > 1 for shard in dataset.shards(TABLE))
    for index, expected in enumerate(dataset.rows(TABLE)):
        row = dataset.packed_row(TABLE, index)
        assert row.pop("input_ids").tolist() == expected.pop("input_ids") == [index] * (10 + index % 3)
        assert row == expected
    for index in (-1, 13):
        with pytest.raises(IndexError, match=f"{TABLE} has no row {index}"):
            dataset.packed_row(TABLE, index)
    found = list(islice(RowReader(dataset, TABLE, columns=("spans", "input_ids")), 13))
    for row in found:
        assert list(row) == ["spans", "input_ids", "row", "position"]
        assert set(row["input_ids"].tolist()) == {row["row"]}
        assert row["spans"][0]["path"] == f"f{row['row']}.py"
    assert [row["position"] for row in found] == list(range(13))


def test_only_so_many_shards_stay_mapped(made, monkeypatch):
    monkeypatch.setattr(mapped, "OPEN_MAPS", 2)
    table = fresh(made[13]).packed(TABLE)
    assert len(table.shards) > 2
    kept = [table.find(index, PACKED.names) for index in range(13)]
    assert table._mapped.cache_info().currsize == 2
    for index, (batch, place) in enumerate(kept):  # what was read outlives its map
        assert batch.column("input_ids")[place].as_py()[0] == index


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, MOST_ROWS),
    seed=st.integers(0, 3),
    shuffle=st.booleans(),
    parts=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 9)), min_size=1, max_size=6),
)
def test_no_row_is_lost_or_doubled_when_the_world_changes(made, rows, seed, shuffle, parts):
    state, seen = None, []
    for world, steps in parts:
        dealt, state = deal(made[rows], world, steps, state, seed=seed, shuffle=shuffle)
        seen += dealt
        state = json.loads(json.dumps(state))
    assert [row["position"] for row in seen] == list(range(len(seen)))
    assert state["position"] == len(seen)
    order = Order(rows, seed, shuffle)
    assert numbers(seen) == [order.row_at(position) for position in range(len(seen))]
    for epoch in range(0, len(seen), rows):
        whole = numbers(seen[epoch : epoch + rows])
        assert len(set(whole)) == len(whole)
        if len(whole) == rows:
            assert sorted(whole) == list(range(rows))


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, MOST_ROWS),
    epochs=st.integers(1, 3),
    before=st.tuples(st.integers(1, 5), st.integers(0, 20)),
    world=st.integers(1, 5),
)
def test_epochs_end_with_a_full_round(made, rows, epochs, before, world):
    first, state = deal(made[rows], *before, epochs=epochs)
    rest, state = deal(made[rows], world, 1000, state, epochs=epochs)
    seen = first + rest
    assert [row["position"] for row in seen] == list(range(len(seen)))
    assert 0 <= len(seen) - epochs * rows < max(world, before[0])
    assert state["position"] == len(seen)
    assert deal(made[rows], 3, 1000, state, epochs=epochs)[0] == []


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, MOST_ROWS),
    epochs=st.integers(1, 3) | st.none(),
    world=st.integers(1, 3),
    workers=st.integers(1, 4),
    batch_size=st.integers(1, 3),
    stop=st.integers(0, 4),
)
def test_workers_give_the_order_that_there_is_without_them(made, rows, epochs, world, workers, batch_size, stop):
    """As DataLoader does: a batch from each worker in turn; and as StatefulDataLoader: each goes on from its own state."""
    options = {"rank": world - 1, "world": world, "epochs": epochs}
    expected = numbers(islice(RowReader(made[rows], TABLE, **options), 40))
    new = lambda w: RowReader(made[rows], TABLE, worker=(w, workers), batch_size=batch_size, **options)  # noqa: E731
    readers = [new(w) for w in range(workers)]
    got, iterators = [], [iter(one) for one in readers]
    for turn in range(30):
        if turn == stop * workers:
            states = [one.state_dict() for one in readers]
            readers = [new(w) for w in range(workers)]
            for one, state in zip(readers, states, strict=True):
                one.load_state_dict(state)
            iterators = [iter(one) for one in readers]
        got += numbers(islice(iterators[turn % workers], batch_size))
    assert got[:40] == expected[: len(got)]
    assert len(got) >= min(len(expected), 30)


def test_a_worker_stopped_within_a_batch_has_no_state(made):
    one = RowReader(made[5], TABLE, worker=(1, 2), batch_size=3)
    list(islice(one, 4))
    with pytest.raises(ConfigError, match=r"given 4 rows.*batches of 3; make the RowReader with the batch_size"):
        one.state_dict()


def test_every_iterator_starts_where_the_reader_was_set(made):
    one = RowReader(made[7], TABLE, rank=1, world=2)
    first = numbers(islice(one, 5))
    assert numbers(islice(one, 5)) == first
    one.load_state_dict(one.state_after(3))
    assert one.state_dict()["position"] == 6
    assert numbers(islice(one, 2)) == first[3:]
    assert one.state_dict() == one.state_after(2)
    assert one.state_dict()["position"] == 10


def test_epochs_and_seeds_differ(made):
    epochs = numbers(islice(RowReader(made[13], TABLE, seed=1), 39))
    assert len({tuple(epochs[i : i + 13]) for i in (0, 13, 26)}) == 3
    assert epochs != numbers(islice(RowReader(made[13], TABLE, seed=2), 39))
    assert numbers(islice(RowReader(made[13], TABLE, shuffle=False), 15)) == [*range(13), 0, 1]


def test_maps_and_permutations_are_not_pickled(made):
    one = RowReader(made[13], TABLE, rank=1, world=3)
    list(islice(one, 4))
    assert one._table._mapped.cache_info().currsize > 0
    assert one._order._epoch is not None
    copy = pickle.loads(pickle.dumps(one))
    assert copy._table._mapped.cache_info().currsize == 0
    assert copy._order._epoch is None
    assert numbers(islice(copy, 20)) == numbers(islice(one, 20))
    assert pickle.loads(pickle.dumps(made[13])).packed_row(TABLE, 3)["input_ids"][0] == 3


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("batch_size", [None, 2])
def test_in_a_dataloader_with_two_processes(made, start, batch_size):
    options = {"rank": 1, "world": 2, "epochs": 3}
    expected = numbers(RowReader(made[9], TABLE, **options))
    one = RowReader(made[9], TABLE, batch_size=batch_size or 1, **options)
    collate = {} if batch_size is None else {"collate_fn": list}
    for taken in (0, 4):
        rest = expected[taken:]
        one.load_state_dict(RowReader(made[9], TABLE, **options).state_after(taken))
        loader = DataLoader(one.for_torch(), batch_size, num_workers=2, multiprocessing_context=start, **collate)
        got = list(loader)
        flat = got if batch_size is None else [row for batch in got for row in batch]
        assert numbers(flat) == rest
        for row in flat:
            assert set(row["input_ids"].tolist()) == {row["row"]}
            assert row["segments"][0]["repository"] == f"r{row['row']}"


def test_statefuldataloader_goes_on_with_its_workers(made):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    for workers in (0, 2):
        new = lambda n=workers: stateful.StatefulDataLoader(  # noqa: E731
            RowReader(made[9], TABLE).for_torch(), None, num_workers=n
        )
        expected = numbers(islice(new(), 12))
        loader = new()
        got = numbers(islice(loader, 5))
        other = new()
        other.load_state_dict(loader.state_dict())
        assert got + numbers(islice(other, 7)) == expected


def test_without_torch(made):
    code = (
        "import sys, pickle; from repo2ctx.reader import RowReader; one = pickle.load(sys.stdin.buffer); "
        "print(len(list(one)), one.state_dict()['position'], 'torch' in sys.modules)"
    )
    one = pickle.dumps(RowReader(made[5], TABLE, epochs=1))
    said = subprocess.run([sys.executable, "-c", code], input=one, capture_output=True, check=True, cwd=ROOT)
    assert said.stdout.split() == [b"5", b"5", b"False"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rank": 4, "world": 4}, "rank 4 of 4: ranks count from 0"),
        ({"rank": -1}, "rank -1 of 1"),
        ({"world": 0}, "rank 0 of 0"),
        ({"worker": (2, 2)}, r"worker \(2, 2\): give \(number, of how many\)"),
        ({"rank": 0.5, "world": 2}, "rank 0.5 of 2: give whole numbers"),
        ({"rank": 0, "world": "2"}, "rank 0 of '2': give whole numbers"),
        ({"worker": (0, 1.5)}, r"worker \(0, 1.5\): give \(number, of how many\)"),
        ({"worker": (1, 2, 3)}, r"worker \(1, 2, 3\): give \(number, of how many\)"),
        ({"worker": 1}, r"worker 1: give \(number, of how many\)"),
        ({"seed": -1}, "seed -1: give 0 or more"),
        ({"seed": 1.5}, "seed 1.5: give a whole number, 0 or more"),
        ({"seed": None}, "seed None: give a whole number"),
        ({"epochs": 1.0}, "epochs 1.0: give a whole number, 1 or more, or None"),
        (
            {"batch_size": None},
            "batch_size None: give a whole number, 1 or more: the DataLoader's; 1 where it has None",
        ),
        ({"columns": "spans"}, r"columns 'spans': give a tuple of names, such as \('spans',\)"),
        ({"epochs": 0}, "epochs 0: give 1 or more, or None"),
        ({"batch_size": 0}, "batch_size 0: give 1 or more: the DataLoader's"),
        ({"columns": ("input_ids", "text")}, "no 'text'; they have input_ids, segments, spans"),
    ],
)
def test_arguments_that_cannot_be(made, options, says):
    with pytest.raises(ConfigError, match=says):
        RowReader(made[3], TABLE, **options)


def test_numbers_of_numpy_give_a_state_that_json_holds(made):
    plain = RowReader(made[13], TABLE, rank=1, world=2, seed=3, epochs=2, batch_size=2, worker=(0, 1))
    options = {"rank": np.int64(1), "world": np.int32(2), "seed": np.uint8(3), "epochs": np.int16(2)}
    one = RowReader(
        made[13], TABLE, shuffle=np.True_, batch_size=np.int64(2), worker=(np.int64(0), np.int64(1)), **options
    )
    assert numbers(one) == numbers(plain)
    state = one.state_after(np.int64(4))
    assert json.loads(json.dumps(state)) == state == plain.state_after(4)
    plain.load_state_dict(state)
    for taken in (-5, 1.5, "2", None):
        with pytest.raises(ConfigError, match=f"taken {taken!r}: give .*0 or more"):
            one.state_after(taken)


def test_tables_that_are_not_there(made, tmp_path):
    for data, table in ((made[3], "packed/2k/train"), (made[3], "files"), (made[0], TABLE)):
        with pytest.raises(ConfigError, match=f"has no packed rows in {table}; it has {TABLE}"):
            RowReader(data, table)
    with pytest.raises(OutputError, match=r"no manifest.json; give the --out of a finished build"):
        RowReader(tmp_path, TABLE)
    (tmp_path / "list.txt").write_text("owner/name\n")
    with pytest.raises(
        OutputError, match=r"list.txt: is a file, no output of a build; give the --out of a finished build$"
    ):
        RowReader(tmp_path / "list.txt", TABLE)


def test_states_of_something_else(made, tmp_path, monkeypatch):
    one = RowReader(made[5], TABLE, seed=1)
    list(islice(one, 3))
    state = one.state_dict()
    for other in (made[6], made_up(tmp_path / "other", 5, first=1)):
        with pytest.raises(ConfigError, match=r"holds other rows .*there 5 rows.*give the build that it was saved on"):
            RowReader(other, TABLE, seed=1).load_state_dict(state)
    with pytest.raises(ConfigError, match="saved with seed=1, and this reader has seed=2; make it with seed=1"):
        RowReader(made[5], TABLE, seed=2).load_state_dict(state)
    with pytest.raises(ConfigError, match="saved with shuffle=True"):
        RowReader(made[5], TABLE, seed=1, shuffle=False).load_state_dict(state)
    for wrong in ({}, None, [1], state | {"version": 0}):
        with pytest.raises(ConfigError, match="none of this version's RowReader"):
            one.load_state_dict(wrong)
    for position in (-1, "3", 3.0, True, None, 1 << 63, 10**40):
        with pytest.raises(ConfigError, match=f"changed: its position is {position!r:.40}, no number of rows; give"):
            one.load_state_dict(state | {"position": position})
    here = one.row_at(4)
    for change in ({"position": 4}, {"position": 4, "next_row": "x"}, {"position": 4, "next_row": [here]}):
        with pytest.raises(
            ConfigError, match=f"changed: at its position, 4, stands row {here}, and it says .*; give what"
        ):
            one.load_state_dict(state | change)
    plain = RowReader(made[5], TABLE, shuffle=False)
    with pytest.raises(
        ConfigError, match="changed: at its position, 4, stands row 4, and it says 3"
    ):  # no numpy shuffles
        plain.load_state_dict(plain.state_after(3) | {"position": 4, "numpy": "1.0"})
    assert one.state_dict() == state  # a refused state changes nothing
    monkeypatch.setattr(reader.np.random, "default_rng", lambda _: np.random.Generator(np.random.MT19937(5)))
    with pytest.raises(ConfigError, match=r"shuffles otherwise than numpy 1\.0, .*install that one"):
        RowReader(made[5], TABLE, seed=1).load_state_dict(state | {"numpy": "1.0"})


def fresh(made: Dataset) -> Dataset:
    """The same dataset, without what it has mapped already."""
    return Dataset(made.out, made.manifest)


def test_damaged_shards_are_told(tmp_path):
    made = made_up(tmp_path / "out", 13)
    shard = made.shards(TABLE)[1]
    path = made.out / shard.path
    whole = path.read_bytes()

    def read_all() -> list[int]:
        return sorted(numbers(RowReader(fresh(made), TABLE, epochs=1, columns=PACKED.names)))

    assert read_all() == list(range(13))
    for damage in (whole[:-9], b"", whole + b"\0"):
        path.write_bytes(damage)
        with pytest.raises(OutputError, match=r"00001.arrow: is damaged \(has .* bytes of .*put back a sound copy"):
            read_all()
    path.write_bytes(whole.replace(b"segments", b"sediment", 1))
    with pytest.raises(OutputError, match="its columns are others"):
        read_all()
    at = shard.offsets[0]
    path.write_bytes(whole[:at] + b"\xff" * 64 + whole[at + 64 :])
    with pytest.raises(OutputError, match=r"is damaged \(batch 0"):
        read_all()
    path.unlink()
    with pytest.raises(OutputError, match="cannot be read"):
        read_all()


@settings(deadline=None, max_examples=150)
@given(at=st.integers(0, 1 << 13), other=st.binary(min_size=1, max_size=8))
def test_no_damage_ends_the_process(damageable, at, other):
    """Whatever bytes are changed, the row is told to be damaged, or differs in what only a hash can tell."""
    made, path, whole = damageable
    at %= len(whole) - len(other)
    path.write_bytes(whole[:at] + other + whole[at + len(other) :])
    with suppress(OutputError):
        for row in RowReader(fresh(made), TABLE, epochs=1, columns=PACKED.names):
            assert int(row["input_ids"].astype(np.int64).sum()) == sum(row["input_ids"].tolist())


@pytest.fixture(scope="module")
def damageable(tmp_path_factory):
    made = made_up(tmp_path_factory.mktemp("damageable") / "out", 4, max_bytes=1 << 20)
    path = made.out / made.shards(TABLE)[0].path
    return made, path, path.read_bytes()
