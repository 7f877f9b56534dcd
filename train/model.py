"""The model that is trained: a base under the RoPE of the target length, with a LoRA adapter on it."""

from __future__ import annotations

from typing import Any

from peft import LoraConfig, get_peft_model
from transformers import AutoConfig

from repo2ctx.errors import ModelError
from repo2ctx.models import load_base, model_source
from train.config import TrainConfig
from train.rope import yarn_parameters


def make_model(config: TrainConfig) -> tuple[Any, dict[str, Any]]:
    """(PEFT model in training mode, the settings that are stored beside the adapter). Raises ModelError."""
    shape = AutoConfig.from_pretrained(model_source(config.model.base))
    given = dict(shape.rope_parameters or {})
    if given.get("rope_type", "default") != "default":
        raise ModelError(
            f"model {config.model.base!r}: has RoPE scaling of its own ({given}); only models with plain RoPE are extended yet"
        )
    native = shape.max_position_embeddings
    rope = yarn_parameters(native, config.rope.target, given["rope_theta"])
    longest = max(native, config.rope.target)
    base = load_base(config.model.base, rope, longest, config.model.dtype)
    if config.model.checkpointing:
        # transformers has renamed it, and will drop the old name
        enable = getattr(base, "activation_checkpointing_enable", None) or base.gradient_checkpointing_enable
        enable({"use_reentrant": False})
    lora = LoraConfig(
        r=config.lora.r,
        lora_alpha=config.lora.alpha,
        lora_dropout=config.lora.dropout,
        target_modules=list(config.lora.modules),
        task_type="CAUSAL_LM",
    )
    model = get_peft_model(base, lora)
    model.train()
    settings = {
        "base": config.model.base,
        "native_length": native,
        "rope_parameters": dict(base.config.rope_parameters),
        "max_position_embeddings": longest,
    }
    return model, settings
