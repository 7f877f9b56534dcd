"""A run that is killed, told to end, validated, moved from stage to stage: nothing is lost, and the losses are the same."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from test_train import changed, lines
from tiny import Silent
from transformers import LlamaForCausalLM

from repo2ctx.config import BuildConfig
from repo2ctx.crawl import CrawlOptions
from repo2ctx.dataset import Dataset
from repo2ctx.errors import ConfigError, ModelError, Repo2CtxError
from repo2ctx.models import load_tuned
from repo2ctx.pipeline import build
from repo2ctx.repolist import parse_plain
from train import loop
from train.checkpoint import newest
from train.config import TrainConfig
from train.loop import Interrupted, train
from train.memory import told_out_of_memory
from train.model import make_model

ROOT = Path(__file__).parents[1]


def names(out: Path) -> list[str]:
    return sorted(p.name for p in (out / "checkpoints").iterdir() if not p.name.startswith("."))


def weights(out: Path) -> bytes:
    return (out / "model" / "adapter_model.safetensors").read_bytes()


def events(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture
def both(tmp_path, made, base, config) -> TrainConfig:
    """`config` over rows of 1k and 512, some of them for validation."""
    specs = [parse_plain(str(made / f"repo{i}"), tmp_path) for i in range(6)]
    settings = {
        "tokens": {"tokenizer": str(base)},
        "pack": {"lengths": "512,1k"},
        "split": {"validation": 0.4, "test": 0},
    }
    build(specs, BuildConfig.model_validate(settings), tmp_path / "both", CrawlOptions(None), 1, Silent())
    return changed(config, data={"path": tmp_path / "both"})


@pytest.mark.parametrize(("kind", "rows"), [(signal.SIGTERM, 1), (signal.SIGTERM, 2), (signal.SIGINT, 1)])
def test_a_signal_in_the_middle_of_a_step_saves_what_is_done_of_it(config, tmp_path, monkeypatch, kind, rows):
    config = changed(config, adapter={"dropout": 0.1}, optim={"rows_per_step": 3})
    train(config)
    told = changed(config, out=tmp_path / "told")
    real, calls = loop.loss_sum, []

    def tell(*arguments):
        calls.append(1)
        if len(calls) == 3 * 3 + rows:  # in step four, as its row of this number is worked on
            os.kill(os.getpid(), kind)
        return real(*arguments)

    monkeypatch.setattr(loop, "loss_sum", tell)
    with pytest.raises(Interrupted, match=rf"{kind.name}: saved .*step-000003-rows-{rows}") as ended:
        train(told)
    assert ended.value.signum == kind
    monkeypatch.undo()
    assert newest(told.out / "checkpoints").name == f"step-000003-rows-{rows}"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    counted = []
    monkeypatch.setattr(loop, "loss_sum", lambda *arguments: counted.append(1) or real(*arguments))
    train(told)
    assert len(counted) == 3 * 3 - rows  # no row is done twice
    assert lines(told.out) == lines(config.out)
    assert weights(told.out) == weights(config.out)


def test_a_killed_run_and_one_that_is_told_to_end(config, tmp_path):
    """As from a shell: kill -9 and SIGTERM of the real command, again and again; at the end the bytes are those of one run."""
    config = changed(config, optim={"steps": 12, "rows_per_step": 2}, checkpoint={"every": 1})
    recipe = tmp_path / "recipe.json"
    recipe.write_text(config.model_dump_json())
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def begin(out):
        command = [sys.executable, "-m", "train.run", "--config", str(recipe), "--out", str(out)]
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    process = begin(whole)
    said = process.communicate()
    assert process.returncode == 0, said
    for kind, after in ((signal.SIGKILL, 3), (signal.SIGTERM, 6)):
        process = begin(broken)
        metrics = broken / "metrics.jsonl"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if metrics.exists() and metrics.read_text().count("\n") >= after:
                process.send_signal(kind)
                break
            time.sleep(0.005)
        said = process.communicate()[1]
        if process.returncode == 0 and kind == signal.SIGTERM and "SIGTERM: saved" not in said:
            pytest.skip("the run was faster than the signal")
        assert process.returncode == (0 if kind == signal.SIGTERM else -9), said
        assert not (broken / "model").exists()
    assert "run the same command again to go on" in said
    process = begin(broken)
    assert (process.communicate()[1], process.returncode)[1] == 0
    assert lines(broken) == lines(whole)
    assert weights(broken) == weights(whole)


def test_stages_follow_each_other_and_a_run_goes_on_in_any_of_them(both, tmp_path):
    stages = [
        {"length": "512", "steps": 3, "rope_target": "1k"},
        {"length": "1k", "tokens": 4000, "mix": [{"length": "1k", "share": 0.7}, {"length": "512", "share": 0.3}]},
    ]
    config = changed(
        both, stages=stages, validation={"rows": 2}, checkpoint={"every": 1, "keep": 20}, optim={"rows_per_step": 1}
    )
    folder = train(config)
    found = events(config.out)
    steps = [r for r in found if "loss" in r]
    assert [r["stage"] for r in steps][:3] == ["512"] * 3
    second = [r for r in steps if r["stage"] == "1k"]
    assert sum(r["tokens"] for r in second) >= 4000 > sum(r["tokens"] for r in second[:-1])
    assert [r["step"] for r in found if "validation" in r] == [3, len(steps)]  # at each stage's end
    assert list(found[-1]["validation"]) == ["packed/1k/validation", "packed/512/validation"]
    stored = json.loads((folder / "repo2ctx.json").read_text())
    assert (stored["length"], stored["rope_parameters"]["factor"]) == (1024, 4.0)
    early = json.loads((config.out / "checkpoints" / "step-000003" / "repo2ctx.json").read_text())
    assert (early["length"], early["rope_parameters"]["factor"]) == (512, 2.0)
    for left in (2, 3, 4):
        again = tmp_path / f"again{left}"
        shutil.copytree(config.out, again)
        shutil.rmtree(again / "model")
        for name in names(again)[left:]:
            shutil.rmtree(again / "checkpoints" / name)
        train(changed(config, out=again))
        assert lines(again) == lines(config.out)
        assert weights(again) == weights(config.out)
        assert [r for r in events(again) if "validation" in r] == [r for r in found if "validation" in r]


def plain_loss(model, dataset: Dataset, table: str, rows: int, of_targets: bool = True) -> float:
    """The mean over target tokens, or over all but the first of each document, of documents read one by one."""
    total, counted = 0.0, 0
    for index in range(min(rows, sum(s.rows for s in dataset.shards(table)))):
        row = dataset.packed_row(table, index)
        for s in row["segments"]:
            ids = torch.tensor(row["input_ids"][s["start"] : s["target_end"]].tolist())
            with torch.no_grad():
                logp = torch.log_softmax(model(input_ids=ids[None]).logits[0], -1)
            for t in range(s["target_start"] - s["start"] if of_targets else 1, len(ids)):
                total, counted = total - logp[t - 1, ids[t]].item(), counted + 1
    return total / counted


def test_validation_is_the_loss_of_the_rows_by_a_plain_loop(both):
    config = changed(both, validation={"rows": 3, "every": 2}, optim={"steps": 2})
    folder = train(config)
    (said,) = [r["validation"] for r in events(config.out) if "validation" in r]
    plain = plain_loss(load_tuned(folder).eval(), Dataset(config.data.path), "packed/1k/validation", 3)
    assert said == {"packed/1k/validation": pytest.approx(plain, rel=1e-5)}


def test_short_context_is_measured_on_every_token_and_beside_the_base_under_its_own_positions(both, base, capsys):
    config = changed(both, validation={"rows": 3, "short": "512"}, adapter={"dropout": 0.1}, optim={"steps": 2})
    folder = train(config)
    first, last = [r for r in events(config.out) if "validation" in r]
    assert (first["step"], first["stage"], last["step"]) == (0, "base", 2)
    short, dataset = "packed/512/validation", Dataset(config.data.path)

    def plain(model) -> dict:
        found = {
            short: plain_loss(model, dataset, short, 3),
            f"{short}/all-tokens": plain_loss(model, dataset, short, 3, False),
        }
        return {name: pytest.approx(loss, rel=1e-5) for name, loss in found.items()}

    assert first["validation"] == plain(LlamaForCausalLM.from_pretrained(base).eval())
    assert last["validation"] == plain(load_tuned(folder).eval()) | {
        "packed/1k/validation": last["validation"]["packed/1k/validation"]
    }
    assert first["validation"] != plain(load_tuned(folder).eval())
    assert f"(base {first['validation'][short]:.4f})" in capsys.readouterr().err


def test_measuring_the_base_changes_nothing_and_is_not_lost(both, tmp_path, monkeypatch):
    """Also where the run ends in the middle of that, or of its first step."""
    without = changed(both, validation={"rows": 0}, optim={"steps": 3}, adapter={"dropout": 0.1})
    train(without)
    config = changed(without, validation={"rows": 2, "short": "512"}, out=tmp_path / "measured")
    train(config)
    assert lines(config.out) == lines(without.out)
    assert weights(config.out) == weights(without.out)
    for calls in (1, 2, 5):
        told = changed(config, out=tmp_path / f"told{calls}")
        real, left = loop.row_inputs, iter(range(calls, -99, -1))

        def tell(*arguments, left=left, real=real):
            if next(left) == 0:
                os.kill(os.getpid(), signal.SIGTERM)
            return real(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr("train.validation.row_inputs", tell)
            patched.setattr("train.loop.row_inputs", tell)
            with pytest.raises(Interrupted):
                train(told)
        train(told)
        plain = [
            {k: v for k, v in e.items() if k not in ("seconds", "tokens_per_s", "memory_gb")} for e in events(told.out)
        ]
        assert plain == [
            {k: v for k, v in e.items() if k not in ("seconds", "tokens_per_s", "memory_gb")}
            for e in events(config.out)
        ]
        assert weights(told.out) == weights(config.out)


def test_the_best_checkpoint_by_validation_stays(both, monkeypatch):
    losses = iter([3.0, 1.0, 2.0, 2.5, 2.6])
    monkeypatch.setattr("train.validation.Validation.losses", lambda *_: {"packed/1k/validation": next(losses)})
    config = changed(both, validation={"rows": 1, "every": 1}, checkpoint={"every": 1, "keep": 1}, optim={"steps": 5})
    train(config)
    assert names(config.out) == ["step-000002", "step-000005"]


def test_a_signal_in_validation_loses_no_step_and_no_validation(both, tmp_path, monkeypatch):
    config = changed(both, validation={"rows": 2, "every": 2}, optim={"steps": 4})
    train(config)
    told = changed(config, out=tmp_path / "told")
    real, calls = loop.Validation.losses, []

    def tell(self, *arguments):
        calls.append(1)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self, *arguments)

    monkeypatch.setattr("train.validation.Validation.losses", tell)
    with pytest.raises(Interrupted):
        train(told)
    assert not any("validation" in r for r in events(told.out))
    train(told)

    def drop(found):
        return [{k: v for k, v in r.items() if k not in ("seconds", "tokens_per_s", "memory_gb")} for r in found]

    assert drop(events(told.out)) == drop(events(config.out))
    assert weights(told.out) == weights(config.out)


def test_a_step_that_is_skipped_changes_no_weight(config, monkeypatch):
    config = changed(config, guard={"not_finite": "skip"}, optim={"steps": 3}, checkpoint={"every": 1, "keep": 9})
    real, calls = loop.loss_sum, []

    def spoil(*arguments):
        calls.append(1)
        return real(*arguments) * (float("nan") if len(calls) == 3 else 1.0)  # the first row of step 2

    monkeypatch.setattr(loop, "loss_sum", spoil)
    train(config)
    files = [config.out / "checkpoints" / f"step-00000{n}" / "adapter_model.safetensors" for n in (1, 2, 3)]
    one, two, three = (file.read_bytes() for file in files)
    assert one == two != three
    assert ["skipped" in r for r in events(config.out) if "loss" in r] == [False, True, False]


def test_documents_that_share_a_row_see_each_other_only_if_told(config):
    config = changed(config, optim={"steps": 2})
    apart = train(config)
    together = train(changed(config, attention={"across_documents": True}, out=config.out.parent / "together"))
    assert lines(apart.parent)[0]["loss"] != lines(together.parent)[0]["loss"]


def test_models_that_change_their_logits_are_refused(config, base):
    from transformers import CohereConfig, CohereForCausalLM

    shape = json.loads((base / "config.json").read_text())
    kept = {
        k: shape[k]
        for k in ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    }
    cohere = CohereConfig(**kept, num_key_value_heads=2, max_position_embeddings=512, rope_theta=1e4, logit_scale=0.0625,
                          bos_token_id=0, eos_token_id=2, pad_token_id=0)  # fmt: skip
    torch.manual_seed(0)
    CohereForCausalLM(cohere).save_pretrained(base)
    with pytest.raises(ModelError, match="does more to its logits than its output layer"):
        train(config)


def test_out_of_memory_says_what_to_change(config):
    big = changed(config, model={"checkpointing": False})
    says = r"out of memory on row 3, of 1,024 tokens .*checkpointing=true; or .*bfloat16"
    with pytest.raises(Repo2CtxError, match=says), told_out_of_memory(big, "row 3", 1024):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")
    with pytest.raises(Repo2CtxError, match="out of memory on row 3"), told_out_of_memory(config, "row 3", 8):
        torch.empty(1 << 46)
    with pytest.raises(RuntimeError, match="something else"), told_out_of_memory(config, "row 3", 8):
        raise RuntimeError("something else")


def test_a_checkpoint_says_what_it_is_of(config):
    train(config)
    run = json.loads((newest(config.out / "checkpoints") / "run.json").read_text())
    assert run["config"] == config.model_dump(mode="json")
    assert {"commit", "schema_version", "prompt_version", "supply", "stage", "guard"} <= run.keys()
    model, _ = make_model(config)
    assert run["step"] == 6
    assert model is not None
    with pytest.raises(ConfigError, match="another configuration"):
        train(changed(config, stages=[{"length": "1k", "steps": 9}]))


def test_a_finished_run_says_so_and_changes_nothing(config, capsys):
    train(config)
    before = {
        path: path.stat().st_mtime_ns for path in config.out.rglob("*") if path.is_file() and path.name != ".lock"
    }
    lines = (config.out / "metrics.jsonl").read_text()
    capsys.readouterr()
    assert train(config) == config.out / "model"
    assert "step 6 was the last: nothing is left to train" in capsys.readouterr().err
    after = {path: path.stat().st_mtime_ns for path in config.out.rglob("*") if path.is_file() and path.name != ".lock"}
    del before[config.out / "metrics.jsonl"], after[config.out / "metrics.jsonl"]
    assert after == before
    assert (config.out / "metrics.jsonl").read_text() == lines
    shutil.rmtree(config.out / "model")  # as after a kill at the very end
    train(config)
    assert (config.out / "model" / "adapter_model.safetensors").is_file()


@pytest.mark.parametrize("kind", ["lora", "full"])
def test_all_may_read_what_the_umask_lets_them(config, kind):
    config = changed(config, adapter={"kind": kind}, optim={"steps": 2})
    mask = os.umask(0o022)
    try:
        train(config)
    finally:
        os.umask(mask)
    files = [p for folder in ("model", "checkpoints") for p in (config.out / folder).rglob("*") if p.is_file()]
    assert len(files) > 8
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o644"}


def test_lines_say_which_stage_is_at_work(config, capsys):
    train(changed(config, stages=[{"length": "1k", "steps": 1}, {"length": "1k", "name": "again", "steps": 2}]))
    said = capsys.readouterr().err
    assert "  1k (1 of 2) 100%  " in said
    assert "  again (2 of 2)  50%  " in said
    assert said.count(" left of the stage") == 3
