"""What a training run may be told: one section per component. Unknown keys are refused with the nearest name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from repo2ctx.config import Section, checked_length, length_name

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def parse_tokens(value: object) -> int:
    """A number of tokens, with the units of lengths: "500m" is 500 × 1,048,576, and g is 1,024 m."""
    match = re.fullmatch(r"([0-9]{1,15})([kmg]?)", str(value).strip(), re.IGNORECASE | re.ASCII)
    if not match or isinstance(value, bool) or not int(match[1]):
        raise ValueError("expected a number of tokens such as 500m or 2g (k is 1,024)")
    return int(match[1]) * _UNITS[match[2].lower()]


Length = Annotated[int, BeforeValidator(checked_length)]
Tokens = Annotated[int, BeforeValidator(parse_tokens)]
Beta = Annotated[float, Field(ge=0, lt=1)]
_MOST_STEPS = 1 << 40


class ModelSection(Section):
    """The base model (`repo2ctx.models`)."""

    base: str = "smollm2"
    shape: dict[str, Any] | Path | None = Field(
        None, description="for --dry-run without the model's files: its config.json, or the same as a mapping"
    )
    dtype: Literal["float32", "bfloat16"] = "float32"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    checkpointing: bool = Field(True, description="recompute each layer's activations in the backward pass")
    sliding_window: Literal["refuse", "keep", "off"] = Field(
        "refuse", description="what becomes of a base whose attention reaches less far than the rows are long"
    )


class DataSection(Section):
    """The packed rows (`train.batches`)."""

    path: Path
    length: Length = Field(2048, description="which pack: 2k, 32k, 1m …; a stage may name its own")

    @property
    def table(self) -> str:
        return f"packed/{length_name(self.length)}/train"


# keys of `rope` that one method alone reads
_OF_METHOD = {
    "theta": ("theta",),
    "yarn": ("beta_fast", "beta_slow", "attention_factor"),
    "llama3": ("low_freq_factor", "high_freq_factor"),
}


class RopeSection(Section):
    """Positions (`train.rope`): the factor follows from the model's native length and the target."""

    method: Literal["yarn", "ntk", "linear", "llama3", "theta", "none"] = "yarn"
    target: Length = 8192
    native: Length | None = Field(
        None, description="what the base was trained on, where its config says something else"
    )
    native_theta: float | None = Field(
        None, gt=0, description="the base's own frequency, where its config names none; refused if it names another"
    )
    factor: float | None = Field(None, gt=0, le=1e6, description="never needed; refused unless it is target / native")
    theta: float | None = Field(None, gt=0, description="of method theta: the new base frequency")
    beta_fast: float = Field(
        32.0, gt=0, description="of yarn: turns within the native length from which a frequency is kept"
    )
    beta_slow: float = Field(1.0, gt=0, description="of yarn: turns up to which a frequency is divided by the factor")
    attention_factor: float | None = Field(None, gt=0, description="of yarn: None for the paper's 0.1 ln(factor) + 1")
    low_freq_factor: float = Field(
        1.0,
        gt=0,
        description="of llama3: turns within the native length up to which a frequency is divided by the factor",
    )
    high_freq_factor: float = Field(4.0, gt=0, description="of llama3: turns from which it is kept")

    @model_validator(mode="after")
    def _fits(self) -> RopeSection:
        if self.method == "theta" and self.theta is None:
            raise ValueError("method theta needs rope.theta, the new base frequency")
        for method, keys in _OF_METHOD.items():
            for key in keys:
                if self.method != method and getattr(self, key) != type(self).model_fields[key].default:
                    raise ValueError(f"{key} is of method {method}, not of {self.method}; leave it out")
        if self.beta_fast <= self.beta_slow:
            raise ValueError(f"beta_fast {self.beta_fast:g} must be more than beta_slow {self.beta_slow:g}")
        if self.high_freq_factor <= self.low_freq_factor:
            raise ValueError(
                f"high_freq_factor {self.high_freq_factor:g} must be more than low_freq_factor {self.low_freq_factor:g}"
            )
        return self


class AdapterSection(Section):
    """What is trained (`train.adapters`)."""

    kind: Literal["lora", "lora+", "qlora", "full"] = Field(
        "lora",
        description="lora+: LongLoRA's, norms and embeddings too; qlora: over 4-bit weights, CUDA only; full: all weights, "
        "where what follows plays no part",
    )
    r: int = Field(16, gt=0, le=8192)
    alpha: int = Field(32, gt=0, le=1 << 20)
    dropout: float = Field(0.0, ge=0, lt=1)
    modules: Literal["attention", "all"] | Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        "attention", description="attention projections, all linear layers but the head, or a list of names"
    )


class AttentionSection(Section):
    """How the documents of a row are attended (`train.attention`)."""

    path: Literal[
        "auto", "eager", "sdpa", "sdpa-math", "sdpa-flash", "sdpa-cudnn", "sdpa-by-length", "varlen", "flex"
    ] = Field(
        "auto", description="auto: the fastest that runs on the device, in the dtype; docs/attention.md has the others"
    )
    across_documents: bool = Field(False, description="let documents that share a row see those before them")


class LossSection(Section):
    """Which tokens count (`train.loss`)."""

    target_weight: float = Field(1.0, ge=1e-6, le=1e6)
    context_weight: float = Field(0.0, ge=0, le=1e6, description="1 counts every token alike, 0 the target's only")
    chunk: int = Field(2048, gt=0, description="positions that are projected to the vocabulary at once")


class OptimSection(Section):
    """AdamW with linear warm-up, and what follows it; a stage may have some of these of its own."""

    lr: float = Field(2e-4, gt=0, le=10)
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    weight_decay: float = Field(0.0, ge=0)
    warmup_steps: int = Field(2, ge=0, le=_MOST_STEPS)
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    final: float = Field(0.1, ge=0, le=1, description="the share of lr that is left at a stage's end")
    clip_norm: float = Field(1.0, gt=0)
    steps: int = Field(15, gt=0, le=_MOST_STEPS)
    rows_per_step: int = Field(1, gt=0, le=1 << 20)


class MixPart(Section):
    """Rows of one table, and their share of a stage's tokens."""

    length: Length
    share: float = Field(gt=0, le=1)
    path: Path | None = Field(None, description="another dataset than data.path, such as replay of native-length text")


class StageSection(Section):
    """One stage (`train.stages`): what is left out is as in `data`, `rope` and `optim`."""

    length: Length
    name: str | None = None
    mix: tuple[MixPart, ...] = Field((), description="shares by tokens; empty: rows of `length` alone")
    steps: int | None = Field(None, gt=0, le=_MOST_STEPS)
    tokens: Tokens | None = Field(
        None, description="instead of steps: 500m, say; the stage ends with the step that reaches it"
    )
    rope_target: Length | None = Field(None, description="a factor of this stage's own; None: that of rope.target")
    rows_per_step: int | None = Field(None, gt=0, le=1 << 20)
    lr: float | None = Field(None, gt=0, le=10)
    warmup_steps: int | None = Field(None, ge=0, le=_MOST_STEPS)
    schedule: Literal["cosine", "linear", "constant"] | None = None


class CheckpointSection(Section):
    """Saved state (`train.checkpoint`)."""

    every: int = Field(5, gt=0, description="steps between checkpoints")
    keep: int = Field(2, gt=0, description="newest checkpoints that stay; the best by validation stays too")


class ValidationSection(Section):
    """Loss on rows that are not trained on, at each stage's end, and every so many steps."""

    every: int = Field(0, ge=0, description="steps; 0: at the ends of stages alone")
    rows: int = Field(8, ge=0, description="at most, of each table; 0: never")
    short: Length | None = Field(
        None, description="a table of native length, on which short-context quality is measured too"
    )
    short_path: Path | None = Field(None, description="where it lies, if not in data.path")


class GuardSection(Section):
    """What happens when a step goes wrong."""

    not_finite: Literal["stop", "skip"] = "stop"
    spike: Literal["ignore", "skip", "stop"] = "ignore"
    spike_factor: float = Field(4.0, gt=1, description="times the median gradient norm of the last spike_window steps")
    spike_window: int = Field(
        32, gt=1, le=1 << 20, description="steps; before so many have been made, none counts as a spike"
    )
    most_skipped: int = Field(10, gt=0, description="steps in a row, after which the run stops")


class LaunchSection(Section):
    """What the run is planned for (`train.plan`); one process trains on one device."""

    gpus: int = Field(1, gt=0)


class TrainConfig(Section):
    """The whole configuration of a training run."""

    model: ModelSection = ModelSection()
    data: DataSection
    rope: RopeSection = RopeSection()
    adapter: AdapterSection = AdapterSection()
    attention: AttentionSection = AttentionSection()
    loss: LossSection = LossSection()
    optim: OptimSection = OptimSection()
    stages: tuple[StageSection, ...] = Field((), description="one after the other; empty: one, of data.length")
    checkpoint: CheckpointSection = CheckpointSection()
    validation: ValidationSection = ValidationSection()
    guard: GuardSection = GuardSection()
    launch: LaunchSection = LaunchSection()
    out: Path
    seed: int = Field(0, ge=0, lt=1 << 63)
