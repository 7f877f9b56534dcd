"""READMEs: which they are, and what their lead says."""

import random
import time

import pytest

from repo2ctx.prose import described, first_sentence, is_readme, lead, readmes, tidy

SAYS = "Ferry carries jobs between machines and keeps them on disk."
MORE = "Each queue has one writer, so that no job is ever lost."


def md(text: str, enough: int = 5) -> list[str]:
    return lead("README.md", text, enough)


def test_readmes_in_the_order_to_try_them():
    paths = [
        "docs/README.md",
        "README",
        "README.rst",
        "readme.txt",
        ".github/README.md",
        "README.md",
        "docs/README.en.md",
        "README-EN.md",
    ]
    assert readmes(
        [
            *paths,
            "src/README.md",
            "README.zh-CN.md",
            "README_ja.rst",
            "README-zh_Hans.md",
            "LEIAME.md",
            "README.build.md",
        ]
    ) == [
        "README-EN.md",
        "docs/README.en.md",
        "README.md",
        "README.rst",
        "readme.txt",
        "README",
        ".github/README.md",
        "docs/README.md",
    ]
    assert readmes(
        ["README_en-US.rst", "README.eng.md", "Readme.markdown", "README.adoc", "README.org", "README.asciidoc"]
    )[:2] == [
        "README.eng.md",
        "README_en-US.rst",
    ]


@pytest.mark.parametrize(
    "path",
    "README README.md readme.adoc README.zh-CN.md README_ja.rst README-zh_Hans.md LEIAME LISEZMOI.md README.md.tpl docs/README.md"
    " .github/README.md doc/README.rst i18n/README.fr.md translations/README_de.md docs/i18n/README.md docs/zh/README.md"
    " readmes/README-es.md readmes/zh-CN.md docs/readmes/ja.md".split(),
)
def test_is_readme(path):
    assert is_readme(path)


@pytest.mark.parametrize(
    "path",
    "packages/a/README.md src/readme.py readme.py docs/guide/README.md i18n/zh.json docs/ja.md READMESSAGE".split(),
)
def test_is_no_readme(path):
    assert not is_readme(path)


def test_tidy():
    assert tidy(" a  b\nc\n \n\n d\ud800 ") == "a b c\n\nd?"


@pytest.mark.parametrize(
    "first",
    [
        "It reads formats, e.g. JSON or i.e. text, vs. others etc. and more.",
        "It needs Node.js v1.2 or later.",
        "The U.S. format is read.",
        "It was made after J. R. Smith wrote it.",
        "It waits ... and then goes on.",
        "Use `a. B` for that.",
        "Is it fast?",
        "It wraps Yahoo! finance (fast.)",
    ],
)
def test_first_sentence(first):
    assert first_sentence(f"{first} The next one follows. And another.") == first
    assert first_sentence(first) == first
    assert first_sentence("") == ""


def test_next_sentence_may_begin_with_a_small_name():
    assert first_sentence("Written in C. ferry is small.") != "Written in C."
    assert first_sentence("It is small. ferry is fast.") == "It is small."
    assert first_sentence("It runs everywhere. iOS too.") == "It runs everywhere."


# Markup ------------------------------------------------------------------------------------------------------------

SAME = [
    (
        "README.md",
        "# Ferry [![b](b.svg)](x)\n\n[![Build](https://x.example/b.svg)](https://x.example) ![i](i.png)\n\n"
        "[Docs](d) | [Chat](c)\n\nFerry *carries* [jobs](https://x.example) between\n**machines** &amp; keeps `them` on disk.<br>[^1]\n\n"
        "| a | table of words |\n|---|---|\n| b | c |\n",
    ),
    (
        "README.rst",
        "=====\nFerry\n=====\n\n.. image:: x.png\n.. |b| image:: b.png\n\n|b| |c|\n\n.. note:: It is a note to be left out of it.\n\n"
        ".. unknown:: x\n\n   Lost words of something.\n\nFerry *carries* `jobs <https://x.example>`_ between :class:`machines`\n"
        "& keeps ``them`` on :odd:`disk`. [1]_\n\n.. include:: /etc/passwd\n.. [1] A note\n",
    ),
    (
        "README.adoc",
        "= Ferry\nSome One <a@b.example>\n:what: jobs\n:url-x: https://x.example\n\nimage:https://x.example/b.svg[Build,link=x]\n"
        "image::x.png[]\n\n// comment of some words\nifdef::env-github[]\nNOTE: It is a note to be left out of it.\nendif::[]\n\n"
        "[source,java]\n----\nFerry is code here.\n----\n\n.Title\nFerry _carries_ {url-x}[{what}^] between\n*machines* & keeps `them` on xref:d.adoc[disk].\n",
    ),
    (
        "README.org",
        "#+TITLE: Ferry\n#+OPTIONS: toc:nil\n\n[[https://x.example/b.svg]]\n\n* About\n:PROPERTIES:\n:ID: x\n:END:\n# a comment\n"
        "Ferry /carries/ [[https://x.example][jobs]] between\n*machines* & keeps =them= on disk.\n#+BEGIN_SRC sh\nmake it all work\n#+END_SRC\n",
    ),
    ("README", "FERRY\n\nFerry carries jobs between\nmachines & keeps `them` on disk.\n\n    $ make all of it\n"),
    ("README.txt", "Ferry\n=====\n\nFerry carries jobs between\nmachines & keeps `them` on disk.\n"),
    ("README", "# Ferry\n\nFerry **carries** [jobs](https://x.example) between machines & keeps `them` on disk.\n"),
]


@pytest.mark.parametrize(("path", "text"), SAME)
def test_every_format_says_the_same(path, text):
    said = [p.replace("`machines`", "machines").replace("`disk`", "disk") for p in lead(path, text, 5)]
    assert said == ["Ferry carries jobs between machines & keeps `them` on disk."]


def test_front_matter_comments_and_admonitions_are_skipped():
    text = f"---\ntitle: A title of many words here\n---\n<!-- A comment of many words here. -->\n# Ferry\n\n> [!NOTE]\n> Words of a note that nobody needs.\n\n{SAYS}\n"
    assert md(text) == [SAYS]
    assert md(f"# Ferry\n\n> {SAYS}\n\n## Install\n") == [SAYS]


@pytest.mark.parametrize(
    "text",
    [
        f'<p align="center">{SAYS}</p>',
        f'<div align="center">\n<img src="x.png">\n<h1>Ferry</h1>\n<p><b>{SAYS}</b></p>\n<a href="d">Docs</a> • <a href="c">Chat</a>\n</div>',
        f'<p align="center">\n  <a href="x"><img src="b.svg"></a>\n\n  {SAYS}\n</p>',
        f"<h1>Ferry</h1><table><tr><td>Words of a table are no prose here.</td></tr></table>\n\n{SAYS}",
        f"<details>\n<summary>More</summary>\n\nThe long story of what it was before.\n\n</details>\n\n{SAYS}",
        f'<p align="center">Ferry<br>{SAYS}</p>',
    ],
)
def test_html_counts_where_it_is_prose(text):
    assert md(text) == [SAYS]


def test_emoji_and_shortcodes_go():
    assert md(f":rocket: {SAYS} \U0001f680 :tada:\n\n\U0001f389\n") == [SAYS]


# Sections ------------------------------------------------------------------------------------------------------------


def test_sections_that_describe_go_on_until_it_is_enough():
    text = f"# Ferry\n\n{SAYS}\n\n## Installation\n\nWrite the following words.\n\n### On other systems\n\nThe words are others there.\n\n## 🚀 Why Ferry?\n\n{MORE}\n\n## Odd\n\nNobody knows what it means here.\n\n## Features\n\nIt also speaks with other ferries.\n"
    assert md(text) == [SAYS]
    assert md(text, 12) == [SAYS, MORE]
    assert md(text, 100) == [SAYS, MORE, "It also speaks with other ferries."]


@pytest.mark.parametrize(
    "title",
    "Installation|Usage|Quick start|Getting Started|Building from source|License|Licence|Sponsors|Contributing|Credits|Authors|Contact"
    "|Support|Community|Changelog|Roadmap|News|Release Notes|Table of Contents|Translations|Requirements|What's new|Project in maintenance mode".split(
        "|"
    ),
)
def test_other_sections_are_passed_over(title):
    text = f"# Ferry\n\n## {title}\n\nThis one is a thing of many words.\n\n## Overview\n\n{SAYS}\n"
    assert md(text) == [SAYS]
    assert md(f"# Ferry\n\n**{title}**\n\nThis one is a thing of many words.\n\n**Overview**\n\n{SAYS}\n") == [SAYS]


def test_a_section_of_another_kind_must_say_what_something_is():
    assert md(f"# T\n\n## Ferry\n\nFerry is a queue that keeps jobs on disk.\n\n## Odd\n\n{MORE}\n") == [
        "Ferry is a queue that keeps jobs on disk."
    ]
    assert md("# T\n\n## Office hours\n\nThe team meets on every Tuesday of a month.\n") == []


def test_what_follows_code_goes_on_from_it():
    text = f"# Ferry\n\n{SAYS}\n\n```\ncode\n```\n\nThe output has two lines of numbers in it.\n\nIt has another line in it too.\n\nFerry keeps an index of all jobs, too.\n"
    assert md(text) == [SAYS, "Ferry keeps an index of all jobs, too."]


# Lists ---------------------------------------------------------------------------------------------------------------


def test_a_list_is_one_paragraph_with_what_leads_in_to_it():
    text = f"# Ferry\n\n{SAYS} It offers:\n\n- **Speed**: a job takes one write\n- [Small](x) - no parts that move\n- keeps `jobs` in order;\n  - nested words of no use here\n"
    assert md(text) == [
        f"{SAYS} It offers: Speed: a job takes one write. Small: no parts that move. Keeps `jobs` in order."
    ]


@pytest.mark.parametrize(
    "items", ["- Redis\n- Kafka\n- Disk\n", "- [The docs of it](x)\n- [The chat room](y)\n", "```\ncode\n```\n"]
)
def test_what_leads_in_to_nothing_goes(items):
    assert md(f"# Ferry\n\n{SAYS} It works with:\n\n{items}") == [SAYS]
    assert md(f"# Ferry\n\n{SAYS}\n\nIt can write to\n\n{items}")[0] == SAYS
    assert md(f"# Ferry\n\nFerry is a queue that keeps jobs on disk:\n\n{items}") == [
        "Ferry is a queue that keeps jobs on disk."
    ]


def test_at_most_twelve_items():
    (text,) = md(
        "# Ferry\n\nFerry has these parts:\n\n" + "".join(f"- the number {i} of all its parts\n" for i in range(10, 30))
    )
    assert text.count(".") == 12
    table = "".join(f"- the number {i} of all its parts\n" for i in range(10, 40))
    assert md(f"# Ferry\n\n{SAYS} Ferry has these parts:\n\n{table}") == [SAYS]


def test_a_list_without_prose_before_it_says_nothing():
    items = "- keeps all jobs in order\n- needs no server to run\n"
    assert md(f"# Ferry\n\n{items}") == []
    assert md(f"# Ferry\n\n{items}\n{SAYS}\n") == [SAYS]
    assert (
        md(f"# Ferry\n\n{SAYS}\n\n## Features\n\n{items}", 50)[1] == "Keeps all jobs in order. Needs no server to run."
    )


def test_what_ends_the_items_of_a_list_goes():
    items = "- keeps all jobs in order;\n- needs no server to run; and\n- ends with its parent\n"
    assert md(f"# Ferry\n\n{SAYS} It:\n\n{items}")[0].endswith(
        "Keeps all jobs in order. Needs no server to run. Ends with its parent."
    )


@pytest.mark.parametrize(
    "sentence",
    [
        "It is trusted by 900 companies.",
        "Ferry is used in many projects of ours.",
        "Ferry has become one of the most popular queues.",
        "The name comes from the Latin word for carrying.",
        "Ferry is named after a boat of the last century.",
        "Etymology: to carry over the water.",
        "Ferry was once named Barge, and before it Raft.",
        "A fix for boats/barge#123 is in it.",
        "Currently (May 2015) there is nothing like it.",
        "Python 3.9+ on any system.",
        "Ferry is written in Ada and licensed under the Boat License.",
        "with all of the jobs in one place.",
        "Join our friends on Slack.",
        "Read the guide for more details on queues.",
        "Beat that!",
        "The jobs are read from the docstring above, line by line.",
        "This is the official repository for Ferry.",
        "Each will be described in this README.",
    ],
)
def test_sentences_of_fame_names_dates_issues_and_halves_go(sentence):
    assert md(f"# Ferry\n\n{SAYS} {sentence} {MORE}") == [f"{SAYS} {MORE}"]
    assert md(f"# Ferry\n\n{SAYS}\n\n{sentence}\n\n{MORE}") == [SAYS, MORE]


@pytest.mark.parametrize(
    "sentence",
    [
        "Sends the state of each build to Slack or to chats that speak its protocol.",
        "An IRC client with queues for each channel.",
        "{fmt} is a library for writing jobs as text.",
    ],
)
def test_what_only_looks_like_a_notice_stays(sentence):
    assert md(f"# Ferry\n\n{sentence}") == [sentence]


def test_versions_and_how_to_say_the_name_are_taken_out():
    assert md("# Ferry\n\nFerry 1.3.1 is a queue that keeps jobs on disk.") == [
        "Ferry is a queue that keeps jobs on disk."
    ]
    assert md("# Ferry\n\nFerry (pronounced fer-ry) is a queue for jobs.") == ["Ferry is a queue for jobs."]


def test_examples_below_a_section_that_describes_are_none_of_it():
    shown = (
        "### Late jobs\n\nA late job is run at once.\n\n```\nrun\n```\n\n### Lost jobs\n\nA lost job is found again.\n"
    )
    assert md(f"# Ferry\n\n{SAYS}\n\n## Features\n\n{shown}", 50) == [SAYS, "A lost job is found again."]


def test_readmes_of_folders_of_documentation():
    text = "# Docs\n\nThe documentation is built with Sphinx from the files of this directory.\n"
    assert lead("docs/README.md", text, 5) == []
    assert lead("docs/README.md", f"# Ferry\n\n{SAYS}\n", 5) == [SAYS]


def test_descriptions_in_manifests_are_read_as_prose():
    assert described("A queue  for jobs (https://example.com)") == ["A queue for jobs"]
    long = f"{SAYS}\n    {MORE}\n\n    Features:\n    - keeps all jobs in order\n    - needs no server to run\n\n"
    assert described(long + "    For more, see https://example.com/docs. Please tell us of bugs.") == [
        f"{SAYS} {MORE}",
        "Keeps all jobs in order. Needs no server to run.",
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("README.rst", "Ferry\n=====\n\nIt does this:\n\n* carries the jobs\n* keeps them safe\n"),
        ("README.adoc", "= Ferry\n\nIt does this:\n\n* carries the jobs\n** nested ones\n* keeps them\nsafe\n"),
        ("README.org", "* Ferry\nIt does this:\n- carries the jobs\n  - nested ones\n- keeps them\n  safe\n"),
        ("README.txt", "Ferry\n-----\n\nIt does this:\n\n  - carries the jobs\n  - keeps them\n    safe\n"),
        ("README.md", "# Ferry\n\nIt does this:\n<ul><li>carries the jobs</li><li>keeps them safe</li></ul>\n"),
    ],
)
def test_lists_of_every_format(path, text):
    assert lead(path, text.replace("this:\n<ul>", "this:\n\n<ul>"), 5) == [
        "It does this: Carries the jobs. Keeps them safe."
    ]


# Sentences -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sentence",
    [
        "See the docs at https://x.example for all of it.",
        "For more information, look at the wiki of it.",
        "Check out our [website](x) for much more.",
        "You can find the code [here](x) as well.",
        "The documentation is available on the site of it.",
        "More is to be read at https://x.example/all of it.",
        "Star us on the site where you found it!",
        "Join our Discord to talk with all of us.",
        "Follow us to hear of the next ones.",
        "If you use Ferry in your research please cite it.",
        "Please tell us of what does not work.",
        "We welcome contributions of all kinds to it.",
        "This project is no longer maintained by anyone at all.",
        "We are looking for maintainers of all its parts.",
        "Version 5 has been released with new parts!",
        "Ferry is under heavy development at the moment.",
        "Ferry is licensed under the terms of the MIT license.",
        "License: the one that everybody has.",
        "Run `ferry start` to begin with it.",
        "You can install it with pip from PyPI.",
        "Authors: some people and some others of them.",
        "Do you look for something that is faster?",
        "{{ description of the project in some words }}",
        "Write to someone@x.example with your questions on it.",
    ],
)
def test_sentences_that_say_nothing_of_the_project_go(sentence):
    assert md(f"# Ferry\n\n{SAYS} {sentence}\n\n{MORE}\n") == [SAYS, MORE]
    assert md(f"# Ferry\n\n{sentence}\n\n{SAYS}\n") == [SAYS]
    assert md(f"# Ferry\n\n{sentence}\n") == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Consult offers commands to search and to move around.",
        "Click is a package for command lines.",
        "Build better command lines with less code than before.",
        "It reads files of the 2.x format, e.g. those of older tools.",
        "For people who want to read a whole book at once.",
        "The parts (see the docs) are small and easy to read.",
    ],
)
def test_sentences_that_only_look_like_it_stay(sentence):
    assert md(f"# T\n\n{sentence}\n") == [sentence.replace(" (see the docs)", "")]


def test_what_goes_on_from_a_dropped_sentence_goes_too():
    assert md("# Ferry\n\nVersion 5 has been released! It brings a new way to carry jobs.\n") == []
    assert md(f"# Ferry\n\nVersion 5 has been released! {SAYS}\n") == [SAYS]
    assert md(f"# Ferry\n\nI wrote this in a year of my life. There was much rain.\n\n{SAYS}\n") == [SAYS]


@pytest.mark.parametrize(
    "row",
    [
        "English | [中文](zh) | [日本語](ja)",
        "[A](a) · [B](b) · [C](c)",
        "Guides | API | Chat | Blog and more",
        "- [One](#one)\n- [Two](#two)\n",
    ],
)
def test_rows_of_links_go(row):
    assert md(f"# Ferry\n\n{row}\n\n{SAYS}\n") == [SAYS]


# Hostile ---------------------------------------------------------------------------------------------------------------

PIECES = [
    "[",
    "*",
    "<",
    "`",
    "{",
    "=",
    "|",
    "\x00",
    "\ue000a",
    "[\n",
    "`\n",
    "_\n",
    "<div>",
    "<!--",
    "![](",
    "* a\n",
    "> ",
    ".. a::\n",
    "a\n=\n",
    "|\n",
    "A. ",
    "'.'",
]
HOSTILE = {piece: piece * (1_000_000 // len(piece)) for piece in PIECES} | {
    "deep list": "\n".join("  " * i + "- a" for i in range(1400)),
    "attributes": "\n".join(f":a{i}: {{a{i - 1}}}{{a{i - 1}}}" for i in range(60)) + "\n\n" + "{a59} " * 9000,
    "table": "+" + "-+" * 3000 + "\n" + ("|" + " |" * 3000 + "\n+" + "-+" * 3000 + "\n") * 50,
    "noise": "".join(random.Random(1).choice("[]()<>*_`~!|\\#>-+:.&\"' \n\n ab=") for _ in range(100_000)),
}


@pytest.mark.parametrize("suffix", [".md", ".rst", ".adoc", ".org", ".txt"])
def test_hostile_texts_end_soon(suffix):
    for name, text in HOSTILE.items():
        start = time.perf_counter()
        said = lead("README" + suffix, text, 40)
        assert isinstance(said, list)
        assert time.perf_counter() - start < 8, name


def test_sentences_of_hostile_texts():
    for text in HOSTILE.values():
        assert first_sentence(text) in text
        tidy(text)


def test_a_long_text_is_not_cut_within_a_paragraph():
    text = "# Ferry\n\n" + f"{SAYS} {MORE}\n\nAnd words: " * 3000
    assert all(p.endswith(".") for p in md(text))
