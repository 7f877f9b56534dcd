"""How right our edges and our order are, next to a reference, and what they cost next to bare parsing.

    python benchmarks/graph_quality.py ORACLE CHECKOUT [ORACLE CHECKOUT …] [--missed 20] [--extra 20]
    python benchmarks/graph_quality.py --cost CHECKOUT [CHECKOUT …]

ORACLE: lines `from<TAB>to`, repo-relative, "from needs to", named REPOSITORY.….KIND.tsv; what it can tell is told by the kinds
below. CHECKOUT: a git repository or git directory at the commit that the oracle was made from.

recall      share of the oracle's edges that are ours, over all our kinds
precision   share of our edges of the oracle's kinds, from files that the oracle has as a source, that are the oracle's
order       share of the oracle's edges whose needed file comes first, outside and inside the cycles of the oracle's and our
            hard edges together, for our order and those that it is compared with (random: mean of five seeds)

--cost: CPU seconds of parsing the files that have a grammar, and of reading their syntax and resolving it besides, on one
core, the least of three runs of each, for a quarter, half and all of the files; and the peak memory of the whole.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import rustworkx as rx
import tree_sitter
from machine import machine

from repo2ctx.analysis import Analysis
from repo2ctx.baselines import rearranged
from repo2ctx.config import BuildConfig
from repo2ctx.crawl import CrawlOptions, open_snapshot
from repo2ctx.graph import build_graph
from repo2ctx.inspection import analysed
from repo2ctx.languages import RepoTree, is_config_file, languages
from repo2ctx.records import OrderMethod, RepoSpec
from repo2ctx.selection import read_text
from repo2ctx.snapshot import SUBMODULE

Pair = tuple[str, str]
_KINDS = {
    "python": ("import",),
    "js": ("import", "require"),
    "c": ("include",),
    "go": ("use",),
    "java": ("use", "import"),
}
_KINDS |= {"rust": ("mod",), "php": ("use",), "ruby": ("require",)}
_RUNS = 3
_SEEDS = ("1", "2", "3", "4", "5")
ORDERS: tuple[OrderMethod, ...] = get_args(OrderMethod)


@dataclass(frozen=True)
class Compared:
    """Our edges and the oracle's."""

    oracle: frozenset[Pair]
    ours: frozenset[Pair]  # all kinds
    judged: frozenset[Pair]  # of the oracle's kinds, from its sources

    @property
    def missed(self) -> list[Pair]:
        return sorted(self.oracle - self.ours)

    @property
    def extra(self) -> list[Pair]:
        return sorted(self.judged - self.oracle)

    @property
    def recall(self) -> float:
        return 1 - len(self.missed) / len(self.oracle)

    @property
    def precision(self) -> float:
        return 1 - len(self.extra) / max(1, len(self.judged))


def compare(oracle: Path, analysis: Analysis) -> Compared:
    kinds = next(_KINDS[part] for part in oracle.name.split(".") if part in _KINDS)
    there = {f.path for f in analysis.files}
    pairs = frozenset(
        (a, b)
        for line in oracle.read_text("utf-8").splitlines()
        for a, _, b in [line.partition("\t")]
        if a in there and b in there
    )
    sources = {a for a, _ in pairs}
    edges = analysis.graph.edges
    judged = frozenset((e.source, e.target) for e in edges if e.kind in kinds and e.source in sources)
    return Compared(pairs, frozenset((e.source, e.target) for e in edges), judged)


def cyclic(analysis: Analysis, oracle: Iterable[Pair]) -> dict[str, int]:
    """File -> its component under the oracle's and our hard edges together."""
    pairs = {(e.source, e.target) for e in analysis.graph.edges if e.strength == "hard"} | set(oracle)
    names = sorted({name for pair in pairs for name in pair})
    number = {name: i for i, name in enumerate(names)}
    graph = rx.PyDiGraph()
    graph.add_nodes_from(range(len(names)))
    graph.extend_from_edge_list([(number[a], number[b]) for a, b in sorted(pairs)])
    components = sorted(sorted(c) for c in rx.strongly_connected_components(graph))
    return {names[i]: k for k, members in enumerate(components) for i in members}


def satisfied(place: Mapping[str, int], pairs: Iterable[Pair]) -> float | None:
    known = [(a, b) for a, b in pairs if a in place and b in place]
    return sum(place[b] < place[a] for a, b in known) / len(known) if known else None


def order_shares(analysis: Analysis, oracle: frozenset[Pair]) -> dict[str, tuple[float | None, float | None]]:
    """Order -> share of the oracle's edges satisfied outside and inside cycles."""
    component = cyclic(analysis, oracle)
    inside = [p for p in sorted(oracle) if component[p[0]] == component[p[1]]]
    outside = [p for p in sorted(oracle) if component[p[0]] != component[p[1]]]
    shares: dict[str, tuple[float | None, float | None]] = {}
    for method in ORDERS:
        seeds = _SEEDS if method == "random" else ("",)
        places = [
            {p.path: p.position for p in rearranged(analysis.ordered, analysis.graph.edges, method, seed).placed}
            for seed in seeds
        ]
        first, second = (_mean([satisfied(place, part) for place in places]) for part in (outside, inside))
        shares[method] = (first, second)
    return shares


def _mean(values: list[float | None]) -> float | None:
    there = [v for v in values if v is not None]
    return sum(there) / len(there) if there else None


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"


def quality(pairs: list[tuple[Path, Path]], missed: int, extra: int, restarts: int) -> None:
    rows, orders = [], []
    for oracle, checkout in pairs:
        analysis = analysed(checkout, everything=True)
        found = compare(oracle, analysis)
        shares = order_shares(analysis, found.oracle)
        name = oracle.name.removesuffix(".tsv")
        component = cyclic(analysis, found.oracle)
        inside = sum(component[a] == component[b] for a, b in found.oracle)
        rows.append(
            f"| {name} | {len(found.oracle):,} | {found.recall:.3f} | {len(found.judged):,} | {found.precision:.3f} |"
        )
        for number, where in enumerate(("outside", "inside")):
            count = inside if number else len(found.oracle) - inside
            cells = " | ".join(_percent(shares[m][number]) for m in ORDERS)
            orders.append(f"| {name} | {where} | {count:,} | {cells} |")
        if restarts and inside:
            most = most_satisfied([(a, b) for a, b in found.oracle if component[a] == component[b]], restarts)
            print(
                f"{name}: no order was found that satisfies more than {most} of {inside} inside: {_percent(most / inside)}"
            )
        for title, wrong, shown in (("missed", found.missed, missed), ("extra", found.extra, extra)):
            for a, b in wrong[:shown]:
                print(f"{name} {title}: {a} -> {b}")
    print("| oracle | edges | recall | ours of its kinds | precision |\n|---|---|---|---|---|", *rows, sep="\n")
    print(f"\n| oracle | cycles | edges | {' | '.join(ORDERS)} |\n|{'---|' * (3 + len(ORDERS))}", *orders, sep="\n")


def most_satisfied(pairs: list[Pair], restarts: int) -> int:
    """The most of the edges that any order was found to satisfy: single moves, from random orders, until none gains."""
    files = sorted({file for pair in pairs for file in pair})
    rng, best = random.Random(0), 0
    for _ in range(restarts):
        order = rng.sample(files, len(files))
        reached, now = -1, 0
        while now > reached:
            reached = now
            for file in files:
                order.remove(file)
                place = {other: i for i, other in enumerate(order)}
                needs = [place[b] for a, b in pairs if a == file]
                users = [place[a] for a, b in pairs if b == file]
                held = [sum(n < i for n in needs) + sum(u >= i for u in users) for i in range(len(files))]
                order.insert(held.index(max(held)), file)
            place = {file: i for i, file in enumerate(order)}
            now = sum(place[b] < place[a] for a, b in pairs)
        best = max(best, reached)
    return best


def cost(checkouts: list[Path]) -> None:
    print(machine())
    print("| repository | part | files | MB | parse s | scan s | resolve s | all / parse | peak MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for checkout in checkouts:
        sources, configs, paths = _sources(checkout)
        for part, step in (("1/4", 4), ("1/2", 2), ("1/1", 1)):
            chosen = dict(list(sources.items())[::step])
            runs = [_timed(chosen, configs, paths) for _ in range(_RUNS)]
            parse, scan, resolve = (min(seconds) for seconds in zip(*runs, strict=True))
            size = sum(len(s) for _, s in chosen.values()) / 1e6
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            print(
                f"| {checkout.parent.name} | {part} | {len(chosen):,} | {size:.1f} | {parse:.2f} | {scan:.2f} | {resolve:.2f} "
                f"| {(parse + scan + resolve) / parse:.2f} | {peak:.0f} |",
                flush=True,
            )


def _sources(checkout: Path) -> tuple[dict[str, tuple[str, bytes]], dict[str, str], list[str]]:
    """(path -> (language, UTF-8 text) of what has a grammar, configuration files, all paths)."""
    limit = BuildConfig().selection.max_file_bytes
    sources, configs = {}, {}
    with open_snapshot(RepoSpec(str(checkout), str(checkout), checkout.name), CrawlOptions(None)) as snapshot:
        entries = [e for e in snapshot.entries() if e.mode != SUBMODULE]
        for entry, data in zip(entries, snapshot.read([e.blob for e in entries]), strict=True):
            selected = read_text(entry.path, data, limit) if data is not None and len(data) <= limit else None
            if selected is None or selected.text is None:
                continue
            if is_config_file(Path(entry.path).name):
                configs[entry.path] = selected.text
            if selected.language in languages():
                sources[entry.path] = (selected.language, selected.text.encode())
    return sources, configs, [e.path for e in entries]


def _timed(
    sources: Mapping[str, tuple[str, bytes]], configs: Mapping[str, str], paths: list[str]
) -> tuple[float, float, float]:
    """CPU seconds of parsing, of reading the trees, of resolving."""
    parsers: dict[str, tree_sitter.Parser] = {}
    parsed = {}
    parse = scan = 0.0
    for path, (language, source) in sources.items():
        module = languages()[language]
        if language not in parsers:
            parsers[language] = tree_sitter.Parser(tree_sitter.Language(module.GRAMMARS[language]()))
            module.scan(parsers[language].parse(b"").root_node, path)  # queries are compiled once
        start = time.process_time()
        tree = parsers[language].parse(source)
        middle = time.process_time()
        parsed[path] = (language, module.scan(tree.root_node, path))
        parse, scan = parse + middle - start, scan + time.process_time() - middle
    start = time.process_time()
    build_graph(RepoTree(paths, configs), parsed)
    return parse, scan, time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", type=Path, metavar="ORACLE CHECKOUT")
    parser.add_argument("--cost", action="store_true", help="measure cost; every place is a checkout")
    parser.add_argument("--missed", type=int, default=0, help="print up to N edges of the oracle that we lack")
    parser.add_argument("--extra", type=int, default=0, help="print up to N of our edges that the oracle lacks")
    parser.add_argument(
        "--best", type=int, default=0, metavar="N", help="search the best order inside cycles from N starts"
    )
    options = parser.parse_args()
    if options.cost:
        cost(options.places)
    elif len(options.places) % 2:
        parser.error("give an oracle and a checkout, or several such pairs")
    else:
        quality(
            list(zip(options.places[::2], options.places[1::2], strict=True)),
            options.missed,
            options.extra,
            options.best,
        )


if __name__ == "__main__":
    main()
