"""The summary that a model is to learn, from the first source that has one worth learning.

Sources, in the configured order: `list` (the list's own summary), `metadata` (the description in a manifest at
the repository's root) and `readme` (the lead prose of the README). Metadata is parsed, never run. Each returns
plain text and says where it found it; what is too short or too long is passed over.
"""

from __future__ import annotations

import ast
import configparser
import html
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import docutils.core
import docutils.nodes
from markdown_it import MarkdownIt
from markdown_it.token import Token

from repo2ctx.config import TargetsConfig
from repo2ctx.records import RepoSpec, Target

_README = re.compile(r"readme(?:\.(?:md|markdown|mdown|mkd|rst|txt|adoc|asciidoc|org))?", re.IGNORECASE)
_ANY_README = re.compile(r"readme(?:[._-].*)?", re.IGNORECASE)
_README_ORDER = (".md", ".markdown", ".rst", ".txt", "")
_STOP_HEADING = re.compile(
    r"install|licen[cs]e|contribut|sponsor|backers|contents|translat|badges|build status|changelog|credits|acknowledg"
    r"|questions|support|communit|stay in touch|issues",
    re.IGNORECASE,
)
_POINTER = re.compile(
    r"(?:please|see|visit|read the|read more|learn (?:how|more)|find out|check out|follow (?:us|the)|join|click"
    r"|for (?:more|details|further|full)|this (?:readme|document)|we['’]re excited)\b|(?:note|warning|q&a|authors?):",
    re.IGNORECASE,
)
_LINE_WORDS = 30  # a target of at most this many words, on one line, has the style "line"


def choose_target(spec: RepoSpec, texts: Mapping[str, str], config: TargetsConfig) -> Target | None:
    """The first target that fits, or None. `texts`: path -> text of the repository's small files."""
    for source in config.sources:
        for where, text in _SOURCES[source](spec, texts):
            clean = tidy(text)
            words = len(clean.split())
            if source == "list" or (config.min_words <= words <= config.max_words):
                return Target(clean, where, "line" if words <= _LINE_WORDS and "\n" not in clean else "paragraph")
    return None


def tidy(text: str) -> str:
    """One blank line between paragraphs, single spaces within them, no half of a surrogate pair."""
    text = text.encode("utf-8", "replace").decode()
    return "\n\n".join(" ".join(p.split()) for p in re.split(r"\n\s*\n", text.strip()) if p.strip())


def is_readme(path: str) -> bool:
    """Whether a path is the repository's README, in any language or format."""
    return "/" not in path and bool(_ANY_README.fullmatch(path))


Found = Iterator[tuple[str, str]]


def _from_list(spec: RepoSpec, texts: Mapping[str, str]) -> Found:
    if spec.summary:
        yield "list", spec.summary


def _from_metadata(spec: RepoSpec, texts: Mapping[str, str]) -> Found:
    for path, read in DESCRIPTIONS.items():
        if path in texts and (text := read(texts[path])):
            yield f"metadata:{path}", text


def _from_readme(spec: RepoSpec, texts: Mapping[str, str]) -> Found:
    names = [p for p in texts if "/" not in p and _README.fullmatch(p)]
    for path in sorted(names, key=_readme_rank):
        lead = restructured_lead(texts[path]) if path.lower().endswith(".rst") else markdown_lead(texts[path])
        if lead:
            yield f"readme:{path}", lead


def _readme_rank(path: str) -> tuple[int, str]:
    suffix = path[6:].lower()
    return (_README_ORDER.index(suffix) if suffix in _README_ORDER else len(_README_ORDER), path)


_SOURCES: Mapping[str, Callable[[RepoSpec, Mapping[str, str]], Found]] = {
    "list": _from_list,
    "metadata": _from_metadata,
    "readme": _from_readme,
}


# Descriptions in manifests ---------------------------------------------------------------------------------


def _at(value: Any, *keys: str) -> str:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value.strip() if isinstance(value, str) else ""


def _toml(source: str, *places: Sequence[str]) -> str:
    try:
        data = tomllib.loads(source)
    except (ValueError, RecursionError):
        return ""
    return next((found for place in places if (found := _at(data, *place))), "")


def pyproject_description(source: str) -> str:
    return _toml(source, ("project", "description"), ("tool", "poetry", "description"))


def cargo_description(source: str) -> str:
    return _toml(source, ("package", "description"), ("workspace", "package", "description"))


def json_description(source: str) -> str:
    """package.json and composer.json."""
    try:
        return _at(json.loads(source), "description")
    except (ValueError, RecursionError):
        return ""


def setup_cfg_description(source: str) -> str:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(source)
    except configparser.Error:
        return ""
    text = parser.get("metadata", "description", fallback="").strip()
    return "" if text.startswith(("file:", "attr:")) else text


def setup_py_description(source: str) -> str:
    """The literal `description=` of a call to setup(), read without running the file."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "setup":
            for keyword in node.keywords:
                if keyword.arg == "description" and isinstance(keyword.value, ast.Constant):
                    return str(keyword.value.value).strip()
    return ""


def pom_description(source: str) -> str:
    if "<!ENTITY" in source:  # no project needs entities of its own, and they can explode
        return ""
    try:
        root = ElementTree.fromstring(source.encode())
    except (ElementTree.ParseError, ValueError, LookupError):
        return ""
    namespace = root.tag.partition("}")[0] + "}" if root.tag.startswith("{") else ""
    return (root.findtext(f"{namespace}description") or "").strip()


DESCRIPTIONS: Mapping[str, Callable[[str], str]] = {
    "pyproject.toml": pyproject_description,
    "setup.cfg": setup_cfg_description,
    "setup.py": setup_py_description,
    "package.json": json_description,
    "Cargo.toml": cargo_description,
    "pom.xml": pom_description,
    "composer.json": json_description,
}
"""Base name of a manifest -> how to read its description."""


# The lead prose of a README --------------------------------------------------------------------------------


def markdown_lead(source: str) -> str:
    """The paragraphs under the first heading of a Markdown README that has any, without badges,
    images, HTML and link targets."""
    depth, section, title = 0, "", False
    paragraphs: list[str] = []
    tokens = MarkdownIt("commonmark").parse(source)
    for i, token in enumerate(tokens):
        if token.type == "heading_open":
            if paragraphs:
                break
            section, title = _inline_text(tokens[i + 1]), True
        elif token.type in ("bullet_list_open", "ordered_list_open", "blockquote_open"):
            depth += 1
        elif token.type in ("bullet_list_close", "ordered_list_close", "blockquote_close"):
            depth -= 1
        elif token.type == "paragraph_open" and depth == 0 and not (title and _STOP_HEADING.search(section)):
            text = _without_lead_in(_inline_text(tokens[i + 1]))
            if _is_prose(text):
                paragraphs.append(text)
    return "\n\n".join(paragraphs)


def _inline_text(token: Token) -> str:
    """The words of an inline token: link texts stay, images and HTML go."""
    parts = []
    for child in token.children or ():
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return " ".join(html.unescape("".join(parts)).split())


def _without_lead_in(text: str) -> str:
    """The paragraph without a last sentence that only leads in to a list."""
    if not text.endswith(":"):
        return text
    sentences = re.split(r"(?<=[.!?]) ", text)
    return " ".join(sentences[:-1])


def _is_prose(text: str) -> bool:
    """A statement, not a title, a row of links, a line of markup or a pointer elsewhere."""
    words = re.findall(r"[^\W\d_]{2,}", text)
    pointer = _POINTER.match(text) or text.count(" | ") + text.count(" • ") + text.count(" · ") > 1
    return len(words) >= 5 and not pointer and not text.startswith(("<", "|", ":::"))


def restructured_lead(source: str) -> str:
    """The same for reStructuredText. Nothing is included, fetched or run."""
    settings = {
        "file_insertion_enabled": False,
        "raw_enabled": False,
        "report_level": 5,
        "halt_level": 5,
        "warning_stream": False,
        "_disable_config": True,
        "line_length_limit": 1_000_000,
    }
    source = re.sub(r"(?m)^[ \t]*\.\.[ \t]+\|[^|\n]+\|[ \t]+date::.*$", "", source)  # would be the time of the build
    try:
        document = docutils.core.publish_doctree(source, settings_overrides=settings)
    except Exception:  # noqa: BLE001 - docutils raises many kinds on broken input; such a README has no lead
        return ""
    holder: docutils.nodes.Element = document
    while True:
        paragraphs = [
            _without_lead_in(_rst_text(n)) for n in holder.children if isinstance(n, docutils.nodes.paragraph)
        ]
        prose = [p for p in paragraphs if _is_prose(p)]
        if prose:
            return "\n\n".join(prose)
        sections = [n for n in holder.children if isinstance(n, docutils.nodes.section)]
        if not sections:
            return ""
        holder = sections[0]


def _rst_text(node: docutils.nodes.Node) -> str:
    return " ".join(node.astext().split())
