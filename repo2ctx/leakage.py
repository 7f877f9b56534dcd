"""Keeps the target's source out of the context: READMEs leave it, descriptions in manifests are emptied in place,
and whole sentences of the target are blanked wherever else they stand.

A file whose description cannot be emptied for sure leaves the context as well. Parts of sentences and paraphrases
stay.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping

from repo2ctx.records import SourceFile
from repo2ctx.targets import DESCRIPTIONS, is_readme

TARGET_SOURCE = "target-source"
_FEWEST_WORDS = 4
_GAP = r"(?:</?\w{1,10}>|[\W_]){1,40}+"  # possessive: no input makes it try again


def source_paths(files: tuple[SourceFile, ...], links: Mapping[str, str]) -> frozenset[str]:
    """Files that hold or repeat the target's source whole: the root's READMEs, the files they link to (`links`:
    symbolic link -> file), and copies of them elsewhere."""
    readmes = {links.get(f.path, f.path) for f in files if is_readme(f.path)}
    blobs = {f.blob for f in files if f.path in readmes and f.size}
    return frozenset(f.path for f in files if f.path in readmes or f.blob in blobs)


def without_description(path: str, text: str, target: str | None) -> str | None:
    """The text of a manifest with its description emptied; None if that cannot be done for sure.

    Only a manifest at the root, or one whose description is the target, is touched.
    """
    read = DESCRIPTIONS.get(posixpath.basename(path))
    if read is None:
        return text
    description = read(text)
    if not description or ("/" in path and description != target):
        return text
    emptied = _EMPTY[posixpath.splitext(path)[1]](text, description)
    return emptied if not read(emptied) and description not in emptied else None


class Quotes:
    """Finds a target's sentences in texts, whatever case, line breaks, comment marks or markup are between the words.

    Sentences of fewer than four words are no evidence of a quote.
    """

    def __init__(self, target: str):
        self._sentences = []
        for sentence in re.split(r"(?<=[.!?])\s+|\n+", target):
            words = re.findall(r"\w+", sentence)
            if len(words) >= _FEWEST_WORDS:
                pattern = _GAP.join(map(re.escape, words))
                needed = sorted({w.lower() for w in words}, key=lambda w: (-len(w), w))
                self._sentences.append((needed, re.compile(rf"(?<!\w){pattern}(?!\w)[.!?]?", re.IGNORECASE)))

    def blank(self, text: str) -> str:
        """The text without the sentences."""
        lower = text.lower()
        for needed, pattern in self._sentences:
            if all(word in lower for word in needed):  # cheap, and nearly always the end of it
                text = pattern.sub("", text)
        return text


def _empty_json(text: str, description: str) -> str:
    pattern = re.compile(r'("description"\s{0,99}:\s{0,99})("(?:[^"\\]|\\.)*")')
    return pattern.sub(lambda m: m[1] + '""' if json.loads(m[2]).strip() == description else m[0], text)


def _empty_toml(text: str, description: str) -> str:
    value = r'("""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')'
    return re.sub(rf"(?m)(^[ \t]*description[ \t]*=[ \t]*){value}", r'\1""', text, flags=re.DOTALL | re.MULTILINE)


def _empty_cfg(text: str, description: str) -> str:
    return re.sub(r"(?m)^(description\s*[=:]).*(?:\n[ \t]+.*)*", r"\1", text)


def _empty_python(text: str, description: str) -> str:
    return re.sub(r"(\bdescription\s{0,99}=\s{0,99})((?:[rRuUbB]*(?:\"[^\"\n]*\"|'[^'\n]*')\s*)+)", r'\1""', text)


def _empty_xml(text: str, description: str) -> str:
    return re.sub(r"(<description>).*?(</description>)", r"\1\2", text, flags=re.DOTALL)


_EMPTY = {
    ".json": _empty_json,
    ".toml": _empty_toml,
    ".cfg": _empty_cfg,
    ".py": _empty_python,
    ".xml": _empty_xml,
}
