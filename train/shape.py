"""A base's configuration without its weights, strictly: from its files, or from `model.shape`.

transformers fills what a config.json leaves out with defaults, without a word: theta becomes 10,000, and the length before a
scaling becomes the length after it. What positions depend on is asked for here instead.
"""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repo2ctx.errors import ConfigError, ModelError, UsageError
from repo2ctx.models import config_values
from repo2ctx.positions import same_rope
from train.config import ModelSection, RopeSection, TrainConfig

_THETA = ("rope_theta", "rotary_emb_base")


def model_shape(model: ModelSection, rope: RopeSection) -> Any:
    """The configuration of `model.shape`, else of the files of `model.base`. Raises ConfigError or ModelError."""
    if model.shape is None:
        return make_shape(config_values(model.base), rope, f"model {model.base!r}", ModelError)
    return make_shape(_read(model.shape), rope)


def check_shape(config: TrainConfig) -> None:
    """Raise ConfigError if what `model.shape` says of a base is not so."""
    model = config.model
    values = _read(model.shape or {})
    said = make_shape(values, config.rope).to_dict()
    own = make_shape(config_values(model.base), config.rope, f"model {model.base!r}", ModelError).to_dict()
    asked = {*values, "rope_parameters"} & said.keys() & own.keys() - {"dtype", "torch_dtype", "transformers_version"}
    for key in sorted(asked):
        same = same_rope(said[key], own[key]) if key == "rope_parameters" else said[key] == own[key]
        if not same:
            raise ConfigError(
                f"model.shape: says {key} {said[key]}, but {model.base!r} has {own[key]}; mend it, or leave model.shape out"
            )


def _read(given: Mapping[str, Any] | Path) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    path = given.expanduser()
    path = path / "config.json" if path.is_dir() else path
    try:
        values = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(
            f"model.shape: {path} cannot be read ({error.strerror}); give a model's config.json"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"model.shape: {path} is not JSON ({error}); give a model's config.json") from error
    if not isinstance(values, dict):
        raise ConfigError(f"model.shape: {path} holds a {type(values).__name__}; give a model's config.json")
    return values


def make_shape(
    values: Mapping[str, Any], rope: RopeSection, where: str = "model.shape", kind: type[UsageError] = ConfigError
) -> Any:
    """A transformers configuration of what stands in a config.json.

    rope: `native_theta` and `native` may say what the values do not. where, kind: what an error calls it and is.
    Raises `kind` for a model_type that is missing or unknown, for values that do not fit it, and for missing positions.
    """
    from transformers import CONFIG_MAPPING, AutoConfig

    given = copy.deepcopy(dict(values))  # transformers changes it
    if not isinstance(model_type := given.pop("model_type", None), str):
        raise kind(f"{where}: has no model_type; add it as in the model's config.json, such as llama or qwen2")
    if model_type not in CONFIG_MAPPING:
        near = difflib.get_close_matches(model_type, CONFIG_MAPPING, 1)
        hint = f"did you mean {near[0]!r}?" if near else "give that of a model which transformers has"
        raise kind(f"{where}: cannot be loaded: model_type {model_type!r} is not one of transformers; {hint}")
    if rope.native_theta is not None:
        if (theta := _theta(given)) is not None and theta != rope.native_theta:
            raise ConfigError(f"rope.native_theta {rope.native_theta:g}: {where} has theta {theta:g}; leave it out")
        if theta is None:
            given["rope_theta"] = rope.native_theta
    try:
        shape = AutoConfig.for_model(model_type, **copy.deepcopy(given))
    except Exception as error:  # the library raises whatever its own code runs into
        said = " ".join(str(error).split())[:300]
        raise kind(
            f"{where}: cannot be loaded as {model_type} ({said}); compare it with the model's config.json"
        ) from error
    if getattr(shape, "rope_parameters", None):
        _check_given(given, shape, rope, where, kind)
    return shape


def _theta(values: Mapping[str, Any]) -> float | None:
    """The base frequency that stands in a config.json, wherever in it."""
    for key, value in values.items():
        if key.endswith(_THETA) and isinstance(value, int | float):
            return float(value)
        if isinstance(value, Mapping) and (found := _theta(value)) is not None:
            return found
    return None


def _check_given(values: Mapping[str, Any], shape: Any, rope: RopeSection, where: str, kind: type[UsageError]) -> None:
    """Raise `kind` for what transformers has made up."""
    if _theta(values) is None:
        raise kind(
            f"{where}: names no rope_theta, where transformers takes {shape.rope_parameters.get('rope_theta')} without a "
            "word; set rope.native_theta to what it was trained with"
        )
    lengths = {"max_position_embeddings", type(shape).attribute_map.get("max_position_embeddings")}
    if not lengths & values.keys() and rope.native is None:
        said = getattr(shape, "max_position_embeddings", None)
        raise kind(
            f"{where}: names no max_position_embeddings, where transformers takes {said} without a word; give rope.native"
        )
    scaling = values.get("rope_parameters") or values.get("rope_scaling") or {}
    scaled = shape.rope_parameters.get("rope_type") in ("yarn", "llama3")
    if scaled and "original_max_position_embeddings" not in {*scaling, *values} and rope.native is None:
        raise kind(
            f"{where}: its RoPE scaling names no original_max_position_embeddings, where transformers takes the length after "
            "scaling; give rope.native, the length before it"
        )
