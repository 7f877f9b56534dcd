"""Next-token loss on target tokens only; only positions that have a label are projected to the vocabulary.

The loss of a step is the sum over all counted tokens of all its documents, divided by their number: a document's weight
is the length of its target, however the rows are cut into batches.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F


def target_loss_sum(model: Any, ids_T: torch.Tensor, target_start: int) -> torch.Tensor:
    """Sum of -log p(token | before) over tokens target_start … T-1 of one document.

    model: a causal LM, or a PEFT model around one. ids_T: int64 token ids of one document alone, so that no other
    document can be seen, positions from 0, on the model's device. target_start: at least 1. Returns a float32 scalar.
    """
    counted = len(ids_T) - target_start
    logits_NV = model(input_ids=ids_T[None], use_cache=False, logits_to_keep=counted + 1).logits[0, :-1].float()
    return F.cross_entropy(logits_NV, ids_T[target_start:], reduction="sum")
