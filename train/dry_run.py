"""What a run would do, from its configuration and the model's shape alone: no rows, no weights, no GPU."""

from __future__ import annotations

from typing import Any

import yaml

from repo2ctx.config import length_name
from repo2ctx.progress import printable
from train.config import TrainConfig
from train.model import check_lengths, of_stage
from train.rope import decide_positions
from train.stages import Stage, resolve_stages


def resolved(config: TrainConfig) -> dict[str, Any]:
    """The configuration with every default, and what follows from it: RoPE of each stage, and its steps and tokens.

    A run of `steps` has about `steps` times `tokens_per_step` tokens, and one of `tokens` about as many steps as that divides
    into. Raises ConfigError or ModelError for a run that could not start.
    """
    found: dict[str, Any] = config.model_dump(mode="json")
    check_lengths(config)
    stages = [_stage(config, stage) for stage in resolve_stages(config)]
    decided, _ = decide_positions(config)
    found["rope"] |= {"native": decided.native, "factor": decided.factor, "rope_parameters": decided.rope_parameters}
    found["stages"] = stages
    found["steps"] = sum(stage["steps"] for stage in stages)
    found["tokens"] = sum(stage["tokens"] for stage in stages)
    found["notes"] = [*decided.notes, *plan_notes(config)]
    if all(section.steps or section.tokens for section in config.stages) and config.stages:
        del found["optim"]["steps"]  # of no stage
    return found


def plan_notes(config: TrainConfig) -> list[str]:
    """What the plan says and one process does not do."""
    gpus = config.launch.gpus
    if gpus == 1:
        return []
    return [f"launch.gpus {gpus} is a plan, of rows split over them; this process trains on one device, whole rows"]


def _stage(config: TrainConfig, stage: Stage) -> dict[str, Any]:
    rope, _ = decide_positions(of_stage(config, stage))
    steps = stage.steps if stage.steps is not None else -(-(stage.tokens or 0) // stage.tokens_per_step)
    return {
        "name": stage.name,
        "length": length_name(stage.length),
        "mix": [{"path": str(p.path), "length": length_name(p.length), "share": p.share} for p in stage.parts],
        "ends_after": "steps" if stage.steps is not None else "tokens",
        "steps": steps,
        "tokens": stage.tokens if stage.tokens is not None else steps * stage.tokens_per_step,
        "tokens_per_step": stage.tokens_per_step,
        "rows_per_step": stage.rows_per_step,
        "tokens_per_gpu": -(-stage.length // config.launch.gpus),
        "lr": stage.lr,
        "warmup_steps": stage.warmup_steps,
        "schedule": stage.schedule,
        "rope": {
            "target": rope.target,
            "factor": rope.factor,
            "rope_parameters": rope.rope_parameters,
            "max_position_embeddings": rope.max_position_embeddings,
        },
    }


def as_text(found: dict[str, Any]) -> str:
    """What `resolved` gives as YAML, and after it, in comments, the figures that one looks for first."""
    rope, at_most = found["rope"], max(len(printable(stage["name"])) for stage in found["stages"])
    why = f" ({rope['target']:,} / {rope['native']:,})" if rope["factor"] * rope["native"] == rope["target"] else ""
    gpus = "one GPU" if found["launch"]["gpus"] == 1 else f"each of {found['launch']['gpus']} GPUs"
    lines = [f"rope.factor: {rope['factor']}{why}"]
    for stage in found["stages"]:
        about = "" if stage["ends_after"] == "steps" else "about "
        steps = f"{about}{stage['steps']:,} steps"
        tokens = f"{stage['tokens_per_step']:,} tokens, {stage['tokens']:,} in all"
        share = f"{stage['tokens_per_gpu']:,} of a row on {gpus}"
        factor = f"; factor {stage['rope']['factor']}" if stage["rope"]["factor"] != rope["factor"] else ""
        name = printable(stage["name"])
        lines.append(f"stage {name:<{at_most}}  {steps} of {tokens}; {share}{factor}")
    lines.append(f"all{'':<{at_most + 3}}  {found['steps']:,} steps, {found['tokens']:,} tokens")
    return yaml.safe_dump(found, sort_keys=False) + "".join(f"# {line}\n" for line in lines)
