"""A run's directory: whose it is, that one process at a time writes there, and whether a run may go on."""

from __future__ import annotations

import fcntl
import json
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
    """Hold `out` for this process and for the run that `identity` describes: {"config": …, "rows": …}.

    Other things may lie there, such as the dataset. Raises OutputError if it holds results of something else, or another
    process writes there; ConfigError if it belongs to a run with another configuration or other rows.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / ".lock").open("w")
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
    if not (out / "checkpoints").exists() and not (out / "model").exists():
        write_json(out / RUN, identity)
        return
    try:
        earlier = json.loads((out / RUN).read_text("utf-8"))
        before, now = _flat(earlier["config"]), _flat(identity["config"])
        rows = earlier["rows"]
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise OutputError(f"{out / RUN}: is damaged; give another `out`") from error
    if changed := [
        f"{key} {before.get(key)} -> {now.get(key)}" for key in now | before if before.get(key) != now.get(key)
    ]:
        raise ConfigError(f"{out}: holds a run with another configuration ({'; '.join(changed)}); give another `out`")
    if rows != identity["rows"]:
        raise ConfigError(f"{out}: holds a run on other rows; give another `out`")


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """{"optim.lr": …} of what decides the result of a run."""
    sections = ((s, o if isinstance(o, dict) else {"": o}) for s, o in config.items())
    flat = {f"{section}.{key}".rstrip("."): value for section, options in sections for key, value in options.items()}
    return {key: value for key, value in flat.items() if key not in _FREE}
