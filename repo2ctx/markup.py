"""Markdown, HTML and reStructuredText -> blocks of plain text, for `prose.py`; `light_markup.py` reads the other formats.

A block's text keeps `code` in backticks and three marks: where a link begins and ends, and where a line was broken on purpose.
Everything else of the markup is gone: images, tags, targets, emphasis, comments. Code, and tables, admonitions and whatever
else is no prose, leave an empty block. Nothing is included, fetched or run. Only the beginning of a text is read, so the
cost has a bound.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Literal

import docutils.core
from docutils import nodes
from markdown_it import MarkdownIt
from markdown_it.token import Token

LINK, END, BREAK = "\ue000", "\ue001", "\ue002"
"""Marks in a block's text: a link begins, a link ends, a line was broken on purpose."""
PSEUDO = 9
"""The level of a heading that is none by its markup: a short paragraph in bold."""

_READ = 60_000  # characters of a README that are read
_LINES = 1500
_LINE = 10_000  # characters: a line of prose is not longer
_WIDE = 400  # characters: a line that is longer is prose only if it is letters for the most part
_PSEUDO_WORDS = 5
_TAGLINE_WORDS = 6
_REPEATED = re.compile(r"([\[\](){}<>*_`~!|\\])\1{49,}")  # nobody writes so many in a row, and parsers are slow on them
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b-\u200f\u2028\u2029\ue000-\ue00f\ufeff\ufffe\uffff]")

Kind = Literal["heading", "paragraph", "quote", "list", "code", "other"]


@dataclass(frozen=True, slots=True)
class Block:
    """text: of a heading, paragraph or quote; items: of a list; level: of a heading, 1 is the title."""

    kind: Kind
    text: str = ""
    items: tuple[str, ...] = ()
    level: int = 0


OTHER, CODE = Block("other"), Block("code")


def prepared(text: str) -> str:
    """The beginning of a text without what is no text, and without what only makes a parser slow."""
    if len(text) > _READ:
        text = text[: max(text.rfind("\n\n", 0, _READ), 0) or _READ]  # not within a paragraph
    text = _UNREADABLE.sub("", text).replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    return "\n".join(_REPEATED.sub("", line) if _is_text(line) else "" for line in text.split("\n")[:_LINES])


def _is_text(line: str) -> bool:
    """Not a wide table, a drawing or data: parsers are slow on them."""
    return len(line) <= _WIDE or (len(line) <= _LINE and sum(map(str.isalpha, line)) * 2 >= len(line))


def code(text: str) -> str:
    """A code span."""
    words = " ".join(text.replace("`", "").split())
    return f"`{words}`" if words else ""


# HTML ------------------------------------------------------------------------------------------------------


_EMPHASIS = re.compile(r"(?<![\w*`])\*{1,2}(\w[^*`]{0,100}\w)\*{1,2}(?![\w*`])")


class _Html(HTMLParser):
    """HTML fed piece by piece -> blocks. What is in a table or in `details` is no prose, whatever else is fed meanwhile."""

    _HIDDEN = frozenset({"table", "details", "pre", "script", "style", "svg", "video", "head", "figure"})
    _LASTING = frozenset({"table", "details"})  # their Markdown goes on after a blank line
    _BLOCK = frozenset("p div center section header article blockquote br ul ol dl dt dd hr main figcaption".split())

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self._hidden: list[str] = []
        self._text: list[str] = []
        self._items: list[str] | None = None
        self._linking = False

    @property
    def hiding(self) -> bool:
        return bool(self._hidden)

    def take(self, source: str) -> list[Block]:
        """The blocks of one more piece of HTML."""
        self.blocks = []
        self.feed(source)
        self.close()
        self.reset()
        self._flush("paragraph")
        self._end_list()
        self._text, self._linking = [], False
        self._hidden = [tag for tag in self._hidden if tag in self._LASTING]
        return self.blocks

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._HIDDEN:
            if not self._hidden:
                self._flush("paragraph")
                self.blocks.append(OTHER)
            self._hidden.append(tag)
        elif tag == "br":
            self._text.append(BREAK)
        elif tag == "a":
            self._text.append(LINK)
            self._linking = True
        elif tag in ("code", "kbd", "tt"):
            self._text.append("`")
        elif tag == "li":
            self._flush("paragraph")
            self._items = [] if self._items is None else self._items
        elif tag in self._BLOCK or re.fullmatch(r"h[1-6]", tag):
            self._flush("paragraph")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._HIDDEN:
            if tag in self._hidden:
                del self._hidden[len(self._hidden) - 1 - self._hidden[::-1].index(tag) :]
        elif tag == "a":
            self._text.append(END)
            self._linking = False
        elif tag in ("code", "kbd", "tt"):
            self._text.append("`")
        elif re.fullmatch(r"h[1-6]", tag):
            self._flush("heading", int(tag[1]))
        elif tag in ("ul", "ol"):
            self._flush("paragraph")
            self._end_list()
        elif tag == "li" or tag in self._BLOCK:
            self._flush("paragraph")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._text.append(data)

    def _flush(self, kind: Kind, level: int = 0) -> None:
        text = _EMPHASIS.sub(r"\1", " ".join("".join([*self._text, END * self._linking]).split()))
        self._text = [LINK] * self._linking
        if kind == "heading" and level > 1 and (len(text.split()) > _TAGLINE_WORDS or text.endswith(".")):
            kind = "paragraph"  # a tagline in large letters
        if text.count("`") % 2:
            text = text.replace("`", "")
        if self._items is not None and kind == "paragraph" and text:
            self._items.append(text)
        elif text.strip(BREAK + LINK + END + " "):
            self.blocks.append(Block(kind, text, level=level))

    def _end_list(self) -> None:
        if self._items is not None:
            self.blocks.append(Block("list", items=tuple(self._items)))
        self._items = None


# Markdown --------------------------------------------------------------------------------------------------

_FRONT_MATTER = re.compile(r"\A\s*(---|\+\+\+)[ ]*\n(?:(?!\1)[^\n]*\n){0,200}?\1[ ]*(?:\n|\Z)")
_LEFT_OVER = [
    (re.compile(r"!\[[^\[\]]{0,300}\](?:\([^()\s]{0,500}\)|\[[^\[\]]{0,200}\])"), ""),  # an image without a definition
    (re.compile(r"\[([^\[\]]{0,300})\](?:\([^()\s]{0,500}\)|\[[^\[\]]{0,200}\])"), LINK + r"\1" + END),
    (re.compile(r"\[\^[^\[\]\s]{1,40}\]"), ""),  # a footnote's mark
]
_TASK = re.compile(r"\[[ xX]\] ")
_TAG_NAME = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")


@functools.cache
def _markdown_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def markdown(source: str) -> list[Block]:
    """The blocks of a Markdown text, HTML in it included."""
    found: list[Block] = []
    tokens = _markdown_parser().parse(_FRONT_MATTER.sub("", source))
    page = _Html()
    at = 0
    while at < len(tokens):
        token = tokens[at]
        end = _end_of(tokens, at)
        if token.type == "html_block":
            found += page.take(token.content)
        elif page.hiding:
            for child in (child for inner in tokens[at:end] for child in inner.children or ()):
                if child.type == "html_inline" and child.content.startswith("</"):
                    page.take(child.content)
        elif token.type == "heading_open":
            found.append(Block("heading", _inline(tokens[at + 1]), level=int(token.tag[1])))
        elif token.type == "paragraph_open":
            found.append(_paragraph(tokens[at + 1]))
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            found.append(Block("list", items=tuple(_items(tokens[at:end]))))
        elif token.type == "blockquote_open":
            found.append(_quote(tokens[at:end]))
        elif token.type != "hr":
            found.append(CODE if token.type in ("fence", "code_block") else OTHER)
        at = end
    return found


def _end_of(tokens: Sequence[Token], at: int) -> int:
    """The index behind the token that closes the one at `at`."""
    depth = 0
    for end in range(at, len(tokens)):
        depth += tokens[end].nesting
        if depth <= 0:
            return end + 1
    return len(tokens)


def _paragraph(token: Token) -> Block:
    """A paragraph, or the heading that a short one in bold stands for."""
    text = _inline(token)
    parts = [child for child in token.children or () if child.type != "text" or child.content.strip()]
    bold = bool(parts) and parts[0].type == "strong_open" and _end_of(parts, 0) == len(parts)
    if bold and len(text.split()) <= _PSEUDO_WORDS and not text.endswith("."):
        return Block("heading", text, level=PSEUDO)
    return Block("paragraph", text)


def _quote(tokens: Sequence[Token]) -> Block:
    """A quotation of one paragraph, which may be a tagline."""
    kinds = [token.type for token in tokens[1:-1]]
    if kinds != ["paragraph_open", "inline", "paragraph_close"] or tokens[2].content.startswith("[!"):
        return OTHER
    return Block("quote", _inline(tokens[2]))


def _items(tokens: Sequence[Token]) -> Iterator[str]:
    """The items of a list, without the lists and the code in them."""
    depth, parts = 0, [""]
    for token in tokens:
        depth += token.nesting if token.type.endswith(("list_open", "list_close", "quote_open", "quote_close")) else 0
        if depth == 1 and token.type == "inline":
            parts.append(_inline(token))
        elif depth == 1 and token.type == "list_item_close":
            yield _TASK.sub("", " ".join(" ".join(parts).split()), count=1)
            parts = []


def _inline(token: Token) -> str:
    parts: list[str] = []
    struck = 0
    for child in token.children or ():
        struck += child.nesting if child.type in ("s_open", "s_close") else 0
        if struck:
            continue
        if child.type == "text":
            parts.append(child.content)
        elif child.type == "code_inline":
            parts.append(code(child.content))
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" " if child.type == "softbreak" else BREAK)
        elif child.type in ("link_open", "link_close"):
            parts.append(LINK if child.nesting > 0 else END)
        elif child.type == "html_inline" and (tag := _TAG_NAME.match(child.content)):
            name = tag[2].lower()
            marks = {"br": BREAK, "a": END if tag[1] else LINK, "code": "`", "kbd": "`", "tt": "`"}
            parts.append(marks.get(name, " " if name in ("p", "div", "li") else ""))
    text = "".join(parts)
    for pattern, instead in _LEFT_OVER:
        text = pattern.sub(instead, text)
    text = " ".join(html.unescape(text).split())
    return text.replace("`", "") if text.count("`") % 2 else text


# reStructuredText --------------------------------------------------------------------------------------------

_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "warning_stream": False,
    "doctitle_xform": False,
    "_disable_config": True,
    "line_length_limit": _READ,
}
_DATE = re.compile(r"^[ \t]*\.\.[ \t]+\|[^|\n]+\|[ \t]+date::.*$", re.MULTILINE)  # would be the time of the build
_ROLE = re.compile(
    r"(?<![\w`:]):(?P<role>[\w+.-]{1,40}(?::[\w+.-]{1,40}){0,2}):`(?P<text>[^`\n]{1,200}(?:\n[^`\n]{1,200})?)`"
)
_TITLED = re.compile(r"(?P<title>[^<>]{1,200}?)\s*<[^<>]{1,300}>")
_WORDS = frozenset({"ref", "doc", "term", "numref", "any", "download", "abbr", "emphasis", "strong", "menuselection"})
_PREFIX = {"pep": "PEP ", "rfc": "RFC ", "issue": "#", "gh": "#", "pr": "#"}


def _plain_role(match: re.Match[str]) -> str:
    """A Sphinx role as words or as code: :class:`~a.B` is ``a.B``."""
    role = match["role"].rpartition(":")[2]
    if titled := _TITLED.fullmatch(match["text"]):
        return titled["title"]
    text = match["text"].lstrip("~!")
    if role in _PREFIX:
        return _PREFIX[role] + text
    if role in ("math", "sub", "sup", "raw"):
        return text
    return text if role in _WORDS or role.startswith(("pypi", "user")) else f"``{text}``"


def restructured(source: str) -> list[Block]:
    """The blocks of a reStructuredText; none if docutils cannot read it."""
    source = _ROLE.sub(_plain_role, _DATE.sub("", source))
    try:
        document = docutils.core.publish_doctree(source, settings_overrides=_SETTINGS)
        found: list[Block] = []
        _walk(document, 0, found)
    except Exception:  # noqa: BLE001 - docutils raises many kinds on broken input; such a text says nothing
        return []
    return found


def _walk(holder: nodes.Element, depth: int, found: list[Block]) -> None:
    for node in holder.children:
        if isinstance(node, nodes.title):
            found.append(Block("heading", _words(node), level=depth))
        elif isinstance(node, nodes.section | nodes.container | nodes.compound | nodes.Decorative):
            _walk(node, depth + isinstance(node, nodes.section), found)
        elif isinstance(node, nodes.paragraph):
            found.append(_rst_paragraph(node))
        elif isinstance(node, nodes.line_block):
            found.append(Block("paragraph", BREAK.join(_words(line) for line in node.findall(nodes.line))))
        elif isinstance(node, nodes.bullet_list | nodes.enumerated_list):
            found.append(Block("list", items=tuple(_rst_item(item) for item in node.children)))
        elif isinstance(node, nodes.definition_list):
            items = [
                [_rst_item(part) for part in item.children] for item in node.children if isinstance(item, nodes.Element)
            ]
            found.append(Block("list", items=tuple(": ".join(filter(None, parts)) for parts in items)))
        elif isinstance(node, nodes.block_quote):
            texts = [_words(child) for child in node.children]
            found.append(Block("quote", texts[0]) if len(texts) == 1 else OTHER)
        elif not isinstance(
            node, nodes.Invisible | nodes.image | nodes.transition | nodes.target | nodes.system_message
        ):
            found.append(CODE if isinstance(node, nodes.literal_block | nodes.doctest_block) else OTHER)


def _rst_paragraph(node: nodes.paragraph) -> Block:
    text = _words(node)
    if len(node.children) == 1 and isinstance(node.children[0], nodes.strong) and len(text.split()) <= _PSEUDO_WORDS:
        return Block("heading", text, level=PSEUDO)
    return Block("paragraph", text)


def _rst_item(item: nodes.Node) -> str:
    if isinstance(item, nodes.term):
        return _words(item)
    return " ".join(_words(child) for child in item.children if isinstance(child, nodes.paragraph))


def _words(node: nodes.Node) -> str:
    """The words of a node with the marks of `Block`."""
    parts: list[str] = []

    def add(node: nodes.Node) -> None:
        if isinstance(node, nodes.literal):
            parts.append(code(node.astext()))
        elif isinstance(node, nodes.reference):
            parts.append(LINK)
            for child in node.children:
                add(child)
            parts.append(END)
        elif isinstance(node, nodes.Text):
            parts.append(str(node))
        elif isinstance(node, nodes.problematic):
            parts.append(re.sub(r"[|`_*]", "", node.astext()) if not node.astext().startswith("|") else "")
        elif not isinstance(
            node, nodes.image | nodes.footnote_reference | nodes.citation_reference | nodes.system_message
        ):
            for child in node.children:
                add(child)

    add(node)
    return " ".join("".join(parts).replace("\x00", "").split())
