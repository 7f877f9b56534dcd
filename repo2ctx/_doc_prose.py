"""Module documentation -> the prose at its beginning, whatever the markup: reStructuredText, Google style, Markdown, godoc, HTML.

Titles, badges and lines for editors are passed over; the first thing that is not prose after the first paragraph ends it.
Linear in the text, of which only the beginning is read.
"""

from __future__ import annotations

import html
import re

_READ = 40_000  # characters of a documentation that are read
_FEWEST_WORDS = 4  # a shorter first paragraph that is no sentence is a title
_TITLE_WORDS = 8  # a line without a full stop that is no longer is a heading, where prose goes before it

_LEGAL = re.compile(
    r"\W*(?:copyright\b|\(c\)|©|spdx-|licen[cs]ed? |permission is hereby|redistribution and use|all rights reserved"
    r"|this (?:file|code|software|program|module|library) (?:is|was) (?:part of|licen[cs]ed|free software|distributed"
    r"|released|subject)|use of this source code|the (?:mit|bsd|apache) licen|you may not use|released under"
    r"|distributed under|unless required by)",
    re.IGNORECASE,
)
_EDITOR = re.compile(
    r"\W*(?:-\*-|vim?:|coding[:=]|\$\w+(?::[^$]*)?\$|<!--|eslint|jshint|pylint:|noqa|type: ignore|@ts-)", re.IGNORECASE
)
_STOP = re.compile(
    r"(?:basic |typical |simple |quick )?(?:usage|example|install|licen[cs]e|copyright|quick ?start|getting started|synopsis"
    r"|see also|attributes|args|arguments|parameters|params|returns|raises|yields|notes?|references|todo|warnings?|exports"
    r"|functions|classes|modules|submodules|subpackages|contents|requirements|authors?|credits|version|changelog|history"
    r"|contact|homepage|website|documentation|docs|links|features|table of contents|feature flags|cargo features|options"
    r"|environment variables)s?(?:\b[\w ]{0,40}:{1,2})?\s*\Z",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r":[\w ]{1,40}(?:`[^`]*`)?:(?:\s|\Z)|@\w+|\\\w+|(?:author|version|date|license|copyright|contact|homepage|url|e-?mail|see"
    r"|maintainer|usage|example|note|warning|todo)s?:\s",
    re.IGNORECASE,
)
_NOT_PROSE = re.compile(
    r"[-*+•] |\d{1,2}[.)] |>>> |\.\. |```|~~~|\||<\w|\$ |#\[|\[\w[^\]]*\]:|\+[-=]{3}|(?:from [\w.]+ )?import \w"
)
_POINTER = re.compile(
    r"(?:please )?(?:see|visit|read|refer to|check out|consult|for (?:more|details|further|full|documentation)"
    r"|(?:more|further|full|detailed|complete) (?:info|detail|doc)\w*|documentation (?:is|can|for)"
    r"|this (?:file|module|package) is part of)\b",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"\b(?:follow|below|these|example|usage|like|support|provid|feature|such as|contain|includ)", re.IGNORECASE
)
_IS = re.compile(r"[\w`. -]{1,40}? (?:is|are) (?:an?|the)\b")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*\Z")
_HEADING = re.compile(r"#{1,6}[ \t]+(.*)")
_IMAGE = r"!\[[^\]]{0,300}\](?:\([^)]{0,500}\)|\[[^\]]{0,300}\])"
_BADGE = re.compile(rf"\[{_IMAGE}\](?:\([^)]{{0,500}}\)|\[[^\]]{{0,300}}\])?|{_IMAGE}")

_MARKUP = [
    (re.compile(r"(?<![\w`])(?::\w{1,30}){1,3}:`([^`<>]{1,200})<[^`<>]{1,200}>`"), lambda m: m[1].strip()),
    (re.compile(r"(?<![\w`])(?::\w{1,30}){1,3}:`[~!]?([^`]{1,200})`"), lambda m: f"`{m[1].strip()}`"),
    (re.compile(r"``([^`]{1,300})``"), lambda m: f"`{m[1].strip()}`"),
    (re.compile(r"`([^`<>]{1,200}?)\s*<[^`<>\s]{1,300}>`__?"), lambda m: m[1]),
    (re.compile(r"`([^`]{1,200})`__?(?!\w)"), lambda m: m[1]),
    (re.compile(r"\[([^\[\]]{1,300})\](?:\([^()\s]{0,500}\)|\[[^\[\]]{0,200}\])"), lambda m: m[1]),
    (re.compile(r"\[(`[^`\[\]]{1,200}`)\]"), lambda m: m[1]),
    (re.compile(r"(?<![\w*`])\[([A-Z][\w. *]{0,100})\](?![\w(\[:])"), lambda m: m[1]),
    (re.compile(r"\*{3}([^*`\s]{1,100})\*{3}"), lambda m: m[1]),
    (re.compile(r"(?<![\w*])\*\*([^*`]{1,300})\*\*(?![\w*])"), lambda m: m[1]),
    (re.compile(r"(?<![\w*])\*([^*`\s](?:[^*`]{0,300}[^*`\s])?)\*(?![\w*])"), lambda m: m[1]),
    (re.compile(r"(?<![\w_])__([^_`]{1,300})__(?![\w_])"), lambda m: m[1]),
    (re.compile(r"(?<![\w_])_([^_`\s](?:[^_`]{0,300}[^_`\s])?)_(?![\w_])"), lambda m: m[1]),
    (re.compile(r"(?<=\w)_(?=[\s.,;:)]|\Z)"), lambda m: ""),
]


def prose(text: str) -> str:
    """Plain paragraphs with a blank line between; "" if the text does not begin with any."""
    lines = [line.rstrip() for line in text[:_READ].expandtabs().split("\n")]
    kept: list[str] = []
    for i, (paragraph, underlined) in enumerate(_paragraphs(lines)):
        first = paragraph[0]
        joined = " ".join(" ".join(paragraph).split())
        heading = _HEADING.match(first)
        title = heading[1] if heading else first if underlined else ""
        if title and i == 0:  # the project's name, whatever it is
            continue
        if (
            _LEGAL.match(joined)
            or _STOP.match(first)
            or _STOP.match(f"{title}:" if title else joined)
            or (title and kept)
        ):
            break
        if title or _EDITOR.match(joined) or (not kept and not _BADGE.sub("", joined).strip()):
            continue
        if first[:1] == " " or _FIELD.match(joined) or _NOT_PROSE.match(joined):
            break
        said, goes_on = _said(paragraph)
        if _POINTER.match(said):
            continue
        words = len(said.split())
        if (
            kept
            and goes_on
            and len(paragraph) == 1
            and words <= _TITLE_WORDS
            and not said.endswith((".", "!", "?", ")", ":", "`"))
        ):
            break  # a heading
        if said and (kept or words >= _FEWEST_WORDS or said.endswith((".", "!"))):
            kept.append(said)
        if not goes_on:
            break
    return "\n\n".join(kept)


def _paragraphs(lines: list[str]) -> list[tuple[list[str], bool]]:
    """Lines between blank ones, and whether they are a title with a line of marks below."""
    found: list[tuple[list[str], bool]] = []
    current: list[str] = []
    for line in [*lines, ""]:
        if line.strip() and _UNDERLINE.match(line) and len(current) == 1 and not current[0].startswith(" "):
            found.append((current, True))
            current = []
        elif line.strip() and (_HEADING.match(line) or _EDITOR.match(line)):
            found += [(current, False)] * bool(current) + [([line], False)]
            current = []
        elif line.strip():
            if not (_UNDERLINE.match(line) and not current):
                current.append(line)
        elif current:
            found.append((current, False))
            current = []
    return found


def _said(paragraph: list[str]) -> tuple[str, bool]:
    """The prose of a paragraph, and whether more may follow: not after a list, a field, code, or what leads in to them."""
    goes_on = True
    taken: list[str] = []
    for i, line in enumerate(paragraph):
        stripped = line.strip()
        if i and (
            _FIELD.match(stripped) or _NOT_PROSE.match(stripped) or _STOP.match(stripped) or _LEGAL.match(stripped)
        ):
            goes_on = False
            break
        taken.append(stripped)
    text = plain(" ".join(taken))
    if text.endswith(":") and _IS.match(text) and not _LEAD_IN.search(text):
        return re.sub(r"\s*:+\Z", ".", text), False
    if text.endswith(":"):
        return " ".join(re.split(r"(?<=[.!?]) ", text)[:-1]), False
    return text, goes_on


def plain(text: str) -> str:
    """Words without markup; code stays in backticks, links leave their text."""
    text = _BADGE.sub("", text)
    for pattern, words in _MARKUP:
        text = pattern.sub(words, text)
    return " ".join(text.split())


_CODE_TAG = re.compile(
    r"\{@(?:code|literal)\s+([^{}]{0,500})\}|<(?:code|tt|kbd)>([^<>]{0,500})</(?:code|tt|kbd)>", re.IGNORECASE
)
_LINK_TAG = re.compile(r"\{@link(?:plain)?\s+([^\s{}]{1,300})(?:\s+([^{}]{0,500}))?\}")
_INLINE_TAG = re.compile(r"\{@\w+[^{}]{0,500}\}")
_BREAK = re.compile(r"</?(?:p|div|br|blockquote)\b[^<>]{0,200}/?>", re.IGNORECASE)
_END = re.compile(r"<(?:ul|ol|dl|pre|table|h[1-6]|hr|img)\b", re.IGNORECASE)
_TITLE = re.compile(r"\s*<h[1-6][^<>]{0,200}>[^<>]{0,200}</h[1-6]>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,500}>")


def javadoc_markup(text: str) -> str:
    """Javadoc or JSDoc as plain paragraphs, up to the first list, table, heading or code block."""
    text = re.sub(r"^[ \t]+", "", text[:_READ], flags=re.MULTILINE)
    if title := _TITLE.match(text):
        text = text[title.end() :]
    end = _END.search(text, 1) if text.strip() else None
    if end and _TAG.sub("", text[: end.start()]).strip():
        text = text[: end.start()]
    text = _CODE_TAG.sub(lambda m: f"`{(m[1] or m[2] or '').strip()}`", text)
    text = _LINK_TAG.sub(lambda m: m[2] or re.sub(r"^[\w.]*\.(?=[A-Z])|^#", "", m[1]).replace("#", "."), text)
    text = _BREAK.sub("\n\n", _INLINE_TAG.sub("", text))
    return html.unescape(_TAG.sub("", text))
