"""The dataset card: a README.md whose front matter lets `datasets.load_dataset(OUT, "packed-32k")` find the shards."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from repo2ctx.config import parse_length
from repo2ctx.dataset import Dataset
from repo2ctx.schema import SPLITS, usable_targets
from repo2ctx.selection import REASONS
from repo2ctx.shards import write_text

_SINGLE = ("files", "repositories", "edges")


CARD = "README.md"


def write_card(out: Path, manifest: dict[str, Any]) -> str:
    """Write OUT/README.md from the manifest and the table of repositories; returns its SHA-256."""
    front = yaml.safe_dump(front_matter(manifest), sort_keys=False, allow_unicode=True)
    repositories = list(Dataset(out, manifest).rows("repositories", ("id", "license", "targets")))
    text = f"---\n{front}---\n\n{_body(manifest, repositories)}"
    write_text(out / CARD, text)
    return hashlib.sha256(text.encode()).hexdigest()


def keep_card(out: Path, manifest: dict[str, Any]) -> None:
    """Write the card again if it is gone: without it `datasets` does not find the tables."""
    if not (out / CARD).exists():
        write_card(out, manifest)


def front_matter(manifest: dict[str, Any]) -> dict[str, Any]:
    """What tells `datasets` which shards belong to which config."""
    configs: list[dict[str, Any]] = []
    lengths = sorted({t.split("/")[1] for t in manifest["tables"] if t.startswith("packed/")}, key=parse_length)
    for length in lengths:
        splits = [s for s in SPLITS if manifest["tables"].get(f"packed/{length}/{s}")]
        files = [{"split": s, "path": f"packed/{length}/{s}/*.arrow"} for s in splits]
        configs.append({"config_name": f"packed-{length}", "data_files": files})
    for table in _SINGLE:
        if manifest["tables"][table]:
            configs.append({"config_name": table, "data_files": [{"split": "train", "path": f"{table}/*.arrow"}]})
    if configs:
        configs[-1 if not lengths else len(lengths) - 1]["default"] = True
    return {"configs": configs, "tags": ["code", "long-context", "repository", "summarization"]}


def _body(manifest: dict[str, Any], repositories: list[dict[str, Any]]) -> str:
    summary = manifest["summary"]
    lines = [
        "# Repositories as long-context rows",
        "",
        f"Built by {manifest['tool']} (schema {manifest['schema_version']}, prompt {manifest['prompt_version']}) from "
        f"{len(repositories)} repositories, with the tokenizer `{_tokenizer(manifest)}`. Each "
        "document is a repository: its files in dependency order, then a summary. Every repository is pinned to a "
        "commit; the code stays under its own licence, named per row of `repositories`.",
        "",
        "| length | documents | tokens | of targets | files left out |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {v['documents']:,} | {v['tokens']:,} | {v['target_tokens']:,} | {v['left_out']:,} |"
            for name, v in sorted(summary["packed"].items(), key=lambda item: parse_length(item[0]))
        ),
        "",
        *_repeated(manifest, repositories),
        "A row of `packed-<length>` has `input_ids`; `segments`: {repository, style, start, target_start, target_end, "
        "leak_share, leak_run}, the context from start to target_start, the target to target_end, and how much of the target "
        "the context holds; and `spans`: {segment, path, start, end, fidelity, text_sha256}, where each file stands. "
        "`files` has every file of every repository with its fate.",
        "",
        "| fate | files | meaning |",
        "|---|---|---|",
        *(f"| {fate} | {n:,} | {REASONS.get(fate, 'part of the context')} |" for fate, n in summary["fates"].items()),
        "",
        "| licence | repositories |",
        "|---|---|",
        *(f"| {name} | {n} |" for name, n in sorted(Counter(r["license"] for r in repositories).items())),
        "",
        "| style | target from | repositories |",
        "|---|---|---|",
        *(f"| {style} | {name} | {n} |" for style, found in summary["targets"].items() for name, n in found.items()),
        "",
        *_counted("texts that were no target, because", summary["rejected"]),
        *_counted("repositories not taken, because", summary["not_taken"]),
        *_leaks([target for r in repositories for target in r["targets"]]),
        *_teacher(manifest.get("teacher")),
        "A target's licence is its repository's, or NOASSERTION for what the list or a teacher says.",
        "",
    ]
    return "\n".join(lines)


def _tokenizer(manifest: dict[str, Any]) -> str:
    """A name that is fit to publish: a path says where somebody keeps his files, so its last part stands for it."""
    name: str = manifest["config"]["tokens"]["tokenizer"]
    return Path(name).name if Path(name).is_absolute() or name.startswith((".", "~")) else name


def _repeated(manifest: dict[str, Any], repositories: list[dict[str, Any]]) -> list[str]:
    """How often a target comes, which decides how many epochs are too many."""
    targets = sum(len(usable_targets(r)) for r in repositories)
    most = max((v["documents"] for v in manifest["summary"]["packed"].values()), default=0)
    if most <= targets:
        return []
    return [
        f"There are {targets:,} different targets: for training, a long repository stands in several documents, of the whole "
        "length and of a half, a quarter and an eighth of it, with the same target.",
        "",
    ]


def _counted(heading: str, counts: dict[str, int]) -> list[str]:
    rows = [f"| {name} | {n:,} |" for name, n in counts.items()]
    return [f"| {heading} | |", "|---|---|", *rows, ""] if rows else []


def _teacher(teacher: dict[str, Any] | None) -> list[str]:
    if teacher is None:
        return []
    host = f" at {teacher['host']}" if teacher["host"] else ", from its kept answers"
    return [
        f"Targets from `teacher` were written by the model `{teacher['model']}`{host} (prompt {teacher['prompt_version']}), from "
        "the same files in the same order: a model trained on them learns from that model, whose terms may restrict it.",
        "",
    ]


def _leaks(targets: list[dict[str, Any]]) -> list[str]:
    """The mean and the largest leak figures, before anything left the context and after."""
    if not targets:
        return []
    lines = ["| of a target, in its repository's files | before | after |", "|---|---|---|"]
    for name, key, form in (
        ("share of its 8-grams", "leak_share", ".1%"),
        ("longest run, in words", "leak_run", ".1f"),
    ):
        before, after = ([target[k] for target in targets] for k in (f"{key}_before", key))
        for what, of in (("mean", lambda values: sum(values) / len(values)), ("largest", max)):
            lines.append(f"| {name}, {what} | {of(before):{form}} | {of(after):{form}} |")
    return [*lines, ""]
