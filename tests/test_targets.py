"""Where summaries come from, which are good enough, and what is recorded of the others."""

import json

import pytest

from repo2ctx.choosing import choose
from repo2ctx.config import TargetsConfig
from repo2ctx.filters import Duplicates, NamesFound, code_names, foreign_language, rejection
from repo2ctx.licenses import PERMISSIVE, allows
from repo2ctx.prose import first_sentence
from repo2ctx.records import RepoSpec
from repo2ctx.sandbox import Sandbox

SAID = "A small index of plain-text notes"
LONG = (
    "Ferry keeps jobs in a queue on disk and runs them again when they fail. A job is a function with its arguments; what it "
    "returns is stored beside it, so that a program which was stopped goes on where it was. There is no server to run, "
    "and the files can be read with any tool."
)
SPEC = RepoSpec("a/b", "https://github.com/a/b", "github.com/a/b")


def chosen(small, spec=SPEC, files=None, **settings):
    """(style -> (source, text), [(style, source, fate)]) of a repository with these small files and code files."""
    code = files or {}
    with Sandbox(20, 3 << 30) as sandbox:
        found = choose(spec, small, list(code), lambda: code.items(), "MIT", TargetsConfig(**settings), sandbox)
    return {t.style: (t.source, t.text) for t in found.targets}, [(c.style, c.source, c.fate) for c in found.considered]


def test_sources_are_tried_in_the_configured_order_for_each_style():
    small = {"package.json": json.dumps({"description": SAID}), "README.md": f"# x\n\n{LONG}\n"}
    targets, considered = chosen(small)
    assert targets == {"line": ("metadata:package.json", SAID), "paragraph": ("readme:README.md", LONG)}
    assert ("line", "readme:README.md", "spare") in considered
    targets, _ = chosen(small, sources=("readme", "metadata"))
    assert targets["line"] == ("readme:README.md", first_sentence(LONG))
    listed = RepoSpec("a/b", "u", "github.com/a/b", summary="What the list says")
    assert chosen(small, listed)[0]["line"] == ("list", "What the list says")
    assert set(chosen(small, styles=("paragraph",))[0]) == {"paragraph"}
    assert chosen({}) == ({}, [])


def test_the_documentation_of_the_main_package_is_a_source():
    files = {"src/b/__init__.py": f'"""{SAID}.\n\n{LONG}\n"""\n', "src/b/other.py": "x = 1\n"}
    targets, _ = chosen({}, files=files)
    assert targets["line"] == ("docstring:src/b/__init__.py", f"{SAID}.")
    assert targets["paragraph"][1] == f"{SAID}.\n\n{LONG}"
    assert chosen({}, files={"b.go": f"// Package b is {SAID.lower()}.\npackage b\n"})[0]["line"][0] == "metadata:b.go"


@pytest.mark.parametrize(
    ("text", "style", "why"),
    [
        ("A library", "line", "too-short: 2 words"),
        ("word " * 41, "line", "too-long: 41 words"),
        (SAID, "paragraph", "too-short: 6 words"),
        ("TODO: say what this project does", "line", "template"),
        ("Add a short description of it here", "line", "template"),
        ("This project was bootstrapped with a tool", "line", "template"),
        ("My new awesome example project", "line", "template"),
        ("Reads {{ cookiecutter.name }} and writes it", "line", "template"),
        ("A tool that reads the following files:", "line", "unfinished"),
        ("Parent POM of all its modules", "line", "template"),
        ("This is the core of the framework", "line", "says-nothing"),
        ("Top-level package of the Laravel project", "line", "says-nothing"),
        ("There are many frameworks for the web", "line", "background"),
        ("HTML is the language of the web", "line", "background"),
        ("Laravel makes it easy to: Keep jobs in order.", "line", "unfinished"),
        ("Laravel is a web framework: small and quick", "line", ""),
        ("Bibliothek für die schnelle Suche in langen Texten", "line", "language: de"),
        ("a b a b a b a b a b a b", "line", "repetitive"),
        ("The Laravel Framework of Laravel Framework", "line", "only-name"),
        (SAID, "line", ""),
        (LONG, "paragraph", ""),
    ],
)
def test_filters_say_why(text, style, why):
    found = rejection(text, style, "laravel/framework", TargetsConfig())
    assert found.startswith(why)
    assert bool(found) == bool(why)


def test_languages():
    assert foreign_language("Fast JSON parser", ("en",)) == ""
    assert foreign_language("Fast, Extensible Progress Meter", ("en",)) == ""
    assert foreign_language("高性能なサーバを簡単に作るためのライブラリ", ("en",)) == "ja"
    assert foreign_language("高性能なサーバを簡単に作るためのライブラリ", ("en", "ja")) == ""
    assert foreign_language("Une bibliothèque pour écrire des applications", ()) == ""


def test_names_must_be_in_the_code():
    text = "Use `FerryQueue` and `retry_later`, or call run_all(); `pip install ferry`, `v1.2` and GitHub are no names."
    assert sorted(code_names(text)) == ["FerryQueue", "retry_later", "run_all"]
    found = NamesFound(code_names(text))
    found.see("class FerryQueue: pass")
    assert found.rejection(code_names(text), TargetsConfig()).startswith("names-not-in-code: 1 of 3")
    found.see("def retry_later(): run_all()")
    assert found.done
    assert found.rejection(code_names(text), TargetsConfig()) == ""
    small = {"README.md": "# x\n\n" + LONG + " It has `FerryQueue`, `retry_later` and `run_all`.\n"}
    assert any(style == "paragraph" and why.startswith("names-not-in-code: 0 of") for style, _, why in chosen(small)[1])
    assert "paragraph" in chosen(small, files={"a.py": "FerryQueue retry_later"})[0]


def test_targets_of_two_repositories_that_say_the_same():
    duplicates = Duplicates(0.7)
    assert duplicates.add("a", LONG) == ""
    assert duplicates.add("b", LONG.replace("Ferry", "Barge")) == "a"
    assert duplicates.add("c", "Something else is said here, of another thing altogether.") == ""
    assert duplicates.add("d", LONG) == "a"


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True), ("GPL-3.0-only", False), ("MIT OR GPL-3.0-only", True), ("MIT AND GPL-3.0-only", False),
        ("(MIT OR GPL-2.0-only) AND Apache-2.0 WITH LLVM-exception", True), ("GPL-2.0-only AND GPL-3.0-only OR MIT", True),
        ("NOASSERTION", False), ("", False), ("MIT OR", False), ("(MIT", False), ("MIT)", False), ("MIT MIT", False),
        ("(" * 100_000, False),
    ],
)  # fmt: skip
def test_licences_that_can_be_satisfied(expression, allowed):
    assert allows(expression, PERMISSIVE) is allowed
