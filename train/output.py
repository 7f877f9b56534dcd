"""A run's directory: whose it is, that one process at a time writes there, and whether a run may go on."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from repo2ctx.errors import ConfigError, OutputError
from repo2ctx.shards import write_json

RUN = "train.json"
_FREE = ("out", "data.path", "model.device", "model.checkpointing", "checkpoint.every", "checkpoint.keep")
_OURS = ("model", "checkpoints", "metrics.jsonl")


@contextmanager
def run_directory(out: Path, identity: dict[str, Any]) -> Iterator[None]:
    """Hold `out` for this process and for the run that `identity` describes: {"config": …, "rows": …, "base": …}.

    Other things may lie there, such as the dataset. Raises OutputError if it holds results of something else, or another
    process writes there; ConfigError if it belongs to a run with another configuration, other rows, or another base.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / ".lock").open("a")  # whatever a link there leads to stays as it is
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({error.strerror}); give another `out`") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OutputError(
                f"{out}: another process is training there; wait for it, or give another `out`"
            ) from error
        _claim(out, identity)
        yield


def _claim(out: Path, identity: dict[str, Any]) -> None:
    if not (out / RUN).exists() and (strangers := [name for name in _OURS if (out / name).exists()]):
        raise OutputError(f"{out}: holds {', '.join(strangers)} of something else; give another `out`")
    for name in ("checkpoints", "model"):
        if (out / name).is_symlink() and name == "model":
            raise OutputError(f"{out / name}: is a link, which the trained model cannot replace; remove it")
        if os.path.lexists(out / name) and not (out / name).is_dir():
            raise OutputError(f"{out / name}: is no directory; remove it, or give another `out`")
    if not (out / "checkpoints").exists() and not (out / "model").exists():
        write_json(out / RUN, identity)
        return
    try:
        earlier = json.loads((out / RUN).read_text("utf-8"))
        changed = changes(earlier["config"], identity["config"])
        rows, base = earlier["rows"], earlier["base"]
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise OutputError(f"{out / RUN}: is damaged; give another `out`") from error
    if changed:
        raise ConfigError(f"{out}: holds a run with another configuration ({'; '.join(changed)}); give another `out`")
    if rows != identity["rows"]:
        raise ConfigError(f"{out}: holds a run on other rows; give another `out`")
    if base != identity["base"]:
        raise ConfigError(
            f"{out}: holds a run on a base whose weights were others; put them back, or give another `out`"
        )


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What decides the result of a run and differs between two configurations, as "optim.lr 1 -> 2"."""
    old, new = _flat(before), _flat(now)
    return [f"{key} {old.get(key)} -> {new.get(key)}" for key in new | old if old.get(key) != new.get(key)]


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """{"optim.lr": …} of what decides the result of a run."""
    sections = ((s, o if isinstance(o, dict) else {"": o}) for s, o in config.items())
    flat = {f"{section}.{key}".rstrip("."): value for section, options in sections for key, value in options.items()}
    return {key: value for key, value in flat.items() if key not in _FREE}
