"""The model that is trained: a base under the RoPE of the target length, with what is trained of it (`train.adapters`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import torch

from repo2ctx.config import length_name
from repo2ctx.errors import ConfigError
from repo2ctx.models import load_base, model_name, pick_device
from repo2ctx.positions import check_positions
from train.adapters import described, make_trainable
from train.config import TrainConfig
from train.rope import decide_positions, describe_positions, position_settings, set_rope
from train.shape import check_shape
from train.stages import Stage, resolve_stages

_SAMPLED = 512  # numbers of each weight, about


def make_model(config: TrainConfig, stage: Stage | None = None) -> tuple[Any, dict[str, Any]]:
    """(the model of a stage in training mode, a PEFT model unless all of it is trained; the settings stored beside its weights).

    Raises ModelError for a base that cannot be extended, ConfigError for rows longer than its context.
    """
    name = config.model.base
    if config.model.shape is not None:
        check_shape(config)
        config = config.model_copy(update={"model": config.model.model_copy(update={"shape": None})})
    check_lengths(config)
    own = of_stage(config, stage or resolve_stages(config)[0])
    rope, window = decide_positions(own)
    positions, longest = rope.rope_parameters, rope.max_position_embeddings
    kind = config.adapter.kind
    held = "float32" if kind == "full" else config.model.dtype  # of full, it is the weights themselves that are trained
    device = pick_device(config.model.device)
    base = load_base(name, positions, longest, held, device, window, four_bit=kind == "qlora")
    model = in_training(base, config)
    weights = {"kind": kind, "base_weights": "nf4" if kind == "qlora" else held, "dtype": config.model.dtype}
    return model, {"base": model_name(name)} | weights | position_settings(own, rope, window)


def in_training(base: Any, config: TrainConfig) -> Any:
    """A base under its RoPE -> the model in training mode. Raises ModelError or ConfigError for what `make_trainable` refuses."""
    if config.model.checkpointing:
        # transformers has renamed it, and will drop the old name
        enable = getattr(base, "activation_checkpointing_enable", None) or base.gradient_checkpointing_enable
        enable({"use_reentrant": False})
    model = make_trainable(base, config.adapter, model_name(config.model.base), config.model.dtype)
    check_positions(model, f"model {config.model.base!r}")
    model.train()
    return model


def weights_digest(model: Any) -> str:
    """A hash of a model's weights but LoRA's, by a sample of each: of a base that was changed, it is another."""
    digest = hashlib.sha256()
    for name, weight in model.named_parameters():
        if ".lora_" not in name:
            flat = weight.data.flatten()
            sample = flat[:: max(1, len(flat) // _SAMPLED)].cpu().contiguous()
            digest.update(f"{name} {weight.dtype} {tuple(weight.shape)} ".encode())
            digest.update(sample.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def describe(model: Any, settings: Mapping[str, Any], rows: int) -> str:
    """What is about to be trained, in one line."""
    return (
        f"{settings['base']}: {described(model)}, {settings['dtype']} on {model.device}; {describe_positions(settings)}; "
        f"{rows:,} rows of up to {length_name(settings['length'])}"
    )


def check_lengths(config: TrainConfig) -> None:
    """Raise ConfigError if the rows of any stage are longer than its context: before hours are spent on the stages before."""
    for stage in resolve_stages(config):
        rope, _ = decide_positions(of_stage(config, stage))
        if stage.length > (longest := rope.max_position_embeddings):
            need, have = length_name(stage.length), length_name(longest)
            raise ConfigError(
                f"stage {stage.name}: rows of {need} are longer than its context of {have}; set rope.target={need}"
            )


def of_stage(config: TrainConfig, stage: Stage) -> TrainConfig:
    """The configuration with the context of a stage."""
    if stage.rope_target == config.rope.target:
        return config
    rope = config.rope.model_copy(update={"target": stage.rope_target, "factor": None})
    stages = tuple(s.model_copy(update={"rope_target": s.rope_target or config.rope.target}) for s in config.stages)
    return config.model_copy(update={"rope": rope, "stages": stages})


def move_to(model: Any, settings: dict[str, Any], config: TrainConfig, stage: Stage) -> None:
    """Put a model and its settings into a stage: its context, and the length of its rows."""
    own = of_stage(config, stage)
    rope, window = decide_positions(own)
    positions = position_settings(own, rope, window)
    if any(settings[key] != positions[key] for key in ("rope_parameters", "max_position_embeddings")):
        set_rope(model, rope.rope_parameters, rope.max_position_embeddings)
    settings |= positions | {"length": stage.length}
