"""Runs functions where they can be killed: in a child process with a time limit per call and a memory limit.

tree-sitter cannot be interrupted from Python and can hang or exhaust memory on hostile input; import rules and README
parsers can be quadratic on it. Each `Sandbox` owns one child (`python -m repo2ctx.sandbox`), sends it a call, and waits
no longer than the limit. A child that is late or dies is replaced. Costs one start (0.3 s) per `Sandbox` and about 50
microseconds per call.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import pickle
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, TypeVar

from repo2ctx.errors import Repo2CtxError

R = TypeVar("R")
D = TypeVar("D")
_PR_SET_PDEATHSIG = 1
_HEADER = struct.Struct(">Q")
_START_S = 120  # for the child's imports, on a busy machine


class Stopped(Exception):
    """A call was given up; `problem` is timeout, memory, crash, or the name of the exception that it raised."""

    def __init__(self, problem: str):
        super().__init__(problem)
        self.problem = problem


class Sandbox:
    """A child process for calls, as a context manager.

    timeout_s: seconds of wall time for one call; memory_bytes: address space of the child.
    """

    def __init__(self, timeout_s: float, memory_bytes: int):
        self.timeout_s = timeout_s
        self.memory_bytes = memory_bytes
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            for stream in (self._child.stdin, self._child.stdout):
                try:
                    assert stream is not None
                    stream.close()
                except BrokenPipeError:
                    pass  # what was not sent yet is not wanted any more
            self._child.wait()
            self._child = None

    def call(self, function: Callable[..., R], *arguments: Any, timeout_s: float | None = None) -> R:
        """`function(*arguments)`, run in the child; a module's function, with picklable arguments and result.

        Raises Stopped if it takes too long or too much, or raises.
        """
        limit = self.timeout_s if timeout_s is None else timeout_s
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        deadline = time.monotonic() + limit
        try:
            _send(child.stdin, (function, arguments, limit))
            if not _readable(child.stdout, deadline - time.monotonic()):
                self.close()
                raise Stopped("timeout")
            problem, result = _receive(child.stdout)
        except (BrokenPipeError, EOFError):
            self.close()
            raise Stopped("crash") from None
        if problem:
            raise Stopped(problem)
        answer: R = result
        return answer

    def call_or(self, otherwise: D, function: Callable[..., R], *arguments: Any) -> R | D:
        """The call's result, or `otherwise` if it was given up."""
        try:
            return self.call(function, *arguments)
        except Stopped:
            return otherwise

    def _start(self) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "repo2ctx.sandbox", str(self.memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is our parent's to answer
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        self._child = child
        assert child.stdout is not None
        try:
            started = _readable(child.stdout, _START_S) and _receive(child.stdout) == "ready"
        except EOFError:
            started = False
        if not started:
            self.close()
            raise Repo2CtxError(
                f"the process that parses does not start with {self.memory_bytes:,} bytes of memory; "
                "raise parse.memory_bytes, or run `python -m repo2ctx.sandbox 4000000000` to see why"
            )
        return child


def _readable(stream: IO[bytes], timeout_s: float) -> bool:
    return bool(select.select([stream], [], [], max(0.0, timeout_s))[0])


def _send(stream: IO[bytes], message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(_HEADER.pack(len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise EOFError
    (size,) = _HEADER.unpack(header)
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


def _die_with_parent() -> None:
    """Have the kernel end us when our parent ends, where it can (Linux); elsewhere the timer does, later."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _serve(memory_bytes: int) -> None:
    """The child: answers each call until its input ends."""
    # The answers get a descriptor of their own, so that nothing a library prints can break the protocol.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _die_with_parent()
    importlib.import_module("repo2ctx.parsing")  # most calls need it: not on the first one's time
    _send(answers, "ready")
    while True:
        try:
            function, arguments, limit = _receive(sys.stdin.buffer)
        except EOFError:
            return
        except MemoryError:
            _send(answers, ("memory", None))
            continue
        # Should our parent be gone when a call hangs, the kernel ends us: nobody else would.
        signal.setitimer(signal.ITIMER_REAL, 2 * limit + 1)
        try:
            answer = ("", function(*arguments))
        except MemoryError:
            answer = ("memory", None)
        except Exception as error:  # noqa: BLE001 - whatever hostile input raises is the input's problem
            answer = (type(error).__name__, None)
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            _send(answers, answer)
        except MemoryError:
            del answer
            _send(answers, ("memory", None))


if __name__ == "__main__":
    try:
        _serve(int(sys.argv[1]))
    except BrokenPipeError:
        os._exit(0)  # nobody listens any more; an ordinary exit would try to write once more, and complain
