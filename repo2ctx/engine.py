"""Runs one task per repository on worker processes. A worker that dies takes its own task with it, nothing else.

Workers are spawned, not forked: linguist's rules run in Go, which a fork would break.
"""

from __future__ import annotations

import ctypes
import errno
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from pebble import ProcessExpired, ProcessPool

from repo2ctx.errors import Repo2CtxError
from repo2ctx.safegit import isolate_environment

_PR_SET_PDEATHSIG = 1
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_ENDS_BUILD = (*DISK_FULL, errno.EROFS, errno.EIO, errno.ESTALE)
"""What a disk says that will not take the next repository either."""
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """What became of task `index`: a result, or an error (`trace` is its traceback when we did not foresee it).

    fatal: the error itself, where it is not about the task: the next would meet it too.
    """

    index: int
    result: R | None = None
    error: str = ""
    trace: str = ""
    fatal: Exception | None = None


class Workers:
    """A pool of worker processes, as a context manager. Leaving it early stops what they do.

    timeout_s: seconds of wall time that one task may take.
    """

    def __init__(self, count: int, timeout_s: float):
        self.count = count
        self.timeout_s = timeout_s
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPool(max_workers=count, initializer=_prepare_worker, context=context)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.stop()  # type: ignore[no-untyped-call]
        self._pool.join()

    def run(self, task: Callable[[T], R], arguments: Sequence[T]) -> Iterator[Outcome[R]]:
        """Run `task` on every argument, begun in the order given, and yield outcomes as they come.

        `task` must be a module's function and its arguments picklable.
        """
        waiting: dict[Future[Any], int] = {}
        following = iter(range(len(arguments)))
        while True:
            # Only as many as keep the workers busy: an interrupted build has little to drop.
            while len(waiting) < 2 * self.count and (index := next(following, None)) is not None:
                waiting[self._pool.schedule(_guarded, args=(task, index, arguments[index]), timeout=self.timeout_s)] = (
                    index
                )
            if not waiting:
                return
            for future in sorted(wait(waiting, return_when=FIRST_COMPLETED).done, key=lambda f: waiting[f]):
                index = waiting.pop(future)
                try:
                    yield future.result()
                except TimeoutError:
                    said = f"took longer than {self.timeout_s:,.0f} s and was stopped; leave it out, or raise --repo-timeout"
                    yield Outcome(index, error=said)
                except ProcessExpired as error:
                    yield Outcome(index, error=f"its worker process died (exit code {error.exitcode}; out of memory?)")


def _prepare_worker() -> None:
    isolate_environment()
    # Ctrl-C reaches every process of the terminal; the main one answers it, and stops us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":  # kill -9 of the main process takes us along
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _guarded(task: Callable[[T], R], index: int, argument: T) -> Outcome[R]:
    try:
        return Outcome(index, result=task(argument))
    except Repo2CtxError as error:
        return Outcome(index, error=str(error), fatal=error if error.ends_build else None)
    except OSError as error:
        return Outcome(index, error=str(error), fatal=error if error.errno in _ENDS_BUILD else None)
    except Exception as error:  # noqa: BLE001 - one bad repository must not end the build; the trace is kept
        return Outcome(index, error=f"unexpected {type(error).__name__}: {error}", trace=traceback.format_exc())


def default_workers() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
