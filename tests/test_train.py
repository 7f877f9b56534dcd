"""Training on one process: positions, loss, checkpoints. Small models made here; nothing is downloaded."""

import json
import math
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import NATIVE, rows_of, tiny_shape
from transformers import AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from repo2ctx.config import read_config
from repo2ctx.errors import ConfigError, ModelError, OutputError, Repo2CtxError
from repo2ctx.models import attach_adapter, load_base, load_tuned
from repo2ctx.repolist import parse_plain
from train import run as train_run
from train.batches import Rows
from train.checkpoint import newest
from train.config import TrainConfig
from train.loss import target_loss_sum
from train.metrics import Metrics
from train.model import make_model
from train.output import run_directory
from train.rope import yarn_parameters

ROOT = Path(__file__).parents[1]


def changed(config: TrainConfig, **sections) -> TrainConfig:
    values = config.model_dump()
    for name, options in sections.items():
        values[name] = {**values[name], **options} if isinstance(options, dict) else options
    return TrainConfig.model_validate(values)


def plain_loss(model, ids: torch.Tensor, target_start: int) -> torch.Tensor:
    """The same loss the long way: all logits, labels shifted by hand."""
    logits = model(input_ids=ids[None]).logits[0].float()
    picked = torch.log_softmax(logits, -1)[torch.arange(len(ids) - 1), ids[1:]]
    return -picked[target_start - 1 :].sum()


@pytest.mark.parametrize("scale", [2.0, 4.0, 16.0, 128.0])
def test_yarn_is_the_papers(scale):
    theta, dim = 500_000.0, 64
    parameters = yarn_parameters(8192, int(8192 * scale), {"rope_theta": theta})
    assert parameters["factor"] == scale
    shape = tiny_shape(
        hidden_size=dim * 2,
        num_attention_heads=2,
        rope_parameters=parameters,
        max_position_embeddings=int(8192 * scale),
    )
    rotary = LlamaRotaryEmbedding(shape)
    for i in range(dim // 2):
        frequency = theta ** (-2 * i / dim)
        # section 3.2 and 3.3: r = L * frequency / 2 pi turns; a ramp between alpha = 1 and beta = 32 turns.
        # The dimensions of the ramp's ends are rounded outward, as in the authors' own code.
        low = math.floor(dim * math.log(8192 / (32 * 2 * math.pi)) / (2 * math.log(theta)))
        high = math.ceil(dim * math.log(8192 / (1 * 2 * math.pi)) / (2 * math.log(theta)))
        ramp = min(1.0, max(0.0, (i - low) / (high - low)))
        expected = frequency / scale * ramp + frequency * (1 - ramp)
        assert rotary.inv_freq[i].item() == pytest.approx(expected, rel=1e-5)
    assert rotary.attention_scaling == pytest.approx(0.1 * math.log(scale) + 1, rel=1e-6)


def test_a_target_within_the_native_length_changes_nothing():
    given = {"rope_theta": 1e5, "partial_rotary_factor": 0.5}
    assert yarn_parameters(8192, 8192, given) == {"rope_type": "default"} | given
    assert yarn_parameters(8192, 16384, given)["partial_rotary_factor"] == 0.5
    with pytest.raises(ValueError, match="positive"):
        yarn_parameters(0, 1, given)


def test_frequencies_stay_in_full_precision(base):
    model = load_base(str(base), yarn_parameters(NATIVE, 4 * NATIVE, {"rope_theta": 1e4}), 4 * NATIVE, "bfloat16")
    assert model.model.rotary_emb.inv_freq.dtype == torch.float32
    assert model.lm_head.weight.dtype == torch.bfloat16


def test_one_steps_gradients_are_those_of_a_plain_loop(config):
    rows = Rows(config.data.path, config.data.table, 0)
    documents = [d for k in range(2) for d in rows.documents(k)]
    assert len(documents) > 2  # rows are shared
    counted = sum(d.counted for d in documents)
    ours, _ = make_model(config)
    plain, _ = make_model(changed(config, model={"checkpointing": False}))
    plain.load_state_dict(ours.state_dict())
    for model in (ours, plain):
        for name, weight in model.named_parameters():
            if "lora_B" in name:  # zero at first, which would hide half of the gradients
                torch.manual_seed(len(name))
                torch.nn.init.normal_(weight, std=0.02)
    for d in documents:
        (target_loss_sum(ours, d.ids_T, d.target_start) / counted).backward()
    sum(plain_loss(plain, d.ids_T, d.target_start) for d in documents).div(counted).backward()
    compared = 0
    for (name, a), (_, b) in zip(ours.named_parameters(), plain.named_parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None) == (not a.requires_grad), name
        if a.grad is not None:
            assert b.grad.abs().max() > 0, name
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-7)
            compared += 1
    assert compared == 2 * 4 * 2  # A and B, four projections, two layers


def test_each_document_of_a_pack_has_the_loss_that_it_has_alone(config):
    rows = Rows(config.data.path, config.data.table, 0)
    model, _ = make_model(config)
    shared = next(k for k in range(rows.count) if len(list(rows.documents(k))) > 1)
    row = rows.dataset.packed_row(config.data.table, rows.index(shared))
    for document, segment in zip(rows.documents(shared), row["segments"], strict=True):
        alone = torch.tensor(row["input_ids"][segment["start"] : segment["target_end"]].tolist())
        expected = plain_loss(model, alone, segment["target_start"] - segment["start"])
        torch.testing.assert_close(target_loss_sum(model, document.ids_T, document.target_start), expected)
        assert document.counted == segment["target_end"] - segment["target_start"]


def lines(out: Path) -> list[dict]:
    found = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{k: r[k] for k in ("step", "loss", "grad_norm", "lr", "tokens")} for r in found]


def test_a_resumed_run_is_the_uninterrupted_one_to_the_last_bit(config, tmp_path, monkeypatch):
    config = changed(config, adapter={"dropout": 0.1})
    train_run.train(config)
    broken = changed(config, out=tmp_path / "broken")
    real, calls = train_run.target_loss_sum, []

    def stop_in_step_four(*arguments):
        calls.append(1)
        if len(lines(broken.out)) == 3 and len(calls) % 2 == 0:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(train_run, "target_loss_sum", stop_in_step_four)
    with pytest.raises(KeyboardInterrupt):
        train_run.train(broken)
    monkeypatch.undo()
    assert newest(broken.out / "checkpoints").name == "step-000002"
    assert len(lines(broken.out)) == 3  # one more than the checkpoint: it is made again
    train_run.train(broken)
    assert lines(broken.out) == lines(config.out)
    weights = [(out / "model" / "adapter_model.safetensors").read_bytes() for out in (config.out, broken.out)]
    assert weights[0] == weights[1]
    losses = [r["loss"] for r in lines(config.out)]
    assert losses[-1] < losses[0]
    assert len(list((config.out / "checkpoints").iterdir())) == 2


def test_the_adapter_reloads_in_plain_transformers_and_peft(config):
    folder = train_run.train(config)
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
    train_run.train(changed(config, optim={"steps": 1}))
    with pytest.raises(ConfigError, match=r"another configuration \(optim.steps 1 -> 2\)"):
        train_run.train(changed(config, optim={"steps": 2}))
    with pytest.raises(ConfigError, match=r"adapter.r 4 -> 8; adapter.modules"):
        train_run.train(changed(config, optim={"steps": 1}, adapter={"r": 8, "modules": ("q_proj",)}))
    with pytest.raises(ConfigError, match="it has packed/1k/train"):
        train_run.train(changed(config, data={"length": "4k"}))
    new = changed(config, out=tmp_path / "new")
    with pytest.raises(ConfigError, match=r"data.length 1k is more than the context of 512; set rope.target=1k"):
        train_run.train(changed(new, rope={"target": NATIVE}))
    with pytest.raises(
        ConfigError, match=r"adapter.modules: .* has no linear layer no_such_proj; it has down_proj, .*, q_proj"
    ):
        train_run.train(changed(new, adapter={"modules": ("no_such_proj",)}))
    with pytest.raises(ModelError, match="no such directory"):
        train_run.train(changed(new, model={"base": "/nowhere/at/all"}))
    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match="torch sees no GPU"):
            train_run.train(changed(new, model={"device": "cuda"}))
    assert not (tmp_path / "new").exists()


def test_bases_that_cannot_be_extended_are_refused(config, base):
    shape = json.loads((base / "config.json").read_text())
    scaled = shape | {"rope_parameters": yarn_parameters(256, 512, {"rope_theta": 1e4})}
    (base / "config.json").write_text(json.dumps(scaled))
    with pytest.raises(ModelError, match="RoPE scaling of its own"):
        train_run.train(config)
    (base / "config.json").write_text(json.dumps({"model_type": "gpt2", "vocab_size": 512}))
    with pytest.raises(ModelError, match="no plain RoPE"):
        train_run.train(config)
    (base / "config.json").write_text(json.dumps({"model_type": "nothing that exists"}))
    with pytest.raises(ModelError, match="cannot be loaded"):
        train_run.train(config)
    (base / "config.json").write_text(json.dumps(shape))
    (base / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0not json")
    with pytest.raises(ModelError, match="cannot be loaded"):
        train_run.train(config)
    (base / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"has no tokenizer.json"):
        train_run.train(config)


def test_rows_must_hold_the_ids_of_the_models_tokenizer(config, base):
    """The very ids are compared, so that the same vocabulary in another file is taken."""
    source = json.loads((base / "tokenizer.json").read_text())
    (base / "tokenizer.json").write_text(json.dumps(source, indent=1))
    train_run.train(changed(config, optim={"steps": 1}))
    tokens = source["model"]["vocab"]
    swapped = {"a": tokens["e"], "e": tokens["a"]}
    source["model"]["vocab"] = tokens | swapped
    (base / "tokenizer.json").write_text(json.dumps(source))
    with pytest.raises(ConfigError, match=r"ids are not those of the model.*build with --tokenizer"):
        train_run.train(changed(config, optim={"steps": 1}))


def test_rows_must_hold_the_chat_of_the_model(config, base):
    """The same ids for every text, and yet another prompt: the model has a chat template that the rows were made without."""
    settings = json.loads((base / "tokenizer_config.json").read_text())
    settings["chat_template"] = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    (base / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ConfigError, match=r"the beginning of .*build with --tokenizer"):
        train_run.train(changed(config, optim={"steps": 1}))


def test_other_rows_are_not_gone_on_with(config, tmp_path, make_repo, base):
    config = changed(config, optim={"steps": 1})
    train_run.train(config)
    shutil.rmtree(config.data.path)
    repo = make_repo({"README.md": "# T\n\nKeeps other notes and finds them again.\n", "a.py": "x = 1\n"}, "other")
    rows_of([parse_plain(str(repo), tmp_path)], base, config.data.path)
    with pytest.raises(ConfigError, match="holds a run on other rows"):
        train_run.train(config)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_losses_of_the_cpu(config, tmp_path):
    train_run.train(config)
    gpu = changed(config, model={"device": "cuda"}, out=tmp_path / "gpu")
    train_run.train(gpu)
    for ours, theirs in zip(lines(gpu.out), lines(config.out), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=2e-3), ours["step"]
    shutil.rmtree(gpu.out / "checkpoints" / "step-000006")
    before = lines(gpu.out)
    train_run.train(gpu)
    assert [r["loss"] for r in lines(gpu.out)] == pytest.approx([r["loss"] for r in before], rel=1e-4)
    models = [load_tuned(gpu.out / "model", device=d).eval() for d in ("cpu", "cuda")]
    ids = torch.arange(3, 40)[None]
    with torch.no_grad():
        cpu, cuda = (m(input_ids=ids.to(m.device)).logits.cpu() for m in models)
    torch.testing.assert_close(cpu, cuda, rtol=1e-3, atol=1e-3)


def test_a_line_of_metrics_that_was_cut_off_is_dropped(tmp_path, capsys):
    record = {"loss": 1.0, "grad_norm": 1.0, "lr": 1e-3, "tokens_per_s": 5.0}
    path = tmp_path / "metrics.jsonl"
    with Metrics(path, 3, 0) as metrics:
        metrics.write({"step": 1} | record)
        metrics.write({"step": 2} | record)
    path.write_text(path.read_text() + '{"step": 3, "lo')
    with Metrics(path, 3, 2) as metrics:
        metrics.write({"step": 3} | record)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2, 3]
    assert "step     3/3  loss 1.0000  norm 1.000  lr 1.00e-03  5 tokens/s" in capsys.readouterr().err


def test_recipes_can_be_read_without_data_or_model():
    for recipe in (ROOT / "data" / "recipes").glob("*.yaml"):
        assert read_config(TrainConfig, recipe, {"optim": {"steps": 3}}).optim.steps == 3
    with pytest.raises(ConfigError, match="did you mean 'steps'"):
        read_config(TrainConfig, ROOT / "data" / "recipes" / "demo.yaml", {"optim": {"step": 3}})


def test_what_lies_in_out_is_not_ours_to_remove(config):
    (config.out / "model").mkdir(parents=True)
    (config.out / "model" / "important.txt").write_text("mine")
    with pytest.raises(OutputError, match="holds model of something else; give another `out`"):
        train_run.train(config)
    assert (config.out / "model" / "important.txt").read_text() == "mine"


def test_one_process_at_a_time(config):
    identity = {"config": {}, "rows": ""}
    with run_directory(config.out, identity), pytest.raises(OutputError, match="another process is training there"):
        train_run.train(config)
    train_run.train(changed(config, optim={"steps": 1}))


def test_an_out_that_cannot_be_written(config, tmp_path):
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError, match="give another `out`"):
            train_run.train(changed(config, out=out))


def test_a_damaged_checkpoint_is_told_and_the_one_before_it_serves(config, tmp_path):
    config = changed(config, adapter={"dropout": 0.1})
    train_run.train(config)
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
                train_run.train(config)
        (place / name).write_bytes(kept)
    shutil.rmtree(place)
    train_run.train(config)
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
        with pytest.raises(Repo2CtxError, match=r"weights that are not finite, on rows .* lower optim.lr"):
            train_run.train(config)
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
        train_run.train(config)
    assert not marker.exists()


def test_a_base_that_is_not_whole_is_refused(config, base):
    weights = load_file(base / "model.safetensors")
    weights.pop("model.layers.1.mlp.up_proj.weight")
    save_file(weights, base / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=r"lack 1 weights, such as model.layers.1.mlp.up_proj.weight"):
        train_run.train(config)


def test_a_shard_whose_bytes_changed_is_refused(config):
    shard = next(p for p in config.data.path.glob("packed/1k/train/*.arrow"))
    whole = shard.read_bytes()
    shard.write_bytes(whole[:2000] + b"\1" + whole[2001:])
    with pytest.raises(OutputError, match="its bytes are not those that were written"):
        train_run.train(config)
    shard.unlink()
    with pytest.raises(OutputError, match="cannot be read"):
        train_run.train(config)


def test_a_base_is_stored_by_its_own_path(config, base, monkeypatch):
    monkeypatch.chdir(base.parent)
    folder = train_run.train(changed(config, model={"base": "base"}, optim={"steps": 1}))
    monkeypatch.chdir("/")
    assert json.loads((folder / "repo2ctx.json").read_text())["base"] == str(base)
    load_tuned(str(folder))
    assert "rope_parameters" in (folder / "README.md").read_text()


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("optim.lr=[", "is not YAML"),
        ("optim.lr=.inf", "optim.lr"),
        ("optim.lr=abc", "optim.lr"),
        ("out.x=1", "out is 'outputs/demo', and has no x"),
        ("seed=-1", "seed"),
        ("adapter.modules=[]", "adapter.modules"),
        ("adapter.r=100000000000", "adapter.r"),
        ("optim.rows_per_step=1000000000000", "rows_per_step"),
        ("optim.=1", "expected section.key=value"),
        ("optim", "expected section.key=value"),
        ("optimal.lr=1", "optimal"),
    ],
)
def test_overrides_that_cannot_be_used(override, says, monkeypatch, capsys):
    recipe = str(ROOT / "data" / "recipes" / "demo.yaml")
    monkeypatch.setattr("sys.argv", ["train.run", "--config", recipe, override, "--dry-run"])
    assert train_run.main() == 2
    assert says in capsys.readouterr().err


def test_top_level_overrides(monkeypatch, capsys):
    recipe = str(ROOT / "data" / "recipes" / "demo.yaml")
    monkeypatch.setattr(
        "sys.argv", ["train.run", "--config", recipe, "seed=5", "out=x/y", "optim.lr=1e-4", "--dry-run"]
    )
    assert train_run.main() == 0
    assert "out: x/y\nseed: 5\n" in capsys.readouterr().out
