"""What a process has used."""

from __future__ import annotations

import resource
import sys

_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes of what the system counts memory in


def peak_memory() -> tuple[int, int]:
    """The most bytes of memory that this process ever held, and the most of one of those that it has waited for."""
    own, others = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own * _UNIT, others * _UNIT
