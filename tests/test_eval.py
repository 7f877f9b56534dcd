"""Evaluation and summaries: the right likelihood under the right context, and the prompt of training."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import git
from safetensors.torch import load_file, save_file
from tiny import Silent

from eval import run as eval_run
from eval.likelihood import Example, examples, likelihood, score, summarise
from eval.run import evaluate, markdown
from repo2ctx.config import TokensConfig
from repo2ctx.dataset import Dataset
from repo2ctx.errors import ModelError, OutputError, Repo2CtxError, UsageError
from repo2ctx.models import load_base, load_tuned, read_settings
from repo2ctx.progress import printable_json
from repo2ctx.summarize import Summary, as_markdown, default_model, summarize
from repo2ctx.tokens import load_tokenizer
from train import loop

ROOT = Path(__file__).parents[1]


@pytest.fixture
def tuned(config) -> Path:
    return loop.train(config)


def test_a_score_is_the_sum_over_the_target_after_its_context(config, data):
    model = load_base(config.model.base).eval()
    found = examples(Dataset(data), "packed/1k/train")
    assert len(found) == 6
    for example in found[:3]:
        ids = torch.tensor([*example.context_C.tolist(), *example.target_T.tolist()])
        with torch.no_grad():
            logp = torch.log_softmax(model(input_ids=ids[None]).logits[0].float(), -1)
        start = len(example.context_C)
        expected = -sum(logp[t - 1, ids[t]].item() for t in range(start, len(ids)))
        ours = score(model, example, example.context_C)
        assert ours.nll == pytest.approx(expected, rel=1e-5)
        assert ours.tokens == len(ids) - start
        assert ours.bytes == len("Keeps note number 0 and finds it by its words again.")


def test_the_other_context_is_another_repositorys(config, data, monkeypatch):
    found = examples(Dataset(data), "packed/1k/train")
    seen = []
    monkeypatch.setattr(
        "eval.likelihood.score", lambda model, e, context: seen.append((e.repository, context.tobytes()))
    )
    likelihood(None, found, [])
    own = {e.repository: e.context_C.tobytes() for e in found}
    assert [own[r] == c for r, c in seen] == [True] * 6 + [False] * 6
    seen.clear()
    likelihood(None, found[:1], found[1:])
    assert [own[r] == c for r, c in seen] == [True, False]
    seen.clear()
    assert likelihood(None, found[:1], [])["other"] == []


def test_means_and_errors():
    from eval.likelihood import Score

    got = summarise([Score("a", "line", 4.0, 2, 8), Score("b", "line", 12.0, 3, 6)])
    assert got["n"] == 2
    assert got["nll_per_token"] == 3.0
    assert got["nll_per_token_stderr"] == pytest.approx(1.0)
    assert got["bits_per_byte"] == pytest.approx((0.5 + 2.0) / 2 / math.log(2))
    assert summarise([])["nll_per_token"] is None


def test_a_whole_evaluation(config, data, tuned, tmp_path):
    results = evaluate(str(config.model.base), tuned, data, [1024], "train", "float32", "cpu")
    models = results["results"]["1k"]
    assert set(models) == {"base", "tuned"}
    for contexts in models.values():
        assert contexts["own"]["n"] == contexts["other"]["n"] == 6
        assert len(contexts["own"]["examples"]) == 6
    # it was trained on these very targets
    assert models["tuned"]["own"]["nll_per_token"] < models["base"]["own"]["nll_per_token"]
    table = markdown(results).splitlines()
    assert len(table) == 4
    assert all(line.count("|") == 8 for line in table)
    done = subprocess.run(
        [sys.executable, "-m", "eval.run", "--base", str(config.model.base), "--tuned", str(tuned), "--data", str(data),
         "--lengths", "1k", "--split", "train", "--device", "cpu", "--out", str(tmp_path / "results")],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == markdown(results)
    assert json.loads((tmp_path / "results" / "results.json").read_text())["results"] == results["results"]


def test_what_cannot_be_compared_is_told(config, data, tuned, tmp_path):
    base = str(config.model.base)
    with pytest.raises(OutputError, match="no rows in packed/1k/test"):
        evaluate(base, tuned, data, [1024], "test", "float32", "cpu")
    with pytest.raises(ModelError, match="was trained on"):
        evaluate("smollm2", tuned, data, [1024], "train", "float32", "cpu")
    with pytest.raises(ModelError, match="holds no readable"):
        evaluate(base, tmp_path, data, [1024], "train", "float32", "cpu")
    settings = read_settings(tuned)
    for change, says in [
        ({"prompt_version": 0}, "prompt version 0"),
        ({"tokenizer_fingerprint": "x"}, "another tokenizer"),
    ]:
        (tuned / "repo2ctx.json").write_text(json.dumps({**settings, **change}))
        with pytest.raises(ModelError, match=says):
            evaluate(base, tuned, data, [1024], "train", "float32", "cpu")


def test_a_summary_is_made_from_the_prompt_of_training(config, data, made, tuned, monkeypatch):
    repo = made / "repo1"
    dataset = Dataset(data)
    row = next(e for e in examples(dataset, "packed/1k/train") if e.repository.startswith(f"local/{made.name}/repo1@"))
    seen = {}

    def generate(model, context_C, longest, tokenizer, *_):
        seen["context"], seen["longest"] = context_C, longest
        return [70, 71, tokenizer.eos]

    monkeypatch.setattr("repo2ctx.summarize._generate", generate)
    found = summarize(repo, str(tuned), "line", None, None, Silent())
    assert found.complete
    assert seen["context"].tolist() == row.context_C.tolist()
    assert found.commit == git(repo, "rev-parse", "HEAD").strip()
    assert found.files_used == ["a.py"]
    assert found.files_left_out == []
    assert found.tokens == len(row.context_C)
    assert found.summary == load_tokenizer(TokensConfig(tokenizer=str(config.model.base))).decode([70, 71]).strip()
    assert f"{len(row.context_C):,} tokens from 1 files; 0 files were left out" in as_markdown(found)


def test_a_summary_really_comes_out_of_the_model(config, data, made, tuned):
    done = subprocess.run(
        [sys.executable, "-m", "repo2ctx.cli", "summarize", str(made / "repo1"), "--model", str(tuned), "--format", "json"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {"summary", "complete", "model", "commit", "files_used", "files_left_out", "tokens"}
    assert "tokens of 1 files on" in done.stderr
    example = next(
        e for e in examples(Dataset(data), "packed/1k/train") if e.repository.startswith(f"local/{made.name}/repo1@")
    )
    ids = torch.from_numpy(example.context_C.astype("int64"))[None]
    model, answer = load_tuned(tuned).eval(), []
    with torch.no_grad():
        for _ in range(64):
            answer.append(model(input_ids=ids).logits[0, -1].argmax().item())
            if answer[-1] == 2:
                break
            ids = torch.cat([ids, torch.tensor([[answer[-1]]])], 1)
    tokenizer = load_tokenizer(TokensConfig(tokenizer=str(config.model.base)))
    said = tokenizer.decode([t for t in answer if t != 2]).strip()
    assert found["summary"] == said.partition("\n")[0]
    assert found["complete"] == (answer[-1] == 2 or "\n" in said)


def test_the_newest_model_is_taken(tmp_path):
    import os

    assert default_model(tmp_path) == "smollm2"
    for i, name in enumerate(("b", "a")):
        folder = tmp_path / name / "model"
        folder.mkdir(parents=True)
        (folder / "repo2ctx.json").write_text("{}")
        os.utime(folder / "repo2ctx.json", (i, i))
    assert default_model(tmp_path) == str(tmp_path / "a" / "model")


def test_places_that_cannot_be_summarized(config, tmp_path, make_repo):
    repo = make_repo({"sub/a.py": "x = 1\n"}, "other")
    with pytest.raises(Repo2CtxError, match="inside the repository"):
        summarize(repo / "sub", str(config.model.base), "line", 512, None, Silent())
    with pytest.raises(Repo2CtxError, match=r"no kept file$"):
        summarize(
            make_repo({"node_modules/a/index.js": "x"}, "empty"), str(config.model.base), "line", 512, None, Silent()
        )
    with pytest.raises(Repo2CtxError, match="target longer than the row; raise --length"):
        summarize(make_repo({"a.py": "x = 1\n" * 400}, "large"), str(config.model.base), "line", 512, 500, Silent())
    with pytest.raises(UsageError, match=r"--length 1k is more than the context of .*, 512; lower it"):
        summarize(repo, str(config.model.base), "line", 1024, None, Silent())
    assert isinstance(Example("r", "line", None, None, 0), Example)


def test_a_summary_cannot_steer_a_terminal(tmp_path):
    found = Summary("a\x1b[31m\x9bb", False, "m", "c" * 40, ["a.py"], ["\x1b]0;x\x07.py"], 5)
    shown = as_markdown(found)
    assert shown.startswith("a\\x1b[31m\\x9bb […]\n")
    assert all(c.isprintable() or c == "\n" for c in shown)
    text = printable_json({"summary": found.summary, "files": found.files_left_out, "word": "naïve 日本"})
    assert all(c.isprintable() or c == "\n" for c in text)
    assert "naïve 日本" in text
    assert json.loads(text)["files"] == found.files_left_out


def test_damaged_adapters_are_refused(config, data, tuned):
    settings = json.loads((tuned / "repo2ctx.json").read_text())
    for change in (
        {"base": 5},
        {"rope_parameters": "x"},
        {"length": "8k"},
        {"max_position_embeddings": "x"},
        {"length": None},
    ):
        (tuned / "repo2ctx.json").write_text(json.dumps(settings | change))
        with pytest.raises(ModelError, match=f"no readable repo2ctx.json.*{next(iter(change))}"):
            load_tuned(tuned)
    (tuned / "repo2ctx.json").write_text(json.dumps(settings))
    weights = load_file(tuned / "adapter_model.safetensors")
    save_file(dict(list(weights.items())[1:]), tuned / "adapter_model.safetensors")
    with pytest.raises(ModelError, match="missing adapter keys"):
        load_tuned(tuned)
    save_file({k: v * math.nan for k, v in weights.items()}, tuned / "adapter_model.safetensors")
    with pytest.raises(ModelError, match="weights are not sound"):
        evaluate(None, tuned, data, [1024], "train", "float32", "cpu")
    (tuned / "adapter_model.safetensors").write_bytes(b"x")
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_tuned(tuned)


def test_results_that_cannot_be_written_are_told_before_the_work(config, data, tuned, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    (tmp_path / "results" / "results.json").mkdir(parents=True)
    for out in ("file", "file/below", "results"):
        arguments = [
            "eval.run",
            "--tuned",
            str(tuned),
            "--data",
            str(data),
            "--lengths",
            "1k",
            "--out",
            str(tmp_path / out),
        ]
        monkeypatch.setattr("sys.argv", arguments)
        monkeypatch.setattr("eval.run.evaluate", lambda *_: pytest.fail("the work has begun"))
        assert eval_run.main() == 1
        assert "give another --out" in capsys.readouterr().err
