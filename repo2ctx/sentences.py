"""Sentences: where they end, and which of a README's say what the project is.

`said` keeps those of a paragraph that a model should learn and drops the others: pointers elsewhere, notices of status,
advertising, requests, commands, licences (`phrases.py`). Patterns see one sentence at a time, whose length has a bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from repo2ctx.markup import BREAK, END, LINK
from repo2ctx.phrases import (
    ADVERT,
    ANAPHOR,
    COMMAND,
    FAME,
    HALF,
    HERE,
    INSTALL,
    LABEL,
    LEAD_IN,
    LICENSED,
    NAMING,
    NOTICE,
    ODD,
    OPEN_END,
    POINTER,
    REQUEST,
    TEMPLATE,
)

FEWEST_WORDS = 4
"""A shorter sentence by itself is no statement."""

_MOST_CHARACTERS = 10_000  # a longer paragraph is none
_MOST_WORDS = 150  # a longer "sentence" is a list, a table or a text without stops
_NOTICE_WORDS = 45  # a longer sentence says more than the notice that is in it
_LINKED = 0.8  # share of a sentence's words in links from which it is a row of links
_LEADING_WORDS = 3  # a shorter one before a list is a title: "Key features:"
_CLOSED_WORDS = 6  # a shorter sentence before a colon says nothing by itself
_MOST_OF_A_TABLE = 20  # items; a longer list is a table of commands, formats, rules
_LIST_WORDS = 200  # a list stops at the item that reaches them
_TITLE_WORDS = 6  # a line that was broken on purpose and is no longer is a title

# Where sentences end ------------------------------------------------------------------------------------------

_STOP = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’)\]*]*(?=\s)")
_SHORT = re.compile(
    r"(?:^|[^\w.])(?:e\.?g|i\.?e|vs|cf|approx|resp|incl|excl|viz|ca|esp|aka|a\.k\.a|w\.r\.t|fig|eq|sec|no|nos|vol|ver"
    r"|pp|ed|eds"
    r"|al|mr|mrs|ms|dr|prof|st|jr|sr|inc|ltd|corp|co|dept|univ|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|v|max"
    r"|min)\.\Z",
    re.IGNORECASE,
)
_ENDING = re.compile(
    r"(?:^|[^\w.])(?:etc|inc|ltd|corp|co|al|jr|sr|no|max|min)\.\Z", re.IGNORECASE
)  # may end a sentence
_INITIALS = re.compile(r"(?:^|[\s(])(?:[A-Za-z]\.)+\Z")
_STARTER = re.compile(
    r"(?:the|it|its|this|that|these|those|in|for|with|by|an?|you|we|they|there|when|if|as|to)\b", re.IGNORECASE
)
_NEAR = 30  # characters before and behind a stop that decide
_SPAN = re.compile(r"`[^`]*`")


def sentences(paragraph: str) -> Iterator[str]:
    """The sentences of a paragraph. Code spans, abbreviations, initials, versions and names such as Node.js do not end one."""
    hidden = _SPAN.sub(lambda match: "x" * len(match[0]), paragraph)
    start = 0
    for stop in _STOP.finditer(hidden):
        before, after = hidden[max(0, stop.end() - _NEAR) : stop.end()], hidden[stop.end() : stop.end() + _NEAR]
        if _ends(before, after.lstrip(f" {LINK}{BREAK}")):
            yield paragraph[start : stop.end()].strip()
            start = stop.end()
    if rest := paragraph[start:].strip():
        yield rest


def _ends(before: str, after: str) -> bool:
    """Whether the stop that `before` ends with is the end of a sentence."""
    if not after:
        return False
    small = after[0].islower() and not re.match(r"x{3,}|[a-z]+[A-Z]", after)  # neither code nor a name such as iOS
    if not before.endswith("."):
        return not small
    if before.endswith(".."):
        return not small
    if _INITIALS.search(before):
        letters = before.rsplit(" ", 1)[-1].count(".")
        return letters > 1 and not small and bool(_STARTER.match(after))
    if _SHORT.search(before) or _ENDING.search(before):
        return bool(_ENDING.search(before)) and not small and not after[0].isdigit()
    return True


def first_sentence(paragraph: str) -> str:
    """The first sentence of a paragraph, whole."""
    return next(sentences(paragraph), "")


# Marks ----------------------------------------------------------------------------------------------------------

_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\u25a0-\u25ff\u3030\u303d\u3297\u3299\ufe0e\ufe0f\u20e3\u200d]+"
)
_SHORTCODE = re.compile(r"(?:(?<=\s)|^):[a-z][a-z0-9_+-]{1,40}:(?=[\s.,!]|$)")
_EMOTICON = re.compile(r"(?:(?<=\s)|^)[:;]-?[)D](?=\s|$)")
_ASIDE = re.compile(
    r"\s*\((?:please )?(?:see|pronounced|cf\.?|more (?:info|details)|read more|docs|details|link|source)\b[^()]{0,200}\)",
    re.IGNORECASE,
)
_URL = re.compile(
    r"(?:https?|ftp|irc|git|wss?)://[^\s<>()`]+|\bwww\.[\w.-]+[^\s<>()`]*|\b[\w.+-]{1,64}@[\w-]{1,64}\.[\w.]{2,64}"
)
_ASIDE_URL = re.compile(rf"\s*[(\[<]\s*{LINK}?(?:at |see |cf\. )?(?:{_URL.pattern}){END}?\s*[)\]>]")
_FOOTNOTE = re.compile(r"\s?\[\^?\d{1,3}\](?!\w)")
_LEFT_MARKS = re.compile(r"^[:;,|•·▪–—-]+\s+|\s[*†‡](?=\.?\Z)")
_VERSION = re.compile(r"(?<=\w) v?\d+(?:\.\d+){1,3}(?= (?:is an?|-|–) )")  # of the project, behind its name
_SPACES = re.compile(r"\s+([,.;:!?)])(?=\s|\Z|[,.;:!?)])")


def unmarked(text: str) -> str:
    """Without emoji, shortcodes, marks of lists and footnotes, asides that only point elsewhere, and the marks of `markup`."""
    text = _SHORTCODE.sub("", _EMOTICON.sub("", _FOOTNOTE.sub("", _EMOJI.sub("", text))))
    text = _ASIDE.sub("", _ASIDE_URL.sub("", text))
    text = text.replace(LINK, "").replace(END, "").replace(BREAK, " ").replace(" ( )", "")
    return _LEFT_MARKS.sub("", _SPACES.sub(r"\1", " ".join(text.split())).strip())


# What a sentence does -------------------------------------------------------------------------------------------

_CLAUSE = re.compile(
    r"\W*(?:[\w`.+-]+ ){1,5}?(?:is|are|was|were|can|will|has|have|lets|[a-z]{2,}s) [a-z]", re.IGNORECASE
)
_QUOTED = re.compile(r"[\"“][^\"”]{1,200}[\"”]")
_FIRST_PERSON = re.compile(r"\bI(?:['’](?:m|ve|d|ll))? [a-z]{2,}|\b(?:[Mm]y|me) ")
_ROW = re.compile(r"\s[|•·‣▪⋅∙/—–-]\s|\s?\|\s?|" + BREAK)
_LINK_TEXT = re.compile(rf"{LINK}[^{END}]*{END}")


def word_count(text: str) -> int:
    """Words of letters."""
    return len(re.findall(r"[^\W\d_]{2,}|\b[aAI]\b|`[^`]+`", text))


def is_row(text: str) -> bool:
    """Whether a paragraph is links with marks between them: badges, translations, a menu."""
    links = text.count(LINK)
    rest = _LINK_TEXT.sub(" ", text)
    if links and word_count(rest) < 2 * (1 + (links > 3)):
        return True
    pieces = [piece for piece in _ROW.split(text) if piece.strip()]
    return len(pieces) > 2 and sum(word_count(piece) <= 3 for piece in pieces) > len(pieces) / 2


def is_statement(text: str) -> bool:
    """Whether a sentence (with the marks of `markup`) says something of the project."""
    plain = " ".join(text.replace(LINK, "").replace(END, "").split())
    words = len(plain.split())
    linked = sum(word_count(match) for match in _LINK_TEXT.findall(text))
    if not 1 <= words <= _MOST_WORDS or (linked and linked >= _LINKED * word_count(plain)):
        return False
    if any(opening.match(plain) for opening in (POINTER, LABEL, ADVERT, INSTALL, COMMAND, ODD)):
        return False
    prose = _SPAN.sub("", unmarked(text))
    if (
        HERE.search(text)
        or _URL.search(prose)
        or TEMPLATE.search(prose)
        or prose.rstrip("!").endswith(("?", "e.g.", "i.e."))
    ):
        return False
    if (words < FEWEST_WORDS and plain.endswith("!")) or any(p.search(plain) for p in (REQUEST, FAME, NAMING)):
        return False
    return not (words <= _NOTICE_WORDS and is_notice(plain))


def is_notice(text: str) -> bool:
    """Whether a plain text is about the state, the versions or the licence of a project."""
    return bool(NOTICE.search(text) or LICENSED.search(text))


def opens_list(text: str) -> str:
    """A text that a list follows, with the colon that it should have: "It can read from"."""
    text = re.sub(r"\s*(?:\.{3,}|…)\Z", ":", text)
    return f"{text}:" if OPEN_END.search(text) else text


def said(text: str, *, leads_in: bool = False, orphan: bool = False) -> str:
    """The sentences of a paragraph (with the marks of `markup`) that are worth learning, as plain text; "" if none is left.

    leads_in: whether a list follows that is taken, so that a last sentence which ends in a colon stays. orphan: whether what was
    before is left out, so that a sentence which goes on from it ("It also …") is, too.
    """
    if len(text) > _MOST_CHARACTERS or is_row(text) or _FIRST_PERSON.search(_QUOTED.sub("", _SPAN.sub("", text))):
        return ""
    kept: list[str] = []
    dropped = orphan
    for sentence in _lines(text):
        plain = unmarked(sentence)
        if plain.endswith(":") and not leads_in:
            plain = _closed(plain)
        if not plain or not is_statement(sentence) or HALF.match(plain) or (dropped and ANAPHOR.match(plain)):
            dropped = True
            continue
        dropped = False
        kept.append(_VERSION.sub("", plain, count=1))
    leading = bool(kept) and kept[-1].endswith(":") and word_count(kept[-1]) >= _LEADING_WORDS
    return " ".join(kept) if leading or any(_says(sentence) for sentence in kept) else ""


def _says(sentence: str) -> bool:
    letters = sum(c.isalpha() or c.isspace() for c in sentence)
    return min(word_count(sentence), len(sentence.split())) >= FEWEST_WORDS and letters >= 0.6 * len(sentence)


def _closed(sentence: str) -> str:
    """A sentence that ends in a colon with a full stop instead, if it says something by itself."""
    says = len(sentence.split()) >= _CLOSED_WORDS and _CLAUSE.match(sentence) and not LEAD_IN.search(sentence)
    return "" if not says else re.sub(r"\s*:+\Z", ".", sentence)


def _lines(text: str) -> list[str]:
    """The sentences of a paragraph; a short line that was broken on purpose is a title, and left out."""
    lines = [line.strip() for line in text.split(BREAK) if line.strip()]
    if len(lines) > 1:
        lines = [
            line
            for line in lines
            if word_count(line) > _TITLE_WORDS or line.rstrip().endswith((".", ",", ";", "!", "?"))
        ]
        lines = [line if line.endswith((".", "!", "?", ":", ",", ";")) else f"{line}." for line in lines[:-1]] + lines[
            -1:
        ]
    return list(sentences(" ".join(lines)))


def items_said(items: Sequence[str], most: int) -> list[str]:
    """The first items of a list as sentences, if they are prose rather than names or links; else none."""
    found: list[str] = []
    if len(items) > _MOST_OF_A_TABLE:
        return []
    taken = [item for item in items if item.strip()][:most]
    for count, item in enumerate(taken):
        if sum(len(text.split()) for text in found) >= _LIST_WORDS:
            taken = taken[:count]
            break
        if len(item) > _MOST_CHARACTERS or is_row(item):
            continue
        parts = [
            part
            for part in sentences(item.replace(BREAK, " "))
            if is_statement(part.rstrip("?")) and not part.endswith(":")
        ]
        text = re.sub(r"\s*[,;:–—-]*(?:\s(?:and|or))?[\s,;:–—-]*\Z", "", unmarked(" ".join(parts)))
        text = re.sub(r"^([^:`]{1,40}?) (?:-|–|—|--) ", r"\1: ", text)
        if text and word_count(text) >= 2:
            found.append(text if text.endswith((".", "!", "?", "…")) else f"{text}.")
    words = sum(word_count(text) for text in found)
    return (
        [_capital(text) for text in found]
        if len(found) > 1 and 2 * len(found) > len(taken) and words >= 3 * len(found)
        else []
    )


def _capital(text: str) -> str:
    return text[0].upper() + text[1:] if re.match(r"[a-z]+[ ,]", text) else text
