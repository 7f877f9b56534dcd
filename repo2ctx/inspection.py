"""Looks at a repository or at a finished build: its graph, its order, and one example as a person would read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repo2ctx.analysis import Analysis, analyse
from repo2ctx.choosing import CHOSEN
from repo2ctx.config import BuildConfig, OrderConfig, TokensConfig, length_name, parse_length
from repo2ctx.crawl import CrawlOptions, find_repository, open_snapshot
from repo2ctx.dataset import Dataset, is_output
from repo2ctx.errors import OutputError, UsageError
from repo2ctx.graph import Graph
from repo2ctx.packing import FULL, HEAD, OUTLINE, PATH
from repo2ctx.progress import printable
from repo2ctx.records import KEPT, Edge, OrderMethod, Placed, RepoSpec
from repo2ctx.safegit import isolate_environment
from repo2ctx.sandbox import Sandbox
from repo2ctx.schema import SPLITS, usable_targets
from repo2ctx.tokens import load_tokenizer

_SHOWN_FILES = 12  # at the head and the tail of a list
_SHOWN_CHARACTERS = 1500
_SHOWN_NAMES = 5
_HELD = {FULL: "in full", OUTLINE: "as outlines", HEAD: "by its beginning", PATH: "by their paths in the tree"}
_MARK = {FULL: "", OUTLINE: "outline", HEAD: "beginning"}


@dataclass(frozen=True, slots=True)
class Explained:
    """A file's place and rank, with the reason in words."""

    position: int
    path: str
    rank: float
    why: str


def graph_of(path: Path, identity: str | None, unresolved: bool = False) -> Graph:
    """The edges of a repository's HEAD, vendored and generated files included, or of a repository in a build.

    unresolved: these are wanted, which a build does not keep.
    """
    if not is_output(path):
        return analysed(path, everything=True).graph
    if unresolved:
        raise UsageError(f"{path}: a build keeps no unresolved references; give the path of the repository")
    dataset = Dataset(path)
    repository = find(dataset, identity)
    return Graph(tuple(_edges(dataset, repository["id"])), (), {})


def order_of(path: Path, identity: str | None, method: OrderMethod = "dependency") -> list[Explained]:
    """The kept files in order. method: another order than ours, of a repository; a build has its own."""
    if not is_output(path):
        analysis = analysed(path, everything=False, method=method)
        roles = {f.path: f.role for f in analysis.files}
        return _explain([(p, roles[p.path]) for p in analysis.ordered.placed], analysis.graph.edges)
    if method != "dependency":
        raise UsageError(f"{path}: a build has the order that it was made with; give the path of the repository")
    dataset = Dataset(path)
    repository = find(dataset, identity)
    files = sorted(_kept(dataset, repository["id"]), key=lambda f: f["position"])
    placed = [
        (Placed(f["path"], f["position"], f["component"], f["rank"], f["entry_point"] or "", f["exports"]), f["role"])
        for f in files
    ]
    return _explain(placed, tuple(_edges(dataset, repository["id"])))


def analysed(path: Path, everything: bool, method: OrderMethod = "dependency") -> Analysis:
    """What one reading of a repository's HEAD finds, or of a folder in it. everything: vendored and generated files too."""
    isolate_environment()
    root, folder = find_repository(path)
    config = BuildConfig(order=OrderConfig(method=method))
    spec = RepoSpec(source=str(path), url=str(root), name=root.name)
    with (
        open_snapshot(spec, CrawlOptions(cache=None)) as snapshot,
        Sandbox(config.parse.timeout_s, config.parse.memory_bytes) as sandbox,
    ):
        found = analyse(snapshot, config, sandbox, folder=folder, everything=everything)
    if folder and not found.files:
        raise UsageError(f"{path}: the repository's HEAD has no file there; commit it first, or give another folder")
    return found


def _explain(files: list[tuple[Placed, str]], edges: tuple[Edge, ...]) -> list[Explained]:
    needed = Counter(target for _, target in {(e.source, e.target) for e in edges})
    needing = Counter(source for source, _ in {(e.source, e.target) for e in edges})
    sizes = Counter(file.component for file, _ in files)
    found = []
    for position, (file, role) in enumerate(files):
        why = [role]
        if file.entry_point:
            why.append(f"entry point by {file.entry_point}")
        if file.exports:
            why.append(f"exports {file.exports}")
        if needed[file.path]:
            why.append(f"needed by {needed[file.path]}")
        if needing[file.path]:
            why.append(f"needs {needing[file.path]}")
        if sizes[file.component] > 1:
            why.append(f"in a cycle of {sizes[file.component]}")
        found.append(Explained(position, file.path, file.rank, ", ".join(why)))
    return found


def _edges(dataset: Dataset, repository: str) -> Iterator[Edge]:
    for batch in dataset.of_repository("edges", repository):
        for row in batch.to_pylist():
            yield Edge(row["from"], row["to"], row["kind"], row["strength"])


def _kept(dataset: Dataset, repository: str) -> Iterator[dict[str, Any]]:
    columns = ("path", "fate", "position", "component", "rank", "entry_point", "exports", "role", "size")
    for batch in dataset.of_repository("files", repository, columns):
        yield from (row for row in batch.to_pylist() if row["fate"] == KEPT)


def find(dataset: Dataset, identity: str | None) -> dict[str, Any]:
    """The repository whose id or name is, or uniquely holds, `identity`; the first if None."""
    rows = dataset.repositories()
    if not rows:
        raise OutputError(f"{dataset.out}: holds no repository")
    if identity is None:
        return next((r for r in rows if usable_targets(r)), rows[0])
    steps = (
        [r for r in rows if identity in (r["id"], r["name"])],
        [r for r in rows if identity in r["name"].split("/") or r["name"].endswith("/" + identity)],
        [r for r in rows if identity in r["name"]],
        [r for r in rows if r["commit"].startswith(identity)],
    )
    close = next((found for found in steps if found), [])
    if len(close) != 1:
        found = close or rows
        names = ", ".join(r["id"] for r in found[:_SHOWN_NAMES])
        more = f" and {len(found) - _SHOWN_NAMES:,} more" if len(found) > _SHOWN_NAMES else ""
        which = f"{len(close)} repositories of {dataset.out}" if close else f"no repository of {dataset.out}, which has"
        raise UsageError(f"{identity!r} names {which}{':' if close else ''} {names}{more}; give more of the name")
    return close[0]


def example(out: Path, identity: str | None, length: str | None, style: str | None, full: bool) -> str:
    """One repository's longest document (of a style), its target, and what was left out, as text."""
    dataset = Dataset(out)
    repository = find(dataset, identity)
    lines = [printable(line) for line in _describe(repository)]
    names = sorted({t.split("/")[1] for t in dataset.tables() if t.startswith("packed/")}, key=parse_length)
    if not names:
        return "\n".join([*lines, "", "no packed rows"])
    name = names[-1] if length is None else length_name(parse_length(length))
    if name not in names:
        raise UsageError(f"{out} has no rows of length {name}; it has {', '.join(names)}")
    place = _locate(dataset, name, repository["id"], style)
    if place is None:
        of = f" with a {style}" if style else ""
        return "\n".join([*lines, "", f"no row of length {name}{of}: no such target, or it leaked, or nothing fitted"])
    table, index, number = place
    row = dataset.packed_row(table, index)
    segment = row["segments"][number]
    spans = [s for s in row["spans"] if s["segment"] == number]
    lines += ["", f"{table}, row {index}, segment {number + 1} of {len(row['segments'])}"]
    lines += map(printable, _listing(dataset, repository["id"], segment, spans))
    tokenizer = load_tokenizer(TokensConfig.model_validate(dataset.manifest["config"]["tokens"]))
    context = tokenizer.decode(row["input_ids"][segment["start"] : segment["target_start"]])
    target = tokenizer.decode(row["input_ids"][segment["target_start"] : segment["target_end"]])
    if not full and len(context) > 2 * _SHOWN_CHARACTERS:
        middle = f"\n\n[… {len(context) - 2 * _SHOWN_CHARACTERS:,} characters …]\n\n"
        context = context[:_SHOWN_CHARACTERS] + middle + context[-_SHOWN_CHARACTERS:]
    return "\n".join([*lines, "", "--- context ---", _safe(context), "--- target ---", _safe(target)])


def _describe(repository: dict[str, Any]) -> Iterator[str]:
    total = sum(share["bytes"] for share in repository["languages"]) or 1
    shares = ", ".join(f"{s['language'] or 'other'} {s['bytes'] / total:.0%}" for s in repository["languages"][:5])
    order = repository["order"]
    yield f"repository  {repository['id']}"
    yield f"split       {repository['split']}"
    yield f"licence     {repository['license']}"
    yield f"languages   {shares}"
    yield f"files       {repository['kept_files']:,} kept of {repository['files']:,}, {repository['kept_bytes']:,} bytes"
    yield (
        f"order       {order['edges']:,} edges ({order['hard_edges']:,} hard), {order['satisfied']:.1%} with the needed file "
        f"first; {order['cycles']:,} cycles, the largest of {order['largest_cycle']:,}; {order['unresolved']:,} unresolved; "
        f"{order['fallbacks']:,} parser fallbacks"
    )
    if repository["refused"]:
        yield f"not taken   {repository['refused']}"
    for target in repository["targets"]:
        yield (
            f"target      {target['style']}, from {target['source']}; {target['name_share']:.0%} of it is the name; in the files "
            f"{target['leak_share']:.1%} of its 8-grams, longest run {target['leak_run']} words (before the guard "
            f"{target['leak_share_before']:.1%}, {target['leak_run_before']}; {target['masked_lines']:,} lines masked)"
            + (f"; no row, it repeats {target['duplicate_of']}" if target["duplicate_of"] else "")
        )
    if not usable_targets(repository):
        yield "target      none, so no row"
    for considered in repository["considered"]:
        if considered["fate"] != CHOSEN:
            yield f"            {considered['style']} from {considered['source']}: {considered['fate']}"


def _locate(dataset: Dataset, length: str, repository: str, style: str | None) -> tuple[str, int, int] | None:
    """(table, row, segment) of a repository's longest document, of a style if one is given."""
    found, longest = None, 0
    for split in SPLITS:
        table = f"packed/{length}/{split}"
        row = 0
        for batch in dataset.batches(table, ("segments",)):
            for segments in batch.column(0).to_pylist():
                for number, segment in enumerate(segments):
                    if segment["repository"] != repository or style not in (None, segment["style"]):
                        continue
                    if (tokens := segment["target_end"] - segment["start"]) > longest:
                        found, longest = (table, row, number), tokens
                row += 1
    return found


def _listing(dataset: Dataset, repository: str, segment: dict[str, int], spans: list[dict[str, Any]]) -> Iterator[str]:
    """The files of the row in order, with how much of each it holds, and the highest-ranked that had no room."""
    taken = {s["path"] for s in spans}
    held = [s for s in spans if s["fidelity"] != PATH]
    kept = sorted(_kept(dataset, repository), key=lambda f: (-f["rank"], f["path"]))
    left_out = [f for f in kept if f["path"] not in taken]
    target = segment["target_end"] - segment["target_start"]
    counts = Counter(s["fidelity"] for s in spans)
    parts = [f"{counts[fidelity]:,} {said}" for fidelity, said in _HELD.items() if counts[fidelity]]
    yield f"{segment['target_end'] - segment['start']:,} tokens, {target:,} of them the target; files: {', '.join(parts)}"
    entries = [f"  {s['end'] - s['start']:>9,}  {_MARK[s['fidelity']]:<9}  {s['path']}" for s in held]
    if len(entries) > 2 * _SHOWN_FILES:
        middle = [f"             … {len(entries) - 2 * _SHOWN_FILES:,} more …"]
        entries = entries[:_SHOWN_FILES] + middle + entries[-_SHOWN_FILES:]
    yield from entries
    if left_out:
        yield f"left out {len(left_out):,} files, of which the row says nothing, highest rank first:"
        yield from (f"  {f['size']:>9,} bytes  {f['path']}" for f in left_out[:_SHOWN_FILES])


def _safe(text: str) -> str:
    """File content with its line structure, unable to steer a terminal."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(printable(part) for part in line.split("\t")) for line in lines)
