"""Next-token loss over the tokens that count; only the positions before those are projected to the vocabulary, some at a time.

The loss of a step is the weighted sum of -log p over all counted tokens of all its rows, divided by the sum of their weights: a
token's weight does not depend on how the tokens are cut into rows. A projection of P positions to V words would take 4 P V bytes
(538 GB for a million positions of Llama 3) and as much again for its gradient; here `chunk` positions are projected at a time,
and once more in the backward pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from repo2ctx.errors import ModelError
from train.batches import TrainingRow


def loss_sum(model: Any, row: TrainingRow, inputs: Mapping[str, Any], chunk: int) -> torch.Tensor:
    """Sum of weight * -log p(token | before) over the counted tokens of one row; a float32 scalar.

    model: a causal LM, or a PEFT model around one. inputs: what keeps the documents apart (`train.attention.row_inputs`).
    chunk: positions that are projected at once. Nothing is normalised here.
    """
    causal = _causal(model)
    ids_T = row.ids_T.to(model.device)
    hidden_TD = causal.base_model(input_ids=ids_T[None], use_cache=False, **inputs).last_hidden_state[0]
    before_P = (row.positions_P - 1).to(model.device)
    labels_P, weights_P = ids_T[before_P + 1], row.weights_P.to(model.device)
    hidden_PD = hidden_TD[before_P]
    head = causal.get_output_embeddings()
    total: torch.Tensor = hidden_PD.new_zeros((), dtype=torch.float32)
    for at in range(0, len(before_P), chunk):
        part = slice(at, at + chunk)
        arguments = (head, hidden_PD[part], labels_P[part], weights_P[part])
        if len(before_P) <= chunk or not torch.is_grad_enabled():
            total = total + _chunk_loss(*arguments)
        else:
            total = total + checkpoint(_chunk_loss, *arguments, use_reentrant=False)
    return total


def _chunk_loss(head: Any, hidden_PD: torch.Tensor, labels_P: torch.Tensor, weights_P: torch.Tensor) -> torch.Tensor:
    losses_P = F.cross_entropy(head(hidden_PD).float(), labels_P, reduction="none")
    return (losses_P * weights_P).sum()


def _causal(model: Any) -> Any:
    """The causal language model inside a PEFT model, whose layers hold the adapters."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@torch.no_grad()
def check_head(model: Any, ids_T: torch.Tensor, inputs: Mapping[str, Any], name: str) -> None:
    """Raise ModelError if the model makes its logits otherwise than by its head alone, as those do that cap or scale them.

    ids_T: some tokens of one document; inputs: as of `loss_sum`.
    """
    causal = _causal(model)
    training, ids_T = model.training, ids_T.to(model.device)
    model.eval()
    try:
        own_TV = causal(input_ids=ids_T[None], use_cache=False, **inputs).logits[0].float()
        hidden_TD = causal.base_model(input_ids=ids_T[None], use_cache=False, **inputs).last_hidden_state[0]
        ours_TV = causal.get_output_embeddings()(hidden_TD).float()
    finally:
        model.train(training)
    scale = own_TV.abs().max().clamp(min=1.0)
    if not ((own_TV - ours_TV).abs().max() / scale < 1e-3):
        raise ModelError(
            f"model {name!r}: does more to its logits than its output layer (it caps or scales them, or its weights are not "
            "finite); such models are not trained yet"
        )
