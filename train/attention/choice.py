"""Which way of attention a transformers model takes, and the function and the mask through which it takes it.

transformers (5.10 or later) calls an attention function by the name in the model's config, and makes the mask that goes with
that name. Ours are registered for every path of `paths`. The mask is None, or in layers with a sliding window its size: so no
layer's window is lost, whether or not the model tells the attention function of it. Whatever else a model or a caller asks for
is refused, never left out: masks, caches, dropout, soft caps, sinks, and keywords that are not known to change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.utils.generic import TransformersKwargs

from repo2ctx.errors import ConfigError
from train.attention.paths import CUDNN_FROM, PATHS, Attend
from train.attention.rows import row_from, row_of

# Models branch on "flash" in the name, and transformers has checks of its own for some others.
_NAMES = {path: "documents-" + path.removeprefix("sdpa-").replace("flash", "fa2") for path in PATHS}
_HALF = (torch.bfloat16, torch.float16)
_CHANGE_NOTHING = {
    *TransformersKwargs.__annotations__, "document_lengths", "sliding_window", "use_cache", "cache", "past_key_values",
    "cache_position", "return_dict",
}  # fmt: skip


def use(model: Any, path: str, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> str:
    """Let a model attend by `attention.path`, from now on; returns the path that is taken, which for `auto` is the fastest.

    model: a causal language model of transformers, or a PEFT model around one; its forward then wants `row_inputs`.
    dtype, device: of its queries, where the model's own say something else. A path is tried on a few random tokens with
    the model's heads, forwards, and backwards unless under `torch.no_grad`, so what is returned runs there (flex compiles
    for it). Raises ConfigError for a path that does not run, and for a model whose layers cannot keep documents apart, or
    do what no path does.
    """
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    config = inner.config.get_text_config()
    _refuse(inner, config)
    wanted = torch.device(device if device is not None else inner.device)
    kind = dtype if dtype is not None else inner.dtype
    failures: dict[str, str] = {}
    for candidate in _fastest_first(wanted, kind, _window(config)) if path == "auto" else (path,):
        try:
            _try(candidate, config, kind, wanted)
        except (RuntimeError, ValueError, TypeError, NotImplementedError, ImportError) as error:
            failures[candidate] = str(error).strip().partition("\n")[0] or type(error).__name__
            continue
        _register(candidate)
        inner.set_attn_implementation(_NAMES[candidate])
        if inner.config._attn_implementation != _NAMES[candidate]:
            raise ConfigError(
                f"attention.path {path}: {type(inner).__name__} does not let its attention be set; documents of one row "
                "would see each other; train another base"
            )
        return candidate
    why = "; ".join(f"{name}: {reason}" for name, reason in failures.items())
    ways = "the dtype, the device or the base" if path == "auto" else "attention.path=auto, or the dtype or device"
    raise ConfigError(
        f"attention.path {path} does not run for {type(inner).__name__} in {str(kind).removeprefix('torch.')} on {wanted} "
        f"({why}); change {ways}"
    )


def _refuse(model: Any, config: Any) -> None:
    """Raise ConfigError for what no path does."""
    name = type(model).__name__
    others = {*(getattr(config, "layer_types", None) or ())} - {"full_attention", "sliding_attention"}
    if others or model._is_stateful:
        kinds = ", ".join(sorted(others)) or "with a state"
        raise ConfigError(
            f"{name} has layers ({kinds}) that would carry one document's tokens into the next; train a base whose layers "
            "are all full or sliding attention"
        )
    if getattr(config, "attn_logit_softcapping", None):
        raise ConfigError(
            f"{name} caps its attention logits (attn_logit_softcapping), which no path does; train another base"
        )
    if any(parameter.rpartition(".")[2] == "sinks" for parameter, _ in model.named_parameters()):
        raise ConfigError(f"{name} has attention sinks, which no path does; train another base")
    if getattr(config, "attention_dropout", 0):
        raise ConfigError(
            f"{name} drops out attention weights (attention_dropout {config.attention_dropout:g}), which no path does; "
            "set attention_dropout to 0 in its config.json"
        )


def _window(config: Any) -> bool:
    """Whether any layer has a sliding window."""
    kinds = getattr(config, "layer_types", None)
    return bool(getattr(config, "sliding_window", None)) and (not kinds or "sliding_attention" in kinds)


def _fastest_first(device: torch.device, dtype: torch.dtype, window: bool) -> tuple[str, ...]:
    """Paths for `auto`, by docs/attention.md's figures; the last of each runs wherever torch does."""
    if device.type != "cuda":
        return ("eager",) if window else ("sdpa",)
    if window:
        return ("varlen", "flex", "eager") if dtype in _HALF else ("flex", "eager")
    return ("sdpa-by-length", "varlen", "sdpa") if dtype in _HALF else ("sdpa",)


def _try(path: str, config: Any, dtype: torch.dtype, device: torch.device) -> None:
    """Attend by this path once, forwards, and backwards where gradients are wanted; raises what torch raises."""
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    groups = getattr(config, "num_key_value_heads", None) or heads
    # one token, and a length of every kernel that the path chooses among
    row = row_of((CUDNN_FROM if path == "sdpa-by-length" else 129, 3, 1), device)
    random = torch.Generator().manual_seed(0)  # the run's own numbers stay as they are
    training = torch.is_grad_enabled()
    q, k, v = (
        torch.randn(1, row.tokens, n, size, generator=random).to(device, dtype).transpose(1, 2).requires_grad_(training)
        for n in (heads, groups, groups)
    )
    o = PATHS[path](q, k, v, row, None, None)
    if training:
        o.backward(torch.ones_like(o))  # type: ignore[no-untyped-call]


def _register(path: str) -> None:
    """Make a path's function and mask known to transformers, for this process."""
    AttentionInterface.register(_NAMES[path], _attention_function(PATHS[path]))
    AttentionMaskInterface.register(_NAMES[path], _no_mask)


def _no_mask(*_: Any, attention_mask: Any = None, local_size: int | None = None, **asked: Any) -> int | None:
    """In the place of transformers' masks: none, or the reach of a layer that does not see its whole document."""
    if attention_mask is not None:
        raise ValueError(
            "a packed row has no padding, so there is no attention_mask; leave it out of the model's forward"
        )
    if asked.get("use_vmap") or asked.get("allow_is_bidirectional_skip") is not None:
        raise ConfigError(
            "the model asks for a mask that is not causal, which no path of attention does; train another base"
        )
    return local_size


def _attention_function(attend: Attend) -> Callable[..., tuple[torch.Tensor, None]]:
    """A path as transformers calls it, for one layer: raises rather than leave out anything that it is given."""

    def attention(
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: int | None,
        dropout: float = 0.0,
        scaling: float | None = None,
        **keywords: Any,
    ) -> tuple[torch.Tensor, None]:
        where, tokens = type(module).__name__, query.shape[2]
        if attention_mask is not None and not isinstance(attention_mask, int):
            raise ValueError(
                f"{where}: a mask arrived, and boundaries take its place; leave it out of the model's forward"
            )
        if keywords.get("sliding_window") != attention_mask:
            raise ConfigError(
                f"{where} masks what is {attention_mask} tokens away and has a sliding window of "
                f"{keywords.get('sliding_window')}: no path does both; train another base"
            )
        if query.shape[0] != 1 or key.shape[2] != tokens:
            raise ValueError(
                f"{where}: attention over packed rows takes one row at a time, without a cache, not queries of shape "
                f"{tuple(query.shape)} and keys of shape {tuple(key.shape)}; call the model with batch 1 and use_cache=False"
            )
        if dropout or keywords.get("is_causal") is False or getattr(module, "is_causal", True) is False:
            raise ConfigError(f"{where} asks for dropout, or attention that is not causal, which no path does")
        if unknown := [k for k, v in keywords.items() if v is not None and k not in _CHANGE_NOTHING]:
            raise ConfigError(
                f"{where} asks for {', '.join(unknown)}, which no path of attention does; train another base"
            )
        return attend(query, key, value, row_from(keywords, tokens), scaling, attention_mask), None

    return attention
