"""Saved state: written aside, synced and renamed, so that what has a final name is whole; resumed to the last bit.

A checkpoint is a PEFT directory or a whole model (usable by itself) plus optimizer, random states and the position in the run.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from repo2ctx.errors import OutputError
from repo2ctx.models import write_settings
from repo2ctx.shards import finish_folder, partial_folder, write_json
from train.adapters import load_weights, save_weights
from train.output import changes

_STATE, _RUN, _SEAL = "state.pt", "run.json", "sha256"
_PARTIAL = re.compile(r"\.(step-\d{6,}(-rows-\d+)?|model)\.\d+\.partial")
_PLACE = re.compile(r"step-(\d{6,})(?:-rows-(\d+))?")  # steps done; rows of the next one, whose gradients are kept
_UNREADABLE = (pickle.UnpicklingError, EOFError, RuntimeError, LookupError, TypeError, ValueError, AttributeError)


@dataclass
class RunState:
    """What changes as a run goes on, besides the model.

    run: plain values, of which are read here: "step", how many are done; "stage", its number; "partial", None or what is done of
    the next step, with its number of "rows"; "validation", the loss of these weights on rows that are not trained on, or None.
    """

    weights: Sequence[torch.nn.Parameter]
    optimizer: torch.optim.Optimizer
    run: dict[str, Any]


def save_adapter(model: Any, tokenizer: Sequence[Path], settings: Mapping[str, Any], folder: Path) -> None:
    """Write a PEFT directory with the settings and the tokenizer's files that it needs."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = partial_folder(folder)
    _write_adapter(model, tokenizer, settings, aside)
    shutil.rmtree(folder, ignore_errors=True)
    finish_folder(aside, folder)


def _write_adapter(model: Any, tokenizer: Sequence[Path], settings: Mapping[str, Any], folder: Path) -> None:
    save_weights(model, folder)
    write_settings(folder, settings)
    (folder / "README.md").write_text(_card(settings), "utf-8")
    for file in tokenizer:
        shutil.copyfile(file, folder / file.name)
    readable = (folder / "README.md").stat().st_mode
    for file in folder.iterdir():  # safetensors writes what its owner alone may read
        file.chmod(readable)


def _card(settings: Mapping[str, Any]) -> str:
    """The model card."""
    base, kind = settings["base"], settings["kind"]
    named = {} if base == "smollm2" or Path(base).is_dir() else {"base_model": base}
    library, tags = ("transformers", []) if kind == "full" else ("peft", ["lora"])
    front: dict[str, Any] = {"library_name": library, "pipeline_tag": "text-generation"}
    front |= {"tags": [*tags, "long-context", "code"]}
    what, over = {
        "lora": ("A LoRA adapter", ""),
        "lora+": ("A LoRA adapter, with norms and an embedding of its own,", ""),
        "qlora": ("A LoRA adapter", ", held in 4 bits (NF4)"),
        "full": ("A model", ""),
    }[kind]
    window = "    no attention window: sliding_window off\n" if settings.get("sliding_window") == "off" else ""
    where, then = "belongs on a base with", "which PEFT does not set; `repo2ctx.models.load_tuned(DIRECTORY)` does."
    if kind == "full":
        where, then = "has", "in its configuration, so transformers loads it as it is."
    return (
        f"---\n{yaml.safe_dump(named | front, sort_keys=False)}---\n\n{what} that summarizes repositories, made by "
        f"repo2ctx from {base}{over} on rows of {settings['length']:,} tokens. It {where}\n\n"
        f"    rope_parameters = {json.dumps(settings['rope_parameters'])}\n"
        f"    max_position_embeddings = {settings['max_position_embeddings']}\n{window}\n"
        f"{then} `repo2ctx.json` has the same for programs.\n"
    )


def save_checkpoint(
    folder: Path, model: Any, tokenizer: Sequence[Path], settings: Mapping[str, Any], state: RunState
) -> Path:
    """Write a checkpoint whole, or, where it lies there already, what has become known of it since; returns its place."""
    part = state.run["partial"]
    place = folder / _name(state.run)
    if place.is_dir():  # of the same weights: nothing is trained between
        write_json(place / _RUN, _sealed({**state.run, "files": _read_run(place)["files"]}))
        return place
    folder.mkdir(parents=True, exist_ok=True)
    aside = partial_folder(place)
    _write_adapter(model, tokenizer, settings, aside)
    gradients = [p.grad for p in state.weights] if part else None
    tensors = {"optimizer": state.optimizer.state_dict(), "random": _random(), "gradients": gradients}
    torch.save(tensors, aside / _STATE)
    files = {path.name: _digest(path) for path in sorted(aside.iterdir())}
    write_json(aside / _RUN, _sealed({**state.run, "files": files}))
    finish_folder(aside, place)
    return place


def _name(run: Mapping[str, Any]) -> str:
    part = run["partial"]
    return f"step-{run['step']:06d}" + (f"-rows-{part['rows']}" if part else "")


def _sealed(run: Mapping[str, Any]) -> dict[str, Any]:
    """With the SHA-256 of its values: a flipped bit in a number shows."""
    values = {key: value for key, value in run.items() if key != _SEAL}
    return values | {_SEAL: hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()}


def sweep(folder: Path) -> None:
    """Remove what killed processes left half-written in a run's directory, which this process holds."""
    for path in (*folder.glob("checkpoints/.step-*.partial"), *folder.glob(".model.*.partial")):
        if _PARTIAL.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)


def prune(folder: Path, keep: int) -> None:
    """Remove checkpoints but the newest `keep`, and the best of the newest stage that has been validated."""
    places = _all(folder)
    runs = [(place, _peek(place)) for place in places]
    validated = [(run["stage"], -run["validation"], place) for place, run in runs if run.get("validation") is not None]
    best = max(validated, key=lambda v: v[:2])[2] if validated else None
    for place in places[:-keep]:
        if place != best:
            shutil.rmtree(place)


def _peek(place: Path) -> dict[str, Any]:
    """What a checkpoint says of itself, unchecked; nothing if it is damaged."""
    try:
        run = json.loads((place / _RUN).read_text("utf-8"))
        return dict(run) if run[_SEAL] == _sealed(run)[_SEAL] else {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def _random() -> dict[str, Any]:
    cuda = torch.cuda.is_available()
    return {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all() if cuda else []}


def newest(folder: Path) -> Path | None:
    """The newest checkpoint, or None."""
    return next(reversed(_all(folder)), None)


def _all(folder: Path) -> list[Path]:
    """The checkpoints, oldest first; what else lies beside them is left alone."""
    found = [(match, p) for p in folder.glob("step-*") if (match := _PLACE.fullmatch(p.name)) and p.is_dir()]
    return [p for _, p in sorted(found, key=lambda f: (int(f[0][1]), int(f[0][2] or 0)))]


def _digest(path: Path) -> str:
    """SHA-256 of a file, which is synced."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_run(place: Path) -> dict[str, Any]:
    try:
        run = json.loads((place / _RUN).read_text("utf-8"))
        whole = run[_SEAL] == _sealed(run)[_SEAL] and all(
            _digest(place / n) == digest for n, digest in run["files"].items()
        )
        if whole and _name(run) == place.name:
            return dict(run)
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        pass
    raise OutputError(f"{place}: is damaged; remove it, and run again to go on from the checkpoint before it")


def load_checkpoint(place: Path, model: Any, state: RunState) -> None:
    """Put weights, optimizer, random states, gradients and `state.run` back as they were.

    Raises OutputError if the checkpoint is not whole, or of another run.
    """
    run = _read_run(place)
    del run["files"], run[_SEAL]
    if missing := state.run.keys() - run.keys():
        raise OutputError(f"{place}: is of an earlier version, and lacks {min(missing)}; start anew with another `out`")
    if differs := changes(run["config"], state.run["config"]):
        raise OutputError(
            f"{place}: is of a run with another configuration ({'; '.join(differs)}); remove it, or give another `out`"
        )
    state.run = run
    load_weights(model, place)
    try:
        _put_back(torch.load(place / _STATE, weights_only=True, map_location="cpu"), state)
    except torch.OutOfMemoryError:  # the file is sound
        raise
    except _UNREADABLE as error:
        raise OutputError(
            f"{place / _STATE}: cannot be read ({type(error).__name__}); remove {place.name}, and run again to go on from the "
            "checkpoint before it"
        ) from error


def _put_back(tensors: Mapping[str, Any], state: RunState) -> None:
    state.optimizer.load_state_dict(tensors["optimizer"])
    torch.set_rng_state(tensors["random"]["cpu"])
    if tensors["random"]["cuda"]:
        torch.cuda.set_rng_state_all(tensors["random"]["cuda"])
    for weight, gradient in zip(state.weights, tensors["gradients"] or (), strict=bool(tensors["gradients"])):
        weight.grad = None if gradient is None else gradient.to(weight)
