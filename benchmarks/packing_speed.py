"""How long packing takes, what it needs and how much it fills: documents of mixed lengths into rows.

    python benchmarks/packing_speed.py [--documents 1000000] [--length 128k]

Lengths are drawn from a Pareto distribution, cut at the row's length (many short repositories, some that fill a row), and
uniformly. Prints seconds of one process, its peak memory and the share of tokens that is padding.
"""

from __future__ import annotations

import argparse
import random
import resource
import time

from machine import machine

from repo2ctx.config import parse_length
from repo2ctx.packing import pack


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[1000, 1_000_000])
    parser.add_argument("--length", default="128k")
    options = parser.parse_args()
    length = parse_length(options.length)
    print(f"packing into rows of {options.length}; {machine()}")
    print("| documents | lengths | rows | padding | seconds | peak MB |\n|---|---|---|---|---|---|")
    for count in options.documents:
        rng = random.Random(0)
        mixed = [min(length, int(rng.paretovariate(0.9) * 500)) for _ in range(count)]
        uniform = [rng.randint(1, length) for _ in range(count)]
        for name, lengths in (("mixed", mixed), ("uniform", uniform)):
            start = time.perf_counter()
            rows = pack(lengths, length)
            seconds = time.perf_counter() - start
            padding = 1 - sum(lengths) / (len(rows) * length)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
            print(f"| {count:,} | {name} | {len(rows):,} | {padding:.2%} | {seconds:.2f} | {peak:,.0f} |")


if __name__ == "__main__":
    main()
