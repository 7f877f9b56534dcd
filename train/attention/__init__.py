"""Attention over packed rows: one forward pass takes a whole row, and each of its documents attends to itself alone.

    taken = attention.use(model, "auto")                                    # once; which path it is
    inputs = attention.row_inputs([700, 41, 283], device, across_documents=False)
    model(input_ids=ids_1T, use_cache=False, **inputs)                      # ids of the three documents, end to end

A row is batch 1 and exactly its documents, so there is no padding and no mask: where documents begin travels with the keywords
of the model's forward to the attention function of every layer. `paths` has the attention itself, each way a function of
queries, keys and values; `rows` what a row says of itself; `choice` how a way is chosen and put into a transformers model.
"""

from train.attention.choice import use
from train.attention.rows import row_inputs

__all__ = ["row_inputs", "use"]
