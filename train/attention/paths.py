"""Ways to attend to the documents of a packed row, each to itself alone and causally.

Each takes q_1HTD, and k_1GTD and v_1GTD with as many heads or a divisor of that (grouped-query), the row, the scale of the
logits (None: 1 / sqrt D), and a window (None, or how many tokens the last of which is itself a token sees), and returns o_1THD.
H and G: heads of queries and of keys; T: tokens of the row; D: size of a head. All compute the same. What they cost:

    eager        the scores of all pairs, H × T² of float32 and more: a reference, for short rows
    sdpa…        torch's kernels, called once per document on slices, in memory O(T): the one that torch picks, flash attention,
                 cuDNN's, or by length, long documents cuDNN's and short ones flash; sdpa-math makes each document's scores
    varlen       one call of flash attention for the row (Dao 2023, arXiv:2307.08691); half precision on CUDA
    flex         one compiled kernel for the row (Dong et al. 2024, arXiv:2412.05496) that skips blocks of 128 × 128 pairs of
                 which none is seen; compiles for some ten seconds. On a CPU it is not compiled, costs what `eager` does,
                 and has no gradients
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from functools import cache, lru_cache, partial
from itertools import accumulate
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from repo2ctx.errors import ConfigError
from train.attention.rows import Row

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, Row, float | None, int | None], torch.Tensor]
BLOCK = 128  # tokens a side: what flex skips or computes at once
CUDNN_FROM = 8192
"""Tokens from which a document is worth what cuDNN does once for every length that it meets: 115 ms, by docs/attention.md."""
_MOST_KERNELS = 32  # that flex compiles in one process: torch's own limit is 8


def _eager(
    q_1HTD: torch.Tensor,
    k_1GTD: torch.Tensor,
    v_1GTD: torch.Tensor,
    row: Row,
    scale: float | None,
    window: int | None,
) -> torch.Tensor:
    groups = q_1HTD.shape[1] // k_1GTD.shape[1]
    k_1HTD, v_1HTD = (x.repeat_interleave(groups, dim=1) for x in (k_1GTD, v_1GTD))
    position_T = torch.arange(row.tokens, device=q_1HTD.device)
    seen_TT = seen(begins(row.lengths, window, q_1HTD.device))(0, 0, position_T[:, None], position_T[None, :])
    scores_1HTT = q_1HTD @ k_1HTD.transpose(2, 3) * (q_1HTD.shape[-1] ** -0.5 if scale is None else scale)
    weights_1HTT = scores_1HTT.masked_fill(~seen_TT, -torch.inf).softmax(-1, dtype=torch.float32)
    return (weights_1HTT.to(v_1HTD.dtype) @ v_1HTD).transpose(1, 2)


def _sdpa(
    q_1HTD: torch.Tensor,
    k_1GTD: torch.Tensor,
    v_1GTD: torch.Tensor,
    row: Row,
    scale: float | None,
    window: int | None,
    kernel_of: Callable[[int], SDPBackend] | None = None,
) -> torch.Tensor:
    """kernel_of: a document's tokens -> the kernel that it is given to, or None: torch decides."""
    if window is not None and window < row.longest:
        raise ConfigError(
            f"a window of {window} tokens is less than the longest document of the row, {row.longest}, and torch's "
            "scaled_dot_product_attention has none; set attention.path=auto, varlen or flex, or model.sliding_window=off"
        )
    if q_1HTD.is_cuda and q_1HTD.dtype == torch.float32 and kernel_of is None:
        # the one fused kernel for it takes no groups; with them torch would compute the scores of all pairs
        groups = q_1HTD.shape[1] // k_1GTD.shape[1]
        k_1GTD, v_1GTD = (x.repeat_interleave(groups, dim=1) for x in (k_1GTD, v_1GTD))
    grouped = q_1HTD.shape[1] != k_1GTD.shape[1]
    outputs = []
    # split, whose gradient is one concatenation: that of a slice is as large as the row, for every document
    for q, k, v in zip(*(x.split_with_sizes(row.lengths, dim=2) for x in (q_1HTD, k_1GTD, v_1GTD)), strict=True):
        with contextlib.nullcontext() if kernel_of is None else sdpa_kernel(kernel_of(q.shape[2])):
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=grouped)
        outputs.append(o.transpose(1, 2))
    return outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1)


def _cudnn(tokens: int) -> SDPBackend:
    """cuDNN, which takes no document of one token."""
    return SDPBackend.CUDNN_ATTENTION if tokens > 1 else SDPBackend.MATH


def _by_length(tokens: int) -> SDPBackend:
    return SDPBackend.CUDNN_ATTENTION if tokens >= CUDNN_FROM else SDPBackend.FLASH_ATTENTION


def _varlen(
    q_1HTD: torch.Tensor,
    k_1GTD: torch.Tensor,
    v_1GTD: torch.Tensor,
    row: Row,
    scale: float | None,
    window: int | None,
) -> torch.Tensor:
    from torch.nn.attention import varlen  # here: other paths do without it

    # torch 2.11 finds grouped heads by itself, later ones want to be told
    attend: Any = varlen.varlen_attn
    told = {"enable_gqa": True} if "enable_gqa" in inspect.signature(attend).parameters else {}
    q_THD, k_TGD, v_TGD = (x[0].transpose(0, 1) for x in (q_1HTD, k_1GTD, v_1GTD))
    sides = (-1 if window is None else window - 1, 0)  # tokens before, and after; all, and none, is causal
    ends = (row.starts_N1, row.starts_N1, row.longest, row.longest)
    o_THD: torch.Tensor = attend(q_THD, k_TGD, v_TGD, *ends, scale=scale, window_size=sides, **told)
    return o_THD[None]


def _flex(
    q_1HTD: torch.Tensor,
    k_1GTD: torch.Tensor,
    v_1GTD: torch.Tensor,
    row: Row,
    scale: float | None,
    window: int | None,
) -> torch.Tensor:
    attend: Any = _compiled_flex() if q_1HTD.is_cuda else flex_attention
    mask = block_mask(row.lengths, window, q_1HTD.device)
    grouped = q_1HTD.shape[1] != k_1GTD.shape[1]
    with torch._dynamo.config.patch(recompile_limit=_MOST_KERNELS):
        o_1HTD: torch.Tensor = attend(q_1HTD, k_1GTD, v_1GTD, block_mask=mask, scale=scale, enable_gqa=grouped)
    return o_1HTD.transpose(1, 2)


@cache
def _compiled_flex() -> Any:
    """One kernel for a model's first row, and one for rows of any other lengths; with and without gradients each."""
    return torch.compile(
        flex_attention, fullgraph=True
    )  # raises past the limit, where it would make all scores instead


@lru_cache(maxsize=2)  # all layers of a row share one mask, or two where some have a window
@torch.inference_mode(False)  # a mask that validation made must serve training too
def block_mask(lengths: tuple[int, ...], window: int | None, device: torch.device) -> BlockMask:
    """Which blocks of a row flex computes, and in which of them it looks at each pair.

    From the lengths alone, so that it costs (T / 128)² integers and no T² of anything. The tokens that a token sees are a
    stretch that ends with itself and begins no earlier than that of the token before it. So a block of queries sees the
    blocks from where its first token's stretch begins to its own; and all of those before its own that begin no earlier
    than its last token's stretch.
    """
    tokens, count = sum(lengths), -(-sum(lengths) // BLOCK)
    begins_T = begins(lengths, window, device)
    own_N = torch.arange(count, device=device)
    lowest_N = begins_T[own_N * BLOCK] // BLOCK
    # the least of the blocks that every query sees in full: its own, where there is none
    full_N = -(-begins_T[(own_N * BLOCK + BLOCK - 1).clamp(max=tokens - 1)] // BLOCK)
    full_N = torch.minimum(full_N, own_N)
    if tokens % BLOCK:
        full_N[-1] = count - 1  # queries past the end see nothing
    partial_N, k_N = full_N - lowest_N + 1, torch.arange(count, device=device)
    partial_NN = torch.where(k_N < partial_N[:, None] - 1, lowest_N[:, None] + k_N, own_N[:, None])
    full_NN = (full_N[:, None] + k_N).clamp(max=count - 1)
    return BlockMask.from_kv_blocks(
        partial_N.to(torch.int32)[None, None],
        partial_NN.to(torch.int32)[None, None],
        (own_N - full_N).to(torch.int32)[None, None],
        full_NN.to(torch.int32)[None, None],
        BLOCK_SIZE=BLOCK,
        mask_mod=seen(begins_T),
        seq_lengths=(tokens, tokens),
    )


def begins(lengths: tuple[int, ...], window: int | None, device: torch.device) -> torch.Tensor:
    """For each token of a row, the first token that it sees: of its document, or of its window if that begins later."""
    starts = torch.tensor(list(accumulate(lengths, initial=0))[:-1], device=device)
    first_T = torch.repeat_interleave(starts, torch.tensor(lengths, device=device))
    if window is None:
        return first_T
    return torch.maximum(first_T, torch.arange(len(first_T), device=device) - window + 1)


def seen(begins_T: torch.Tensor) -> Callable[..., torch.Tensor]:
    """(batch, head, query, key) -> whether the query sees the key, by their places in the row."""

    def sees(b: Any, h: Any, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return (k <= q) & (k >= begins_T[q])

    return sees


PATHS: dict[str, Attend] = {
    "eager": _eager,
    "sdpa": _sdpa,
    "sdpa-math": partial(_sdpa, kernel_of=lambda _: SDPBackend.MATH),
    "sdpa-flash": partial(_sdpa, kernel_of=lambda _: SDPBackend.FLASH_ATTENTION),
    "sdpa-cudnn": partial(_sdpa, kernel_of=_cudnn),
    "sdpa-by-length": partial(_sdpa, kernel_of=_by_length),
    "varlen": _varlen,
    "flex": _flex,
}
