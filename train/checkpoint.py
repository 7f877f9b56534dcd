"""Saved state: written aside, synced and renamed, so that what has a final name is whole; resumed to the last bit.

A checkpoint is a PEFT directory (usable by itself) plus optimizer, random states and the position in the run.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from peft import set_peft_model_state_dict
from safetensors.torch import load_file

from repo2ctx.models import write_settings
from repo2ctx.shards import finish_folder, partial_folder

_STATE, _RUN = "state.pt", "run.json"


def save_adapter(model: Any, tokenizer: Path, settings: Mapping[str, Any], folder: Path) -> None:
    """Write a PEFT directory with the settings and tokenizer that it needs."""
    aside = partial_folder(folder)
    _write_adapter(model, tokenizer, settings, aside)
    finish_folder(aside, folder)


def _write_adapter(model: Any, tokenizer: Path, settings: Mapping[str, Any], folder: Path) -> None:
    model.save_pretrained(folder)
    write_settings(folder, settings)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json"):
        if (tokenizer / name).is_file():
            shutil.copyfile(tokenizer / name, folder / name)


def save_checkpoint(
    folder: Path,
    model: Any,
    tokenizer: Path,
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
    state = {"optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "random": torch.get_rng_state()}
    torch.save(state, aside / _STATE)
    with (aside / _RUN).open("w") as file:
        json.dump(dict(run), file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    finish_folder(aside, place)
    for old in sorted(folder.glob("step-*"))[:-keep]:
        shutil.rmtree(old)


def newest(folder: Path) -> Path | None:
    """The newest whole checkpoint, or None."""
    return max(folder.glob("step-*"), default=None)


def load_checkpoint(
    place: Path, model: Any, optimizer: torch.optim.Optimizer, scheduler: torch.optim.lr_scheduler.LRScheduler
) -> dict[str, Any]:
    """Put everything back as it was; returns the run's position."""
    set_peft_model_state_dict(model, load_file(place / "adapter_model.safetensors"))
    state = torch.load(place / _STATE, weights_only=True)
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    torch.set_rng_state(state["random"])
    run: dict[str, Any] = json.loads((place / _RUN).read_text("utf-8"))
    return run
