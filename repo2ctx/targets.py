"""The summaries that a model is to learn, each from the first source that has one worth learning.

Sources, in the configured order: `list` (the list's own summary), `metadata` (the description in a manifest at the root, or
the first sentence of a Go package's comment), `readme` (its lead prose), `docstring` (the documentation of the main package's
module), and `teacher`, which is not read but asked (`teacher.py`). Nothing is run. A source gives texts in one or both styles,
line and paragraph; every text is judged (`filters.py`), and the first good one of a style is its target. What became of each
is recorded.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from repo2ctx.config import TargetsConfig
from repo2ctx.docstrings import documentation
from repo2ctx.filters import code_names, rejection
from repo2ctx.metadata import TARGET_MANIFESTS, descriptions
from repo2ctx.prose import described, first_sentence, lead, readmes, tidy
from repo2ctx.records import RepoSpec, Style, short_name

Texts = Mapping[str, str]
"""Path -> text: the small files of the root, or the files that may document the main package's module."""


_BRIEF = 30  # words of a text that is a line as it is, also with more than one sentence


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that a source has. path: the file that it comes from; names: those that look like code; rejected: why it is
    no target, as far as the text alone says it."""

    style: Style
    source: str
    path: str
    text: str
    names: tuple[str, ...] = ()
    rejected: str = ""


def candidates(source: str, spec: RepoSpec, root: Texts, modules: Texts, config: TargetsConfig) -> list[Candidate]:
    """The texts of one source, judged, best first. root: the small files at the repository's root. modules: see `Texts`."""
    found = []
    for candidate in _SOURCES[source](spec, root, modules, config):
        text = tidy(candidate.text)
        if candidate.style in config.styles and text:
            found.append(replace(candidate, text=text) if source == "list" else judged(candidate, spec, config))
    return found


def judged(candidate: Candidate, spec: RepoSpec, config: TargetsConfig) -> Candidate:
    """The candidate with its text tidied, the names in it that look like code, and why it is no target, if it is none."""
    text = tidy(candidate.text)
    said = rejection(text, candidate.style, short_name(spec.name), config)
    return replace(candidate, text=text, names=tuple(code_names(text)), rejected=said)


def _from_list(spec: RepoSpec, root: Texts, modules: Texts, config: TargetsConfig) -> Iterator[Candidate]:
    if spec.summary:
        yield Candidate(_style_of(tidy(spec.summary), config), "list", "", spec.summary)


def _from_metadata(spec: RepoSpec, root: Texts, modules: Texts, config: TargetsConfig) -> Iterator[Candidate]:
    for path in _target_manifests(root):
        for text in descriptions(path, root[path]):
            yield from _both(f"metadata:{path}", path, described(text), config)
    for path, text in modules.items():
        if path.endswith(".go") and (comment := documentation(path, text)):
            yield Candidate("line", f"metadata:{path}", path, first_sentence(comment.partition("\n")[0]))
            return


def _target_manifests(root: Texts) -> list[str]:
    """The manifests at the root whose descriptions are good for targets, most trusted first."""

    def rank(path: str) -> int:
        ending = posixpath.splitext(path)[1]
        return next((i for i, name in enumerate(TARGET_MANIFESTS) if name in (path, ending)), len(TARGET_MANIFESTS))

    ranked = sorted((rank(path), path) for path in root if "/" not in path)
    return [path for place, path in ranked if place < len(TARGET_MANIFESTS)]


def _from_readme(spec: RepoSpec, root: Texts, modules: Texts, config: TargetsConfig) -> Iterator[Candidate]:
    for path in readmes(root):
        if paragraphs := lead(path, root[path], config.paragraph_words[0]):
            yield from _both(f"readme:{path}", path, paragraphs, config)


def _from_docstring(spec: RepoSpec, root: Texts, modules: Texts, config: TargetsConfig) -> Iterator[Candidate]:
    for path, text in modules.items():
        if paragraphs := [p for p in documentation(path, text).split("\n\n") if p.strip()]:
            yield from _both(f"docstring:{path}", path, paragraphs, config)
            return


_SOURCES: Mapping[str, Callable[[RepoSpec, Texts, Texts, TargetsConfig], Iterator[Candidate]]] = {
    "list": _from_list,
    "metadata": _from_metadata,
    "readme": _from_readme,
    "docstring": _from_docstring,
}


def _style_of(text: str, config: TargetsConfig) -> Style:
    """A text of one paragraph that is no longer than a line may be is a line."""
    return "line" if "\n" not in text and len(text.split()) <= config.line_words[1] else "paragraph"


def _both(source: str, path: str, paragraphs: list[str], config: TargetsConfig) -> Iterator[Candidate]:
    """A line from the first sentence, or all of a text of a few words; a paragraph from as many paragraphs as it may hold."""
    whole = "\n\n".join(paragraphs)
    brief = _style_of(whole, config) == "line" and _words(whole) <= _BRIEF
    yield Candidate("line", source, path, whole if brief or not paragraphs else first_sentence(paragraphs[0]))
    if source.startswith("metadata") and _words(whole) < config.paragraph_words[0]:
        return  # a description is a line; that a README says too little is told of it
    taken, words = 0, 0
    while taken < len(paragraphs) and (not taken or words + _words(paragraphs[taken]) <= config.paragraph_words[1]):
        words += _words(paragraphs[taken])
        taken += 1
    yield Candidate("paragraph", source, path, "\n\n".join(paragraphs[:taken]))


def _words(text: str) -> int:
    return len(text.split())
