"""Where the documents of a row begin: what the model's forward is told, and what the attention function reads of it.

Boundaries are told twice. `cu_seq_lens_q` and the other names of transformers are on the device, for kernels that take a
whole row; `document_lengths` are Python integers, so that a layer that goes document by document need not wait for the device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Row:
    """The documents of one row, end to end. starts_N1: int32, where each starts, and the row's end, on the device."""

    lengths: tuple[int, ...]
    starts_N1: torch.Tensor

    @property
    def tokens(self) -> int:
        return sum(self.lengths)

    @property
    def longest(self) -> int:
        return max(self.lengths)


def row_of(lengths: Sequence[int], device: torch.device | str) -> Row:
    """A row of documents of these lengths, in tokens. Raises ValueError for none, and for one without a token."""
    if not lengths or min(lengths) < 1:
        raise ValueError(f"a row needs documents, each of at least one token, not lengths {list(lengths)}")
    starts = list(accumulate(lengths, initial=0))
    return Row(tuple(lengths), torch.tensor(starts, dtype=torch.int32, device=device))


def row_inputs(lengths: Sequence[int], device: torch.device | str, across_documents: bool) -> dict[str, Any]:
    """The keywords for the forward of one row, beside `input_ids` of shape (1, T).

    lengths: of its documents, in tokens, in their order; their sum is T. across_documents: False, and positions start from 0 in
    every document, which sees itself alone; True, and they run on through the row, where every token sees all before it.
    Raises ValueError for no document, and for one without a token.
    """
    row = row_of(lengths, device)
    if across_documents:
        row = row_of([row.tokens], device)
    positions_1T = torch.cat([torch.arange(n, device=device) for n in row.lengths])[None]
    return {
        "position_ids": positions_1T,
        "cu_seq_lens_q": row.starts_N1,
        "cu_seq_lens_k": row.starts_N1,
        "max_length_q": row.longest,
        "max_length_k": row.longest,
        "document_lengths": row.lengths,
    }


def row_from(keywords: Mapping[str, Any], tokens: int) -> Row:
    """The row that `row_inputs` told of, as it arrives at a layer of `tokens` tokens.

    Raises ValueError if it does not arrive, or is not of this many tokens.
    """
    lengths, starts = keywords.get("document_lengths"), keywords.get("cu_seq_lens_q")
    if lengths is None or starts is None:
        raise ValueError(
            "attention does not know where the row's documents begin: give the model's forward what "
            "train.attention.row_inputs returns, or set another attention with model.set_attn_implementation"
        )
    if sum(lengths) != tokens or len(starts) != len(lengths) + 1:
        raise ValueError(
            f"a row of {tokens} tokens does not have documents of {list(lengths)}: row_inputs is of another"
        )
    return Row(lengths, starts)
