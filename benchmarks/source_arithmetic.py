"""Every figure of docs/where-the-sources-err.md, computed from the shapes of Llama-3-8B and from what `train.rope` sets.

    python benchmarks/source_arithmetic.py

Prints a block of lines for each section of the page. Needs no weights and no network; takes seconds on one core.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from transformers import LlamaConfig, PretrainedConfig, Qwen3Config
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from repo2ctx.positions import set_positions
from train.config import RopeSection
from train.rope import Rope, resolve_rope

K, M = 1 << 10, 1 << 20
# Llama-3-8B
LAYERS, HIDDEN, FFN, HEADS, KV_HEADS, HEAD = 32, 4096, 14336, 32, 8, 128
NATIVE, THETA = 8 * K, 5e5
A100 = 312e12  # dense bf16 FLOP/s, from the data sheet
GPUS, ROWS, DAY = 8, 1000, 86400
USED = 0.45  # of the peak

LLAMA_31 = {
    "rope_type": "llama3",
    "rope_theta": THETA,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": NATIVE,
}


def shape(rope: dict[str, Any] | None = None, positions: int = NATIVE) -> LlamaConfig:
    """Llama-3-8B's, or Llama-3.1-8B's."""
    rope = rope or {"rope_type": "default", "rope_theta": THETA}
    return LlamaConfig(
        hidden_size=HIDDEN, num_attention_heads=HEADS, rope_parameters=rope, max_position_embeddings=positions
    )


def resolved(target: int, base: PretrainedConfig | None = None, **options: Any) -> Rope:
    """What training would set."""
    return resolve_rope(base or shape(), RopeSection(target=target, **options))


def frequencies(rope: Any, positions: int) -> tuple[torch.Tensor, float]:
    """(radians a token of each of the 64 pairs, the factor on queries and keys), as the model uses them."""
    config = shape()
    set_positions(config, rope, positions)
    rotary: Any = LlamaRotaryEmbedding(config)
    return rotary.inv_freq.double(), rotary.attention_scaling


def sizes() -> list[str]:
    """Llama-3-8B."""
    return [
        f"{LAYERS} layers, hidden size {HIDDEN:,}, {HEADS} heads of {HEAD}, {KV_HEADS} key-value heads, feed-forward {FFN:,}",
        f"RoPE with theta {THETA:,.0f}, trained on {NATIVE:,} tokens",
    ]


def lengths() -> list[str]:
    """The factor that a length needs."""
    lines = [
        f"8K = {NATIVE:,}; 8 x {NATIVE:,} = {8 * NATIVE:,} = 64K; with factor 8, {M:,} is read as {M // 8:,} = 16 x {NATIVE:,}"
    ]
    lines.append("target  factor                      YaRN's temperature  NTK-aware theta")
    for name, target in (("32K", 32 * K), ("64K", 64 * K), ("128K", 128 * K), ("512K", 512 * K), ("1M", M)):
        rope = resolved(target)
        _, temperature = frequencies(rope.rope_parameters, target)
        theta = resolved(target, method="ntk").rope_parameters["rope_theta"]
        division = f"{target:,} / {NATIVE:,} = {rope.factor:g}"
        lines.append(f"{name:6s}  {division:26s}  {temperature:.4f}              {theta:.3g}")
    said = Qwen3Config(max_position_embeddings=40 * K)
    qwen = resolved(128 * K, said)
    lines.append(
        f"Qwen3: config.json says {said.max_position_embeddings:,}, trained on {qwen.native:,}: 128K is factor {qwen.factor:g}"
    )
    return lines


def llama_31() -> list[str]:
    """Its own scaling, against YaRN with factor 8 over 131,072."""
    plain, _ = frequencies(shape().rope_parameters, NATIVE)
    own, _ = frequencies(LLAMA_31, 128 * K)
    base = shape(LLAMA_31, 128 * K)
    wrong = resolved(M, base, native=128 * K)
    right = resolved(M, base)
    eight, _ = frequencies(wrong.rope_parameters, M)
    assert wrong.factor == 8
    assert right.factor == 128
    kept, divided = int((own == plain).sum()), int(torch.isclose(own * 8, plain, rtol=1e-6).sum())
    ratio = eight / own
    lines = [f"its own: llama3, factor 8 over {NATIVE:,}; trained on {128 * K:,} positions, which are 16 x {NATIVE:,}"]
    lines.append(f"of {len(own)} pairs it keeps {kept}, blends {len(own) - kept - divided}, divides {divided} by 8")
    faster, alike = int((ratio > 1.01).sum()), int((abs(ratio - 1) <= 0.01).sum())
    lines.append(
        f"YaRN, factor 8 over {128 * K:,}: {alike} pairs as trained (to 1%), {faster} faster, by up to {ratio.max():.1f} times"
    )
    turns = [2 * math.pi / f.item() for f in plain[ratio > 1.01]]
    lines.append(f"on plain RoPE those turn once in {min(turns):,.0f} to {max(turns):,.0f} tokens")
    lines.append(f"YaRN for 1M from the length before its scaling: {M:,} / {right.native:,} = {right.factor:g}")
    return lines


def parallel() -> list[str]:
    """What a GPU sends forward, a layer, at 1M on 8 GPUs in bf16."""
    local, others = M // GPUS, GPUS - 1
    traded = 2 * HEADS + 2 * KV_HEADS
    ulysses = local * traded * HEAD * 2 * others / GPUS
    ring = local * 2 * KV_HEADS * HEAD * 2 * others
    return [
        f"{M:,} tokens on {GPUS} GPUs: {local:,} tokens each; {HEADS} query heads and {KV_HEADS} key-value heads of {HEAD}, bf16",
        f"Ulysses: q, k, v and the output, {traded} heads, {others}/{GPUS} sent: {ulysses / 1e9:.2f} GB a layer and GPU, forward",
        f"ring: k and v, {2 * KV_HEADS} heads, passed on {others} times: {ring / 1e9:.2f} GB a layer and GPU, forward",
        f"GPUs at most: Ulysses {HEADS}, one a query head; ring: as many as there are tokens to share",
    ]


def matrices() -> int:
    """Weights of all linear layers but the output's, which is needed on target positions alone."""
    attention = 2 * HIDDEN * HEADS * HEAD + 2 * HIDDEN * KV_HEADS * HEAD
    return LAYERS * (attention + 3 * HIDDEN * FFN)


def lora(rank: int) -> int:
    """Weights of LoRA on the attention's four projections."""
    return LAYERS * rank * (2 * (HIDDEN + HEADS * HEAD) + 2 * (HIDDEN + KV_HEADS * HEAD))


def step(tokens: int, documents: int = 1) -> dict[str, float]:
    """FLOPs of a LoRA step over a row of documents of equal length that do not see each other."""
    linear = 2 * matrices() * tokens
    attention = 4 * LAYERS * HEADS * HEAD * tokens * (tokens / documents) / 2
    back = {"linear": linear, "attention": 2.5 * attention}  # no weight gradients: they are frozen; see the page
    forward = linear + attention
    return {
        "linear": linear,
        "attention": attention,
        "forward": forward,
        "back_linear": back["linear"],
        "back_attention": back["attention"],
        "full recompute": 2 * forward + sum(back.values()),
        "attention kept": 2 * forward - attention + sum(back.values()),
        "no recompute": forward + sum(back.values()),
        "floor": forward + linear + 2 * attention,
    }


def days(flops: float, used: float) -> float:
    """Of 1,000 rows on 8 A100."""
    return ROWS * flops / (GPUS * A100 * used) / DAY


def two_days() -> list[str]:
    """1,000 rows of 1M, one epoch."""
    s = step(M)

    def peta(name: str) -> str:
        return f"{s[name] / 1e15:,.1f} PFLOP"

    full = s["full recompute"]
    docs = step(M, 32)
    return [
        f"weights of the linear layers: {matrices():,}; T = {M:,}",
        f"forward, linear layers:     2 x weights x T                        = {peta('linear')}",
        f"forward, causal attention:  4 x {LAYERS} layers x {HEADS} heads x {HEAD} x T^2 / 2 = {peta('attention')}",
        f"forward                                                            = {peta('forward')}",
        f"recompute of it all                                                = {peta('forward')}",
        f"backward, linear layers:    2 x weights x T, to inputs alone       = {peta('back_linear')}",
        f"backward, attention:        5 matrix products for 2: 2.5 x forward = {peta('back_attention')}",
        f"a LoRA step                                                        = {full / 1e18:.2f} EFLOP",
        f"  attention's output kept, not recomputed                          = {s['attention kept'] / 1e18:.2f} EFLOP",
        f"  nothing recomputed at all                                        = {s['no recompute'] / 1e18:.2f} EFLOP",
        f"{ROWS:,} rows                                                         = {ROWS * full:.3g} FLOP",
        f"{GPUS} A100 at their peak of 312 TFLOP/s                                 = {GPUS * A100 / 1e15:.3f} PFLOP/s",
        f"days at 100% of the peak: {days(full, 1):.1f}; at {USED:.0%}: {days(full, USED):.1f}; at 38%: {days(full, 0.38):.1f}; "
        f"at 72%: {days(full, 0.72):.1f}",
        f"to be done in 2 days: {days(full, 1) / 2:.1f} times the peak",
        f"attention is {s['attention'] / s['forward']:.0%} of the forward pass",
        f"LoRA of rank 16 on q, k, v, o has {lora(16) / matrices():.1%} of these weights",
        f"days at 100% with nothing recomputed, and 2 x forward for attention's backward: {days(s['floor'], 1):.1f}",
        f"rows of 32 documents of 32K that do not see each other: {docs['full recompute'] / 1e15:.1f} PFLOP a step, "
        f"{days(docs['full recompute'], USED):.1f} days at {USED:.0%}",
    ]


def reach(tokens: int, wrapped: bool) -> torch.Tensor:
    """Which token a layer of S2-Attn lets which see, bool (tokens, tokens): groups of tokens / 4, half of the heads shifted."""
    group, at = tokens // 4, torch.arange(tokens)
    straight = (at[:, None] // group == at // group) & (at <= at[:, None])
    if wrapped:  # rolled by half a group, causal in the rolled order
        rolled = (at - group // 2) % tokens
        shifted = (rolled[:, None] // group == rolled // group) & (rolled <= rolled[:, None])
    else:  # boundaries moved by half a group: a half group at either end
        moved = (at + group // 2) // group
        shifted = (moved[:, None] == moved) & (at <= at[:, None])
    return straight | shifted


def leaks() -> list[str]:
    """How far the roll of S2-Attn lets later tokens be seen."""
    tokens = 64
    lines = [f"{tokens} tokens, groups of {tokens // 4}, shifted by {tokens // 8}"]
    for wrapped, name in ((True, "roll"), (False, "shifted boundaries")):
        one = reach(tokens, wrapped).float()
        known, later, whole = torch.eye(tokens), [], 0
        for layer in range(1, LAYERS + 1):
            known = ((one @ known) > 0).float()
            later.append(int((known.triu(1).sum(1) > 0).sum()))
            whole = whole or (layer if known[-2, -1] else 0)
        counts = ", ".join(str(later[layers - 1]) for layers in (1, 2, 4, 8))
        end = f"the last but one knows the last after {whole} layers" if whole else f"{later[-1]} after {LAYERS}"
        lines.append(f"{name}: tokens that know of later ones after 1, 2, 4, 8 layers: {counts}; {end}")
    length = 32 * K
    lines.append(
        f"at 32K: groups of {length // 4:,}; in half of the heads the first {length // 8:,} tokens see the last {length // 8:,}"
    )
    return lines


def turned(frequency: torch.Tensor, position: int) -> str:
    """Degrees by which a pair has turned."""
    return f"{math.degrees(frequency.item() * position):.2f}"


def unstored() -> list[str]:
    """An adapter trained under YaRN for 1M, on the plain base."""
    plain, _ = frequencies(shape().rope_parameters, NATIVE)
    yarn, temperature = frequencies(resolved(M).rope_parameters, M)
    slow, changed = int((plain * NATIVE < 2 * math.pi).sum()), int((yarn < plain * 0.99).sum())
    return [
        f"of {len(plain)} pairs, {changed} turn otherwise under YaRN for 1M; {slow} do not finish a turn in {NATIVE:,} tokens",
        f"the slowest pair turns by {turned(plain[-1], NATIVE)} degrees in {NATIVE:,} tokens",
        f"at {M:,}: {turned(yarn[-1], M)} degrees under YaRN, {turned(plain[-1], M)} on the plain base",
        f"logits: multiplied by {temperature:.4f}^2 = {temperature**2:.3f} in training, by 1 on the plain base",
    ]


def halfway() -> list[str]:
    """Trained for 512K, used at 1M."""
    half, at_half = frequencies(resolved(512 * K).rope_parameters, 512 * K)
    full, at_full = frequencies(resolved(M).rope_parameters, M)
    divided = int(torch.isclose(full * 2, half, rtol=1e-5).sum())
    return [
        f"factor {resolved(512 * K).factor:g}: position {M:,} is read as {M // 64:,}, where training ended at {NATIVE:,}",
        f"the slowest pair has turned by {turned(half[-1], M)} degrees there, in training by {turned(half[-1], 512 * K)} at most",
        f"factor {resolved(M).factor:g} set afterwards: {divided} pairs turn at half of their trained speed, with temperature "
        f"{at_full:.4f} for {at_half:.4f}",
    ]


SECTIONS = (sizes, lengths, llama_31, parallel, two_days, leaks, unstored, halfway)


def main() -> None:
    """Print all of it."""
    for section in SECTIONS:
        print(f"# {section.__name__}\n", *section(), "", sep="\n")


if __name__ == "__main__":
    main()
