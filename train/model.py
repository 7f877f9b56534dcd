"""The model that is trained: a base under the RoPE of the target length, with a LoRA adapter on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from peft import LoraConfig, get_peft_model

from repo2ctx.config import length_name
from repo2ctx.errors import ConfigError, ModelError
from repo2ctx.models import load_base, load_shape, model_name, pick_device
from train.config import TrainConfig
from train.rope import yarn_parameters
from train.stages import Stage


def make_model(config: TrainConfig, stage: Stage) -> tuple[Any, dict[str, Any]]:
    """(PEFT model in training mode, the settings that are stored beside the adapter).

    Raises ModelError for a base that cannot be extended, ConfigError for rows longer than its context.
    """
    name = config.model.base
    shape = load_shape(name)
    given = dict(getattr(shape, "rope_parameters", None) or {})
    native = getattr(shape, "max_position_embeddings", None)
    if "rope_theta" not in given or given.get("rope_type", "default") != "default" or not native or native < 1:
        has = f"RoPE scaling of its own ({given})" if given.get("rope_type") else f"no plain RoPE ({given or 'none'})"
        raise ModelError(f"model {name!r}: has {has}; only models with plain RoPE are extended yet")
    rope = yarn_parameters(native, stage.rope_target, given)
    longest = max(native, stage.rope_target)
    if stage.length > longest:
        need, have = length_name(stage.length), length_name(longest)
        raise ConfigError(f"length {need} is more than the context of {have}; set rope.target={need}")
    base = load_base(name, rope, longest, config.model.dtype, pick_device(config.model.device))
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
    model.train()
    settings = {
        "base": model_name(name),
        "native_length": native,
        "rope_parameters": dict(base.config.rope_parameters),
        "max_position_embeddings": longest,
    }
    return model, settings


def describe(model: Any, settings: Mapping[str, Any], rows: int) -> str:
    """What is about to be trained, in one line."""
    trained, weights = model.get_nb_trainable_parameters()
    rope, native = settings["rope_parameters"], length_name(settings["native_length"])
    reach = length_name(settings["max_position_embeddings"])
    yarn = f"YaRN {rope['factor']:g} times {native} to {reach}" if "factor" in rope else f"plain RoPE, {reach}"
    return (
        f"{settings['base']}: {trained:,} of {weights:,} weights are trained, {model.dtype} on {model.device}; {yarn}; "
        f"{rows:,} rows of {length_name(settings['length'])}"
    ).replace("torch.", "")


def _linear(base: Any) -> str:
    """The names of a model's linear layers."""
    return ", ".join(sorted({n.rpartition(".")[2] for n, m in base.named_modules() if isinstance(m, torch.nn.Linear)}))


def move_to(model: Any, settings: dict[str, Any], config: TrainConfig, stage: Stage) -> None:
    settings["length"] = stage.length
