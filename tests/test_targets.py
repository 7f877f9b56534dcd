"""Where summaries come from, and that none of it stays in the context."""

import json

import pytest

from repo2ctx.config import TargetsConfig
from repo2ctx.leakage import Quotes, source_paths, without_description
from repo2ctx.licenses import license_of
from repo2ctx.records import KEPT, RepoSpec, SourceFile
from repo2ctx.targets import choose_target, markdown_lead, restructured_lead

SAID = "A small index of plain-text notes"
SPEC = RepoSpec("a/b", "https://github.com/a/b", "github.com/a/b")
MANIFESTS = {
    "pyproject.toml": f'[project]\nname = "x"\ndescription = "{SAID}"\nversion = "1"\n',
    "setup.cfg": f"[metadata]\nname = x\ndescription = {SAID}\nversion = 1\n",
    "setup.py": f'import os\nfrom setuptools import setup\nsetup(name="x", description="{SAID}", version="1")\n',
    "package.json": json.dumps({"name": "x", "description": SAID, "version": "1"}, indent=2),
    "Cargo.toml": f'[package]\nname = "x"\ndescription = """\n{SAID}"""\nversion = "1"\n',
    "pom.xml": f'<project xmlns="http://maven.apache.org/POM/4.0.0"><description>\n {SAID}\n</description></project>',
    "composer.json": json.dumps({"description": SAID}),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_descriptions_are_read_and_emptied_in_place(name):
    target = choose_target(SPEC, {name: MANIFESTS[name]}, TargetsConfig())
    assert target is not None
    assert (target.text, target.source, target.style) == (SAID, f"metadata:{name}", "line")
    emptied = without_description(name, MANIFESTS[name], target.text)
    assert emptied is not None
    assert SAID not in emptied
    assert choose_target(SPEC, {name: emptied}, TargetsConfig()) is None
    assert ("name" in emptied) == ("name" in MANIFESTS[name])


def test_escaped_and_nested_descriptions():
    text = json.dumps({"description": 'Says "hi" \\ to all the people', "x": {"description": "of something else here"}})
    assert without_description("package.json", text, None) == text.replace(
        json.dumps('Says "hi" \\ to all the people'), '""'
    )
    below = '[package]\ndescription = "Only this crate of the workspace"\n'
    assert without_description("crates/a/Cargo.toml", below, "Another text") == below
    assert without_description("crates/a/Cargo.toml", below, "Only this crate of the workspace") != below


def test_a_description_that_cannot_be_emptied_takes_the_file_out():
    text = 'from setuptools import setup\nD = "A small index of notes"\nsetup(description="A small index of notes")\n'
    assert without_description("setup.py", text, None) is None


def test_setup_py_is_never_run(tmp_path):
    trap = tmp_path / "sprung"
    text = f'open({str(trap)!r}, "w")\nfrom setuptools import setup\nsetup(description="A small index of notes")\n'
    target = choose_target(SPEC, {"setup.py": text}, TargetsConfig())
    assert target is not None
    assert not trap.exists()


def test_sources_are_tried_in_the_configured_order():
    texts = {
        "package.json": MANIFESTS["package.json"],
        "README.md": "# x\n\nReads notes and finds the words in them.\n",
    }
    spec = RepoSpec("a/b", "u", "n", summary="What the list says")
    config = TargetsConfig()
    assert choose_target(spec, texts, config).source == "list"
    assert choose_target(SPEC, texts, config).source == "metadata:package.json"
    assert choose_target(SPEC, texts, TargetsConfig(sources=("readme", "metadata"))).source == "readme:README.md"
    assert (
        choose_target(SPEC, {"README.md": texts["README.md"]}, config).text
        == "Reads notes and finds the words in them."
    )
    assert choose_target(SPEC, {}, config) is None


def test_too_short_and_too_long_are_passed_over():
    texts = {"package.json": '{"description": "A library"}', "README.md": "word " * 900}
    assert choose_target(SPEC, texts, TargetsConfig()) is None


def test_markdown_lead_is_prose_only():
    text = """<p align="center"><img src="x.png"></p>

[![Build](https://x.example/b.svg)](https://x.example) [![License](l.svg)](l)

# Ferry

[Docs](d) | [Chat](c)

Ferry is a **queue** that [retries](https://x.example/retry) what
failed, with `backoff` &amp; jitter.

It stores jobs on disk.<br>

## Installation

Run this command to install all of it.
"""
    assert markdown_lead(text) == (
        "Ferry is a queue that retries what failed, with backoff & jitter.\n\nIt stores jobs on disk."
    )
    assert markdown_lead(
        "# T\n\n## Install\n\nRun this to install it.\n\n## What it is\n\nIt sorts letters by their weight."
    ) == ("It sorts letters by their weight.")


@pytest.mark.parametrize(
    "pointer",
    [
        "Please follow the documentation at its own site!",
        "This README is just a quick start document for you.",
        "Visit our site for extensive documentation of it.",
        "For more information, see the guide to all of it.",
        "Website | Guides | API Docs | Chat and more",
        "The editor (an npm package) supports:",
        "Authors: Some One and Some Other, both of them",
        "We're excited to announce the release of version 2!",
    ],
)
def test_pointers_and_lead_ins_are_no_summary(pointer):
    prose = "Reads and writes tables of any size, one column at a time."
    assert markdown_lead(f"# T\n\n{pointer}\n\n{prose}\n") == prose
    assert markdown_lead(f"# T\n\n{pointer}\n\n## What it is\n\n{prose}\n") == prose


def test_a_sentence_that_leads_in_to_a_list_is_cut():
    text = "# T\n\nA runtime for asynchronous programs, small and fast. It is:\n\n- **Fast**\n"
    assert markdown_lead(text) == "A runtime for asynchronous programs, small and fast."


def test_restructured_lead_is_prose_only(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("The secret words are here now")
    text = f"""
=====
Ferry
=====

.. image:: x.png
.. include:: {secret}
.. raw:: html
   :file: {secret}

Ferry is a **queue** that `retries <https://x.example>`_ what failed, with ``backoff``.

Install
-------

Run this command to install all of it.
"""
    assert restructured_lead(text) == "Ferry is a queue that retries what failed, with backoff."
    assert restructured_lead("") == ""
    assert isinstance(restructured_lead("=" * 3 + "\nx\n" + "-" * 9 + "\n.. :: \n|`*"), str)


def test_readmes_and_their_copies_leave_the_context():
    def file(path: str, blob: str, size: int = 10) -> SourceFile:
        return SourceFile(path, blob, size, KEPT)

    files = (
        file("README.md", "1"),
        file("README.zh-CN.md", "2"),
        file("readme_ja.rst", "3"),
        file("docs/index.md", "1"),
        file("src/readme.py", "4"),
        file("packages/a/README.md", "5"),
        file("empty/__init__.py", "0", 0),
    )
    assert source_paths(files, {}) == {"README.md", "README.zh-CN.md", "readme_ja.rst", "docs/index.md"}
    link = (file("README.md", "9"), file("docs/intro.md", "7"), file("site/intro.md", "7"))
    assert source_paths(link, {"README.md": "docs/intro.md"}) == {"docs/intro.md", "site/intro.md"}


@pytest.mark.parametrize(
    "quote",
    [
        '__description__ = "Keeps plain-text notes and finds them by their words."',
        "# keeps plain-text notes\n#   and finds them by their words",
        "/*\n * KEEPS PLAIN-TEXT NOTES AND\n * FINDS THEM BY THEIR WORDS.\n */",
        "<p>Keeps <b>plain-text</b> notes and finds\nthem by their words.</p>",
        '"Keeps plain-text notes " "and finds them by their words"',
    ],
)
def test_sentences_of_the_target_are_blanked_wherever_they_stand(quote):
    quotes = Quotes("Keeps plain-text notes and finds them by their words. It is fast.\n\nStores its index on disk.")
    text = f"x = 1\n{quote}\ny = 2\n"
    blanked = quotes.blank(text)
    assert "finds" not in blanked.lower()
    assert blanked.startswith("x = 1\n")
    assert blanked.endswith("\ny = 2\n")
    assert "stores" not in quotes.blank("He stores its index on disk. stores its index on disk").lower()


def test_code_that_shares_words_with_the_target_is_left_alone():
    quotes = Quotes("Keeps plain-text notes and finds them by their words. It is fast.")
    for text in (
        "notes = keep(text)\nfinds(words, by=them)\n",
        "It is fast.",
        "xKeeps plain-text notes and finds them by their wordsy",
    ):
        assert quotes.blank(text) == text


def test_licences():
    assert license_of({"pyproject.toml": '[project]\nlicense = "BSD-3-Clause"\n'}) == "BSD-3-Clause"
    assert license_of({"Cargo.toml": '[package]\nlicense = "MIT/Apache-2.0"\n'}) == "MIT OR Apache-2.0"
    assert license_of({"package.json": '{"license": "UNLICENSED"}'}) == "NOASSERTION"
    from identify.vendor.licenses import LICENSES

    mit = dict(LICENSES)["MIT"].replace("[year]", "2020").replace("[fullname]", "Someone")
    assert license_of({"LICENSE.txt": mit}) == "MIT"
    assert license_of({"COPYING": "All rights reserved, do not look."}) == "NOASSERTION"
    assert license_of({}) == "NOASSERTION"
