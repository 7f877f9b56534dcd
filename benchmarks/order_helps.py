"""Does the order help? Next-token loss of files, given the files before them, under our order and those it is compared with.

    python benchmarks/order_helps.py contexts CHECKOUT [CHECKOUT …] --lengths 4k,8k --out contexts.npz
    python benchmarks/order_helps.py score contexts.npz [--model smollm2] [--device auto] [--dtype bfloat16]

contexts: of each repository's code files, windows of the length are drawn that hold whole files, each chosen with files that it
needs or that need it, and the same files are laid out under every order. So the orders differ in nothing but order, and each
window has the same tokens under all of them. score: the mean loss over a window's file tokens (of all files, and of those alone
that need another file of the window), paired by window: difference to our order, with a bootstrap interval over repositories.

The two halves may run on different machines; the file between them holds token ids only.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from repo2ctx.records import OrderMethod

ORDERS: tuple[OrderMethod, ...] = get_args(OrderMethod)
_PER_REPOSITORY = 24  # windows of one length
_RESAMPLES = 10_000


def contexts(checkouts: Sequence[Path], lengths: Sequence[int], tokenizer_name: str, out: Path) -> None:
    """Draw the windows and write their tokens."""
    from repo2ctx.config import TokensConfig
    from repo2ctx.tokens import load_tokenizer

    tokenizer = load_tokenizer(TokensConfig(tokenizer=tokenizer_name))
    arrays: dict[str, Any] = {}
    windows: list[dict[str, Any]] = []
    for checkout in checkouts:
        texts, ordered, edges = _code(checkout)
        needs: dict[str, set[str]] = {p: set() for p in texts}
        for edge in edges:
            needs[edge.source].add(edge.target)
        ids = {
            p: [*tokenizer.encode(f"# {p}\n"), *tokenizer.encode(t), *tokenizer.encode("\n")] for p, t in texts.items()
        }
        for length in lengths:
            for chosen in _windows(ids, needs, length, random.Random(f"{checkout.name} {length}")):
                number = str(len(windows))
                arrays[f"{number}/ids"] = np.concatenate([np.asarray(ids[p], np.int32) for p in chosen])
                arrays[f"{number}/lengths"] = np.asarray([len(ids[p]) for p in chosen])
                arrays[f"{number}/needing"] = np.asarray([bool(needs[p] & set(chosen)) for p in chosen])
                for method, paths in _orders(ordered, edges, chosen):
                    arrays[f"{number}/{method}"] = np.asarray([chosen.index(p) for p in paths])
                windows.append({"repository": checkout.parent.name, "length": length, "files": len(chosen)})
    np.savez_compressed(out, meta=np.frombuffer(json.dumps(windows).encode(), np.uint8), **arrays)
    for length in lengths:
        some = [w for w in windows if w["length"] == length]
        print(f"{length}: {len(some)} windows of {len({w['repository'] for w in some})} repositories", file=sys.stderr)


def _code(checkout: Path) -> tuple[dict[str, str], Any, list[Any]]:
    """(path -> text of the code files, our order, the edges among them)."""
    from repo2ctx.analysis import analyse
    from repo2ctx.config import BuildConfig
    from repo2ctx.crawl import CrawlOptions, open_snapshot
    from repo2ctx.records import RepoSpec
    from repo2ctx.sandbox import Sandbox

    config, texts = BuildConfig(), {}

    def keep(file: Any, text: str, outline: str | None) -> None:
        if file.role == "code":
            texts[file.path] = text

    with (
        open_snapshot(RepoSpec(str(checkout), str(checkout), checkout.parent.name), CrawlOptions(None)) as snapshot,
        Sandbox(config.parse.timeout_s, config.parse.memory_bytes) as sandbox,
    ):
        found = analyse(snapshot, config, sandbox, keep)
    return texts, found.ordered, [e for e in found.graph.edges if e.source in texts and e.target in texts]


def _windows(
    ids: dict[str, list[int]], needs: dict[str, set[str]], length: int, rng: random.Random
) -> Iterator[list[str]]:
    """Sets of whole files that fill most of a length, grown from a file along edges."""
    tied: dict[str, set[str]] = {p: set(n) for p, n in needs.items()}
    for path, targets in needs.items():
        for target in targets:
            tied[target].add(path)
    seeds = sorted(p for p in ids if tied[p] and len(ids[p]) < length / 2)
    rng.shuffle(seeds)
    seen: set[frozenset[str]] = set()
    for seed in seeds:
        chosen, used, border = [seed], len(ids[seed]), sorted(tied[seed])
        while border:
            path = border.pop(rng.randrange(len(border)))
            if path in chosen or used + len(ids[path]) > length:
                continue
            chosen.append(path)
            used += len(ids[path])
            border = sorted({*border, *tied[path]} - set(chosen))
        key = frozenset(chosen)
        if len(chosen) >= 3 and used >= 0.7 * length and key not in seen:
            seen.add(key)
            yield sorted(chosen)
            if len(seen) == _PER_REPOSITORY:
                return


def _orders(ordered: Any, edges: Sequence[Any], chosen: Sequence[str]) -> Iterator[tuple[OrderMethod, list[str]]]:
    """The chosen files under each order of the whole repository."""
    from repo2ctx.baselines import rearranged

    wanted = set(chosen)
    for method in ORDERS:
        # Of the whole repository, as a build would; edges to files outside the window count there as well.
        placed = rearranged(ordered, edges, method, " ".join(chosen)).placed
        yield method, [p.path for p in placed if p.path in wanted]


def score(source: Path, model_name: str, device: str, dtype: str) -> None:
    """Mean losses by window and order, then the differences."""
    import torch
    import torch.nn.functional as F

    from repo2ctx.models import load_base, pick_device

    device = pick_device(device)
    model = load_base(model_name, dtype=dtype, device=device).eval()
    data = np.load(source)
    windows = json.loads(bytes(data["meta"]))
    losses = np.zeros((len(windows), len(ORDERS), 2))
    start = time.monotonic()
    for number in range(len(windows)):
        files = np.split(data[f"{number}/ids"], np.cumsum(data[f"{number}/lengths"])[:-1])
        needing = data[f"{number}/needing"]
        for m, method in enumerate(ORDERS):
            order = data[f"{number}/{method}"]
            ids = torch.from_numpy(np.concatenate([files[i] for i in order]).astype(np.int64)).to(device)
            with torch.inference_mode():
                logits = model(input_ids=ids[None], use_cache=False).logits[0, :-1].float()
                loss = F.cross_entropy(logits, ids[1:], reduction="none").cpu().numpy()
            # The very first token has no loss.
            parts = np.split(loss, np.cumsum([len(files[i]) for i in order])[:-1] - 1)
            losses[number, m, 0] = loss.mean()
            some = [part for part, i in zip(parts, order, strict=True) if needing[i]]
            losses[number, m, 1] = np.concatenate(some).mean() if some else np.nan
        if number % 20 == 19:
            print(
                f"{number + 1} of {len(windows)} windows, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True
            )
    print(f"{model_name}, {dtype} on {device}; {len(windows)} windows; nats per token, mean, and")
    print("95% bootstrap interval over repositories\n")
    print(
        "| length | files counted | windows | ours | order | order - ours | 95% interval |\n|---|---|---|---|---|---|---|"
    )
    names = np.asarray([w["repository"] for w in windows])
    for length in sorted({w["length"] for w in windows}):
        mine = np.asarray([w["length"] == length for w in windows])
        for which, title in enumerate(("all", "that need another")):
            table = losses[mine, :, which]
            kept = ~np.isnan(table).any(1)
            table = table[kept]
            for m, method in enumerate(ORDERS[1:], start=1):
                difference = table[:, m] - table[:, 0]
                low, high = _interval(difference, names[mine][kept])
                print(
                    f"| {length} | {title} | {len(table)} | {table[:, 0].mean():.4f} | {method} | {difference.mean():+.4f} "
                    f"| {low:+.4f} to {high:+.4f} |"
                )
    print("\n| repository | " + " | ".join(ORDERS) + " |\n|---|" + "---|" * len(ORDERS))
    for name in sorted(set(names)):
        mine = names == name
        print(f"| {name} | " + " | ".join(f"{v:.4f}" for v in losses[mine, :, 0].mean(0)) + " |")


def _interval(values: Any, groups: Any) -> tuple[float, float]:
    """Windows of one repository are alike, so whole repositories are drawn again, with all their windows."""
    rng = np.random.default_rng(0)
    _, group = np.unique(groups, return_inverse=True)
    sums, counts = np.bincount(group, values), np.bincount(group)
    drawn = rng.integers(0, len(counts), (_RESAMPLES, len(counts)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    first = steps.add_parser("contexts")
    first.add_argument("checkouts", nargs="+", type=Path)
    first.add_argument("--lengths", default="4k,8k")
    first.add_argument("--tokenizer", default="smollm2")
    first.add_argument("--out", type=Path, required=True)
    second = steps.add_parser("score")
    second.add_argument("contexts", type=Path)
    second.add_argument("--model", default="smollm2")
    second.add_argument("--device", default="auto")
    second.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    if options.step == "contexts":
        from repo2ctx.config import parse_length

        lengths = [parse_length(n) for n in options.lengths.split(",")]
        contexts(options.checkouts, lengths, options.tokenizer, options.out)
    else:
        score(options.contexts, options.model, options.device, options.dtype)


if __name__ == "__main__":
    main()
