"""Metrics as JSON lines, and a progress display on stderr."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


class Metrics:
    """Appends a line per step to `path`; on resume, lines after the checkpoint's step are dropped."""

    def __init__(self, path: Path, steps: int, after: int):
        self.path, self.steps = path, steps
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = []
        if path.exists():
            kept = [line for line in path.read_text("utf-8").splitlines() if json.loads(line)["step"] <= after]
        path.write_text("".join(line + "\n" for line in kept), "utf-8")
        self.start, self.first = time.monotonic(), after

    def write(self, record: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        done = record["step"] - self.first
        left = (time.monotonic() - self.start) / done * (self.steps - record["step"])
        print(
            f"step {record['step']:>5}/{self.steps}  loss {record['loss']:.4f}  norm {record['grad_norm']:.3f}  "
            f"{record['tokens_per_s']:,.0f} tokens/s  {left:,.0f} s left",
            file=sys.stderr,
            flush=True,
        )
