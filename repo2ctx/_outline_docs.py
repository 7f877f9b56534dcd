"""Documentation comments and docstrings -> their first sentence or first paragraph, as a comment again.

Marks of comments are set anew, on as few lines as there are words for; the words are those of the source. Licences, directives to
tools and rows of dashes are no documentation. Linear: of a comment, no more than the lines that may be shown are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MARK = "…"
"""Stands for what an outline leaves out. No operator of any language that we read, and one token or two in all vocabularies."""

_PARAGRAPH = 400  # characters
_SENTENCE = 160  # characters from which a sentence is cut between two words
_SHORTEST = 4  # characters: a stop before is part of a name
_MOST_LINES = 200  # of one comment that are looked at
_LONGEST_LINE = 1000
_BLOCK = re.compile(r"/\*[*!]?")
_LINE = re.compile(r"//[/!]?|#+[!:]?")
_QUOTE = re.compile(r"([A-Za-z]{0,2})(\"\"\"|'''|\"|')")
_STAR = re.compile(r"\*(?!\*)[ \t]?")
_WORDS = re.compile(r"[^\W\d_]{2,}\b.*?\b[^\W\d_]{2,}|[^\x00-\x7f]*[^\W\d_\x00-\x7f]", re.DOTALL)
_STOP = re.compile(r"[.!?](?=[\"')`*\]]*(?:\s|\Z))|。")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.?g|i\.?e|etc|vs|cf|approx|resp|incl|no|fig|[A-Za-z])|\.)\Z", re.IGNORECASE)
_LICENCE = re.compile(
    r"copyright|\(c\)\s*\d{4}|©|all rights reserved|spdx-license|licen[sc]ed (?:to|under)|permission is hereby"
    r"|redistribution and use|this (?:file|program|library|software|code|source|source code|project|work) is"
    r" (?:free|part|distributed|licen[sc]ed|subject|covered|under|governed|released)|@licen[sc]e|gnu (?:general|lesser|affero)"
    r"|apache licen[sc]e|mit licen[sc]e|bsd licen[sc]e|public domain|file that was distributed",
    re.IGNORECASE,
)
_DIRECTIVE = re.compile(
    r"\s*(?:!|-\*-|coding[:=]|vim?:|go:\w|\+build|nolint|eslint|jshint|jslint|prettier-|tslint|istanbul|c8 |@ts-|@flow|@jsx"
    r"|@format|@no(?:flow|format)|<reference|global[s ]|#__|type: ?ignore|noqa|pylint|mypy|pragma|fmt: ?o|yapf|isort|flake8"
    r"|ruff:|rubocop|frozen_string_literal|:(?:no|start|stop|end)?doc|:markup:|typed:|phpcs|@codingStandards|@phpstan|@psalm|clang-format"
    r"|NOLINT|IWYU|NOSONAR|CHECKSTYLE|@formatter|language=|Auto-?generated|authors?\b|@author|created (?:by|on)"
    r"|\$[A-Z]\w{1,20}[:$])"
    r"|(?:[\w.@-]+://|www\.)\S+\s*\Z",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"[@\\](?:brief|file[oO]verview|overview|file|description|desc|module|package|summary|class)\b[ \t]*"
)
_TAG = re.compile(
    r"@\w|\\\w|:(?:param|type|returns?|rtype|raises?|i?var|cvar|arg|keyword|exception|yields?)\b"
    r"|(?:args|arguments|attributes|parameters|params|returns?|raises|yields|examples?|usage|notes?|see also"
    r"|warnings?|todo|fixme|xxx)\s*:?\s*\Z|(?:example|usage|todo|fixme|xxx)\b.{0,20}:|\.\. |>>>|```|~~~"
    r"|</?(?:p|pre|ul|ol|h\d|br|table|param|returns|remarks|example|inheritdoc|exception|typeparam|code)\b",
    re.IGNORECASE,
)
_HEADING = re.compile(r"=+ |#+ ")
_XML = re.compile(r"</?(?:summary|para|value)\s*/?>")


@dataclass(frozen=True, slots=True)
class Doc:
    """What a comment says first. first, rest: the marks before the first line and before each other; end: after the last."""

    lines: tuple[str, ...]
    first: str
    rest: str
    end: str

    def shown(self, amount: int) -> list[str]:
        """Lines of a comment with none of it (0), the first sentence (1), the first paragraph (2)."""
        return [] if not amount else self._sentence() if amount == 1 else self._marked(list(self.lines))

    def _sentence(self) -> list[str]:
        """Up to the first stop, or to a word near the most characters that a sentence may have."""
        said = "\n".join(self.lines)
        stops = (stop for stop in _STOP.finditer(said, _SHORTEST) if not _is_abbreviation(said, stop.start()))
        end = next((stop.end() for stop in stops), len(said))
        if end > _SENTENCE + len(MARK):
            cut = max(said.rfind(" ", 0, _SENTENCE), said.rfind("\n", 0, _SENTENCE))
            return self._marked(f"{said[: cut if cut > 0 else _SENTENCE].rstrip()} {MARK}".split("\n"))
        return self._marked(said[:end].split("\n"))

    def _marked(self, lines: list[str]) -> list[str]:
        lines = [(self.rest if i else self.first) + line for i, line in enumerate(lines)]
        lines[-1] += self.end
        return lines


def _is_abbreviation(text: str, stop: int) -> bool:
    return bool(_ABBREVIATION.search(text[max(0, stop - 12) : stop]))


def read_doc(comment: str) -> Doc | None:
    """A comment (one block, or lines one below the other) or a string literal; None if it documents nothing."""
    if block := _BLOCK.match(comment):
        body = comment[block.end() :].removesuffix("*/")
        found = _first_paragraph([_STAR.sub("", line.strip(), count=1) for line in _some_lines(body)])
        return Doc(found, block[0] + " ", " * ", " */") if found else None
    if quote := _QUOTE.match(comment):
        found = _first_paragraph(_some_lines(comment[quote.end() :].removesuffix(quote[2])))
        return Doc(found, quote[0], "", quote[2]) if found else None
    if mark := _LINE.match(comment):
        lines = [(m[0], line.strip()[m.end() :]) for line in _some_lines(comment) if (m := _LINE.match(line.strip()))]
        found = _first_paragraph([line for _, line in lines])
        return Doc(found, mark[0] + " ", mark[0] + " ", "") if found else None
    return None


def _some_lines(body: str) -> list[str]:
    return [line[:_LONGEST_LINE] for line in body.split("\n", _MOST_LINES)[:_MOST_LINES]]


def _first_paragraph(lines: list[str]) -> tuple[str, ...]:
    """The lines of the first paragraph of prose, as far as there is room; () if it is a licence or there is none."""
    found: list[str] = []
    length = 0
    for line in lines:
        said = _XML.sub("", line).strip()
        if _DIRECTIVE.match(said):
            if found:
                break
            continue
        if label := _LABEL.match(said):
            said = said[label.end() :]
        if _LICENCE.search(said):
            break
        if not any(map(str.isalnum, said)) or (not found and _HEADING.match(said)):
            if found:
                break
            continue
        length += len(said) + 1
        if _TAG.match(said) or (found and length > _PARAGRAPH):
            break
        found.append(said[:_PARAGRAPH])
    return tuple(found) if _WORDS.search("\n".join(found)) else ()
