"""docs/where-the-sources-err.md quotes what its script prints, and nothing else."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "source_arithmetic.py"
# a number by itself: not a part of a name such as Llama-3.1, A100 or bfloat16, nor of a paper's or table's number
NUMBER = re.compile(r"(?<![\w.,:/-])(?<!table )\d[\d,]*(?:\.\d+)?(?:[KM]\b|%)?(?![\w-])")


@pytest.fixture(scope="module")
def printed() -> list[str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        check=True,
    )
    return [line for line in done.stdout.splitlines() if line and not line.startswith("# ")]


def test_the_page_quotes_what_the_script_prints(printed):
    page = (ROOT / "docs" / "where-the-sources-err.md").read_text()
    blocks = [line[4:] for line in page.splitlines() if line.startswith("    ")]
    assert blocks[0] == "python benchmarks/source_arithmetic.py"
    assert blocks[1:] == printed
    prose = " ".join(line for line in page.splitlines() if not line.startswith(("    ", "#")))
    quoted = {n.rstrip(",") for n in NUMBER.findall(re.sub(r"`[^`]*`", "", prose))}
    assert len(quoted) > 20
    figures = {n.rstrip(",") for line in printed for n in NUMBER.findall(line)}
    assert quoted - figures == {"0.1"}  # of YaRN's formula


def test_the_known_figures(printed):
    """By hand, with a calculator."""
    text = "\n".join(printed)
    weights = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    tokens = 2**20
    linear, attention = 2 * weights * tokens, 4 * 32 * 4096 * tokens**2 / 2
    step = 2 * (linear + attention) + linear + 2.5 * attention
    assert f"a LoRA step {step / 1e18:.2f} EFLOP" == "a LoRA step 1.34 EFLOP"
    assert re.search(r"a LoRA step +=  ?1\.34 EFLOP", text)
    assert f"at 45%: {1000 * step / (8 * 312e12 * 0.45) / 86400:.1f}" in text
    assert "1M      1,048,576 / 8,192 = 128     1.4852              6.91e+07" in text
