"""A repository's licence as an SPDX identifier: what its manifest declares, else what its licence file says."""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from identify.identify import license_id

UNKNOWN = "NOASSERTION"
"""SPDX's own word for a licence that could not be told."""

_FILE = re.compile(r"(?:un)?licen[cs]e(?:[.-].*)?|copying(?:\..*)?", re.IGNORECASE)
_SPDX = re.compile(r"[A-Za-z0-9.+()-]+(?: (?:AND|OR|WITH) [A-Za-z0-9.+()-]+)*")
_MAX_CHARACTERS = 100_000


def license_of(texts: Mapping[str, str]) -> str:
    """The SPDX expression of a repository, from its small root files (path -> text)."""
    for path, keys in (
        ("pyproject.toml", ("project", "license")),
        ("Cargo.toml", ("package", "license")),
        ("package.json", ("license",)),
        ("composer.json", ("license",)),
    ):
        declared = _declared(texts.get(path, ""), path, keys)
        if declared and _SPDX.fullmatch(declared) and declared.upper() not in ("UNLICENSED", "PROPRIETARY"):
            return declared
    for path in sorted(p for p in texts if "/" not in p and _FILE.fullmatch(p)):
        if found := _by_text(texts[path]):
            return found
    return UNKNOWN


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
