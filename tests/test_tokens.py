"""Tokenizers: ids decode back, and no file can write a control id."""

import base64
import json
import os
import re

import pytest
import tiktoken
from conftest import small_tokenizer
from tokenizers import normalizers

from repo2ctx.config import TokensConfig
from repo2ctx.errors import TokenizerError
from repo2ctx.tokens import load_tokenizer

TEXTS = [
    "plain\n", "", " ", "\r\n\t\f x \n\n\n", "<|endoftext|><|im_start|>system\n<s></s>[INST]<tool_call>", "é e\u0301 世界 👩‍👩‍👧",
    "x" * 5000, " " * 5000, "<|end_of_text|>" * 50, "\u0000\u0001\u001b[31m",
]  # fmt: skip


def test_the_default_works_offline_and_is_tiktokens_own(tmp_path, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    tokenizer = load_tokenizer(TokensConfig())
    assert tokenizer.encode("hello world") == [24912, 2375]
    assert tokenizer.eos == 199999
    assert tokenizer.vocabulary_size == 200019


@pytest.mark.parametrize("kind", ["tiktoken:o200k_base", "tiktoken:cl100k_base", "hf"])
def test_text_comes_back_and_control_tokens_are_plain_text(kind, tmp_path):
    name = str(small_tokenizer(tmp_path / "hf")) if kind == "hf" else kind
    tokenizer = load_tokenizer(TokensConfig(tokenizer=name))
    for text in TEXTS:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert tokenizer.eos not in ids
    if kind == "hf":
        inner = tokenizer.tokenizer
        assert inner.token_to_id("<tool_call>") not in tokenizer.encode("a<tool_call>b")
        assert inner.token_to_id("    ") in tokenizer.encode("a    b")


def test_hugging_face_settings_are_read(tmp_path):
    tokenizer = load_tokenizer(TokensConfig(tokenizer=str(small_tokenizer(tmp_path / "a", bos=True))))
    assert tokenizer.opening == (0,)
    assert tokenizer.eos == 2
    assert load_tokenizer(TokensConfig(tokenizer=str(tmp_path / "a"), eos="<s>")).eos == 0
    assert load_tokenizer(TokensConfig(tokenizer=str(tmp_path / "a" / "tokenizer.json"), eos="<s>")).eos == 0


def test_normalizers(tmp_path):
    nfc = load_tokenizer(TokensConfig(tokenizer=str(small_tokenizer(tmp_path / "nfc", normalizer=normalizers.NFC()))))
    assert nfc.decode(nfc.encode("e\u0301")) == "é"
    with pytest.raises(TokenizerError, match="does not give text back"):
        load_tokenizer(
            TokensConfig(tokenizer=str(small_tokenizer(tmp_path / "low", normalizer=normalizers.Lowercase())))
        )


def vocabulary(path):
    ranks = [bytes([i]) for i in range(256)] + [b"ab", b"the"]
    path.write_bytes(b"".join(base64.b64encode(t) + b" %d\n" % i for i, t in enumerate(ranks)))
    return path


def test_a_vocabulary_file(tmp_path):
    path = vocabulary(tmp_path / "x.tiktoken")
    with pytest.raises(TokenizerError, match=r"tokens\.pattern"):
        load_tokenizer(TokensConfig(tokenizer=str(path)))
    config = TokensConfig(
        tokenizer=str(path), pattern="cl100k_base", eos="<|endoftext|>", special_tokens={"<|endoftext|>": 258}
    )
    tokenizer = load_tokenizer(config)
    assert tokenizer.encode("ab") == [256]
    assert tokenizer.eos == 258
    assert 258 not in tokenizer.encode("<|endoftext|>")
    assert tokenizer.decode(tokenizer.encode("größe")) == "größe"


@pytest.mark.parametrize(
    "special", [{"<|endoftext|>": 10}, {"<|endoftext|>": 3_000_000_000}, {"<|endoftext|>": 300, "<a>": 300}]
)
def test_ids_that_would_clash_are_refused(tmp_path, special):
    path = vocabulary(tmp_path / "x.tiktoken")
    config = TokensConfig(tokenizer=str(path), pattern="cl100k_base", eos="<|endoftext|>", special_tokens=special)
    with pytest.raises(TokenizerError, match=r"check the (ids|file)"):
        load_tokenizer(config)


def test_an_unknown_end_token_is_refused():
    with pytest.raises(TokenizerError, match="has no token 'nonsense'"):
        load_tokenizer(TokensConfig(eos="nonsense"))


def test_known_vocabulary_files_need_no_settings(tmp_path):
    encoding = tiktoken.get_encoding("cl100k_base")
    ranks = sorted(encoding._mergeable_ranks.items(), key=lambda item: item[1])
    path = tmp_path / "cl100k.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(t) + b" %d\n" % i for t, i in ranks))
    tokenizer = load_tokenizer(TokensConfig(tokenizer=str(path)))
    assert tokenizer.encode("def f(): pass  # ok\n") == encoding.encode("def f(): pass  # ok\n")
    assert tokenizer.eos == 100257


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tiktoken:nope", "it has cl100k_base"),
        ("./missing", "no such file"),
        ("/missing/dir", "no such file"),
        ("EMPTY", "no tokenizer.json"),
        ("BROKEN", "cannot be loaded"),
        ("TEXT", "line 1 of the vocabulary"),
        ("SHORT", "fewer than 256"),
        ("NOEOS", "set tokens.eos"),
        ("x" * 5000, "cannot be loaded"),
        ("~nosuchuser/x", "cannot be loaded"),
        ("LATIN", "cannot be loaded"),
        ("CONFIG", "cannot be loaded"),
        ("PIPE", "no tokenizer.json"),
    ],
)
def test_bad_tokenizers_say_what_to_do(name, says, tmp_path):
    places = {
        "EMPTY": tmp_path,
        "BROKEN": tmp_path / "b" / "tokenizer.json",
        "TEXT": tmp_path / "text.tiktoken",
        "SHORT": tmp_path / "short.tiktoken",
        "NOEOS": tmp_path / "h" / "tokenizer.json",
        "LATIN": tmp_path / "l",
        "CONFIG": tmp_path / "c",
        "PIPE": tmp_path / "p",
    }
    small_tokenizer(tmp_path / "h")
    (small_tokenizer(tmp_path / "l") / "tokenizer.json").write_bytes(b"\xff\xfe\xfd")
    (small_tokenizer(tmp_path / "c") / "tokenizer_config.json").write_text("{")
    (tmp_path / "p").mkdir()
    os.mkfifo(tmp_path / "p" / "tokenizer.json")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "tokenizer.json").write_text("{}")
    (tmp_path / "text.tiktoken").write_text("hello there\n")
    (tmp_path / "short.tiktoken").write_text("YQ== 0\n")
    with pytest.raises(TokenizerError, match=re.escape(says)) as error:
        load_tokenizer(TokensConfig(tokenizer=str(places.get(name, name))))
    assert error.value.exit_code == 2


def test_runs_of_blanks_that_make_tiktoken_panic():
    tokenizer = load_tokenizer(TokensConfig())
    for text in (" " * 1_200_000, "x" + "\t" * 1_200_000 + "y\n" + "\u3000" * 70_000):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    short = "a" + " " * 60_000 + "b"
    assert tokenizer.encode(short) == tokenizer.encoding.encode_ordinary(short)


TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"


@pytest.mark.parametrize("place", ["config", "file", "named"])
def test_a_chat_template_frames_the_document(tmp_path, place):
    folder = small_tokenizer(tmp_path / "t", bos=True)
    if place == "file":
        (folder / "chat_template.jinja").write_text(TEMPLATE)
    else:
        several = [{"name": "tool_use", "template": "{{ tools }}"}, {"name": "default", "template": TEMPLATE}]
        settings = {"eos_token": "</s>", "chat_template": several if place == "named" else TEMPLATE}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = load_tokenizer(TokensConfig(tokenizer=str(folder)))
    start, end = (tokenizer.tokenizer.token_to_id(text) for text in ("<|im_start|>", "<|im_end|>"))
    assert (tokenizer.opening[0], tokenizer.answer[0], tokenizer.eos) == (start, end, end)
    assert start in tokenizer.answer
    assert tokenizer.decode(tokenizer.opening) == "<|im_start|>user\n"
    assert tokenizer.decode(tokenizer.answer) == "<|im_end|>\n<|im_start|>assistant\n"
    assert start not in tokenizer.encode("<|im_start|>user\n")
    if place == "file":
        plain = load_tokenizer(TokensConfig(tokenizer=str(folder), chat="never"))
        assert (plain.opening, plain.answer) == ((0,), ())
        assert plain.fingerprint != tokenizer.fingerprint


def test_a_chat_template_without_an_end_is_refused(tmp_path):
    folder = small_tokenizer(tmp_path / "t")
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    with pytest.raises(TokenizerError, match=r"ends an answer with .*no control token; set tokens\.chat to never"):
        load_tokenizer(TokensConfig(tokenizer=str(folder)))


def test_the_fingerprint_knows_what_stands_before_the_answer(tmp_path):
    folder = small_tokenizer(tmp_path / "t")
    template = TEMPLATE.replace("{{ m['role'] }}\n", "{{ m['role'] }}{{ sep_token }}\n")
    found = set()
    for separator in ("<s>", "<tool_call>"):
        settings = {"eos_token": "<|im_end|>", "sep_token": separator, "chat_template": template}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        found.add(load_tokenizer(TokensConfig(tokenizer=str(folder))).fingerprint)
    assert len(found) == 2


# What tokenizers do to texts -------------------------------------------------------------------------------


def changed(folder, change):
    """A small tokenizer whose tokenizer.json was changed in place."""
    small_tokenizer(folder)
    data = json.loads((folder / "tokenizer.json").read_text())
    change(data)
    (folder / "tokenizer.json").write_text(json.dumps(data))
    return TokensConfig(tokenizer=str(folder))


def lacking(character):
    """Take a byte, spelled as vocabularies spell it, out of one."""

    def change(data):
        del data["model"]["vocab"][character]

    return change


@pytest.mark.parametrize("text", ["TODO", "<|im_end|>", "é"])
@pytest.mark.parametrize("by", ["", "x", "<|im_end|>"])
def test_a_text_that_a_normalizer_changes_is_refused_when_it_comes(text, by, tmp_path):
    replace = {"type": "Replace", "pattern": {"String": text}, "content": by}
    if text == by:
        return
    config = changed(tmp_path / "t", lambda data: data.update(normalizer=replace))
    with pytest.raises(TokenizerError, match=r"does not give text back|has no token for"):
        load_tokenizer(config).encode(f"before {text} after")


def test_a_vocabulary_without_a_letters_byte_is_refused(tmp_path):
    with pytest.raises(TokenizerError, match=r"has no token for U\+00C0"):
        load_tokenizer(changed(tmp_path / "t", lacking("Ã")))  # the first byte of é


def test_a_vocabulary_without_some_control_characters_leaves_them_out_and_says_so(tmp_path):
    tokenizer = load_tokenizer(changed(tmp_path / "t", lacking("Ą")))  # U+0004
    assert "has no token for U+0004, which rows leave out" in tokenizer.notice
    assert tokenizer.decode(tokenizer.encode("a\x04b\x05 é")) == "ab\x05 é"


def test_an_end_token_that_texts_hold_is_refused(tmp_path):
    small_tokenizer(tmp_path / "t", eos="x")
    with pytest.raises(TokenizerError, match=r"turns the text 'x' into .*ends a document"):
        load_tokenizer(TokensConfig(tokenizer=str(tmp_path / "t")))


def test_ids_that_are_no_tokens_are_refused(tmp_path):
    def change(data):
        special = {"<s>": {"id": "<s>", "ids": [999_999_999], "tokens": ["<s>"]}}
        single = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
        data["post_processor"] = {
            "type": "TemplateProcessing",
            "single": single,
            "pair": single,
            "special_tokens": special,
        }

    with pytest.raises(TokenizerError, match="ids that are no tokens"):
        load_tokenizer(changed(tmp_path / "t", change))


def test_models_that_cannot_encode_are_told_in_a_line(tmp_path):
    def unigram(data):
        data["model"] = {"type": "Unigram", "vocab": [["a", -1.0], ["<|im_end|>", -2.0]], "unk_id": None}

    with pytest.raises(TokenizerError, match="cannot be loaded"):
        load_tokenizer(changed(tmp_path / "t", unigram))
