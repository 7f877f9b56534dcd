"""A repository's licence as an SPDX expression: what its manifests declare, checked against its licence files.

A wrong permissive answer costs more than none, so what is in doubt is the stricter one, or NOASSERTION:

- Manifests (`_license_manifests.py`) say what the files' texts (`_license_texts.py`) leave open: GPL-3.0-or-later, or a choice.
- Where the files hold another licence than is declared, both have to be kept (AND).
- A licence file with more in it than known texts, titles and copyright lines is only passed over if a manifest declares a
  licence that the file names too, and nothing in it might forbid anything (or what is declared is not permissive
  either). A clause added to MIT makes NOASSERTION.
- Two licence files are a choice (OR) if each is named after its licence, as LICENSE-MIT and LICENSE-APACHE, or another file
  says so; else all have to be kept. The GPL beside the LGPL is part of it.
- The GPL's text alone does not say "or later": it is GPL-3.0-only.
- Names of files in LICENSES/, then a tag or a line `License: …` in the README, count only where there is nothing else.

Linear in the files; a licence file takes milliseconds.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping

from repo2ctx._license_manifests import declared_in, declares_license
from repo2ctx._license_names import PERMISSIVE, canonical, current, joined, names_in, spdx_of
from repo2ctx._license_texts import Told, told_by

__all__ = ["PERMISSIVE", "UNKNOWN", "UNREADABLE", "allows", "is_license_file", "license_of", "tells_license"]

UNKNOWN = "NOASSERTION"
"""SPDX's own word for a licence that could not be told."""

UNREADABLE = "\0"
"""Stands for the text of a licence file that could not be read: what it says is in doubt."""

_FILE = re.compile(
    r".*commons[-_ ]?clause.*|(?:un)?licen[cs]es?(?:[-_. ].*)?|copying(?:[-_. ].*)?"
    r"|(?:mit|apache|bsd|isc|[al]?gpl|mpl|zlib|boost)[-_]licen[cs]es?(?:\.\w+)?",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"3rd|third|vendor|depend|bundle|notice|attribution|header|template"
    r"|\.(?:toml|json|ya?ml|xml|lock|py|[jt]sx?|mjs|cjs|go|rs|rb|java|kt|c|h|cc|cpp|sh|bat|ps1|csv|tsv|spdx|sig|asc)$",
    re.IGNORECASE,
)
_REUSE = re.compile(r"LICENSES/([A-Za-z0-9.+-]+)\.txt")
_README = re.compile(r"readme(?:\.(?:md|markdown|rst|txt|adoc|org))?", re.IGNORECASE)
_README_LINE = re.compile(
    r"^[^\w\r\n]{0,10}(?:SPDX-License-Identifier|licen[cs]e)[*_ ]{0,3}:[*_ ]{0,3}([^\r\n]{1,60})$",
    re.MULTILINE | re.IGNORECASE,
)
_LONGEST_README = 300_000  # characters
_CALLED = {
    "epl": "eclipse",
    "mpl": "mozilla",
    "gpl": "general public",
    "lgpl": "lesser",
    "agpl": "affero",
    "bsl": "boost",
}
_TOKEN = re.compile(r"\(|\)|[^\s()]+")


def license_of(texts: Mapping[str, str]) -> str:
    """The SPDX expression of a repository, with current identifiers, from the files that `tells_license` asks for (path ->
    text); NOASSERTION if it cannot be told."""
    declared = [found for path in sorted(texts) if (found := declared_in(path, texts[path]))]
    says = joined(declared, "AND") if declared else ""
    files = {path: told_by(texts[path]) for path in sorted(texts) if is_license_file(path)}
    if not files:
        return says or _reuse(texts) or _readme(texts) or UNKNOWN
    held, clear = _of_files(files)
    if clear:
        return _both(says, held) if says else held
    named = all(told.found or _names(texts[path], says) for path, told in files.items())
    doubt = any(told.grave or (told.found and told.doubtful and not told.clear) for told in files.values())
    barred = any(told.grave and not told.found for told in files.values())
    if not says or not named or barred or (doubt and allows(says, PERMISSIVE)):
        return UNKNOWN
    return _both(says, held) if held else says


def tells_license(path: str) -> bool:
    """Whether `license_of` wants to see a file."""
    return (
        declares_license(path) or is_license_file(path) or bool(_REUSE.fullmatch(path)) or bool(_README.fullmatch(path))
    )


def is_license_file(path: str) -> bool:
    """Whether a file at the root is named like one that holds the licence."""
    return "/" not in path and bool(_FILE.fullmatch(path)) and not _OTHERS.search(path)


def _of_files(files: Mapping[str, Told]) -> tuple[str, bool]:
    """The expression of several licence files, and whether that is all that they say."""
    found = {path: told.found for path, told in files.items() if told.found}
    lesser = [path for path, name in found.items() if name.startswith("LGPL-")]
    if lesser:
        part = any("LGPL-3" in found[path] or re.search("lesser|lib", path, re.IGNORECASE) for path in lesser)
        found = {path: name for path, name in found.items() if not (part and name.startswith("GPL-"))}
    notes = [told for told in files.values() if not told.found]
    offered = all(told.choice and not told.grave for told in notes)
    pair = len(names_in(" AND ".join(found.values()))) == 2  # more are seldom all offered for the whole
    choice = offered and pair and (bool(notes) or all(_named_after(path, name) for path, name in found.items()))
    clear = bool(found) and offered and all(told.clear for told in files.values() if told.found)
    return joined(list(found.values()), "OR" if choice else "AND") if found else "", clear


def _named_after(path: str, expression: str) -> bool:
    name = (
        posixpath.splitext(path)[0].lower() if path.lower().endswith((".txt", ".md", ".rst", ".html")) else path.lower()
    )
    return name == "unlicense" or _family(expression) in re.split(r"[-_. ]", name)[1:] + re.split(r"[-_. ]", name)[:-1]


def _family(name: str) -> str:
    return name.partition("-")[0].lower()


def _names(text: str, expression: str) -> bool:
    """Whether a text names each licence of an expression."""
    lower = " ".join(text.lower().split())
    families = [_family(name) for name in names_in(expression)]
    return all(re.search(rf"\b{re.escape(f)}", lower) or _CALLED.get(f, f) in lower for f in families)


def _both(says: str, held: str) -> str:
    """What is declared, and what the licence files hold, in one."""
    ours, theirs = _bases(says), _bases(held)
    if theirs <= ours:
        return says
    if ours <= theirs and len(ours) == 1:
        return says if " OR " in held else held
    return joined([says, held], "AND")


def _bases(expression: str) -> set[str]:
    """Identifiers without what a licence's text does not tell: exceptions, and whether a later version may be taken."""
    return {re.sub("-only$|-or-later$", "", name.partition(" WITH ")[0]) for name in names_in(expression)}


def _reuse(texts: Mapping[str, str]) -> str:
    """All that is used somewhere in the repository, by the names that the REUSE specification gives the files."""
    names = [canonical(match[1]) for path in sorted(texts) if (match := _REUSE.fullmatch(path))]
    return joined(names, "AND") if names and all(names) else ""


def _readme(texts: Mapping[str, str]) -> str:
    """What a README's lines on the licence say, if they say one thing."""
    found = {
        spdx_of(line.strip().strip("*_`.").strip())
        for path in texts
        if _README.fullmatch(path) and len(texts[path]) <= _LONGEST_README
        for line in _README_LINE.findall(texts[path])
    }
    return found.pop() if len(found) == 1 else ""


def allows(expression: str, allowed: Collection[str]) -> bool:
    """Whether an SPDX expression can be satisfied with the allowed ids alone: of OR one side, of AND both. An id WITH an
    exception counts as the id, one of a later version as the earlier too; deprecated ids count as the current ones. An
    expression that cannot be read is not allowed."""
    known = {part for name in allowed for part in (name.lower(), current(name).lower())}
    values: list[bool] = []
    operators: list[str] = []

    def apply() -> None:
        right, left = values.pop(), values.pop()
        values.append(left and right if operators.pop() == "and" else left or right)

    operand = True  # whether one comes next
    tokens = iter(_TOKEN.findall(expression.lower()))
    for token in tokens:
        if operand and token == "(":
            operators.append(token)
        elif operand and token not in (")", "and", "or", "with"):
            values.append(_known(token, known))
            operand = False
        elif not operand and token == "with" and next(tokens, ")") not in ("(", ")"):
            continue  # an exception only permits more
        elif not operand and token in ("and", "or"):
            while operators and (operators[-1] == "and" or operators[-1] == token):
                apply()
            operators.append(token)
            operand = True
        elif not operand and token == ")" and "(" in operators:
            while operators[-1] != "(":
                apply()
            operators.pop()
        else:
            return False
    if operand or "(" in operators:
        return False
    while operators:
        apply()
    return values == [True]


def _known(token: str, known: Collection[str]) -> bool:
    name = current(token).lower()
    earlier = name.removesuffix("+").replace("-or-later", "-only")
    return token in known or name in known or (earlier != name and earlier in known)
