"""A file in each language with everything that an outline shows or leaves out, and its outline, word for word."""

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

// What the page is told.
var page = {
  title: 'notes',
  open: async () => { await load(); console.log('the page is open', this.title); },
  methods: {
    // Shows one.
    show(note) { this.shown = note; console.log(note, 'is shown', this.title); },
    hide: function (note) { this.shown = null; console.log(note, 'is hidden'); },
  },
};
export default {
  name: 'notes',
  data() { return { notes: [], shown: null, total: 1 + 2 + 3 }; },
};

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
export const defaults: Options<{ a: 1 }> = ({
  marks: false,
  read: (path) => { return open(path) + close(path) + path },
} satisfies Partial<Options>) as Options
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
// What the page is told.
var page = {
  title: 'notes'
  open: async () => …
  methods: {
    // Shows one.
    show(note) …
    hide: function (note) …
  }
};
export default {
  name: 'notes'
  data() …
};
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
export const defaults: Options<{ a: 1 }> = ({
  marks: false
  read: (path) => …
} satisfies Partial<Options>) as Options
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
export const defaults: Options<{ a: 1 }> = ({
  marks: false
  read: (path) => …
} satisfies Partial<Options>) as Options
declare module 'notes' {
  export function words(text: string): number
}
const table: Record<string, string[]> = {…}
export const View = ({ id }: Props) => …
""",
}
