"""One repository's targets: what each source has, judged, looked up in the code, and the first good one of each style.

Sources are read in the sandbox; the code is streamed from where the caller keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from repo2ctx.config import TargetsConfig
from repo2ctx.docstrings import main_modules
from repo2ctx.filters import NamesFound
from repo2ctx.licenses import UNKNOWN
from repo2ctx.prose import is_readme
from repo2ctx.records import Considered, RepoSpec, Target
from repo2ctx.sandbox import Sandbox, Stopped
from repo2ctx.targets import Candidate, candidates

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


def choose(
    spec: RepoSpec,
    small: Mapping[str, str],
    kept: Collection[str],
    texts: TextStream,
    own_license: str,
    config: TargetsConfig,
    sandbox: Sandbox,
) -> Choice:
    """The targets of a repository.

    small: path -> text of manifests and READMEs. kept: the paths of the files in the context, which `texts` streams.
    own_license: of the repository, and so of its own words.
    """
    root = {path: text for path, text in small.items() if "/" not in path or is_readme(path)}
    wanted = main_modules(kept, spec.name.rpartition("/")[2]) if {"metadata", "docstring"} & {*config.sources} else []
    found = {path: text for path, text in texts() if path in set(wanted)} if wanted else {}
    modules = {path: found[path] for path in wanted if path in found}
    choice = Choice()
    offers: list[Candidate] = []
    for source in config.sources:
        try:
            offers += sandbox.call(candidates, source, spec, root, modules, config)
        except Stopped as stopped:
            choice.considered += [Considered(style, source, f"stopped: {stopped.problem}") for style in config.styles]
    names = _look_up((name for c in offers if not c.rejected for name in c.names), texts)
    for style in config.styles:
        taken: Candidate | None = None
        for candidate in offers:
            if candidate.style == style:
                taken = _consider(choice, candidate, taken, names, config)
        if taken is not None:
            of_text = UNKNOWN if taken.source == "list" else own_license
            choice.targets.append(Target(taken.text, taken.source, style, of_text))
            if taken.path in modules:
                choice.documented.add(taken.path)
    return choice


def _look_up(names: Iterable[str], texts: TextStream) -> NamesFound:
    found = NamesFound(names)
    if not found.done:
        for _, text in texts():
            found.see(text)
            if found.done:
                break
    return found


def _consider(
    choice: Choice, candidate: Candidate, taken: Candidate | None, names: NamesFound, config: TargetsConfig
) -> Candidate | None:
    """Record what becomes of a candidate; returns the one that is taken now."""
    why = candidate.rejected or names.rejection(candidate.names, config)
    fate = why or (CHOSEN if taken is None else SPARE)
    choice.considered.append(Considered(candidate.style, candidate.source, fate))
    return candidate if fate == CHOSEN else taken
