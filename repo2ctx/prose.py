"""The summary prose of a README: which file it is, and what its lead section says. Pure.

`markup.py` and `light_markup.py` turn a README into blocks, `sentences.py` judges sentences; here they become paragraphs.
Only the beginning of a README is read, so that the cost has a bound.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from repo2ctx.light_markup import asciidoc, org, plain
from repo2ctx.markup import CODE, OTHER, PSEUDO, Block, markdown, prepared, restructured
from repo2ctx.phrases import ABOUT_DOCS, DEFINES, DESCRIBES, DESCRIBES_OTHERS, STOPS, TITLE_STOPS
from repo2ctx.sentences import first_sentence, is_notice, is_statement, items_said, opens_list, said, unmarked

__all__ = ["described", "first_sentence", "is_readme", "lead", "readmes", "tidy"]

# Which file ------------------------------------------------------------------------------------------------------

_SUFFIXES = (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".rst", ".adoc", ".asciidoc", ".org", ".txt", "")
_PLACES = ("", ".github", "docs", "doc")
_LANGUAGES = frozenset(
    "ar az be bg bn br ca cn cs cz da de dk el es et eu fa fi fil fr ga ge gl gr gu he hi hr hu hy id ie il in ir is"
    " it ja jp ka kk km kn ko"
    " kr ku ky lt lv mk ml mn mr ms my nb ne nl nn no pa pl pt ro ru se si sk sl sq sr sv sw ta te tg th tl tr tw ua"
    " ug uk ur uz vi vn zh zht zhs"
    " ara ben ces chs cht chi deu dut ell esp fra fre ger heb hin hun ind ita jpn kor nld pol por rum rus spa swe tha"
    " tur ukr vie zho"
    " arabic chinese czech dutch french german hindi indonesian italian japanese korean persian polish portuguese"
    " russian spanish swedish"
    " thai turkish ukrainian vietnamese cantonese".split()
)
_ENGLISH = frozenset({"en", "eng", "english"})
_FOREIGN_NAMES = frozenset(
    "leiame leia-me leia_me lisezmoi lisez-moi lisez_moi liesmich lies-mich lies_mich leeme léeme leame léame leggimi"
    " czytajto czytajmnie"
    " leesmij beniokul benioku beni-oku okubeni oku-beni lueminut läsmig lasmig ctime čtimě cteme čtěme прочти читай"
    " прочитай 说明 說明 説明"
    " 自述 自述文件 はじめに お読みください 읽어주세요 읽어보기".split()
)
_NAME = re.compile(r"(?P<stem>read[ _-]?me)(?:[._ -](?P<rest>.*))?", re.IGNORECASE)
_TRANSLATIONS = re.compile(
    r"(?:(?:docs?|\.github|assets)/)?(?:i18n|l10n|translations?|locales?|langs?|languages?"
    r"|readmes?)(?:/[a-z]{2,3}(?:[_-][a-z]{2,4})?)?",
    re.IGNORECASE,
)
_DOCS_LANGUAGE = re.compile(r"(?:docs?|\.github)/(?P<language>[a-z]{2,3})(?:[_-][a-z]{2,4})?", re.IGNORECASE)
_TEMPLATES = (
    ".in",
    ".tpl",
    ".tmpl",
    ".template",
    ".j2",
    ".jinja",
    ".jinja2",
    ".erb",
    ".ejs",
    ".hbs",
    ".mustache",
    ".gotmpl",
)
_MADE_FROM = (
    *_SUFFIXES,
    ".html",
    ".htm",
    ".pod",
    ".rdoc",
    ".textile",
    ".wiki",
    ".mediawiki",
    ".rmd",
    ".qmd",
    ".ipynb",
    ".creole",
    ".typ",
    ".tex",
)


@dataclass(frozen=True, slots=True)
class _Readme:
    """A README's name taken apart. language: "" if the name has none; known: whether there is nothing else in it."""

    language: str
    suffix: str
    known: bool


def _taken_apart(name: str) -> _Readme | None:
    """A file's name, if it is that of a README in any language or format."""
    base, suffix = posixpath.splitext(name.lower())
    if suffix in _TEMPLATES:
        made = _taken_apart(base)
        return made and _Readme(made.language, made.suffix, known=False)
    if suffix not in _MADE_FROM:
        base, suffix = base + suffix, ""
    if base in _FOREIGN_NAMES:
        return _Readme("xx", suffix, known=True)
    match = _NAME.fullmatch(base)
    if match is None:
        return None
    code = re.split(r"[._ -]", match["rest"] or "")[0]
    if not match["rest"]:
        return _Readme("", suffix, known=True)
    if code in _ENGLISH:
        return _Readme("en", suffix, known=True)
    if code in _LANGUAGES:
        return _Readme(code, suffix, known=True)
    code_file = suffix == "" and "." in base and "-" not in base and "_" not in base
    return None if code_file else _Readme("", suffix, known=False)


def is_language(folder: str) -> bool:
    """Whether a folder's name is the code or the name of a human language: de, zh-CN, english."""
    return re.split(r"[._-]", folder.lower())[0] in _LANGUAGES | _ENGLISH


def is_readme(path: str) -> bool:
    """Whether a path is a README of the repository itself, in any language or format, where hosts and people look for one."""
    folder, name = posixpath.split(path)
    folder = folder.lower()
    readme = _taken_apart(name)
    if readme is None:  # readmes/zh-CN.md
        stem, suffix = posixpath.splitext(name.lower())
        here = re.fullmatch(r"(?:docs?/|\.github/)?readmes?", folder) is not None
        return here and suffix in _SUFFIXES and is_language(stem)
    language = _DOCS_LANGUAGE.fullmatch(folder)
    return (
        folder in _PLACES
        or bool(_TRANSLATIONS.fullmatch(folder))
        or (language is not None and is_language(language["language"]))
    )


def readmes(paths: Iterable[str]) -> list[str]:
    """The READMEs to take a summary from, in the order to try them: those named as English first, then the root's, then those
    of .github/ and docs/. None that is named as a translation."""
    found = []
    for path in paths:
        folder, name = posixpath.split(path)
        readme = _taken_apart(name)
        if (
            readme
            and readme.known
            and readme.language in ("", "en")
            and folder.lower() in _PLACES
            and readme.suffix in _SUFFIXES
        ):
            found.append((not readme.language, _PLACES.index(folder.lower()), _SUFFIXES.index(readme.suffix), path))
    return [path for *_, path in sorted(found)]


def tidy(text: str) -> str:
    """One blank line between paragraphs, single spaces within them, no half of a surrogate pair."""
    text = text.encode("utf-8", "replace").decode()
    return "\n\n".join(" ".join(p.split()) for p in re.split(r"\n\s*\n", text.strip()) if p.strip())


# What it says ----------------------------------------------------------------------------------------------------

_READERS: Mapping[str, Callable[[str], list[Block]]] = {
    ".rst": restructured,
    ".adoc": asciidoc,
    ".asciidoc": asciidoc,
    ".org": org,
    ".txt": plain,
    "": plain,
}
_MARKDOWN_IN_PLAIN = re.compile(r"\A\s*#{1,3} \S|\]\(https?:|^(?:\[!\[|```)", re.MULTILINE)
_RST_IN_PLAIN = re.compile(r"^\.\. (?:[\w-]+::|_[^:\n]+:|\|)|:: *$\n\n {2,}|`_(?!\w)", re.MULTILINE)
_MOST_ITEMS = 12
_COMMON_WORDS = frozenset(
    "the an and or of for to in with on by from is are your you library framework python java javascript go rust ruby"
    " php c++ api client server project".split()
)
_LEAD_IN_WORDS = 5
_SHORT_DESCRIPTION = 30  # words
_TITLE_CHARACTERS = 300


@dataclass(slots=True)
class _Section:
    """What is between two headings. lead: before the second heading; describes: its title, or one above it (`below`), says so."""

    lead: bool
    describes: bool = False
    below: bool = False
    stopped: bool = False
    blocks: list[Block] = field(default_factory=list)

    @property
    def tells(self) -> bool:
        """Whether its prose is about the project. What is below a section that describes and holds code is an example."""
        return self.lead or (self.describes and not (self.below and CODE in self.blocks))


def lead(path: str, text: str, enough: int) -> list[str]:
    """Paragraphs of plain text, one line each, of a README's first section that has prose; while these have fewer than `enough`
    words, also those of the describing sections that follow. Never raises."""
    blocks = _read(path, text)
    name = _name_words(blocks)
    sections = [section for section in _sections(blocks) if not section.stopped]
    found: list[str] = []
    for section in sections:
        if section.tells and sum(len(p.split()) for p in found) < enough:
            paragraphs = _paragraphs(section.blocks, name, opened=bool(found))
            found += [p for p in paragraphs if not any(p in other for other in found)]
    if path.lower().startswith(("doc/", "docs/")) and any(ABOUT_DOCS.search(paragraph) for paragraph in found):
        return []
    if not found:  # another section may do if it says what something is
        others = (_paragraphs(section.blocks, name) for section in sections)
        return next((said for said in others if said and DEFINES.match(first_sentence(said[0]))), [])
    return found


def _read(path: str, text: str) -> list[Block]:
    source = prepared(text)
    reader = _READERS.get(posixpath.splitext(path.lower())[1], markdown)
    if reader is plain and _MARKDOWN_IN_PLAIN.search(source):
        reader = markdown
    elif reader is plain and _RST_IN_PLAIN.search(source):
        reader = restructured
    return reader(source)


def _name_words(blocks: Sequence[Block]) -> frozenset[str]:
    """The words of the title, of which some are the project's name."""
    title = next((unmarked(block.text[:_TITLE_CHARACTERS]) for block in blocks if block.kind == "heading"), "")
    words = re.findall(r"[^\W_][\w.+-]+", title.partition(" - ")[0].partition(": ")[0].lower())
    return frozenset(word for word in words if word not in _COMMON_WORDS)


def _sections(found: Sequence[Block]) -> list[_Section]:
    """The sections. Those below one that is no prose are none either; those below one that describes do so too."""
    sections = [_Section(lead=True)]
    stopped = described = PSEUDO + 1  # the level of the heading that decides for those below it
    for block in found:
        if block.kind != "heading":
            sections[-1].blocks.append(block)
            continue
        title = re.sub(r"^[\W\d_]+|[\W_]+$", "", unmarked(block.text[:_TITLE_CHARACTERS]))
        first = len(sections) == 1
        describes = bool(DESCRIBES.fullmatch(title)) and not DESCRIBES_OTHERS.match(title)
        if block.level <= stopped:
            stops = is_notice(title) or bool(TITLE_STOPS.fullmatch(title) if first else STOPS.match(title))
            stopped = block.level if stops and not describes else PSEUDO + 1
        if block.level <= described:
            described = block.level if describes and not first else PSEUDO + 1
        sections.append(_Section(first, described <= PSEUDO, described < block.level, stopped <= PSEUDO))
    return sections


def described(text: str) -> list[str]:
    """The paragraphs of a description in a manifest: one of a few words as it is, a longer one as a README's lead is read."""
    if len(text.split()) <= _SHORT_DESCRIPTION and not re.search(r"\S\s*\n\s*\n\s*\S", text):
        return [unmarked(tidy(text))]
    source = inspect.cleandoc(text)
    return _paragraphs([block for block in _read("", source) if block.kind != "heading"], frozenset())


def _paragraphs(blocks: Sequence[Block], name: frozenset[str], *, lead: bool = True, opened: bool = False) -> list[str]:
    """What the blocks of a section say: paragraphs, and lists together with the sentence that leads in to them. What follows code
    goes on from it, unless it begins with the project's name. opened: whether something was said before, so that a list may stand
    by itself."""
    found: list[str] = []
    leads_in = True  # whether the next list is one that may be taken
    orphan = coded = False  # whether the paragraph before was left out; whether there was code
    for block, after in zip(blocks, [*blocks[1:], OTHER], strict=False):
        coded = coded or block.kind == "code"
        if block.kind == "list":
            items = (
                items_said(block.items, _MOST_ITEMS)
                if leads_in and (not coded or not found or found[-1].endswith(":"))
                else []
            )
            if items and found and found[-1].endswith(":"):
                found[-1] += " " + " ".join(items)
            elif items and (found or opened):
                found.append(" ".join(items))
        leads_in = True
        if block.kind == "paragraph" or (block.kind == "quote" and not found):
            text = opens_list(block.text) if after.kind == "list" else block.text
            listed = after.kind == "list" and bool(items_said(after.items, _MOST_ITEMS))
            prose = said(text, leads_in=listed, orphan=coded or (orphan and not text.startswith("This ")))
            if (
                coded
                and (found or not lead)
                and not name & set(re.findall(r"[^\W_][\w.+-]+", first_sentence(prose).lower()))
            ):
                prose = ""
            short = len(text.split()) <= _LEAD_IN_WORDS and not STOPS.match(text) and is_statement(text)
            leads_in = (
                not unmarked(text[-_TITLE_CHARACTERS:]).endswith(":") or prose.endswith(":") or (short and not coded)
            )
            orphan = not prose and len(text.split()) > _LEAD_IN_WORDS
            if prose and not any(prose in other for other in found):
                found.append(prose)
    return found
