"""Likelihood of targets: negative log-likelihood per token and bits per byte of the target's text.

Own: the target after its own repository's context. Other: the same target after another repository's context of the same
length and style: the next one of the split, or of the other splits where the split has no other. A model that reads does
better on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from repo2ctx.dataset import Dataset
from repo2ctx.errors import ModelError
from repo2ctx.schema import target_text


@dataclass(frozen=True, slots=True)
class Example:
    """One document of the test split, cut into its context and its target; token ids."""

    repository: str
    style: str
    context_C: npt.NDArray[np.int32]
    target_T: npt.NDArray[np.int32]
    target_bytes: int


@dataclass(frozen=True, slots=True)
class Score:
    """What a model makes of one target."""

    repository: str
    style: str
    nll: float  # nats, summed over the target's tokens
    tokens: int
    bytes: int


def examples(dataset: Dataset, table: str) -> list[Example]:
    """The documents of a packed table, in the table's order."""
    rows = {r["id"]: r for r in dataset.repositories()}
    found = []
    for index in range(sum(shard.rows for shard in dataset.shards(table))):
        row = dataset.packed_row(table, index, ("input_ids", "segments"))
        for s in row["segments"]:
            context = row["input_ids"][s["start"] : s["target_start"]]
            target = row["input_ids"][s["target_start"] : s["target_end"]]
            text = target_text(rows[s["repository"]], s["style"])
            found.append(Example(s["repository"], s["style"], context, target, len(text.encode())))
    return found


def score(model: Any, example: Example, context_C: npt.NDArray[np.int32]) -> Score:
    """The target's likelihood after a context; only the target's positions are projected to the vocabulary."""
    ids = torch.from_numpy(np.concatenate([context_C, example.target_T]).astype(np.int64)).to(model.device)
    with torch.inference_mode():
        logits_TV = model(input_ids=ids[None], use_cache=False, logits_to_keep=len(example.target_T) + 1).logits[0]
        nll = F.cross_entropy(logits_TV[:-1].float(), ids[len(context_C) :], reduction="sum").item()
    if not math.isfinite(nll):
        raise ModelError(f"{example.repository}: its target has likelihood {nll}; the model's weights are not sound")
    return Score(example.repository, example.style, nll, len(example.target_T), example.target_bytes)


def likelihood(model: Any, found: Sequence[Example], spare: Sequence[Example]) -> dict[str, list[Score]]:
    """Scores of every example under its own context and, where there is one, under another's.

    spare: examples of other splits, whose contexts serve where `found` has no other repository of the style.
    """
    own = [score(model, e, e.context_C) for e in found]
    others = [(e, _another(found, i) or _another([e, *spare], 0)) for i, e in enumerate(found)]
    return {"own": own, "other": [score(model, e, other.context_C) for e, other in others if other is not None]}


def _another(ring: Sequence[Example], i: int) -> Example | None:
    """The next example after `i`, around the ring, of another repository and in the same style."""
    for other in [*ring[i + 1 :], *ring[:i]]:
        if other.repository != ring[i].repository and other.style == ring[i].style:
            return other
    return None


def summarise(scores: Sequence[Score]) -> dict[str, float | int | None]:
    """Mean over examples of NLL per token and bits per byte, with the standard error of the mean."""
    per_token = [s.nll / s.tokens for s in scores]
    per_byte = [s.nll / math.log(2) / s.bytes for s in scores]
    return {
        "n": len(scores),
        "nll_per_token": _mean(per_token),
        "nll_per_token_stderr": _stderr(per_token),
        "bits_per_byte": _mean(per_byte),
        "bits_per_byte_stderr": _stderr(per_byte),
    }


def grounding(scores: dict[str, list[Score]]) -> float | None:
    """What another repository's context costs, in nats per token: mean over the targets that were scored under both."""
    own = {(s.repository, s.style): s.nll / s.tokens for s in scores["own"]}
    return _mean([s.nll / s.tokens - own[s.repository, s.style] for s in scores["other"]])


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _stderr(values: Sequence[float]) -> float | None:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
