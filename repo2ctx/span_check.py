"""Whether the spans of a packed row decode to what `files` holds: the text, the outline, a beginning, the path."""

from __future__ import annotations

import hashlib
import json
import posixpath
import unicodedata
from collections.abc import Callable
from typing import Any

from repo2ctx.dataset import Dataset
from repo2ctx.packing import FULL, HEAD, OUTLINE, PATH
from repo2ctx.records import KEPT
from repo2ctx.tokens import Tokenizer


class FilesOf:
    """The kept files of one repository, for checking its spans. Holds hashes; a text is read when it is asked for.

    A text that does not decode to itself may be one that the tokenizer changes (NFC, or a character that it has no token for):
    then it has to decode to what is left of its own ids.
    """

    def __init__(self, dataset: Dataset, tokenizer: Tokenizer, repository: str):
        self._dataset, self._tokenizer, self._repository = dataset, tokenizer, repository
        self.position: dict[str, int] = {}
        self._text_sha256: dict[str, str] = {}
        self._outline_sha256: dict[str, str] = {}
        names = ("path", "fate", "position", "text_sha256", "outline")
        there = repository in dataset.manifest["repositories"]
        for batch in dataset.of_repository("files", repository, names) if there else ():
            columns = (batch.column(name).to_pylist() for name in names)
            for path, fate, position, text_sha256, outline in zip(*columns, strict=True):
                if fate == KEPT:
                    self.position[path] = position
                    self._text_sha256[path] = text_sha256
                if outline is not None:
                    self._outline_sha256[path] = _sha256(outline)

    def problem(self, span: dict[str, Any], text: str) -> str:
        """What is wrong with a span whose tokens decode to `text`; "" if nothing is."""
        path, fidelity = span["path"], span["fidelity"]
        if path not in self._text_sha256:
            return "is no kept file of its repository in files"
        if span["text_sha256"] != (None if fidelity == PATH else self._text_sha256[path]):
            return "its hash is not the one in files"
        checks: dict[str, tuple[Callable[[str, str], bool], str]] = {
            FULL: (self._is_text, "do not decode to the text with its hash"),
            OUTLINE: (self._is_outline, "do not decode to its outline"),
            HEAD: (self._is_beginning, "do not decode to a beginning of its text"),
            PATH: (_is_line, "do not decode to its line in the tree"),
        }
        if fidelity not in checks:
            return f"its fidelity is {fidelity!r}"
        right, said = checks[fidelity]
        return "" if right(path, text) else f"its tokens {said}"

    def _is_text(self, path: str, text: str) -> bool:
        if _sha256(text) == self._text_sha256[path]:
            return True
        whole = self._read(path, "text")
        return whole is not None and text == self._as_read(whole)

    def _is_outline(self, path: str, text: str) -> bool:
        if _sha256(text) == self._outline_sha256.get(path):
            return True
        outline = self._read(path, "outline")
        return outline is not None and text == self._as_read(outline)

    def _is_beginning(self, path: str, text: str) -> bool:
        whole = self._read(path, "text") or ""
        return whole.startswith(text) or self._as_read(whole).startswith(text)

    def _as_read(self, text: str) -> str:
        return self._tokenizer.decode(self._tokenizer.encode(text))

    def _read(self, path: str, column: str) -> str | None:
        for batch in self._dataset.of_repository("files", self._repository, ("path", column)):
            for index, found in enumerate(batch.column("path")):
                if found.as_py() == path:
                    value: str | None = batch.column(column)[index].as_py()
                    return value
        return None


def _is_line(path: str, text: str) -> bool:
    name = posixpath.basename(path)
    return text.strip() in (name, json.dumps(name, ensure_ascii=False), unicodedata.normalize("NFC", name))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
