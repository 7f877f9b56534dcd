"""The one prompt: the same pieces for training rows, evaluation and `summarize`.

A document is

    instruction, repository name, tree
    for each file, in dependency order:   marker line, the file's text (or what the row has room for), newline
    closing line, instruction again
    the target, end of text

For chat models all but the target is the user's turn and the target the assistant's (`chat.py`); for base models `Summary:`
leads over. Pieces are encoded one by one, so that a file's tokens are those of its text alone. The marker holds a `boundary`
drawn from the commit's id and absent from every file and path, so that no file can forge another's beginning.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from repo2ctx.records import short_name

PROMPT_VERSION = 2

_TASK = {
    "line": "In one sentence, say what this repository is.",
    "paragraph": "Summarize this repository: what it is for, what it offers, and how it is built.",
}
_SAID = {"full": "", "outline": " outline", "head": " beginning"}
_CANDIDATES = 4
_INDENT = "  "


class Encoder(Protocol):
    """What the prompt needs of a tokenizer (`tokens.Tokenizer`)."""

    @property
    def opening(self) -> tuple[int, ...]: ...
    @property
    def answer(self) -> tuple[int, ...]: ...

    def encode(self, text: str) -> list[int]: ...


def opening(name: str, style: str, boundary: str) -> str:
    """What stands before the tree. `name` is host/owner/name; the model sees owner/name."""
    return (
        f"{_TASK[style]} Its tree follows, then its files, each after the files it needs. A line "
        f'`== {boundary} "path"` begins a file; after the path, `outline` says that the bodies are left out, `beginning` that '
        f"the rest is.\n\nRepository: {short_name(name)}\n\n"
    )


def file_opening(path: str, boundary: str, fidelity: str) -> str:
    """The marker line of a file. fidelity: full, outline or head."""
    return f"== {boundary} {json.dumps(path, ensure_ascii=False)}{_SAID[fidelity]}\n"


def file_closing() -> str:
    return "\n"


def closing(style: str, boundary: str, chat: bool) -> str:
    """What stands between the files and the target. chat: the target is a turn of its own."""
    return f"== {boundary} end\n\n{_TASK[style]}" + ("" if chat else "\n\nSummary:\n")


def opening_ids(tokenizer: Encoder, name: str, style: str, boundary: str) -> list[int]:
    """What stands before the tree as tokens, with what the tokenizer begins a document with."""
    return [*tokenizer.opening, *tokenizer.encode(opening(name, style, boundary))]


def closing_ids(tokenizer: Encoder, style: str, boundary: str) -> list[int]:
    """What stands between the files and the target as tokens, with what begins the answer of a chat model."""
    return [*tokenizer.encode(closing(style, boundary, bool(tokenizer.answer))), *tokenizer.answer]


# The tree --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Folder:
    folders: dict[str, _Folder] = field(default_factory=dict)
    files: list[tuple[str, str]] = field(default_factory=list)  # name and path of those that are shown
    total: int = 0  # files here and below
    shown: int = 0


def tree(paths: Collection[str], shown: Collection[str]) -> Iterator[tuple[str, str | None]]:
    """The lines of a repository's tree, each with the path of the file that it shows (None: of no file).

    In each folder its files come first, then its folders, by name. A folder that holds nothing but one folder shares that one's
    line. What is not in `shown` is counted where it lies, `… 3 more`. Names that would break a line are quoted as JSON.
    """
    part = f", of which {len(shown):,} are shown" if len(shown) < len(paths) else ""
    yield f"Files: {len(paths):,}{part}\n", None
    yield from _lines(_folders(paths, shown))
    yield "\n", None


def _folders(paths: Collection[str], shown: Collection[str]) -> _Folder:
    root = _Folder()
    for path in sorted(paths):
        *parents, name = path.split("/")
        seen = path in shown
        folder = root
        for parent in (None, *parents):
            if parent is not None:
                folder = folder.folders.setdefault(parent, _Folder())
            folder.total += 1
            folder.shown += seen
        if seen:
            folder.files.append((name, path))
    return root


def _lines(root: _Folder) -> Iterator[tuple[str, str | None]]:
    """Iterative: paths may be deeper than Python's stack."""
    pending: list[tuple[str | None, _Folder, int]] = [(None, root, 0)]
    while pending:
        name, folder, depth = pending.pop()
        if name is not None:
            while len(folder.folders) == 1 and (inner := next(iter(folder.folders.items())))[1].total == folder.total:
                name, folder = f"{name}/{inner[0]}", inner[1]
            yield f"{_INDENT * depth}{_quoted(name + '/')}\n", None
            depth += 1
        visible = {n: f for n, f in folder.folders.items() if f.shown}
        for file, path in folder.files:
            yield f"{_INDENT * depth}{_quoted(file)}\n", path
        hidden = folder.total - len(folder.files) - sum(f.total for f in visible.values())
        if hidden:
            yield f"{_INDENT * depth}… {hidden:,} more\n", None
        pending += [(n, f, depth) for n, f in sorted(visible.items(), reverse=True)]


def _quoted(name: str) -> str:
    plain = name.isprintable() and name == name.strip() and name[0] not in '"…'
    return name if plain else json.dumps(name, ensure_ascii=False)


# The boundary ----------------------------------------------------------------------------------------------


class Boundary:
    """Finds the marker of a repository: feed it every text and path, then ask.

    Candidates come from the commit's id, which a file cannot know when it is written.
    """

    def __init__(self, commit: str):
        digest = hashlib.sha256(commit.encode()).hexdigest()
        self._candidates = [digest[i : i + 6] for i in range(0, 6 * _CANDIDATES, 6)]
        self._last = digest

    def see(self, text: str) -> None:
        if any(c in text for c in self._candidates):
            self._candidates = [c for c in self._candidates if c not in text]

    def choose(self) -> str:
        return next(iter(self._candidates), self._last)
