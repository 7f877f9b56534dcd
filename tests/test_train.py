"""Training on one process: positions, loss, checkpoints. Small models made here; nothing is downloaded."""

import json
import math
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import NATIVE, rows_of
from transformers import AutoModelForCausalLM

from repo2ctx.config import read_config
from repo2ctx.errors import ConfigError, ModelError, OutputError, Repo2CtxError
from repo2ctx.models import attach_adapter, load_base, load_tuned
from repo2ctx.repolist import parse_plain
from train import loop
from train import run as train_run
from train.attention import row_inputs, use
from train.batches import Supply
from train.checkpoint import newest
from train.config import TrainConfig
from train.loop import train
from train.loss import loss_sum
from train.metrics import Metrics
from train.model import make_model
from train.output import run_directory
from train.stages import resolve_stages

ROOT = Path(__file__).parents[1]


def changed(config: TrainConfig, **sections) -> TrainConfig:
    values = config.model_dump()
    for name, options in sections.items():
        values[name] = {**values[name], **options} if isinstance(options, dict) else options
    return TrainConfig.model_validate(values)


def made(config: TrainConfig):
    """(model, the rows of its first steps)."""
    stages = resolve_stages(config)
    model, _ = make_model(config, stages[0])
    use(model, config.attention.path)
    supply = Supply(stages, config.loss, config.seed)
    return model, [row for _ in range(3) for row in supply.step(stages[0])]


def ours(model, row, chunk=2048) -> torch.Tensor:
    return loss_sum(model, row, row_inputs(row.documents, "cpu", False), chunk)


def plain(model, row) -> torch.Tensor:
    """The same the long way: each document by itself, all logits, labels shifted by hand, target tokens alone."""
    total, start = torch.zeros(()), 0
    weight_of = dict(zip(row.positions_P.tolist(), row.weights_P.tolist(), strict=True))
    for length in row.documents:
        ids = row.ids_T[start : start + length]
        logp = torch.log_softmax(model(input_ids=ids[None], use_cache=False).logits[0].float(), -1)
        for t in range(1, length):
            total = total - weight_of.get(start + t, 0.0) * logp[t - 1, ids[t]]
        start += length
    return total


@pytest.mark.parametrize("chunk", [7, 2048])
@pytest.mark.parametrize("weights", [{}, {"context_weight": 1.0}, {"context_weight": 0.25, "target_weight": 2.0}])
def test_one_steps_gradients_are_those_of_a_plain_loop(config, weights, chunk):
    config = changed(config, loss=weights)
    model, rows = made(config)
    assert max(len(row.documents) for row in rows) > 1  # rows are shared
    reference, _ = make_model(changed(config, model={"checkpointing": False}), resolve_stages(config)[0])
    for name, weight in model.named_parameters():
        if "lora_B" in name:  # zero at first, which would hide half of the gradients
            torch.manual_seed(len(name))
            torch.nn.init.normal_(weight, std=0.02)
    reference.load_state_dict(model.state_dict())
    weight = sum(row.weight for row in rows)
    losses = [ours(model, row, chunk) / weight for row in rows]
    expected = [plain(reference, row) / weight for row in rows]
    torch.testing.assert_close(torch.stack(losses), torch.stack(expected))
    sum(losses).backward()
    sum(expected).backward()
    compared = 0
    for (name, a), (_, b) in zip(model.named_parameters(), reference.named_parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None) == (not a.requires_grad), name
        if a.grad is not None:
            assert b.grad.abs().max() > 0, name
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-7)
            compared += 1
    assert compared == 2 * 4 * 2  # A and B, four projections, two layers


def test_what_counts_is_the_target_and_never_a_documents_first_token(config):
    _, rows = made(config)
    _, all_rows = made(changed(config, loss={"context_weight": 0.5}))
    for row, counted in zip(rows, all_rows, strict=True):
        assert row.weight == row.target_tokens == len(row.positions_P)
        starts = {sum(row.documents[:i]) for i in range(len(row.documents))}
        assert set(range(len(row.ids_T))) - set(counted.positions_P.tolist()) == starts
        targets = counted.positions_P[counted.weights_P == 1.0]
        assert targets.tolist() == row.positions_P.tolist()
        assert sum(row.documents) == len(row.ids_T)


def lines(out: Path) -> list[dict]:
    found = [r for line in (out / "metrics.jsonl").read_text().splitlines() if "loss" in (r := json.loads(line))]
    return [{k: r[k] for k in ("step", "loss", "grad_norm", "lr", "tokens")} for r in found]


def test_a_resumed_run_is_the_uninterrupted_one_to_the_last_bit(config, tmp_path, monkeypatch):
    config = changed(config, adapter={"dropout": 0.1})
    train(config)
    broken = changed(config, out=tmp_path / "broken")
    real, calls = loop.loss_sum, []

    def stop_in_step_four(*arguments):
        calls.append(1)
        if len(calls) > 1 and len(lines(broken.out)) == 3 and len(calls) % 2 == 0:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(loop, "loss_sum", stop_in_step_four)
    with pytest.raises(KeyboardInterrupt):
        train(broken)
    monkeypatch.undo()
    assert newest(broken.out / "checkpoints").name == "step-000002"
    assert len(lines(broken.out)) == 3  # one more than the checkpoint: it is made again
    train(broken)
    assert lines(broken.out) == lines(config.out)
    weights = [(out / "model" / "adapter_model.safetensors").read_bytes() for out in (config.out, broken.out)]
    assert weights[0] == weights[1]
    losses = [r["loss"] for r in lines(config.out)]
    assert losses[-1] < losses[0]
    assert len(list((config.out / "checkpoints").iterdir())) == 2


def test_the_adapter_reloads_in_plain_transformers_and_peft(config):
    folder = train(config)
    stored = json.loads((folder / "repo2ctx.json").read_text())
    assert stored["rope_parameters"]["factor"] == 4.0
    assert (folder / "tokenizer.json").is_file()
    base = AutoModelForCausalLM.from_pretrained(config.model.base)
    assert base.config.rope_parameters["rope_type"] == "default"
    with pytest.raises(ModelError, match="load_tuned"):
        attach_adapter(base, folder)
    code = next(
        b for b in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL) if "peft" in b
    )
    names: dict = {}
    exec(code.replace("outputs/my/model", str(folder)), names)
    plain = names["model"].eval()
    ours = load_tuned(folder).eval()
    ids = torch.randint(0, 512, (1, 8), generator=torch.Generator().manual_seed(1))
    positions = torch.arange(10_000, 10_008)[None]
    with torch.no_grad():
        expected = ours(input_ids=ids, position_ids=positions).logits
        torch.testing.assert_close(plain(input_ids=ids, position_ids=positions).logits, expected, rtol=0, atol=0)
        untuned = load_base(str(config.model.base), stored["rope_parameters"], stored["max_position_embeddings"]).eval()
        assert not torch.allclose(untuned(input_ids=ids, position_ids=positions).logits, expected)


def test_what_does_not_fit_is_told(config, tmp_path):
    train(changed(config, optim={"steps": 1}))
    with pytest.raises(ConfigError, match=r"another configuration \(optim.steps 1 -> 2\)"):
        train(changed(config, optim={"steps": 2}))
    with pytest.raises(ConfigError, match=r"adapter.r 4 -> 8; adapter.modules"):
        train(changed(config, optim={"steps": 1}, adapter={"r": 8, "modules": ("q_proj",)}))
    with pytest.raises(ConfigError, match="it has packed/1k/train"):
        train(changed(config, data={"length": "4k"}))
    new = changed(config, out=tmp_path / "new")
    with pytest.raises(ConfigError, match=r"rows of 1k are longer than its context of 512; set rope.target=1k"):
        train(changed(new, rope={"target": NATIVE}))
    with pytest.raises(
        ConfigError, match=r"adapter.modules: .* has no linear layer no_such_proj; it has down_proj, .*, q_proj"
    ):
        train(changed(new, adapter={"modules": ("no_such_proj",)}))
    with pytest.raises(ModelError, match="no such directory"):
        train(changed(new, model={"base": "/nowhere/at/all"}))
    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match="torch sees no GPU"):
            train(changed(new, model={"device": "cuda"}))
    assert not (tmp_path / "new").exists()


def test_bases_that_cannot_be_trained_are_refused(config, base):
    shape = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps({"model_type": "gpt2", "vocab_size": 512}))
    with pytest.raises(ModelError, match="gpt2 has no RoPE that could be extended"):
        train(config)
    (base / "config.json").write_text(json.dumps({"model_type": "nothing that exists"}))
    with pytest.raises(ModelError, match="cannot be loaded"):
        train(config)
    (base / "config.json").write_text(json.dumps(shape))
    (base / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0not json")
    with pytest.raises(ModelError, match="cannot be loaded"):
        train(config)
    (base / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"has no tokenizer.json"):
        train(config)


def test_rows_must_hold_the_ids_of_the_models_tokenizer(config, base):
    """The very ids are compared, so that the same vocabulary in another file is taken."""
    source = json.loads((base / "tokenizer.json").read_text())
    (base / "tokenizer.json").write_text(json.dumps(source, indent=1))
    train(changed(config, optim={"steps": 1}))
    tokens = source["model"]["vocab"]
    swapped = {"a": tokens["e"], "e": tokens["a"]}
    source["model"]["vocab"] = tokens | swapped
    (base / "tokenizer.json").write_text(json.dumps(source))
    with pytest.raises(ConfigError, match=r"ids are not those of the model.*build with --tokenizer"):
        train(changed(config, optim={"steps": 1}))


def test_rows_must_hold_the_chat_of_the_model(config, base):
    """The same ids for every text, and yet another prompt: the model has a chat template that the rows were made without."""
    settings = json.loads((base / "tokenizer_config.json").read_text())
    settings["chat_template"] = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    (base / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ConfigError, match=r"the beginning of .*build with --tokenizer"):
        train(changed(config, optim={"steps": 1}))


def test_other_rows_are_not_gone_on_with(config, tmp_path, make_repo, base):
    config = changed(config, optim={"steps": 1})
    train(config)
    shutil.rmtree(config.data.path)
    repo = make_repo({"README.md": "# T\n\nKeeps other notes and finds them again.\n", "a.py": "x = 1\n"}, "other")
    rows_of([parse_plain(str(repo), tmp_path)], base, config.data.path)
    with pytest.raises(ConfigError, match="holds a run on other rows"):
        train(config)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_losses_of_the_cpu(config, tmp_path):
    train(config)
    gpu = changed(config, model={"device": "cuda"}, out=tmp_path / "gpu")
    train(gpu)
    for ours, theirs in zip(lines(gpu.out), lines(config.out), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=2e-3), ours["step"]
    shutil.rmtree(gpu.out / "checkpoints" / "step-000006")
    before = lines(gpu.out)
    train(gpu)
    assert [r["loss"] for r in lines(gpu.out)] == pytest.approx([r["loss"] for r in before], rel=1e-4)
    models = [load_tuned(gpu.out / "model", device=d).eval() for d in ("cpu", "cuda")]
    ids = torch.arange(3, 40)[None]
    with torch.no_grad():
        cpu, cuda = (m(input_ids=ids.to(m.device)).logits.cpu() for m in models)
    torch.testing.assert_close(cpu, cuda, rtol=1e-3, atol=1e-3)


def test_a_line_of_metrics_that_was_cut_off_is_dropped(tmp_path, capsys):
    record = {
        "stage": "1k",
        "loss": 1.0,
        "grad_norm": 1.0,
        "lr": 1e-3,
        "tokens_per_s": 5.0,
        "seconds": 2.0,
        "memory_gb": 0.5,
    }
    path = tmp_path / "metrics.jsonl"
    with Metrics(path, 0) as metrics:
        metrics.write({"step": 1} | record, 0, 0.25)
        metrics.write({"step": 2} | record, 0.25, 0.5)
    path.write_text(path.read_text() + '{"step": 3, "lo')
    with Metrics(path, 2) as metrics:
        metrics.write({"step": 3} | record, 0.5, 0.75)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2, 3]
    assert (
        "step     3  1k  75%  loss 1.0000  norm 1.000  lr 1.00e-03  5 tokens/s  0.5 GB  2 s left"
        in capsys.readouterr().err
    )


def test_recipes_can_be_read_without_data_or_model():
    for recipe in (ROOT / "data" / "recipes").glob("*.yaml"):
        assert read_config(TrainConfig, recipe, {"optim": {"steps": 3}}).optim.steps == 3
    with pytest.raises(ConfigError, match="did you mean 'steps'"):
        read_config(TrainConfig, ROOT / "data" / "recipes" / "demo.yaml", {"optim": {"step": 3}})


def test_what_lies_in_out_is_not_ours_to_remove(config):
    (config.out / "model").mkdir(parents=True)
    (config.out / "model" / "important.txt").write_text("mine")
    with pytest.raises(OutputError, match="holds model of something else; give another `out`"):
        train(config)
    assert (config.out / "model" / "important.txt").read_text() == "mine"


def test_one_process_at_a_time(config):
    identity = {"config": {}, "rows": "", "base": ""}
    with run_directory(config.out, identity), pytest.raises(OutputError, match="another process is training there"):
        train(config)
    train(changed(config, optim={"steps": 1}))


def test_an_out_that_cannot_be_written(config, tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError, match="give another `out`"):
            train(changed(config, out=out))


def test_a_damaged_checkpoint_is_told_and_the_one_before_it_serves(config, tmp_path):
    config = changed(config, adapter={"dropout": 0.1})
    train(config)
    expected = (config.out / "model" / "adapter_model.safetensors").read_bytes()
    place = config.out / "checkpoints" / "step-000006"
    (config.out / "checkpoints" / "step-9").mkdir()
    (config.out / "checkpoints" / "step-000007.bak").mkdir()
    for name in ("state.pt", "adapter_model.safetensors", "run.json"):
        kept = (place / name).read_bytes()
        for damage in (kept[:-9], b"", kept.replace(b"6", b"7", 1) if name == "run.json" else kept[:-1] + b"?"):
            (place / name).write_bytes(damage)
            if damage != kept and name == "run.json" and b"7" in damage:
                continue
            with pytest.raises(OutputError, match=r"step-000006: is damaged; remove it"):
                train(config)
        (place / name).write_bytes(kept)
    shutil.rmtree(place)
    train(config)
    assert (config.out / "model" / "adapter_model.safetensors").read_bytes() == expected
    assert newest(config.out / "checkpoints") == place


def test_the_newest_checkpoint_is_that_of_the_last_step(tmp_path):
    for name in ("step-999999", "step-1000000", "step-000003", "step-2", "notes"):
        (tmp_path / name).mkdir()
    assert newest(tmp_path).name == "step-1000000"


def test_weights_that_are_not_finite_are_never_saved(config):
    config = changed(config, checkpoint={"every": 1})
    real = torch.optim.AdamW.step

    def explode(self, *arguments):
        real(self, *arguments)
        self.param_groups[0]["params"][0].data[0] = math.inf

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", explode)
        with pytest.raises(Repo2CtxError, match=r"weights that are not finite, on row .* lower optim.lr"):
            train(config)
    assert newest(config.out / "checkpoints") is None
    assert not (config.out / "model").exists()


def test_a_bases_own_code_is_never_run(config, base, tmp_path):
    marker = tmp_path / "ran"
    code = f"open({str(marker)!r}, 'w')\nfrom transformers import LlamaConfig as C, LlamaForCausalLM as M\n"
    (base / "evil.py").write_text(code)
    shape = json.loads((base / "config.json").read_text())
    shape |= {"model_type": "own", "auto_map": {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"}}
    (base / "config.json").write_text(json.dumps(shape))
    with pytest.raises(ModelError, match="cannot be loaded"):
        train(config)
    assert not marker.exists()


def test_a_base_that_is_not_whole_is_refused(config, base):
    weights = load_file(base / "model.safetensors")
    weights.pop("model.layers.1.mlp.up_proj.weight")
    save_file(weights, base / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=r"lack 1 weights, such as model.layers.1.mlp.up_proj.weight"):
        train(config)


def test_a_shard_whose_bytes_changed_is_refused(config):
    shard = next(p for p in config.data.path.glob("packed/1k/train/*.arrow"))
    whole = shard.read_bytes()
    shard.write_bytes(whole[:2000] + b"\1" + whole[2001:])
    with pytest.raises(OutputError, match="its bytes are not those that were written"):
        train(config)
    shard.unlink()
    with pytest.raises(OutputError, match="cannot be read"):
        train(config)


def test_a_base_is_stored_by_its_own_path(config, base, monkeypatch):
    monkeypatch.chdir(base.parent)
    folder = train(changed(config, model={"base": "base"}, optim={"steps": 1}))
    monkeypatch.chdir("/")
    assert json.loads((folder / "repo2ctx.json").read_text())["base"] == str(base)
    load_tuned(str(folder))
    assert "rope_parameters" in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("optim.lr=[", "is not YAML"),
        ("optim.lr=.inf", "optim.lr"),
        ("optim.lr=abc", "optim.lr: Input should be a valid number, unable to parse string as a number, not 'abc'"),
        ("rope.method=foo", "not 'foo'"),
        ("out.x=1", "out is 'outputs/demo', and has no x"),
        ("seed=-1", "seed"),
        ("adapter.modules=[]", "adapter.modules"),
        ("adapter.r=100000000000", "adapter.r"),
        ("optim.rows_per_step=1000000000000", "rows_per_step"),
        ("optim.=1", "expected section.key=value"),
        ("optim", "expected section.key=value"),
        ("optim..lr=1", "expected section.key=value"),
        ("stages.0.steps=5", "stages has no 0; there are none; give them whole"),
        ("stages.0={length: 1k}", "stages has no 0; there are none; give them whole"),
        ("optim.betas.0=0.8", "give optim.betas whole"),
        ("optimal.lr=1", "optimal"),
    ],
)
def test_overrides_that_cannot_be_used(override, says, monkeypatch, capsys):
    recipe = str(ROOT / "data" / "recipes" / "demo.yaml")
    monkeypatch.setattr("sys.argv", ["train.run", "--config", recipe, override, "--dry-run"])
    assert train_run.main() == 2
    assert says in capsys.readouterr().err


def test_stages_as_an_override(monkeypatch, capsys):
    recipe = str(ROOT / "data" / "recipes" / "smollm2-1m.yaml")
    monkeypatch.setattr("sys.argv", ["train.run", "--config", recipe, "stages=[{length: 64k, steps: 3}]", "--dry-run"])
    assert train_run.main() == 0
    assert "length: 64k" in capsys.readouterr().out


def test_top_level_overrides(monkeypatch, capsys):
    recipe = str(ROOT / "data" / "recipes" / "demo.yaml")
    monkeypatch.setattr(
        "sys.argv", ["train.run", "--config", recipe, "seed=5", "out=x/y", "optim.lr=1e-4", "--dry-run"]
    )
    assert train_run.main() == 0
    assert "out: x/y\nseed: 5\n" in capsys.readouterr().out
