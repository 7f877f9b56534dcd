"""Fine-tune a model on packed rows: `python -m train.run --config data/recipes/demo.yaml [section.key=value …]`.

One process. A step takes `optim.rows_per_step` rows; each document of a row goes through the model by itself, so that
documents do not see each other, and its loss counts by its target's tokens over all target tokens of the step.
Running the same command again goes on from the newest checkpoint, to the last bit on a CPU.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

import torch
import yaml

from repo2ctx.config import TokensConfig, read_config
from repo2ctx.errors import ConfigError, Repo2CtxError
from repo2ctx.models import tokenizer_files
from repo2ctx.prompt import PROMPT_VERSION
from repo2ctx.schema import SCHEMA_VERSION
from repo2ctx.tokens import load_tokenizer
from train.batches import Rows
from train.checkpoint import load_checkpoint, newest, save_adapter, save_checkpoint
from train.config import TrainConfig
from train.loss import target_loss_sum
from train.metrics import Metrics
from train.model import describe, make_model
from train.output import run_directory


def train(config: TrainConfig) -> Path:
    """Train, and return the directory of the finished adapter. Raises Repo2CtxError."""
    torch.manual_seed(config.seed)
    rows = Rows(config.data.path, config.data.table, config.seed)
    chat = rows.dataset.manifest["config"]["tokens"]["chat"]
    tokenizer = tokenizer_files(config.model.base)
    wanted = TokensConfig(tokenizer=str(tokenizer[0].parent), chat=chat)
    rows.check_tokenizer(load_tokenizer(wanted), config.model.base)
    model, settings = make_model(config)
    settings |= {
        "prompt_version": PROMPT_VERSION,
        "chat": chat,
        "schema_version": SCHEMA_VERSION,
        "tokenizer_fingerprint": rows.dataset.manifest["tokenizer_fingerprint"],
        "length": config.data.length,
    }
    weights = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=config.optim.lr, weight_decay=config.optim.weight_decay)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _schedule(step, config))
    checkpoints, step, last = config.out / "checkpoints", 0, config.optim.steps

    with run_directory(config.out, {"config": config.model_dump(mode="json"), "rows": rows.digest}):
        if (place := newest(checkpoints)) is not None:
            step = load_checkpoint(place, model, optimizer, scheduler)
        with Metrics(config.out / "metrics.jsonl", last, step) as metrics:
            metrics.notice(describe(model, settings, rows.count))
            if place is not None:
                metrics.notice(f"nothing to do: {place} is the end" if step == last else f"going on from {place}")
            while step < last:
                start, first = time.monotonic(), step * config.optim.rows_per_step
                documents = [d for k in range(first, first + config.optim.rows_per_step) for d in rows.documents(k)]
                counted = sum(d.counted for d in documents)
                loss = 0.0
                for document in documents:
                    ids_T = document.ids_T.to(model.device)
                    part = target_loss_sum(model, ids_T, document.target_start) / counted
                    part.backward()  # type: ignore[no-untyped-call]
                    loss += part.item()
                norm = torch.nn.utils.clip_grad_norm_(weights, config.optim.clip_norm).item()
                rate = scheduler.get_last_lr()[0]
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                step += 1
                if not (math.isfinite(loss) and math.isfinite(norm) and all(p.isfinite().all() for p in weights)):
                    names = ", ".join(str(rows.index(k)) for k in range(first, first + config.optim.rows_per_step))
                    raise Repo2CtxError(
                        f"step {step}: loss {loss}, gradient norm {norm}, or weights that are not finite, on rows {names} of "
                        f"{config.data.table}; lower optim.lr, or look at the base and the rows; nothing of this step is kept"
                    )
                tokens, seconds = sum(len(d.ids_T) for d in documents), time.monotonic() - start
                record = {"step": step, "loss": loss, "grad_norm": norm, "lr": rate, "target_tokens": counted}
                record |= {"tokens": tokens, "seconds": round(seconds, 3), "tokens_per_s": round(tokens / seconds, 1)}
                metrics.write(record)
                if step % config.checkpoint.every == 0 or step == last:
                    keep = config.checkpoint.keep
                    save_checkpoint(checkpoints, model, tokenizer, settings, optimizer, scheduler, step, keep)
                    metrics.notice(f"saved checkpoint {step}")
        save_adapter(model, tokenizer, settings, config.out / "model")
    return config.out / "model"


def _schedule(step: int, config: TrainConfig) -> float:
    """Linear warm-up, then cosine to a tenth."""
    if step < config.optim.warmup_steps:
        return (step + 1) / (config.optim.warmup_steps + 1)
    done = (step - config.optim.warmup_steps) / max(1, config.optim.steps - config.optim.warmup_steps)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, done)))


def _overrides(pairs: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        section, dot, key = name.partition(".")
        try:
            value = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise ConfigError(f"{pair!r}: its value is not YAML ({' '.join(str(error).split())[:200]})") from error
        if not equals or not section or (dot and not key):
            raise ConfigError(f"{pair!r}: expected section.key=value, such as optim.steps=100, or seed=1")
        if dot and isinstance(found.setdefault(section, {}), dict):
            found[section][key] = value
        else:
            found[section] = value
    return found


def main() -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m train.run", description=__doc__.partition("\n")[0])
    parser.add_argument("--config", type=Path, required=True, help="a recipe, such as data/recipes/demo.yaml")
    parser.add_argument("--out", type=Path, help="where the run goes, instead of the recipe's")
    parser.add_argument("--dry-run", action="store_true", help="print the resolved configuration and stop")
    parser.add_argument("overrides", nargs="*", metavar="section.key=value")
    options = parser.parse_args()
    try:
        config = read_config(TrainConfig, options.config, _overrides(options.overrides))
        if options.out is not None:
            config = config.model_copy(update={"out": options.out})
        if options.dry_run:
            print(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False), end="")
            return 0
        print(train(config))
        return 0
    except Repo2CtxError as error:
        print(*(f"train: {line}" for line in str(error).splitlines()), sep="\n", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"train: {error}; mend that, and run the same command again to go on", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("train: interrupted; run the same command again to go on from the newest checkpoint", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
