"""How much memory a run holds, and what to change when it is not enough."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from repo2ctx.errors import Repo2CtxError
from train.config import TrainConfig

_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes of what the system counts memory in


def used_gb(device: torch.device) -> float:
    """The most memory held so far, in 10^9 bytes: of the GPU, or of the process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT / 1e9


@contextmanager
def told_out_of_memory(config: TrainConfig, what: str, tokens: int) -> Iterator[None]:
    """Turn an allocator's failure into what can be changed. what: the row at work, of so many tokens."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if (
            isinstance(error, RuntimeError)
            and not isinstance(error, torch.OutOfMemoryError)
            and "allocat" not in str(error)
        ):
            raise
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise Repo2CtxError(
            f"out of memory on {what}, of {tokens:,} tokens ({said[0][:200]}); {'; or '.join(_ways(config))}. Run the same "
            "command again to go on from the newest checkpoint, with another `out` if what you changed decides the result"
        ) from error


def _ways(config: TrainConfig) -> list[str]:
    """What takes less, the cheapest first."""
    ways = [] if config.model.checkpointing else ["set model.checkpointing=true"]
    if config.model.dtype != "bfloat16":
        ways.append("set model.dtype=bfloat16")
    if config.loss.chunk > 256 and (config.loss.context_weight or config.loss.chunk > 1024):
        ways.append(f"set loss.chunk={max(256, config.loss.chunk // 4)}")
    if config.attention.path in ("eager", "sdpa-math"):
        ways.append("set attention.path=auto, which holds no matrix of all pairs of tokens")
    if config.adapter.kind in ("full", "lora+"):
        ways.append("set adapter.kind=lora")
    elif config.adapter.kind == "lora":
        ways.append("set adapter.kind=qlora")
    return [*ways, "train on shorter rows", "take a device with more memory"]
