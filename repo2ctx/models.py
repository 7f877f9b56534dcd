"""Models by name: `smollm2`, a directory, or a name on the Hugging Face Hub. torch and transformers load inside."""

from __future__ import annotations

import importlib.util
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from repo2ctx import smollm2
from repo2ctx.errors import ModelError, Repo2CtxError
from repo2ctx.positions import attention_window, check_positions, same_rope, set_positions

SMOLLM2 = smollm2.NAME
SETTINGS = "repo2ctx.json"
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json")


def model_source(name: str) -> str:
    """What transformers loads for a model's name: a directory, or a Hub name. Raises ModelError."""
    if name == SMOLLM2:
        return str(smollm2.converted())
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            inside = path / "model" if (path / "model" / SETTINGS).is_file() else None
            way = (
                f"give {inside}" if inside else "give a Hugging Face model directory, or the `model` of a training run"
            )
            raise ModelError(f"model {name!r}: the directory holds no config.json; {way}")
        return str(path)
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise ModelError(f"model {name!r}: no such directory")
    return name


def model_name(name: str) -> str:
    """The name by which a model is stored and compared: a directory's own path, wherever the command is run."""
    path = Path(name).expanduser()
    return str(path.resolve()) if name != SMOLLM2 and path.is_dir() else name


def pick_device(wanted: str = "auto") -> str:
    """cpu or cuda; auto takes the GPU where there is one. Raises ModelError for a GPU that is not there."""
    import torch

    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise ModelError("device 'cuda': torch sees no GPU here; give cpu or auto, or install a CUDA build of torch")
    return wanted if wanted != "auto" else "cuda" if there else "cpu"


def load_shape(name: str) -> Any:
    """A model's configuration, without its weights. Raises ModelError."""
    from transformers import AutoConfig

    _quiet()
    with _told(name):
        return AutoConfig.from_pretrained(model_source(name), trust_remote_code=False)


def config_values(name: str) -> dict[str, Any]:
    """What stands in a model's config.json, without what transformers adds. Raises ModelError."""
    from transformers import PretrainedConfig

    _quiet()
    with _told(name):
        values, _ = PretrainedConfig.get_config_dict(model_source(name))
        return dict(values)


def load_base(
    name: str,
    rope: Mapping[str, Any] | None = None,
    max_positions: int | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    window: Literal["off"] | None = None,
    *,
    four_bit: bool = False,
) -> Any:
    """A causal language model for training or inference.

    rope: `rope_parameters` that replace the model's own before it is made; max_positions: its context with them.
    dtype: float32, bfloat16 or float16; RoPE's frequencies stay float32. device: cpu or cuda. window: off with `rope` lets
    a model of windowed attention attend everything. four_bit: hold the linear layers but the output's in 4 bits, and compute
    in bfloat16 (CUDA and bitsandbytes). Raises ModelError.
    """
    import torch
    from transformers import AutoModelForCausalLM

    quantized = _four_bit(name, dtype, device) if four_bit else {}
    config = load_shape(name)
    if rope is not None:
        set_positions(config, rope, max_positions or config.max_position_embeddings, window)
    with _told(name):
        # A model's own code is never run, nor is anyone asked whether to.
        made: Any = AutoModelForCausalLM.from_pretrained(
            model_source(name),
            config=config,
            dtype=getattr(torch, dtype),
            trust_remote_code=False,
            output_loading_info=True,
            **quantized,
        )
    model, loaded = made
    if missing := sorted(loaded["missing_keys"]):
        raise ModelError(f"model {name!r}: its files lack {len(missing)} weights, such as {missing[0]}; get it whole")
    if rope is not None and not same_rope(made_of := model.config.rope_parameters, rope):
        raise ModelError(
            f"model {name!r}: its architecture makes RoPE {made_of} of {dict(rope)}; take another rope.method"
        )
    return model if four_bit else model.to(device)


def check_vocabulary(model: Any, ids: tuple[int, int], where: str) -> None:
    """Raise ModelError for ids that a live model has no embedding of: a GPU would end the process. ids: the smallest and the
    largest; where: what holds them."""
    size = model.get_input_embeddings().num_embeddings
    if wrong := next((i for i in ids if not 0 <= i < size), None):
        raise ModelError(
            f"{where}: holds token id {wrong:,}, but {model.config.name_or_path!r} has {size:,} embeddings; its tokenizer.json "
            "belongs to another model, or its vocabulary was cut: get it whole"
        )


def _four_bit(name: str, dtype: str, device: str) -> dict[str, Any]:
    """What transformers is told for QLoRA's weights: NormalFloat 4, its scales quantized too (arXiv:2305.14314)."""
    way = "train with adapter.kind=lora, or load the plain base"
    if device != "cuda":
        raise ModelError(f"model {name!r}: weights in 4 bits need a CUDA GPU, and the device is {device}; {way}")
    if importlib.util.find_spec("bitsandbytes") is None:
        raise ModelError(
            f"model {name!r}: weights in 4 bits need bitsandbytes; run `pip install bitsandbytes`, or {way}"
        )
    if dtype != "bfloat16":
        raise ModelError(
            f"model {name!r}: weights in 4 bits compute in bfloat16, not {dtype}; set model.dtype=bfloat16"
        )
    import torch
    from transformers import BitsAndBytesConfig

    settings = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    return {"quantization_config": settings, "device_map": {"": torch.cuda.current_device()}}


def tokenizer_files(name: str) -> list[Path]:
    """The files of a model's tokenizer, on this machine; tokenizer.json is the first. Raises ModelError."""
    from transformers.utils.hub import cached_file

    found = []
    for file in _TOKENIZER_FILES:
        try:
            place = cached_file(model_source(name), file, _raise_exceptions_for_missing_entries=False)
        except OSError as error:
            raise ModelError(f"model {name!r}: {file} cannot be had ({_first_line(error)})") from error
        if place is not None:
            found.append(Path(place))
        elif file == _TOKENIZER_FILES[0]:
            _must_exist(name)
            raise ModelError(f"model {name!r}: has no {file}; save its fast tokenizer there")
    return found


def _must_exist(name: str) -> None:
    """Raise ModelError if there is no model of that name at all, as far as can be seen from here."""
    from transformers.utils.hub import cached_file

    try:
        cached_file(model_source(name), "config.json")
    except OSError as error:
        raise ModelError(
            f"model {name!r}: is no directory, and the Hugging Face Hub does not give it ({_first_line(error)}); "
            f"give {SMOLLM2}, a directory, or a Hub name"
        ) from error


@contextmanager
def _told(name: str) -> Iterator[None]:
    """What transformers says of a model that it cannot load, in one line."""
    try:
        yield
    except Repo2CtxError:
        raise
    except Exception as error:  # the libraries raise whatever their own code runs into
        raise ModelError(
            f"model {name!r}: cannot be loaded ({_first_line(error)}); give {SMOLLM2}, a directory, or a Hub name"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _quiet() -> None:
    """Keep the libraries' progress bars and notes on their own future off the user's terminal."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"transformers\.")


class AdapterSettings(BaseModel):
    """What an adapter, or a model that was trained as a whole, needs and its other files do not say."""

    model_config = ConfigDict(extra="allow")

    base: str
    kind: Literal["lora", "lora+", "qlora", "full"] = Field("lora", description="full: a whole model; else an adapter")
    base_weights: Literal["float32", "bfloat16", "nf4"] | None = Field(
        None, description="how the base's weights were held as it was trained; nf4: in 4 bits, by bitsandbytes"
    )
    dtype: Literal["float32", "bfloat16"] | None = Field(None, description="what was computed in")
    native_length: int = Field(gt=0)
    rope_parameters: dict[str, Any]
    max_position_embeddings: int = Field(gt=0)
    sliding_window: Literal["off"] | None = Field(None, description="off: it was trained without the base's own window")
    prompt_version: int
    chat: Literal["auto", "never"] = Field(description="as tokens.chat of the rows that it was trained on")
    schema_version: int
    tokenizer_fingerprint: str
    length: int = Field(gt=0, description="tokens of the rows that it was trained on")


def write_settings(directory: Path, settings: Mapping[str, Any]) -> None:
    """Store beside an adapter what PEFT does not: the fields of `AdapterSettings`."""
    AdapterSettings.model_validate(settings)
    (directory / SETTINGS).write_text(json.dumps(settings, indent=1, sort_keys=True) + "\n", "utf-8")


def read_settings(directory: Path) -> dict[str, Any]:
    """What `write_settings` stored. Raises ModelError."""
    try:
        text = (directory / SETTINGS).read_text("utf-8")
        return AdapterSettings.model_validate_json(text, strict=True).model_dump()
    except (OSError, ValueError) as error:
        said = (
            f"{error.errors()[0]['loc']}: {error.errors()[0]['msg']}" if isinstance(error, ValidationError) else error
        )
        raise ModelError(
            f"{directory}: holds no readable {SETTINGS} ({said}); give a directory that `python -m train.run` wrote"
        ) from error


def attach_adapter(model: Any, directory: str | Path) -> Any:
    """The model with the adapter of `directory` on it. Raises ModelError if the model's RoPE is not the one that the
    adapter was trained under: it would load without a word, and read every position wrongly."""
    from peft import PeftModel

    settings = read_settings(directory := Path(directory))
    if settings["kind"] == "full":
        raise ModelError(f"{directory}: holds a whole model and no adapter; load it with repo2ctx.models.load_tuned")
    _check_rope(model, settings, directory)
    with _told(str(directory)), warnings.catch_warnings():
        # PEFT only warns of an adapter that lacks weights, and goes on with random ones
        warnings.filterwarnings("error", message="Found missing adapter keys")
        tuned = PeftModel.from_pretrained(model, str(directory))
    _check_weights(tuned, directory)
    return tuned


def _check_rope(model: Any, settings: Mapping[str, Any], directory: Path) -> None:
    """Raise ModelError unless a model reads positions as the one that was trained."""
    have, want = getattr(model.config, "rope_parameters", None), settings["rope_parameters"]
    way = "load the model with repo2ctx.models.load_tuned, which sets it, or set it on the configuration before the model is made"
    if not same_rope(have, want):
        raise ModelError(f"{directory}: was trained with RoPE {want}, but the model has {have}; {way}")
    if settings["sliding_window"] == "off" and (window := attention_window(model.config)):
        raise ModelError(
            f"{directory}: was trained without an attention window, but the model's reaches {window:,} tokens; {way}"
        )
    check_positions(model, f"the model for {directory}")


def _check_weights(model: Any, directory: Path) -> None:
    """Raise ModelError for weights of an adapter that the model has no place for, which PEFT leaves out without a word."""
    from peft import get_peft_model_state_dict
    from safetensors import safe_open

    with safe_open(str(directory / "adapter_model.safetensors"), "pt") as file:
        unknown = sorted(set(file.keys()) - set(get_peft_model_state_dict(model, save_embedding_layers=False)))
    if unknown:
        raise ModelError(
            f"{directory}: has {len(unknown)} weights that {model.peft_config['default'].base_model_name_or_path!r} with this "
            f"adapter has no place for, such as {unknown[0]}; give a directory that `python -m train.run` wrote"
        )


def load_tuned(directory: str | Path, dtype: str = "float32", device: str = "cpu", *, four_bit: bool = False) -> Any:
    """What `directory` holds, under the RoPE that it was trained with: an adapter on its base, or a whole model.

    four_bit: put an adapter on its base in 4 bits, as qlora trains it; on the plain base, which is the default, the same adapter
    is an approximation, off by what the base lost to 4 bits. Raises ModelError.
    """
    directory = Path(directory)
    settings = read_settings(directory)
    if settings["kind"] == "full":
        model = load_base(str(directory), None, None, dtype, device, four_bit=four_bit)
        _check_rope(model, settings, directory)
        return model
    rope, longest, window = (settings[key] for key in ("rope_parameters", "max_position_embeddings", "sliding_window"))
    model = load_base(settings["base"], rope, longest, dtype, device, window, four_bit=four_bit)
    return attach_adapter(model, directory)
