"""Hostile input runs where it can be killed, and never ends the repository."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from repo2ctx.errors import Repo2CtxError
from repo2ctx.parsing import scan
from repo2ctx.records import Syntax
from repo2ctx.sandbox import Sandbox, Stopped

GOOD = b"from a import b\n"


def imports_found(sandbox: Sandbox) -> int:
    return len(sandbox.call(scan, "Python", "next.py", GOOD).imports)


def test_the_child_answers_like_a_direct_call():
    with Sandbox(20, 4 << 30) as sandbox:
        for language, path, source in [
            ("Python", "x.py", GOOD),
            ("C", "x.c", b'#include "y.h"\n'),
            ("Go", "x.go", b"package x\n"),
        ]:
            assert sandbox.call(scan, language, path, source) == scan(language, path, source)


def test_a_call_that_takes_too_long_is_given_up_and_the_next_goes_on():
    with Sandbox(0.5, 4 << 30) as sandbox:
        start = time.monotonic()
        with pytest.raises(Stopped) as stopped:
            sandbox.call(time.sleep, 60)
        assert stopped.value.problem == "timeout"
        assert time.monotonic() - start < 30
        sandbox.timeout_s = 20
        assert imports_found(sandbox) == 1
        assert sandbox.call(time.sleep, 0, timeout_s=5) is None


def test_a_call_that_takes_too_much_memory_is_given_up():
    with Sandbox(60, 600 << 20) as sandbox:
        with pytest.raises(Stopped) as stopped:
            sandbox.call(bytes, 2 << 30)
        assert stopped.value.problem == "memory"
        greedy = b"x = [" + b"[1, {2: (3, 4)}]," * 900_000 + b"]\n"
        with pytest.raises(Stopped) as stopped:
            sandbox.call(scan, "Python", "greedy.py", greedy)
        assert stopped.value.problem in ("memory", "crash")
        assert imports_found(sandbox) == 1


def test_a_call_that_dies_or_raises_is_given_up():
    with Sandbox(20, 4 << 30) as sandbox:
        with pytest.raises(Stopped, match="crash"):
            sandbox.call(os.abort)
        with pytest.raises(Stopped, match="ZeroDivisionError"):
            sandbox.call(divmod, 1, 0)
        assert sandbox.call(print, "noise that must not break the protocol") is None
        assert imports_found(sandbox) == 1


def test_a_child_that_cannot_start_is_an_error_and_not_an_empty_answer():
    with Sandbox(20, 1 << 20) as sandbox, pytest.raises(Repo2CtxError, match="does not start"):
        imports_found(sandbox)


def test_hostile_files_end():
    deep = 100_000
    with Sandbox(30, 4 << 30) as sandbox:
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
            with suppress(Stopped):
                assert isinstance(sandbox.call(scan, language, "x", source), Syntax)
        assert imports_found(sandbox) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel, which only Linux grants")
def test_the_child_ends_with_its_parent():
    program = (
        "import time; from repo2ctx.sandbox import Sandbox\n"
        "with Sandbox(100, 1 << 30) as sandbox:\n"
        "    sandbox.call(time.sleep, 0); print(sandbox._child.pid, flush=True); sandbox.call(time.sleep, 60)\n"
    )
    for ending in (signal.SIGTERM, signal.SIGKILL):
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
            child = int(parent.stdout.readline())
            parent.send_signal(ending)
        state = Path(f"/proc/{child}/stat")
        deadline = time.monotonic() + 20
        while state.exists() and " Z " not in state.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not state.exists() or " Z " in state.read_text()
