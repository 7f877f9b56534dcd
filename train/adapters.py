"""What of a model is trained (`adapter.kind`), and how that is stored and put back.

- lora (Hu et al. 2021, arXiv:2106.09685): low-rank updates of linear layers; everything else is frozen.
- lora+ (LongLoRA, Chen et al. 2023, arXiv:2309.12307): norms and the input embedding too, which extending the context needs.
  PEFT trains copies of them (`modules_to_save`), and stores only those. An output layer that is tied to the embedding stays tied,
  here and wherever PEFT loads the adapter (`ensure_weight_tying`); its format then holds the matrix under both names.
- qlora (Dettmers et al. 2023, arXiv:2305.14314): lora over a base whose linear layers are held in 4 bits. The rest of the base is
  bfloat16, as where nothing is quantized: PEFT's `prepare_model_for_kbit_training` would make it float32, and with the embedding
  every layer's input, which at long contexts takes more memory than the weights; norms compute in float32 anyway.
- full: every weight. What is stored is a Hugging Face model, not an adapter.

Whatever is trained is float32, whatever the model computes in: bfloat16 has 8 bits of precision, so a step of 2e-5 on a weight
near 1 rounds to nothing. PEFT sees to it for LoRA; other trained weights are cast as they are used, and their gradients add up in
float32. It costs 16 bytes per trained weight with its gradient and AdamW's two moments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from types import MethodType
from typing import Any

import torch
import torch.nn.functional as F
from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from repo2ctx.errors import ConfigError, ModelError, OutputError
from train.config import AdapterSection

_ADAPTER = "adapter_model.safetensors"


def make_trainable(base: Any, section: AdapterSection, name: str, dtype: str) -> Any:
    """A causal language model -> what is trained of it: a PEFT model around it, or for kind full the model itself.

    base: its weights are float32 for kind full, else of `dtype`, or in 4 bits. name: the model's, for the adapter's files and for
    messages. dtype: what the model computes in. Raises ConfigError for modules that it does not have, or weights that cannot be
    kept in float32; ModelError where PEFT trains something else than was asked for.
    """
    if section.kind == "full":
        base.requires_grad_(True)
        _keep_float32(base, getattr(torch, dtype))
        return base
    more, tied = _norms_and_embedding(base) if section.kind == "lora+" else ({}, False)
    lora = LoraConfig(
        r=section.r,
        lora_alpha=section.alpha,
        lora_dropout=section.dropout,
        target_modules=target_modules(base, section.modules, name),
        modules_to_save=sorted({_saved_name(path, module) for path, module in more.items()}) or None,
        task_type="CAUSAL_LM",
        ensure_weight_tying=tied,
    )
    wanted = sum(p.numel() for module in more.values() for p in module.parameters())
    model: Any = get_peft_model(base, lora)
    # PEFT puts there the folder that the weights came from, and a set, which is written in an order of chance
    lora.base_model_name_or_path, lora.target_modules = name, sorted(lora.target_modules or ())
    _keep_float32(model, getattr(torch, dtype))
    have = sum(n for part, n in trained_weights(model).items() if part != "LoRA")
    if have != wanted or (tied and base.get_output_embeddings().weight is not base.get_input_embeddings().weight):
        # PEFT knows the two by their names
        raise ModelError(
            f"model {name!r}: PEFT would train {have:,} of its {wanted:,} weights of norms and embeddings, or untie its output "
            "layer from the embedding; use adapter.kind=lora"
        )
    return model


def target_modules(base: Any, wanted: str | Collection[str], name: str) -> list[str]:
    """Names of linear layers, as PEFT matches them: a layer's last name, or more of its path where others share that.

    wanted: `attention`: those inside of attention; `all`: every one but the output layer; or names. Raises ConfigError for a name
    that no layer has, and for a model without attention that can be told by its structure.
    """
    linear = {path: module for path, module in base.named_modules() if isinstance(module, nn.Linear)}
    there = ", ".join(sorted({path.rpartition(".")[2] for path in linear}))
    if not isinstance(wanted, str):
        if without := [w for w in wanted if not any(f".{path}".endswith(f".{w}") for path in linear)]:
            raise ConfigError(f"adapter.modules: {name!r} has no linear layer {', '.join(without)}; it has {there}")
        return sorted(wanted)
    if wanted == "all":
        chosen = {path for path, module in linear.items() if module is not base.get_output_embeddings()}
    else:
        attention = [p for p, m in base.named_modules() if "attention" in type(m).__name__.lower()]
        chosen = {path for path in linear if any(path.startswith(f"{a}.") for a in attention)}
    if not chosen:
        raise ConfigError(
            f"adapter.modules: {wanted} finds no linear layers in {name!r} ({type(base).__name__}); name some of those that it "
            f"has: {there or 'none'}"
        )
    return sorted({_shortest(path, chosen, linear.keys() - chosen) for path in chosen})


def _shortest(path: str, chosen: Collection[str], others: Collection[str]) -> str:
    """The shortest end of a layer's path that none of the others has."""
    parts = path.split(".")
    ends = (".".join(parts[-n:]) for n in range(1, len(parts) + 1))
    return next((end for end in ends if not any(f".{other}".endswith(f".{end}") for other in others)), path)


def _norms_and_embedding(base: Any) -> tuple[dict[str, nn.Module], bool]:
    """({path: module} of what lora+ trains besides LoRA, whether the output layer is tied to the embedding)."""
    embedding, head = base.get_input_embeddings(), base.get_output_embeddings()
    found = {path: m for path, m in base.named_modules() if m is embedding or _is_norm(m)}
    return found, head is not None and head.weight is embedding.weight


def _saved_name(path: str, module: nn.Module) -> str:
    """By which PEFT finds a module: it takes every module whose path ends so."""
    return path.rpartition(".")[2] if _is_norm(module) else path


def _is_norm(module: nn.Module) -> bool:
    own = list(module.parameters(recurse=False))
    return bool(own) and "norm" in type(module).__name__.lower() and all(p.dim() <= 1 for p in own)


def _keep_float32(model: Any, dtype: torch.dtype) -> None:
    """Make trained weights float32, and see that what comes out of their modules is of the type that the model computes in."""
    for path, module in _trained_modules(model):
        for weight in module.parameters(recurse=False):
            weight.data = weight.data.float()
        if dtype == torch.float32:
            continue
        if isinstance(module, nn.Embedding):
            module.register_forward_hook(lambda _, __, out: out.to(dtype))
        elif _is_norm(module):
            module.register_forward_hook(lambda _, given, out: out.to(given[0].dtype))
        elif type(module) is nn.Linear:
            module.forward = MethodType(_linear_in_the_type_of_its_input, module)  # type: ignore[method-assign]
        else:
            raise ConfigError(
                f"model.dtype: the weights of {path} ({type(module).__name__}) cannot be trained in float32 while the model "
                "computes in bfloat16; set model.dtype=float32, or adapter.kind=lora"
            )


def _linear_in_the_type_of_its_input(layer: nn.Linear, x: torch.Tensor) -> torch.Tensor:
    return F.linear(x, layer.weight.to(x.dtype), None if layer.bias is None else layer.bias.to(x.dtype))


def _trained_modules(model: Any) -> Iterator[tuple[str, nn.Module]]:
    """(path, module) of each module with trained weights of its own that are not LoRA's."""
    for path, module in model.named_modules():
        if ".lora_" not in path and any(p.requires_grad for p in module.parameters(recurse=False)):
            yield path, module


def trained_weights(model: Any) -> Counter[str]:
    """How many weights are trained, by what they are: LoRA, norms, embeddings, linear layers, others. Tied ones count once."""
    kinds: dict[torch.Tensor, str] = {}
    for path, module in model.named_modules():
        for weight in module.parameters(recurse=False):
            if weight.requires_grad:
                kinds.setdefault(weight, _kind(path, module))
    found: Counter[str] = Counter()
    for weight, kind in kinds.items():
        found[kind] += weight.numel()
    return found


def _kind(path: str, module: nn.Module) -> str:
    if ".lora_" in path:
        return "LoRA"
    if isinstance(module, nn.Embedding):
        return "embeddings"
    return "norms" if _is_norm(module) else "linear layers" if isinstance(module, nn.Linear) else "others"


def described(model: Any) -> str:
    """How many of a model's weights are trained, and what they are."""
    found = trained_weights(model)
    # a copy that is trained takes the place of what it was copied from, and 4-bit weights lie two in a byte
    weights = sum(
        p.numel() * (2 * p.element_size() if type(p).__name__ == "Params4bit" else 1)
        for name, p in model.named_parameters()
        if ".modules_to_save." not in name
    )
    parts = ", ".join(f"{part} {count:,}" for part, count in sorted(found.items()))
    return f"{found.total():,} of {weights:,} weights are trained ({parts})"


def save_weights(model: Any, folder: Path) -> None:
    """Store what is trained: a PEFT adapter, or a whole model with its configuration."""
    # PEFT would look for the base's files, on the Hub too, to see whether its vocabulary has grown
    more = {"save_embedding_layers": False} if isinstance(model, PeftModel) else {}
    model.save_pretrained(str(folder), **more)


def load_weights(model: Any, folder: Path) -> None:
    """Put back what `save_weights` stored of the same model, bit by bit. Raises OutputError if it is not that of this model."""
    try:
        if isinstance(model, PeftModel):
            stored = load_file(folder / _ADAPTER)
            wanted = get_peft_model_state_dict(model, save_embedding_layers=False)
        else:
            stored, wanted = _stored_model(type(model), folder), model.state_dict()
    except (OSError, RuntimeError, ValueError, SafetensorError) as error:
        raise OutputError(
            f"{folder}: its weights cannot be read ({error}); remove it, or give another `out`"
        ) from error
    _compare(stored, wanted, folder)
    if isinstance(model, PeftModel):
        set_peft_model_state_dict(model, stored)
    else:
        model.load_state_dict(stored)


def _stored_model(kind: Any, folder: Path) -> dict[str, torch.Tensor]:
    """The weights of a stored model by their names in memory, which can be other ones than those in its files."""
    loaded, about = kind.from_pretrained(folder, dtype="auto", output_loading_info=True)
    stored = {key: weight for key, weight in loaded.state_dict().items() if key not in about["missing_keys"]}
    return stored | dict.fromkeys(about["unexpected_keys"], torch.empty(0))


def _compare(stored: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor], folder: Path) -> None:
    def told(state: dict[str, torch.Tensor], key: str) -> str:
        return f"{state[key].dtype} {tuple(state[key].shape)}".replace("torch.", "") if key in state else "nothing"

    if wrong := sorted(key for key in stored.keys() | wanted.keys() if told(stored, key) != told(wanted, key)):
        raise OutputError(
            f"{folder}: {len(wrong)} of its weights are not those of this run, such as {wrong[0]}: it has "
            f"{told(stored, wrong[0])}, and the model {told(wanted, wrong[0])}; remove it, or give another `out`"
        )
