"""How long attention over a packed row takes by each path, forwards and backwards.

    python benchmarks/attention_paths.py [--tokens 32k 128k] [--documents 1 4 16] [--paths sdpa-cudnn varlen …]
                                         [--heads 32] [--groups 8] [--size 128] [--repeats 5] [--device cuda]

One layer's attention alone, in bfloat16 on a GPU and float32 on a CPU, on random queries, keys and values laid out as a model's
layer gives them. The row is cut into documents of unlike lengths, drawn from a fixed seed. For each path: milliseconds forwards
and backwards, median of the repeats after one warm-up; TFLOP/s of both together, counting the pairs that are seen and no others;
GiB that the pass takes beyond its inputs; and what a row of lengths not seen before costs on top, the first time, when
something was compiled and run for other rows already. A path that needs more memory than there is says so.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from machine import machine

from repo2ctx.config import length_name, parse_length
from repo2ctx.errors import ConfigError
from train.attention.paths import PATHS
from train.attention.rows import row_of

LONGEST = 10.0  # seconds of repeats of one measurement


def lengths_of(tokens: int, documents: int, seed: int) -> tuple[int, ...]:
    """Unlike lengths of at least one token that make up the row."""
    shares = np.random.default_rng(seed).dirichlet([2.0] * documents)
    ends = np.minimum((np.cumsum(shares) * (tokens - documents)).astype(int) + np.arange(1, documents + 1), tokens)
    ends[-1] = tokens
    return tuple(np.diff(ends, prepend=0).tolist())


class Attention:
    """One path on one size of model: seconds of a pass over rows of these lengths."""

    def __init__(self, path: str, heads: int, groups: int, size: int, device: str):
        self.attend, self.heads, self.groups, self.size, self.device = PATHS[path], heads, groups, size, device
        self.dtype = torch.bfloat16 if device == "cuda" else torch.float32

    def run(self, lengths: tuple[int, ...]) -> tuple[float, float, int]:
        """Seconds forwards and backwards, and bytes at the peak beyond the inputs and the output's gradient."""
        row = row_of(lengths, self.device)
        q, k, v = (
            torch.randn(1, row.tokens, n, self.size, device=self.device, dtype=self.dtype)
            .transpose(1, 2)
            .requires_grad_()
            for n in (self.heads, self.groups, self.groups)
        )
        gradient = torch.randn(1, row.tokens, self.heads, self.size, device=self.device, dtype=self.dtype)
        before = self._memory()
        start = self._now()
        o = self.attend(q, k, v, row, None, None)
        middle = self._now()
        o.backward(gradient)  # type: ignore[no-untyped-call]
        end = self._now()
        return middle - start, end - middle, self._peak() - before

    def work(self, lengths: tuple[int, ...]) -> float:
        """Floating-point operations of a pass: two products forwards and five backwards, over pairs that are seen."""
        return 7 * 2 * self.heads * self.size * sum(n * (n + 1) / 2 for n in lengths)

    def _now(self) -> float:
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def _memory(self) -> int:
        if self.device != "cuda":
            return 0
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()

    def _peak(self) -> int:
        return torch.cuda.max_memory_allocated() if self.device == "cuda" else 0


def measure(attention: Attention, tokens: int, documents: int, repeats: int) -> str:
    """The cells of a path's line of the table."""
    for lengths in (
        (300,),
        (257, 3),
        lengths_of(tokens, documents, seed=1),
    ):  # flex compiles for the first and the second
        attention.run(lengths)
    runs: list[tuple[float, float, int]] = []
    start = time.monotonic()
    while len(runs) < repeats and (len(runs) < 3 or time.monotonic() - start < LONGEST):
        runs.append(attention.run(lengths))
    forward, backward = (statistics.median(run[i] for run in runs) for i in (0, 1))
    rate = attention.work(lengths) / (forward + backward) / 1e12
    number = list(PATHS.values()).index(attention.attend)  # two paths may share kernels, and what is kept for a length
    other = lengths_of(tokens, documents, seed=100 + number) if documents > 1 else (tokens - 77 - number,)
    first = sum(attention.run(other)[:2])
    again = sum(attention.run(other)[:2])
    extra, peak = max(0.0, first - again), max(run[2] for run in runs)
    memory = f"{peak / 2**30:.1f}" if peak else "—"
    return f"{1e3 * forward:,.1f} | {1e3 * backward:,.1f} | {rate:.3g} | {memory} | {1e3 * extra:,.0f}"


def outcome(what: Callable[[], str]) -> str:
    """The cells, or why there are none."""
    try:
        return what()
    except torch.OutOfMemoryError:
        reason = "out of memory"
    except (ConfigError, RuntimeError) as error:
        # a CPU's allocator says it so
        reason = "out of memory" if "can't allocate memory" in str(error) else f"does not run ({str(error)[:60]})"
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return f"{reason} | | | |"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--tokens", type=parse_length, nargs="+", default=[32 << 10, 128 << 10])
    arguments.add_argument("--documents", type=int, nargs="+", default=[1, 4, 16])
    arguments.add_argument("--paths", nargs="+", choices=list(PATHS), default=list(PATHS))
    arguments.add_argument("--heads", type=int, default=32)
    arguments.add_argument("--groups", type=int, default=8)
    arguments.add_argument("--size", type=int, default=128)
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--device", choices=["cuda", "cpu"], default="cuda" if torch.cuda.is_available() else "cpu")
    options = arguments.parse_args()
    gpu = f"{torch.cuda.get_device_name()}, " if options.device == "cuda" else ""
    print(
        f"{gpu}{machine()}, torch {torch.__version__}; {options.heads} heads of {options.size}, {options.groups} for keys\n"
    )
    print("| tokens | documents | path | forward ms | backward ms | TFLOP/s | GiB | new lengths, once: ms |")
    print("|---|---|---|---|---|---|---|---|")
    for tokens in options.tokens:
        for documents in options.documents:
            for path in options.paths:
                attention = Attention(path, options.heads, options.groups, options.size, options.device)
                cells = outcome(lambda a=attention, t=tokens, d=documents: measure(a, t, d, options.repeats))  # type: ignore[misc]
                print(f"| {length_name(tokens)} | {documents} | {path} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
