"""Keep a file, or say why not: simple named rules over a path, a size and the bytes.

Rules that need no bytes come first (`fate_by_entry`), so that what they drop is never read; `read_text` decodes
the rest. Nothing is left out because a .gitignore says so: what is committed is part of the repository.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from functools import cache

import enry
from charset_normalizer import from_bytes

from repo2ctx.records import KEPT, TreeEntry
from repo2ctx.snapshot import SUBMODULE, SYMLINK

REASONS = {
    "symlink": "a symbolic link; never followed",
    "submodule": "another repository's commit",
    "missing": "not in the object store, or damaged there",
    "unusable-name": "its path could not be checked out anywhere (`/x`, `a//b`, `..`, over 4,096 bytes)",
    "name-collision": "its name, made readable, is another file's",
    "too-large": "larger than selection.max_file_bytes",
    "data": "a data file (JSON, CSV, SVG, XML …) larger than selection.max_data_bytes",
    "vendored": "somebody else's code (linguist's rules)",
    "generated": "made by a program (linguist's rules)",
    "lock-file": "pinned dependency versions",
    "lfs-pointer": "a Git LFS pointer; the content is elsewhere",
    "binary": "not text",
    "undecodable": "text in no encoding that we could tell for sure",
    "target-source": "a README, the documentation's front page, or what else the summary was taken from or is repeated in",
}
"""Every fate but `kept`, and what it means."""

_LOCK_FILES = frozenset(
    """
    package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock Cargo.lock
    poetry.lock uv.lock pdm.lock pixi.lock Pipfile.lock conda-lock.yml composer.lock Gemfile.lock go.sum go.work.sum
    flake.lock mix.lock pubspec.lock Podfile.lock Cartfile.resolved Package.resolved packages.lock.json
    gradle.lockfile .terraform.lock.hcl
""".split()
)
# Linguist's vendor rules serve statistics: these directories hold a project's own work as often as not.
_NOT_VENDORED = re.compile(r"(?:^|/)(?:cache|env|testdata|fixtures)/|(?:^|/)\.[^/]+(?:/|$)")
_MANIFESTS = frozenset(
    """
    pyproject.toml setup.py setup.cfg package.json go.mod go.work Cargo.toml pom.xml build.gradle build.gradle.kts
    settings.gradle settings.gradle.kts CMakeLists.txt Makefile GNUmakefile meson.build configure.ac Gemfile Rakefile
    composer.json tsconfig.json Dockerfile BUILD BUILD.bazel WORKSPACE MODULE.bazel module-info.java
""".split()
)
_MANIFEST_ENDINGS = (".gemspec", ".csproj", ".sln", ".cabal")
_REQUIREMENTS = re.compile(r"requirements[\w.-]*\.(?:txt|in)")
_TEST_FOLDERS = frozenset("test tests spec specs __tests__ testing testdata e2e fixtures".split())
_TEST_NAME = re.compile(
    r"test_.*\.(?:py|c|cc|cpp|rb|php|sh)|conftest\.py|tests?\.rs|(?:test|spec)_helper\.rb|.*[_.-](?:test|tests|spec)\.(?!rs$)[A-Za-z]+"
    r"|.+(?:Test|Tests|TestCase|IT)\.(?:java|kt|cs|scala|php)"
)
_TEST_PROJECT = re.compile(r".+[.]tests?")  # as .NET names the folders of test projects
_NO_TESTS = re.compile(r"(?:^|/)src/main/|(?:^|/)lib/.*\.rb$")  # whatever a file there is called
_EXAMPLE_FOLDERS = frozenset(
    "example examples sample samples demo demos playground playgrounds bench benches benchmark benchmarks".split()
)
_DOC_FOLDERS = frozenset(["doc", "docs", "documentation"])
_HEAD_BYTES = 1 << 16  # as much as language and generator detection look at
_SNIFF_BYTES = 1 << 18
_LFS = b"version https://git-lfs.github.com/spec/v1"
_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
# Encodings that source is really written in; rarer ones win by chance on short files.
_LEGACY = "cp932 euc_jp cp949 gb18030 big5 cp1252 cp1250 cp1251 koi8_r cp1253 cp1254".split()
_CONTROL = re.compile(r"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Selected:
    """What was made of a blob: `text` is there only if the fate is KEPT or a rule that reads still let it be parsed."""

    fate: str
    text: str | None = None
    encoding: str = ""
    language: str = ""


def fate_by_entry(entry: TreeEntry, size: int | None, max_file_bytes: int) -> str:
    """The fate as far as mode, path and size decide it; KEPT means: read it."""
    if not entry.usable:
        return "unusable-name"
    if entry.mode == SYMLINK:
        return "symlink"
    if entry.mode == SUBMODULE:
        return "submodule"
    if size is None:
        return "missing"
    if posixpath.basename(entry.path) in _LOCK_FILES:
        return "lock-file"
    if size > max_file_bytes:
        return "too-large"
    if is_vendored(entry.path):
        return "vendored"
    return KEPT


def is_vendored(path: str) -> bool:
    return bool(enry.is_vendor(path)) and not _NOT_VENDORED.search(path)


def read_text(path: str, data: bytes, max_data_bytes: int) -> Selected:
    """Decode a blob and tell its language; generated and undecodable files and large data are not kept."""
    if data.startswith(_LFS) and len(data) < 1024:
        return Selected("lfs-pointer")
    decoded = decode(data)
    if isinstance(decoded, str):
        return Selected(decoded)
    text, encoding = decoded
    head = text[:_HEAD_BYTES].encode("utf-8", "replace")
    language = enry.get_language(posixpath.basename(path), head) or ""
    fate = KEPT
    if enry.is_generated(path, head):
        fate = "generated"
    elif len(data) > max_data_bytes and _language_type(language) == "data":
        fate = "data"
    return Selected(fate, text, encoding, language)


def decode(data: bytes) -> tuple[str, str] | str:
    """(text, encoding), or the fate `binary` or `undecodable`.

    UTF-8 is taken as it is, byte for byte. Other encodings are told by their byte-order mark, by the zero bytes
    of UTF-16, or by charset-normalizer among those that source is really written in.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            try:
                return data.decode(encoding), encoding
            except UnicodeDecodeError:
                return "binary"
    if b"\0" in data:
        return _decode_utf16_without_mark(data) or "binary"
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        pass
    best = from_bytes(data[:_SNIFF_BYTES], cp_isolation=_LEGACY, preemptive_behaviour=True).best()
    if best is None:
        return "undecodable"
    try:
        text = data.decode(best.encoding)
    except UnicodeDecodeError:
        return "undecodable"
    return "binary" if _CONTROL.search(text) else (text, best.encoding)


def _decode_utf16_without_mark(data: bytes) -> tuple[str, str] | None:
    """UTF-16 without a mark, if every other byte of mostly Latin text is zero."""
    even, odd = data[0::2].count(0), data[1::2].count(0)
    encoding = "utf-16-le" if odd > even else "utf-16-be"
    if len(data) % 2 or max(even, odd) < 0.3 * len(data) or min(even, odd):
        return None
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else (text, encoding)


@cache
def _language_type(language: str) -> str:
    return enry.get_language_type(language) if language else "unknown"


def is_code(language: str) -> bool:
    """Whether a language is for programs, pages or styles, and not for data or prose."""
    return _language_type(language) in ("programming", "markup")


def role(path: str, language: str) -> str:
    """What part a file plays: manifest, test, docs, example, config or code."""
    name = posixpath.basename(path)
    folders = posixpath.dirname(path).lower().split("/")
    if _TEST_FOLDERS.intersection(folders) or any(_TEST_PROJECT.fullmatch(folder) for folder in folders):
        return "test"
    if _TEST_NAME.fullmatch(name) and not _NO_TESTS.search(path):
        return "test"
    if _EXAMPLE_FOLDERS.intersection(folders):
        return "example"
    if _DOC_FOLDERS.intersection(folders):
        return "docs"
    if name in _MANIFESTS or name.endswith(_MANIFEST_ENDINGS) or _REQUIREMENTS.fullmatch(name):
        return "manifest"
    kind = _language_type(language)
    if kind == "prose":
        return "docs"
    if kind in ("data", "unknown") or _NOT_VENDORED.search(path):
        return "config"
    return "code"
