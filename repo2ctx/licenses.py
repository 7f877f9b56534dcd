"""A repository's licence as an SPDX identifier: what its manifest declares, else what its licence file says."""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from identify.identify import license_id

UNKNOWN = "NOASSERTION"
"""SPDX's own word for a licence that could not be told."""

_FILE = re.compile(r"(?:un)?licen[cs]e(?:[.-].*)?|copying(?:\..*)?", re.IGNORECASE)
_SPDX = re.compile(r"[A-Za-z0-9.+()-]+(?: (?:AND|OR|WITH) [A-Za-z0-9.+()-]+)*")
_MAX_CHARACTERS = 100_000
_DECLARED = {
    "pyproject.toml": ("project", "license"),
    "Cargo.toml": ("package", "license"),
    "package.json": ("license",),
    "composer.json": ("license",),
}
_TOKEN = re.compile(r"\(|\)|[^\s()]+")

PERMISSIVE = (
    "0BSD",
    "Apache-2.0",
    "BlueOak-1.0.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "curl",
    "ISC",
    "MIT",
    "MIT-0",
    "NCSA",
    "PostgreSQL",
    "PSF-2.0",
    "Python-2.0",
    "Unlicense",
    "X11",
    "Zlib",
)
"""Licences that ask for no more than their text and the authors' names to be kept."""


def license_of(texts: Mapping[str, str]) -> str:
    """The SPDX expression of a repository, from its small root files (path -> text)."""
    for path, keys in _DECLARED.items():
        declared = _declared(texts.get(path, ""), path, keys)
        if declared and _SPDX.fullmatch(declared) and declared.upper() not in ("UNLICENSED", "PROPRIETARY"):
            return declared
    for path in sorted(p for p in texts if "/" not in p and _FILE.fullmatch(p)):
        if found := _by_text(texts[path]):
            return found
    return UNKNOWN


def tells_license(path: str) -> bool:
    """Whether `license_of` wants to see a file at the root."""
    return path in _DECLARED or bool(_FILE.fullmatch(path))


def allows(expression: str, allowed: Collection[str]) -> bool:
    """Whether an SPDX expression can be satisfied with the allowed ids alone: of OR one side, of AND both. An id WITH an
    exception counts as the id. An expression that cannot be read is not allowed."""
    known = {name.lower() for name in allowed}
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
            values.append(token in known)
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


def _declared(source: str, path: str, keys: tuple[str, ...]) -> str:
    try:
        value: Any = json.loads(source) if path.endswith(".json") else tomllib.loads(source)
    except (ValueError, RecursionError):
        return ""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, dict):  # the older table: {text = "MIT"} or {type = "MIT"}
        value = value.get("text") or value.get("type")
    return value.replace("/", " OR ").strip() if isinstance(value, str) else ""


def _by_text(text: str) -> str:
    if len(text) > _MAX_CHARACTERS:
        return ""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        return license_id(str(Path(file.name))) or ""
