"""The model that is trained: a base under the RoPE of the target length, with what is trained of it (`train.adapters`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from repo2ctx.config import length_name
from repo2ctx.errors import ConfigError, ModelError
from repo2ctx.models import load_base, load_shape, model_name, pick_device
from train.adapters import described, make_trainable
from train.config import TrainConfig
from train.rope import yarn_parameters


def make_model(config: TrainConfig) -> tuple[Any, dict[str, Any]]:
    """(the model in training mode, a PEFT model unless all of it is trained; the settings that are stored beside its weights).

    Raises ModelError for a base that cannot be extended, ConfigError for rows longer than its context.
    """
    name = config.model.base
    shape = load_shape(name)
    given = dict(getattr(shape, "rope_parameters", None) or {})
    native = getattr(shape, "max_position_embeddings", None)
    if "rope_theta" not in given or given.get("rope_type", "default") != "default" or not native or native < 1:
        has = f"RoPE scaling of its own ({given})" if given.get("rope_type") else f"no plain RoPE ({given or 'none'})"
        raise ModelError(f"model {name!r}: has {has}; only models with plain RoPE are extended yet")
    rope = yarn_parameters(native, config.rope.target, given)
    longest = max(native, config.rope.target)
    if config.data.length > longest:
        need, have = length_name(config.data.length), length_name(longest)
        raise ConfigError(f"data.length {need} is more than the context of {have}; set rope.target={need}")
    kind = config.adapter.kind
    held = "float32" if kind == "full" else config.model.dtype  # of full, it is the weights themselves that are trained
    base = load_base(name, rope, longest, held, pick_device(config.model.device), four_bit=kind == "qlora")
    if config.model.checkpointing:
        # transformers has renamed it, and will drop the old name
        enable = getattr(base, "activation_checkpointing_enable", None) or base.gradient_checkpointing_enable
        enable({"use_reentrant": False})
    model = make_trainable(base, config.adapter, model_name(name), config.model.dtype)
    model.train()
    settings = {
        "base": model_name(name),
        "kind": kind,
        "base_weights": "nf4" if kind == "qlora" else held,
        "dtype": config.model.dtype,
        "native_length": native,
        "rope_parameters": dict(base.config.rope_parameters),
        "max_position_embeddings": longest,
    }
    return model, settings


def describe(model: Any, settings: Mapping[str, Any], rows: int) -> str:
    """What is about to be trained, in one line."""
    rope, native = settings["rope_parameters"], length_name(settings["native_length"])
    reach = length_name(settings["max_position_embeddings"])
    yarn = f"YaRN {rope['factor']:g} times {native} to {reach}" if "factor" in rope else f"plain RoPE, {reach}"
    return (
        f"{settings['base']}: {described(model)}, {settings['dtype']} on {model.device}; {yarn}; "
        f"{rows:,} rows of {length_name(settings['length'])}"
    )
