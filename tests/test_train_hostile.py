"""What a person, a file or a terminal can do to `train.run` and `eval.run`: everything is told in one line, and nothing guessed."""

import json
import math
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from test_train import changed
from tiny import Silent, tiny_shape
from transformers import LlamaForCausalLM

from eval import run as eval_run
from eval.run import evaluate
from repo2ctx.config import read_config
from repo2ctx.errors import ConfigError, ModelError, OutputError
from repo2ctx.summarize import summarize
from train import run as train_run
from train.batches import training_row
from train.config import LossSection, TrainConfig
from train.dry_run import resolved
from train.loop import train

ROOT = Path(__file__).parents[1]
WHOLE = "data: {path: x, length: 1k}\nout: y\n"


def run(main, monkeypatch, capsys, *arguments) -> tuple[int, str, str]:
    """(exit code, stdout, stderr)."""
    monkeypatch.setattr("sys.argv", ["command", *map(str, arguments)])
    code = main()
    said = capsys.readouterr()
    return code, said.out, said.err


def recipe_of(config: TrainConfig, **sections) -> Path:
    recipe = config.out.with_name("recipe.yaml")
    recipe.write_text(yaml.safe_dump(changed(config, **sections).model_dump(mode="json")))
    return recipe


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seed: 1\nseed: 2\n", "key 'seed' stands there twice"),
        ("optim: {steps: 1, lr: 0.1, steps: 2}\n", "key 'steps' stands there twice"),
        ("stages: [{length: 1k, steps: 1, length: 2k}]\n", "key 'length' stands there twice"),
        ("stages: [{length: 1k, step: 1}]\n", r"'stages.0.step'; did you mean 'steps'\?"),
        ("stages: [{length: 1k, mix: [{length: 1k, share: 1, shard: 1}]}]\n", r"did you mean 'share'\?"),
        ("stages: [{length: 1k, tokens: 0}]\n", "stages.0.tokens: expected a number of tokens"),
        ("stages: [{length: true}]\n", "stages.0.length: expected a length"),
        ("rope: {target: 5}\n", "rope.target: length '5'"),
        ("rope: {factor: 1.0e+308}\n", "rope.factor"),
        ("validation: {short: 17m}\n", "validation.short: length '17m'"),
        ("optim: {betas: [1, 0.9]}\n", "optim.betas.0"),
        ("optim: {betas: [0.9, -1]}\n", "optim.betas.1"),
        (f"optim: {{warmup_steps: {'9' * 400}}}\n", "optim.warmup_steps"),
        (f"optim: {{steps: {'9' * 400}}}\n", "optim.steps"),
        (f"adapter: {{alpha: {'9' * 400}}}\n", "adapter.alpha"),
        (f"guard: {{spike_window: {'9' * 30}}}\n", "guard.spike_window"),
        ("loss: {target_weight: 1.0e+308}\n", "loss.target_weight"),
        ("loss: {target_weight: 1.0e-320}\n", "loss.target_weight"),
        ("loss: {context_weight: 1.0e+308}\n", "loss.context_weight"),
        ("model: &m {shape: *m}\n", "holds itself"),
        ('model: {base: "a\\0b"}\n', "model.base: holds a NUL character"),
        ('stages: [{length: 1k, mix: [{length: 1k, share: 1, path: "\\0"}]}]\n', "stages.0.mix.0.path: holds a NUL"),
    ],
)
def test_recipes_that_cannot_be_used(tmp_path, text, says):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(WHOLE + text)
    with pytest.raises(ConfigError, match=says):
        read_config(TrainConfig, recipe, {})


def test_what_only_looks_like_a_key_twice(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        WHOLE + "checkpoint: &c {every: 3, keep: 4}\nmodel: {shape: {<<: *c, every: 5, x: {y: 1}, z: {y: 1}}}\n"
    )
    shape = read_config(TrainConfig, recipe, {}).model.shape
    assert (shape["every"], shape["keep"]) == (5, 4)


@pytest.mark.parametrize(
    "pairs",
    [
        ["optim.lr=1", "optim.lr=2"],
        ["optim.lr=1", "optim={steps: 3}"],
        ["optim={steps: 3}", "optim.lr=1"],
        ["seed=1", "optim.lr=1", "seed=1"],
    ],
)
def test_overrides_that_contradict_each_other(pairs):
    with pytest.raises(ConfigError, match="was given before it; leave one out"):
        train_run.parse_overrides(pairs)
    with pytest.raises(ConfigError, match="key 'x' stands there twice"):
        train_run.parse_overrides(["model.shape={x: 1, x: 2}"])


STEERS = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e\n"


def safe(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ({"data": {"path": f"/{STEERS}"}}, 1),
        ({"model": {"base": f"/{STEERS}"}}, 2),
        ({"model": {"base": f"some/{STEERS}"}}, 2),
        ({"model": {"shape": f"/{STEERS}"}}, 2),
        ({"adapter": {"modules": (STEERS,)}}, 2),
        ({"stages": [{"length": "1k", "name": STEERS}, {"length": "512", "name": STEERS}]}, 2),
        ({"stages": [{"length": "1k", "name": STEERS, "steps": 1}]}, 0),
    ],
)
def test_nothing_in_a_recipe_steers_the_terminal(config, monkeypatch, capsys, where, code):
    found, out, err = run(train_run.main, monkeypatch, capsys, "--config", recipe_of(config, **where))
    assert found == code
    assert safe(out + err)
    assert "\\x1b" in err
    assert len(err.splitlines()) == 1 or code == 0


def test_nothing_in_a_path_steers_the_terminal(config, tmp_path, monkeypatch, capsys):
    recipe = recipe_of(config, optim={"steps": 1})
    bad = tmp_path / STEERS
    assert run(train_run.main, monkeypatch, capsys, "--config", bad)[0] == 2
    code, out, err = run(train_run.main, monkeypatch, capsys, "--config", recipe, "--out", bad)
    assert code == 0
    assert safe(out + err)
    code, out, err = run(train_run.main, monkeypatch, capsys, "--config", recipe, "--out", bad, "optim.steps=2")
    assert code == 2
    assert safe(out + err)
    for tuned, data, code in ((bad, config.data.path, 2), (bad / "model", bad, 1)):
        options = ("--tuned", tuned, "--data", data, "--lengths", "1k")
        found, out, err = run(eval_run.main, monkeypatch, capsys, *options)
        assert found == code
        assert safe(out + err)
        assert "\\x1b" in err
    options = ("--tuned", bad / "model", "--data", config.data.path, "--lengths", "1k", "--split", "train")
    assert run(eval_run.main, monkeypatch, capsys, *options, "--out", config.out / STEERS / "a\nb")[0] == 0


def test_nothing_in_a_recipe_steers_the_bar(config):
    """On a terminal."""
    recipe = recipe_of(config, stages=[{"length": "1k", "name": "[/red]\x1b]0;owned\x07", "steps": 1}])
    leader, follower = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    command = [sys.executable, "-m", "train.run", "--config", str(recipe)]
    done = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    said = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        said += part
    assert done.wait() == 0, said
    assert b"[/red]\\x1b]0;owned\\x07" in said
    assert b"\x1b]0;" not in said
    assert b"\x07" not in said


@pytest.mark.parametrize("kind", ["lora", "full"])
def test_a_base_with_fewer_embeddings_than_the_rows_have_ids(config, base, made, tmp_path, kind):
    """Its tokenizer is another model's: the CPU would raise an IndexError, a GPU end the process."""
    whole = changed(config, adapter={"kind": kind}, optim={"steps": 1})
    tuned = train(whole)
    says = r"token id \d+, but .* has 100 embeddings"
    torch.manual_seed(0)
    LlamaForCausalLM(tiny_shape(vocab_size=100)).save_pretrained(base)
    with pytest.raises(ModelError, match=rf"packed/1k/train: holds {says}"):
        train(changed(whole, out=tmp_path / "cut"))
    if kind == "lora":  # full has its own embeddings
        with pytest.raises(ModelError, match=says):
            evaluate(str(base), tuned, config.data.path, [1024], "train", "float32", "cpu")
    with pytest.raises(ModelError, match=says):
        summarize(made / "repo1", str(base), "line", 512, 8, Silent())


def test_a_shape_whose_numbers_cannot_be(config, base):
    shape = json.loads((base / "config.json").read_text())
    plain = {"rope_type": "default", "rope_theta": 1e4}
    yarn = plain | {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
    for change, says in [
        ({"max_position_embeddings": 0}, "max_position_embeddings 0"),
        ({"max_position_embeddings": -1}, "max_position_embeddings -1"),
        ({"rope_parameters": plain | {"rope_theta": -5}}, "rope_theta -5"),
        ({"rope_parameters": plain | {"rope_theta": math.nan}}, "rope_theta nan"),
        ({"rope_parameters": plain | {"partial_rotary_factor": 0}}, "partial_rotary_factor 0"),
        ({"rope_parameters": yarn | {"factor": "x"}}, "factor 'x'"),
        ({"rope_parameters": yarn | {"factor": 0}}, "factor 0"),
    ]:
        with pytest.raises(ModelError, match=f"{says}, no number above 0; mend it"):
            resolved(changed(config, model={"shape": shape | change}))
    (base / "deep.json").write_text("[" * 100_000)
    with pytest.raises(ConfigError, match="is not JSON"):
        resolved(changed(config, model={"shape": str(base / "deep.json")}))


@pytest.mark.parametrize(
    "places",
    [
        [], [(0, 2, 11)], [(0, 2, 9)], [(-1, 2, 10)], [(1, 2, 10)], [(0, 0, 10)], [(0, 8, 7), (7, 8, 10)], [(0, 0, 0), (0, 2, 10)],
        [(0, 2, 10), (0, 2, 10)], [(0, 2, 5), (6, 7, 10)], [(0, 2, 6), (5, 7, 10)], [(5, 7, 10), (0, 2, 5)], None,
    ],
)  # fmt: skip
def test_documents_that_are_no_parts_of_their_row(places):
    names = ("start", "target_start", "target_end")
    row = {"input_ids": np.arange(10, dtype=np.int32), "segments": None}
    if places is not None:
        row["segments"] = [dict(zip(names, place, strict=True)) for place in places]
    with pytest.raises(OutputError, match=r"row 3 of x: .*; look at the rows with `repo2ctx verify`"):
        training_row(row, LossSection(), "row 3 of x")
