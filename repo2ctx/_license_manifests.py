"""The licence that manifests at the root declare, as an SPDX expression.

They are read by the readers that find descriptions in them (`_manifest_values.py`, `_manifest_code.py`), and never run. A
manifest with a field of its own for the licence is taken by it, else by its trove classifiers. Linear in the text.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from repo2ctx._license_names import joined, spdx_of
from repo2ctx._manifest_code import gem_license_values, gradle_license_values, python_values
from repo2ctx._manifest_values import Value, ini_values, xml_values

_LONGEST = 300_000  # characters of a manifest
_MOST = 20  # licences in one
PROPRIETARY = "LicenseRef-Proprietary"
_KEPT_BACK = re.compile(r"\Aunlicensed\b|\bproprietary\b|\Acommercial\b|all rights reserved\W*\Z", re.IGNORECASE)
_LONGEST_NAME = 200  # characters; a longer field holds a licence's text
_CLASSIFIER = "license ::"
_MSBUILD = [("project", "propertygroup", "packagelicenseexpression")]

_SETUP = ("license_expression", "license", "classifiers")  # of setup.cfg and setup.py, the strongest first

Fields = Iterator[tuple[str, str]]
"""(field, what it says), the strongest field first. Of several values of `or` one may choose; of any other field all count."""


def declared_in(path: str, text: str) -> str:
    """The SPDX expression that a manifest declares, "" if it declares none, cannot be read, or says it in words of its own;
    `PROPRIETARY` if it says that it gives none."""
    reader = _reader(path)
    if reader is None or len(text) > _LONGEST:
        return ""
    fields: dict[str, list[str]] = {}
    for field, said in reader(text.removeprefix("\ufeff")):
        fields.setdefault(field, []).append(said)
    for field, each in fields.items():
        if any(_KEPT_BACK.search(said[:_LONGEST_NAME]) for said in each):
            return PROPRIETARY
        found = [spdx_of(said) for said in each[:_MOST]]
        if all(found):
            return joined(found, "OR" if field == "or" else "AND")
    return ""


def declares_license(path: str) -> bool:
    """Whether `declared_in` reads such a file."""
    return _reader(path) is not None


def _reader(path: str) -> Callable[[str], Fields] | None:
    name = path.lower()
    if "/" in name:
        return None
    return _BY_NAME.get(name) or _BY_ENDING.get(posixpath.splitext(name)[1])


def _python_project(text: str) -> Fields:
    data = _parsed(tomllib.loads, text)
    for place in (("project",), ("tool", "poetry"), ("tool", "flit", "metadata")):
        table = _at(data, *place)
        yield from _field(_at(table, "license"), "text")
        yield from _classifiers(_strings(_at(table, "classifiers")))


def _cargo(text: str) -> Fields:
    data = _parsed(tomllib.loads, text)
    for place in (("package",), ("workspace", "package")):
        yield from _field(_at(data, *place, "license"))


def _json(text: str) -> Fields:
    """package.json and composer.json: several are a choice, in both."""
    data = _parsed(json.loads, text)
    yield from _field(_at(data, "license"), "type")
    yield from _field(_at(data, "licenses"), "type")


def _setup_cfg(text: str) -> Fields:
    yield from _setup(ini_values(text, "metadata", _SETUP))


def _setup_py(text: str) -> Fields:
    yield from _setup(python_values(text, _SETUP) or ())


def _setup(values: Iterable[Value]) -> Fields:
    for value in sorted(values, key=lambda value: value.rank):
        said = value.text.strip()
        if _SETUP[value.rank] == "classifiers":
            yield from _classifiers(said.splitlines())
        elif said:
            yield _SETUP[value.rank], said


def _texts(read: Callable[[str], Iterable[Value]], text: str) -> Fields:
    for value in read(text):
        yield "or", value.text.strip()


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except (ValueError, RecursionError):
        return None


def _at(data: Any, *keys: str) -> Any:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _field(value: Any, key: str = "") -> Fields:
    """A string, a table that holds one, or a list of either, of which one may choose."""
    for entry in value if isinstance(value, list) else [value]:
        said = _at(entry, key) if isinstance(entry, dict) else entry
        if isinstance(said, str):
            yield "or", said


def _strings(value: Any) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _classifiers(lines: Iterable[str]) -> Fields:
    """Trove does not say how several are meant, so all have to be kept."""
    for line in lines:
        said = line.strip().strip("\"',").strip()
        if said.lower().startswith(_CLASSIFIER) and said.lower() != f"{_CLASSIFIER} osi approved":
            yield "classifiers", said


_BY_NAME: Mapping[str, Callable[[str], Fields]] = {
    "pyproject.toml": _python_project,
    "setup.cfg": _setup_cfg,
    "setup.py": _setup_py,
    "cargo.toml": _cargo,
    "package.json": _json,
    "composer.json": _json,
    # Maven: of several licenses, one may choose
    "pom.xml": partial(_texts, partial(xml_values, places=[("project", "licenses", "license", "name")])),
    "build.gradle": partial(_texts, gradle_license_values),
    "build.gradle.kts": partial(_texts, gradle_license_values),
    "directory.build.props": partial(_texts, partial(xml_values, places=_MSBUILD)),
}
_BY_ENDING: Mapping[str, Callable[[str], Fields]] = {
    ".gemspec": partial(_texts, gem_license_values),
    ".podspec": partial(_texts, gem_license_values),
    ".csproj": partial(_texts, partial(xml_values, places=_MSBUILD)),
    ".fsproj": partial(_texts, partial(xml_values, places=_MSBUILD)),
    ".nuspec": partial(_texts, partial(xml_values, places=[("package", "metadata", "license")])),
}
