"""One forward of a packed row gives each document what it has alone, and shows it nothing else, by every path.

Also for a machine with a GPU, where the rest of the tests' needs may lack: `pytest --noconftest tests/test_attention.py`.
"""

from __future__ import annotations

import copy
import itertools
import math
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch.nn.attention.flex_attention import create_block_mask
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GptOssConfig,
    GptOssForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PhimoeConfig,
    PhimoeForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)

from repo2ctx.errors import ConfigError
from train.attention import row_inputs, use
from train.attention.paths import PATHS, begins, block_mask, seen
from train.attention.rows import row_of
from train.config import AttentionSection

VOCABULARY = 64
LENGTHS = (1, 7, 130, 1, 61)  # over one block of 128, not a multiple of anything, two documents of one token
CUDA = torch.cuda.is_available()
HALF_ONLY = ("sdpa-flash", "sdpa-cudnn", "sdpa-by-length", "varlen")  # on CUDA
CASES = [("cpu", path) for path in ("eager", "sdpa", "sdpa-math", "sdpa-flash", "flex")] + [
    pytest.param("cuda", path, marks=pytest.mark.skipif(not CUDA, reason="no GPU")) for path in PATHS
]
WINDOWED = [("cpu", "eager"), ("cpu", "flex")] + [
    pytest.param("cuda", path, marks=pytest.mark.skipif(not CUDA, reason="no GPU"))
    for path in ("eager", "varlen", "flex")
]
paths = pytest.mark.parametrize(("device", "path"), CASES)


@pytest.fixture(autouse=True)
def without_gradients_where_there_are_none(request):
    """flex has none on a CPU."""
    given = getattr(request.node, "callspec", None)
    none = given is not None and (given.params.get("device"), given.params.get("path")) == ("cpu", "flex")
    with torch.set_grad_enabled(not none):
        yield


def tiny(family: str, device: str, **changes):
    """A model with random weights, in float32 on a CPU and bfloat16 on a GPU; heads of 16 in groups of three."""
    shape = {
        "vocab_size": VOCABULARY, "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 6,
        "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 512, "initializer_range": 0.2, "pad_token_id": 0,
    } | changes  # fmt: skip
    torch.manual_seed(0)
    if family == "llama":
        model = LlamaForCausalLM(LlamaConfig(**shape))
    elif family == "qwen2":  # biases on q, k and v
        model = Qwen2ForCausalLM(Qwen2Config(**shape | {"hidden_size": 96}))
    elif family == "qwen3":  # norms on q and k
        model = Qwen3ForCausalLM(Qwen3Config(**shape))
    else:
        model = MistralForCausalLM(MistralConfig(**{"sliding_window": None} | shape))
    for layer in model.model.layers:
        layer.self_attn.scaling = 0.3  # not what attention does by itself
    for name, weights in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(weights, std=0.2)
    return model.to(device, torch.float32 if device == "cpu" else torch.bfloat16)


def ids_of(lengths: tuple[int, ...], device: str) -> torch.Tensor:
    """Random ids of a row, (1, T)."""
    return torch.randint(VOCABULARY, (1, sum(lengths)), generator=torch.Generator().manual_seed(1)).to(device)


def run(model, ids_1T: torch.Tensor, lengths: tuple[int, ...], inputs: dict):
    """Logits, hidden states, and where gradients are on, those by name of the sum of next-token losses in each document."""
    model.zero_grad()
    out = model(input_ids=ids_1T, use_cache=False, output_hidden_states=True, **inputs)
    loss = torch.zeros((), device=ids_1T.device)
    for start, end in spans(lengths):
        loss = loss + F.cross_entropy(
            out.logits[0, start : end - 1].float(), ids_1T[0, start + 1 : end], reduction="sum"
        )
    if loss.requires_grad:
        loss.backward()
    gradients = {n: p.grad.float().cpu() for n, p in model.named_parameters() if p.grad is not None}
    return out.logits[0].detach().float().cpu(), torch.stack(out.hidden_states)[:, 0].detach().float().cpu(), gradients


def alone(model, ids_1T: torch.Tensor, lengths: tuple[int, ...]):
    """The same, from each document by itself through plain transformers."""
    logits, hidden, total = [], [], {}
    for start, end in spans(lengths):
        one = run(model, ids_1T[:, start:end], (end - start,), {})
        logits.append(one[0])
        hidden.append(one[1])
        for name, gradient in one[2].items():
            total[name] = total.get(name, 0) + gradient
    return torch.cat(logits), torch.cat(hidden, dim=1), total


def qkv(row, dtype, heads=(6, 2, 2), size=16) -> list[torch.Tensor]:
    """Random queries, keys and values on the GPU, as a model's layer gives them."""
    shapes = [(1, row.tokens, n, size) for n in heads]
    return [torch.randn(s, device="cuda", dtype=dtype).transpose(1, 2).requires_grad_() for s in shapes]


def spans(lengths: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(itertools.pairwise(itertools.accumulate(lengths, initial=0)))


def errors(got, wanted) -> list[float]:
    """Relative errors of logits, hidden states, and the gradient of each parameter."""
    assert got[2].keys() == wanted[2].keys()
    # the bias of a key moves all logits of a query alike: its gradient is zero but for rounding
    names = [name for name in wanted[2] if not name.endswith("k_proj.bias")]
    pairs = [(got[0], wanted[0]), (got[1], wanted[1]), *((got[2][n], wanted[2][n]) for n in names)]
    found = [((a - b).norm() / b.norm()).item() for a, b in pairs]
    assert all(map(math.isfinite, found))
    return found


def assert_same(model, got, ids_1T: torch.Tensor, lengths: tuple[int, ...]) -> None:
    """To rounding: in float32 1e-5, in bfloat16 no further from float32 than plain transformers is, twice over."""
    plain = copy.deepcopy(model)
    plain.set_attn_implementation("eager")
    if model.dtype == torch.float32:
        assert max(errors(got, alone(plain, ids_1T, lengths))) < 1e-5
        return
    rounded = alone(plain, ids_1T, lengths)
    exact = alone(plain.float(), ids_1T, lengths)
    for ours, theirs in zip(errors(got, exact), errors(rounded, exact), strict=True):
        assert ours < 2 * theirs + 1e-3 < 0.2


@paths
@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "mistral"])
def test_each_document_has_what_it_has_alone(device, path, family):
    model, ids_1T = tiny(family, device), ids_of(LENGTHS, device)
    assert use(model, path) == path
    assert_same(model, run(model, ids_1T, LENGTHS, row_inputs(LENGTHS, device, False)), ids_1T, LENGTHS)


@paths
def test_a_changed_token_changes_nothing_that_does_not_see_it(device, path):
    """To the last bit, for every document: its first, a middle and its last token against every other token of the row."""
    model, ids_1T = tiny("llama", device), ids_of(LENGTHS, device)
    use(model, path)
    inputs = row_inputs(LENGTHS, device, False)
    with torch.no_grad():
        before_TV = model(input_ids=ids_1T, **inputs).logits[0]
        for start, end in spans(LENGTHS):
            for place in {start, (start + end) // 2, end - 1}:
                changed_1T = ids_1T.clone()
                changed_1T[0, place] = (changed_1T[0, place] + 1) % VOCABULARY
                after_TV = model(input_ids=changed_1T, **inputs).logits[0]
                differs = (after_TV != before_TV).any(-1).nonzero()[:, 0].tolist()
                assert differs == list(range(place, end)), (path, start, end, place)


@paths
def test_across_documents_is_plain_attention_over_the_row(device, path):
    model, ids_1T = tiny("llama", device), ids_of(LENGTHS, device)
    use(model, path)
    row = (sum(LENGTHS),)
    got = run(model, ids_1T, row, row_inputs(LENGTHS, device, True))
    assert_same(model, got, ids_1T, row)
    apart = run(model, ids_1T, row, row_inputs(LENGTHS, device, False))
    assert errors(apart, got)[0] > 0.1


@pytest.mark.parametrize(("device", "path"), [case for case in CASES if case != ("cpu", "flex")])
def test_lora_with_gradient_checkpointing(device, path):
    """Boundaries get through PEFT, checkpointing and logits_to_keep; what is trained gets the gradients that it has without."""
    torch.manual_seed(0)
    base, ids_1T = tiny("llama", device), ids_of(LENGTHS, device)
    adapter = LoraConfig(r=4, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"], init_lora_weights=False)
    model = get_peft_model(base, adapter).to(base.dtype).train()
    assert use(model, path) == path
    inputs = row_inputs(LENGTHS, device, False)
    plainly = run(model, ids_1T, LENGTHS, inputs)
    # transformers has renamed it, and will drop the old name
    enable = getattr(base, "activation_checkpointing_enable", None) or base.gradient_checkpointing_enable
    enable({"use_reentrant": False})
    layer, calls = base.model.layers[0].self_attn, []
    hook = layer.register_forward_hook(lambda *_: calls.append(None))
    checkpointed = run(model, ids_1T, LENGTHS, inputs)
    hook.remove()
    assert len(calls) == 2, "nothing was recomputed"
    assert len(plainly[2]) == 16
    assert max(errors(checkpointed, plainly)) < (1e-6 if device == "cpu" else 1e-2)  # backward kernels add in any order
    kept = torch.tensor([3, 50, 198], device=device)
    with torch.no_grad():
        some_1KV = model(input_ids=ids_1T, use_cache=False, logits_to_keep=kept, **inputs).logits
    assert torch.allclose(
        some_1KV[0].float().cpu(), plainly[0][kept.cpu()], rtol=1e-2, atol=1e-5 if device == "cpu" else 0.1
    )


@pytest.mark.parametrize(("device", "path"), WINDOWED)
@pytest.mark.parametrize("window", [2, 5, 129, 500])
def test_a_sliding_window_is_kept(device, path, window):
    """mistral's, against transformers, which lets a token see the last `window`, itself among them."""
    model, ids_1T = tiny("mistral", device, sliding_window=window), ids_of(LENGTHS, device)
    use(model, path)
    assert_same(model, run(model, ids_1T, LENGTHS, row_inputs(LENGTHS, device, False)), ids_1T, LENGTHS)


@pytest.mark.parametrize(("device", "path"), WINDOWED)
def test_only_the_layers_that_have_a_window_keep_it(device, path):
    kinds = {"sliding_window": 5, "use_sliding_window": True, "layer_types": ["sliding_attention", "full_attention"]}
    model, ids_1T = tiny("qwen2", device, **kinds), ids_of(LENGTHS, device)
    use(model, path)
    assert_same(model, run(model, ids_1T, LENGTHS, row_inputs(LENGTHS, device, False)), ids_1T, LENGTHS)


@pytest.mark.parametrize("path", ["sdpa", "sdpa-math", "sdpa-flash"])
def test_sdpa_refuses_documents_longer_than_the_window(path):
    model, ids_1T = tiny("mistral", "cpu", sliding_window=61), ids_of(LENGTHS, "cpu")
    use(model, path)
    with pytest.raises(ConfigError, match=r"a window of 61 tokens.*130.*attention\.path=auto, varlen or flex"):
        model(input_ids=ids_1T, **row_inputs(LENGTHS, "cpu", False))
    short = (61, 1, 60)
    got = run(model, ids_of(short, "cpu"), short, row_inputs(short, "cpu", False))
    assert_same(model, got, ids_of(short, "cpu"), short)


@pytest.mark.parametrize("window", [None, 1, 2, 100, 128, 129, 300])
def test_blocks_of_flex_are_those_of_torch(window):
    """Block by block what create_block_mask finds by looking at every pair."""
    random = torch.Generator().manual_seed(3)
    cases = [(1,), (128,), (129,), (256, 128), (1,) * 200, LENGTHS]
    cases += [tuple(torch.randint(1, 400, (n,), generator=random).tolist()) for n in (2, 3, 5, 8)]
    for lengths in cases:
        tokens, cpu = sum(lengths), torch.device("cpu")
        wanted = create_block_mask(seen(begins(lengths, window, cpu)), None, None, tokens, tokens, "cpu")
        got = block_mask(lengths, window, cpu)
        assert torch.equal(got.to_dense(), wanted.to_dense())
        for of in ("kv", "full_kv", "q", "full_q"):
            numbers, places = (getattr(wanted, f"{of}_{what}")[0, 0] for what in ("num_blocks", "indices"))
            ours = getattr(got, f"{of}_num_blocks")[0, 0], getattr(got, f"{of}_indices")[0, 0]
            assert torch.equal(ours[0], numbers), (lengths, of)
            for i, n in enumerate(numbers.tolist()):
                assert torch.equal(ours[1][i, :n], places[i, :n]), (lengths, of)


def test_a_mask_made_in_validation_serves_training():
    block_mask.cache_clear()
    with torch.inference_mode():
        mask = block_mask(LENGTHS, None, torch.device("cpu"))
    assert not mask.kv_indices.is_inference()
    assert not mask.q_indices.is_inference()
    assert block_mask(LENGTHS, None, torch.device("cpu")) is mask


def test_row_inputs():
    inputs = row_inputs([3, 1, 2], "cpu", across_documents=False)
    assert inputs["position_ids"].tolist() == [[0, 1, 2, 0, 0, 1]]
    assert inputs["cu_seq_lens_q"].tolist() == inputs["cu_seq_lens_k"].tolist() == [0, 3, 4, 6]
    assert (inputs["max_length_q"], inputs["max_length_k"], inputs["document_lengths"]) == (3, 3, (3, 1, 2))
    inputs = row_inputs([3, 1, 2], "cpu", across_documents=True)
    assert inputs["position_ids"].tolist() == [[0, 1, 2, 3, 4, 5]]
    assert inputs["cu_seq_lens_q"].tolist() == [0, 6]
    assert (inputs["max_length_q"], inputs["document_lengths"]) == (6, (6,))
    for lengths in ([], [2, 0]):
        with pytest.raises(ValueError, match="at least one token"):
            row_inputs(lengths, "cpu", across_documents=False)


@paths
def test_what_arrives_wrong_is_refused(device, path):
    model, ids_1T = tiny("llama", device), ids_of(LENGTHS, device)
    use(model, path)
    inputs = row_inputs(LENGTHS, device, False)
    with pytest.raises(ValueError, match=r"does not know where the row's documents begin.*row_inputs"):
        model(input_ids=ids_1T)
    for missing in ("document_lengths", "cu_seq_lens_q"):
        with pytest.raises(ValueError, match="does not know where"):
            model(input_ids=ids_1T, **{k: v for k, v in inputs.items() if k != missing})
    with pytest.raises(ValueError, match="no padding"):
        model(input_ids=ids_1T, attention_mask=torch.ones_like(ids_1T), **inputs)
    whole = torch.ones(1, 1, 200, 200, dtype=torch.bool)
    with pytest.raises(ValueError, match="LlamaAttention: a mask arrived"):
        model(input_ids=ids_1T, attention_mask=whole, **inputs)
    with pytest.raises(ValueError, match="199 tokens does not have documents"):
        model(input_ids=ids_1T[:, :199], **inputs | {"position_ids": inputs["position_ids"][:, :199]})
    with pytest.raises(ValueError, match="batch 1"):
        model(input_ids=ids_1T.expand(2, -1), **inputs)
    with pytest.raises(ConfigError, match="not causal"):
        model(input_ids=ids_1T, is_causal=False, **inputs)
    with pytest.raises(ConfigError, match="LlamaAttention asks for position_bias"):
        model(input_ids=ids_1T, position_bias=torch.zeros(1), **inputs)
    cached = model(input_ids=ids_1T, use_cache=True, **inputs).past_key_values
    with pytest.raises(ValueError, match="without a cache"):
        model(input_ids=ids_1T, past_key_values=cached, **inputs)


def test_models_that_no_path_fits_are_refused():
    with pytest.raises(ConfigError, match=r"attention_dropout 0\.1"):
        use(tiny("llama", "cpu", attention_dropout=0.1), "auto")
    small = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16, "pad_token_id": 0}  # fmt: skip
    with pytest.raises(ConfigError, match="Gemma2ForCausalLM caps its attention logits"):
        use(Gemma2ForCausalLM(Gemma2Config(**small)), "eager")
    experts = {"num_local_experts": 2, "num_experts_per_tok": 1}
    with pytest.raises(ConfigError, match="GptOssForCausalLM has attention sinks"):
        use(GptOssForCausalLM(GptOssConfig(**small, **experts)), "eager")
    hybrid = {"linear_num_value_heads": 2, "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16, "num_experts": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "layer_types": ["linear_attention", "full_attention"]}  # fmt: skip
    with pytest.raises(ConfigError, match=r"layers \(linear_attention\) that would carry one document's tokens"):
        use(Qwen3NextForCausalLM(Qwen3NextConfig(**small, **hybrid)), "sdpa")


def test_what_a_layer_asks_for_is_not_left_out():
    """Whatever the config says: soft caps, sinks and dropout as they reach the attention function."""
    model, ids_1T = tiny("llama", "cpu"), ids_of((4,), "cpu")
    use(model, "sdpa")
    for keyword in ("softcap", "s_aux"):
        with pytest.raises(ConfigError, match=f"LlamaAttention asks for {keyword}"):
            model(input_ids=ids_1T, **{keyword: torch.ones(6)}, **row_inputs((4,), "cpu", False))
    model.train()
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.5
    with pytest.raises(ConfigError, match="asks for dropout"):
        model(input_ids=ids_1T, **row_inputs((4,), "cpu", False))
    model.eval()
    model.model.layers[1].self_attn.is_causal = False
    with pytest.raises(ConfigError, match="LlamaAttention asks for dropout, or attention that is not causal"):
        model(input_ids=ids_1T, **row_inputs((4,), "cpu", False))


def test_a_window_that_only_the_mask_would_have_is_not_lost():
    """phimoe masks by a window and does not tell its attention function of it."""
    shape = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "num_local_experts": 2, "pad_token_id": 0}  # fmt: skip
    model, ids_1T = PhimoeForCausalLM(PhimoeConfig(**shape, sliding_window=3)), ids_of((8,), "cpu")
    use(model, "eager")
    with pytest.raises(ConfigError, match="masks what is 3 tokens away"):
        model(input_ids=ids_1T, **row_inputs((8,), "cpu", False))


def test_paths_that_do_not_run_here_are_refused():
    model = tiny("llama", "cpu")
    before = model.config._attn_implementation
    for path in ("sdpa-cudnn", "sdpa-by-length", "varlen", "flex"):
        with pytest.raises(
            ConfigError, match=rf"attention\.path {path} does not run for LlamaForCausalLM in float32 on cpu \(.+auto"
        ):
            use(model, path)
        assert model.config._attn_implementation == before


def test_auto_on_a_cpu():
    assert use(tiny("llama", "cpu"), "auto") == "sdpa"
    assert use(tiny("mistral", "cpu", sliding_window=5), "auto") == "eager"


def test_the_configuration_names_the_paths_there_are():
    names = get_args(AttentionSection.model_fields["path"].annotation)
    assert set(names) == {"auto", *PATHS}


def test_choosing_takes_no_random_numbers():
    model = tiny("llama", "cpu")
    torch.manual_seed(5)
    use(model, "auto")
    drawn = torch.rand(4)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(4), drawn)


@pytest.mark.skipif(not CUDA, reason="no GPU")
def test_auto_on_a_gpu():
    assert use(tiny("llama", "cuda"), "auto") == "sdpa-by-length"
    assert use(tiny("llama", "cuda").float(), "auto") == "sdpa"
    assert use(tiny("mistral", "cuda", sliding_window=5), "auto") == "varlen"
    for path in HALF_ONLY:
        with pytest.raises(ConfigError, match="float32 on cuda"):
            use(tiny("llama", "cuda").float(), path)


@pytest.mark.skipif(not CUDA, reason="no GPU")
@pytest.mark.parametrize("path", [p for p in PATHS if p not in ("eager", "sdpa-math")])
def test_memory_grows_with_the_row_and_not_with_its_square(path):
    row = row_of([9000, 7000, 384], "cuda")
    q, k, v = qkv(row, torch.bfloat16 if path != "sdpa" else torch.float32)
    for _ in range(2):  # what kernels keep for themselves is there after the first
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        o = PATHS[path](q, k, v, row, None, None)
        o.backward(torch.ones_like(o))
        peak = torch.cuda.max_memory_allocated() - before
    assert peak < 16 * q.nbytes < 6 * 9000**2 * 2


@pytest.mark.skipif(not CUDA, reason="no GPU")
@pytest.mark.parametrize("path", [p for p in PATHS if p not in ("eager", "sdpa-math")])
def test_documents_of_thousands_of_tokens(path):
    """32 heads of 128, 8 for keys: against each document in float32, and to the last bit where another one changes."""
    torch.manual_seed(0)
    row = row_of((5000, 1, 9000, 2383), "cuda")
    inputs = qkv(row, torch.bfloat16, (32, 8, 8), 128)
    o = PATHS[path](*inputs, row, None, None)
    gradient = torch.randn_like(o)
    o.backward(gradient)
    exact = [x.detach().float().requires_grad_() for x in inputs]
    parts = []
    for start, end in spans(row.lengths):
        q, k, v = (x[:, :, start:end] for x in exact)
        k, v = (x.repeat_interleave(4, dim=1) for x in (k, v))
        parts.append(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2))
    wanted = torch.cat(parts, dim=1)
    wanted.backward(gradient.float())
    for ours, theirs in [(o, wanted), *((a.grad, b.grad) for a, b in zip(inputs, exact, strict=True))]:
        assert ((ours.float() - theirs).norm() / theirs.norm()).item() < 1e-2
    with torch.no_grad():
        plainly = PATHS[path](*inputs, row, None, None)
        for start, end in spans(row.lengths):
            place = (start + end) // 2
            changed = [x.clone() for x in inputs]
            for x in changed:
                x[:, :, place] += 1
            differs = (PATHS[path](*changed, row, None, None) != plainly).any(-1).any(-1).nonzero()[:, 1]
            assert differs.min() == place
            assert differs.max() < end


@pytest.mark.skipif(not CUDA, reason="no GPU")
def test_flex_compiles_for_any_lengths_at_once():
    """Rows of other lengths, and other numbers of documents, are run by what is compiled."""

    def attend(lengths):
        row = row_of(lengths, "cuda")
        o = PATHS["flex"](*qkv(row, torch.bfloat16), row, None, None)
        o.backward(torch.ones_like(o))

    for lengths in ([300, 77], [500, 1, 9], [1000]):
        attend(lengths)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for lengths in ([301, 78], [129], [7, 7, 7, 7, 2000], [4096, 11]):
            attend(lengths)
