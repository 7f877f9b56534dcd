"""Tests that name what they test, and nothing else says so: `test_cart.py` for `cart.py`, `CartTest.java` for `Cart.java`. Pure.

A test that runs a program, or finds its subject at run time, has no import of it. Its name still tells, if just one file of the
language and package is meant: the one beside it or beside its folder of tests, else, within the folder that holds the
folder of tests, the one whose folders end most as its own do.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator

from repo2ctx.records import Edge

_BEFORE = re.compile(r"(?:test|tests|spec)[_-](?=\w)|Tests?(?=[A-Z])")
_AFTER = re.compile(r"(?<=\w)(?:[_.-](?:test|tests|spec|specs)|(?<=[a-z0-9])(?:Tests?|TestCase|Specs?))\Z")
_FOLDERS = frozenset({"test", "tests", "spec", "specs", "__tests__", "testing"})
_NAMES_OF_MANY = frozenset({"__init__", "index", "main", "mod", "lib", "util", "utils", "common", "helper", "helpers"})
_NO_SUBJECTS = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__|bench(?:es|marks?)?|examples?|docs?)/|\.gemspec$")
_MOST_CANDIDATES = 64


def test_edges(paths: Collection[str], edges: Collection[Edge]) -> Iterator[Edge]:
    """Soft edges of the kind `test` among the files of one language, where the graph has none between the two."""
    named = {path: name for path in sorted(paths) if (name := _subject(path)) is not None}
    if not named:
        return
    known: set[tuple[str, str]] = set()
    for edge in edges:
        if edge.source in named:
            known.add((edge.source, _stem(edge.target)))
        if edge.target in named:
            known.add((edge.target, _stem(edge.source)))
    homes = {home for path in paths if (home := _home(path)) is not None}
    subjects: dict[str, list[str]] = {}
    for path in sorted(paths):
        if path not in named and not _NO_SUBJECTS.search(path):
            subjects.setdefault(_stem(path), []).append(path)
    for path, name in named.items():
        target = None if (path, name) in known else _choose(path, subjects.get(name, []), homes, name in _NAMES_OF_MANY)
        if target is not None:
            yield Edge(path, target, "test", "soft")


def _stem(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _subject(path: str) -> str | None:
    """The name of what a file tests; None if it is no test by its name."""
    stem = _stem(path)
    tests = path.endswith(".py") or not _FOLDERS.isdisjoint(path.split("/")[:-1])  # where `test_x` names a test
    before, after = _BEFORE.match(stem), _AFTER.search(stem)
    if after:
        return stem[: after.start()]
    return stem[before.end() :] if before and tests else None


def _choose(path: str, candidates: list[str], homes: Collection[str], near_only: bool) -> str | None:
    folder = _folder(path)
    beside = [c for c in candidates if posixpath.dirname(c) in (posixpath.dirname(path), folder)]
    if len(beside) == 1:
        return beside[0]
    home = _home(path)
    candidates = [c for c in candidates if home is not None and _nearest(c, homes) == home]
    if near_only or beside or not 0 < len(candidates) <= _MOST_CANDIDATES:
        return None
    shared = [_shared_end(folder, posixpath.dirname(c)) for c in candidates]
    best = [c for c, count in zip(candidates, shared, strict=True) if count == max(shared)]
    return best[0] if len(best) == 1 else None


def _home(path: str) -> str | None:
    """The folder that holds the folder of tests, with "/"; None if the file is in none."""
    parts = path.split("/")[:-1]
    first = next((i for i, part in enumerate(parts) if part in _FOLDERS), None)
    return None if first is None else "".join(f"{part}/" for part in parts[:first])


def _nearest(path: str, homes: Collection[str]) -> str | None:
    """Of the folders that hold tests, the innermost around a file: another one's tests are about another package."""
    parts = path.split("/")[:-1]
    above = ("".join(f"{part}/" for part in parts[:count]) for count in range(len(parts), -1, -1))
    return next((folder for folder in above if folder in homes), None)


def _folder(path: str) -> str:
    """The folder of a test without those that hold tests."""
    return "/".join(part for part in posixpath.dirname(path).split("/") if part not in _FOLDERS)


def _shared_end(folder: str, other: str) -> int:
    count = 0
    for a, b in zip(reversed(folder.split("/")), reversed(other.split("/")), strict=False):
        if a != b:
            break
        count += 1
    return count
