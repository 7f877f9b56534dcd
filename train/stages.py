"""The stages of a run, resolved from its configuration: each with its rows, its steps, its learning rates and its context; pure.

A step draws rows until their lengths add up to `rows_per_step` times the stage's length, so that a stage without a mix takes
`rows_per_step` rows, and one with short rows among them takes as many more as its shares ask for. What the last row drawn has
too much, the next step draws less, so that the steps of a stage have that many tokens on average. A stage ends after `steps`
steps, or with the step that brings its tokens to `tokens`. Warm-up is linear; then the learning rate falls with the share of the
stage that is done, to `optim.final` of itself. Adam's state goes on from stage to stage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from repo2ctx.config import length_name
from repo2ctx.errors import ConfigError
from train.config import StageSection, TrainConfig


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one length of one dataset, and their share of the stage's tokens."""

    path: Path
    length: int
    share: float

    @property
    def table(self) -> str:
        return f"packed/{length_name(self.length)}/train"


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage; exactly one of steps and tokens is set. rope_target is the context that its positions are scaled for."""

    name: str
    length: int
    parts: tuple[Part, ...]
    steps: int | None
    tokens: int | None
    rows_per_step: int
    lr: float
    warmup_steps: int
    schedule: str
    final: float
    rope_target: int

    @property
    def tokens_per_step(self) -> int:
        """By the lengths of the rows, which are not quite full, and on average: of a mix, the last one drawn may go over."""
        return self.rows_per_step * self.length

    def progress(self, steps: int, tokens: int) -> float:
        """The share of the stage that is done, after so many steps and tokens of it; 1 is its end."""
        done = steps / self.steps if self.steps is not None else tokens / self.tokens if self.tokens else 1.0
        return min(1.0, done)

    def rate(self, steps: int, tokens: int) -> float:
        """The learning rate of the step after so many of this stage."""
        if steps < self.warmup_steps:
            return self.lr * (steps + 1) / (self.warmup_steps + 1)
        warm = 0.0
        if self.steps is not None:
            warm = self.warmup_steps / self.steps
        elif self.tokens:
            warm = self.warmup_steps * self.tokens_per_step / self.tokens
        done = (self.progress(steps, tokens) - warm) / (1 - warm) if warm < 1 else 1.0
        done = min(1.0, max(0.0, done))
        fallen = {"cosine": (1 - math.cos(math.pi * done)) / 2, "linear": done, "constant": 0.0}[self.schedule]
        return self.lr * (1 - (1 - self.final) * fallen)


def resolve_stages(config: TrainConfig) -> tuple[Stage, ...]:
    """The stages of a run, with every default filled in. Raises ConfigError for those that cannot be."""
    sections = config.stages or (StageSection(length=config.data.length),)
    stages = tuple(_stage(config, section, number) for number, section in enumerate(sections))
    names = [stage.name for stage in stages]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"stages: two are called {twice!r}; give each its own `name`")
    return stages


def _stage(config: TrainConfig, section: StageSection, number: int) -> Stage:
    where, optim = f"stages.{number}", config.optim
    if section.steps is not None and section.tokens is not None:
        raise ConfigError(f"{where}: has both steps {section.steps} and tokens {section.tokens}; leave one out")
    parts = tuple(Part(part.path or config.data.path, part.length, part.share) for part in section.mix)
    if parts and abs(total := sum(part.share for part in parts) - 1) > 1e-6:
        raise ConfigError(f"{where}.mix: the shares add up to {total + 1:.6g}; make that 1")
    for i, part in enumerate(parts):
        if part.length > section.length:
            raise ConfigError(
                f"{where}.mix: rows of {length_name(part.length)} are longer than the stage's {length_name(section.length)}; "
                f"set {where}.length={length_name(part.length)}"
            )
        if any((part.path, part.length) == (other.path, other.length) for other in parts[:i]):
            raise ConfigError(
                f"{where}.mix: {part.path}, {length_name(part.length)} stands there twice; add its shares"
            )
    steps = section.steps if section.steps is not None or section.tokens is not None else optim.steps
    return Stage(
        name=section.name or length_name(section.length),
        length=section.length,
        parts=parts or (Part(config.data.path, section.length, 1.0),),
        steps=steps,
        tokens=section.tokens,
        rows_per_step=section.rows_per_step or optim.rows_per_step,
        lr=section.lr or optim.lr,
        warmup_steps=optim.warmup_steps if section.warmup_steps is None else section.warmup_steps,
        schedule=section.schedule or optim.schedule,
        final=optim.final,
        rope_target=section.rope_target or config.rope.target,
    )
