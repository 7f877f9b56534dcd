"""Snapshot -> what each file is, the graph among the kept ones, and their order: the way every command takes.

Blobs stream through once: decoded, judged, parsed and handed to `sink`; only the small files that later stages
read (manifests, READMEs, licences, import configuration) stay in memory.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from repo2ctx.baselines import rearranged
from repo2ctx.config import BuildConfig, OrderConfig
from repo2ctx.graph import Graph, Resolved, build_graph, resolve
from repo2ctx.languages import RepoTree, is_config_file, join, languages
from repo2ctx.metadata import is_manifest
from repo2ctx.order import Ordered, order
from repo2ctx.parsing import scan, scan_and_outline
from repo2ctx.records import KEPT, SourceFile, Syntax, TreeEntry
from repo2ctx.sandbox import Sandbox, Stopped
from repo2ctx.selection import Selected, fate_by_entry, is_code, is_vendored, read_text, role
from repo2ctx.snapshot import Snapshot

Sink = Callable[[SourceFile, str, str | None], None]
"""Takes a kept file, its text and its outline."""

_MAX_REMEMBERED_BYTES = 1 << 20
_MOST_REMEMBERED = 256 << 20  # characters of all such files together; people write a hundredth
_NO_FILES = ("symlink", "submodule", "unusable-name", "name-collision")
_MAX_LINK_BYTES = 4096
_MOST_LINKS = 8  # links to links


@dataclass(frozen=True, slots=True)
class Analysis:
    """What one reading of a repository found.

    files: every entry of the tree, in git's order. texts: the small files remembered, path -> text. graph and
    ordered: over the kept files, or over all that could be parsed if `analyse` was asked for everything. links:
    symbolic links to files of the repository. problems: path -> why its parser fell back.
    """

    files: tuple[SourceFile, ...]
    texts: dict[str, str]
    graph: Graph
    ordered: Ordered
    links: dict[str, str]
    problems: dict[str, str]


def analyse(
    snapshot: Snapshot,
    config: BuildConfig,
    sandbox: Sandbox,
    sink: Sink | None = None,
    *,
    folder: str = "",
    everything: bool = False,
    outlined: bool = False,
) -> Analysis:
    """Read, select, parse, resolve and order the files of a snapshot.

    sink: called with each kept file, its text and its outline, in git's order. folder: only what lies in it, paths still
    from the repository's root. everything: vendored and generated files are parsed and ordered too. outlined: make outlines
    for the sink, from the same parse; without it there are none.
    """
    sized = [(e, size) for e, size in snapshot.sized if not folder or e.path.startswith(folder + "/")]
    judged = _judge(sized, config, everything)
    contents = snapshot.read([e.blob for e, size, fate in judged if fate == KEPT or _is_link(fate, size)])
    files: list[SourceFile] = []
    pointing: dict[str, str] = {}
    limit = config.selection.max_data_bytes
    texts: dict[str, str] = {}
    remembered = 0
    parsed: dict[str, tuple[str, Syntax]] = {}
    for entry, size, fate in judged:
        selected = Selected(fate)
        if _is_link(fate, size):
            pointing[entry.path] = (next(contents) or b"").decode("utf-8", "backslashreplace")
        elif fate == KEPT:
            data = next(contents)
            selected = Selected("missing") if data is None else read_text(entry.path, data, limit)
        file = _source_file(entry, size or 0, selected)
        files.append(file)
        text, outline = selected.text, None
        if text is None:
            continue
        if _remember(entry.path, len(text)) and remembered + len(text) <= _MOST_REMEMBERED:
            texts[entry.path] = text
            remembered += len(text)
        if (selected.language in languages() or is_code(selected.language)) and (everything or file.fate == KEPT):
            wanted = outlined and file.fate == KEPT
            syntax, outline = _scan(sandbox, selected.language, entry.path, text, wanted)
            parsed[entry.path] = (selected.language, syntax)
        if sink is not None and file.fate == KEPT:
            sink(file, text, outline)
    links = _links(files, pointing)
    # Each language's rules run in another process, which gets the names and no more of the texts than they can read.
    configs = {path: text for path, text in texts.items() if is_config_file(posixpath.basename(path))}
    tree = RepoTree([f.path for f in files if f.fate not in _NO_FILES], configs, links)

    def resolver(language: str, tree: RepoTree, syntax: Mapping[str, Syntax]) -> Resolved | str:
        try:
            return sandbox.call(resolve, language, tree, syntax, timeout_s=config.parse.resolve_timeout_s)
        except Stopped as stopped:
            return stopped.problem

    return _ordered(files, texts, build_graph(tree, parsed, resolver), parsed, links, config.order)


def _scan(sandbox: Sandbox, language: str, path: str, text: str, outlined: bool) -> tuple[Syntax, str | None]:
    try:
        if outlined:
            return sandbox.call(scan_and_outline, language, path, text.encode())
        return sandbox.call(scan, language, path, text.encode()), None
    except Stopped as stopped:
        return Syntax(problem=stopped.problem), None


def _is_link(fate: str, size: int | None) -> bool:
    return fate == "symlink" and size is not None and size <= _MAX_LINK_BYTES


def _links(files: list[SourceFile], pointing: dict[str, str]) -> dict[str, str]:
    """Symbolic links that name a file of the repository, directly or through others: path -> that file's path.

    Only names are looked at; a link is never followed on disk.
    """
    regular = {f.path for f in files if f.fate not in _NO_FILES}
    links = {}
    for path in pointing:
        at: str | None = path
        for _ in range(_MOST_LINKS):
            at = join(posixpath.dirname(at), pointing[at]) if at in pointing else at
        if at in regular:
            links[path] = at
    return links


def _judge(
    sized: list[tuple[TreeEntry, int | None]], config: BuildConfig, everything: bool
) -> list[tuple[TreeEntry, int | None, str]]:
    """Each entry with its fate before it is read. A name that stands twice is kept once."""
    seen: set[str] = set()
    judged = []
    for entry, size in sorted(sized, key=lambda item: item[0].raw_path != item[0].path.encode("utf-8", "replace")):
        fate = fate_by_entry(entry, size, config.selection.max_file_bytes)
        if entry.path in seen:
            fate = "name-collision"
        elif everything and fate == "vendored":
            fate = KEPT
        seen.add(entry.path)
        judged.append((entry, size, fate))
    return sorted(judged, key=lambda item: item[0].raw_path)


def _source_file(entry: TreeEntry, size: int, selected: Selected) -> SourceFile:
    fate = selected.fate
    if fate == KEPT and is_vendored(entry.path):  # read only because everything was asked for
        fate = "vendored"
    return SourceFile(
        path=entry.path,
        blob=entry.blob,
        size=size,
        fate=fate,
        language=selected.language,
        encoding=selected.encoding,
        role="generated" if fate == "generated" else role(entry.path, selected.language),
    )


def _remember(path: str, length: int) -> bool:
    name = posixpath.basename(path)
    small = length <= _MAX_REMEMBERED_BYTES
    return small and (is_config_file(name) or name.lower().startswith("readme") or is_manifest(path))


def _ordered(
    files: list[SourceFile],
    texts: dict[str, str],
    graph: Graph,
    parsed: dict[str, tuple[str, Syntax]],
    links: dict[str, str],
    config: OrderConfig,
) -> Analysis:
    roles = {f.path: f.role for f in files if f.fate == KEPT or f.path in parsed}
    graph = graph.among(roles)
    problems = {path: syntax.problem for path, (_, syntax) in parsed.items() if syntax.problem} | dict(graph.problems)
    found = order(roles, graph.edges, graph.entry_points, graph.exports)
    ordered = rearranged(found, graph.edges, config.method, config.seed)
    edges, unresolved = len(graph.edges), len(graph.unresolved)
    resolved = round(edges / (edges + unresolved), 6) if unresolved else 1.0
    quality = replace(ordered.quality, unresolved=unresolved, resolved=resolved, fallbacks=len(problems))
    return Analysis(tuple(files), texts, graph, replace(ordered, quality=quality), links, problems)
