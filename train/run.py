"""Fine-tune a model on packed rows: `python -m train.run --config data/recipes/demo.yaml [section.key=value …]`.

Running the same command again goes on from the newest checkpoint (`train.loop`). SIGTERM saves and ends with 0.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

import yaml

from repo2ctx.config import read_config
from repo2ctx.errors import ConfigError, Repo2CtxError
from repo2ctx.progress import printable
from repo2ctx.strict_yaml import read_yaml
from train.config import TrainConfig


def parse_overrides(pairs: list[str]) -> dict[str, Any]:
    """`section.key=value`, or `stages.0.key=value`, … -> nested values, each read as YAML. Raises ConfigError."""
    found: dict[str, Any] = {}
    names: list[str] = []
    for pair in pairs:
        name, equals, text = pair.partition("=")
        keys = name.split(".")
        try:
            value = read_yaml(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise ConfigError(f"{pair!r}: its value is not YAML ({' '.join(str(error).split())[:200]})") from error
        if not equals or not all(keys):
            raise ConfigError(f"{pair!r}: expected section.key=value, such as optim.steps=100, or seed=1")
        if len(keys) > 1 and keys[0] == "stages" and not keys[1].isdecimal():
            raise ConfigError(
                f"{pair!r}: stages are numbered, such as stages.0.steps=100; or give stages whole, as YAML"
            )
        if len(keys) > 2 + (keys[0] == "stages"):
            whole = ".".join(keys[: 3 if keys[0] == "stages" else 2])
            raise ConfigError(f"{pair!r}: reaches too deep; give {whole} whole, as YAML in one line")
        if twice := next((n for n in names if f"{n}.".startswith(f"{name}.") or f"{name}.".startswith(f"{n}.")), None):
            raise ConfigError(f"{pair!r}: {twice} was given before it; leave one out")
        names.append(name)
        below = found
        for key in keys[:-1]:
            below = below.setdefault(key, {})
        below[keys[-1]] = value
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
        config = read_config(TrainConfig, options.config, parse_overrides(options.overrides))
        if options.out is not None:
            config = config.model_copy(update={"out": options.out})
        if options.dry_run:
            from train.dry_run import as_text, resolved

            print(as_text(resolved(config)), end="")
            return 0
        from train.loop import Interrupted, train

        try:
            print(printable(str(train(config))))
        except Interrupted as ended:
            print(f"train: {printable(str(ended))}; run the same command again to go on", file=sys.stderr)
            return 0 if ended.signum == signal.SIGTERM else 130
        return 0
    except Repo2CtxError as error:
        print(*(f"train: {printable(str(problem))}" for problem in error.args), sep="\n", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"train: {printable(str(error))}; mend that, and run the same command again to go on", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "train: interrupted; run the same command again to go on from the newest checkpoint, if there is one",
            file=sys.stderr,
        )
        return 130


if __name__ == "__main__":
    sys.exit(main())
