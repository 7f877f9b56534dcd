"""Whether a step may change the weights: its loss and gradient norm must be finite, and the norm no spike."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from repo2ctx.errors import Repo2CtxError
from train.config import GuardSection


class Guard:
    """Judges steps. A spike is a gradient norm of more than `spike_factor` times the median of the last `spike_window` ones."""

    def __init__(self, section: GuardSection):
        self.section = section
        self.norms: deque[float] = deque(maxlen=section.spike_window)
        self.skipped = 0  # in a row

    def judge(self, step: int, loss: float, norm: float, rows: Sequence[str]) -> str | None:
        """None if the step may change the weights, else why it is skipped.

        rows: the names of the step's rows. Raises Repo2CtxError where the configuration says that the run stops.
        """
        what, action, way = self._wrong(loss, norm)
        if not what or action == "ignore":
            if math.isfinite(norm):
                self.norms.append(norm)
            self.skipped = 0
            return None
        said = f"step {step}: {what}, on {_names(rows)}"
        self.skipped += 1
        if action == "stop":
            raise Repo2CtxError(f"{said}; {way}; nothing of this step is kept")
        if self.skipped > self.section.most_skipped:
            raise Repo2CtxError(
                f"{said}; {self.skipped} steps in a row were skipped (guard.most_skipped {self.section.most_skipped}); {way}"
            )
        return what

    def _wrong(self, loss: float, norm: float) -> tuple[str, str, str]:
        """(what is wrong or nothing, what to do about it, the way out)."""
        if not (math.isfinite(loss) and math.isfinite(norm)):
            way = "lower optim.lr, or look at the base and the rows, or set guard.not_finite=skip"
            return f"loss {loss}, gradient norm {norm}", self.section.not_finite, way
        usual = median(self.norms) if len(self.norms) == self.norms.maxlen else math.inf
        if norm > self.section.spike_factor * usual:
            way = "look at the rows, lower optim.lr, raise guard.spike_factor, or set guard.spike=skip"
            return f"gradient norm {norm:.4g}, usually {usual:.4g}", self.section.spike, way
        return "", "ignore", ""

    def state_dict(self) -> dict[str, Any]:
        return {"norms": list(self.norms), "skipped": self.skipped}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.norms.clear()
        self.norms.extend(state["norms"])
        self.skipped = state["skipped"]


def _names(rows: Sequence[str], most: int = 8) -> str:
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return ", ".join(rows[:most]) + more
