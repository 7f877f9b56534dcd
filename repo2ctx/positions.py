"""How a model reads positions: RoPE and attention window of a configuration or a live model, set, compared and checked.

transformers makes RoPE's frequencies from `config.rope_parameters` when a model is made, and adds keys to them by itself; a
change of the configuration after that does nothing, and `model.bfloat16()` rounds the frequencies. So what the model really
has is compared with what its configuration would give anew. torch is loaded inside. Costs a few vectors of head_dim / 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from repo2ctx.errors import ModelError

# What each type of RoPE scaling is told beside theta; `truncate`: whether YaRN's ramp ends at whole dimensions.
SCALING_KEYS: dict[str, frozenset[str]] = {
    "default": frozenset(),
    "linear": frozenset({"factor"}),
    "llama3": frozenset({"factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"}),
    "yarn": frozenset(
        {
            "factor",
            "original_max_position_embeddings",
            "attention_factor",
            "beta_fast",
            "beta_slow",
            "mscale",
            "mscale_all_dim",
            "truncate",
        }
    ),
}
OF_SCALING = frozenset().union(*SCALING_KEYS.values()) | {"short_factor", "long_factor", "finetuned"}
_YARN_DEFAULTS = {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": True}
_FREQUENCY_ERROR = 1e-6  # relative: two libraries may round the last bit of a float32 otherwise


def same_rope(a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> bool:
    """Whether two `rope_parameters` give the same frequencies and attention temperature."""
    return _essence(a or {}) == _essence(b or {})


def _essence(rope: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the frequencies: without keys that say nothing, with the defaults of those that were left out."""
    known = {key: value for key, value in rope.items() if value is not None}
    known["rope_type"] = kind = known.get("rope_type", known.get("type", "default"))
    known.pop("type", None)
    if known.get("partial_rotary_factor") == 1:
        del known["partial_rotary_factor"]
    if kind not in SCALING_KEYS:
        return known
    known = {key: value for key, value in known.items() if key not in OF_SCALING - SCALING_KEYS[kind]}
    if kind == "yarn":
        temperature = _temperature(known)
        known = {**_YARN_DEFAULTS, **known, "attention_factor": float(f"{temperature:.12g}")}
        known.pop("mscale", None)
        known.pop("mscale_all_dim", None)
    return known


def _temperature(rope: Mapping[str, Any]) -> float:
    """YaRN's factor on queries and keys, as transformers takes it (arXiv:2309.00071, section 3.4)."""

    def of(weight: float) -> float:
        return 0.1 * weight * math.log(max(1.0, rope.get("factor", 1.0))) + 1

    if "attention_factor" in rope:
        return float(rope["attention_factor"])
    if rope.get("mscale") and rope.get("mscale_all_dim"):
        return of(rope["mscale"]) / of(rope["mscale_all_dim"])
    return of(1.0)


def attention_window(config: Any) -> int | None:
    """Tokens that a configuration's attention reaches back, in the layers where it reaches least; None: all."""
    window, layers = getattr(config, "sliding_window", None), getattr(config, "layer_types", None)
    slides = "sliding_attention" in layers if layers else getattr(config, "use_sliding_window", True)
    return window if window and slides else None


def set_positions(
    config: Any, rope: Mapping[str, Any], max_positions: int, window: Literal["off"] | None = None
) -> None:
    """Put RoPE, context and attention window on a configuration, before a model is made of it. window: off attends all."""
    config.rope_parameters = dict(rope)
    config.max_position_embeddings = max_positions
    if window == "off" and attention_window(config):
        if getattr(config, "layer_types", None):
            # the number itself stays: some architectures make a mask of it that no layer takes
            config.layer_types = ["full_attention" if t == "sliding_attention" else t for t in config.layer_types]
        else:
            config.sliding_window = None


def rotary_embeddings(model: Any) -> list[Any]:
    """The modules of a model that make cosines and sines of positions from its configuration."""
    return [
        module
        for module in model.modules()
        if "RotaryEmbedding" in type(module).__name__ and hasattr(module, "inv_freq") and hasattr(module, "config")
    ]


def check_positions(model: Any, where: str) -> None:
    """Raise ModelError unless a live model has, in float32, the frequencies that its configuration gives.

    where: what the error calls the model. Types of RoPE that change with the length of the input are not looked at.
    """
    import torch

    for module in rotary_embeddings(model):
        if module.rope_type not in SCALING_KEYS:
            continue
        have, anew = module.inv_freq, type(module)(module.config)
        if have.dtype != torch.float32:
            raise ModelError(
                f"{where}: its RoPE frequencies are {str(have.dtype).removeprefix('torch.')}, and wrong at long lengths; load it "
                "with dtype=… instead of converting it, which leaves them float32"
            )
        same = have.shape == anew.inv_freq.shape and torch.allclose(have.cpu(), anew.inv_freq, _FREQUENCY_ERROR, 0)
        if not (same and math.isclose(module.attention_scaling, anew.attention_scaling, rel_tol=_FREQUENCY_ERROR)):
            raise ModelError(
                f"{where}: its RoPE frequencies are not those of its configuration, {dict(module.config.rope_parameters)}, "
                "which was changed after the model was made; set the configuration first"
            )
