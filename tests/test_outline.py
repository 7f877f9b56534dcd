"""What stands in an outline in each language, and what holds for all."""

import re
import time

import pytest
import tree_sitter
from conftest import outputs_by_hash_seed

from repo2ctx._outline_docs import MARK, read_doc
from repo2ctx.languages import languages
from repo2ctx.outline import outline as of_tree
from repo2ctx.parsing import outline, scan, scan_and_outline

BODY = "total = total * 7 + other - 3"
LONG = ", ".join(f'"entry number {i}"' for i in range(40))

PYTHON = (
    f'''#!/usr/bin/env python
# Copyright 2020 Somebody. All rights reserved.
"""Keeps notes.

The second paragraph of the module's documentation, which is not the first.
"""

from __future__ import annotations

import os
from .store import Store as Store

__all__ = ["Note", "load"]
LIMIT = 100
_TABLE = [{LONG}]


def _clean(text: str) -> str:
    # inside
    return text.strip().lower().replace("a", "b")


@dataclass(frozen=True)
class Note(Base):
    """One note. It has a text and a date.

    Args:
        text: what it says
    """

    text: str
    date: int = 0

    # Counts the words that the note
    # has, without marks.
    def words(
        self,
        marks: bool = False,
    ) -> int:
        """How many words there are, e.g. three. More is said here."""
        total = len(self.text.split())
'''
    + f"        {BODY}\n" * 300
    + """        return total

    async def _hidden(self): return [x for x in self.text if x and not x.isspace()]

    class Inner:
        pass


if os.name == "nt":
    def load(path): return open(path).read() + "some more text"
else:
    def load(path):
        with open(path) as file:
            return Note(file.read())

print("run")
"""
)
GO = (
    """// Copyright 2020 Somebody.
// Licensed under the Apache License.

// Package notes keeps notes.
//
// More of it.
package notes

import "os"

const (
	First = iota // comes before others
	Second
)

var table = map[string]int{
"""
    + "".join(f'\t"key {i}": {i},\n' for i in range(40))
    + """}

// Note is one note.
type Note struct {
	Text string `json:"text"`
	date int
}

type Reader interface {
	Read(path string) (Note, error)
}

// Words counts the words of a note.
func (n *Note) Words(marks bool) (int, error) {
"""
    + "\tx := 1\n" * 300
    + """	return x, nil
}

func helper() { os.Exit(1); os.Exit(2); os.Exit(3) }
"""
)
JAVA = (
    """/*
 * Copyright 2020 Somebody. Licensed under the Apache License, Version 2.0.
 */
package notes;

import java.util.List;

/**
 * Keeps notes.
 *
 * <p>More of it.
 */
@Service("notes")
public class Notes<T> extends Base implements Reader {
    /** How many there may be. */
    public static final int LIMIT = 100;
    private final List<String> names = List.of("a");

    public Notes(int limit) { super(limit); this.names = List.of("one", "two"); }

    /**
     * Counts words.
     * @param marks whether they count
     */
    @Override
    public int words(boolean marks) throws IOException {
"""
    + "        int x = 1;\n" * 300
    + """        return x;
    }

    private void secret() { System.out.println("this and that"); }

    enum Kind { SHORT, LONG }

    interface Visitor {
        void visit(Notes<?> notes);
    }
}
"""
)
CSHARP = (
    """// Copyright (c) 2020 Somebody. All rights reserved.
using System;

namespace Notes.Core
{
    /// <summary>
    /// Keeps notes.
    /// </summary>
    [Serializable]
    public class Notes : Base
    {
        public int Limit { get; set; }
        public string Name
        {
            get { return name + "this is a longer expression"; }
        }
        private readonly string name = "n";

        public Notes(int limit) : base(limit) { Limit = limit * 2 + 4 * 5; }

        /// <summary>Counts words.</summary>
        /// <param name="marks">whether they count</param>
        public int Words(bool marks)
        {
"""
    + "            var x = 1;\n" * 300
    + """            return x;
        }

        public enum Kind
        {
            Short = 1,
            Long,
            AndOneWithAVeryLongNameSoThatTheTypeIsNotShownOnOneLine,
        }
    }
}
"""
)
C = (
    """/* notes.c -- keeps notes in memory
 *
 * Copyright (c) 2020 Somebody
 */
#include <stdio.h>
#define LIMIT 100
#define TWICE(x) ((x) * 2)

struct note {
    char *text; /* what the note says */
    int date;
};

typedef enum { SHORT_NOTE = 1, LONG_NOTE } kind;

static const char *names[] = {"""
    + LONG
    + """};

/* Counts the words of a note. Returns -1 on error. */
int words(struct note *n,
          int marks)
{
"""
    + "    int x = 1;\n" * 300
    + """    return x;
}

static void helper(void) { puts("one"); puts("two"); puts("three"); }
"""
)
CPP = (
    """#ifndef NOTES_H
#define NOTES_H
#include <string>

namespace notes {

// Keeps notes in a list.
template <typename T>
class Notes : public Base<T> {
 public:
  explicit Notes(int limit) : Base<T>(limit), limit_(limit) { this->open(); this->check(); }
  virtual ~Notes() = default;
  // Counts the words.
  int words(bool marks) const;

 private:
  int limit_ = 0;
};

enum class Kind { Short, Long };

template <typename T>
int Notes<T>::words(bool marks) const {
"""
    + "  int x = 1;\n" * 300
    + """  return x;
}

}  // namespace notes
#endif
"""
)
RUST = (
    """//! Keeps notes.
//!
//! More of it.

use std::fmt;
pub use self::store::Store;
mod store;

/// One note.
#[derive(Debug, Clone)]
pub struct Note {
    pub text: String,
    date: u32,
    other_field_that_is_long_enough_for_more_lines: Option<u32>,
}

#[command(name = "notes")]
pub enum Kind {
    Short,
    Long { words: usize },
}

pub trait Reader {
    /// Reads a note.
    fn read(&self, path: &str) -> Result<Note, Error>;
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
"""
    + "        let x = 1;\n" * 300
    + """        write!(f, "{}", self.text)
    }
}

macro_rules! note {
    ($text:expr) => { Note { text: $text } };
}

pub const LIMIT: usize = 100;
"""
)
RUBY = (
    """# frozen_string_literal: true

require "json"

module Notes
  # Keeps notes in a list.
  #
  # More of it.
  class List < Base
    LIMIT = 100
    include Enumerable
    attr_reader :names
    has_many :notes, dependent: :destroy

    # Counts the words of all notes.
    def words(marks = false)
"""
    + "      x = 1\n" * 300
    + """      x
    end

    class << self
      def load(path) = new(JSON.parse(File.read(path)))
    end

    private

    def secret
      puts "this", "and", "that", "and", "more"
    end
  end
end

describe Notes do
  it "counts words" do
    expect(Notes.new.words).to eq(0)
  end
end
"""
)
PHP = (
    """<?php

/*
 * This file is part of Notes. (c) 2020 Somebody
 */

namespace Notes;

use Other\\Thing;

/**
 * Keeps notes.
 */
abstract class Notes extends Base implements Reader
{
    use Thing;

    const LIMIT = 100;
    protected ?string $name = 'n';

    /**
     * Counts words.
     *
     * @param bool $marks
     */
    public function words(bool $marks): int
    {
"""
    + "        $x = 1;\n" * 300
    + """        return $x;
    }

    abstract protected function open(string $path);
}

function helper($a) { return $a + 1 + 2 + 3 + 4 + 5; }
"""
)
JAVASCRIPT = (
    """/*!
 * notes
 * Copyright(c) 2020 Somebody
 */

'use strict';

const fs = require('fs');
const LIMIT = 100;

/**
 * Keeps notes in a list.
 */
class Notes extends Base {
  static limit = 3;
  constructor(limit) { super(limit); this.limit = limit; this.names = []; }
  async *words(marks = false) {
"""
    + "    let x = 1;\n" * 300
    + """    yield x;
  }
}

Notes.prototype.open = function open(path) { return fs.openSync(path, 'r', 0o600); };
const close = (path) => { fs.closeSync(path); console.log(path, 'closed'); };
exports.load = function (path) { return new Notes(JSON.parse(fs.readFileSync(path))); };
module.exports = { Notes, close };

(function () {
  function inside() { return [1, 2, 3, 4].map(x => x * 2); }
})();

describe('notes', function () {
  it('counts words', function () { expect(new Notes().words()).to.equal(0); });
});
"""
)
TYPESCRIPT = (
    """import { Base } from './base'
export * from './store'
export type Id = string | number
export interface Reader<T> extends Base {
  readonly id: Id
  read(path: string): Promise<T>
}
export enum Kind { Short = 1, Long }
/** Keeps notes in a list. */
export default class Notes implements Reader<string> {
  private names: string[] = []
  constructor(private readonly limit: number) { super(limit); this.names = ['one', 'two'] }
  abstract open(path: string): void
  async read(path: string): Promise<string> {
"""
    + "    let x = 1\n" * 300
    + """    return path
  }
}
export const load = async (path: string): Promise<Notes> => { return new Notes(await read(path)) }
declare module 'notes' {
  export function words(text: string): number
}
const table: Record<string, string[]> = { a: ["""
    + LONG
    + """] }
"""
)
TSX = TYPESCRIPT + "export const View = ({ id }: Props) => { return <div className='note'>{id}</div> }\n"

SOURCES = {
    "Python": PYTHON, "Go": GO, "Java": JAVA, "C#": CSHARP, "C": C, "C++": CPP, "Rust": RUST, "Ruby": RUBY, "PHP": PHP,
    "JavaScript": JAVASCRIPT, "TypeScript": TYPESCRIPT, "TSX": TSX,
}  # fmt: skip


def test_every_language_has_an_outline():
    assert set(SOURCES) == set(languages())


EXPECTED = {
    "Python": '''"""Keeps notes."""
from .store import Store as Store
__all__ = ["Note", "load"]
LIMIT = 100
_TABLE = […]
def _clean(text: str) -> str: …
@dataclass(frozen=True)
class Note(Base):
    """One note. It has a text and a date."""
    text: str
    date: int = 0
    def words(
        self,
        marks: bool = False,
    ) -> int:
        """How many words there are, e.g. three. More is said here.""" …
    async def _hidden(self): …
    class Inner: …
if os.name == "nt":
    def load(path): …
else:
    def load(path): …
…
''',
    "Go": """// Package notes keeps notes.
package notes
const (
	First = iota // comes before others
	Second
)
var table = map[string]int{…}
// Note is one note.
type Note struct {
	Text string `json:"text"`
	date int
}
type Reader interface {
	Read(path string) (Note, error)
}
// Words counts the words of a note.
func (n *Note) Words(marks bool) (int, error) …
func helper() …
""",
    "Java": """package notes;
/** Keeps notes. */
@Service("notes")
public class Notes<T> extends Base implements Reader {
    /** How many there may be. */
    public static final int LIMIT = 100;
    private final List<String> names = List.of("a");
    public Notes(int limit) …
    /** Counts words. */
    public int words(boolean marks) throws IOException …
    private void secret() …
    enum Kind { SHORT, LONG }
    interface Visitor {
        void visit(Notes<?> notes);
    }
}
""",
    "C#": """namespace Notes.Core {
    /// Keeps notes.
    [Serializable]
    public class Notes : Base {
        public int Limit { get; set; }
        public string Name …
        private readonly string name = "n";
        public Notes(int limit) …
        /// Counts words.
        public int Words(bool marks) …
        public enum Kind {
            Short = 1
            Long
            AndOneWithAVeryLongNameSoThatTheTypeIsNotShownOnOneLine
        }
    }
}
""",
    "C": """/* notes.c -- keeps notes in memory */
#define LIMIT 100
#define TWICE(x) ((x) * 2)
struct note {
    char *text; /* what the note says */
    int date;
}
typedef enum { SHORT_NOTE = 1, LONG_NOTE } kind;
static const char *names[] = {…}
/* Counts the words of a note. Returns -1 on error. */
int words(struct note *n,
          int marks) …
static void helper(void) …
""",
    "C++": """namespace notes {
// Keeps notes in a list.
template <typename T>
class Notes : public Base<T> {
 public:
  explicit Notes(int limit) …
  virtual ~Notes() = default;
  // Counts the words.
  int words(bool marks) const;
 private:
  int limit_ = 0;
};
enum class Kind { Short, Long }
template <typename T>
int Notes<T>::words(bool marks) const …
}
""",
    "Rust": """//! Keeps notes.
pub use self::store::Store;
/// One note.
pub struct Note {
    pub text: String
    date: u32
    other_field_that_is_long_enough_for_more_lines: Option<u32>
}
#[command(name = "notes")]
pub enum Kind {
    Short
    Long { words: usize }
}
pub trait Reader {
    /// Reads a note.
    fn read(&self, path: &str) -> Result<Note, Error>;
}
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result …
}
macro_rules! note …
pub const LIMIT: usize = 100;
""",
    "Ruby": """module Notes
  # Keeps notes in a list.
  class List < Base
    LIMIT = 100
    include Enumerable
    attr_reader :names
    has_many :notes, dependent: :destroy
    # Counts the words of all notes.
    def words(marks = false) …
    class << self
      def load(path) = …
    end
    private
    def secret …
  end
end
describe Notes do
  it "counts words" do …
end
""",
    "PHP": """namespace Notes;
/** Keeps notes. */
abstract class Notes extends Base implements Reader {
    use Thing;
    const LIMIT = 100;
    protected ?string $name = 'n';
    /** Counts words. */
    public function words(bool $marks): int …
    abstract protected function open(string $path);
}
function helper($a) …
""",
    "JavaScript": """const LIMIT = 100;
/** Keeps notes in a list. */
class Notes extends Base {
  static limit = 3
  constructor(limit) …
  async *words(marks = false) …
}
Notes.prototype.open = function open(path) …
const close = (path) => …
exports.load = function (path) …
module.exports = { Notes, close };
  function inside() …
describe('notes', function () {
  it('counts words', function () …
});
""",
    "TypeScript": """export * from './store'
export type Id = string | number
export interface Reader<T> extends Base {
  readonly id: Id
  read(path: string): Promise<T>
}
export enum Kind { Short = 1, Long }
/** Keeps notes in a list. */
export default class Notes implements Reader<string> {
  private names: string[] = []
  constructor(private readonly limit: number) …
  abstract open(path: string): void
  async read(path: string): Promise<string> …
}
export const load = async (path: string): Promise<Notes> => …
declare module 'notes' {
  export function words(text: string): number
}
const table: Record<string, string[]> = {…}
""",
    "TSX": """export * from './store'
export type Id = string | number
export interface Reader<T> extends Base {
  readonly id: Id
  read(path: string): Promise<T>
}
export enum Kind { Short = 1, Long }
/** Keeps notes in a list. */
export default class Notes implements Reader<string> {
  private names: string[] = []
  constructor(private readonly limit: number) …
  abstract open(path: string): void
  async read(path: string): Promise<string> …
}
export const load = async (path: string): Promise<Notes> => …
declare module 'notes' {
  export function words(text: string): number
}
const table: Record<string, string[]> = {…}
export const View = ({ id }: Props) => …
""",
}


def compact(text: str) -> str:
    """Without blanks and the marks of comments and docstrings, which an outline sets anew."""
    return re.sub(r"[\s/*#\"']", "", text)


def check(language: str, source: str) -> str | None:
    """Outline a text and hold what is so for every outline."""
    data = source.encode()
    found = outline(language, data)
    if found is not None:
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


def root_of(language: str, data: bytes) -> tree_sitter.Node:
    grammar = languages()[language].GRAMMARS[language]()
    return tree_sitter.Parser(tree_sitter.Language(grammar)).parse(data).root_node


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


def test_the_same_whatever_the_hash_seed():
    program = (
        "from repo2ctx.parsing import outline\n"
        "s = b'/** Doc of it. */ export class A<T> extends B { c = new D(e.f.g); h() { return 1 + 2 + 3 + 4 + 5 } }'\n"
        "print(outline('TypeScript', s), outline('JavaScript', s), outline('Java', s), outline('C++', s))"
    )
    (said,) = outputs_by_hash_seed(program)
    assert "h() …".encode() in said
