"""What a build costs, next to the least that it could cost.

    python benchmarks/build_cost.py PATH [PATH …] [--lengths 8k,32k,1m]

For each repository: files kept, bytes, tokens of the kept text, wall and CPU seconds of the whole `repo2ctx build`
process tree (one worker, no cache), its peak memory, and the floor: CPU seconds to read every blob with git,
tokenize the text files and parse those that have a grammar, on the same core and in the same run. CPU is what to
compare: wall time on a shared machine is noise.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import tree_sitter
from machine import machine

from repo2ctx.config import TokensConfig
from repo2ctx.crawl import CrawlOptions, open_snapshot
from repo2ctx.dataset import Dataset
from repo2ctx.languages import languages
from repo2ctx.records import KEPT
from repo2ctx.repolist import parse_plain
from repo2ctx.selection import decode, read_text
from repo2ctx.snapshot import SUBMODULE
from repo2ctx.tokens import load_tokenizer


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class PeakMemory(threading.Thread):
    """Samples the resident memory of a process tree, shared pages counted once per process."""

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self.process, self.peak, self.stop = psutil.Process(pid), 0, threading.Event()

    def run(self) -> None:
        while not self.stop.wait(0.02):
            total = 0
            try:
                for process in (self.process, *self.process.children(recursive=True)):
                    total += process.memory_info().rss
            except psutil.Error:
                continue
            self.peak = max(self.peak, total)


def run_build(path: str, lengths: str, out: Path) -> tuple[float, float, int]:
    """(wall seconds, CPU seconds, peak bytes) of one build."""
    listed = out.with_suffix(".txt")
    listed.write_text(path + "\n")
    command = [sys.executable, "-m", "repo2ctx.cli", "build", "--repos", str(listed), "--out", str(out)]
    command += ["--lengths", lengths, "--workers", "1", "--no-cache", "--quiet", "--json"]
    wall, cpu = time.monotonic(), children_cpu()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    memory = PeakMemory(process.pid)
    memory.start()
    if process.wait():
        raise SystemExit(f"the build of {path} failed")
    memory.stop.set()
    return time.monotonic() - wall, children_cpu() - cpu, memory.peak


def floor(path: str) -> tuple[float, float, float, int]:
    """(read, tokenize, parse) CPU seconds over all text of the repository, and its bytes."""
    tokenizer = load_tokenizer(TokensConfig())
    with open_snapshot(parse_plain(path, Path.cwd()), CrawlOptions(None)) as snapshot:
        start = children_cpu() + time.process_time()
        entries = [e for e in snapshot.entries() if e.mode != SUBMODULE]
        blobs = list(snapshot.read([e.blob for e in entries]))
        reading = children_cpu() + time.process_time() - start
    texts = []
    for entry, blob in zip(entries, blobs, strict=True):
        decoded = decode(blob) if blob is not None else "missing"
        if not isinstance(decoded, str):
            texts.append((entry.path, decoded[0]))
    start = time.process_time()
    for _, text in texts:
        tokenizer.encode(text)
    tokenizing = time.process_time() - start
    parsers = {}
    parsing = 0.0
    for path_, text in texts:
        source = text.encode()
        language = read_text(path_, source, len(source)).language
        if language in languages():
            if language not in parsers:
                grammar = languages()[language].GRAMMARS[language]()
                parsers[language] = tree_sitter.Parser(tree_sitter.Language(grammar))
            start = time.process_time()
            parsers[language].parse(source)
            parsing += time.process_time() - start
    return reading, tokenizing, parsing, sum(len(t.encode()) for _, t in texts)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("paths", nargs="+")
    arguments.add_argument("--lengths", default="8k,32k,1m")
    options = arguments.parse_args()
    tokenizer = load_tokenizer(TokensConfig())
    print(machine())
    print(
        "| repository | text MB | kept files | kept tokens | wall s | CPU s | peak MB | read + tokens + parse s | CPU/floor |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for number, path in enumerate(options.paths):
            out = Path(scratch) / str(number)
            wall, cpu, peak = run_build(path, options.lengths, out)
            rows = [r for r in Dataset(out).rows("files", ("fate", "text")) if r["fate"] == KEPT]
            tokens = sum(len(tokenizer.encode(r["text"])) for r in rows)
            reading, tokenizing, parsing, size = floor(path)
            least = reading + tokenizing + parsing
            name = Dataset(out).repositories()[0]["name"]
            print(
                f"| {name} | {size / 1e6:.1f} | {len(rows):,} | {tokens:,} | {wall:.1f} | {cpu:.1f} | {peak / 1e6:.0f} "
                f"| {reading:.2f} + {tokenizing:.2f} + {parsing:.2f} = {least:.2f} | {cpu / least:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
