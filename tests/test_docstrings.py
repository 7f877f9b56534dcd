"""The documentation of the main module: found, cut to prose, and emptied without touching anything else."""

import ast
import time

import pytest

from repo2ctx.docstrings import documentation, main_modules, without_documentation

SAID = "Ferry is a queue that retries what failed, with `backoff`."
CASES: list[tuple[str, str, str]] = [
    ("a/__init__.py", '"""Ferry is a queue that retries what failed, with ``backoff``."""\n', SAID),
    ("a.py", '#!/usr/bin/env python\n# -*- coding: utf-8 -*-\nr\'\'\'\nferry\n~~~~~\n\nFerry is a :term:`queue <q>` that retries what failed,\nwith :func:`~a.backoff`.\n\n:copyright: (c) someone\n\'\'\'\nx = __doc__\n', "Ferry is a queue that retries what failed, with `a.backoff`."),
    ("a.py", '"""\r\nFerry is a **queue** that `retries <https://x.example>`_ what failed, with `backoff`.\r\nBasic usage:\r\n\r\n    >>> 1\r\n"""\r\n', SAID),
    ("a.py", '"""Ferry is a queue. It has\n\n* this\n* that\n\nAnd more of it is here.\n"""\n', "Ferry is a queue. It has"),
    ("a.py", '"""Ferry keeps jobs on disk.\n\nIt is *fast*.\n\nArgs:\n    x: a\n"""', "Ferry keeps jobs on disk.\n\nIt is fast."),
    ("a.py", '"""Ferry keeps jobs on disk.\n\nExample usage::\n\n    ferry\n\nMore.\n"""', "Ferry keeps jobs on disk."),
    ("a.py", '"""Documentation tools for ferries"""', "Documentation tools for ferries"),
    ("a.py", '"""Copyright (c) of someone\n\nFerry is a queue that retries.\n"""', ""),
    ("a.py", '"""\n$Id: a b c$\n\nFerry keeps jobs on disk.\n\nSee the site for more of it.\n"""', "Ferry keeps jobs on disk."),
    ("a.py", '__version__ = "1"\n__doc__ = """Ferry keeps jobs on disk."""\n', "Ferry keeps jobs on disk."),
    ("a.py", '("Ferry keeps "\n "jobs on disk.")\né = "ü"\n', "Ferry keeps jobs on disk."),
    ("a/__main__.py", '"""The entry point of the ferry command."""\n', ""),
    ("a.py", "x = 1\n'''no documentation of it'''\n", ""),
    ("a.py", "def (\n", ""),
    ("doc.go", "// Copyright of someone.\n\n//go:build x\n\n// Package ferry provides a queue\n// that retries.\n//\n// # Usage\n//\n//\tferry\npackage ferry\n", "Package ferry provides a queue that retries."),
    ("doc.go", "/*\nPackage ferry provides a queue.\n\nIt retries.\n\nWhat it does\n\nAll of that.\n*/\npackage ferry // x\n", "Package ferry provides a queue.\n\nIt retries."),
    ("a.go", "// Copyright of someone. All rights reserved.\n// Use of this source code is free.\npackage ferry\n", ""),
    ("a.go", "// Package ferry is not documented here.\n\npackage ferry\n", ""),
    ("src/lib.rs", "// Copyright of someone\n#![no_std]\n//! # Ferry\n//!\n//! [![b](c)](d)\n//!\n//! Ferry is a [queue][q] that [retries](x) what failed, with [`backoff`].\n//!\n//! ```\n//! ferry();\n//! ```\n#![doc(html_root_url = \"]\")]\n//! More of it.\nuse a; //! no\n", SAID),
    ("src/lib.rs", "/*! Ferry keeps jobs on disk.\n *\n * It is fast. */\nfn a() {}\n", "Ferry keeps jobs on disk.\n\nIt is fast."),
    ("a/package-info.java", "/* Licensed to someone */\n/**\n * <h2>Ferry</h2>\n * <p>{@link a.b.Ferry} is a <b>queue</b> that retries &amp; waits, with {@code backoff}.\n *<p>See it.\n * <ul><li>x</ul>\n * @since 1\n */\n@NonNull(a)\npackage a.b;\n", "Ferry is a queue that retries & waits, with `backoff`."),
    ("index.ts", "#!/usr/bin/env node\n/*! licence */\n/**\n * @fileoverview Ferry keeps jobs on disk.\n * It is fast.\n * @module ferry\n */\n'use strict'\n", "Ferry keeps jobs on disk. It is fast."),
    ("index.js", "/**\n * Ferry keeps jobs on disk.\n *\n * @packageDocumentation\n */ export {}\n", "Ferry keeps jobs on disk."),
    ("index.js", "/**\n * Makes a queue of all the jobs.\n */\nfunction a() {}\n", ""),
    ("a.rb", "# Ferry keeps jobs on disk.\n", ""),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "said"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_the_prose_is_read_and_the_documentation_emptied_in_place(path, text, said):
    assert documentation(path, text) == said
    empty = without_documentation(path, text)
    if "def (" in text:
        assert empty is None
        return
    assert empty is not None
    assert documentation(path, empty) == ""
    assert not said or "erry is" not in empty
    assert not said or "erry keeps" not in empty
    assert len(empty.splitlines(keepends=True)) == len(text.splitlines(keepends=True))
    assert without_documentation(path, empty) == empty
    if path.endswith(".py"):
        before, after = ([ast.dump(n) for n in ast.parse(t).body] for t in (text, empty))
        assert sum(a != b for a, b in zip(before, after, strict=True)) == (text != empty)


def test_the_rest_of_the_file_stays():
    text = '\ufeff# ü\n"""Ferry\nkeeps."""; x = """Ferry keeps."""\n'
    assert without_documentation("a.py", text) == '\ufeff# ü\n"""\n"""; x = """Ferry keeps."""\n'
    text = "// licence\n\n//go:generate x\n// Package a.\npackage a // b\n"
    assert without_documentation("a.go", text) == "// licence\n\n//go:generate x\n\npackage a // b\n"
    text = "/** a\n * @module a\n */ x(); /** b */\n"
    assert without_documentation("a.js", text) == "\n\n x(); /** b */\n"


@pytest.mark.parametrize(
    ("paths", "name", "found"),
    [
        ("pyproject.toml src/ferry/__init__.py src/ferry/__main__.py src/other/__init__.py", "ferry", "src/ferry/__init__.py src/ferry/__main__.py"),
        ("my_ferry/__init__.py my_ferry/sub/__init__.py tests/__init__.py", "My-Ferry", "my_ferry/__init__.py"),
        ("ferry/__init__.py", "python-ferry", "ferry/__init__.py"),
        ("ferry/__init__.py", "pyferry", "ferry/__init__.py"),
        ("pyferry/__init__.py", "ferry", "pyferry/__init__.py"),
        ("src/_ferry/__init__.py src/ferry/__init__.py", "ferry", "src/ferry/__init__.py src/_ferry/__init__.py"),
        ("parts/src/ferry/__init__.py parts/tests/ferry/__init__.py", "ferry", "parts/src/ferry/__init__.py"),
        ("setup.py boat/__init__.py tests/__init__.py boat/a/__init__.py", "ferry", "boat/__init__.py"),
        ("setup.py boat/__init__.py ship/__init__.py", "ferry", ""),
        ("boat/__init__.py main.c", "ferry", ""),
        ("setup.py ferry.py other.py", "ferry", "ferry.py"),
        ("setup.py boat.py", "ferry", "boat.py"),
        ("a.go ferry.go doc.go a_test.go x/doc.go", "ferry", "doc.go ferry.go a.go"),
        ("cmd/ferry/main.go cmd/x/main.go", "ferry", "cmd/ferry/main.go"),
        ("src/main.rs src/lib.rs src/a/lib.rs", "ferry", "src/lib.rs src/main.rs"),
        ("crates/ferry/src/lib.rs crates/x/src/lib.rs", "ferry", "crates/ferry/src/lib.rs"),
        ("ferry/src/lib.rs ferry-macros/src/lib.rs", "ferry-rs", "ferry/src/lib.rs"),
        ("src/main/java/a/b/package-info.java src/main/java/a/package-info.java src/main/java/a/A.java", "ferry", "src/main/java/a/package-info.java"),
        ("src/main/java/a/b/package-info.java src/main/java/a/A.java", "ferry", ""),
        ("ferry-core/src/main/java/a/package-info.java x/src/main/java/package-info.java/A.java", "ferry", "ferry-core/src/main/java/a/package-info.java"),
        ("index.js src/index.ts lib/a.js", "ferry", "index.js src/index.ts"),
        ("package-info.java __init__.py src/main/java/package-info.java", "", "src/main/java/package-info.java"),
        ("", "ferry", ""),
    ],
)  # fmt: skip
def test_which_files_may_hold_it(paths, name, found):
    assert main_modules(paths.split(), name) == found.split()
    assert main_modules(sorted(paths.split(), reverse=True), name) == found.split()


def test_there_are_never_many():
    assert len(main_modules([f"{i}.go" for i in range(100)], "x")) == 20


PIECES = [
    "'", '"', "`", "\\", "/*", "*/", "/**", "//", "//!", "///\n", "//! a\n", "// a\n", "/*a*/", "/** @module */", "#", "# a\n", "<", "<a", "<p>", "{", "{@code ", "[",
    "[a](", "![", "[![", "(", "\r", "\n", "\r\n", "\t", " ", "a", "a ", "é", "\0", "\ufeff", ".", ":", ":a", "*", "**", "***a", "_", "__a", "=\n", "a\n==\n",
    "a.\n\n", "- a\n", '"""', "'''", "#![", "#![a]\n", "@", "@a(", "@a ", "package a\n", "import a;", "`a <", ":a:`b", "a: ", "1", "__doc__ = ''\n", "`` ",
]  # fmt: skip
FIRST = {".py": '"""', ".go": "/*", ".rs": "//! ", ".java": "/**\n", ".ts": "/** @module a\n"}
LAST = {".py": '"""', ".go": "*/ package a", ".java": "*/ package a;"}


@pytest.mark.parametrize("count", [30_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ending", FIRST)
def test_whatever_is_in_a_file_reading_it_ends(ending, count):
    for piece in PIECES:
        many = piece * (count // len(piece))
        for text in (many, FIRST[ending] + many + LAST.get(ending, "")):
            start = time.monotonic()
            said = documentation("x" + ending, text)
            empty = without_documentation("x" + ending, text)
            assert empty is None or documentation("x" + ending, empty) == "" or not said
            assert time.monotonic() - start < (2 if count <= 30_000 else 15), (piece, text[:9])
