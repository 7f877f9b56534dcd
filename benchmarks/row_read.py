"""What it costs to read a row of a million tokens.

    python benchmarks/row_read.py [--rows 64] [--length 1m] [--spans 5000] [--shard-mib 512] [--reads 300]

Makes a dataset of made-up rows in a temporary folder, each row a batch of its own, and reads them in random order, after each
was read once, so that all lie in the page cache. For each way, milliseconds a row, median and 99th percentile: to have the row,
and to have it and look at every token (their sum), which is what a copy would cost at least. A small --shard-mib makes many
shards. `datasets` reads the same files.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from machine import machine

from repo2ctx.config import length_name, parse_length
from repo2ctx.dataset import Dataset
from repo2ctx.reader import RowReader
from repo2ctx.records import Document, Span
from repo2ctx.schema import PACKED, packed_batch
from repo2ctx.shards import ShardWriter, shard_entries

TARGET = 100  # tokens


def make(out: Path, table: str, rows: int, length: int, spans: int, shard_bytes: int) -> Dataset:
    """Write the made-up dataset, of one table."""
    random = np.random.default_rng(0)
    edges = np.linspace(0, length - TARGET, spans + 1).astype(int).tolist()
    files = [
        Span(f"src/package_{i % 97}/module_{i}.py", edges[i], edges[i + 1], "full", f"{i:064x}") for i in range(spans)
    ]
    out.mkdir(exist_ok=True)
    with ShardWriter(out, table, PACKED, max_bytes=shard_bytes, batch_bytes=1, compression=None) as writer:
        for i in range(rows):
            ids = random.integers(0, 200_000, length, dtype=np.int32)
            writer.write_batch(
                packed_batch([Document(f"host/owner/{i}@{i:040x}", ids, length - TARGET, "line", files)])
            )
    return Dataset(out, {"tables": {table: shard_entries(writer.shards)}})


def measure(read: Callable[[int], Any], rows: list[int]) -> tuple[float, float, float, float]:
    """Milliseconds (median, 99th percentile) to have a row, and to have it and look at its tokens."""
    having, looking = [], []
    for row in rows:
        start = time.perf_counter()
        ids = read(row)
        having.append(1e3 * (time.perf_counter() - start))
        ids.sum()
        looking.append(1e3 * (time.perf_counter() - start))
    a, b = np.percentile(having, (50, 99)), np.percentile(looking, (50, 99))
    return float(a[0]), float(a[1]), float(b[0]), float(b[1])


def ways(dataset: Dataset, table: str) -> dict[str, Callable[[int], Any]]:
    """Each way to read: row number -> its tokens, the rest of the row being read too."""
    reader = RowReader(dataset, table)
    files = [datasets.Dataset.from_file(str(dataset.out / shard.path)) for shard in dataset.shards(table)]
    rows = datasets.concatenate_datasets(files)
    some = rows.select_columns(["input_ids", "segments"])
    found: dict[str, Callable[[int], Any]] = {
        "RowReader, ids and segments": lambda i: reader.read(i)["input_ids"],
        "packed_row, all columns": lambda i: dataset.packed_row(table, i)["input_ids"],
    }
    for name in ("numpy", "torch"):
        chosen, whole = some.with_format(name), rows.with_format(name)
        found[f"datasets, {name}, ids and segments"] = lambda i, rows=chosen: rows[i]["input_ids"]  # type: ignore[misc]
        found[f"datasets, {name}, all columns"] = lambda i, rows=whole: rows[i]["input_ids"]  # type: ignore[misc]
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=64)
    arguments.add_argument("--length", type=parse_length, default=1 << 20)
    arguments.add_argument("--spans", type=int, default=5000)
    arguments.add_argument("--shard-mib", type=int, default=512)
    arguments.add_argument("--reads", type=int, default=300)
    options = arguments.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as scratch:
        table = f"packed/{length_name(options.length)}/train"
        dataset = make(Path(scratch), table, options.rows, options.length, options.spans, options.shard_mib << 20)
        shards = len(dataset.shards(table))
        print(f"{options.rows} rows of {options.length:,} tokens with {options.spans:,} spans, in {shards} shards\n")
        print("| way | row: median ms | 99th percentile | row and a look at its tokens: median ms | 99th percentile |")
        print("|---|---|---|---|---|")
        order = np.random.default_rng(1).integers(0, options.rows, options.reads).tolist()
        for name, read in ways(dataset, table).items():
            measure(read, list(range(options.rows)))
            print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in measure(read, order)) + " |", flush=True)


if __name__ == "__main__":
    main()
