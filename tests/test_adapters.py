"""What is trained (`adapter.kind`), and that it comes back as it was. Tiny models of several architectures."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from tiny import NATIVE, Silent, tiny_shape
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    GPTNeoXConfig,
    LlamaForCausalLM,
    MistralConfig,
    MixtralConfig,
    Phi3Config,
    Qwen2Config,
    Qwen3Config,
)

from eval.run import evaluate
from repo2ctx.errors import ConfigError, ModelError, OutputError
from repo2ctx.models import attach_adapter, load_base, load_tuned
from repo2ctx.summarize import summarize
from train import loop
from train.adapters import load_weights, make_trainable, save_weights, target_modules, trained_weights
from train.checkpoint import save_adapter
from train.config import AdapterSection, TrainConfig
from train.model import describe, make_model

VOCABULARY = 128
SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": NATIVE, "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1,
    "initializer_range": 0.2,
}  # fmt: skip
LLAMA = ["k_proj", "o_proj", "q_proj", "v_proj"]
SHAPES = {
    "llama": tiny_shape(vocab_size=VOCABULARY),
    "llama, tied": tiny_shape(vocab_size=VOCABULARY, tie_word_embeddings=True),
    "mistral": MistralConfig(**SIZES, sliding_window=None),
    "qwen2, tied": Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen3": Qwen3Config(**SIZES, head_dim=8),
    "phi3": Phi3Config(**SIZES),
    "neox": GPTNeoXConfig(**{k: v for k, v in SIZES.items() if k != "num_key_value_heads"}),
}


def made(shape) -> nn.Module:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(shape)


def train_some(model: nn.Module, steps: int, lr: float = 1e-2) -> list[float]:
    """The losses of some steps on the same random tokens, all of the vocabulary among them."""
    model.train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr, weight_decay=0.0)
    ids = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(1))[None].to(model.device)
    losses = []
    for _ in range(steps):
        loss = model(input_ids=ids, labels=ids, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def logits(model: nn.Module) -> torch.Tensor:
    return model.eval()(input_ids=torch.arange(3, 60, device=model.device)[None]).logits


def settings_of(base: Path, kind: str, model: nn.Module) -> dict:
    return {
        "base": str(base), "kind": kind, "base_weights": "float32", "dtype": "float32", "native_length": NATIVE,
        "rope_parameters": dict(model.config.rope_parameters), "max_position_embeddings": NATIVE, "prompt_version": 1,
        "chat": "auto", "schema_version": 1, "tokenizer_fingerprint": "x", "length": 1024,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "attention", "mlp"),
    [
        ("llama", LLAMA, ["down_proj", "gate_proj", "up_proj"]),
        ("llama, tied", LLAMA, ["down_proj", "gate_proj", "up_proj"]),
        ("mistral", LLAMA, ["down_proj", "gate_proj", "up_proj"]),
        ("qwen2, tied", LLAMA, ["down_proj", "gate_proj", "up_proj"]),
        ("qwen3", LLAMA, ["down_proj", "gate_proj", "up_proj"]),
        ("phi3", ["o_proj", "qkv_proj"], ["down_proj", "gate_up_proj"]),
        ("neox", ["dense", "query_key_value"], ["dense_4h_to_h", "dense_h_to_4h"]),
    ],
)
def test_modules_are_found_by_structure(name, attention, mlp):
    model = made(SHAPES[name])
    assert target_modules(model, "attention", name) == attention
    assert target_modules(model, "all", name) == sorted(attention + mlp)
    for wanted, names in (("attention", attention), ("all", attention + mlp)):
        tuned = make_trainable(made(SHAPES[name]), AdapterSection(r=2, modules=wanted), name, "float32")
        adapted = {
            path.rpartition(".lora_A")[0] for path, _ in tuned.named_modules() if path.endswith("lora_A.default")
        }
        layers = [p for p, m in model.named_modules() if isinstance(m, nn.Linear) and p.rpartition(".")[2] in names]
        assert adapted == {f"base_model.model.{path}" for path in layers}
        assert set(trained_weights(tuned)) == {"LoRA"}


def test_a_name_that_other_layers_share_is_made_longer():
    model = made(SHAPES["llama"])
    for layer in model.model.layers:
        layer.mlp.q_proj = nn.Linear(2, 2)
    assert target_modules(model, "attention", "m") == ["k_proj", "o_proj", "self_attn.q_proj", "v_proj"]


def test_modules_that_are_not_there_are_told():
    model = made(SHAPES["phi3"])
    assert target_modules(model, ("qkv_proj", "mlp.down_proj"), "m") == ["mlp.down_proj", "qkv_proj"]
    there = "it has down_proj, gate_up_proj, lm_head, o_proj, qkv_proj"
    for names, wrong in ((("qkv_proj", "q_proj", "x"), "q_proj, x"), (("norm",), "norm"), (("_proj",), "_proj")):
        with pytest.raises(ConfigError, match=f"'m' has no linear layer {wrong}; {there}"):
            target_modules(model, names, "m")

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Linear(2, 2)

    with pytest.raises(ConfigError, match=r"attention finds no linear layers in 'm' \(Mixer\).* that it has: project"):
        target_modules(Mixer(), "attention", "m")


def test_r_alpha_and_dropout_are_as_given(tmp_path):
    model = make_trainable(made(SHAPES["llama"]), AdapterSection(r=3, alpha=7, dropout=0.25), "smollm2", "float32")
    save_weights(model, tmp_path)
    stored = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (stored["r"], stored["lora_alpha"], stored["lora_dropout"]) == (3, 7, 0.25)
    assert stored["target_modules"] == LLAMA
    assert stored["base_model_name_or_path"] == "smollm2"
    assert stored["modules_to_save"] is None
    layer = model.base_model.model.model.layers[0].self_attn.q_proj
    assert layer.scaling["default"] == 7 / 3
    assert layer.lora_A["default"].weight.shape == (3, 32)


def norms_and_embedding(model: nn.Module) -> dict[str, torch.Tensor]:
    """The weights of a plain model that LongLoRA trains, found by their shapes alone: vectors that are no biases of projections."""
    embedding = model.get_input_embeddings().weight
    return {
        name: weight.detach().clone()
        for name, weight in model.named_parameters()
        if weight is embedding or (weight.dim() == 1 and "norm" in name)
    }


@pytest.mark.parametrize("name", list(SHAPES))
def test_norms_and_embeddings_are_trained_stored_and_reloaded(name, tmp_path):
    made(SHAPES[name]).save_pretrained(tmp_path / "base")
    base = load_base(str(tmp_path / "base"))
    before, tied = norms_and_embedding(base), base.config.tie_word_embeddings
    head = next(n for n, m in base.named_modules() if m is base.get_output_embeddings())
    assert len(before) == {"qwen3": 10, "neox": 11}.get(name, 6)  # of neox each norm has a bias
    first = logits(base)
    untrained = {n: p.detach().clone() for n, p in base.named_parameters() if n not in before}
    model = make_trainable(base, AdapterSection(kind="lora+", r=2), "base", "float32")
    torch.testing.assert_close(logits(model), first, rtol=0, atol=0)
    losses = train_some(model, 4)
    assert losses[-1] < losses[0]
    expected = logits(model)

    settings = settings_of(tmp_path / "base", "lora+", model)
    save_adapter(model, [], settings, tmp_path / "tuned")
    stored = load_file(tmp_path / "tuned" / "adapter_model.safetensors")
    of_lora = {key for key in stored if ".lora_" in key}
    prefix = "base_model.model."
    assert of_lora == {n.replace(".default", "") for n, _ in model.named_parameters() if ".lora_" in n}
    assert stored.keys() - of_lora == {prefix + n for n in before} | ({f"{prefix}{head}.weight"} if tied else set())
    for n, weight in before.items():
        assert (stored[prefix + n] != weight).any(), n
    embedding = stored[prefix + next(n for n, w in before.items() if w.dim() == 2)]
    moved = (embedding != next(w for w in before.values() if w.dim() == 2)).any(1)
    assert (
        moved.sum() >= VOCABULARY - 2
    )  # of an untied one neither padding nor the last token of the row has a gradient
    if tied:
        assert torch.equal(stored[f"{prefix}{head}.weight"], embedding)

    plain = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(tmp_path / "base"), tmp_path / "tuned")
    ours = load_tuned(tmp_path / "tuned")
    for again in (plain, ours):
        torch.testing.assert_close(logits(again), expected, rtol=0, atol=0)
        inner = again.get_base_model()
        assert (inner.get_output_embeddings().weight is inner.get_input_embeddings().weight) == tied
    frozen = {n.replace(".base_layer", "").replace(".original_module", ""): p for n, p in inner.named_parameters()}
    assert all(torch.equal(frozen[n], weight) for n, weight in untrained.items())


def test_a_tied_head_that_peft_does_not_know_is_refused():
    """PEFT ties by the names embed_tokens and lm_head alone; of others it would go on with a head that is not trained."""
    shape = GPTNeoXConfig(**(SHAPES["neox"].to_dict() | {"tie_word_embeddings": True}))
    with pytest.warns(UserWarning, match="tied"), pytest.raises(ModelError, match=r"untie its output layer.*kind=lora"):
        make_trainable(made(shape), AdapterSection(kind="lora+", r=2), "m", "float32")


@pytest.mark.parametrize("kind", ["lora", "lora+", "full"])
@pytest.mark.parametrize("name", ["llama, tied", "qwen3"])
def test_what_is_trained_is_float32_and_moves_in_small_steps(name, kind):
    """In bfloat16 the weights of norms, which are 1, would not move at all."""
    rounded = made(SHAPES[name]).bfloat16()
    expected = logits(rounded)
    model = make_trainable(
        rounded.float() if kind == "full" else rounded, AdapterSection(kind=kind, r=2), "m", "bfloat16"
    )
    torch.testing.assert_close(logits(model), expected, rtol=0, atol=0)  # computed in bfloat16, as the base is
    before = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
    assert {weight.dtype for weight in before.values()} == {torch.float32}
    assert logits(model).dtype == torch.bfloat16
    train_some(model, 1, lr=2e-5)
    after = dict(model.named_parameters())
    for n, weight in before.items():
        if "lora_A" not in n:  # whose gradient is zero as long as B is
            assert (after[n] != weight).float().mean() > 0.9, n
            assert (after[n] - weight).abs().max() < 1e-4
    assert trained_weights(model)["embeddings"] == (0 if kind == "lora" else VOCABULARY * 32)


def test_gradients_in_bfloat16_are_near_those_in_float32():
    ids = torch.arange(3, 60)[None]
    found = []
    for dtype in ("bfloat16", "float32"):
        model = make_trainable(made(SHAPES["llama, tied"]), AdapterSection(kind="full"), "m", dtype)
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        found.append({n: p.grad.flatten() for n, p in model.named_parameters()})
    for n, gradient in found[1].items():
        assert gradient.dtype == found[0][n].dtype == torch.float32
        assert torch.cosine_similarity(found[0][n], gradient, dim=0) > 0.99, n


def test_weights_that_cannot_be_held_in_float32_are_refused():
    shape = MixtralConfig(**SIZES, num_local_experts=2)
    with pytest.raises(ConfigError, match=r"MixtralTopKRouter\) cannot be trained in float32.*set model.dtype=float32"):
        make_trainable(made(shape), AdapterSection(kind="full"), "m", "bfloat16")
    assert trained_weights(make_trainable(made(shape), AdapterSection(kind="full"), "m", "float32"))["others"] > 0


@pytest.mark.parametrize("kind", ["lora", "lora+", "full"])
@pytest.mark.parametrize("name", ["llama", "llama, tied", "phi3"])
def test_weights_are_put_back_to_the_last_bit_or_refused(name, kind, tmp_path):
    model = make_trainable(made(SHAPES[name]), AdapterSection(kind=kind, r=2), "m", "float32")
    train_some(model, 2)
    save_weights(model, tmp_path)
    expected = {n: w.clone() for n, w in model.state_dict().items()}
    train_some(model, 2)
    assert any((w != expected[n]).any() for n, w in model.state_dict().items())
    load_weights(model, tmp_path)
    assert all(torch.equal(w, expected[n]) for n, w in model.state_dict().items())
    assert all(p.requires_grad for n, p in model.named_parameters() if kind == "full" or ".lora_" in n)

    file = tmp_path / ("model.safetensors" if kind == "full" else "adapter_model.safetensors")
    whole = load_file(file)
    first = sorted(whole)[0]
    for damaged, says in [
        ({k: w for k, w in whole.items() if k != first}, "it has nothing, and the model float32"),
        (whole | {"model.nothing.weight": torch.ones(2)}, "nothing.*, and the model nothing"),
        (whole | {first: whole[first][:-1].clone()}, "weights"),
        (whole | {first: whole[first].bfloat16()}, "it has bfloat16"),
    ]:
        if kind == "full" and says == "it has bfloat16":
            continue  # transformers loads a file of several types as its configuration says
        save_file(damaged, file, {"format": "pt"})
        with pytest.raises(OutputError, match=f"{says}.*remove it, or give another `out`"):
            load_weights(model, tmp_path)
    file.unlink()
    with pytest.raises(OutputError, match="cannot be read"):
        load_weights(model, tmp_path)
    assert all(torch.equal(w, expected[n]) for n, w in model.state_dict().items())


def test_an_adapter_with_weights_that_have_no_place_is_refused(tmp_path):
    made(SHAPES["llama"]).save_pretrained(tmp_path / "base")
    model = make_trainable(load_base(str(tmp_path / "base")), AdapterSection(r=2), "m", "float32")
    save_adapter(model, [], settings_of(tmp_path / "base", "lora", model), tmp_path / "tuned")
    file = tmp_path / "tuned" / "adapter_model.safetensors"
    save_file(load_file(file) | {"base_model.model.model.norm.weight": torch.ones(32)}, file, {"format": "pt"})
    with pytest.raises(
        ModelError, match=r"has 1 weights .* has no place for, such as base_model.model.model.norm.weight"
    ):
        load_tuned(tmp_path / "tuned")


def changed(config: TrainConfig, **sections) -> TrainConfig:
    values = config.model_dump()
    for name, options in sections.items():
        values[name] = {**values[name], **options}
    return TrainConfig.model_validate(values)


@pytest.mark.parametrize("kind", ["lora+", "full"])
def test_a_resumed_run_is_the_uninterrupted_one(kind, config):
    config = changed(config, adapter={"kind": kind, "dropout": 0.1}, model={"dtype": "bfloat16"})
    folder = loop.train(config)
    file = folder / ("model.safetensors" if kind == "full" else "adapter_model.safetensors")
    expected = file.read_bytes()
    shutil.rmtree(config.out / "checkpoints" / "step-000006")
    shutil.rmtree(folder)
    loop.train(config)
    assert file.read_bytes() == expected
    losses = [json.loads(line)["loss"] for line in (config.out / "metrics.jsonl").read_text().splitlines()]
    assert losses[-1] < losses[0]


def test_a_whole_model_is_a_hugging_face_directory(config, data, made):
    config = changed(config, adapter={"kind": "full"})
    folder = loop.train(config)
    names = {p.name for p in folder.iterdir()}
    assert names >= {"config.json", "model.safetensors", "tokenizer.json", "repo2ctx.json", "README.md"}
    assert not any("adapter" in name for name in names)
    assert str(config.model.base) not in (folder / "config.json").read_text()
    plain = AutoModelForCausalLM.from_pretrained(folder)
    assert plain.config.rope_parameters["rope_type"] == "yarn"
    assert plain.config.rope_parameters["factor"] == 4.0
    assert plain.config.max_position_embeddings == 4 * NATIVE
    ours = load_tuned(folder)
    ids, positions = torch.arange(3, 40)[None], torch.arange(1000, 1037)[None]
    with torch.no_grad():
        found = [m.eval()(input_ids=ids, position_ids=positions).logits for m in (plain, ours)]
    torch.testing.assert_close(*found, rtol=0, atol=0)
    front = (folder / "README.md").read_text().split("---")[1]
    assert "library_name: transformers" in front
    with pytest.raises(ModelError, match="holds a whole model and no adapter"):
        attach_adapter(plain, folder)

    results = evaluate(None, folder, data, [1024], "train", "float32", "cpu")["results"]["1k"]
    assert results["tuned"]["own"]["nll_per_token"] < results["base"]["own"]["nll_per_token"]
    shutil.rmtree(config.model.base)  # what was trained as a whole needs no base
    said = summarize(made / "repo1", str(folder), "line", None, 4, Silent())
    assert said.tokens > 0

    shape = json.loads((folder / "config.json").read_text())
    shape["rope_parameters"]["factor"] = 2.0
    (folder / "config.json").write_text(json.dumps(shape))
    with pytest.raises(ModelError, match="was trained with RoPE"):
        load_tuned(folder)


@pytest.mark.parametrize("kind", ["lora", "lora+", "full"])
def test_what_is_trained_is_said(kind, tmp_path):
    LlamaForCausalLM(SHAPES["llama, tied"]).save_pretrained(tmp_path)
    config = TrainConfig.model_validate(
        {"model": {"base": str(tmp_path), "device": "cpu"}, "data": {"path": "x", "length": "1k"}, "rope": {"target": "2k"},
         "adapter": {"kind": kind, "r": 2}, "out": "x"}
    )  # fmt: skip
    model, settings = make_model(config)
    said = describe(model, settings | {"length": 1024}, 5)
    lora = 2 * (2 * (32 + 32) + 2 * (32 + 16)) * 2  # two layers, rank 2: q and o 32 x 32, k and v 32 x 16
    norms, embeddings, linear = 5 * 32, VOCABULARY * 32, 2 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64)
    whole = norms + embeddings + linear
    trained = {
        "lora": f"{lora:,} of {whole + lora:,} weights are trained (LoRA {lora:,})",
        "lora+": f"{lora + norms + embeddings:,} of {whole + lora:,} weights are trained "
        f"(LoRA {lora:,}, embeddings {embeddings:,}, norms {norms:,})",
        "full": f"{whole:,} of {whole:,} weights are trained (embeddings {embeddings:,}, linear layers {linear:,}, norms {norms})",
    }
    assert trained[kind] in said
    assert settings["kind"] == kind
    assert settings["base_weights"] == "float32"


def test_four_bits_where_they_cannot_be_are_refused(tmp_path, monkeypatch):
    LlamaForCausalLM(SHAPES["llama"]).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"need a CUDA GPU, and the device is cpu; train with adapter.kind=lora"):
        make_model(qlora(tmp_path, device="cpu"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"run `pip install bitsandbytes`, or train with adapter.kind=lora"):
        load_base(str(tmp_path), dtype="bfloat16", device="cuda", four_bit=True)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    with pytest.raises(ModelError, match=r"compute in bfloat16, not float32; set model.dtype=bfloat16"):
        load_base(str(tmp_path), dtype="float32", device="cuda", four_bit=True)


def qlora(base: Path, device: str) -> TrainConfig:
    return TrainConfig.model_validate(
        {"model": {"base": str(base), "device": device, "dtype": "bfloat16"}, "data": {"path": "x", "length": "1k"},
         "rope": {"target": "2k"}, "adapter": {"kind": "qlora", "r": 4}, "out": "x"}
    )  # fmt: skip


@pytest.mark.skipif(
    not (torch.cuda.is_available() and importlib.util.find_spec("bitsandbytes")), reason="needs CUDA and bitsandbytes"
)
@pytest.mark.parametrize("name", ["llama", "llama, tied", "phi3"])
def test_four_bits(name, tmp_path):
    import bitsandbytes

    made(SHAPES[name]).save_pretrained(tmp_path / "base")
    model, settings = make_model(qlora(tmp_path / "base", "cuda"))
    assert settings["base_weights"] == "nf4"
    quantized = [m for m in model.modules() if isinstance(m, bitsandbytes.nn.Linear4bit)]
    assert len(quantized) == {"phi3": 8}.get(name, 14)
    assert {m.weight.quant_type for m in quantized} == {"nf4"}
    assert all(m.weight.quant_state.nested and m.compute_dtype == torch.bfloat16 for m in quantized)
    assert {p.dtype for p in model.parameters() if p.requires_grad} == {torch.float32}
    assert set(trained_weights(model)) == {"LoRA"}
    plain = sum(p.numel() for p in made(SHAPES[name]).parameters()) + trained_weights(model)["LoRA"]
    assert f" of {plain:,} weights" in describe(model, settings | {"length": 1024}, 5)
    hidden = model(input_ids=torch.arange(9, device="cuda")[None], output_hidden_states=True).hidden_states
    assert {h.dtype for h in hidden} == {torch.bfloat16}
    losses = train_some(model, 10)
    assert losses[-1] < losses[0] - 0.1

    expected = logits(model)
    save_adapter(model, [], settings_of(tmp_path / "base", "qlora", model), tmp_path / "tuned")
    kept = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
    train_some(model, 1)
    load_weights(model, tmp_path / "tuned")
    assert all(torch.equal(p, kept[n]) for n, p in model.named_parameters() if n in kept)
    again = load_tuned(tmp_path / "tuned", "bfloat16", "cuda", four_bit=True)
    torch.testing.assert_close(logits(again), expected, rtol=0, atol=0)
    rough = logits(load_tuned(tmp_path / "tuned", "bfloat16", "cuda"))
    assert not torch.equal(rough, expected)
    assert torch.cosine_similarity(rough.flatten().float(), expected.flatten().float(), dim=0) > 0.9
