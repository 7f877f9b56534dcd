"""Runs one task per repository on worker processes. A worker that dies takes its own task with it, nothing else.

Workers are spawned, not forked: linguist's rules run in Go, which a fork would break.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pebble import ProcessExpired, ProcessPool

from repo2ctx.errors import Repo2CtxError
from repo2ctx.safegit import isolate_environment

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """What became of task `index`: a result, or an error (`trace` is its traceback when we did not foresee it).

    disk_full: the error is about the disk, not about the task; the next would meet it too.
    """

    index: int
    result: R | None = None
    error: str = ""
    trace: str = ""
    disk_full: bool = False


def run_tasks(task: Callable[[T], R], arguments: Sequence[T], workers: int) -> Iterator[Outcome[R]]:
    """Run `task` on every argument, in the order given, and yield outcomes as they come.

    `task` must be a module's function and its arguments picklable. Leaving the loop early stops the workers.
    """
    if not arguments:
        return
    context = multiprocessing.get_context("spawn")
    count = max(1, min(workers, len(arguments)))
    pool = ProcessPool(max_workers=count, initializer=isolate_environment, context=context)
    try:
        waiting: dict[Future[Any], int] = {}
        following = iter(range(len(arguments)))
        while True:
            # Only as many as are needed to keep the workers busy: an interrupted build has little to drop.
            while len(waiting) < 2 * count and (index := next(following, None)) is not None:
                waiting[pool.schedule(_guarded, args=(task, index, arguments[index]))] = index
            if not waiting:
                return
            for future in sorted(wait(waiting, return_when=FIRST_COMPLETED).done, key=lambda f: waiting[f]):
                index = waiting.pop(future)
                try:
                    yield future.result()
                except ProcessExpired as error:
                    yield Outcome(index, error=f"its worker process died (exit code {error.exitcode}; out of memory?)")
    finally:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()


def _guarded(task: Callable[[T], R], index: int, argument: T) -> Outcome[R]:
    try:
        return Outcome(index, result=task(argument))
    except Repo2CtxError as error:
        return Outcome(index, error=str(error))
    except OSError as error:
        return Outcome(index, error=str(error), disk_full=error.errno in DISK_FULL)
    except Exception as error:  # noqa: BLE001 - one bad repository must not end the build; the trace is kept
        return Outcome(index, error=f"unexpected {type(error).__name__}: {error}", trace=traceback.format_exc())


def default_workers() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
