"""Saved state: written aside, synced and renamed, so that what has a final name is whole; resumed to the last bit.

A checkpoint is a PEFT directory or a whole model (usable by itself) plus optimizer, random states and the position in the run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml

from repo2ctx.errors import OutputError
from repo2ctx.models import write_settings
from repo2ctx.shards import finish_folder, partial_folder, write_json
from train.adapters import load_weights, save_weights

_STATE, _RUN = "state.pt", "run.json"
_PLACE = re.compile(r"step-(\d{6,})")


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
    where, then = "belongs on a base with", "which PEFT does not set; `repo2ctx.models.load_tuned(DIRECTORY)` does."
    if kind == "full":
        where, then = "has", "in its configuration, so transformers loads it as it is."
    return (
        f"---\n{yaml.safe_dump(named | front, sort_keys=False)}---\n\n{what} that summarizes repositories, made by "
        f"repo2ctx from {base}{over} on rows of {settings['length']:,} tokens. It {where}\n\n"
        f"    rope_parameters = {json.dumps(settings['rope_parameters'])}\n"
        f"    max_position_embeddings = {settings['max_position_embeddings']}\n\n"
        f"{then} `repo2ctx.json` has the same for programs.\n"
    )


def save_checkpoint(
    folder: Path,
    model: Any,
    tokenizer: Sequence[Path],
    settings: Mapping[str, Any],
    optimizer: torch.optim.Optimizer,
    scheduler: torch.optim.lr_scheduler.LRScheduler,
    step: int,
    keep: int,
) -> None:
    """Write `folder/step-<step>`, then remove the oldest beyond `keep`."""
    place = folder / f"step-{step:06d}"
    folder.mkdir(parents=True, exist_ok=True)
    aside = partial_folder(place)
    _write_adapter(model, tokenizer, settings, aside)
    state = {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "random": _random()}
    torch.save(state, aside / _STATE)
    files = {path.name: _digest(path) for path in sorted(aside.iterdir())}
    write_json(aside / _RUN, {"step": step, "files": files})
    shutil.rmtree(place, ignore_errors=True)
    finish_folder(aside, place)
    for old in _all(folder)[:-keep]:
        shutil.rmtree(old)


def _random() -> dict[str, Any]:
    cuda = torch.cuda.is_available()
    return {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all() if cuda else []}


def newest(folder: Path) -> Path | None:
    """The newest checkpoint, or None."""
    return next(reversed(_all(folder)), None)


def _all(folder: Path) -> list[Path]:
    """The checkpoints, oldest first; what else lies beside them is left alone."""
    steps = {int(match[1]): p for p in folder.glob("step-*") if (match := _PLACE.fullmatch(p.name)) and p.is_dir()}
    return [steps[step] for step in sorted(steps)]


def _digest(path: Path) -> str:
    """SHA-256 of a file, which is synced."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_step(place: Path) -> int:
    try:
        run = json.loads((place / _RUN).read_text("utf-8"))
        if all(_digest(place / name) == digest for name, digest in run["files"].items()):
            return int(run["step"])
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        pass
    raise OutputError(f"{place}: is damaged; remove it, and run again to go on from the checkpoint before it")


def load_checkpoint(
    place: Path, model: Any, optimizer: torch.optim.Optimizer, scheduler: torch.optim.lr_scheduler.LRScheduler
) -> int:
    """Put everything back as it was, and return the step. Raises OutputError if the checkpoint is not whole."""
    step = _read_step(place)
    load_weights(model, place)
    state = torch.load(place / _STATE, weights_only=True, map_location="cpu")
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    torch.set_rng_state(state["random"]["cpu"])
    if state["random"]["cuda"]:
        torch.cuda.set_rng_state_all(state["random"]["cuda"])
    return step
