"""What it costs to fit repositories of growing size into one row: the memory should follow what is kept.

    python benchmarks/fit_memory.py [--tokens 3 30 300] [--lengths 128k 1m] [--tokenizer smollm2]

Makes up a repository of about so many million tokens (pieces of this project's own code, in files of 100 bytes to 200 KB) as the
`files` table of a build, in a temporary folder, and fits it in a process of its own for each length, as `repo2ctx pack` does.
Prints the seconds, the most memory that the process ever held, and the same before it began (Python, pyarrow, the tokenizer).
Pages of the mapped table count as held while they lie in memory, though the system can take them back at any time; so the memory
that is the process's own is sampled beside it. Linux only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from machine import machine

from repo2ctx.config import PackConfig, TokensConfig, parse_length
from repo2ctx.dataset import Dataset
from repo2ctx.fitting import Size, fit_documents
from repo2ctx.schema import FILES
from repo2ctx.shards import ShardWriter, shard_entries
from repo2ctx.tokens import load_tokenizer

ROOT = Path(__file__).resolve().parents[1]
BYTES_A_TOKEN = 3.4  # about, for code and SmolLM2
REPOSITORY = "host/owner/name@0"
BATCH_BYTES = 4 << 20


def files(size: int) -> Iterator[dict[str, Any]]:
    """Rows of `files`, `size` bytes of text in all. Each outline is about a sixth of its file."""
    code = "".join(path.read_text("utf-8") for path in sorted((ROOT / "repo2ctx").rglob("*.py")))
    random_ = random.Random(0)
    number = 0
    while size > 0:
        length = min(200_000, int(100 * random_.paretovariate(0.6)))
        start = random_.randrange(max(1, len(code) - length))
        text = f"# {number}\n" + code[start : start + length]
        raw = text.encode()
        yield {
            "repository": REPOSITORY,
            "path": f"src/package_{number % 997}/module_{number}.py",
            "size": len(raw),
            "fate": "kept",
            "position": number,
            "rank": random_.random(),
            "text": text,
            "outline": text[: len(text) // 6] or None,
            "text_sha256": hashlib.sha256(raw).hexdigest(),
        }
        size -= len(raw)
        number += 1


def write(out: Path, size: int) -> tuple[int, int]:
    """Write the table of a made-up repository; returns its files and bytes on disk."""
    rows, held, count = [], 0, 0
    with ShardWriter(out, "files", FILES, max_bytes=512 << 20, batch_bytes=BATCH_BYTES, compression="zstd") as writer:
        for row in files(size):
            rows.append(row)
            held += row["size"]
            count += 1
            if held >= BATCH_BYTES:
                writer.write_batch(pa.RecordBatch.from_pylist(rows, FILES))
                writer.flush()
                rows, held = [], 0
        if rows:
            writer.write_batch(pa.RecordBatch.from_pylist(rows, FILES))
    entries = shard_entries(writer.shards)
    places = [{"shard": number, "batch": 0, "batches": len(entry["offsets"])} for number, entry in enumerate(entries)]
    manifest = {"tables": {"files": entries}, "repositories": {REPOSITORY: {"files": places}}}
    (out / "made.json").write_text(json.dumps(manifest), "utf-8")
    return count, sum(entry["bytes"] for entry in entries)


def memory(kind: str) -> int:
    """Bytes that the system counts for this process: "VmHWM" at most so far, "RssAnon" now and without mapped files."""
    status = Path("/proc/self/status").read_text("ascii")
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith(kind))


def fit(out: Path, length: int, name: str) -> str:
    """Fit the repository in this process; a table's cells."""
    tokenizer = load_tokenizer(TokensConfig(tokenizer=name))
    dataset = Dataset(out, json.loads((out / "made.json").read_text("utf-8")))
    batches = partial(dataset.of_repository, "files", REPOSITORY)
    target = [*tokenizer.encode("A made-up repository, for a benchmark."), tokenizer.eos]
    most, done = [memory("RssAnon")], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            most[0] = max(most[0], memory("RssAnon"))

    watcher = threading.Thread(target=watch, daemon=True)
    before, own_before = memory("VmHWM"), memory("RssAnon")
    watcher.start()
    start = time.perf_counter()
    size = Size(length, length, "line")
    repository = {"id": REPOSITORY, "name": "host/owner/name", "boundary": "0a1b2c"}
    made, refused = fit_documents(repository, batches, [size], tokenizer, {"line": target}, PackConfig())
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    if refused:
        raise SystemExit(f"nothing fitted: {refused}")
    cells = [
        f"{len(made[size]) / length:.1%}",
        f"{seconds:.1f}",
        f"{before / 1e6:,.0f}",
        f"{memory('VmHWM') / 1e6:,.0f}",
        f"{(most[0] - own_before) / 1e6:,.0f}",
    ]
    return " | ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=float, nargs="+", default=[3, 30, 300], help="millions")
    parser.add_argument("--lengths", nargs="+", default=["128k", "1m"])
    parser.add_argument("--tokenizer", default="smollm2")
    parser.add_argument("--fit", nargs=2, metavar=("OUT", "LENGTH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        print(fit(Path(options.fit[0]), parse_length(options.fit[1]), options.tokenizer))
        return
    print(f"fitting into one row with {options.tokenizer}; {machine()}")
    print("| tokens | files | MB on disk | length | filled | seconds | MB before | MB at most | own MB more |")
    print("|---|---|---|---|---|---|---|---|---|")
    for millions in options.tokens:
        with tempfile.TemporaryDirectory() as folder:
            count, size = write(Path(folder), int(millions * 1e6 * BYTES_A_TOKEN))
            for length in options.lengths:
                command = [sys.executable, __file__, "--tokenizer", options.tokenizer, "--fit", folder, length]
                row = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
                print(f"| {millions:g} M | {count:,} | {size / 1e6:,.0f} | {length} | {row} |", flush=True)


if __name__ == "__main__":
    main()
