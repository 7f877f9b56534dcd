"""How Hugging Face pre-tokenizers cut a text, said for tiktoken's regular expressions, and where the two may disagree.

Only pre-tokenizers listed here are known. Both engines match leftmost, first alternative first, so a pattern means the
same to both as long as each character belongs to the same classes: `odd_characters` compares the classes of every
character there is, as the installed packages see them, and a text with one that differs is not for tiktoken. It takes
about half a second, once a process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import tiktoken
import tokenizers
from tokenizers import pre_tokenizers


class UnfitError(Exception):
    """A tokenizer cannot run on tiktoken's engine; its text says why."""


@dataclass(frozen=True, slots=True)
class Splitting:
    """pattern: for tiktoken, made quick. classes: the character classes in it, disjoint but for the first ones of a letter.

    numbers: whether Rust's own idea of a number cuts as well.
    """

    pattern: str
    classes: tuple[str, ...]
    numbers: bool = False


_BLANKS = r"|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# The text is cut at numbers first, so blanks see the end of their piece there: they are not followed by a word.
_BLANKS_BEFORE_NUMBERS = r"|\s+(?![^\s\p{N}])|\s+"
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_ENDS = r"\s*[\r\n]+" + _BLANKS
_LLAMA3 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_ENDS}"
_QWEN2 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_ENDS}"
_QWEN35 = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_ENDS}"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_ENDS}"
)
_PLAIN_CLASSES = (r"\p{L}", r"\p{N}", r"\s")
_MARK_CLASSES = (r"\p{L}", r"\p{M}", r"\p{N}", r"\s")
_CASE_CLASSES = (r"\p{Lu}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}", r"\p{Ll}", r"\p{M}", r"\p{N}", r"\s")
_KNOWN = {
    _GPT2: _PLAIN_CLASSES,
    _LLAMA3: _PLAIN_CLASSES,
    _QWEN2: _PLAIN_CLASSES,
    _QWEN35: _MARK_CLASSES,
    _O200K: _CASE_CLASSES,
}


def splitting_of(pre_tokenizer: object) -> Splitting:
    """How the `pre_tokenizer` of a tokenizer.json cuts. Raises UnfitError."""
    parts = _flat(pre_tokenizer)
    kinds = [part.get("type") for part in parts]
    if not kinds or kinds[-1] != "ByteLevel" or parts[-1].get("add_prefix_space", True):
        raise UnfitError("its pre-tokenizer does not end in a plain ByteLevel")
    own = parts[-1].get("use_regex", True)
    if kinds == ["ByteLevel"] and own:
        return Splitting(quick(_GPT2), _PLAIN_CLASSES)
    if kinds == ["Digits", "ByteLevel"] and own:
        number = r"\p{N}" if parts[0].get("individual_digits") else r"\p{N}+"
        words = _GPT2.removesuffix(_BLANKS).replace(r" ?\p{N}+", number)
        return Splitting(quick(words + _BLANKS_BEFORE_NUMBERS), _PLAIN_CLASSES, numbers=True)
    if kinds == ["Split", "ByteLevel"] and not own:
        pattern = str((parts[0].get("pattern") or {}).get("Regex"))
        how = (str(parts[0].get("behavior")), bool(parts[0].get("invert")))
        if pattern in _KNOWN and how in (("Isolated", False), ("Removed", True)):
            return Splitting(quick(pattern), _KNOWN[pattern])
        raise UnfitError("it cuts texts by a pattern that repo2ctx does not know")
    raise UnfitError(f"it cuts texts in a way that repo2ctx does not know ({', '.join(map(str, kinds))})")


def quick(pattern: str) -> str:
    """The same pattern with what comes before its look-ahead in a group, which makes fancy-regex (tiktoken's engine) leave all
    of that to an automaton: 1.3 to 1.9 times the speed. Other patterns are given back as they are."""
    if re.search(r"\(\?[a-zA-Z-]+\)", pattern):
        return pattern  # its flags may reach beyond a group
    for blanks in (_BLANKS, _BLANKS_BEFORE_NUMBERS):
        if pattern.endswith(blanks):
            return f"(?:{pattern.removesuffix(blanks)}){blanks}"
    return pattern


def _flat(pre_tokenizer: object) -> list[Mapping[str, Any]]:
    if not isinstance(pre_tokenizer, dict):
        return []
    if pre_tokenizer.get("type") != "Sequence":
        return [pre_tokenizer]
    return [part for inner in pre_tokenizer.get("pretokenizers") or () for part in _flat(inner)]


# Characters ------------------------------------------------------------------------------------------------

# Planes 4 to 13 hold nothing, and 15 and 16 are private: compared are those that hold characters; the rest counts as odd.
_NOT_COMPARED = "\ud800-\udfff\U00040000-\U000dffff\U000e1000-\U0010ffff"
# The letters of the contractions. Characters that fold to an ASCII letter lie below here (U+017F, U+212A).
_FOLDED, _FOLDING = "(?i:s|t|r|e|v|m|l|d)", "".join(map(chr, range(0x3000)))


@cache
def _compared() -> str:
    return "".join(map(chr, (*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xE1000))))


@lru_cache(maxsize=8)
def odd_characters(splitting: Splitting) -> re.Pattern[str]:
    """Finds the characters on which the two engines differ, or may."""
    theirs = _classes_of_tokenizers(splitting.classes, splitting.numbers)
    odd: set[str] = set()
    for name, members in theirs.items():
        odd |= members ^ _class_of_tiktoken(r"\p{N}" if name == "numbers" else name, _compared())
    odd |= _matches(_FOLDED, _FOLDING) ^ _class_of_tiktoken(_FOLDED, _FOLDING)
    return re.compile(f"[{_NOT_COMPARED}{''.join(map(re.escape, sorted(odd)))}]")


def _class_of_tiktoken(name: str, text: str) -> set[str]:
    """The characters of a text that match: tiktoken leaves out what its pattern does not."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    engine = tiktoken.Encoding(name, pat_str=f"{name}+", mergeable_ranks=ranks, special_tokens={})
    return set(bytes(engine.encode_ordinary(text)).decode("utf-8"))


def _classes_of_tokenizers(classes: tuple[str, ...], numbers: bool) -> dict[str, Set[str]]:
    """Class -> the characters in it. All are cut into runs in one pass; the first of each tells the class."""
    cut: pre_tokenizers.PreTokenizer = pre_tokenizers.Split(
        tokenizers.Regex("|".join(f"{name}+" for name in classes)), "isolated"
    )
    if numbers:
        cut = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False), cut])
    runs = [run for run, _ in cut.pre_tokenize_str(_compared())]
    firsts = "".join(run[0] for run in runs)
    found = {name: _matches(name, firsts) for name in classes}
    if numbers:  # a number stands alone between letters
        pieces = pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str("a" + "a".join(firsts) + "a")
        found["numbers"] = {piece for piece, _ in pieces if len(piece) == 1} - {"a"}
    return {name: set("".join(run for run in runs if run[0] in first)) for name, first in found.items()}


def _matches(name: str, text: str) -> set[str]:
    """The characters of a text that `tokenizers` sees in a class."""
    cut = pre_tokenizers.Split(tokenizers.Regex(f"{name}+"), "removed", invert=True)
    return set("".join(piece for piece, _ in cut.pre_tokenize_str(text)))
