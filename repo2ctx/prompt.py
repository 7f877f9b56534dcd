"""The one prompt: the same pieces for training rows, evaluation and `summarize`.

A document is

    instruction, repository name
    for each file, in dependency order:   marker line, the file's text, newline
    closing line, instruction again
    the target, end of text

Pieces are encoded one by one, so that a file's tokens are those of its text alone. The marker holds a `boundary`
drawn from the commit's id and absent from every file, so that no file can forge another's beginning.
"""

from __future__ import annotations

import hashlib
import json

from repo2ctx.records import short_name

PROMPT_VERSION = 1

_TASK = {
    "line": "In one sentence, say what this repository is.",
    "paragraph": "Summarize this repository: what it is for, what it offers, and how it is built.",
}
_CANDIDATES = 4


def opening(name: str, style: str, boundary: str) -> str:
    """What stands before the files. `name` is host/owner/name; the model sees owner/name."""
    return (
        f'{_TASK[style]} Its files follow, each after the files it needs; a line `== {boundary} "path"` '
        f"begins a file.\n\nRepository: {short_name(name)}\n\n"
    )


def file_opening(path: str, boundary: str) -> str:
    return f"== {boundary} {json.dumps(path, ensure_ascii=False)}\n"


def file_closing() -> str:
    return "\n"


def closing(style: str, boundary: str) -> str:
    """What stands between the files and the target."""
    return f"== {boundary} end\n\n{_TASK[style]}\n\nSummary:\n"


class Boundary:
    """Finds the marker of a repository: feed it every text, then ask.

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
