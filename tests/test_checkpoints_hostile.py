"""Checkpoints and folders that were damaged, swapped or made by another: each is told, none is run, none is quietly gone on with."""

import hashlib
import json
import os
import pickle
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_loop import names
from test_train import changed, lines

from repo2ctx.errors import ConfigError, OutputError
from train.checkpoint import _sealed, newest
from train.config import TrainConfig
from train.loop import train


@pytest.fixture
def stopped(config) -> TrainConfig:
    """A run of four steps whose newest checkpoint is that of the third."""
    config = changed(config, optim={"steps": 4}, checkpoint={"every": 1, "keep": 3})
    train(config)
    shutil.rmtree(config.out / "model")
    shutil.rmtree(config.out / "checkpoints" / "step-000004")
    return config


def seal(place: Path, **values) -> None:
    """As whoever wanted to be believed would: with the right hashes."""
    run = json.loads((place / "run.json").read_text()) | values
    run["files"] = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in place.iterdir() if p.name != "run.json"}
    (place / "run.json").write_text(json.dumps(_sealed(run)))


class Evil:
    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def states(marker: Path) -> dict:
    return {
        "a pickle": lambda path, _: path.write_bytes(pickle.dumps(Evil(marker))),
        "a pickle as torch saves it": lambda path, _: torch.save({"optimizer": Evil(marker)}, path),
        "nothing": lambda path, _: path.write_bytes(b""),
        "a list": lambda path, _: torch.save([1], path),
        "no optimizer": lambda path, state: torch.save(state | {"optimizer": {}}, path),
        "a random state of another kind": lambda path, state: torch.save(
            state | {"random": {"cpu": 5, "cuda": []}}, path
        ),
        "gradients of another model": lambda path, state: torch.save(state | {"gradients": [torch.zeros(1)]}, path),
    }


@pytest.mark.parametrize("kind", list(states(Path())))
def test_a_state_that_is_not_ours_is_told_and_never_run(stopped, tmp_path, kind):
    place = newest(stopped.out / "checkpoints")
    state = torch.load(place / "state.pt", weights_only=True)
    states(tmp_path / "ran")[kind](place / "state.pt", state)
    with pytest.raises(OutputError, match="is damaged; remove it"):
        train(stopped)
    seal(place)
    with pytest.raises(OutputError, match=r"cannot be read .*; remove step-000003, and run again"):
        train(stopped)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"step": 4}, {"stage": 99}, {"stage": -1}, {"stage_step": None}, {"stage_tokens": "x"}, {"partial": 5}, {"supply": {}},
        {"partial": {"rows": 99, "loss": 0, "seconds": 0}}, {"guard": {"norms": ["x"], "skipped": 0}}, {"base": 5},
        {"validation": "x"}, {"due": 5}, {"files": []}, {"files": {}}, {"files": {"../../train.json": "x"}}, {"commit": "x"},
    ],
)  # fmt: skip
def test_no_value_of_a_checkpoint_can_change(stopped, change):
    path = newest(stopped.out / "checkpoints") / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(OutputError, match="step-000003: is damaged; remove it"):
        train(stopped)


def test_nested_json_is_damage_like_any_other(stopped):
    (newest(stopped.out / "checkpoints") / "run.json").write_text("[" * 100_000)
    with pytest.raises(OutputError, match="step-000003: is damaged; remove it"):
        train(stopped)
    (stopped.out / "train.json").write_text("[" * 100_000)
    with pytest.raises(OutputError, match=r"train.json: is damaged"):
        train(stopped)


def test_an_old_checkpoint_that_is_damaged_does_not_end_the_run(stopped):
    for number, text in ((1, "[" * 100_000), (2, '{"stage": 0, "validation": "x"}')):
        place = stopped.out / "checkpoints" / f"step-00000{number}"
        place.mkdir(exist_ok=True)
        (place / "run.json").write_text(text)
    train(stopped)
    assert names(stopped.out)[-1] == "step-000004"


def test_a_checkpoint_by_another_name_or_of_another_run_is_refused(stopped, tmp_path):
    folder = stopped.out / "checkpoints"
    shutil.copytree(folder / "step-000002", folder / "step-000009")
    with pytest.raises(OutputError, match="step-000009: is damaged"):
        train(stopped)
    shutil.rmtree(folder / "step-000009")
    other = changed(stopped, optim={"lr": 0.5}, out=tmp_path / "other")
    train(other)
    for place in (other.out / "checkpoints").iterdir():
        shutil.rmtree(place)
    shutil.copytree(folder / "step-000003", other.out / "checkpoints" / "step-000003")
    with pytest.raises(OutputError, match=r"another configuration \(optim.lr 0.01 -> 0.5\); remove it"):
        train(other)


@pytest.mark.parametrize("kind", ["lora", "lora+", "full"])
def test_a_base_that_changed_on_the_way_is_not_gone_on_with(config, base, kind):
    config = changed(config, adapter={"kind": kind}, optim={"steps": 1})
    train(config)
    train(config)
    weights = load_file(base / "model.safetensors")
    weights["model.norm.weight"] *= 1.5
    save_file(weights, base / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match="on a base whose weights were others"):
        train(config)


def test_what_a_killed_process_left_half_written_goes_and_nothing_else(stopped):
    folder = stopped.out / "checkpoints"
    halves = [folder / f".step-{name}.77.partial" for name in ("000004", "000003-rows-1")] + [
        stopped.out / ".model.77.partial"
    ]
    others = [folder / ".step-x.77.partial", folder / "notes", stopped.out / ".notes.77.partial"]
    for path in halves + others:
        path.mkdir()
        (path / "file").write_text("x")
    train(stopped)
    assert [p.exists() for p in halves + others] == [False] * 3 + [True] * 3


def test_what_cannot_be_written_to_is_told_before_anything_is_trained(config, tmp_path):
    train(changed(config, optim={"steps": 1}))
    shutil.rmtree(config.out / "model")
    precious = tmp_path / "precious"
    precious.mkdir()
    for target in (precious, tmp_path / "nowhere"):
        (config.out / "model").symlink_to(target)
        with pytest.raises(OutputError, match="model: is a link"):
            train(changed(config, optim={"steps": 1}))
        (config.out / "model").unlink()
    shutil.rmtree(config.out / "checkpoints")
    (config.out / "checkpoints").write_text("mine")
    before = lines(config.out)
    with pytest.raises(OutputError, match="checkpoints: is no directory"):
        train(changed(config, optim={"steps": 1}))
    assert lines(config.out) == before
    assert precious.is_dir()


def test_a_lock_that_is_a_link_empties_nothing(config, tmp_path):
    (tmp_path / "precious").write_text("mine")
    config.out.mkdir()
    (config.out / ".lock").symlink_to(tmp_path / "precious")
    train(changed(config, optim={"steps": 1}))
    assert (tmp_path / "precious").read_text() == "mine"


def test_metrics_that_are_damaged_lose_their_damaged_lines_alone(stopped):
    path = stopped.out / "metrics.jsonl"
    path.write_bytes(b"\xff\xfe\n[1]\n" + path.read_bytes() + b'{"step": null}\n')
    train(stopped)
    assert [r["step"] for r in lines(stopped.out)] == [1, 2, 3, 4]
