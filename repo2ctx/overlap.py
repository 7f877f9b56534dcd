"""How much of a target stands in a text: the measure behind the leak guard. Pure.

Both are reduced to their letters and digits: case, accents, white space, punctuation, markup marks, comment marks, escapes
(JSON, HTML, URL) and simple tags are gone, so that a quote is one string however it is wrapped, split over literals or
written as an identifier. A match is a common string of at least eight letters over at least two words of the target;
matches that follow each other in the target and nearly follow each other in the text (a comment leader, a link's address
or a word or two between them) make one run. Counted are the words of the target that lie whole in a run.

    share   of the target's n-grams of eight words, those that lie whole in one run
    run     the words of the longest run

Neither is ever less than what a comparison of lower-case `\\w+` words finds, but for runs of fewer than eight letters.
One pass over the text (Aho-Corasick), whatever the target.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from ahocorasick_rs import AhoCorasick

NGRAM = 8
"""Words of an n-gram, as benchmarks of contamination count them (GPT-3 took 13, PaLM 8)."""

_SEED = 8  # letters
_MOST_PLACES = 16  # of one seed in the target; more only in texts that repeat themselves
_MOST_MATCHES = 50_000  # in one text; in what repeats itself more often, each letter is looked at once
_TEXT_GAP = 80  # letters between two matches of one run: a link's address
_TARGET_GAP = 16  # letters of the target that a run may skip: a word or two
_JOINED = 4  # words of a project's name that may be written as one
_OVERLAP = 4  # letters that two matches may share by chance
_NOISE = re.compile(
    r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[^\n])"
    r"|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});"
    r"|</?[A-Za-z][A-Za-z0-9]{0,11}\s{0,9}/?>"
    r"|%[0-9A-Fa-f]{2}"
)
_MARKS = re.compile(r"[\W_]+")
_NO_LETTERS = bytes(c for c in range(128) if not chr(c).isalnum())
# Ideographs, kana and syllables are words of their own: their scripts have no blanks.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|[^\W_]+")


@dataclass(frozen=True, slots=True)
class Run:
    """Words of the target in one text, one after another. words: their numbers, rising. matches: (start in the text's letters,
    start in the target's, length) of each common string."""

    words: tuple[int, ...]
    matches: tuple[tuple[int, int, int], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Measure:
    """share: of the target's n-grams, those found. run: words of the longest run. Both over all the texts measured."""

    share: float = 0.0
    run: int = 0


def words_of(text: str) -> list[str]:
    """The words of a text as the measure counts them: letters and digits only, folded."""
    return [folded for word in _WORD.findall(_NOISE.sub(_decoded, text)) if (folded := _fold(word))]


class Overlap:
    """Finds one target in texts. Costs a few milliseconds to make.

    name: words of the project's name (`apache/commons-csv`); a run of nothing else is no quote. named: their numbers in `words`.
    """

    def __init__(self, target: str, name: str = ""):
        self.words = words_of(target)
        self._letters = "".join(self.words)
        self._word_at: list[int] = []  # of each letter
        self._bounds: list[tuple[int, int]] = []  # of each word, in letters
        for number, word in enumerate(self.words):
            self._bounds.append((len(self._word_at), len(self._word_at) + len(word)))
            self._word_at += [number] * len(word)
        self.named = _named(self.words, name)
        self._places: dict[str, list[int]] = {}
        for at in range(len(self._letters) - _SEED + 1):
            if self._word_at[at] != self._word_at[at + _SEED - 1]:
                places = self._places.setdefault(self._letters[at : at + _SEED], [])
                if len(places) < _MOST_PLACES:
                    places.append(at)
        self._seeds = list(self._places)
        self._automaton = AhoCorasick(self._seeds) if self._seeds else None

    @property
    def ngrams(self) -> int:
        return max(0, len(self.words) - NGRAM + 1)

    @property
    def name_share(self) -> float:
        """The share of the target's words that are words of the project's name."""
        return len(self.named) / len(self.words) if self.words else 0.0

    def runs(self, text: str) -> list[Run]:
        """Every run of at least two words, in the order of the text."""
        if self._automaton is None:
            return []
        letters = _letters(text)
        matches = list(self._matches(letters))
        found = [Run(words, tuple(chain)) for chain in _chains(matches) if len(words := self._whole_words(chain)) > 1]
        return [run for run in found if not self.named.issuperset(run.words)]

    def measure(self, runs: Iterable[Run]) -> Measure:
        """What runs, of one or of many texts, come to."""
        found: set[int] = set()
        longest = 0
        for run in runs:
            longest = max(longest, len(run.words))
            covered = set(run.words)
            found.update(w for w in run.words if all(w + i in covered for i in range(NGRAM)))
        return Measure(round(len(found) / self.ngrams, 6) if self.ngrams else 0.0, longest)

    def places(self, text: str, runs: Sequence[Run]) -> list[tuple[int, int]]:
        """(start, end) of the characters of `text` that hold the runs found in it, merged, in order."""
        if not runs:
            return []
        origin = _origins(text)
        found = []
        for run in runs:
            for start, at, length in run.matches:
                first, last = self._whole(at, at + length)
                if first < last:
                    found.append((origin[start + first - at][0], origin[start + last - at - 1][1]))
        merged: list[tuple[int, int]] = []
        for start, end in sorted(found):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _matches(self, letters: str) -> Iterator[tuple[int, int, int]]:
        """(start in `letters`, start in the target, length) of every maximal match."""
        assert self._automaton is not None
        done: dict[int, int] = {}  # start in the text less start in the target -> where the last match on it ended
        seen, covered = 0, 0
        for seed, start, _ in self._automaton.find_matches_as_indexes(letters, overlapping=True):
            places = self._places[self._seeds[seed]]
            if seen > _MOST_MATCHES:
                places = places[:1] if start >= covered else []
            for at in places:
                if done.get(start - at, 0) >= start + _SEED:
                    continue
                back = _common(letters[max(0, start - at) : start][::-1], self._letters[:at][::-1])
                ahead = _common(letters[start : start + len(self._letters) - at], self._letters[at:])
                done[start - at] = start + ahead
                seen += 1
                covered = max(covered, start + ahead)
                yield start - back, at - back, back + ahead

    def _whole(self, start: int, end: int) -> tuple[int, int]:
        """The part of the target's letters from start to end that is whole words."""
        first = self._word_at[start]
        last = self._word_at[end - 1]
        begin = self._bounds[first][0] if self._bounds[first][0] >= start else self._bounds[first][1]
        finish = self._bounds[last][1] if self._bounds[last][1] <= end else self._bounds[last][0]
        return begin, finish

    def _whole_words(self, chain: Sequence[tuple[int, int, int]]) -> tuple[int, ...]:
        found: set[int] = set()
        for _, at, length in chain:
            begin, finish = self._whole(at, at + length)
            if begin < finish:
                found.update(range(self._word_at[begin], self._word_at[finish - 1] + 1))
        return tuple(sorted(found))


def _named(words: Sequence[str], name: str) -> frozenset[int]:
    """The numbers of the words that are the project's name, however either puts them together: Java Parser, javaparser."""
    parts = words_of(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))
    known = {"".join(joined) for of in (words_of(name), parts) for joined in _windows(of)}
    found: set[int] = set()
    for first in range(len(words)):
        for count in range(1, _JOINED + 1):
            if "".join(words[first : first + count]) in known:
                found.update(range(first, min(first + count, len(words))))
    return frozenset(found)


def _windows(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """One to a few words that follow each other."""
    for first in range(len(words)):
        for end in range(first + 1, min(first + _JOINED, len(words)) + 1):
            yield words[first:end]


def _chains(matches: list[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Matches that follow each other in the text and in the target, put together: each joins the nearest before it."""
    chains: list[list[tuple[int, int, int]]] = []
    open_chains: list[list[tuple[int, int, int]]] = []
    for start, at, length in sorted(matches, key=lambda m: (m[0], -m[2], m[1])):
        open_chains = [c for c in open_chains if c[-1][0] + c[-1][2] + _TEXT_GAP >= start][-_MOST_PLACES:]
        for chain in reversed(open_chains):
            last, last_at, last_length = chain[-1]
            gap, skipped = start - last - last_length, at - last_at - last_length
            if gap >= -_OVERLAP and -_OVERLAP <= skipped <= _TARGET_GAP and start + length > last + last_length:
                chain.append((start, at, length))
                break
        else:
            chains.append([(start, at, length)])
            open_chains.append(chains[-1])
    yield from chains


def _common(a: str, b: str) -> int:
    """How many letters two strings have in common at their beginnings."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while low + 1 < high:
        middle = (low + high) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle
    return low


def _decoded(match: re.Match[str]) -> str:
    """The character that an escape stands for; a blank for what is only markup."""
    noise = match[0]
    if noise[0] == "&":
        return html.unescape(noise)
    if noise[0] == "%":
        return unquote(noise, errors="replace")
    if noise[0] == "\\" and noise[1] in "uUx":
        code = int(noise[2:], 16) if len(noise) > 2 else 0
        return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else " "
    return " "


def _fold(text: str) -> str:
    """Letters and digits only, without case, accents and width."""
    if text.isascii():
        return text.lower().encode().translate(None, _NO_LETTERS).decode()
    return _MARKS.sub("", unicodedata.normalize("NFKD", text).casefold())


def _letters(text: str) -> str:
    return _fold(_NOISE.sub(_decoded, text))


def _origins(text: str) -> list[tuple[int, int]]:
    """For each letter of `_letters(text)`, the (start, end) of the characters of `text` that it comes from."""
    found: list[tuple[int, int]] = []

    def add(part: str, start: int) -> None:
        if part.isascii():
            found.extend((i, i + 1) for i, c in enumerate(part, start) if c.isalnum())
        else:
            for i, c in enumerate(part, start):
                found.extend([(i, i + 1)] * len(_fold(c)))

    at = 0
    for noise in _NOISE.finditer(text):
        add(text[at : noise.start()], at)
        found.extend([noise.span()] * len(_fold(_decoded(noise))))
        at = noise.end()
    add(text[at:], at)
    return found
