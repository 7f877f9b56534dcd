"""Takes one repository's texts through the leak guard: first what its sources are, then what its targets leave behind.

`without_sources` needs no target. Both stream the texts and keep only what they change. Readers of manifests run in the sandbox;
a file that they cannot read for sure leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from repo2ctx.analysis import Analysis
from repo2ctx.choosing import Choice, TextStream
from repo2ctx.config import LeakageConfig
from repo2ctx.docstrings import without_documentation
from repo2ctx.leakage import (
    Copies,
    Guard,
    is_own,
    is_prose_file,
    source_paths,
    without_descriptions,
    without_repetitions,
)
from repo2ctx.metadata import descriptions, is_manifest
from repo2ctx.prose import is_readme
from repo2ctx.records import GuardedTarget
from repo2ctx.sandbox import Sandbox

Changes = dict[str, str | None]
"""Path -> what becomes of a file that does not stay as it is: its new text, or None if it leaves."""


def without_sources(analysis: Analysis, texts: TextStream, sandbox: Sandbox) -> Changes:
    """The READMEs and what repeats them leave; the descriptions of the manifests at the root are emptied."""
    changes: Changes = dict.fromkeys(source_paths(analysis.files, analysis.links), None)
    readmes = {analysis.links.get(path, path) for path in [*analysis.texts, *analysis.links] if is_readme(path)}
    copies = Copies(analysis.texts[path] for path in sorted(readmes) if path in analysis.texts)
    languages = {file.path: file.language for file in analysis.files}
    for path, text in texts():
        if path in changes:
            continue
        if is_manifest(path):
            if is_own(path):
                _change(changes, path, text, sandbox, without_descriptions)
        elif is_prose_file(path, languages[path]) and copies.has(text):
            changes[path] = None
    return changes


def changed(texts: TextStream, changes: Mapping[str, str | None]) -> Iterator[tuple[str, str]]:
    """The texts with their changes; what leaves is left out."""
    for path, text in texts():
        after = changes.get(path, text)
        if after is not None:
            yield path, after


class Guarded:
    """The texts of one repository as they are written, and what is known of its targets afterwards.

    small: path -> text of the manifests at the root, whose descriptions other manifests may repeat.
    """

    def __init__(
        self,
        choice: Choice,
        texts: TextStream,
        changes: Changes,
        small: Mapping[str, str],
        name: str,
        config: LeakageConfig,
        sandbox: Sandbox,
    ):
        self._choice, self._texts, self._changes = choice, texts, dict(changes)
        self._guard = Guard(choice.targets, name, config)
        said = [target.text for target in choice.targets]
        said += [
            text
            for path in small
            if "/" not in path and is_manifest(path)
            for text in sandbox.call_or([], descriptions, path, small[path])
        ]
        for path, text in texts():
            self._guard.see(path, text)
            before = self._changes.get(path, text)
            if before is None:
                continue
            if path in choice.documented:
                _change(self._changes, path, before, sandbox, without_documentation)
            elif is_manifest(path) and not is_own(path):
                _change(self._changes, path, before, sandbox, without_repetitions, said)
            after = self._changes.get(path, before)
            if after is not None:
                self._guard.consider(path, after)
        self._guard.decide()

    def __iter__(self) -> Iterator[tuple[str, str | None]]:
        """(path, final text) of every kept file; None for one that leaves. To be read once, to the end."""
        for path, text in self._texts():
            after = self._changes.get(path, text)
            yield path, None if after is None else self._guard.clean(path, after)

    def targets(self) -> tuple[GuardedTarget, ...]:
        """The targets with their figures, after the texts were read."""
        found = zip(self._choice.targets, self._guard.name_shares(), self._guard.figures(), strict=True)
        return tuple(GuardedTarget(target, share, leak) for target, share, leak in found)


def _change(
    changes: Changes, path: str, text: str, sandbox: Sandbox, edit: Callable[..., str | None], *arguments: object
) -> None:
    after = sandbox.call_or(None, edit, path, text, *arguments)
    if after != text:
        changes[path] = after
