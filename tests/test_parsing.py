"""Parsing happens where it can be killed, and one file never ends the repository."""

import time

from repo2ctx.parsing import Parser
from repo2ctx.records import Syntax

GOOD = b"from a import b\n"


def test_the_child_answers_like_a_direct_call():
    from repo2ctx.parsing import scan

    with Parser(20, 4 << 30) as parser:
        for language, path, source in [
            ("Python", "x.py", GOOD),
            ("C", "x.c", b'#include "y.h"\n'),
            ("Go", "x.go", b"package x\n"),
        ]:
            assert parser.scan(language, path, source) == scan(language, path, source)
            assert parser.scan(language, path, source).problem == ""


def test_a_file_that_takes_too_long_is_given_up_and_the_next_goes_on():
    slow = b"x = [" + b"[1, {2: (3, 4)}]," * 600_000 + b"]\n"
    with Parser(0.3, 4 << 30) as parser:
        assert parser.scan("Python", "warm.py", GOOD).imports or True  # the child's start is not the file's time
        start = time.monotonic()
        assert parser.scan("Python", "slow.py", slow) == Syntax(problem="timeout")
        assert time.monotonic() - start < 10
    with Parser(20, 4 << 30) as parser:
        assert len(parser.scan("Python", "next.py", GOOD).imports) == 1


def test_a_file_that_takes_too_much_memory_is_given_up():
    greedy = b"x = [" + b"[1, {2: (3, 4)}]," * 600_000 + b"]\n"
    with Parser(60, 400 << 20) as parser:
        assert parser.scan("Python", "greedy.py", greedy).problem in ("memory", "crash")
        assert len(parser.scan("Python", "next.py", GOOD).imports) == 1


def test_hostile_files_end():
    deep = 100_000
    with Parser(30, 4 << 30) as parser:
        for language, source in [
            ("JavaScript", b"(" * deep + b")" * deep + b"\nimport './x'\n"),
            ("JavaScript", b"[" * deep),
            ("Python", b"(" * deep + b"1" + b")" * deep),
            ("C", b"#if 1\n" * 20_000),
            ("C++", b"namespace a {" * 20_000),
            ("Rust", b"mod a {" * 20_000),
            ("Go", b"package x\nvar y = " + b"[]" * deep + b"int{}\n"),
            ("Java", b"class A {" * 5_000),
            ("TSX", b"<a>" * 20_000),
            ("Python", b"\0" * deep),
            ("Python", b"\xff\xfe\xfd" * 1000),
            ("TypeScript", b"a<" * 5_000),
        ]:
            syntax = parser.scan(language, "x", source)
            assert isinstance(syntax, Syntax)
        assert len(parser.scan("Python", "next.py", GOOD).imports) == 1
