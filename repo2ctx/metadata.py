"""Descriptions in manifests: which there are, and the manifest with them emptied in place.

A manifest is known by its base name or ending. One reader per format (`_manifest_values.py` for data, `_manifest_code.py` for
programs, which are never run) finds the texts together with where they stand, so that what is read and what is emptied cannot
differ; the result is read once more to be sure. Linear in the text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from repo2ctx._manifest_code import (
    cmake_values,
    docker_values,
    gem_values,
    gradle_values,
    mix_values,
    nix_values,
    python_values,
)
from repo2ctx._manifest_values import (
    Place,
    Value,
    header_values,
    ini_values,
    json_values,
    package_info_values,
    rpm_values,
    toml_values,
    xml_values,
    yaml_values,
)

TARGET_MANIFESTS = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "package.json",
    "Cargo.toml",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    ".gemspec",
    "composer.json",
    ".csproj",
    ".nuspec",
)
"""Base names, or endings where they begin with a dot, of the manifests whose description may be a target, best first."""

_FEWEST_WORDS = 4  # a shorter text left elsewhere is no copy of a description
_REFERENCE = re.compile(r"\s*(?:file|attr)\s*:|\s*%\(|[^{}]*(?:\$\{|#\{|\$\()", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\{\{[^{}]*\}\}|\$\w+\$?|<%[^%]*%>|@\w+@")

Reader = Callable[[str], Iterable[Value] | None]


def _json(*names: str) -> Reader:
    return partial(json_values, names=names)


def _toml(*places: str) -> Reader:
    return partial(toml_values, places=_places(places))


def _yaml(*places: str) -> Reader:
    return partial(yaml_values, places=_places(places))


def _xml(*places: str) -> Reader:
    return partial(xml_values, places=_places(places))


def _places(dotted: Iterable[str]) -> list[Place]:
    return [tuple(place.split(".")) for place in dotted]


_GROUP, _PACKAGE = "project.propertygroup", "package.metadata"
_MSBUILD = _xml(*(f"{_GROUP}.{name}" for name in ("summary", "packagesummary", "description", "packagedescription")))
_CARGO_DEB = ("package.metadata.deb.extended-description", "package.metadata.generate-rpm.summary")

_BY_NAME: Mapping[str, Reader] = {
    "pyproject.toml": _toml(
        "project.description", "tool.poetry.description", "tool.flit.metadata.description", "project.readme.text"
    ),
    "setup.cfg": partial(ini_values, section="metadata", names=("description", "summary", "long_description")),
    "setup.py": partial(python_values, names=("description", "summary", "long_description")),
    "package.json": _json("description"),
    "composer.json": _json("description"),
    "bower.json": _json("description"),
    "deno.json": _json("description"),
    "deno.jsonc": _json("description"),
    "jsr.json": _json("description"),
    "codemeta.json": _json("description"),
    ".zenodo.json": _json("description"),
    "elm.json": _json("summary"),
    "vcpkg.json": _json("description"),
    "cargo.toml": _toml("package.description", "workspace.package.description", *_CARGO_DEB),
    "pom.xml": _xml("project.description"),
    "build.gradle": gradle_values,
    "build.gradle.kts": gradle_values,
    "gradle.properties": partial(ini_values, section="", names=("description", "pom_description")),
    "library.properties": partial(ini_values, section="", names=("sentence", "paragraph")),
    "directory.build.props": _MSBUILD,
    "pubspec.yaml": _yaml("description"),
    "shard.yml": _yaml("description"),
    "chart.yaml": _yaml("description"),
    "snapcraft.yaml": _yaml("summary", "description"),
    "package.yaml": _yaml("synopsis", "description"),
    "citation.cff": _yaml("abstract"),
    "mkdocs.yml": _yaml("site_description"),
    "mkdocs.yaml": _yaml("site_description"),
    "_config.yml": _yaml("tagline", "description"),
    "_config.yaml": _yaml("tagline", "description"),
    "action.yml": _yaml("description"),
    "action.yaml": _yaml("description"),
    "mix.exs": mix_values,
    "flake.nix": nix_values,
    "cmakelists.txt": cmake_values,
    "pkg-info": package_info_values,
    "metadata": package_info_values,
    "description": partial(header_values, names=("title", "description"), needs="Package"),
    "dockerfile": docker_values,
    "containerfile": docker_values,
    ".github/settings.yml": _yaml("repository.description"),
    "debian/control": partial(header_values, names=("description",), synopsis=True),
}
_BY_ENDING: Mapping[str, Reader] = {
    ".gemspec": gem_values,
    ".podspec": gem_values,
    ".csproj": _MSBUILD,
    ".fsproj": _MSBUILD,
    ".vbproj": _MSBUILD,
    ".nuspec": _xml(f"{_PACKAGE}.summary", f"{_PACKAGE}.description"),
    ".cabal": partial(header_values, names=("synopsis", "description")),
    ".spec": rpm_values,
    ".dockerfile": docker_values,
}


def is_manifest(path: str) -> bool:
    """Whether a path is that of a manifest that may hold descriptions, at any depth."""
    return _reader(path) is not None


def descriptions(path: str, text: str) -> list[str]:
    """Every description that a manifest holds of the package itself, each once, the short main one first. References to other
    files or values are none. [] if there is none or the manifest cannot be read."""
    return _said_by(_values(path, text) or [])


def emptied(path: str, text: str, remove: Collection[str]) -> str | None:
    """The manifest with each description in `remove`, as `descriptions` gave it, made an empty value in place.

    Nothing else changes, the number of lines neither. None if that cannot be done for sure: if the result cannot be read, says
    something else, or still holds the literal.
    """
    values = _values(path, text) or []
    edits = sorted({edit for value in values if _said(value) in remove for edit in value.edits})
    parts, at = [], 0
    for start, end, empty in edits:
        if start < at:
            return None
        parts += [text[at:start], empty]
        at = end
    result = "".join(parts) + text[at:]
    left = _values(path, result) if edits else values
    if left is None or _said_by(left) != [said for said in _said_by(values) if said not in remove]:
        return None
    literals = {text[start:end].strip() for start, end, _ in edits}
    return None if any(len(literal.split()) >= _FEWEST_WORDS and literal in result for literal in literals) else result


def _reader(path: str) -> Reader | None:
    folder, name = posixpath.split(path.lower())
    full = f"{posixpath.basename(folder)}/{name}"
    for known in (full, name):
        if known in _BY_NAME:
            return _BY_NAME[known]
    if name.startswith("dockerfile."):
        return docker_values
    return _BY_ENDING.get(posixpath.splitext(name)[1])


def _values(path: str, text: str) -> list[Value] | None:
    """The texts by rank; None where the manifest cannot be read."""
    reader = _reader(path)
    found = reader(text) if reader else None
    return None if found is None else sorted(found, key=lambda value: value.rank)


def _said_by(values: Iterable[Value]) -> list[str]:
    return list(dict.fromkeys(said for value in values if (said := _said(value))))


def _said(value: Value) -> str:
    """What a value says; nothing if it refers elsewhere."""
    text = value.text.strip()
    if _REFERENCE.match(text) or (
        _PLACEHOLDER.search(text) and len(_PLACEHOLDER.sub("", text).split()) < _FEWEST_WORDS
    ):
        return ""
    return text
