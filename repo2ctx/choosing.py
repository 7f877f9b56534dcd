"""One repository's targets: what each source has, judged, looked up in the code, and the first good one of each style.

Sources are read in the sandbox; the code is streamed from where the caller keeps it. A teacher is asked only for styles that
no source before it has a good text of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol

from repo2ctx.config import TargetsConfig
from repo2ctx.docstrings import main_modules
from repo2ctx.filters import NamesFound
from repo2ctx.licenses import UNKNOWN
from repo2ctx.prose import is_readme
from repo2ctx.records import Considered, RepoSpec, Style, Target
from repo2ctx.sandbox import Sandbox, Stopped
from repo2ctx.targets import Candidate, candidates, judged

CHOSEN, SPARE = "chosen", "spare"
TextStream = Callable[[], Iterable[tuple[str, str]]]
"""Gives (path, text) of every kept file, anew at each call."""


@dataclass(slots=True)
class Choice:
    """targets: at most one a style, in the order of `TargetsConfig.styles`. considered: all that the sources had.
    documented: files whose module documentation became a target."""

    targets: list[Target] = field(default_factory=list)
    considered: list[Considered] = field(default_factory=list)
    documented: set[str] = field(default_factory=set)


class Writer(Protocol):
    """Writes a target of its own. source: how rows name it."""

    source: str

    def write(self, style: Style, choice: Choice) -> tuple[str, str]:
        """(text, "") or ("", why there is none). choice: what earlier sources gave, the same for every style."""


def choose(
    spec: RepoSpec,
    small: Mapping[str, str],
    kept: Collection[str],
    texts: TextStream,
    own_license: str,
    config: TargetsConfig,
    sandbox: Sandbox,
    writer: Writer | None = None,
) -> Choice:
    """The targets of a repository.

    small: path -> text of manifests and READMEs. kept: the paths of the files in the context, which `texts` streams.
    own_license: of the repository, and so of its own words. writer: stands for the source `teacher`; without one it has none.
    """
    root = {path: text for path, text in small.items() if "/" not in path or is_readme(path)}
    wanted = main_modules(kept, spec.name.rpartition("/")[2]) if {"metadata", "docstring"} & {*config.sources} else []
    found = {path: text for path, text in texts() if path in set(wanted)} if wanted else {}
    modules = {path: found[path] for path in wanted if path in found}
    choice = Choice()
    taken: dict[Style, Candidate] = {}
    for written, sources in groupby(config.sources, key=lambda source: source == "teacher"):
        offers: list[Candidate] = []
        for source in () if written else sources:
            try:
                offers += sandbox.call(candidates, source, spec, root, modules, config)
            except Stopped as stopped:
                said = f"stopped: {stopped.problem}"
                choice.considered += [Considered(style, source, said) for style in config.styles]
        if written and writer is not None:
            missing = [style for style in config.styles if style not in taken]
            offers = [_written(writer, style, choice, spec, config, sandbox) for style in missing]
        names = _look_up((name for c in offers if not c.rejected for name in c.names), texts)
        for style in config.styles:
            for candidate in (c for c in offers if c.style == style):
                why = candidate.rejected or names.rejection(candidate.names, config)
                fate = why or (SPARE if style in taken else CHOSEN)
                choice.considered.append(Considered(style, candidate.source, fate))
                if fate == CHOSEN:
                    taken[style] = candidate
        chosen = [taken[style] for style in config.styles if style in taken]
        choice.targets = [Target(c.text, c.source, c.style, own_license if c.path else UNKNOWN) for c in chosen]
        choice.documented = {c.path for c in chosen if c.path in modules}
    return choice


def _written(
    writer: Writer, style: Style, choice: Choice, spec: RepoSpec, config: TargetsConfig, sandbox: Sandbox
) -> Candidate:
    text, reason = writer.write(style, choice)
    candidate = Candidate(style, writer.source, "", text, rejected=reason)
    try:
        return candidate if reason else sandbox.call(judged, candidate, spec, config)
    except Stopped as stopped:
        return replace(candidate, rejected=f"stopped: {stopped.problem}")


def _look_up(names: Iterable[str], texts: TextStream) -> NamesFound:
    found = NamesFound(names)
    if not found.done:
        for _, text in texts():
            found.see(text)
            if found.done:
                break
    return found
