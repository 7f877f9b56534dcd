"""Saved state: written aside, synced and renamed, so that what has a final name is whole; resumed to the last bit.

A checkpoint is a PEFT directory (usable by itself) plus optimizer, random states and the position in the run.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from peft import set_peft_model_state_dict
from safetensors.torch import load_file

from repo2ctx.models import write_settings
from repo2ctx.shards import finish_folder, partial_folder

_STATE, _RUN = "state.pt", "run.json"


def save_adapter(model: Any, tokenizer: Sequence[Path], settings: Mapping[str, Any], folder: Path) -> None:
    """Write a PEFT directory with the settings and the tokenizer's files that it needs."""
    aside = partial_folder(folder)
    _write_adapter(model, tokenizer, settings, aside)
    finish_folder(aside, folder)


def _write_adapter(model: Any, tokenizer: Sequence[Path], settings: Mapping[str, Any], folder: Path) -> None:
    model.save_pretrained(folder)
    write_settings(folder, settings)
    for file in tokenizer:
        shutil.copyfile(file, folder / file.name)


def save_checkpoint(
    folder: Path,
    model: Any,
    tokenizer: Sequence[Path],
    settings: Mapping[str, Any],
    optimizer: torch.optim.Optimizer,
    scheduler: torch.optim.lr_scheduler.LRScheduler,
    run: Mapping[str, Any],
    keep: int,
) -> None:
    """Write `folder/step-<run["step"]>`, then remove the oldest beyond `keep`."""
    place = folder / f"step-{run['step']:06d}"
    aside = partial_folder(place)
    _write_adapter(model, tokenizer, settings, aside)
    state = {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "random": _random()}
    torch.save(state, aside / _STATE)
    with (aside / _RUN).open("w") as file:
        json.dump(dict(run), file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    finish_folder(aside, place)
    for old in sorted(folder.glob("step-*"))[:-keep]:
        shutil.rmtree(old)


def _random() -> dict[str, Any]:
    cuda = torch.cuda.is_available()
    return {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all() if cuda else []}


def newest(folder: Path) -> Path | None:
    """The newest whole checkpoint, or None."""
    return max(folder.glob("step-*"), default=None)


def read_run(place: Path) -> dict[str, Any]:
    """The position and configuration of the run that made the checkpoint."""
    run: dict[str, Any] = json.loads((place / _RUN).read_text("utf-8"))
    return run


def load_checkpoint(
    place: Path, model: Any, optimizer: torch.optim.Optimizer, scheduler: torch.optim.lr_scheduler.LRScheduler
) -> None:
    """Put everything back as it was."""
    set_peft_model_state_dict(model, load_file(place / "adapter_model.safetensors"))
    state = torch.load(place / _STATE, weights_only=True, map_location="cpu")
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    torch.set_rng_state(state["random"]["cpu"])
    if state["random"]["cuda"]:
        torch.cuda.set_rng_state_all(state["random"]["cuda"])
