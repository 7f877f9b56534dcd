"""Parses files where a parser can be killed: in a child process with a time limit per file and a memory limit.

tree-sitter cannot be interrupted from Python and can hang or exhaust memory on hostile input, so each `Parser`
owns one child (`python -m repo2ctx.parsing`), sends it a file, and waits no longer than the limit. A child that
is late or dies is replaced; its file gets an empty `Syntax` whose `problem` says why, and the rest go on.
Costs one start (0.2 s) per `Parser` and about 50 microseconds per file on top of the parse.
"""

from __future__ import annotations

import os
import pickle
import resource
import select
import signal
import struct
import subprocess
import sys
from types import TracebackType
from typing import IO, Any

from repo2ctx.records import Syntax

_HEADER = struct.Struct(">Q")


def scan(language: str, path: str, source: bytes) -> Syntax:
    """Parse one file in this process and read its syntax. `language` is a linguist name that has a grammar."""
    import tree_sitter

    from repo2ctx.languages import languages

    module = languages()[language]
    tree = tree_sitter.Parser(tree_sitter.Language(_grammar(language))).parse(source)
    return module.scan(tree.root_node, path)


def _grammar(language: str) -> object:
    from repo2ctx.languages import languages

    return languages()[language].GRAMMARS[language]()


class Parser:
    """A child process that parses, as a context manager.

    timeout_s: seconds of wall time for one file; memory_bytes: address space of the child.
    """

    def __init__(self, timeout_s: float, memory_bytes: int):
        self.timeout_s = timeout_s
        self.memory_bytes = memory_bytes
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Parser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def scan(self, language: str, path: str, source: bytes) -> Syntax:
        """The syntax of one file; never raises for what the file holds."""
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            _send(child.stdin, (language, path, source))
            ready, _, _ = select.select([child.stdout], [], [], self.timeout_s)
            if not ready:
                self.close()
                return Syntax(problem="timeout")
            answer = _receive(child.stdout)
        except (BrokenPipeError, EOFError):
            self.close()
            return Syntax(problem="crash")
        assert isinstance(answer, Syntax)
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "repo2ctx.parsing", str(self.timeout_s), str(self.memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is our parent's to answer
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        return self._child


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


def _serve(timeout_s: float, memory_bytes: int) -> None:
    """The child: answers each request with a Syntax until its input ends."""
    import tree_sitter

    from repo2ctx.languages import languages

    # The answers get a descriptor of their own, so that nothing a library prints can break the protocol.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    parsers: dict[str, tree_sitter.Parser] = {}
    while True:
        try:
            language, path, source = _receive(sys.stdin.buffer)
        except EOFError:
            return
        # Should our parent be gone when a parser hangs, the kernel ends us: nobody else would.
        signal.setitimer(signal.ITIMER_REAL, 2 * timeout_s + 1)
        try:
            if language not in parsers:
                parsers[language] = tree_sitter.Parser(tree_sitter.Language(_grammar(language)))
            answer = languages()[language].scan(parsers[language].parse(source).root_node, path)
        except MemoryError:
            answer = Syntax(problem="memory")
        signal.setitimer(signal.ITIMER_REAL, 0)
        _send(answers, answer)


if __name__ == "__main__":
    _serve(float(sys.argv[1]), int(sys.argv[2]))
