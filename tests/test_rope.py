"""Positions: the papers' formulas in float64 against what made models use; live changes, storing, and what is refused.

float32 keeps every frequency within 1e-6 of its formula, the blends of YaRN and llama3 too (5e-7 at worst, measured), so no case
here is looser. What float32 cannot keep is the angle, position times frequency, at a million: there its last bit is 1/16 radian.
"""

import json
import math
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from pydantic import ValidationError
from tiny import NATIVE, tiny_shape
from transformers import AutoModelForCausalLM, MistralConfig, Qwen2Config, Qwen3Config

from repo2ctx.config import length_name
from repo2ctx.errors import ConfigError, ModelError
from repo2ctx.models import attach_adapter, load_base, load_tuned, read_settings
from repo2ctx.positions import attention_window, check_positions, rotary_embeddings, same_rope, set_positions
from train.checkpoint import save_adapter
from train.config import ModelSection, RopeSection, TrainConfig
from train.model import make_model, move_to, of_stage
from train.rope import decide_positions, describe_positions, resolve_rope, resolve_window, set_rope
from train.shape import make_shape, model_shape
from train.stages import resolve_stages

METHODS = ("yarn", "ntk", "linear", "llama3", "theta", "none")
THETA = 3e7  # of method theta
LLAMA3_SCALING = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
}  # fmt: skip
# The fields of the real models' config.json that positions depend on; the rest is as small as it can be.
REAL = {
    "Llama-3": {"model_type": "llama", "head_dim": 128, "rope_theta": 5e5, "max_position_embeddings": 8192},
    "Llama-3.1": {
        "model_type": "llama", "head_dim": 128, "rope_theta": 5e5, "max_position_embeddings": 131072, "rope_scaling": LLAMA3_SCALING,
    },
    "Qwen2.5": {"model_type": "qwen2", "rope_theta": 1e6, "max_position_embeddings": 32768, "sliding_window": 131072,
                "use_sliding_window": False, "hidden_size": 256},
    "Qwen3": {"model_type": "qwen3", "head_dim": 128, "rope_theta": 1e6, "max_position_embeddings": 40960},
    "Mistral": {"model_type": "mistral", "head_dim": 128, "rope_theta": 1e4, "max_position_embeddings": 32768, "sliding_window": 4096},
    "SmolLM2": {"model_type": "llama", "head_dim": 64, "rope_theta": 1e5, "max_position_embeddings": 8192, "hidden_size": 128},
    "Phi-2": {"model_type": "phi", "rope_theta": 1e4, "max_position_embeddings": 2048, "partial_rotary_factor": 0.4, "hidden_size": 160},
    "Yarn-Mistral": {
        "model_type": "mistral", "head_dim": 128, "rope_theta": 1e4, "max_position_embeddings": 32768, "sliding_window": 131072,
        "rope_scaling": {"type": "yarn", "factor": 16.0, "original_max_position_embeddings": 8192, "finetuned": True},
    },
}  # fmt: skip
TRAINED = {"Llama-3.1": 8192, "Qwen3": 32768, "Yarn-Mistral": 8192}  # where it is not max_position_embeddings
ROTATED = {"SmolLM2": 64, "Phi-2": 32}  # dimensions of a head, of 128 where it is not here
SMALL = {
    "vocab_size": 64, "hidden_size": 256, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1,
}  # fmt: skip


def section(**options) -> RopeSection:
    if options.get("method") == "theta":
        options.setdefault("theta", THETA)
    return RopeSection.model_validate(options)


def real(name: str, **changes):
    return make_shape({**SMALL, **REAL[name], **changes}, RopeSection(), name)


# --- the papers' formulas ---


def plain(theta: float, d: int) -> list[float]:
    return [theta ** (-2 * i / d) for i in range(d // 2)]


def yarn(theta: float, d: int, native: int, s: float, slow: float = 1, fast: float = 32) -> list[float]:
    """arXiv:2309.00071, sections 3.2 and 3.3: a ramp between `slow` and `fast` turns within the native length.

    The dimensions of the ramp's ends are rounded outward, as in the authors' own code.
    """

    def dimension(turns: float) -> float:
        return d * math.log(native / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low, high = max(0, math.floor(dimension(fast))), min(d - 1, math.ceil(dimension(slow)))
    ramp = [min(1.0, max(0.0, (i - low) / (high - low))) for i in range(d // 2)]
    return [f / s * r + f * (1 - r) for f, r in zip(plain(theta, d), ramp, strict=True)]


def llama3(theta: float, d: int, native: int, s: float, low: float = 1, high: float = 4) -> list[float]:
    """Llama 3.1's reference code: a ramp over turns within the native length, from `low` (divided by s) to `high` (kept)."""
    keep = [min(1.0, max(0.0, (native * f / (2 * math.pi) - low) / (high - low))) for f in plain(theta, d)]
    return [(1 - k) * f / s + k * f for f, k in zip(plain(theta, d), keep, strict=True)]


FORMULAS = {
    "yarn": yarn,
    "llama3": llama3,
    "ntk": lambda theta, d, native, s: plain(theta * s ** (d / (d - 2)), d),
    "linear": lambda theta, d, native, s: [f / s for f in plain(theta, d)],  # arXiv:2306.15595, equation 4
    "theta": lambda theta, d, native, s: plain(THETA, d),
}


def assert_uses(model, frequencies: list[float], temperature: float) -> None:
    """The made model's rotary module, by what it holds and by what comes out of it."""
    (rotary,) = rotary_embeddings(model)
    assert rotary.inv_freq.dtype == torch.float32
    assert rotary.inv_freq.tolist() == pytest.approx(frequencies, rel=1e-6)
    assert rotary.attention_scaling == pytest.approx(temperature, rel=1e-6)
    cos, sin = rotary(torch.zeros(1, 1, 4), torch.tensor([[0, 3]]))
    half = len(frequencies)
    assert cos[0, 0].tolist() == pytest.approx([temperature] * 2 * half, rel=1e-6)
    assert sin[0, 1, half:].tolist() == pytest.approx([temperature * math.sin(3 * f) for f in frequencies], rel=3e-6)


@pytest.mark.parametrize("method", FORMULAS)
@pytest.mark.parametrize("name", REAL)
def test_made_models_use_the_papers_frequencies(name, method):
    native, d = TRAINED.get(name, REAL[name]["max_position_embeddings"]), ROTATED.get(name, 128)
    for s in (4, 16, 64, 128):
        shape = real(name)
        rope = resolve_rope(shape, section(method=method, target=s * native, native=native))
        assert (rope.native, rope.factor) == (native, s)
        set_positions(shape, rope.rope_parameters, rope.max_position_embeddings)
        expected = FORMULAS[method](REAL[name]["rope_theta"], d, native, s)
        model = AutoModelForCausalLM.from_config(shape)
        assert_uses(model, expected, 0.1 * math.log(s) + 1 if method == "yarn" else 1.0)
        assert model.config.max_position_embeddings == s * native


@pytest.mark.parametrize(
    ("options", "frequencies", "temperature"),
    [
        ({"beta_fast": 4, "beta_slow": 0.5}, yarn(5e5, 128, 8192, 128, slow=0.5, fast=4), 0.1 * math.log(128) + 1),
        ({"attention_factor": 1.25}, yarn(5e5, 128, 8192, 128), 1.25),
        (
            {"method": "llama3", "low_freq_factor": 2, "high_freq_factor": 8},
            llama3(5e5, 128, 8192, 128, low=2, high=8),
            1.0,
        ),
    ],
)
def test_what_one_may_set_of_a_method_reaches_the_model(options, frequencies, temperature):
    shape = real("Llama-3")
    rope = resolve_rope(shape, section(target="1m", **options))
    set_positions(shape, rope.rope_parameters, rope.max_position_embeddings)
    assert_uses(AutoModelForCausalLM.from_config(shape), frequencies, temperature)


@pytest.mark.parametrize("method", METHODS)
def test_frequencies_stay_in_full_precision(base, method):
    """Through the files of a model, in bfloat16: the very frequencies of a float32 one."""
    rope = resolve_rope(tiny_shape(), section(method=method, target=16 * NATIVE))
    half = load_base(str(base), rope.rope_parameters, rope.max_position_embeddings, "bfloat16")
    assert half.lm_head.weight.dtype == torch.bfloat16
    formula = FORMULAS.get(method, lambda theta, d, native, s: plain(theta, d))
    assert_uses(half, formula(1e4, 8, NATIVE, 16), 0.1 * math.log(16) + 1 if method == "yarn" else 1.0)
    half.bfloat16()
    with pytest.raises(ModelError, match="frequencies are bfloat16"):
        check_positions(half, "it")
    set_rope(half, rope.rope_parameters, rope.max_position_embeddings)
    check_positions(half, "it")


# --- native length, target, factor ---


@pytest.mark.parametrize(
    ("name", "target", "native", "factor"),
    [
        ("Llama-3", "32k", 8192, 4), ("Llama-3", "128k", 8192, 16), ("Llama-3", "512k", 8192, 64), ("Llama-3", "1m", 8192, 128),
        ("Llama-3.1", "256k", 8192, 32), ("Llama-3.1", "1m", 8192, 128), ("Qwen2.5", "128k", 32768, 4), ("Qwen2.5", "1m", 32768, 32),
        ("Qwen3", "128k", 32768, 4), ("Qwen3", "1m", 32768, 32), ("Mistral", "128k", 32768, 4), ("SmolLM2", "32k", 8192, 4),
        ("Yarn-Mistral", "1m", 8192, 128),
    ],
)  # fmt: skip
def test_the_factor_follows_from_the_lengths(name, target, native, factor):
    rope = resolve_rope(real(name), section(target=target))
    assert (rope.native, rope.factor) == (native, factor)
    assert length_name(rope.target) == length_name(rope.max_position_embeddings) == target
    assert rope.rope_parameters == {
        "rope_type": "yarn", "rope_theta": REAL[name]["rope_theta"], "factor": factor, "beta_fast": 32.0, "beta_slow": 1.0,
        "original_max_position_embeddings": native,
    }  # fmt: skip
    assert resolve_rope(real(name), section(target=target, factor=factor)) == rope


def test_a_scaling_of_the_bases_own_is_replaced_and_said_so():
    for name, kind, factor in [("Llama-3.1", "llama3", 8), ("Yarn-Mistral", "yarn", 16)]:
        rope = resolve_rope(real(name), section(target="1m", method="linear"))
        assert rope.rope_parameters == {
            "rope_type": "linear",
            "rope_theta": REAL[name]["rope_theta"],
            "factor": 128.0,
        }
        assert rope.notes == (
            f"its own {kind} scaling (factor {factor}) is replaced, not multiplied: linear starts from the 8k before it",
        )
    tuned = real("Llama-3")
    first = resolve_rope(tuned, section(target="128k"))
    set_positions(tuned, first.rope_parameters, first.max_position_embeddings)
    again = resolve_rope(tuned, section(target="1m"))
    assert (again.native, again.factor) == (8192, 128)
    plain_one = resolve_rope(real("Llama-3"), section(target="1m"))
    assert again.rope_parameters == plain_one.rope_parameters
    assert "replaced" in again.notes[0]


def test_a_target_that_the_base_reaches_changes_nothing():
    for name, target in [("Llama-3", "8k"), ("Llama-3", "2k"), ("Qwen3", "32k"), ("Phi-2", "1k")]:
        for method in ("yarn", "ntk", "linear", "llama3", "none"):
            rope = resolve_rope(real(name), section(target=target, method=method))
            assert rope.rope_parameters == real(name).rope_parameters
            assert (rope.factor, rope.max_position_embeddings) == (1, REAL[name]["max_position_embeddings"])
    for target in ("32k", "128k"):  # its trained scaling is worth more than a new one
        rope = resolve_rope(real("Llama-3.1"), section(target=target))
        assert same_rope(rope.rope_parameters, {"rope_theta": 5e5, **LLAMA3_SCALING})
        assert (rope.factor, rope.max_position_embeddings) == (1, 131072)
        assert rope.notes == ("its own llama3 scaling stays (8k to 128k)",)
    told = resolve_rope(
        real("Llama-3.1"), section(target="128k", native="8k")
    )  # unless the length before it is asked for
    assert (told.rope_parameters["rope_type"], told.factor) == ("yarn", 16)
    written = {
        "type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 32768,
    }  # as Qwen2.5's model card has it
    reaching = resolve_rope(real("Qwen2.5", rope_scaling=written), section(target="128k"))
    assert (reaching.native, reaching.factor) == (32768, 1)
    assert resolve_rope(real("Qwen2.5", rope_scaling=written), section(target="256k")).factor == 8


def test_a_given_base_frequency_is_taken_at_any_length():
    for target in ("2k", "128k"):
        rope = resolve_rope(real("Llama-3.1"), section(method="theta", theta=8e6, target=target))
        assert rope.rope_parameters == {"rope_type": "default", "rope_theta": 8e6}
    beyond = resolve_rope(real("Llama-3"), section(method="none", target="32k"))
    assert beyond.rope_parameters == real("Llama-3").rope_parameters
    assert beyond.max_position_embeddings == 32768
    assert "read as they are" in beyond.notes[0]


def test_a_known_wrong_native_length_is_mended_and_said_so():
    rope = resolve_rope(real("Qwen3"), section(target="128k"))
    assert rope.notes == ("its config.json says 40,960 positions; it was trained on 32,768, as its model card says",)
    assert resolve_rope(real("Qwen3"), section(target="120k", native="40k")).factor == 3
    later = real("Qwen3", max_position_embeddings=262144)  # the revision of July 2025
    assert resolve_rope(later, section(target="1m")).native == 262144


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("Llama-3", {"target": "128k"}, "rope.factor 8: 8k x 8 is 64k; 128k needs 16 (131,072 / 8,192); leave it out"),
        ("Llama-3", {"target": "1m"}, "rope.factor 8: 8k x 8 is 64k; 1m needs 128 (1,048,576 / 8,192); leave it out"),
        ("Llama-3.1", {"target": "1m"}, "rope.factor 8: 8k x 8 is 64k; 1m needs 128 (1,048,576 / 8,192); leave it out"),
        ("Llama-3.1", {"target": "128k"}, "the base's own scaling reaches 128k; leave it out"),
        ("Llama-3", {"target": "8k"}, "rope.factor 8: 8k x 8 is 64k; 8k needs none; leave it out"),
        ("Llama-3", {"target": "64k", "method": "none"}, "rope.method none scales nothing; leave it out"),
    ],
)
def test_a_typed_factor_that_is_not_the_one_is_refused(name, options, says):
    with pytest.raises(ConfigError) as caught:
        resolve_rope(real(name), section(factor=8, **options))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"method": "theta", "theta": None}, "method theta needs rope.theta"),
        ({"method": "ntk", "theta": 1e6}, "theta is of method theta, not of ntk"),
        ({"method": "linear", "attention_factor": 1.0}, "attention_factor is of method yarn, not of linear"),
        ({"method": "yarn", "low_freq_factor": 2}, "low_freq_factor is of method llama3"),
        ({"beta_fast": 1}, "beta_fast 1 must be more than beta_slow 1"),
        ({"method": "llama3", "high_freq_factor": 1}, "high_freq_factor 1 must be more than low_freq_factor 1"),
        ({"method": "dynamic"}, "Input should be"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(options, says):
    with pytest.raises(ValidationError, match=says):
        RopeSection.model_validate(options)


# --- bases that cannot be extended, shapes that cannot be read ---


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"model_type": "gpt2"}, "gpt2 has no RoPE that could be extended; take another base"),
        ({"model_type": "falcon", "alibi": True, "rope_theta": 1e4, "max_position_embeddings": 2048}, "falcon has no RoPE"),
        ({"model_type": "gemma3"}, "gemma3 has no RoPE that could be extended; it is a part of a larger model"),
        (
            {"model_type": "gemma3_text", "rope_theta": 1e6, "max_position_embeddings": 32768},
            "has a RoPE for each type of layer (sliding_attention, full_attention)",
        ),
        ({**REAL["Llama-3"], "rope_scaling": {"type": "dynamic", "factor": 2.0}}, "has RoPE of type dynamic; known are default"),
        (
            {"model_type": "phi3", "rope_theta": 1e4, "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
             "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 64, "long_factor": [2.0] * 64}},
            "has RoPE of type longrope",
        ),
        ({**REAL["Llama-3"], "rope_scaling": {"rope_type": "linear", "factor": 4.0}}, "linear scaling of its own (factor 4)"),
        (
            {**REAL["Llama-3"], "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048,
                                                 "mscale": 1.0, "mscale_all_dim": 1.0}},
            "has an attention temperature of its own (mscale)",
        ),
    ],
)  # fmt: skip
def test_bases_that_cannot_be_extended_are_refused(values, says):
    shape = make_shape({**SMALL, **values}, RopeSection())
    with pytest.raises(ModelError) as caught:
        resolve_rope(shape, section(target="128k"), "it")
    assert "model 'it': " in str(caught.value)
    assert says in str(caught.value)


def test_linear_scaling_of_the_bases_own_needs_the_length_before_it():
    shape = real("Llama-3", max_position_embeddings=16384, rope_scaling={"type": "linear", "factor": 4.0})
    rope = resolve_rope(shape, section(target="64k", native="4k"))
    assert rope.factor == 16
    assert "linear scaling (factor 4) is replaced" in rope.notes[0]


def test_too_few_dimensions_for_a_new_base_frequency():
    shape = real("Llama-3", head_dim=2)
    with pytest.raises(ModelError, match=r"rotates 2 dimensions a head, too few for rope.method ntk"):
        resolve_rope(shape, section(method="ntk", target="128k"))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"rope_theta": 1e4}, "model.shape: has no model_type; add it"),
        ({"model_type": "lama"}, "model_type 'lama' is not one of transformers; did you mean 'llama'?"),
        ({"model_type": "llama", "hidden_size": "wide"}, "model.shape: cannot be loaded as llama"),
        (
            {"model_type": "llama", "max_position_embeddings": 4096},
            "names no rope_theta, where transformers takes 10000.0",
        ),
        ({"model_type": "llama", "rope_theta": 1e4}, "names no max_position_embeddings, where transformers takes 2048"),
        (
            {**REAL["Llama-3"], "rope_scaling": {"type": "yarn", "factor": 4.0}},
            "its RoPE scaling names no original_max_position_embeddings",
        ),
    ],
)
def test_shapes_that_leave_positions_open_are_refused(values, says):
    with pytest.raises(ConfigError) as caught:
        make_shape(values, RopeSection())
    assert says in str(caught.value)


def test_what_a_shape_leaves_open_can_be_given():
    values = {"model_type": "llama", "max_position_embeddings": 4096}
    shape = make_shape(values, section(native_theta=1e4))
    assert resolve_rope(shape, section(target="16k", native_theta=1e4)).factor == 4
    with pytest.raises(ConfigError, match=r"rope.native_theta 10000: model.shape has theta 500000; leave it out"):
        make_shape(REAL["Llama-3"], section(native_theta=1e4))
    open_end = {**REAL["Llama-3"], "max_position_embeddings": 131072, "rope_scaling": {"type": "yarn", "factor": 4.0}}
    rope = resolve_rope(make_shape(open_end, section(native="32k")), section(native="32k", target="1m"))
    assert (rope.factor, rope.rope_parameters["original_max_position_embeddings"]) == (32, 32768)


def test_a_shape_is_a_mapping_a_file_or_the_bases_own(base, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**SMALL, **REAL["Llama-3.1"]}))
    mapping, rope = {**SMALL, **REAL["Llama-3.1"]}, RopeSection()
    shapes = [model_shape(ModelSection(shape=s), rope) for s in (mapping, tmp_path / "config.json", tmp_path)]
    assert all(s.to_dict() == shapes[0].to_dict() for s in shapes)
    assert mapping == {**SMALL, **REAL["Llama-3.1"]}
    assert model_shape(ModelSection(base=str(base)), rope).vocab_size == 512
    with pytest.raises(ConfigError, match=r"model.shape: .*nowhere.json cannot be read"):
        model_shape(ModelSection(shape=tmp_path / "nowhere.json"), rope)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(ConfigError, match="holds a list"):
        model_shape(ModelSection(shape=tmp_path), rope)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError, match="is not JSON"):
        model_shape(ModelSection(shape=tmp_path), rope)


# --- attention windows ---

WINDOWED = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "sliding_window": 8, "initializer_range": 0.2,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4}, "bos_token_id": 0, "eos_token_id": 2,
}  # fmt: skip


def windowed(kind: str):
    if kind == "mistral":
        return MistralConfig(**WINDOWED)
    return {"qwen2": Qwen2Config, "qwen3": Qwen3Config}[kind](
        **WINDOWED, head_dim=8, use_sliding_window=True, max_window_layers=1
    )


@pytest.mark.parametrize("kind", ["mistral", "qwen2", "qwen3"])
def test_an_attention_window_shorter_than_the_target_is_decided(kind, tmp_path):
    shape = windowed(kind)
    with pytest.raises(
        ConfigError, match=r"reaches 8 tokens, and rope.target is 256; set model.sliding_window=keep .* or off"
    ):
        resolve_window(shape, 256, "refuse")
    assert resolve_window(shape, 8, "refuse") == (None, ())
    kept, said = resolve_window(shape, 256, "keep")
    assert kept is None
    assert "reaches 8 tokens" in said[0]
    gone, said = resolve_window(shape, 256, "off")
    assert gone == "off"
    assert "no more" in said[0]
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(shape).save_pretrained(tmp_path)
    rope = resolve_rope(shape, section(method="none", target=256))
    models = [load_base(str(tmp_path), rope.rope_parameters, 256, window=w).eval() for w in (None, "off")]
    assert [attention_window(m.config) for m in models] == [8, None]
    ids = torch.randint(3, 64, (1, 40), generator=torch.Generator().manual_seed(0))
    changed = ids.clone()
    changed[0, 0] = 1  # 39 tokens back: beyond the window of every layer together
    with torch.no_grad():
        seen = [not torch.equal(m(ids).logits[0, -1], m(changed).logits[0, -1]) for m in models]
        near = [m(ids).logits[0, :8] for m in models]
    assert seen == [kind != "mistral", True]  # Qwen's first layer has no window
    torch.testing.assert_close(*near)
    if kind == "mistral":  # without its window it is a Llama
        llama = AutoModelForCausalLM.from_config(
            tiny_shape(**{k: v for k, v in WINDOWED.items() if k != "sliding_window"})
        ).eval()
        llama.load_state_dict(models[1].state_dict())
        with torch.no_grad():
            torch.testing.assert_close(llama(ids).logits, models[1](ids).logits)


# --- a live model changed ---


def tiny(kind: str):
    if kind == "llama":
        return tiny_shape(vocab_size=64)
    return type(windowed(kind))(**{**WINDOWED, "max_position_embeddings": NATIVE, "sliding_window": None})


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "mistral"])
def test_a_changed_model_is_one_made_anew_to_the_last_bit(kind, dtype, tmp_path):
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(tiny(kind)).save_pretrained(tmp_path)
    ropes = [resolve_rope(tiny(kind), section(method=m, target=16 * NATIVE)) for m in METHODS]
    live = load_base(str(tmp_path), ropes[0].rope_parameters, ropes[0].max_position_embeddings, dtype)
    lora = LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], init_lora_weights=False)
    wrapped = get_peft_model(live, lora)
    ids, positions = torch.arange(3, 19)[None], torch.arange(7000, 7016)[None]
    seen = []
    for rope in [*ropes[::-1], resolve_rope(tiny(kind), section(target=64 * NATIVE))]:
        set_rope(wrapped, rope.rope_parameters, rope.max_position_embeddings)
        anew = load_base(str(tmp_path), rope.rope_parameters, rope.max_position_embeddings, dtype)
        assert live.config.to_dict() == anew.config.to_dict()
        (ours,), (theirs,) = rotary_embeddings(wrapped), rotary_embeddings(anew)
        for (name, a), (_, b) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
            assert a.dtype == b.dtype == torch.float32
            assert torch.equal(a, b), name
        plain_state = {k: v for k, v in vars(theirs).items() if not k.startswith("_") and k != "config"}
        assert {k: vars(ours)[k] for k in plain_state} == plain_state
        check_positions(wrapped, "it")
        anew = get_peft_model(anew, lora)
        anew.load_state_dict(wrapped.state_dict())
        with torch.no_grad():
            logits, expected = (m.eval()(input_ids=ids, position_ids=positions).logits for m in (wrapped, anew))
        assert torch.equal(logits, expected)
        assert not any(torch.equal(logits, before) for before in seen)  # each is another
        seen.append(logits)


def test_a_model_without_rotary_embeddings_cannot_be_changed():
    with pytest.raises(ModelError, match="has no rotary embedding"):
        set_rope(torch.nn.Linear(2, 2), {"rope_type": "default", "rope_theta": 1e4}, 64)


# --- stored with an adapter ---


def test_keys_that_transformers_adds_make_no_difference():
    yarn_4 = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 512}
    for more in (
        {"type": "yarn"}, {"beta_fast": 32, "beta_slow": 1.0}, {"attention_factor": None}, {"attention_factor": 0.1 * math.log(4) + 1},
        {"truncate": True}, {"partial_rotary_factor": 1.0}, {"factor": 4},
    ):  # fmt: skip
        assert same_rope(yarn_4, {**yarn_4, **more}), more
    for other in (
        {"factor": 8.0}, {"rope_theta": 2e4}, {"original_max_position_embeddings": 1024}, {"beta_fast": 4}, {"attention_factor": 1.0},
        {"truncate": False}, {"partial_rotary_factor": 0.5}, {"rope_type": "linear"}, {"mscale": 1.0, "mscale_all_dim": 0.5},
    ):  # fmt: skip
        assert not same_rope(yarn_4, {**yarn_4, **other}), other
    default = {"rope_type": "default", "rope_theta": 1e4}
    assert same_rope(default, {"rope_theta": 1e4, "original_max_position_embeddings": 512})
    assert not same_rope(default, None)


def run(base: Path, tmp_path: Path, **sections) -> TrainConfig:
    values = {
        "model": {"base": str(base), "device": "cpu"},
        "data": {"path": tmp_path, "length": "2k"},
        "rope": {"target": 4 * NATIVE},
        "adapter": {"r": 4, "modules": ("q_proj", "v_proj")},
        "out": tmp_path / "out",
    }
    return TrainConfig.model_validate({**values, **sections})


def stored(config: TrainConfig, folder: Path):
    """(the model in training, the directory of its adapter)."""
    model, settings = make_model(config)
    settings |= {"prompt_version": 1, "chat": "auto", "schema_version": 1, "tokenizer_fingerprint": "x", "length": 2048}
    save_adapter(model, [], settings, folder)
    return model, folder


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_methods_adapter_is_read_under_the_rope_of_its_training(base, tmp_path, dtype):
    trained = {}
    for method in METHODS:
        options = {"method": method, "target": 4 * NATIVE} | ({"theta": THETA} if method == "theta" else {})
        config = run(base, tmp_path, rope=options, model={"base": str(base), "device": "cpu", "dtype": dtype})
        trained[method] = stored(config, tmp_path / method)
    for method, (model, folder) in trained.items():
        again = load_tuned(folder, dtype)
        (a,), (b,) = rotary_embeddings(model), rotary_embeddings(again)
        assert a.inv_freq.dtype == b.inv_freq.dtype == torch.float32
        assert torch.equal(a.inv_freq, b.inv_freq)
        assert a.attention_scaling == b.attention_scaling
        assert again.config.max_position_embeddings == model.config.max_position_embeddings == 4 * NATIVE
        attach_adapter(again.get_base_model(), folder)
        for other, (_, another) in trained.items():
            if other != method:
                with pytest.raises(ModelError, match=r"was trained with RoPE .* load the model with .*load_tuned"):
                    attach_adapter(again.get_base_model(), another)


def test_a_configuration_that_was_changed_too_late_is_refused(base, tmp_path):
    """It looks right, and the frequencies are the old ones."""
    _, folder = stored(run(base, tmp_path), tmp_path / "adapter")
    rope = read_settings(folder)["rope_parameters"]
    late = load_base(str(base))
    set_positions(late.config, rope, 4 * NATIVE)
    with pytest.raises(ModelError, match=r"not those of its configuration, .* changed after the model was made"):
        attach_adapter(late, folder)
    set_rope(late, rope, 4 * NATIVE)
    attach_adapter(late, folder)
    cast = load_base(str(base), rope, 4 * NATIVE).bfloat16()
    with pytest.raises(ModelError, match="frequencies are bfloat16"):
        attach_adapter(cast, folder)


def test_a_window_that_training_turned_off_stays_off(base, tmp_path):
    torch.manual_seed(0)
    shape = MistralConfig(**{**WINDOWED, "max_position_embeddings": NATIVE})
    AutoModelForCausalLM.from_config(shape).save_pretrained(tmp_path / "mistral")
    with pytest.raises(ConfigError, match=r"model.sliding_window=keep"):
        make_model(run(tmp_path / "mistral", tmp_path))
    model_options = {"base": str(tmp_path / "mistral"), "device": "cpu", "sliding_window": "off"}
    _, folder = stored(run(tmp_path / "mistral", tmp_path, model=model_options), tmp_path / "adapter")
    assert attention_window(load_tuned(folder).config) is None
    assert "no attention window: sliding_window off" in (folder / "README.md").read_text()
    settings = read_settings(folder)
    narrow = load_base(str(tmp_path / "mistral"), settings["rope_parameters"], settings["max_position_embeddings"])
    with pytest.raises(ModelError, match="trained without an attention window, but the model's reaches 8 tokens"):
        attach_adapter(narrow, folder)


# --- what a run says of it ---


def test_a_run_says_what_it_decided(base, tmp_path):
    config = run(base, tmp_path)
    model, settings = make_model(config)
    assert describe_positions(settings) == "yarn 4 times 512 to 2k"
    assert same_rope(settings["rope_parameters"], model.config.rope_parameters)
    dry = run(
        "/nowhere",
        tmp_path,
        model={"base": "/nowhere", "shape": {**SMALL, **REAL["Qwen3"]}},
        rope={"target": "128k", "method": "ntk"},
    )
    rope, window = decide_positions(dry)  # without the base's files
    assert (rope.native, rope.target, rope.factor, window) == (32768, 131072, 4, None)
    assert rope.rope_parameters["rope_theta"] == pytest.approx(1e6 * 4 ** (128 / 126))
    with pytest.raises(ModelError, match=r"/nowhere"):  # training asks whether the shape is the base's
        make_model(dry)
    with pytest.raises(ConfigError, match=r"rope.factor 8: 512 x 8 is 4k; 2k needs 4 \(2,048 / 512\); leave it out"):
        make_model(run(base, tmp_path, rope={"target": "2k", "factor": 8}))


def test_stages_have_one_rope_or_each_its_own(base, tmp_path):
    """Moved to a stage, a model has, and is stored with, what that stage alone would have given it."""
    stages = [{"length": "1k", "rope_target": "1k"}, {"length": "2k"}, {"length": "4k", "rope_target": "16k"}]
    config = run(base, tmp_path, stages=stages)
    model, settings = make_model(config)
    found = []
    for stage in resolve_stages(config):
        move_to(model, settings, config, stage)
        data = {"path": tmp_path, "length": stage.length}
        alone, expected = make_model(run(base, tmp_path, rope={"target": stage.rope_target}, data=data))
        assert settings == expected | {"length": stage.length}
        assert torch.equal(rotary_embeddings(model)[0].inv_freq, rotary_embeddings(alone)[0].inv_freq)
        check_positions(model, "it")
        found.append((settings["rope_parameters"]["factor"], settings["max_position_embeddings"]))
    assert found == [(2, 1024), (4, 2048), (32, 16384)]
    with pytest.raises(
        ConfigError, match=r"stage 4k: rows of 4k are longer than its context of 2k; set rope.target=4k"
    ):
        make_model(run(base, tmp_path, stages=[stages[0], {"length": "4k"}]))


@pytest.mark.parametrize("targets", [("4k", "64k"), ("64k", "4k"), ("4k", None), (None, "4k")])
def test_an_attention_window_is_the_same_in_all_stages(base, tmp_path, targets):
    stages = [{"length": "2k", "rope_target": target, "name": f"{i}"} for i, target in enumerate(targets)]
    for choice, expected in (("off", "off"), ("keep", None)):
        model = {"base": str(base), "shape": {**SMALL, **REAL["Mistral"]}, "sliding_window": choice}
        config = run(base, tmp_path, model=model, rope={"target": "32k"}, stages=stages)
        assert [decide_positions(of_stage(config, s))[1] for s in resolve_stages(config)] == [expected] * 2
    refusing = run(base, tmp_path, model=model | {"sliding_window": "refuse"}, rope={"target": "32k"}, stages=stages)
    for stage in resolve_stages(refusing):
        with pytest.raises(ConfigError, match=r"set model.sliding_window=keep .* or off"):
            decide_positions(of_stage(refusing, stage))
