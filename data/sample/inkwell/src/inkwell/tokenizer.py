"""Turn text into normalised terms with positions."""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

_WORD = re.compile(r"\w+(?:'\w+)?")


class Token(NamedTuple):
    term: str
    position: int


def fold(word: str) -> str:
    """Lower-case a word, drop its accents and undo a plain English plural."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    plain = "".join(c for c in decomposed if not unicodedata.combining(c))
    plain = plain.removesuffix("'s")
    if len(plain) > 3 and plain.endswith("s") and not plain.endswith(("ss", "us", "is")):
        plain = plain[:-1]
    return plain


def tokenize(text: str) -> Iterator[Token]:
    for position, match in enumerate(_WORD.finditer(text)):
        yield Token(fold(match.group()), position)
