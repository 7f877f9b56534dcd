"""RoPE for a longer context: decided from a shape alone, put on a live model.

A rotary pair i of d/2 turns by theta^(-2i/d) a token. Each method stretches that by s = target / native:

- `yarn` (Peng et al. 2023, arXiv:2309.00071): pairs that turn often within the native length are kept, those that never finish
  a turn are divided by s, a ramp between; logits are scaled by (0.1 ln s + 1)^2, as 0.1 ln s + 1 on queries and keys.
- `ntk`, NTK-aware (the same paper, section 3.1): a new base frequency theta * s^(d/(d-2)), which leaves the fastest pair as it is
  and divides the slowest by s. transformers has no such type: it is plain RoPE with another theta.
- `linear`, position interpolation (Chen et al. 2023, arXiv:2306.15595): every pair is divided by s.
- `llama3` (Llama 3.1; arXiv:2407.21783): as YaRN by wavelength, the ramp over frequencies and no temperature.
- `theta`: the base frequency that is given. `none`: what the base has.

transformers makes the frequencies from `rope_parameters`. A base that is scaled already is scaled anew from the length that
it was trained on before that, never on top of it; where its own scaling reaches the target, it is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from repo2ctx.config import length_name
from repo2ctx.errors import ConfigError, ModelError
from repo2ctx.positions import OF_SCALING, SCALING_KEYS, attention_window, rotary_embeddings, same_rope, set_positions
from train.config import RopeSection, TrainConfig
from train.shape import model_shape

# Architectures whose config.json says another length than they were trained on: (model_type, said) -> trained, by the model card
_TRAINED = {("qwen3", 40960): 32768, ("qwen3_moe", 40960): 32768}

# of `rope_parameters`; transformers only warns of wrong ones
_NUMBERS = (
    "rope_theta", "factor", "original_max_position_embeddings", "partial_rotary_factor", "attention_factor", "beta_fast",
    "beta_slow", "low_freq_factor", "high_freq_factor",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rope:
    """What `resolve_rope` decides. Lengths are in tokens."""

    native: int
    target: int
    factor: float
    """target / native where the base is stretched by us, else 1."""
    rope_parameters: dict[str, Any]
    max_position_embeddings: int
    notes: tuple[str, ...]
    """What a reader of the log should know, such as that the base's own scaling is replaced."""


def resolve_rope(shape: Any, section: RopeSection, name: str = "") -> Rope:
    """The RoPE of a base for `section.target`, from its configuration alone; pure.

    shape: a transformers configuration, with or without weights; it is not changed. name: what errors call the model.
    Raises ModelError for a base that cannot be extended so, ConfigError for options that do not fit it.
    """
    name = name or getattr(shape, "name_or_path", "") or shape.model_type
    own = _own_rope(shape, name)
    said = int(shape.max_position_embeddings)
    native, notes = _native(shape, own, section, name)
    target, scaled = section.target, own["rope_type"] != "default"
    reach = native if not scaled else max(said, int(own.get("original_max_position_embeddings", 0) * own["factor"]))
    covered = target <= native or (scaled and section.native is None and target <= reach)
    factor = 1.0 if covered or section.method == "none" else target / native
    _check_factor(section, native, target, factor, covered and target > native)
    if section.method == "none" or (covered and section.method != "theta"):
        if scaled:
            notes.append(f"its own {own['rope_type']} scaling stays ({length_name(native)} to {length_name(reach)})")
        if section.method != "none" and target < native:
            notes.append(
                f"rope.target {length_name(target)} is within the native {length_name(native)}: nothing is scaled"
            )
        if target > reach:
            notes.append(f"positions beyond {length_name(reach)} are read as they are, by rope.method none")
        return Rope(native, target, factor, own, max(said, target), tuple(notes))
    if scaled:
        notes.append(
            f"its own {own['rope_type']} scaling (factor {own['factor']:g}) is replaced, not multiplied: {section.method} "
            f"starts from the {length_name(native)} before it"
        )
    parameters = _scaled(shape, own, section, native, factor, name)
    return Rope(native, target, factor, parameters, max(said, target) if covered else target, tuple(notes))


def _own_rope(shape: Any, name: str) -> dict[str, Any]:
    """The `rope_parameters` of a base that can be extended, with their type."""
    given = getattr(shape, "rope_parameters", None)
    if not given or getattr(shape, "alibi", False):
        inside = "; it is a part of a larger model, of which only a causal language model by itself is trained"
        hint = inside if hasattr(shape, "text_config") else ""
        raise ModelError(
            f"model {name!r}: {shape.model_type} has no RoPE that could be extended{hint}; take another base"
        )
    if any(isinstance(value, Mapping) for value in given.values()):
        kinds = ", ".join(key for key, value in given.items() if isinstance(value, Mapping))
        raise ModelError(
            f"model {name!r}: has a RoPE for each type of layer ({kinds}), as Gemma 3, which is not extended; take another base"
        )
    kind = given.get("rope_type", given.get("type", "default"))
    if kind not in SCALING_KEYS:
        known = ", ".join(SCALING_KEYS)
        raise ModelError(f"model {name!r}: has RoPE of type {kind}; known are {known}; take another base")
    if not given.get("rope_theta"):
        raise ModelError(f"model {name!r}: names no rope_theta; add the base's own to its config.json")
    numbers = {"max_position_embeddings": shape.max_position_embeddings} | {k: given.get(k) for k in _NUMBERS}
    for key, value in numbers.items():
        if value is not None and not (type(value) in (int, float) and math.isfinite(value) and value > 0):
            raise ModelError(f"model {name!r}: has {key} {value!r}, no number above 0; mend it in its config.json")
    if given.get("mscale") or given.get("mscale_all_dim"):
        raise ModelError(
            f"model {name!r}: has an attention temperature of its own (mscale), which is not extended; take another base"
        )
    if missing := sorted((SCALING_KEYS[kind] & {"factor", "original_max_position_embeddings"}) - given.keys()):
        raise ModelError(f"model {name!r}: its {kind} RoPE has no {missing[0]}; add it to its config.json")
    return {key: value for key, value in given.items() if key != "type"} | {"rope_type": kind}


def _native(shape: Any, own: Mapping[str, Any], section: RopeSection, name: str) -> tuple[int, list[str]]:
    """The length that a base was trained on before any scaling, and what there is to say of it."""
    said, kind = shape.max_position_embeddings, own["rope_type"]
    if section.native is not None:
        return section.native, []
    if kind == "linear":
        raise ModelError(
            f"model {name!r}: has linear scaling of its own (factor {own['factor']:g}), and does not say what length it was "
            "trained on before; give rope.native"
        )
    if kind != "default":
        return int(own["original_max_position_embeddings"]), []
    if trained := _TRAINED.get((shape.model_type, said)):
        return trained, [
            f"its config.json says {said:,} positions; it was trained on {trained:,}, as its model card says"
        ]
    return int(said), []


def _check_factor(section: RopeSection, native: int, target: int, factor: float, reached: bool) -> None:
    """Raise ConfigError if a typed factor is not the one that follows. reached: the base's own scaling reaches the target."""
    typed = section.factor
    if typed is None or math.isclose(typed, factor, rel_tol=1e-6):
        return
    have, want = length_name(native), length_name(target)
    if factor > 1:
        needs = f"{want} needs {factor:g} ({target:,} / {native:,})"
    elif section.method == "none":
        needs = "rope.method none scales nothing"
    elif reached:
        needs = f"the base's own scaling reaches {want}"
    else:
        needs = f"{want} needs none"
    raise ConfigError(
        f"rope.factor {typed:g}: {have} x {typed:g} is {length_name(round(native * typed))}; {needs}; leave it out"
    )


def _scaled(
    shape: Any, own: Mapping[str, Any], section: RopeSection, native: int, factor: float, name: str
) -> dict[str, Any]:
    """`rope_parameters` of a method; keys of the base that are not of its own scaling stay, such as partial_rotary_factor."""
    kept = {key: value for key, value in own.items() if key not in OF_SCALING}
    lengths = {"factor": factor, "original_max_position_embeddings": native}
    match section.method:
        case "theta":
            return kept | {"rope_type": "default", "rope_theta": section.theta}
        case "ntk":
            d = _rotary_dimensions(shape, own)
            if d <= 2:
                raise ModelError(
                    f"model {name!r}: rotates {d} dimensions a head, too few for rope.method ntk; take yarn"
                )
            return kept | {"rope_type": "default", "rope_theta": own["rope_theta"] * factor ** (d / (d - 2))}
        case "linear":
            return kept | {"rope_type": "linear", "factor": factor}
        case "llama3":
            bands = {"low_freq_factor": section.low_freq_factor, "high_freq_factor": section.high_freq_factor}
            return kept | {"rope_type": "llama3"} | lengths | bands
    ramp: dict[str, Any] = {"beta_fast": section.beta_fast, "beta_slow": section.beta_slow}
    if section.attention_factor is not None:
        ramp["attention_factor"] = section.attention_factor
    return kept | {"rope_type": "yarn"} | lengths | ramp


def _rotary_dimensions(shape: Any, own: Mapping[str, Any]) -> int:
    head = getattr(shape, "head_dim", None) or shape.hidden_size // shape.num_attention_heads
    return int(head * own.get("partial_rotary_factor", 1.0))


def resolve_window(
    shape: Any, target: int, choice: Literal["refuse", "keep", "off"], name: str = ""
) -> tuple[Literal["off"] | None, tuple[str, ...]]:
    """("off" if the base's attention window is to go, notes), by `model.sliding_window`. Raises ConfigError for refuse."""
    window = attention_window(shape)
    if window is None or window >= target:
        return None, ()
    reach, want = f"its attention reaches {window:,} tokens", length_name(target)
    if choice == "refuse":
        raise ConfigError(
            f"model {name or shape.model_type!r}: {reach}, and rope.target is {want}; set model.sliding_window=keep to train "
            "under the window that it was trained with, or off to attend all tokens, which training must teach it"
        )
    if choice == "keep":
        return None, (f"{reach} in layers with a window, by model.sliding_window keep",)
    return "off", (f"{reach} in layers with a window no more, by model.sliding_window off",)


def set_rope(model: Any, parameters: Mapping[str, Any], positions: int) -> None:
    """Change the RoPE of a live model, which is then, to the last bit, as one made anew with it.

    model: a causal LM, or a PEFT model around one, of any dtype; the frequencies become float32. parameters: `rope_parameters`.
    positions: its `max_position_embeddings`. Raises ModelError for a model that makes its positions in another way.
    """
    modules = rotary_embeddings(model)
    if not modules:
        raise ModelError(
            f"{type(model).__name__}: has no rotary embedding whose RoPE could be changed; take another base"
        )
    configs = {id(config): config for config in (model.config, *(module.config for module in modules))}
    for config in configs.values():
        set_positions(config, parameters, positions)
    for module in modules:
        anew = type(module)(module.config)  # on the CPU, where transformers makes them too
        for name, value in anew.named_buffers():
            setattr(module, name, value.to(module.inv_freq.device))
        for name in ("rope_type", "attention_scaling", "max_seq_len_cached", "original_max_seq_len"):
            setattr(module, name, getattr(anew, name))
        if not same_rope(made := module.config.rope_parameters, parameters):
            who = type(model).__name__
            raise ModelError(f"{who}: makes RoPE {made} of {dict(parameters)}; take another rope.method")


def decide_positions(config: TrainConfig) -> tuple[Rope, Literal["off"] | None]:
    """(RoPE for `rope.target`, whether the base's attention window goes), from its configuration alone.

    Of `model.shape` where it is given, as `--dry-run` may. The window is the same for all stages, by the longest target.
    Raises ModelError or ConfigError.
    """
    shape, name = model_shape(config.model, config.rope), config.model.base
    rope = resolve_rope(shape, config.rope, name)
    longest = max([config.rope.target, *(s.rope_target or 0 for s in config.stages)])
    window, notes = resolve_window(shape, longest, config.model.sliding_window, name)
    return replace(rope, notes=rope.notes + notes), window


def base_rope(config: TrainConfig) -> Rope:
    """The RoPE that the base has by itself, with any scaling of its own. Raises ModelError or ConfigError."""
    section = RopeSection(method="none", native=config.rope.native, native_theta=config.rope.native_theta)
    return resolve_rope(model_shape(config.model, config.rope), section, config.model.base)


def position_settings(config: TrainConfig, rope: Rope, window: Literal["off"] | None) -> dict[str, Any]:
    """What `repo2ctx.json` stores of positions; without it an adapter is read wrongly."""
    return {
        "native_length": rope.native,
        "rope_parameters": rope.rope_parameters,
        "rope_method": config.rope.method,
        "max_position_embeddings": rope.max_position_embeddings,
        "sliding_window": window,
        "position_notes": list(rope.notes),
    }


def describe_positions(settings: Mapping[str, Any]) -> str:
    """The positions of `position_settings`, in a few words, such as "yarn 4 times 512 to 2k"."""
    rope, native = settings["rope_parameters"], length_name(settings["native_length"])
    reach, kind = length_name(settings["max_position_embeddings"]), rope["rope_type"]
    how = f"{kind} {rope['factor']:g} times {native} to {reach}" if "factor" in rope else f"plain RoPE, {reach}"
    if kind == "default" and settings["rope_method"] in ("ntk", "theta"):
        how = f"{settings['rope_method']} theta {rope['rope_theta']:g}, {native} to {reach}"
    return "; ".join([how, *settings["position_notes"]])
