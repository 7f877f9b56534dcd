"""RoPE for a longer context, computed from the native and the target length; pure.

YaRN (Peng et al. 2023, arXiv:2309.00071): frequencies that turn often within the native length are kept, those that never
finish a turn are divided by the factor s = target / native, and between them a ramp; attention logits are scaled by
(0.1 ln s + 1)^2, as a factor of 0.1 ln s + 1 on queries and keys. transformers applies it from `rope_parameters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def yarn_parameters(native: int, target: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """`rope_parameters` for positions up to `target` of a model trained on `native` positions.

    given: the model's own, of type default: rope_theta, and whatever else it has, such as partial_rotary_factor, stays.
    A target that the native length covers leaves RoPE as it is. Raises ValueError for lengths that are not positive.
    """
    if native <= 0 or target <= 0:
        raise ValueError(f"lengths must be positive, not native {native} and target {target}")
    if target <= native:
        return {**given, "rope_type": "default"}
    return {
        **given,
        "rope_type": "yarn",
        "factor": target / native,
        "original_max_position_embeddings": native,
    }
