"""The model that is trained: a base under the RoPE of the target length, with a LoRA adapter on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from peft import LoraConfig, get_peft_model

from repo2ctx.config import length_name
from repo2ctx.errors import ConfigError
from repo2ctx.models import load_base, model_name, pick_device
from repo2ctx.positions import check_positions
from train.config import TrainConfig
from train.rope import decide_positions, describe_positions, position_settings, set_rope
from train.stages import Stage, resolve_stages


def make_model(config: TrainConfig, stage: Stage | None = None) -> tuple[Any, dict[str, Any]]:
    """(PEFT model in training mode, the settings that are stored beside the adapter), for a stage: None is the first.

    Raises ModelError for a base that cannot be extended, ConfigError for rows longer than its context.
    """
    name = config.model.base
    if config.model.shape is not None:
        raise ConfigError("model.shape is for --dry-run alone; leave it out to train model.base")
    own = of_stage(config, stage or resolve_stages(config)[0])
    rope, window = decide_positions(own)
    positions, longest = rope.rope_parameters, rope.max_position_embeddings
    base = load_base(name, positions, longest, config.model.dtype, pick_device(config.model.device), window)
    if config.model.checkpointing:
        # transformers has renamed it, and will drop the old name
        enable = getattr(base, "activation_checkpointing_enable", None) or base.gradient_checkpointing_enable
        enable({"use_reentrant": False})
    modules = config.adapter.modules
    if modules == "attention":
        modules = ("q_proj", "k_proj", "v_proj", "o_proj")
    lora = LoraConfig(
        r=config.adapter.r,
        lora_alpha=config.adapter.alpha,
        lora_dropout=config.adapter.dropout,
        target_modules=list(modules),
        task_type="CAUSAL_LM",
    )
    try:
        model = get_peft_model(base, lora)
    except ValueError as error:
        raise ConfigError(f"adapter.modules {', '.join(modules)}: {error}") from error
    tuner: Any = model.base_model
    names = {module.rpartition(".")[2] for module in tuner.targeted_module_names}
    if without := [m for m in modules if m not in names]:
        raise ConfigError(f"adapter.modules: {name!r} has no module {', '.join(without)}; it has {_linear(base)}")
    check_positions(model, f"model {name!r}")
    model.train()
    return model, {"base": model_name(name)} | position_settings(own, rope, window)


def describe(model: Any, settings: Mapping[str, Any], rows: int) -> str:
    """What is about to be trained, in one line."""
    trained, weights = model.get_nb_trainable_parameters()
    return (
        f"{settings['base']}: {trained:,} of {weights:,} weights are trained, {model.dtype} on {model.device}; "
        f"{describe_positions(settings)}; {rows:,} rows of {length_name(settings['length'])}"
    ).replace("torch.", "")


def _linear(base: Any) -> str:
    """The names of a model's linear layers."""
    return ", ".join(sorted({n.rpartition(".")[2] for n, m in base.named_modules() if isinstance(m, torch.nn.Linear)}))


def of_stage(config: TrainConfig, stage: Stage) -> TrainConfig:
    """The configuration with the context of a stage. Raises ConfigError for rows that are longer."""
    if stage.length > stage.rope_target:
        need, have = length_name(stage.length), length_name(stage.rope_target)
        raise ConfigError(
            f"stage {stage.name}: rows of {need} are longer than its context of {have}; set rope.target={need}"
        )
    if stage.rope_target == config.rope.target:
        return config
    rope = config.rope.model_copy(update={"target": stage.rope_target, "factor": None})
    return config.model_copy(update={"rope": rope})


def move_to(model: Any, settings: dict[str, Any], config: TrainConfig, stage: Stage) -> None:
    """Put a model and its settings into a stage: its context, and the length of its rows."""
    own = of_stage(config, stage)
    rope, window = decide_positions(own)
    positions = position_settings(own, rope, window)
    if any(settings[key] != positions[key] for key in ("rope_parameters", "max_position_embeddings")):
        set_rope(model, rope.rope_parameters, rope.max_position_embeddings)
    settings |= positions | {"length": stage.length}
