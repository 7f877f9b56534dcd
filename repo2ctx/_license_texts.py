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
from itertools import islice

from licenseclassifier import identify_license

from repo2ctx._license_names import PERMISSIVE, canonical, joined, names_in

_LONGEST = 200_000
_MOST_REGIONS = 50  # texts in one file
_BEFORE = 50  # words before a text that the library may count to it, if they speak of a copyright

_TAG = re.compile(r"^[^a-zA-Z0-9\n]*+SPDX-License-Identifier:[ \t]*+([^\r\n]{1,300})", re.MULTILINE | re.IGNORECASE)
_CC = re.compile(  # what comes with the texts of CC BY and its kin, before and after them
    r"attribution(?:-\w+)*+\s+4\.0\s+international\W+creative\s+commons\s+corporation\s+\(\"creative\s+commons\"\)\s+is\s+not\s+a\s+law\s+firm\b.{0,3500}?$"
    r"|^\W*creative\s+commons\s+is\s+not\s+a\s+party\b.{0,1500}?may\s+be\s+contacted\s+at\s+creativecommons\.org\.?",
    re.DOTALL | re.IGNORECASE,
)
_TAGS = re.compile(
    r"</?(?:p|br|hr|h[1-6]|[abiu]|em|strong|[uo]l|li|div|span|pre|code|center|html|body|head|title|meta|link|table|t[rdt]|font)\b"
    r"[^<>]{0,200}>",
    re.IGNORECASE,
)
_IN_TAGS = re.compile(r"<(?!https?:|mailto:)([^<>]{1,300})>", re.IGNORECASE)
_OTHER_SCRIPT = re.compile(r"[^\W\d_\x00-\u024f\u1e00-\u1eff]")  # letters that the words below say nothing of
_WORD = re.compile(r"\w+")
_GNU = ("GPL-", "LGPL-", "AGPL-", "GFDL-", "WTFPL")  # begin with words on copies of the text itself
_APPENDIX = re.compile(
    r"\W*(?:how\s+to\s+apply\s+these\s+terms\s+to\s+your\s+new\s+(?:programs|libraries)"
    r"|also\s+add\s+information\s+on\s+how\s+to\s+contact\s+you)\b.{0,6000}?(?:instead\s+of\s+this\s+license\b\.?"
    r"(?:\s+but\s+first,?\s+please\s+read\W+https?:\S{1,60})?|that's\s+all\s+there\s+is\s+to\s+it!|for\s+the\s+gnu\s+agpl,\s+see\s+[^\s]{1,60})",
    re.DOTALL | re.IGNORECASE,
)

# What licenses are named by, or titles and notes made of
_HARMLESS = set(
    """license licence licenses licensed licensing licences mit bsd isc apache gnu gpl lgpl agpl mpl epl general lesser
    affero public mozilla eclipse boost zlib unlicense new revised simplified modified clause style expat x11 open
    source initiative the a an is are this these that it its of and or by under with for in to from on at as be was
    have has been software project code program library package work material file files text copy version terms
    following below above see also here there full found available released distributed provided permission main
    http https www org com html txt md authors author contributors contributor maintainers developers team core
    others copyright copyrights holder holders clear more information please visit read body pre notice notices note
    individual various members year years since all rights reserved inc llc ltd gmbh corp corporation company
    foundation present c v spdx identifier osi approved""".split()
)
_FORBIDDING = set(
    """no not non none never nor only except excluding excluded unless without however notwithstanding must may shall
    should can cannot require requires required requirement restrict restricted restriction restrictions limit
    limited limitation limitations prohibit prohibited forbid forbids forbidden deny denied commercial commercially
    noncommercial sell sold selling sale academic educational research personal use uses used user users usage using
    evil good military government competing competitive hosted saas fee fees pay payment royalty condition
    conditions conditional additional amendment addendum modification exception exceptions comply compliance
    terminate terminates revoked evaluation proprietary confidential anti ethical harm human labor consent written
    notify attribution advertising acknowledgment acknowledgement credit clauses instead supersede supersedes
    need needs ask buy buys send sends valid expire expires trial testing internal share alike upstream employees
    employee companies company banks days order""".split()
)
_GRAVE = re.compile(
    r"commons clause|non-?\s?commercial|commercial(?:ly)? (?:use|purpose|license)|\b(?:not|must|only|unless|fees?|pay)\b"
    r"|prohibit|forbid|no right|restrict|exclud|\bsell|\bevil\b|military|additional (?:term|condition)|proprietary|confidential"
    r"|source[- ]available|evaluation|competing|compete|hosted|managed service|academic|research (?:use|purpose)|\b996\b"
    r"|\b(?:ha(?:s|ve|d) to|needs? to|required to|buys?|days?|valid (?:for|until)|expires?|trial|internal (?:use|testing)"
    r"|share[- ]alike|employees|bann?(?:s|ed)?)\b|(?:\b[a-z] ){6}"
    r"|verboten|untersagt|prohibid|interdi[ts]|vietat|proibid|kommerziell|comercia[li]|commerciale|non[- ]commercia",
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
_MOST_NAMES = 6  # words of titles that are names of something
_HEADING = 2  # words of a heading that may be any name
_ACRONYM = 4  # capitals
_MOST_LETTERS = 6  # words of one letter: more may spell one
_GAPS = re.compile(  # where the patterns let any few words be
    r"\b(?:(?:no event (?:shall|will)|provided by|neither the names?|developed by|even if|such damages?|with the distribution"
    r"|written permission(?!\W+no express))((?:\W+\w+){0,42}?)\W+(?:be liable|as is|used to endorse|permission is hereby"
    r"|specifically disclaims|neither|has been advised|this software is)\b"
    r"|copyright((?:\W+\w+){1,22}?)\W+licensed under the apache\b)",
    re.IGNORECASE,
)
_IN_GAPS = {"nor", "may", "not"}  # and yet names only
_MUST_SAY = {"MIT": ("free of charge", "without restriction", "sublicense", "sell")}  # the pattern lets them be dropped


@dataclass(frozen=True, slots=True)
class Told:
    """found: an expression of the texts in the file, "" if none or if they are not whole.

    clear: nothing else is in it that could matter. doubtful: what else is in it has a word of those that forbid; grave: a sure
    one, or the texts are not whole. choice: it speaks of a choice between licences.
    """

    found: str
    clear: bool
    doubtful: bool = False
    grave: bool = False
    choice: bool = False


def told_by(text: str) -> Told:
    """What a licence file says. Several texts in one are all to be kept (AND), unless an SPDX tag says otherwise."""
    if len(text) > _LONGEST:
        return Told("", clear=False, doubtful=True, grave=True)
    tags = [canonical(tag.strip().rstrip("*/-#> .")) for tag in _TAG.findall(text)]
    text = _TAG.sub("", _plain(text))
    regions = list(_regions(text))
    rest, at = [], 0
    for _, start, end in regions:
        rest.append(text[at:start])
        at = max(at, end)
    rest.append(text[at:])
    if regions and all(name.startswith("CC-BY") for name, _, _ in regions):
        rest = [_CC.sub("", part) for part in rest]
    left = _TAGS.sub(" ", "\n\n".join(rest))
    known = [canonical(name) for name, _, _ in regions]
    names = list(dict.fromkeys(name for name in known if name))
    whole = all(known) and len(regions) <= _MOST_REGIONS and all(_whole(name, text[a:b]) for name, a, b in regions)
    tagged = len(set(tags)) == 1 and bool(tags[0]) and set(names) <= set(names_in(tags[0]))
    own = _without_holders(_LINK.sub(" ", left.title() if text.isupper() else left))
    aside = " ".join(_IN_TAGS.findall(_TAGS.sub(" ", text)))  # which the library skips, wherever they stand
    grave = not whole or not all(tags) or bool(_GRAVE.search(f"{left} {aside}") or _OTHER_SCRIPT.search(own))
    return Told(
        tags[0] if tagged else joined(names, "AND") if names and whole else "",
        clear=bool(names or tagged) and not grave and _harmless(own, titled=len(rest[0].split())),
        doubtful=grave or _forbids(_words(left)),
        grave=grave,
        choice=bool(_CHOICE.search(left)),
    )


def _whole(name: str, region: str) -> bool:
    """Whether a text lacks nothing that its pattern lets be dropped, and has nothing but names where it lets anything be."""
    said = " ".join(region.lower().split())
    gaps = _GAPS.findall(said) if name in PERMISSIVE else []
    names = {part for gap in gaps for word in _words(" ".join(gap)) for part in _parts(word)}
    return all(word in said for word in _MUST_SAY.get(name, ())) and _FORBIDDING.isdisjoint(names - _IN_GAPS)


def _plain(text: str) -> str:
    """Without the marks that take the library quadratic time."""
    text = html.unescape(text) if "&" in text else text
    text = re.sub(r"\n(?:[ \t\r]{0,400}\n)+", "\n\n", text)
    return text.replace("](", "] (").replace("{#", "{ #").replace("\x00", " ")


def _regions(text: str) -> Iterator[tuple[str, int, int]]:
    """Each licence text: its identifier and where it begins and ends. A GNU licence's appendix on how to use it is part of it,
    a URL that stands for a licence is none."""
    until = 0
    for match in identify_license(text, 0.0)[: 2 * _MOST_REGIONS]:
        start, end = match.start, match.end
        if start < until or text[start:end].lstrip().lower().startswith("http"):
            continue
        start = _true_start(text, match.id, start, end)
        if match.id.startswith(_GNU) and (appendix := _APPENDIX.match(text, end)):
            end = appendix.end()
        until = end
        yield match.id, start, end


_MARK = re.compile(r"copyrights?|©|\(c\)", re.IGNORECASE)
_FIRST = re.compile(r"\w++|©|\(c\)", re.IGNORECASE)
_MOST_MARKS = 16
_BRIEF = 4000  # characters of a text whose pattern lets anything follow the word


def _true_start(text: str, name: str, start: int, end: int) -> int:
    """Where a text begins that the library counts from a copyright line up to `_BEFORE` words before it: where it is still
    found once the marks of copyright lines are hidden, one after the other."""
    before = [word.end() for word in islice(_WORD.finditer(text, start, end), _BEFORE)]
    for mark in islice(_MARK.finditer(text, start, max(before, default=start)), _MOST_MARKS):
        first = _FIRST.search(text, start, end)
        if mark.start() < start:
            continue
        if first and first.start() < mark.start() and (name.startswith(_GNU) or end - start > _BRIEF):
            break
        found = identify_license(text[mark.end() : end], 0.0)
        if not found or found[0].id != name or mark.end() + found[0].end < end:
            break
        start = mark.end() + found[0].start
    return start


_LINK = re.compile(r"<?\b(?:https?://|www\.|mailto:)[^\s<>()]++>?|<?[\w.+-]{1,64}@[\w.-]{1,255}>?", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.:;!?])\s+|\n\s*\n|\n(?=[\W_]{3,}\s)")
_HOLDERS = re.compile(
    r"[^\w©(]*+(?:[\w.,'-]{1,30}\s+){0,5}?(?:copyrights?\b|©|\(c\)|all rights reserved)", re.IGNORECASE
)
_LONGEST_LINE = 30  # words of a copyright line
_MOST_STRANGE = 4  # of them in small letters, and none that licences are made of
_ABBREVIATED = re.compile(r"\b(?:Inc|Ltd|Co|Corp|Jr|Sr|Dr|[A-Z])\. ")


def _harmless(own: str, titled: int) -> bool:
    """Whether what stands beside the texts is titles, names, and whose the parts are, all without a forbidding word.

    own: without copyright lines. titled: words before the first text, where the names of titles may stand.
    """
    names = passed = letters = 0
    for sentence in _SENTENCE.split(own):
        found = _words(sentence)
        words = [word for word in found if len(word) > 1]
        letters += len(found) - len(words)
        if _forbids(words) or letters > _MOST_LETTERS:
            return False
        passed += len(sentence.split())
        if _ATTRIBUTING.search(sentence) and len(words) <= _LONGEST_SENTENCE:
            continue
        other = _unknown(words)
        names += len(other)
        strange = any(word.islower() or (word.isupper() and len(word) > _ACRONYM) for word in other)
        if names > _MOST_NAMES or (strange and len(words) > _HEADING) or (len(other) > 1 and passed > titled):
            return False
    return True


def _without_holders(text: str) -> str:
    """Without copyright lines, and lines of names right after them."""
    lines, inside = [], False
    for line in text.splitlines():
        words = _words(line)
        if not words:
            inside = inside and bool(line.strip())
        elif _forbids(words) or len(words) > _LONGEST_LINE:
            inside = False
        elif not _HOLDERS.match(line):
            inside = inside and not any(word.islower() for word in _unknown(words))
        else:
            holder, _, after = line.partition(". ") if not _ABBREVIATED.search(line) else (line, "", "")
            strange = sum(word.islower() for word in _unknown(_words(holder)))
            inside = strange <= _MOST_STRANGE and not _OTHER_SCRIPT.search(after)
            if inside and after:
                lines.append(after)
                continue
        lines.append("" if inside else line)
    return "\n".join(lines)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_][\w+#.'’-]*", text)


def _parts(word: str) -> list[str]:
    return [part for part in re.split(r"[-.'’_]", word.lower()) if part]


def _unknown(words: list[str]) -> list[str]:
    """Those that licences are not named by."""
    return [word for word in words if not _HARMLESS.issuperset(_parts(word))]


def _forbids(words: list[str]) -> bool:
    return any(part in _FORBIDDING for word in words for part in _parts(word))
