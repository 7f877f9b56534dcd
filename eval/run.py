"""Compare a tuned model with its base: `python -m eval.run --base smollm2 --tuned DIR --data OUT --lengths 2k,8k`.

For each length: likelihood of the test split's targets under the base and under the tuned model, after their own
repository's context and after another's (the grounding control). Writes results.json, in the manner of lm-eval, and
results.md; prints the table.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers

from eval.likelihood import examples, grounding, likelihood, summarise
from repo2ctx import __version__
from repo2ctx.config import length_name, parse_length
from repo2ctx.dataset import Dataset
from repo2ctx.errors import ModelError, OutputError, Repo2CtxError
from repo2ctx.models import check_vocabulary, load_base, load_tuned, model_name, pick_device, read_settings
from repo2ctx.progress import printable
from repo2ctx.prompt import PROMPT_VERSION
from repo2ctx.schema import SPLITS
from repo2ctx.shards import write_json, write_text


def evaluate(
    base: str | None, tuned: Path, data: Path, lengths: list[int], split: str, dtype: str, device: str
) -> dict[str, Any]:
    """All scores, by length, model and context. Raises Repo2CtxError."""
    device = pick_device(device)
    settings = read_settings(tuned)
    base = settings["base"] if base is None else base
    if settings["base"] != model_name(base):
        raise ModelError(f"{tuned}: was trained on {settings['base']!r}; compare it with --base {settings['base']}")
    dataset = Dataset(data)
    if settings["prompt_version"] != PROMPT_VERSION:
        raise ModelError(f"{tuned}: was trained with prompt version {settings['prompt_version']}, not {PROMPT_VERSION}")
    if settings["tokenizer_fingerprint"] != dataset.manifest["tokenizer_fingerprint"]:
        raise ModelError(f"{tuned}: was trained with another tokenizer than {data} was packed with; pack it anew")
    sets, spare = {}, {}
    for length in lengths:
        table = f"packed/{length_name(length)}/{split}"
        dataset.check(table)
        sets[length] = examples(dataset, table)
        others = (f"packed/{length_name(length)}/{s}" for s in SPLITS if s != split)
        spare[length] = [e for other in others for e in examples(dataset, other)]
        if not sets[length]:
            have = ", ".join(t for t in dataset.tables() if t.startswith("packed/"))
            raise OutputError(f"{data}: has no rows in {table}; it has {have}")
    results: dict[str, Any] = {length_name(n): {} for n in lengths}
    for name in ("base", "tuned"):
        model = load_base(base, dtype=dtype, device=device) if name == "base" else load_tuned(tuned, dtype, device)
        model.eval()
        for table in {f"packed/{length_name(n)}/{s}" for n in lengths for s in SPLITS}:
            check_vocabulary(model, dataset.id_range(table), f"{data}, {table}")
        for length in lengths:
            print(f"{name}, {length_name(length)}: {len(sets[length])} targets", file=sys.stderr, flush=True)
            scores = likelihood(model, sets[length], spare[length])
            results[length_name(length)][name] = {
                context: summarise(found) | {"examples": [asdict(s) for s in found]}
                for context, found in scores.items()
            } | {"grounding": grounding(scores)}
    return {
        "results": results,
        "config": {
            "base": base,
            "tuned": str(tuned),
            "data": str(data),
            "data_config_sha256": dataset.manifest["config_sha256"],
            "lengths": [length_name(n) for n in lengths],
            "split": split,
            "dtype": dtype,
            "device": device,
        },
        "versions": {
            "repo2ctx": __version__,
            "prompt": PROMPT_VERSION,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        "model": settings,
    }


def markdown(results: dict[str, Any]) -> str:
    """The table: a row per length and model. Grounding is what another repository's context costs, in nats per token."""
    lines = [
        "| length | model | n | NLL per token | bits per byte | NLL, other context | grounding |",
        "|---|---|---|---|---|---|---|",
    ]
    for length, models in results["results"].items():
        for name, contexts in models.items():
            own, other = contexts["own"], contexts["other"]
            cells = [
                length,
                name,
                str(own["n"]),
                _figure(own["nll_per_token"], own["nll_per_token_stderr"]),
                _figure(own["bits_per_byte"], own["bits_per_byte_stderr"]),
                _figure(other["nll_per_token"], other["nll_per_token_stderr"]),
                _figure(contexts["grounding"]),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _figure(value: float | None, error: float | None = None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" + (f" ± {error:.4f}" if error is not None else "")


def main() -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m eval.run", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--base", help="smollm2, a directory, or a Hub name; by default what the tuned model was trained on"
    )
    parser.add_argument("--tuned", type=Path, required=True, help="a directory that train.run wrote")
    parser.add_argument("--data", type=Path, required=True, help="the OUT of a build")
    parser.add_argument("--lengths", default="2k", help="such as 2k,8k")
    parser.add_argument("--split", default="test", choices=SPLITS)
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--out", type=Path, help="a directory for results.json and results.md")
    options = parser.parse_args()
    try:
        lengths = sorted({parse_length(n) for n in options.lengths.split(",")})
        how = (options.split, options.dtype, options.device)
        if options.out is not None:
            _can_write(options.out)
        results = evaluate(options.base, options.tuned, options.data, lengths, *how)
    except Repo2CtxError as error:
        print(*(f"eval: {printable(str(problem))}" for problem in error.args), sep="\n", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("eval: interrupted; nothing was written", file=sys.stderr)
        return 130
    table = markdown(results)
    print(table, end="", flush=True)
    try:
        if options.out is not None:
            write_json(options.out / "results.json", results)
            write_text(options.out / "results.md", table)
    except OSError as error:
        said = printable(f"{options.out}: the results above cannot be written ({error})")
        print(f"eval: {said}", file=sys.stderr)
        return 1
    return 0


def _can_write(out: Path) -> None:
    """Raise OutputError if results cannot be written, before hours are spent on them."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if taken := [name for name in ("results.json", "results.md") if (out / name).is_dir()]:
            raise OutputError(f"{out}: {taken[0]} there is a directory; give another --out")
        write_text(out / ".writable", "")
        (out / ".writable").unlink()
    except OSError as error:
        raise OutputError(f"{out}: cannot be written ({error.strerror}); give another --out") from error


if __name__ == "__main__":
    sys.exit(main())
