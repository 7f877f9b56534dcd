"""Every language without rules of its own: literal relative paths that name a file of the repository.

A path counts where it begins with `./` or `../`, where it stands alone in quotes, brackets or angle brackets and ends in a
suffix, after a variable (`"$DIR/lib.sh"`), or after a word such as `source` or `include`. It is looked up from the file's
folder, then, if it has a slash, from the repository's root; as written, with the file's own suffix, or as a Sass partial.
Nothing is guessed: what leads nowhere is text. Every edge is soft, for nothing says when it is read.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping

from repo2ctx.languages import RepoTree, join
from repo2ctx.records import Edge, Found, Import, Syntax

GRAMMARS: Mapping[str, Callable[[], object]] = {}
CONFIG_FILES = ()

_NAME = r"[\w.@+-]{1,100}"
_PATH = rf"{_NAME}(?:/{_NAME}){{0,15}}"  # bounded: a hostile line is read in linear time
_REFERENCE = re.compile(
    rf"""(?<![\w./$}})-])(\.\.?/{_PATH})"""  # ./x, ../x
    rf"""|["'(<`]({_PATH}\.[A-Za-z]\w{{0,7}})[)"'>`]"""  # "x/y.ext"
    rf"""|(?:\$\w{{1,40}}|[}})]["']?)/({_PATH}\.[A-Za-z]\w{{0,7}})(?![\w/.])"""  # $DIR/x.ext, $(dirname "$0")/x.ext
    rf"""|^[ \t]*-?(?:source|\.|s?include|import|load|dofile)[ \t]+["']?({_PATH})""",
    re.MULTILINE,
)
_MOST = 5_000  # references of one file
_SCRIPTS = (".ts", ".js", ".tsx", ".jsx", ".mjs", "/index.ts", "/index.js")
_SUFFIXES = {".vue": (".vue", *_SCRIPTS), ".svelte": (".svelte", *_SCRIPTS), ".astro": (".astro", *_SCRIPTS)}
_SASS = (".scss", ".sass")


def scan_text(source: str) -> Syntax:
    """What looks like a path, once each, in the order of the text."""
    found: dict[str, Import] = {}
    for match in _REFERENCE.finditer(source):
        name = next(g for g in match.groups() if g is not None)
        if name not in found:
            found[name] = Import(name, 0, "include", "soft")
            if len(found) == _MOST:
                break
    return Syntax(imports=tuple(found.values()))


def resolve(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Found]:
    for path in sorted(syntax):
        folder, (_, suffix) = posixpath.dirname(path), posixpath.splitext(path)
        for item in syntax[path].imports:
            target = tree.first(_candidates(folder, item.name, suffix.lower()))
            if target is not None and target != path:
                yield Edge(path, target, item.kind, item.strength)


def _candidates(folder: str, name: str, suffix: str) -> Iterator[str]:
    bases = [join(folder, name)]
    if "/" in name and not name.startswith("."):
        bases.append(join("", name))
    for base in bases:
        if base:
            yield base
            yield from (base + ending for ending in _SUFFIXES.get(suffix, (suffix,)))
            if suffix in _SASS:
                head, tail = posixpath.split(base)
                yield from (posixpath.join(head, f"_{tail}{ending}") for ending in ("", *_SASS))
