"""What rows of up to a million tokens hold, and what a build of them costs.

    python benchmarks/long_rows.py OUT [--repos data/lists/million.txt] [--lengths 32k,128k,1m] [--tokenizer smollm2]

Builds the list into OUT, which must not exist, without a cache. Prints for each length the rows, the documents, how much of the
rows is filled, of how many files they hold which part, and on what their tokens go; then the seconds of each stage and the most
memory that one process held.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from machine import machine

from repo2ctx.config import parse_length
from repo2ctx.dataset import Dataset, read_manifest

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("full", "outline", "head")
PARTS = (*KINDS, "tree and markers", "target")


def build(options: argparse.Namespace) -> dict[str, Any]:
    """Run the build; what it says of itself."""
    command = [
        sys.executable,
        "-m",
        "repo2ctx.cli",
        "build",
        "--repos",
        options.repos,
        "--out",
        str(options.out),
        "--no-cache",
    ]
    command += [
        "--lengths",
        options.lengths,
        "--tokenizer",
        options.tokenizer,
        "--workers",
        str(options.workers),
        "--json",
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"the build ended with exit code {done.returncode}")
    return dict(json.loads(done.stdout))


def shares(dataset: Dataset, name: str) -> dict[str, float]:
    """What the tokens of a length's rows are spent on."""
    count: Counter[str] = Counter()
    for table in (table for table in dataset.tables() if table.startswith(f"packed/{name}/")):
        for row in dataset.rows(table, ["segments", "spans"]):
            for segment in row["segments"]:
                count["all"] += segment["target_end"] - segment["start"]
                count["target"] += segment["target_end"] - segment["target_start"]
            for span in row["spans"]:
                if span["fidelity"] in KINDS:
                    count[span["fidelity"]] += span["end"] - span["start"]
    count["tree and markers"] = count["all"] - sum(count[kind] for kind in (*KINDS, "target"))
    return {part: count[part] / count["all"] for part in PARTS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--repos", default=str(ROOT / "data/lists/million.txt"))
    parser.add_argument("--lengths", default="32k,128k,1m")
    parser.add_argument("--tokenizer", default="smollm2")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.out.exists():
        raise SystemExit(
            f"{options.out} exists; name a folder that does not, for the build is timed from its beginning"
        )
    said = build(options)
    dataset = Dataset(options.out, read_manifest(options.out))
    print(
        f"{said['repositories']} repositories, {said['files']['kept']:,} files kept; {options.workers} workers; {machine()}\n"
    )
    print("| length | rows | documents | fill | long | in full | outlines | beginnings | by path | left out |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, values in said["packed"].items():
        fill = values["tokens"] / (values["rows"] * parse_length(name))
        long = values["long_tokens"] / max(1, values["train_tokens"])
        files = " | ".join(f"{values[kind]:,}" for kind in (*KINDS, "path", "left_out"))
        print(f"| {name} | {values['rows']:,} | {values['documents']:,} | {fill:.1%} | {long:.0%} | {files} |")
    print(f"\n| tokens of | {' | '.join(PARTS)} |\n|---|{'---:|' * len(PARTS)}")
    for name in said["packed"]:
        print(f"| {name} | {' | '.join(f'{share:.1%}' for share in shares(dataset, name).values())} |")
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in said["stages"].items())
    print(f"\n{said['seconds']} s: {stages}; {said['peak_bytes'] / 1e6:,.0f} MB at most in one process")


if __name__ == "__main__":
    main()
