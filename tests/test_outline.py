"""What stands in an outline in each language (`outlined.py`), and what holds for all."""

import re
import time

import pytest
import tree_sitter
from conftest import outputs_by_hash_seed
from outlined import BODY, EXPECTED, SOURCES

from repo2ctx._outline_docs import MARK, read_doc
from repo2ctx._outline_walk import Walk
from repo2ctx.languages import languages
from repo2ctx.outline import outline as of_tree
from repo2ctx.parsing import outline, scan, scan_and_outline


def test_every_language_has_an_outline():
    assert set(SOURCES) == set(languages())


def compact(text: str) -> str:
    """Without blanks and the marks of comments and docstrings, which an outline sets anew."""
    return re.sub(r"[\s/*#\"']", "", text)


def root_of(language: str, data: bytes) -> tree_sitter.Node:
    grammar = languages()[language].GRAMMARS[language]()
    return tree_sitter.Parser(tree_sitter.Language(grammar)).parse(data).root_node


def check(language: str, source: str) -> str | None:
    """Outline a text and hold what is so for every outline."""
    data = source.encode()
    found = outline(language, data)
    for item in Walk(languages()[language].OUTLINE, data).items(root_of(language, data)):
        assert item.text or item.kind not in ("open", "line"), f"{language}: {item!r}"
    if found is not None:
        lines = {line.rstrip() for line in source.split("\n")}
        alone = [line for line in found.split("\n") if line.strip() in ("{", "(", "[")]
        assert lines.issuperset(alone), f"{language}: {alone!r}"  # else what stood before it is lost
        assert len(found.encode()) < len(data)
        assert found.endswith("\n")
        assert "\r" not in found
        whole = compact(source)
        for line in found.split("\n"):
            for piece in re.split(rf"{MARK}| //| /\*", line):  # a comment behind a declaration stood behind its body
                closes = piece.strip(" ;)") == "}"  # a broken file may lack it
                assert closes or compact(piece) in whole, f"{language}: {piece!r} of {line!r}"
    return found


@pytest.mark.parametrize("language", SOURCES)
def test_outlines_word_for_word(language):
    source = SOURCES[language]
    assert check(language, source) == EXPECTED[language]
    assert check(language, source.replace("\n", "\r\n")) == EXPECTED[language]


@pytest.mark.parametrize("language", SOURCES)
def test_what_holds_for_broken_and_for_short_files(language):
    short = re.sub(r"(?m)^([ \t]+[^\n]*\n)\1+", r"\1", SOURCES[language])  # bodies of one line
    assert 0 < len(short) < len(SOURCES[language])
    assert check(language, short)
    for end in range(0, len(short), 37):
        check(language, short[:end])
        check(language, short[end:])
        check(language, short[:end] + "{ ( \0 é" + short[end + 7 :])
    for other in SOURCES:
        check(other, short)


def test_one_parse_gives_what_two_give():
    for language, source in SOURCES.items():
        data = source.encode()
        assert scan_and_outline(language, "a", data) == (scan(language, "a", data), outline(language, data))
    assert scan_and_outline("Markdown", "a.md", b"[x](y.md)") == (scan("Markdown", "a.md", b"[x](y.md)"), None)
    assert outline("Markdown", b"# Title") is None


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("Python", "import a\nfrom b import c\n"),
        ("Python", "print(1)\nfor x in y:\n    print(x)\n"),
        ("Python", ""),
        ("Python", "def f(a): return a"),  # no longer than its outline
        ("JavaScript", "const a = require('a')\na.run(1)\n"),
        ("C", "#include <stdio.h>\n#ifndef A\n#define A\n#endif\n"),
        ("PHP", "<html><body>text</body></html>"),
        ("Java", "/* Copyright 2020 Somebody, who wrote it */\nimport a.B;\n"),
    ],
)
def test_no_outline_where_nothing_is_declared(language, source):
    assert outline(language, source.encode()) is None


def methods(each: int, body: int) -> str:
    """A class with as many public as private methods, all documented."""
    doc = "Says what it is. Then it says more."
    text = f'"""The module. {doc}"""\n\nclass Big:\n    """The type. {doc}"""\n'
    for name in ("open", "_hidden"):
        for i in range(each):
            text += f'    def {name}_{i}(self):\n        """{doc}"""\n' + f"        {BODY}\n" * body
    return text


def test_the_less_room_the_less_is_said():
    roomy, tight, tightest = (outline("Python", methods(8, body).encode()) or "" for body in (60, 6, 0))
    assert roomy.count("Says what it is. Then it says more.") == 18
    assert "_hidden_7" in roomy
    assert tight.count("Then it says more.") < 16
    assert "The type." in tight
    assert "_hidden" not in tightest
    for found in (roomy, tight, tightest):
        assert found.count("def open_") == 8  # what is public stands in any case


def test_outlines_are_a_small_part_of_files_with_bodies():
    for language, source in SOURCES.items():
        assert len(compact(EXPECTED[language])) < 0.3 * len(compact(source)), language


def test_declarations_on_one_line_get_lines_of_their_own():
    source = "function first(a){return a+a+a+a+a+a+a+a}function second(b){return b*b*b*b*b*b*b*b*b}" * 3
    found = check("JavaScript", source)
    assert found is not None
    assert found.splitlines() == [f"function first(a) {MARK}", f"function second(b) {MARK}"] * 3
    source = "class A { int f() { return 1 + 2 + 3 + 4 + 5; } class B { void g() { f(); f(); f(); f(); f(); f(); f(); f(); f(); f(); f(); f(); } } int x; }"
    wanted = f"class A {{\n  int f() {MARK}\n  class B {{\n    void g() {MARK}\n  }}\n  int x;\n}}\n"
    assert check("Java", source) == wanted


OBJECT = "{\n  name: 'thing',\n  go(a) {\n    const total = 1;\n    return total + a * 7 + 8 + 9;\n  },\n}"


@pytest.mark.parametrize(
    ("language", "before", "after", "shown"),
    [
        ("JavaScript", "export default ", ";", "export default {"),
        ("JavaScript", "module.exports = ", ";", "module.exports = {"),
        ("JavaScript", "var User = ", ";", "var User = {"),
        ("JavaScript", "const a =\n", "", "const a = {"),
        ("JavaScript", "jQuery.fn = jQuery.prototype = ", ";", "jQuery.fn = jQuery.prototype = {"),
        ("JavaScript", "export default (", ")", "export default ({"),
        ("JavaScript", "class A {\n  static x = ", ";\n}", "static x = {"),
        ("JavaScript", "const a = {\n  b() {},\n  methods: ", ",\n}", "methods: {"),
        ("JavaScript", "const a = {\n  b() {},\n  ['x' + y]: ", ",\n}", "['x' + y]: {"),
        ("TypeScript", "export const a: B<{ c: 1 }> = ", " satisfies B as C;", "export const a: B<{ c: 1 }> = {"),
        ("TypeScript", "export = ", ";", "export = {"),
        ("TSX", "export default ", " as const;", "export default {"),
    ],
)
def test_objects_keep_what_stands_before_them(language, before, after, shown):
    found = check(language, f"{before}{OBJECT}{after}\n")
    assert found is not None
    lines = [line.strip() for line in found.splitlines()]
    assert shown in lines
    assert lines[lines.index(shown) + 1 :][:2] == ["name: 'thing'", f"go(a) {MARK}"]


def test_comments_between_a_name_and_its_object_are_no_part_of_its_line():
    for before, after in (
        ("const a = /* why */ ", ""),
        ("const a = // why\n  // and\n", ""),
        ("export default ( // why\n", ")"),
    ):
        found = outline("JavaScript", f"{before}{OBJECT}{after}\n".encode())
        assert found is not None
        assert found.startswith(("const a = {\n", "export default ({\n"))
        assert found.count("why") + found.count("and") == 0


def test_long_pieces_are_cut_between_characters():
    wide = "é" * 3000
    for source in (
        f"def f(a='{wide}', b=1):\n    return a + b\n" * 2,
        f"NAMES = '{wide}'\nOTHERS = ['{wide}']\n",
        f'class A:\n    """{wide} words {wide}"""\n    x = 1\n' + f"    def f(self):\n        {BODY}\n" * 300,
    ):
        found = check("Python", source)
        assert found is not None
        assert "\ufffd" not in found
        assert len(found) < 9000


def test_directives_to_tools_are_no_documentation():
    source = "package a\n\n//go:build linux\n\n//nolint:all\nfunc F() { a(); b(); c(); d(); e(); f(); g() }\n"
    assert check("Go", source) == f"package a\nfunc F() {MARK}\n"


@pytest.mark.parametrize(
    ("comment", "sentence"),
    [
        ("/* Adds two numbers. And more. */", ["/* Adds two numbers. */"]),
        (
            "/**\n * Adds two, e.g. these,\n * and others.\n * @param a one\n */",
            ["/** Adds two, e.g. these,", " * and others. */"],
        ),
        ("// Adds two\n// numbers.\n//\n// Or not.", ["// Adds two", "// numbers."]),
        ("/// <summary>\n/// Adds numbers\n/// </summary>\n/// <param name='a'>one</param>", ["/// Adds numbers"]),
        ('"""\n    Adds numbers.\n\n    Args:\n        a: one\n    """', ['"""Adds numbers."""']),
        ("r'''Adds numbers'''", ["r'''Adds numbers'''"]),
        ("#: Adds two numbers!", ["#: Adds two numbers!"]),
        ("/** @file\n * @brief Adds numbers.\n */", ["/** Adds numbers. */"]),
        ("# 数値を加える。それから。", ["# 数値を加える。"]),
        ("# ---------\n# Adds numbers.", ["# Adds numbers."]),
        ("# = Title\n#\n# Adds numbers.", ["# Adds numbers."]),
        ("# eslint-disable no-undef", None),
        ("/* Copyright 2020 Somebody */", None),
        ("// SPDX-License-Identifier: MIT\n// Adds numbers.", None),
        ("/*\n * @param a one\n */", None),
        ("# ------", None),
        ("// enum", None),
        ("x", None),
        ("/**", None),
        ('""', None),
    ],
)
def test_what_a_comment_says_first(comment, sentence):
    doc = read_doc(comment)
    assert (doc.shown(1) if doc else None) == sentence
    assert doc is None or doc.shown(0) == []


def test_a_sentence_without_an_end_is_cut_between_words():
    doc = read_doc("# " + "many words " * 200)
    assert doc is not None
    (line,) = doc.shown(1)
    assert line.endswith((f"words {MARK}", f"many {MARK}"))
    assert len(line) < 170


HOSTILE = [
    ("C++", "template<class T> " * 5_000 + "void f() {}"),
    ("C++", "namespace a { " * 20_000),
    ("C", "enum A {" + "B, " * 100_000 + "};"),
    ("C", "#if A\nint x;\n#else\n" * 3_000),
    ("Java", "class A { " * 20_000),
    ("Java", "@A " * 20_000 + "class X {}"),
    ("Rust", "#[a]\n" * 20_000 + "fn f() {}"),
    ("Python", "if a:\n  x\n" + "elif b:\n  y\n" * 10_000),
    ("Python", "@a\n" * 20_000 + "def f(): pass\n"),
    ("Python", 'def f():\n  """' + "a b. $a " * 50_000 + '"""\n  x\n'),
    ("Python", "# $" + "a" * 100_000 + "\n\n" + "# $ab$ab\n" * 20_000 + "def f(): return 1 + 2 + 3\n"),
    ("JavaScript", "(function(){" * 10_000),
    ("JavaScript", "a=" * 50_000 + "1"),
    ("JavaScript", "x = {a(){}, b:" * 5_000),
    ("TypeScript", "const a = {" + "b: 1, " * 100_000 + "};"),
    ("Ruby", "module A\n" * 20_000),
    ("Go", "package p\ntype T struct { a " + "struct { a " * 10_000),
    ("PHP", "<?php " + "class A { function f() { return 1; } } " * 10_000),
    ("C#", "class A {\n" + "\t" * 100_000 + "void F() { G(1, 2, 3, 4, 5, 6, 7); }\n}"),
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_files_end_quickly(number):
    language, source = HOSTILE[number]
    data = source.encode()
    root = root_of(language, data)
    start = time.process_time()
    found = of_tree(root, data, language)
    assert time.process_time() - start < 5
    assert found is None or len(found) < len(source)


def test_the_cost_of_a_long_file_is_in_proportion():
    seconds = []
    for times in (2, 32):
        data = (SOURCES["Java"] * times).encode()
        root = root_of("Java", data)
        runs = []
        for _ in range(3):
            start = time.process_time()
            of_tree(root, data, "Java")
            runs.append(time.process_time() - start)
        seconds.append(min(runs))
    assert seconds[1] < 4 * 16 * max(seconds[0], 0.001)


NESTED = {  # before all, then each: what begins it, what is innermost, what ends it
    "C": ("", "struct a {", "int x;", "} b;"),
    "C++": ("", "namespace a {", "", "}"),
    "C#": ("", "class A {", "", "}"),
    "Java": ("", "class A {", "", "}"),
    "JavaScript": ("x = ", "{a() {}, b:", "1", "}"),
    "PHP": ("<?php ", "if (a) { class B {}", "", "}"),
    "Ruby": ("", "module A\n", "", "end\n"),
    "Rust": ("", "mod a {", "", "}"),
}  # the grammar of Python ends at a depth of some hundred; Go has no declarations in declarations


@pytest.mark.parametrize("language", NESTED)
def test_the_cost_of_declarations_in_declarations_is_in_proportion(language):
    start, begin, innermost, end = NESTED[language]
    seconds = []
    for times, runs in ((1_500, 3), (12_000, 2)):
        data = (start + begin * times + innermost + end * times).encode()
        root = root_of(language, data)
        spent = []
        for _ in range(runs):
            since = time.process_time()
            of_tree(root, data, language)
            spent.append(time.process_time() - since)
        seconds.append(min(spent))
    assert seconds[1] < 4 * 8 * max(seconds[0], 0.001)


def test_the_same_whatever_the_hash_seed():
    program = (
        "from repo2ctx.parsing import outline\n"
        "s = b'/** Doc of it. */ export class A<T> extends B { c = new D(e.f.g); h() { return 1 + 2 + 3 + 4 + 5 } }'\n"
        "print(outline('TypeScript', s), outline('JavaScript', s), outline('Java', s), outline('C++', s))"
    )
    (said,) = outputs_by_hash_seed(program)
    assert "h() …".encode() in said
