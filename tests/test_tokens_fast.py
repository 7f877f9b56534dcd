"""Hugging Face tokenizers on tiktoken's engine: the ids are those of the tokenizer's own code, whatever the text."""

import json
import re

import numpy as np
import pytest
import tiktoken_ext.openai_public
import tokenizers
from conftest import small_tokenizer
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from repo2ctx import _hf_splits
from repo2ctx._byte_level import byte_level_engine, has_long_run
from repo2ctx._hf_splits import odd_characters, quick, splitting_of
from repo2ctx._hugging_face import OWN_CODE
from repo2ctx._tokenizer_corpus import TEXTS
from repo2ctx.config import TokensConfig
from repo2ctx.tokens import load_tokenizer

BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
WORDS = pre_tokenizers.ByteLevel(add_prefix_space=False)


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), BYTES])


KINDS = {
    "gpt2": WORDS,
    "gpt2-said": split(_hf_splits._GPT2),
    "smollm2": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), WORDS]),
    "numbers": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False), WORDS]),
    "llama3": split(_hf_splits._LLAMA3),
    "qwen2": split(_hf_splits._QWEN2),
    "qwen35": split(_hf_splits._QWEN35),
    "o200k": split(_hf_splits._O200K),
    "inverted": pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(_hf_splits._LLAMA3), "removed", invert=True), BYTES]
    ),
}
NFC = ("qwen2", "qwen35")
CONTROL = ["<s>", "<|im_end|>", "<|fim_prefix|>"]


def trained(folder, pre_tokenizer, normalizer=None, added=(), change=None, size=1500):
    """A byte-level tokenizer trained on the corpus, saved as models are. change: what to do to its tokenizer.json."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=CONTROL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([*TEXTS, *TEXTS], trainer)
    tokenizer.add_tokens(list(added))
    data = json.loads(tokenizer.to_str())
    if change:
        change(data)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(data))
    return load_tokenizer(TokensConfig(tokenizer=str(folder), eos="<|im_end|>"))


@pytest.fixture(scope="module")
def all_kinds(tmp_path_factory):
    place = tmp_path_factory.mktemp("kinds")
    made = {
        name: trained(place / name, kind, normalizers.NFC() if name in NFC else None) for name, kind in KINDS.items()
    }
    for tokenizer in made.values():
        assert tokenizer.engine is not None
        assert not tokenizer.notice
    return made


def same(tokenizer, text, by_engine=True):
    ids = tokenizer.engine.encode(text)
    if ids is None:
        assert not by_engine, text
        ids = tokenizer.encode_array(text)
    assert ids.dtype == np.int32
    assert ids.tolist() == tokenizer.own_ids(text).tolist(), text


ROUGH = st.lists(
    st.one_of(
        st.sampled_from([
            *" \t\n\r\f\v\x85\u00a0\u2028\u3000\u200b", "  ", "    ", "\r\n", "\n\n", *"'’sSſtTdDmMİ", "'re", "'VE", "'Ll", *"aZéÉßǅʰªαЖش世각", "the",
            *"0129²½٣ⅷ𝟘", "\U00011de3", "\U00016ff4", *".,;:!?/\\#$()[]{}<>=+-*_`\"@|~^&%", "//", "/\n", *"\u0301\u0323\u0327\u1100\u1161\u11a8\u0f71\u212b\ufb01", "👩‍👩‍👧", "🏴",
            "<|im_end|>", "<s>", *"\x00\x1f\x7f\xad\ufeff\uffff", "\U000f0001", "\U0003fffd", "\U000e0061",
        ]),
        st.text(max_size=4),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=40,
).map("".join)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(ROUGH)
@example("a  \n  ")
@example("   \n\n \t x  1  12 ½ ²a")
@example("'S'ſ'LL ''s 'sa don'T\r\n\r\n")
def test_every_kind_gives_its_own_ids(all_kinds, text):
    for tokenizer in all_kinds.values():
        same(tokenizer, text, by_engine=False)


def test_the_corpus_and_its_pieces_run_on_the_engine(all_kinds):
    whole = "".join(text for text in TEXTS if "\U0010ffff" not in text)
    for name, tokenizer in all_kinds.items():
        same(tokenizer, whole)
        for start in range(0, len(whole), 97):
            same(tokenizer, whole[start : start + 61])
        for text in ("", " ", "\n", "a", "世"):
            same(tokenizer, text)
        assert tokenizer.encode(whole) == tokenizer.own_ids(whole).tolist(), name
        back = tokenizer.decode(tokenizer.encode(whole))
        assert back == (normalizers.NFC().normalize_str(whole) if name in NFC else whole)


def test_patterns_are_those_of_the_models():
    load_tokenizer(TokensConfig())  # provides the vocabulary
    assert tiktoken_ext.openai_public.o200k_base()["pat_str"] == _hf_splits._O200K
    llama = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    assert llama == _hf_splits._LLAMA3
    assert llama.replace("{1,3}", "") == _hf_splits._QWEN2
    assert quick(r"(?i)a|\s+(?!\S)|\s+") == r"(?i)a|\s+(?!\S)|\s+"
    assert quick("a|b") == "a|b"


@pytest.mark.slow
def test_every_character_is_cut_alike_or_is_odd(all_kinds):
    """Each in the places where a class of characters decides. Planes 4 to 13, 15 and 16 are odd as a whole."""
    everything = [*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xE1000)]
    for name in ("smollm2", "o200k"):
        tokenizer = all_kinds[name]
        find = odd_characters(tokenizer.engine.splitting)
        plain = [chr(c) for c in everything if not find.search(chr(c))]
        assert len(everything) - len(plain) < 40
        for around in ("x{}1  {}  y", "'{} a'{}e"):
            for start in range(0, len(plain), 20_000):
                same(tokenizer, "\n".join(around.replace("{}", c) for c in plain[start : start + 20_000]))
    assert find.search("\U00050000")
    assert find.search("\ud800")


def test_long_runs(all_kinds):
    for name in ("smollm2", "o200k"):
        tokenizer = all_kinds[name]
        for unit in ("a", "aA", "A", "1", "=", "'", "世", "\u0301", "_ ", "\r\n.", " x"):
            same(tokenizer, unit * 30_000)
        for unit in (" ", "\t", "\n", "\r\n", "\u3000", " \n"):
            same(tokenizer, f"a{unit}b" + unit * (30_000 // len(unit)) + "c")
            text = "a" * 50_000 + unit * 70_000 + "b"
            assert has_long_run(text)
            same(tokenizer, text, by_engine=False)
    assert not has_long_run(" " * 32_000 + "x" + " " * 32_000)
    assert not has_long_run("")


# Tokenizers of other shapes -------------------------------------------------------------------------------


def test_added_tokens_are_found_as_tokenizers_finds_them(tmp_path):
    added = ["    ", "  ", "<s> x", "\u00e9\u00e9", "im_end|>y", "return"]
    tokenizer = trained(tmp_path / "raw", KINDS["gpt2"], added=added)
    normal = [tokenizers.AddedToken(text, normalized=False) for text in added[::2]]
    mixed = trained(tmp_path / "mixed", KINDS["qwen2"], normalizers.NFC(), [*normal, *added[1::2]])
    for made in (tokenizer, mixed):
        assert made.engine is not None
        for text in (
            "a       b   c", "<s> x<s> <s>x", "<|im_end|>y im_end|>y", "éée\u0301e\u0301éé\u0301", "returnreturn re return",
            " " * 9, "      \n  return  x", "", "é", "<s",
        ):  # fmt: skip
            same(made, text)
            assert made.decode(made.encode(text)) in (text, normalizers.NFC().normalize_str(text))
    # A control token hides what begins within it, if it is looked for at the same time.
    number = mixed.tokenizer.token_to_id("im_end|>y")
    assert number not in mixed.encode("<|im_end|>y")
    assert number in mixed.encode("im_end|>y")


def unreachable(data):
    """Give the vocabulary tokens of many parts that no merges make."""
    for token in ("Ġqzqzq", "zqxjkv"):
        data["model"]["vocab"][token] = max(data["model"]["vocab"].values()) + 1


def whole_pieces(data):
    unreachable(data)
    data["model"]["ignore_merges"] = True


def test_tokens_that_merges_do_not_make(tmp_path):
    for change, meets in ((unreachable, False), (whole_pieces, True)):
        tokenizer = trained(tmp_path / change.__name__, KINDS["llama3"], change=change)
        assert tokenizer.engine is not None
        number = tokenizer.tokenizer.token_to_id("Ġqzqzq")
        for text in ("a qzqzq b", "zqxjkv", "zqxjkvs qzqzqs", "a qzqzq", "(zqxjkv)"):
            same(tokenizer, text)
        assert (number in tokenizer.encode("a qzqzq b")) == meets
        assert number not in tokenizer.encode("a qzqzqz b")


def test_a_model_that_drops_merges_in_training_gives_the_same_ids_every_time(tmp_path):
    change = lambda data: data["model"].update(dropout=0.5)  # noqa: E731
    tokenizer = trained(tmp_path, pre_tokenizers.ByteLevel(add_prefix_space=False), change=change)
    assert len({tuple(tokenizer.encode("the end of the text, and x  y\n" * 3)) for _ in range(50)}) == 1


def two_parts(data):
    whole_pieces(data)
    data["model"]["vocab"]["qz"] = max(data["model"]["vocab"].values()) + 1


def without_merge_order(data):
    """All ways to make a token are merges, as in Llama-3's file, with the last one elsewhere."""
    merges = data["model"]["merges"]
    vocab = data["model"]["vocab"]
    extra = next(
        [token[:i], token[i:]]
        for token in (a + b for a, b in merges)
        for i in range(1, len(token))
        if [token[:i], token[i:]] not in merges and token[:i] in vocab and token[i:] in vocab
    )
    merges.append(extra)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (two_parts, "do not make its token 'qz'"),
        (without_merge_order, "in two places"),
        (lambda d: d["model"].update(dropout=0.1), "drops merges"),
        (lambda d: d["model"].update(unk_token="<s>"), "unknown token"),
        (lambda d: d["model"].update(byte_fallback=True), "falls back to bytes"),
        (lambda d: d["model"].update(merges=d["model"]["merges"][:1] + d["model"]["merges"]), "one merge twice"),
        (lambda d: d["added_tokens"].append({**d["added_tokens"][0], "id": 1500, "content": "xyz", "special": False, "lstrip": True}), "take the blanks"),
        (lambda d: d["pre_tokenizer"].update(use_regex=False), "does not know"),
    ],
)  # fmt: skip
def test_where_the_engine_is_not_known_to_agree_it_is_not_used(tmp_path, change, says):
    tokenizer = trained(tmp_path, pre_tokenizers.ByteLevel(add_prefix_space=False), change=change)
    assert tokenizer.engine is None
    assert says in tokenizer.notice
    assert "slower" in tokenizer.notice
    assert tokenizer.code.startswith("tokenizers ")
    assert tokenizer.encode("a  b\n") == tokenizer.own_ids("a  b\n").tolist()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, d["pre_tokenizer"]]}), "Whitespace, ByteLevel"),
        (lambda d: d["pre_tokenizer"].update(add_prefix_space=True), "plain ByteLevel"),
        (lambda d: d.update(normalizer={"type": "NFKC"}), "not NFC"),
        (lambda d: d.update(decoder={"type": "Fuse"}), "decoder"),
    ],
)  # fmt: skip
def test_what_loses_text_has_no_engine_either(tmp_path, change, says):
    trained(tmp_path, KINDS["gpt2"])
    data = json.loads((tmp_path / "tokenizer.json").read_text())
    change(data)
    with pytest.raises(_hf_splits.UnfitError, match=says):
        byte_level_engine(data, tokenizers.Tokenizer.from_str(json.dumps(data)))


def test_a_pattern_that_is_not_known_is_not_used():
    for nothing in (None, {"type": "Sequence", "pretokenizers": []}, {"type": "Whitespace"}):
        with pytest.raises(_hf_splits.UnfitError, match="does not end in a plain ByteLevel"):
            splitting_of(nothing)
    known = {"type": "Split", "pattern": {"Regex": _hf_splits._QWEN2}, "behavior": "Isolated", "invert": False}
    last = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    assert splitting_of({"type": "Sequence", "pretokenizers": [known, last]})
    for changes in (
        {"pattern": {"Regex": _hf_splits._QWEN2 + "|x"}},
        {"pattern": {"String": "x"}},
        {"behavior": "Removed"},
    ):
        with pytest.raises(_hf_splits.UnfitError, match="a pattern that repo2ctx does not know"):
            splitting_of({"type": "Sequence", "pretokenizers": [{**known, **changes}, last]})


def test_bytes_that_the_vocabulary_lacks(tmp_path):
    """SmolLM2's lacks some control characters: its own code leaves them out of the ids."""

    def lose(data):
        for character in ("Ą", "ñ"):  # bytes 0x04 and 0xf1
            data["model"]["vocab"].pop(character)

    tokenizer = trained(tmp_path, KINDS["gpt2"], change=lose)
    assert tokenizer.engine is not None
    same(tokenizer, "a\x05b ñ 🏴")
    for text in ("a\x04b", "\U00050000"):
        assert tokenizer.engine.encode(text) is None
        same(tokenizer, text, by_engine=False)


# What happens when they disagree ---------------------------------------------------------------------------


class Lying:
    """An engine that is wrong about texts with a mark."""

    def __init__(self, engine):
        self.inner = engine

    def encode(self, text):
        ids = self.inner.encode(text)
        return ids[:-1] if "\u2603" in text else ids


def test_a_wrong_engine_is_left_aside_and_told(tmp_path, monkeypatch):
    tokenizer = trained(tmp_path, KINDS["gpt2"])
    tokenizer.engine = Lying(tokenizer.engine)
    assert tokenizer.code.startswith("tiktoken ")
    assert not tokenizer.notice
    for text in ("plain text\n", "snow \u2603\n", "more \u2603\u2603 of it"):
        assert tokenizer.encode(text) == tokenizer.own_ids(text).tolist()
    assert tokenizer.engine is None
    assert "does not give the tokenizer's own ids" in tokenizer.notice
    assert OWN_CODE in tokenizer.notice
    assert tokenizer.code.startswith("tokenizers ")
    monkeypatch.setenv(OWN_CODE, "own")
    own = load_tokenizer(TokensConfig(tokenizer=str(tmp_path), eos="<|im_end|>"))
    assert own.engine is None
    assert not own.notice
    assert own.fingerprint == tokenizer.fingerprint


def test_texts_are_tried_as_they_come_for_a_small_share(tmp_path, monkeypatch):
    tokenizer = trained(tmp_path, KINDS["gpt2"])
    asked = []
    monkeypatch.setattr(type(tokenizer), "agrees", lambda self, text: asked.append(len(text)) or True)
    for _ in range(300):
        tokenizer.encode("x = 1\n" * 5000)
    assert sum(asked[:8]) >= 32_000
    share = sum(asked[8:]) / (300 * 30_000)
    assert 0.5 / 256 < share < 2 / 256
    assert max(asked) <= 4096


# Control tokens, and decoding ------------------------------------------------------------------------------


def every_tokenizer(tmp_path):
    yield load_tokenizer(TokensConfig())
    yield load_tokenizer(TokensConfig(tokenizer="tiktoken:cl100k_base"))
    yield load_tokenizer(TokensConfig(tokenizer=str(small_tokenizer(tmp_path / "small"))))
    special = [tokenizers.AddedToken(text, special=True) for text in ("[PAD]", "<a>b", "▁x")]
    yield trained(tmp_path / "fast", KINDS["qwen2"], normalizers.NFC(), [*special, "<tool_call>", "    "])
    slow = trained(tmp_path / "slow", KINDS["gpt2"], added=special, change=without_merge_order)
    assert slow.engine is None
    yield slow


def test_no_text_becomes_a_control_id(tmp_path):
    for tokenizer in every_tokenizer(tmp_path):
        special = tokenizer.control_tokens()
        assert tokenizer.eos in special.values()
        control = set(special.values())
        filler = "x" * 4000 + " " * 100 + "\n"
        for text in special:
            for place in (
                text,
                f"{text} a",
                f"a {text}",
                f"a{text}b",
                text * 3,
                f"{filler}{text}{filler}",
                f"    {text}    ",
                f"\u3000{text}世",
            ):
                ids = tokenizer.encode(place)
                assert not control.intersection(ids), (tokenizer.name, place[:80])
                assert tokenizer.decode(ids) == place
        if tokenizer.name.startswith("tiktoken"):  # where a long run of blanks is cut
            for text in special:
                ids = tokenizer.encode(" " * 65_536 + text + " " * 65_530 + text)
                assert not control.intersection(ids)


def test_any_span_decodes_to_its_text(tmp_path):
    text = "".join(t for t in TEXTS[:24] if "\u0958" not in t)
    for tokenizer in every_tokenizer(tmp_path):
        ids = tokenizer.encode_array(text)
        assert ids.dtype == np.int32
        assert ids.tolist() == tokenizer.encode(text)
        whole = tokenizer.decode(ids.tolist())
        assert tokenizer.decode(ids) == whole  # an array as well as a list
        for start in range(0, len(ids), 41):
            left, middle, right = (
                tokenizer.decode(part) for part in (ids[:start], ids[start : start + 7], ids[start + 7 :])
            )
            # A character that is cut shows as U+FFFD on both sides; all else is there.
            pattern = re.escape(left + middle + right).replace("\ufffd", "\0")
            assert re.fullmatch(re.sub("\0+", ".{0,3}", pattern), whole, re.DOTALL)
    assert load_tokenizer(TokensConfig()).decode([]) == ""


def test_an_id_that_the_tokenizer_lacks_decodes_to_nothing(all_kinds):
    tokenizer = all_kinds["gpt2"]
    beyond = [tokenizer.vocabulary_size + 5, *tokenizer.encode("a b")]
    assert tokenizer.decode(beyond) == "a b" == tokenizer.tokenizer.decode(beyond, skip_special_tokens=False)


def test_llama3_s_vocabulary_file_is_cut_as_the_model_cuts():
    from repo2ctx._tiktoken_vocabularies import _LLAMA3, _LLAMA3_PATTERN

    assert _LLAMA3.pattern == _LLAMA3_PATTERN == _hf_splits._LLAMA3
