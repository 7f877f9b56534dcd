"""What a training run may be told: one section per component. Unknown keys are refused with the nearest name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from repo2ctx.config import Section, length_name, parse_length

Length = Annotated[int, BeforeValidator(parse_length)]


class ModelSection(Section):
    """The base model (`repo2ctx.models`)."""

    base: str = "smollm2"
    dtype: Literal["float32", "bfloat16"] = "float32"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    checkpointing: bool = Field(True, description="recompute each layer's activations in the backward pass")


class DataSection(Section):
    """The packed rows (`train.batches`)."""

    path: Path
    length: Length = Field(2048, description="which pack: 2k, 32k, 1m …")

    @property
    def table(self) -> str:
        return f"packed/{length_name(self.length)}/train"


class RopeSection(Section):
    """Positions (`train.rope`): the factor follows from the model's native length and this one."""

    target: Length = 8192


class LoraSection(Section):
    """The adapter (PEFT LoRA)."""

    r: int = Field(16, gt=0, le=8192)
    alpha: int = Field(32, gt=0)
    dropout: float = Field(0.0, ge=0, lt=1)
    modules: tuple[str, ...] = Field(("q_proj", "k_proj", "v_proj", "o_proj"), min_length=1)


class OptimSection(Section):
    """AdamW with linear warm-up and cosine decay."""

    lr: float = Field(2e-4, gt=0, le=10)
    weight_decay: float = Field(0.0, ge=0)
    warmup_steps: int = Field(2, ge=0)
    clip_norm: float = Field(1.0, gt=0)
    steps: int = Field(15, gt=0)
    rows_per_step: int = Field(1, gt=0, le=1 << 20)


class CheckpointSection(Section):
    """Saved state (`train.checkpoint`)."""

    every: int = Field(5, gt=0, description="steps between checkpoints")
    keep: int = Field(2, gt=0)


class TrainConfig(Section):
    """The whole configuration of a training run."""

    model: ModelSection = ModelSection()
    data: DataSection
    rope: RopeSection = RopeSection()
    lora: LoraSection = LoraSection()
    optim: OptimSection = OptimSection()
    checkpoint: CheckpointSection = CheckpointSection()
    out: Path
    seed: int = Field(0, ge=0, lt=1 << 63)
