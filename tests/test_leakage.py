"""Nothing of a target stays in its context: planted in every place and form it is found and taken out; ordinary code is left alone."""

import json
import re
import textwrap

import pytest

from repo2ctx.config import LeakageConfig
from repo2ctx.leakage import (
    Copies,
    Guard,
    longest_run,
    masked,
    over_limit,
    source_paths,
    without_descriptions,
    without_repetitions,
)
from repo2ctx.overlap import NGRAM, Measure, Overlap, words_of
from repo2ctx.records import KEPT, SourceFile, Target

SAID = (
    "Keeps plain-text notes in folders, finds them by their words & phrases, and writes an index that other programs can read. "
    "It needs no server and runs wherever a shell does.\n\nThe index is built once and brought up to date when a note changes."
)
LINE = "Keeps plain-text notes and finds them by their words"
CODE = "def find(words):\n    return [note for note in index if words in note]\n"


def wrapped(prefix: str, text: str = SAID, width: int = 60) -> str:
    return "\n".join(prefix + line for line in textwrap.wrap(text.replace("\n\n", " "), width))


def literals(text: str, joint: str) -> str:
    return joint.join(json.dumps(part) for part in re.findall(r".{1,35}", text.replace("\n\n", " ")))


FORMS = {
    "as it is": ("docs/about.txt", SAID),
    "upper case": ("docs/about.txt", SAID.upper()),
    "wrapped lines": ("docs/about.txt", textwrap.fill(SAID, 30)),
    "Markdown markup": ("docs/about.md", re.sub(r"\b(\w{5,})\b", r"**\1**", SAID)),
    "Markdown links": (
        "docs/about.md",
        SAID.replace("folders", "[folders](https://example.com/folders)").replace("index", "[`index`][1]"),
    ),
    "Markdown quote": ("docs/about.md", wrapped("> ")),
    "HTML markup": ("site/a.html", "<p>" + re.sub(r"\b(\w{5,})\b", r"<b>\1</b>", SAID.replace("&", "&amp;")) + "</p>"),
    "HTML attribute": ("site/b.html", f'<meta name="description" content="{SAID.replace("&", "&amp;")}">'),
    "HTML escapes": ("site/c.html", "".join(f"&#{ord(c)};" if c in "aeiou " else c for c in SAID)),
    "Python comment": ("src/a.py", wrapped("# ") + "\n" + CODE),
    "Python docstring": ("src/b.py", f'"""{SAID}"""\n{CODE}'),
    "C comment": ("src/a.c", "/*\n" + wrapped(" * ") + "\n */\nint x;\n"),
    "C++ comment": ("src/a.cc", wrapped("/// ") + "\nint x;\n"),
    "SQL comment": ("src/a.sql", wrapped("-- ") + "\nSELECT 1;\n"),
    "Lisp comment": ("src/a.el", wrapped(";;; ") + "\n(require 'x)\n"),
    "TeX comment": ("doc/a.tex", wrapped("% ") + "\n\\section{x}\n"),
    "batch file": ("run.bat", wrapped("REM ") + "\necho on\n"),
    "m4": ("configure.ac", wrapped("dnl ") + "\nAC_INIT\n"),
    "Fortran": ("src/a.f", wrapped("C     ") + "\n      END\n"),
    "shell echoes": ("usage.sh", "\n".join(f'echo "{line}"' for line in textwrap.wrap(SAID.replace("\n\n", " "), 60))),
    "JSON": ("data/a.json", json.dumps({"about": SAID})),
    "JSON, all escaped": ("data/b.json", '{"about": "' + "".join(f"\\u{ord(c):04x}" for c in SAID) + '"}'),
    "literals side by side": ("src/c.py", f"ABOUT = (\n    {literals(SAID, chr(10) + '    ')}\n)\n"),
    "literals added": ("src/D.java", f"String about = {literals(SAID, ' + ')};\n"),
    "a gettext catalogue": ("po/de.po", f'msgid ""\n{literals(SAID, chr(10))}\nmsgstr "Etwas"\n'),
    "an English quote in a translation": (
        "docs/zh/index.md",
        f"# 简介\n\n这个项目的英文介绍是：\n\n> {SAID}\n\n以下是中文说明。\n",
    ),
    "an identifier": ("src/e.py", "_".join(words_of(SAID)) + " = 1\n"),
    "a URL": ("docs/links.md", "https://example.com/?q=" + SAID.replace(" ", "%20").replace("\n", "%0A")),
    "reStructuredText": ("docs/about.rst", SAID.replace("index", "|index|_").replace("server", "``server``")),
    "man page": (
        "doc/notes.1",
        ".SH NAME\nnotes \\- " + SAID.replace(" ", " \\fB", 1).replace("plain-text", "\\fIplain\\-text\\fR"),
    ),
}


def guarded(
    texts: dict[str, str], *targets: Target, action: str = "mask", name: str = "a/notes"
) -> tuple[Guard, dict[str, str | None]]:
    guard = Guard(targets, name, LeakageConfig(action=action))
    for path, text in texts.items():
        guard.see(path, text)
        guard.consider(path, text)
    guard.decide()
    return guard, {path: guard.clean(path, text) for path, text in texts.items()}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("said", [SAID, LINE])
def test_a_planted_target_does_not_survive(form, said):
    path, text = FORMS[form]
    target = Target(SAID, "readme:README.md", "paragraph") if said == SAID else Target(LINE, "metadata:x", "line")
    text = text if said == SAID else text.replace(SAID, LINE)
    guard, after = guarded({path: text, "src/code.py": CODE}, target)
    (figures,) = guard.figures()
    overlap = Overlap(target.text)
    if said == SAID:
        assert figures.share_before > 0.5
        assert figures.masked_lines > 0
    assert not over_limit(overlap, overlap.measure([]), LeakageConfig())
    assert figures.share == 0.0
    assert figures.run <= longest_run(len(overlap.words), LeakageConfig())
    plain = [w for t in after.values() if t for w in re.findall(r"\w+", t.lower())]
    grams = {tuple(plain[i : i + NGRAM]) for i in range(len(plain) - NGRAM + 1)}
    words = re.findall(r"\w+", target.text.lower())
    assert not grams & {tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1)}
    assert after["src/code.py"] == CODE


def test_there_are_more_than_25_places_and_forms():
    assert len(FORMS) > 25


def test_a_file_whose_name_quotes_the_target_leaves():
    name = f"docs/{'-'.join(words_of(LINE))}.md"
    guard, after = guarded({name: "Something else.", "a.py": CODE}, Target(LINE, "list", "line"))
    assert after == {name: None, "a.py": CODE}
    assert guard.figures()[0].run <= 3


def test_a_target_that_the_names_of_the_files_say_makes_no_row_instead_of_emptying_the_repository():
    line = "This is the word counting maven plugin."
    texts = {f"word-counting-maven-plugin/src/m{i}.py": f"x = {i}\n" for i in range(50)} | {"a.py": "y = 1\n"}
    guard, after = guarded(texts, Target(line, "list", "line"))
    assert after == texts
    (figures,) = guard.figures()
    assert over_limit(Overlap(line, "o/other"), Measure(figures.share, figures.run), LeakageConfig())


def test_only_the_words_are_taken_out():
    text = f'x = 1\n# {LINE},\n#   and so on\ny = "{LINE}"  # {LINE[:20]}\nz = 2\n'
    _, after = guarded({"a.py": text}, Target(LINE, "list", "line"))
    assert after["a.py"] == 'x = 1\n# ,\n#   and so on\ny = ""  # Keeps plain-text not\nz = 2\n'
    assert masked("a\n * one\n * two\n b", [(5, 15)]) == ("a\n * \n * \n b", 2)
    assert masked('"one "\n "two"', [(1, 12)]) == ('" "\n ""', 2)
    assert masked("one\r\ntwo", [(0, 8)]) == ("\r\n", 2)
    assert masked('"one\\n",\n"\\n",\n"two"', [(1, 20)]) == ('"",\n"",\n""', 3)


def test_what_is_under_the_limit_stays():
    long = " ".join(f"word{i} thing{i} matter{i}" for i in range(120))
    quote = " ".join(long.split()[40:52])
    guard, after = guarded({"a.txt": quote}, Target(long, "readme:README.md", "paragraph"))
    assert after["a.txt"] == quote
    assert (guard.figures()[0].run, guard.figures()[0].masked_lines) == (12, 0)


def test_figures_are_those_of_the_text_as_it_is_written():
    line, paragraph = Target(LINE, "list", "line"), Target(f"Notes: {LINE[6:30]} " + CODE * 3, "list", "paragraph")
    guard, after = guarded({"a.py": f"# {LINE}\n"}, line, paragraph)
    overlap = Overlap(paragraph.text, "a/notes")
    left = overlap.measure(overlap.runs(after["a.py"] or ""))
    assert (guard.figures()[1].share, guard.figures()[1].run) == (left.share, left.run)
    assert guard.figures()[1].run_before > left.run


def test_drop_leaves_the_texts_and_the_figures_say_so():
    guard, after = guarded({"a.txt": SAID}, Target(SAID, "readme:README.md", "paragraph"), action="drop")
    assert after["a.txt"] == SAID
    assert guard.figures()[0].share == 1.0


def test_what_masking_brings_together_is_masked_too():
    first, second = LINE.split(" and ")
    text = f"{first} {first} and {second} and {second}"
    _, after = guarded({"a.txt": text}, Target(LINE, "list", "line"))
    overlap = Overlap(LINE)
    assert overlap.measure(overlap.runs(after["a.txt"])).run <= longest_run(9, LeakageConfig())


@pytest.mark.parametrize(("words", "longest"), [(2, 3), (6, 3), (8, 4), (20, 10), (40, 20), (400, 20)])
def test_short_targets_are_judged_by_their_length(words, longest):
    assert longest_run(words, LeakageConfig()) == longest


def test_ordinary_code_that_shares_words_is_left_alone():
    said = "A library for parsing JSON documents and for writing them, with a streaming reader and a small memory footprint"
    code = """
// A reader of documents, for streaming.
public final class JsonParser { // parsing JSON
  /** Writes them with a small buffer; reader and writer share memory. */
  String parse_json_documents(Reader reader) { return "for parsing JSON"; }
}
"""
    guard, after = guarded({"A.java": code}, Target(said, "metadata:pom.xml", "line"))
    assert after["A.java"] == code
    assert guard.figures()[0].masked_lines == 0


def file(path: str, blob: str, size: int = 10) -> SourceFile:
    return SourceFile(path, blob, size, KEPT)


def test_readmes_and_their_copies_leave_the_context():
    files = (
        file("README.md", "1"),
        file("README.zh-CN.md", "2"),
        file("readme_ja.rst", "3"),
        file(".github/README.md", "8"),
        file("docs/index.md", "9"),
        file("docs/source/index.rst", "10"),
        file("src/pkg/data/about.txt", "1"),
        file("src/readme.py", "4"),
        file("packages/a/README.md", "5"),
        file("docs/api/client.md", "6"),
        file("index.html", "11"),
        file("docs/de/index.md", "21"),
        file("docs/de/tutorial/index.md", "22"),
        file("docs/tutorial/index.rst", "23"),
        file("docs/source/howto/overview.rst", "24"),
        file("guide/start/index.md", "25"),
        file("src/index.js", "12"),
        file("empty/__init__.py", "0", 0),
    )
    stay = {
        "src/readme.py",
        "packages/a/README.md",
        "docs/api/client.md",
        "index.html",
        "docs/de/tutorial/index.md",
        "docs/tutorial/index.rst",
        "docs/source/howto/overview.rst",
        "src/index.js",
        "empty/__init__.py",
    }
    assert source_paths(files, {}) == {f.path for f in files} - stay
    link = (file("README.md", "9"), file("docs/guide.md", "7"), file("site/guide.md", "7"))
    assert source_paths(link, {"README.md": "docs/guide.md"}) == {"docs/guide.md", "site/guide.md"}


def test_near_copies_are_recognised():
    copies = Copies([f"# Notes\n\n[![b](c)](d)\n\n{SAID}\n\n## Install\n\nRun it and be done with the whole of it.\n"])
    assert copies.has(f"Notes\n=====\n\n{SAID.replace('programs', 'tools')}\n")
    assert not copies.has("A guide to notes.\n\nNotes are kept in folders; the index is built when they change.\n")
    assert not Copies(["# Notes"]).has("# Notes")


def test_descriptions_in_folders_leave_if_they_say_the_target():
    own = '[package]\nname = "a"\ndescription = "Only this crate of the workspace"\n'
    assert without_repetitions("crates/a/Cargo.toml", own, [LINE]) == own
    assert without_repetitions(
        "crates/a/Cargo.toml", own.replace("Only this crate of the workspace", LINE), [LINE]
    ) == own.replace("Only this crate of the workspace", "")
    assert without_descriptions("Cargo.toml", own) == own.replace("Only this crate of the workspace", "")
