"""Packed rows as others read them: datasets, plain pyarrow, DuckDB; and without a copy."""

import re
from collections import Counter
from pathlib import Path

import datasets
import duckdb
import numpy as np
import pyarrow as pa
import pytest
import torch
from conftest import git, write_files
from test_build import PYTHON, run

from repo2ctx.dataset import Dataset
from repo2ctx.errors import OutputError
from repo2ctx.reader import RowReader
from repo2ctx.schema import PACKED

ROOT = Path(__file__).parents[1]
TABLE = "packed/8k/train"


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """Three repositories, whose rows of 32k lie in two shards or more."""
    folder, repos = tmp_path_factory.mktemp("reading"), []
    for i in range(3):
        repo = folder / f"repo{i}"
        repo.mkdir()
        write_files(repo, {**PYTHON, "n.py": f"n = {i}\n" * 3000})
        git(repo, "init", "-q")
        git(repo, "add", "-A", "-f")
        git(repo, "commit", "-qm", "one state")
        repos.append(str(repo))
    small = {"max_bytes": 66_000, "batch_bytes": 20_000}
    whole = {"split": {"validation": 0, "test": 0}, "targets": {"max_similarity": None}}
    run(folder, repos, pack={"lengths": "8k,32k"}, shards=small, **whole)
    assert len(Dataset(folder / "out").shards("packed/32k/train")) > 1
    return folder / "out"


def plain(out: Path, table: str) -> list[dict]:
    """The rows, by pyarrow alone."""
    rows = []
    for path in sorted((out / table).glob("*.arrow")):
        with pa.memory_map(str(path)) as source:
            rows += pa.ipc.open_stream(source).read_all().to_pylist()
    return rows


def same(a: dict, b: dict) -> bool:
    return all(np.array_equal(a[k], b[k]) if k == "input_ids" else a[k] == b[k] for k in b)


def test_pyarrow_and_ours_read_the_same(out):
    for table in (TABLE, "packed/32k/train"):
        expected = plain(out, table)
        assert sorted(expected[0]) == sorted(PACKED.names)
        dataset = Dataset(out)
        assert dataset.arrow(table).to_pylist() == expected
        assert all(same(dataset.packed_row(table, i), row) for i, row in enumerate(expected))
        for row in RowReader(dataset, table, epochs=1, columns=PACKED.names):
            assert same(row, expected[row["row"]])


def test_datasets_maps_and_streams_the_rows(out, tmp_path):
    expected = plain(out, "packed/32k/train")
    load = lambda **kw: datasets.load_dataset(  # noqa: E731
        str(out), "packed-32k", split="train", cache_dir=str(tmp_path / "hf"), **kw
    )
    whole = load()
    assert whole.features["input_ids"] == datasets.LargeList(datasets.Value("int32"))
    streamed = load(streaming=True)
    shards = sorted((out / "packed/32k/train").glob("*.arrow"))
    files = datasets.concatenate_datasets([datasets.Dataset.from_file(str(path)) for path in shards])
    for found in (list(whole), list(streamed), list(files)):
        assert found == expected
    for rows in (whole, files, streamed):
        chosen = rows.select_columns(["input_ids", "segments"])
        for name, kind in (("numpy", np.ndarray), ("torch", torch.Tensor)):
            for row, wanted in zip(chosen.with_format(name), expected, strict=True):
                assert isinstance(row["input_ids"], kind)
                assert row["input_ids"].tolist() == wanted["input_ids"]
                for segment, its in zip(row["segments"], wanted["segments"], strict=True):
                    assert (segment["repository"], int(segment["target_start"])) == (
                        its["repository"],
                        its["target_start"],
                    )


def mapped_at(path: Path) -> list[tuple[int, int]]:
    """The addresses at which this process has a file mapped."""
    lines = [line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(str(path))]
    return [(int(a, 16), int(b, 16)) for a, b in re.findall(r"^(\w+)-(\w+) ", "\n".join(lines), re.MULTILINE)]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="tells what is mapped on Linux")
def test_tokens_are_not_copied(out):
    dataset = Dataset(out)
    paths = [out / shard.path for shard in dataset.shards("packed/32k/train") for _ in range(shard.rows)]

    def within(ids: np.ndarray, path: Path) -> bool:
        address = ids.__array_interface__["data"][0]
        return any(first <= address and address + ids.nbytes <= last for first, last in mapped_at(path))

    for index, path in enumerate(paths):
        ids = dataset.packed_row("packed/32k/train", index)["input_ids"]
        assert ids.dtype == np.int32
        assert len(ids) > 1000
        assert within(ids, path)
        assert not within(ids.copy(), path)
        assert not ids.flags.writeable
    for row in RowReader(out, "packed/32k/train", epochs=1):
        assert within(row["input_ids"], paths[row["row"]])
    rows = datasets.Dataset.from_file(str(paths[0])).with_format("arrow")
    assert within(rows[0]["input_ids"].chunk(0).values.to_numpy(), paths[0])
    assert within(dataset.arrow(TABLE)["input_ids"].chunk(0).values.to_numpy(), out / dataset.shards(TABLE)[0].path)


def test_duckdb_queries_rows_and_joins_them_with_files(out):
    dataset, database = Dataset(out), duckdb.connect()
    database.register("packed", dataset.arrow(TABLE))
    database.register("files", dataset.arrow("files", ["repository", "path", "text_sha256", "language", "fate"]))
    rows = plain(out, TABLE)
    ask = lambda question: database.sql(question).fetchall()  # noqa: E731
    assert ask("select count(*), sum(len(input_ids)) from packed") == [
        (len(rows), sum(len(r["input_ids"]) for r in rows))
    ]
    spans = [s for row in rows for s in row["spans"]]
    sizes = Counter()
    for span in spans:
        sizes[span["fidelity"]] += span["end"] - span["start"]
    assert ask(
        'select s.fidelity, count(*), sum(s."end" - s.start) from (select unnest(spans) s from packed) group by all '
        "order by all"
    ) == sorted((f, sum(s["fidelity"] == f for s in spans), n) for f, n in sizes.items())
    targets = (
        "select g.style, sum(g.target_end - g.target_start) from (select unnest(segments) g from packed) group by all"
    )
    expected = Counter()
    for row in rows:
        for segment in row["segments"]:
            expected[segment["style"]] += segment["target_end"] - segment["target_start"]
    assert dict(ask(targets)) == expected
    joined = ask(
        "with s as (select segments, unnest(spans) s from packed) "
        "select f.language, count(*), count(distinct f.repository) from s join files f "
        "on f.repository = s.segments[s.s.segment + 1].repository and f.path = s.s.path and f.text_sha256 = s.s.text_sha256 "
        "where f.fate = 'kept' group by all order by all"
    )
    assert sum(count for _, count, _ in joined) == len(spans)
    assert {language: n for language, _, n in joined}["Python"] == 3


def test_tables_and_columns_that_are_not_there(out):
    dataset = Dataset(out)
    assert dataset.arrow("files", ["path", "repository"]).column_names == ["path", "repository"]
    assert dataset.arrow("files").num_rows == len(list(dataset.rows("files")))
    with pytest.raises(OutputError, match=r"has no table 'packed/1m/train'; it has .*packed/8k/train"):
        dataset.arrow("packed/1m/train")
    with pytest.raises(OutputError, match=r"files has no column 'txt'; it has repository, path"):
        dataset.arrow("files", ["txt"])
    dataset.manifest["tables"]["edges"] = []
    assert dataset.arrow("edges", ["to"]).to_pylist() == []


def test_the_readers_of_the_readme(out, tmp_path, monkeypatch, capsys):
    """The examples run as they stand, on a build that lies where they say."""
    section = (ROOT / "README.md").read_text().split("\n### Reading rows\n")[1].split("\n## ")[0]
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "my").symlink_to(out)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(blocks) == 4
    names = {"__name__": "readme"}  # as in a notebook: what one block made, the next may use
    for code in blocks:
        exec(compile(code, "README.md", "exec"), names)
    said = capsys.readouterr().out
    shapes = re.findall(r"torch.Size\(\[\d+\]\)", said)
    assert len(shapes) == 4  # of a row, and of the three inputs made of it
    assert len(set(shapes)) == 1
    assert re.search(r"full.*│\s+\d+ │", said)
    assert "'position': 3" in said
