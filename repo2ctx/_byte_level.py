"""Hugging Face's byte-level BPE on tiktoken's engine: the same ids, several times faster.

`tokenizers` merges pairs of tokens in the order of its list of merges. tiktoken merges whichever neighbours make the
token of lowest rank, and does not ask how the token came about. Take as ranks the place in that list of the merge that
makes a token, and as tokens only those whose own bytes, by themselves, merge to them. Then the two do the same, step by step:

    Say that at some point neighbours x and y together spell a token t. No merge has crossed the ends of t yet, so what
    happened inside is how the bytes of t by themselves begin to merge. Those end in t, so the next merge among them is
    that of x and y. Thus what tiktoken may merge, `tokenizers` may too, and the other way round; both take the lowest
    rank, then the leftmost.

A token whose own bytes do not merge to it is never made, for the same reason, and is left out. Some tokenizers
(`ignore_merges`) look a whole piece of text up first, as tiktoken always does, and so use those as well: one that ends in
three or more parts goes in last, since two neighbours never spell it.

All this is checked when a tokenizer is loaded, on every token (up to a second for 150,000). Some texts go another way:
those with a character that the two see differently (`_hf_splits`) or that the vocabulary cannot write, and those with long
runs of blanks, on which tiktoken panics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import tiktoken
import tokenizers

from repo2ctx._hf_splits import Splitting, UnfitError, odd_characters, splitting_of

Ids = npt.NDArray[np.int32]
_BLOCK = 1 << 15
# No character below U+0300 is changed by NFC, alone or with its neighbours.
_MAY_BE_COMPOSED = re.compile("[\u0300-\U0010ffff]")


# A byte-level vocabulary writes a byte as one character: as itself where that is printable, else from U+0100 on.
_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_OTHERS = tuple(byte for byte in range(256) if byte not in _PRINTABLE)
_CHARACTERS = "".join(map(chr, (*_PRINTABLE, *range(256, 256 + len(_OTHERS)))))
_BYTE_OF = dict.fromkeys(_OTHERS, "\uffff") | {256 + i: byte for i, byte in enumerate(_OTHERS)}


def has_long_run(text: str) -> bool:
    """Whether a text may hold a run of 65,536 blanks or line ends, or more: it has one of half that length."""
    # Such a run covers a whole block, wherever it begins.
    return any(text[i : i + _BLOCK].isspace() for i in range(0, len(text) - _BLOCK + 1, _BLOCK))


@dataclass(frozen=True, slots=True)
class Added:
    """Added tokens that `tokenizers` looks for in one pass, leftmost and longest first; `ids` holds those that count.

    The others are control tokens: they are found, so that none of `ids` may overlap them, and left as text.
    """

    pattern: re.Pattern[str]
    ids: Mapping[str, int]

    def split(self, text: str) -> Iterator[tuple[str, int | None]]:
        """The text in parts: (text, None), or (token, its id)."""
        start = 0
        for match in self.pattern.finditer(text):
            number = self.ids.get(match[0])
            if number is not None:
                if start < match.start():
                    yield text[start : match.start()], None
                yield match[0], number
                start = match.end()
        if start < len(text):
            yield text[start:], None


@dataclass(frozen=True, slots=True)
class ByteLevelEngine:
    """A Hugging Face tokenizer without its control tokens.

    ids: rank -> id. lacking: finds characters that the vocabulary cannot write. raw, composed: added tokens, looked for
    before and after normalisation. nfc: the normaliser, if any.
    """

    splitting: Splitting
    encoding: tiktoken.Encoding
    ids: Ids
    token_bytes: Mapping[int, bytes]
    lacking: re.Pattern[str] | None
    raw: Added | None
    composed: Added | None
    nfc: tokenizers.normalizers.Normalizer | None

    def encode(self, text: str) -> Ids | None:
        """The ids of a text; None where only `tokenizers` itself is known to give them."""
        if has_long_run(text) or (self.lacking and self.lacking.search(text)):
            return None
        if not text.isascii() and odd_characters(self.splitting).search(text):
            return None
        found: list[npt.NDArray[np.int32]] = []
        for part, number in self._parts(text):
            if number is None:
                found.append(self.ids[np.asarray(self.encoding.encode_ordinary(part), np.int32)])
            else:
                found.append(np.asarray([number], np.int32))
        return found[0] if len(found) == 1 else np.concatenate([np.zeros(0, np.int32), *found])

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids. A character that is cut at either end becomes U+FFFD, and an id that the tokenizer lacks nothing."""
        return b"".join([self.token_bytes.get(i, b"") for i in ids]).decode("utf-8", "replace")

    def _parts(self, text: str) -> Iterator[tuple[str, int | None]]:
        for part, number in self.raw.split(text) if self.raw else [(text, None)]:
            if number is not None:
                yield part, number
                continue
            if self.nfc is not None and not part.isascii() and _MAY_BE_COMPOSED.search(part):
                part = self.nfc.normalize_str(part)
            yield from self.composed.split(part) if self.composed else [(part, None)]


def byte_level_engine(data: Mapping[str, Any], tokenizer: tokenizers.Tokenizer) -> ByteLevelEngine:
    """The engine of a tokenizer.json, given as `data` and as loaded. Raises UnfitError, saying why it has none."""
    splitting = splitting_of(data.get("pre_tokenizer"))
    if (data.get("decoder") or {}).get("type") != "ByteLevel":
        raise UnfitError("its decoder is not ByteLevel")
    nfc = _nfc(data.get("normalizer"), tokenizer)
    raw, composed = (_added(tokenizer, nfc, after) for after in (False, True))
    vocabulary: dict[str, int] = data["model"]["vocab"]
    if not isinstance(vocabulary, dict):
        raise UnfitError("its model is not BPE")
    spelled = {token: _bytes_of(token) for token in vocabulary}
    bytes_there = {spelled[character]: vocabulary[character] for character in _CHARACTERS if character in vocabulary}
    ranks: dict[bytes, int] = {byte: byte[0] for byte in bytes_there}
    ids = [bytes_there.get(bytes([byte]), -1) for byte in range(256)]
    for token in chain(*_mergeable(data["model"], spelled)):
        ranks[spelled[token]] = len(ids)
        ids.append(vocabulary[token])
    try:
        encoding = tiktoken.Encoding("byte-level", pat_str=splitting.pattern, mergeable_ranks=ranks, special_tokens={})
    except ValueError as error:
        raise UnfitError(f"tiktoken refuses it ({error})") from error
    # What is no spelling of bytes is an added token that stands in the vocabulary as it is.
    token_bytes = {number: spelled[token] or token.encode("utf-8") for token, number in vocabulary.items()}
    added = tokenizer.get_added_tokens_decoder().items()
    token_bytes |= {number: token.content.encode("utf-8") for number, token in added}
    lacking = _lacking({byte for byte in range(256) if ids[byte] < 0})
    return ByteLevelEngine(splitting, encoding, np.asarray(ids, np.int32), token_bytes, lacking, raw, composed, nfc)


def _nfc(normalizer: object, tokenizer: tokenizers.Tokenizer) -> tokenizers.normalizers.Normalizer | None:
    if normalizer is None:
        return None
    if isinstance(normalizer, dict):
        parts = normalizer.get("normalizers", []) if normalizer.get("type") == "Sequence" else [normalizer]
        if all(part.get("type") == "NFC" for part in parts):
            return tokenizer.normalizer if parts else None
    raise UnfitError("its normalizer is not NFC")


def _added(
    tokenizer: tokenizers.Tokenizer, nfc: tokenizers.normalizers.Normalizer | None, normalized: bool
) -> Added | None:
    """The added tokens that are looked for before, or after, normalisation; None if none of them counts."""
    tokens = [
        (nfc.normalize_str(token.content) if normalized and nfc else token.content, number, token)
        for number, token in tokenizer.get_added_tokens_decoder().items()
        if token.normalized == normalized
    ]
    counted = {text: (number, token) for text, number, token in tokens if not token.special}
    if not counted:
        return None
    if any(token.single_word or token.lstrip or token.rstrip for _, token in counted.values()):
        raise UnfitError("it has added tokens that take the blanks around them, or only whole words")
    if len({text for text, _, _ in tokens}) < len(tokens):
        raise UnfitError("it has two added tokens of one text")
    longest_first = sorted((text for text, _, _ in tokens), key=lambda text: (-len(text), text))
    return Added(
        re.compile("|".join(map(re.escape, longest_first))), {text: number for text, (number, _) in counted.items()}
    )


def _mergeable(model: Mapping[str, Any], spelled: Mapping[str, bytes]) -> tuple[list[str], list[str]]:
    """The tokens that merges make, in their order, and those that only a whole piece of text makes. Raises UnfitError."""
    if model.get("type", "BPE") != "BPE" or model.get("dropout"):
        raise UnfitError("its model is not BPE, or drops merges at random")
    if model.get("unk_token") or model.get("byte_fallback"):
        raise UnfitError("its model has an unknown token, or falls back to bytes")
    if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        raise UnfitError("its model marks parts of words")
    vocabulary: dict[str, int] = model["vocab"]
    if len(set(vocabulary.values())) < len(vocabulary):
        raise UnfitError("its vocabulary has one id twice")
    merges = [_pair(merge) for merge in model["merges"] if not str(merge).startswith("#version")]
    places = _places(merges)
    alone = tokenizers.models.BPE(vocab=vocabulary, merges=merges, cache_capacity=0).tokenize
    made, whole = [], []
    for token, number in vocabulary.items():
        if len(spelled[token]) < 2:
            continue  # a byte; or what no text is ever turned into
        parts = alone(token)
        if len(parts) == 1 and parts[0].id == number:
            made.append(token)
        elif model.get("ignore_merges"):
            if len(parts) < 3:
                raise UnfitError(f"its merges do not make its token {token!r}, though its parts may meet")
            whole.append(token)
    return sorted(made, key=places.__getitem__), whole


def _pair(merge: str | Sequence[str]) -> tuple[str, str]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _places(merges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Token -> place of the first of the merges that make it. Raises UnfitError if others come between them."""
    if len(set(merges)) < len(merges):
        raise UnfitError("its model has one merge twice")
    places: dict[str, int] = {}
    last = ""
    for place, (left, right) in enumerate(merges):
        token = left + right
        if token != last and token in places:
            raise UnfitError(f"its merges make the token {token!r} in two places")
        places.setdefault(token, place)
        last = token
    return places


def _bytes_of(token: str) -> bytes:
    """The bytes that a token spells; none if it is no spelling of bytes."""
    try:
        return token.translate(_BYTE_OF).encode("latin-1")
    except UnicodeEncodeError:
        return b""


def _lacking(missing: set[int]) -> re.Pattern[str] | None:
    """Finds the characters that are written with a byte that the vocabulary lacks; `tokenizers` drops such bytes."""
    if missing & set(range(0x80, 0xC0)):
        raise UnfitError("its vocabulary lacks bytes that most characters need")
    ranges = [(byte, byte) for byte in missing if byte < 0x80]
    ranges += [((byte & 0x1F) << 6, (byte & 0x1F) << 6 | 0x3F) for byte in missing & set(range(0xC2, 0xE0))]
    ranges += [((byte & 0x0F) << 12, (byte & 0x0F) << 12 | 0xFFF) for byte in missing & set(range(0xE0, 0xF0))]
    ranges += [((byte & 0x07) << 18, (byte & 0x07) << 18 | 0x3FFFF) for byte in missing & set(range(0xF0, 0xF4))]
    spans = (f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in sorted(ranges))
    return re.compile(f"[{''.join(spans)}]") if ranges else None
