"""What machine a benchmark ran on: every figure is told with it."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """Processor, how many of it, and the version of Python."""
    return f"{_processor()}, {os.cpu_count()} processors, Python {platform.python_version()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    found = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
    return found[0] if found else platform.processor() or platform.machine()
