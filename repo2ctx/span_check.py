"""Whether the spans of a packed row hold the tokens of what `files` has: the text, the outline, a beginning; and its tree."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from repo2ctx.dataset import Dataset
from repo2ctx.fitting import Tree, tree_of
from repo2ctx.packing import FULL, HEAD, OUTLINE, PARTS, PATH
from repo2ctx.ranked import files_by_rank
from repo2ctx.tokens import Tokenizer

Ids = npt.NDArray[np.int32]
_COLUMNS = {FULL: "text", OUTLINE: "outline", HEAD: "text"}
_TREES = 4 * len(PARTS)  # that are remembered of a repository


class FilesOf:
    """The kept files of one repository, for checking its spans. Holds hashes; a text is read when it is asked for.

    Each text is tokenized once. Where tokens decode to the text with its hash, that is not read.
    """

    def __init__(self, dataset: Dataset, tokenizer: Tokenizer, repository: str):
        self._dataset, self._tokenizer, self._repository = dataset, tokenizer, repository
        there = repository in dataset.manifest["repositories"]
        read = partial(dataset.of_repository, "files", repository) if there else lambda _: iter(())
        files = files_by_rank(read)
        self.position = {file.path: file.position for file in files}
        self._sha256 = {(file.path, FULL): file.text_sha256 for file in files}
        for batch in read(("path", "outline")):
            for path, outline in zip(*(batch.column(name).to_pylist() for name in ("path", "outline")), strict=True):
                if outline is not None:
                    self._sha256[path, OUTLINE] = hashlib.sha256(outline.encode()).hexdigest()
        self._hashes: dict[tuple[str, str], bytes] = {}  # (path, fidelity) -> hash of its ids
        self._tree = lru_cache(maxsize=_TREES)(lambda room: tree_of(files, room, tokenizer))

    def problem(self, span: dict[str, Any], ids: Ids) -> str:
        """What is wrong with a span that has these tokens; "" if nothing is."""
        path, fidelity = span["path"], span["fidelity"]
        if path not in self.position:
            return "is no kept file of its repository in files"
        if span["text_sha256"] != (None if fidelity == PATH else self._sha256[path, FULL]):
            return "its hash is not the one in files"
        if fidelity == PATH:
            return ""  # `trees` has its tokens
        if fidelity not in _COLUMNS:
            return f"its fidelity is {fidelity!r}"
        if fidelity == HEAD:
            return "" if self._is_beginning(path, ids) else "its tokens are not those of a beginning of its text"
        if (path, fidelity) not in self._sha256:
            return "has no outline in files"
        if (path, fidelity) not in self._hashes:
            self._hashes[path, fidelity] = _hash(self._tokenizer.encode_array(self._source(path, fidelity, ids)))
        if _hash(ids) == self._hashes[path, fidelity]:
            return ""
        return f"its tokens are not those of {'the text with its hash' if fidelity == FULL else 'its outline'}"

    def trees(self, length: int, tokens: int) -> Iterator[Tree]:
        """The trees that a document of so many tokens may have in rows of `length`, the likeliest first."""
        for room in sorted({length // part for part in (1, *PARTS)}):
            if room >= tokens:
                yield self._tree(room)

    def _source(self, path: str, fidelity: str, ids: Ids) -> str:
        """The text or outline of a file, from these tokens if they are its own."""
        text = self._tokenizer.decode(ids.tolist())
        if hashlib.sha256(text.encode()).hexdigest() == self._sha256[path, fidelity]:
            return text
        return self._read(path, _COLUMNS[fidelity])

    def _is_beginning(self, path: str, ids: Ids) -> bool:
        whole = self._read(path, _COLUMNS[HEAD])
        text = self._tokenizer.decode(ids.tolist())
        end = len(text) if whole.startswith(text) else self._end(whole, len(text))
        return 0 < end < len(whole) and np.array_equal(self._tokenizer.encode_array(whole[:end]), ids)

    def _end(self, whole: str, size: int) -> int:
        """Where a beginning ends that a tokenizer which changes texts (NFC) gives back as `size` characters."""
        low, high = 0, len(whole)
        while low < high:
            middle = (low + high) // 2
            back = self._tokenizer.decode(self._tokenizer.encode(whole[:middle]))
            low, high = (middle + 1, high) if len(back) < size else (low, middle)
        return low

    def _read(self, path: str, column: str) -> str:
        for batch in self._dataset.of_repository("files", self._repository, ("path", column)):
            paths = batch.column("path").to_pylist()
            if path in paths:
                return str(batch.column(column)[paths.index(path)].as_py())
        raise KeyError(path)


def _hash(ids: Ids) -> bytes:
    return hashlib.sha256(ids.astype(np.int32).tobytes()).digest()
