"""What a build did, read from its manifest: for the table at its end, and for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repo2ctx.config import parse_length
from repo2ctx.records import Failure


@dataclass(slots=True)
class BuildResult:
    """The figures of a build."""

    out: Path
    repositories: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    targets: dict[str, dict[str, int]] = field(default_factory=dict)  # style -> source -> repositories
    rejected: Counter[str] = field(default_factory=Counter)  # reason -> texts
    not_taken: Counter[str] = field(default_factory=Counter)  # reason -> repositories
    splits: Counter[str] = field(default_factory=Counter)
    packed: dict[str, dict[str, int]] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    left_out: list[Failure] = field(
        default_factory=list
    )  # repositories that would tie two splits; trying again is no help
    teacher_tokens: int = 0  # spent on a teacher now and in the runs that this one went on from
    unchanged: bool = False


def result_of(out: Path, manifest: dict[str, Any], unchanged: bool = False) -> BuildResult:
    """The figures that a manifest holds. unchanged: nothing had to be done."""
    summary = manifest["summary"]
    packed = {name: dict(summary["packed"][name]) for name in sorted(summary["packed"], key=parse_length)}
    for name, values in packed.items():
        tables = [t for t in manifest["tables"] if t.startswith(f"packed/{name}/")]
        values["rows"] = sum(s["rows"] for t in tables for s in manifest["tables"][t])
    return BuildResult(
        out=out,
        repositories=len(manifest["repositories"]),
        fates=Counter(summary["fates"]),
        targets=summary["targets"],
        rejected=Counter(summary["rejected"]),
        not_taken=Counter(summary["not_taken"]),
        splits=Counter(summary["splits"]),
        packed=packed,
        refused=Counter(summary["refused"]) + Counter({"no target": summary["without_target"]}),
        unchanged=unchanged,
    )
