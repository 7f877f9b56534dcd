"""Read notes from a folder and keep their index in a file beside them."""

import json
from pathlib import Path

from .index import InvertedIndex
from .model import Note

INDEX_NAME = ".inkwell.json"


def read_notes(root: Path) -> list[Note]:
    return [Note.from_text(path.stem, path.read_text("utf-8")) for path in sorted(root.glob("*.txt"))]


def save(index: InvertedIndex, root: Path, stamp: dict[str, int]) -> None:
    tags = {tag: sorted(keys) for tag, keys in index.tags.items()}
    state = {"stamp": stamp, "postings": index.postings, "lengths": index.lengths, "tags": tags}
    (root / INDEX_NAME).write_text(json.dumps(state), "utf-8")


def load(root: Path) -> InvertedIndex:
    """The saved index if every note is as it was, else a new one, saved."""
    stamp = {path.name: path.stat().st_mtime_ns for path in sorted(root.glob("*.txt"))}
    saved = root / INDEX_NAME
    if saved.exists():
        state = json.loads(saved.read_text("utf-8"))
        if state["stamp"] == stamp:
            index = InvertedIndex()
            index.postings, index.lengths = state["postings"], state["lengths"]
            index.tags = {tag: set(keys) for tag, keys in state["tags"].items()}
            return index
    index = InvertedIndex(read_notes(root))
    save(index, root, stamp)
    return index
