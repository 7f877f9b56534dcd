"""What a licence file says: the licences whose texts it holds, and whether anything else is in it.

The texts are found by `licenseclassifier`, a port of Google's licensecheck: whole texts by word patterns of the SPDX list,
which bear another holder, layout, markup or comment marks, but no added or dropped clause. Similarity is not enough here: a
clause of ten words changes what a licence permits, and 1 % of its words. So what the patterns leave over is read too. Titles,
copyright lines and words on whose the parts are do no harm; anything else makes the file unclear. Files of more than
`_LONGEST` characters are unclear unread; others take milliseconds, hostile ones half a second.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from licenseclassifier import identify_license

from repo2ctx._license_names import canonical, joined, names_in

_LONGEST = 200_000
_MOST_REGIONS = 50  # texts in one file
_BEFORE = 50  # words before a text that the library may count to it, if they speak of a copyright

_TAG = re.compile(r"^[\W_]*+SPDX-License-Identifier:[ \t]*+([^\r\n]{1,300})", re.MULTILINE | re.IGNORECASE)
_WORD = re.compile(r"\w+")
_APPENDIX = re.compile(
    r"\W*how to apply these terms to your new (?:programs|libraries)\b.{0,6000}?"
    r"(?:why-not-lgpl\.html>?\)?\.?|instead of this license\.?|that's all there is to it!|www\.gnu\.org/licenses/>?\)?\.)",
    re.DOTALL | re.IGNORECASE,
)

# What licenses are named by, or titles and notes made of
_HARMLESS = set(
    """license licence licenses licensed licensing licences mit bsd isc apache gnu gpl lgpl agpl mpl epl general lesser affero
    public mozilla eclipse boost zlib unlicense new revised simplified modified clause style expat x11 open source initiative
    the a an is are this these that it its of and or by under with for in to from on at as be was have has been
    software project code program library package work material file files text copy version terms following below above see
    also here there full found available released distributed provided permission main http https www org com html txt md
    authors author contributors contributor maintainers developers team core others copyright copyrights holder holders
    all rights reserved inc llc ltd gmbh corp corporation company foundation present c v spdx identifier osi approved""".split()
)
_FORBIDDING = set(
    """no not non none never nor only except excluding excluded unless without however notwithstanding must may shall should
    can cannot require requires required requirement restrict restricted restriction restrictions limit limited limitation
    limitations prohibit prohibited forbid forbids forbidden deny denied commercial commercially noncommercial sell sold
    selling sale academic educational research personal use uses used user users usage using evil good military government
    competing competitive hosted saas fee fees pay payment royalty condition conditions conditional additional amendment
    addendum modification exception exceptions comply compliance terminate terminates revoked evaluation proprietary
    confidential anti ethical harm human labor consent written notify attribution advertising acknowledgment
    acknowledgement credit clauses instead supersede supersedes""".split()
)
_GRAVE = re.compile(
    r"commons clause|non-?\s?commercial|commercial(?:ly)? (?:use|purpose|license)|\b(?:shall|may|must|do|can) ?not\b|prohibit"
    r"|forbid|not permitted|no right|restrict|\bsell|\bevil\b|additional (?:term|condition)|proprietary|confidential"
    r"|source[- ]available|evaluation|competing|academic|research (?:use|purpose)|996",
    re.IGNORECASE,
)
_ATTRIBUTING = re.compile(
    r"\b(?:derived|portions?|based|taken|adapted|ported|borrowed|bundle[sd]?|includes?|incorporates?|third[- ]party|part"
    r"|parts|follows?|follow)\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:dual(?:ly)?|bi|double|multi)[- ]?licen[cs]|\beither\b.{1,200}?\bor\b|at your (?:option|choice|discretion)|your choice",
    re.DOTALL | re.IGNORECASE,
)
_LONGEST_SENTENCE = 40  # words that say whose a part is
_MOST_NAMES = 6  # words of a title that are names of something
_MUST_SAY = {"MIT": ("free of charge", "without restriction", "sublicense", "sell")}  # the pattern lets them be dropped


@dataclass(frozen=True, slots=True)
class Told:
    """found: an expression of the texts in the file, "" if none. clear: nothing else is in it that could matter. grave: what
    else is in it may forbid something. choice: it speaks of a choice between licences."""

    found: str
    clear: bool
    grave: bool = False
    choice: bool = False


def told_by(text: str) -> Told:
    """What a licence file says. Several texts in one are all to be kept (AND), unless an SPDX tag says otherwise."""
    if len(text) > _LONGEST:
        return Told("", clear=False, grave=True)
    tags = [canonical(tag.strip().rstrip("*/-#> .")) for tag in _TAG.findall(text)]
    text = _TAG.sub("", _plain(text))
    regions = list(_regions(text))
    rest, at = [], 0
    for _, start, end in regions:
        rest.append(text[at:start])
        at = max(at, end)
    rest.append(text[at:])
    left = "\n\n".join(rest)
    known = [canonical(name) for name, _, _ in regions]
    whole = all(known) and all(
        word in " ".join(text[start:end].lower().split())
        for name, start, end in regions
        for word in _MUST_SAY.get(name, ())
    )
    names = list(dict.fromkeys(name for name in known if name))
    found = joined(names, "AND") if names else ""
    if len(set(tags)) == 1 and tags[0] and set(names) <= set(names_in(tags[0])):
        found = tags[0]
    return Told(
        found,
        clear=bool(found) and whole and len(regions) <= _MOST_REGIONS and _harmless(left),
        grave=not whole or bool(_GRAVE.search(left)),
        choice=bool(_CHOICE.search(left)),
    )


def _plain(text: str) -> str:
    """Without what takes the library quadratic time, its marks, and copyright lines, which it counts to the text after them."""
    text = html.unescape(text) if "&" in text else text
    text = text.replace("](", "] (").replace("{#", "{ #").replace("\x00", " ")
    return "\n".join("" if _names_holders(line) else line for line in text.splitlines())


_HOLDERS = re.compile(
    r"[^\w©(]*+(?:(?:portions|parts|original|modifications|code|software|the|changes)\s)*+(?:copyrights?|©|\(c\)|all rights)",
    re.IGNORECASE,
)
_LONGEST_LINE = 30  # words of a copyright line


def _names_holders(line: str) -> bool:
    if not _HOLDERS.match(line):
        return False
    words = [word.lower() for word in _WORD.findall(line)]
    return len(words) <= _LONGEST_LINE and _FORBIDDING.isdisjoint(words) and not _SAYS_MORE.search(line)


_SAYS_MORE = re.compile(r"\b(?:notice|and this permission|list of|disclaimer|holders? (?:be|or|who|may)|owner|license)\b", re.I)


def _regions(text: str) -> Iterator[tuple[str, int, int]]:
    """Each licence text: its identifier and where it begins and ends. A GNU licence's appendix on how to use it is part of it,
    a URL that stands for a licence is none."""
    until = 0
    for match in identify_license(text, 0.0)[: 2 * _MOST_REGIONS]:
        start, end = match.start, match.end
        if start < until or text[start:end].lstrip().lower().startswith("http"):
            continue
        start = _true_start(text, match.id, start, end)
        if match.id.startswith(("GPL-", "LGPL-", "AGPL-")) and (appendix := _APPENDIX.match(text, end)):
            end = appendix.end()
        until = end
        yield match.id, start, end


def _true_start(text: str, name: str, start: int, end: int) -> int:
    """Where a text begins that is counted from a copyright line up to `_BEFORE` words before it: the last word from which the
    same text is still found."""
    words = [match.start() for _, match in zip(range(_BEFORE), _WORD.finditer(text, start, end), strict=False)]
    if "copyright" not in text[start : words[-1]].lower() and "©" not in text[start : words[-1]]:
        return start
    good, bad = 0, len(words)
    while bad - good > 1:
        middle = (good + bad) // 2
        found = identify_license(text[words[middle] : end], 0.0)
        if found and found[0].id == name and not found[0].start and found[-1].end >= end - words[middle]:
            good = middle
        else:
            bad = middle
    return words[good] if good else start


_LINK = re.compile(r"<?\b(?:https?://|www\.|mailto:)[^\s<>()]++>?|<?[\w.+-]{1,64}@[\w.-]{1,255}>?", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.:;!?])\s+|\n\s*\n|\n(?=[\W_]{3,}\s)")


def _harmless(left: str) -> bool:
    """Whether what stands beside the texts is titles, names, and whose the parts are, all without a forbidding word."""
    names = 0
    for sentence in _SENTENCE.split(_LINK.sub(" ", left)):
        words = [word for word in re.findall(r"[^\W\d_][\w+#.'’-]*", sentence) if len(word) > 1]
        parts = [part.lower() for word in words for part in re.split(r"[-.'’_]", word)]
        if not _FORBIDDING.isdisjoint(parts):
            return False
        other = [word for word in words if not _HARMLESS.issuperset(re.split(r"[-.'’_]", word.lower().strip(".-'’")))]
        if _ATTRIBUTING.search(sentence) and len(words) <= _LONGEST_SENTENCE:
            continue
        names += len(other)
        if names > _MOST_NAMES or any(word.islower() or (word.isupper() and len(word) > 4) for word in other):
            return False
    return True
