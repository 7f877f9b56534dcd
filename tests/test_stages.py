"""Stages, mixes and the rows of each step: what a run does, before any model is there; and what stops or skips a step."""

import json
import math
import shutil
from pathlib import Path

import pytest
import yaml
from test_train import changed
from tiny import Silent

from repo2ctx.config import read_config
from repo2ctx.errors import ConfigError, Repo2CtxError
from repo2ctx.repack import repack
from train import run as train_run
from train.batches import Supply
from train.config import GuardSection, LossSection, TrainConfig
from train.dry_run import resolved
from train.guard import Guard
from train.shape import check_shape
from train.stages import resolve_stages

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "data" / "recipes").glob("*.yaml"))


def with_stages(*stages: dict, **sections) -> TrainConfig:
    values = {"data": {"path": "data", "length": "1k"}, "rope": {"target": "32k"}, "stages": list(stages), "out": "out"}
    return TrainConfig.model_validate(values | sections)


def test_without_stages_there_is_one_of_the_optim_section():
    (stage,) = resolve_stages(with_stages(optim={"steps": 7, "rows_per_step": 3, "lr": 1e-3}))
    assert (stage.name, stage.length, stage.steps, stage.rows_per_step, stage.lr) == ("1k", 1024, 7, 3, 1e-3)
    assert stage.tokens_per_step == 3 * 1024
    assert stage.parts[0].table == "packed/1k/train"


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        ([{"length": "1k", "steps": 1, "tokens": "1m"}], "both steps 1 and tokens"),
        ([{"length": "1k", "mix": [{"length": "1k", "share": 0.5}]}], r"shares add up to 0.5; make that 1"),
        ([{"length": "1k", "mix": [{"length": "2k", "share": 1}]}], r"rows of 2k are longer than the stage's 1k"),
        ([{"length": "1k", "mix": [{"length": "1k", "share": 0.5}] * 2}], "stands there twice"),
        ([{"length": "1k"}, {"length": "1k"}], "two are called '1k'"),
    ],
)
def test_stages_that_cannot_be(stages, says):
    with pytest.raises(ConfigError, match=says):
        resolve_stages(with_stages(*stages))


@pytest.mark.parametrize("end", [{"steps": 100}, {"tokens": 100 * 1024}])
@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
def test_the_learning_rate_of_a_stage(end, schedule):
    (stage,) = resolve_stages(
        with_stages({"length": "1k", "schedule": schedule, "warmup_steps": 10, "lr": 1.0} | end, optim={"final": 0.2})
    )
    rates = [stage.rate(step, step * 1024) for step in range(101)]
    assert rates[:10] == pytest.approx([(step + 1) / 11 for step in range(10)])
    assert rates[10] == pytest.approx(1.0)
    half = {"cosine": 0.2 + 0.8 * (1 + math.cos(math.pi / 2)) / 2, "linear": 0.6, "constant": 1.0}[schedule]
    assert rates[55] == pytest.approx(half)
    assert rates[100] == pytest.approx(1.0 if schedule == "constant" else 0.2)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert [stage.progress(step, step * 1024) for step in (0, 50, 100, 101)] == pytest.approx([0, 0.5, 1, 1])


def mixed(data, share, other, **more):
    """Stages over rows of 1k of two datasets."""
    parts = [{"length": "1k", "share": 1 - share}, {"length": "1k", "share": share, "path": str(other)}]
    return with_stages(
        {"length": "1k", "mix": parts, "rows_per_step": 4}, data={"path": str(data), "length": "1k"}, **more
    )


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_a_mix_has_its_shares_by_tokens_at_every_moment(data, tmp_path, share):
    other = Path(shutil.copytree(data, tmp_path / "other"))
    (stage,) = stages = resolve_stages(mixed(data, share, other))
    supply = Supply(stages, LossSection(), 0)
    key = next(k for k in supply.given if str(other) in k)
    for _ in range(40):
        supply.step(stage)
        total = sum(supply.given.values())
        assert abs(supply.given[key] - share * total) <= 1024  # never further than a row from its share
    assert set(supply.taken) == set(supply.given)


def test_a_step_draws_rows_until_their_lengths_add_up(data):
    (stage,) = stages = resolve_stages(
        with_stages({"length": "4k", "mix": [{"length": "1k", "share": 1}]}, data={"path": str(data)})
    )
    supply = Supply(stages, LossSection(), 0)
    assert [len(supply.step(stage)) for _ in range(3)] == [4, 4, 4]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_steps_of_a_mix_have_their_tokens_on_average(data, share):
    """What one step has too much, the next has too little; none is without a row."""
    repack(data, [512], None, False, 1, None, Silent())
    parts = [{"length": "1k", "share": share}, {"length": "512", "share": 1 - share}]
    section = {"length": "1k", "mix": parts, "rows_per_step": 1}
    (stage,) = stages = resolve_stages(with_stages(section, data={"path": str(data)}))
    supply = Supply(stages, LossSection(), 0)
    total = 0
    for step in range(1, 60):
        rows = supply.step(stage)
        assert rows
        total += sum(1024 if "/1k/" in row.name else 512 for row in rows)
        assert 0 <= total - step * 1024 < 1024


def test_the_rows_of_a_resumed_run_are_those_that_follow(data, tmp_path):
    other = Path(shutil.copytree(data, tmp_path / "other"))
    (stage,) = stages = resolve_stages(mixed(data, 0.3, other))
    supply = Supply(stages, LossSection(), 3)
    names = []
    states = []
    for _ in range(8):
        states.append(json.loads(json.dumps(supply.state_dict())))
        names.append([row.name for row in supply.step(stage)])
    for number in (0, 3, 7):
        again = Supply(stages, LossSection(), 3)
        again.load_state_dict(states[number])
        assert [[row.name for row in again.step(stage)] for _ in range(8 - number)] == names[number:]


def test_a_table_goes_on_where_the_stage_before_left_it(data):
    """Replay does not begin with the same rows in every stage."""
    config = with_stages(
        {"length": "1k"}, {"length": "2k", "mix": [{"length": "1k", "share": 1}]}, data={"path": str(data)}
    )
    first, second = stages = resolve_stages(config)
    supply = Supply(stages, LossSection(), 0)
    rows = supply.count(first)
    seen = [supply.step(first)[0].name for _ in range(rows - 1)]
    supply.begin()
    assert supply.step(second)[0].name not in seen  # the one that was left of the epoch


def test_a_table_that_is_not_there_is_named(data, tmp_path):
    with pytest.raises(ConfigError, match=r"no packed rows in packed/4k/train; it has packed/1k/train"):
        Supply(resolve_stages(with_stages({"length": "4k"}, data={"path": str(data)})), LossSection(), 0)


# The guard -------------------------------------------------------------------------------------------------


def test_what_is_not_finite_stops_or_is_skipped_and_rows_are_named():
    guard = Guard(GuardSection())
    assert guard.judge(1, 1.0, 1.0, ["row 4"]) is None
    for loss, norm in ((math.nan, 1.0), (1.0, math.inf)):
        with pytest.raises(Repo2CtxError, match=r"step 2: loss .*, on row 4, row 9; lower optim.lr"):
            guard.judge(2, loss, norm, ["row 4", "row 9"])
    guard = Guard(GuardSection(not_finite="skip", most_skipped=2))
    assert guard.judge(1, math.nan, 1.0, ["row 1"]) == "loss nan, gradient norm 1.0"
    assert guard.judge(2, 1.0, 1.0, ["row 2"]) is None  # the count begins anew
    assert all(guard.judge(step, math.nan, 1.0, ["row 3"]) for step in (3, 4))
    with pytest.raises(Repo2CtxError, match=r"3 steps in a row were skipped \(guard.most_skipped 2\)"):
        guard.judge(5, math.nan, 1.0, ["row 3"])


def test_a_spike_is_one_against_the_norms_of_late():
    guard = Guard(GuardSection(spike="skip", spike_factor=4, spike_window=4))
    for step, norm in enumerate([100.0, 1.0, 1.2, 0.8]):  # before the window is full, nothing is a spike
        assert guard.judge(step, 1.0, norm, ["row"]) is None
    assert guard.judge(5, 1.0, 5.0, ["row"]) == "gradient norm 5, usually 1.1"
    assert guard.judge(6, 1.0, 4.3, ["row"]) is None
    again = Guard(guard.section)
    again.load_state_dict(json.loads(json.dumps(guard.state_dict())))
    judged = [g.judge(7, 1.0, 6.5, ["row"]) for g in (guard, again)]
    assert judged[0] == judged[1] is not None
    assert guard.state_dict() == again.state_dict()
    ignored = Guard(GuardSection(spike_window=2))
    assert [ignored.judge(s, 1.0, n, ["row"]) for s, n in enumerate([1.0, 1.0, 1000.0])] == [None] * 3
    stopping = Guard(GuardSection(spike="stop", spike_window=2))
    assert [stopping.judge(s, 1.0, 1.0, ["row"]) for s in range(2)] == [None] * 2
    with pytest.raises(Repo2CtxError, match=r"gradient norm 9, usually 1, on row; look at the rows"):
        stopping.judge(2, 1.0, 9.0, ["row"])


# Recipes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda p: p.stem)
def test_recipes_resolve_without_data_gpu_or_model_files(recipe, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPO2CTX_CACHE", str(tmp_path / "nothing"))
    monkeypatch.setattr("repo2ctx.models.model_source", lambda name: pytest.fail(f"asks for the files of {name}"))
    monkeypatch.setattr("sys.argv", ["train.run", "--config", str(recipe), "--dry-run"])
    assert train_run.main() == 0
    printed = capsys.readouterr().out
    found = yaml.safe_load(printed)
    native, target = found["rope"]["native"], found["rope"]["target"]
    assert found["rope"]["factor"] == target / native
    assert found["tokens"] == sum(stage["tokens"] for stage in found["stages"]) > 0
    assert all(stage["tokens_per_step"] >= parsed(stage["length"]) for stage in found["stages"])
    if "1m" in recipe.stem:
        assert found["rope"]["factor"] == 128.0
    assert f"\n# rope.factor: {found['rope']['factor']} ({target:,} / {native:,})\n" in printed
    assert all(f"# stage {stage['name']} " in printed for stage in found["stages"])
    assert list(tmp_path.iterdir()) == []


def parsed(length: str) -> int:
    from repo2ctx.config import parse_length

    return parse_length(length)


def test_a_stage_may_have_a_factor_of_its_own():
    shape = {"model_type": "llama", "max_position_embeddings": 8192, "rope_theta": 5e5}
    config = with_stages(
        {"length": "32k", "rope_target": "32k"}, {"length": "128k"}, rope={"target": "1m"}, model={"shape": shape}
    )
    assert [stage["rope"]["factor"] for stage in resolved(config)["stages"]] == [4.0, 128.0]
    short = resolved(
        with_stages({"length": "4k"}, rope={"target": "1k"}, model={"shape": shape})
    )  # the base's own reach
    assert [stage["rope"]["factor"] for stage in short["stages"]] == [1.0]
    with pytest.raises(ConfigError, match=r"rows of 2m are longer than its context of 1m"):
        resolved(with_stages({"length": "2m"}, rope={"target": "1m"}, model={"shape": shape}))


def test_a_shape_that_is_not_the_bases_is_refused(config, base):
    own = json.loads((base / "config.json").read_text())
    check_shape(changed(config, model={"shape": own}))
    with pytest.raises(ConfigError, match=r"model.shape: says hidden_size 64, but .* has 32"):
        check_shape(changed(config, model={"shape": own | {"hidden_size": 64}}))
    with pytest.raises(ConfigError, match="rope_parameters"):
        check_shape(
            changed(config, model={"shape": {**own, "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}})
        )


def test_overrides_of_one_stage():
    recipe = ROOT / "data" / "recipes" / "smollm2-1m.yaml"

    def read(*pairs):
        return read_config(TrainConfig, recipe, train_run.parse_overrides(list(pairs)))

    before = read().stages
    config = read("stages.0.steps=7", "stages.0.lr=1e-3", "stages.2=null")
    assert (config.stages[0].steps, config.stages[0].lr, config.stages[0].mix) == (7, 1e-3, before[0].mix)
    assert config.stages[1:] == before[1:2]
    assert read("stages.1={length: 64k}").stages[1].length == 65536
    for pair, says in (
        ("stages.3.steps=1", "stages has no 3; it has 3, from 0 to 2"),
        ("stages.-1.steps=1", "stages are numbered"),
        ("stages.first.steps=1", "stages are numbered"),
        ("stages.0.mix.0=1", "reaches too deep; give stages.0.mix whole"),
        ("stages.0.step=1", "did you mean 'steps'"),
    ):
        with pytest.raises(ConfigError, match=says):
            read(pair)


def test_what_the_plan_says_and_one_process_does_not_do():
    shape = {"model_type": "llama", "max_position_embeddings": 8192, "rope_theta": 5e5}
    found = resolved(with_stages({"length": "1k", "steps": 3}, rope={"target": "4k"}, model={"shape": shape}))
    assert found["notes"] == ["rope.target 4k is within the native 8k: nothing is scaled"]
    assert "steps" not in found["optim"]
    found = resolved(with_stages({"length": "1k"}, rope={"target": "1m"}, model={"shape": shape}, launch={"gpus": 8}))
    assert found["notes"] == [
        "launch.gpus 8 is a plan, of rows split over them; this process trains on one device, whole rows"
    ]
    assert found["optim"]["steps"] == 15


def test_overrides_leave_the_stages():
    recipe = ROOT / "data" / "recipes" / "smollm2-1m.yaml"
    config = read_config(TrainConfig, recipe, train_run.parse_overrides(["optim.lr=1", "seed=3"]))
    assert (config.optim.lr, config.seed, len(config.stages)) == (1.0, 3, 3)
