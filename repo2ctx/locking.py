"""A lock file that leaves nothing behind: who holds it removes it.

A process may open the file just before its holder removes it, and would then hold what nobody else can find. So the file
that was locked is compared with the one that the path leads to, and where they differ all is done again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_TRIES = 100  # each that fails is one in which another process came or went


class HeldElsewhereError(Exception):
    """Another process holds the lock."""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, which is made with its folder. At the end, if nothing else lies in the folder, both are removed.
    Raises HeldElsewhereError without waiting, and OSError if the file cannot be made."""
    with _taken(path) as file:
        try:
            yield
        finally:
            if _leads_to(path, file) and [p.name for p in path.parent.iterdir()] == [path.name]:
                path.unlink()
                with suppress(OSError):  # from here on another may hold a lock there, and remove the folder in its turn
                    path.parent.rmdir()


def _taken(path: Path) -> IO[str]:
    refused: Exception = HeldElsewhereError(path)
    for _ in range(_TRIES):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("w")
        except (FileNotFoundError, FileExistsError) as error:  # the folder went at this moment, or cannot be
            refused = error
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _leads_to(path, file):
                return file
        except BlockingIOError as error:
            file.close()
            raise HeldElsewhereError(path) from error
        except OSError:
            file.close()
            raise
        file.close()
    raise refused


def _leads_to(path: Path, file: IO[str]) -> bool:
    """Whether the path still is that of the open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except OSError:
        return False
