"""An inverted index: term -> note -> positions."""

from collections.abc import Iterable

from .model import Note
from .tokenizer import tokenize


class InvertedIndex:
    def __init__(self, notes: Iterable[Note] = ()) -> None:
        self.postings: dict[str, dict[str, list[int]]] = {}
        self.lengths: dict[str, int] = {}
        self.tags: dict[str, set[str]] = {}
        for note in notes:
            self.add(note)

    @property
    def average_length(self) -> float:
        return sum(self.lengths.values()) / len(self.lengths) if self.lengths else 0.0

    def add(self, note: Note) -> None:
        self.remove(note.key)
        tokens = list(tokenize(f"{note.title}\n{note.body}"))
        self.lengths[note.key] = len(tokens)
        for term, position in tokens:
            self.postings.setdefault(term, {}).setdefault(note.key, []).append(position)
        for tag in note.tags:
            self.tags.setdefault(tag, set()).add(note.key)

    def remove(self, key: str) -> None:
        if self.lengths.pop(key, None) is None:
            return
        for table in (self.postings, self.tags):
            for name in [name for name, keys in table.items() if key in keys]:
                entry = table[name]
                entry.pop(key) if isinstance(entry, dict) else entry.discard(key)
                if not entry:
                    del table[name]

    def matching(self, term: str) -> set[str]:
        return set(self.postings.get(term, ()))

    def frequency(self, term: str, key: str) -> int:
        return len(self.postings.get(term, {}).get(key, ()))

    def phrase(self, terms: tuple[str, ...]) -> set[str]:
        """Notes in which the terms stand next to each other, in order."""
        if not terms:
            return set()
        found = set.intersection(*(self.matching(term) for term in terms))
        return {key for key in found if self._adjacent(terms, key)}

    def _adjacent(self, terms: tuple[str, ...], key: str) -> bool:
        rest = [set(self.postings[term][key]) for term in terms[1:]]
        return any(
            all(start + offset in places for offset, places in enumerate(rest, 1))
            for start in self.postings[terms[0]][key]
        )
