"""AsciiDoc, Org and plain text -> blocks of plain text (see `markup.py`). Line by line, in linear time."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

from repo2ctx.markup import BREAK, CODE, END, LINK, OTHER, Block, code

_Rules = list[tuple[re.Pattern[str], str]]


class _Collector:
    """Lines of prose and of lists -> blocks."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._lines: list[str] = []
        self._items: list[list[str]] = []
        self._first = ""  # the marker of the list's first item, with its indentation
        self._nested = False

    @property
    def in_list(self) -> bool:
        return bool(self._items)

    @property
    def in_paragraph(self) -> bool:
        return bool(self._lines)

    def line(self, text: str) -> None:
        """One more line of the paragraph, or of the item, that is open."""
        if not self._items:
            self._lines.append(text)
        elif not self._nested:
            self._items[-1].append(text)

    def item(self, marker: str, text: str) -> None:
        """An item begins. One with another marker than the list's first is of a list within it, and is left out."""
        self.end_paragraph()
        self._first = self._first if self._items else marker
        self._nested = marker != self._first
        if not self._nested:
            self._items.append([text])

    def take_lines(self) -> list[str]:
        """The lines of the open paragraph, which turns out to be something else."""
        lines, self._lines = self._lines, []
        return lines

    def end_paragraph(self) -> None:
        """The open paragraph ends, the open list does not."""
        if self._lines:
            self.blocks.append(Block("paragraph", " ".join(self._lines)))
        self._lines = []

    def end(self, *more: Block) -> None:
        """What is open ends here; `more` follows."""
        self.end_paragraph()
        if self._items:
            self.blocks.append(Block("list", items=tuple(" ".join(item) for item in self._items)))
        self._items = []
        self.blocks += more


def _read(blocks: Iterable[Block], rules: _Rules, spans_of_code: re.Pattern[str]) -> list[Block]:
    """The blocks with their inline markup read."""

    def plain(text: str) -> str:
        spans: list[str] = []

        def keep(match: re.Match[str]) -> str:  # what is code is no markup
            spans.append(code(match[match.re.groups]))
            return f"\ue003{len(spans) - 1}\ue004"

        text = spans_of_code.sub(keep, text)
        for pattern, instead in rules:
            text = pattern.sub(instead, text)
        text = text.replace("`", "")
        return " ".join(re.sub("\ue003(\\d+)\ue004", lambda m: spans[int(m[1])], text).replace("\ue003", "").split())

    return [Block(b.kind, plain(b.text), tuple(map(plain, b.items)), b.level) for b in blocks]


# AsciiDoc ----------------------------------------------------------------------------------------------------

_FENCED, _HIDE, _TITLE = (
    "\ue005",
    "\ue006",
    "\ue007",
)  # lines: a fenced block was here; hides what follows; the line before is a title
_ATTRIBUTE = re.compile(r":!?([\w-]{1,60})!?:(?:[ ]+(.*))?")
_REFERENCE = re.compile(r"\{([\w-]{1,60})\}")
_FENCE = re.compile(r"-{4,}|\.{4,}|={4,}|\*{4,}|\+{4,}|_{4,}|/{4,}|[|,:!]={3,}|`{3,}.*")
_HIDING = re.compile(
    r"\[\s*(?:source|listing|literal|quote|verse|note|tip|warning|important|caution|stem|pass|,)\b.*\]\Z", re.IGNORECASE
)
_IGNORED = re.compile(
    r"//(?!/)|(?:ifdef|ifndef|ifeval|endif|include|toc|image|video|audio)::|(?:<<<|'''|--)\Z|\.\w|\[.{0,300}\]\Z"
)
_ADMONITION = re.compile(r"(?:NOTE|TIP|WARNING|IMPORTANT|CAUTION): ")
_ADOC_HEADING = re.compile(r"(={1,6}|#{1,6})[ ]+(\S.*)")
_ADOC_ITEM = re.compile(r"[ ]*(\*{1,5}|-|\.{1,5}|\d{1,3}\.)[ ]+(?:\[[ x*]\][ ]+)?(\S.*)")
_ADOC_TERM = re.compile(r"(\S[^:]{0,100})(:{2,4})(?:[ ]+(.*))?")
_UNDERLINES = "=-~^+"
_SLACK = 2  # characters by which an underline may differ from its title
_MARKS = "*-.[|" + _FENCED + _HIDE + _TITLE
_ADOC_CODE = re.compile(r"`\+?([^`\n]{1,300}?)\+?`")
_BUILT_IN = {
    "cpp": "C++",
    "nbsp": " ",
    "sp": " ",
    "empty": "",
    "plus": "+",
    "amp": "&",
    "lt": "<",
    "gt": ">",
    "apos": "'",
}
_REFERENCES = 20  # in a line
_VALUE = 300  # characters of an attribute's value, since they may be made of each other
_TARGET = r"[^\s\[\]<>\ue000-\ue004]{1,500}"
_ADOC_INLINE: _Rules = [
    (re.compile(rf"(?:image|icon|footnote|footnoteref|anchor|indexterm|pass):{_TARGET}\[[^\[\]]{{0,500}}\]"), "\ue008"),
    (
        re.compile(
            r"(?:footnote|indexterm2?|pass|anchor):\[[^\[\]]{0,500}\]|\[\[[^\[\]]{1,100}\]\]|\(\(\([^()]{1,100}\)\)\)"
        ),
        "",
    ),
    (re.compile(r"(?:kbd|btn|menu|stem|latexmath):\w{0,40}\[([^\[\]]{0,200})\]"), r"\1"),
    (
        re.compile(rf"(?:link:|xref:|mailto:|(?=https?://|ftp://|irc://)){_TARGET}\[([^\[\]]{{1,500}})\]"),
        LINK + r"\1" + END,
    ),
    (re.compile(rf"(?:link:|xref:|mailto:)?({_TARGET})\[\]"), r"\1"),
    (re.compile(r"<<[^<>,]{1,200},([^<>]{1,200})>>|<<([^<>]{1,200})>>"), LINK + r"\1\2" + END),
    (re.compile(rf"\^?(?:,\s?(?:window|role|opts|title|id)=[^{END}]{{0,200}})?{END}"), END),
    (re.compile(rf"{LINK}\ue008*{END}|\ue008"), ""),
    (re.compile(r"(?<!\S)\+(?=\s|\Z)"), BREAK),
    (re.compile(r"\[[.#][\w.# -]{1,60}\](?=[#*_])"), ""),
    (re.compile(r"\+\+([^+]{1,200})\+\+"), r"\1"),
    (re.compile(r"(?<![\w*])\*{1,2}([^\s*](?:[^*]{0,300}[^\s*])?)\*{1,2}(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w_])_{1,2}([^\s_](?:[^_]{0,300}[^\s_])?)_{1,2}(?![\w_])"), r"\1"),
    (re.compile(r"(?<![\w#&])#([^\s#](?:[^#]{0,300}[^\s#])?)#(?![\w#])"), r"\1"),
    (re.compile(r"\((?:C|R|TM)\)"), ""),
]


def asciidoc(source: str) -> list[Block]:
    """The blocks of an AsciiDoc text. Conditions (`ifdef`) are taken as true."""
    seen = _Collector()
    gap, skipping = False, False  # a blank line was before; the rest of the paragraph or of the header is no prose
    for line in _adoc_lines(source):
        heading = _ADOC_HEADING.fullmatch(line)
        if not line:
            skipping = False
            seen.end_paragraph()
        elif line[0] == _TITLE:
            seen.end(Block("heading", " ".join(seen.take_lines()), level=int(line[1:])))
            skipping = line[1:] == "1"
        elif heading:
            seen.end(Block("heading", heading[2], level=len(heading[1])))
            skipping = len(heading[1]) == 1
        elif line == _FENCED:
            seen.end(CODE)
            skipping = False
        elif skipping:
            pass
        elif line == _HIDE or _ADMONITION.match(line) or (line[0] == " " and gap and not seen.in_list):
            seen.end(OTHER)
            skipping = True
        else:
            _adoc_text(seen, line, gap)
        gap = not line
    seen.end()
    return _read(seen.blocks, _ADOC_INLINE, _ADOC_CODE)


def _adoc_text(seen: _Collector, line: str, gap: bool) -> None:
    """A line of a paragraph or of a list."""
    item = _ADOC_ITEM.fullmatch(line) if seen.in_list or not seen.in_paragraph else None
    term = _ADOC_TERM.fullmatch(line)
    if item:
        seen.item(item[1].lstrip("0123456789"), item[2])
    elif term:
        seen.item(term[2], f"{term[1]}: {term[3] or ''}")
    elif line != "+":
        if gap:
            seen.end()
        seen.line(line)


def _adoc_lines(source: str) -> Iterator[str]:
    """The lines that may be prose, with values for attributes, and with the marks above for what was there instead of others."""
    values = dict(_BUILT_IN)
    fence = ""
    before, earlier = "", ""  # the two lines before
    for line in (line.rstrip() for line in source.split("\n")):
        fenced = _FENCE.fullmatch(line)
        if fence:
            fence = "" if fenced and line[:3] == fence else fence
            continue
        title = before and not earlier and len(set(line)) == 1 and abs(len(line) - len(before)) <= _SLACK
        if title and line[0] in _UNDERLINES and before[0] not in _MARKS and not before.startswith(". "):
            line = f"{_TITLE}{_UNDERLINES.index(line[0]) + 1}"
        elif fenced:
            fence = line[:3]
            if fence == "///":
                continue
            line = _FENCED
        elif attribute := _ATTRIBUTE.fullmatch(line):
            values[attribute[1].lower()] = _substituted(attribute[2] or "", values)[:_VALUE]
            continue
        elif _HIDING.match(line):
            line = _HIDE
        elif _IGNORED.match(line):
            continue
        before, earlier = line, before
        yield _substituted(line, values)


def _substituted(text: str, values: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda match: values.get(match[1].lower(), match[0]), text, count=_REFERENCES)


# Org -----------------------------------------------------------------------------------------------------------

_ORG_HEADING = re.compile(r"(\*{1,8})[ ]+(?:(?:TODO|DONE)[ ]+)?(\S.*?)(?:[ ]+:[\w:@]+:)?")
_ORG_ITEM = re.compile(r"([ ]*)(?:[-+]|\d{1,3}[.)])[ ]+(?:\[[ X-]\][ ]+)?(\S.*)")
_IMAGE = r"[^\]\[]{1,500}\.(?:png|svg|gif|jpe?g|webp)(?:\?[^\]\[]{0,200})?"
_ORG_INLINE: _Rules = [
    (re.compile(rf"\[\[{_IMAGE}\]\]|\[\[[^\[\]]{{1,500}}\]\[{_IMAGE}\]\]", re.IGNORECASE), ""),
    (re.compile(r"\[\[[^\[\]]{1,500}\]\[([^\[\]]{1,300})\]\]"), LINK + r"\1" + END),
    (re.compile(r"\[\[([^\[\]]{1,500})\]\]"), LINK + r"\1" + END),
    (re.compile(r"@@[^@]{0,300}@@|\[fn:[^\[\]]{1,300}\]|\{\{\{[^{}]{1,200}\}\}\}|<[a-zA-Z/][^<>]{0,300}>"), ""),
    (re.compile(r"\\\\(?=\s|\Z)"), BREAK),
    *(
        (re.compile(rf"(?<![\w{m}]){m}([^\s{m}](?:[^{m}]{{0,300}}[^\s{m}])?){m}(?![\w{m}])"), r"\1")
        for m in (r"\*", "/", "_", r"\+")
    ),
    (re.compile(r" :: "), ": "),
]
_ORG_CODE = re.compile(r"(?<![\w=~`\[/])([=~])([^\s=~](?:[^=~\n]{0,300}[^\s=~])?)\1(?![\w=~])")


def org(source: str) -> list[Block]:
    """The blocks of an Org text."""
    seen = _Collector()
    closing, gap = "", False  # the line that ends what is skipped; a blank line was before
    for line in (line.rstrip() for line in source.split("\n")):
        word = line.strip().lower()
        item = _ORG_ITEM.fullmatch(line)
        if closing:
            closing = "" if word.startswith(closing) else closing
        elif not word:
            seen.end_paragraph()
        elif heading := _ORG_HEADING.fullmatch(line):
            seen.end(Block("heading", heading[2], level=len(heading[1]) + 1))
        elif word.startswith("#+begin_"):
            seen.end(CODE)
            closing = "#+end_" + word[len("#+begin_") :].partition(" ")[0]
        elif word in (":properties:", ":logbook:", ":toc:"):
            closing = ":end:"
        elif word.startswith("#+title:"):
            seen.end(Block("heading", line.strip()[len("#+title:") :].strip(), level=1))
        elif word.startswith(("|", ": ")) or word == ":":
            seen.end(CODE)
        elif item:
            seen.item(item[1], item[2])
        elif not word.startswith(("#+", "# ")):
            if gap and seen.in_list and not line.startswith(" "):
                seen.end()
            seen.line(line.strip())
        gap = not word
    seen.end()
    return _read(seen.blocks, _ORG_INLINE, _ORG_CODE)


# Plain text ------------------------------------------------------------------------------------------------------

_PLAIN_ITEM = re.compile(r"([ ]{0,8})(?:(?:[-*+o•]|\d{1,2}[.)])[ ]+|-(?=[A-Z][A-Za-z]))(\S.*)")
_RULE = re.compile(r"[ ]*([=\-~*#^_+.])\1{2,}[ ]*")
_CLAUSE = re.compile(
    r"(?:\S+ ){1,3}(?:is|are|does|do|has|have|can|provides|supports|offers|includes|works|needs)\b.*:\Z"
)
_TITLE_WORDS = 6
_SENTENCE_WORDS = 8
_DEEP = 2  # spaces that set apart what is no prose


def plain(source: str) -> list[Block]:
    """The blocks of a plain text. Titles are underlined, in capitals, or short lines by themselves."""
    seen = _Collector()
    gap, opens = True, False
    for line in (line.rstrip() for line in textwrap.dedent(source).split("\n")):
        item = _PLAIN_ITEM.fullmatch(line) if seen.in_list or gap or opens else None
        if not line:
            _plain_end(seen)
        elif _RULE.fullmatch(line):
            title = seen.take_lines()
            seen.end(*[Block("heading", " ".join(title), level=1 + bool(seen.blocks))] if len(title) == 1 else [])
        elif item:
            seen.item(item[1], item[2])
        else:
            if gap and seen.in_list and not line.startswith(" "):
                seen.end()
            seen.line(line)
        gap = not line or bool(_RULE.fullmatch(line))
        opens = line.endswith(":")
    _plain_end(seen)
    seen.end()
    return seen.blocks


def _plain_end(seen: _Collector) -> None:
    """A paragraph ends: it is a title, or set apart as code is, or prose."""
    lines = seen.take_lines()
    text = " ".join(line.strip() for line in lines)
    words = len(text.split())
    if not lines:
        return
    deep = all(line.startswith(" " * _DEEP) for line in lines)
    sentence = words >= _SENTENCE_WORDS and text[0].isupper() and text.endswith((".", "!", "?", ":", ")"))
    short = len(lines) == 1 and words <= _TITLE_WORDS and (text.isupper() or not text.endswith((".", "!", "?", ",")))
    if short and (text.isupper() or not (deep or _CLAUSE.match(text))):
        seen.end(Block("heading", text.rstrip(":"), level=1 + bool(seen.blocks)))
    elif deep and not sentence:
        seen.end(CODE)
    else:
        seen.end(Block("paragraph", " ".join(text.split())))
