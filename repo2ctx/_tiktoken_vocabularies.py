"""tiktoken's encodings, by name or from a vocabulary file. The o200k and cl100k vocabularies come from the bpe-openai wheel,
so they need no network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tiktoken
import tiktoken_ext.openai_public

from repo2ctx._byte_level import has_long_run
from repo2ctx._hf_splits import quick
from repo2ctx.config import TokensConfig
from repo2ctx.crawl import default_cache
from repo2ctx.errors import TokenizerError

# tiktoken's own addresses: its cache is keyed by them, and it checks what it finds there against its own hashes.
_BUNDLED = {
    name: f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
    for name in ("o200k_base", "cl100k_base")
}
CODE = f"tiktoken {version('tiktoken')}"
MAX_ID = (1 << 31) - 1  # rows hold 32-bit ids
_LONG_RUN = 1 << 16
_BLANKS = re.compile(rf"[^\S\r\n]{{{_LONG_RUN}}}")


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

    @property
    def code(self) -> str:
        return CODE

    @property
    def notice(self) -> str:
        return ""

    def encode(self, text: str) -> list[int]:
        # tiktoken panics on a run of about a million blanks; no reference exists for the ids of such a text.
        if not has_long_run(text):
            return self.encoding.encode_ordinary(text)
        cuts = [0, *(match.end() for match in _BLANKS.finditer(text)), len(text)]
        return [token for a, b in pairwise(cuts) for token in self.encoding.encode_ordinary(text[a:b])]

    def encode_array(self, text: str) -> npt.NDArray[np.int32]:
        return np.asarray(self.encode(text), np.int32)

    def decode(self, ids: Sequence[int]) -> str:
        return self.encoding.decode(list(ids), errors="replace")

    def control_tokens(self) -> dict[str, int]:
        return {text: self.encoding.encode_single_token(text) for text in sorted(self.encoding.special_tokens_set)}


def tiktoken_encoding(name: str, config: TokensConfig) -> TiktokenTokenizer:
    """One of tiktoken's encodings, by `tiktoken:NAME`. Raises TokenizerError."""
    encoding_name = name.removeprefix("tiktoken:")
    known = tiktoken.list_encoding_names()
    if encoding_name not in known:
        raise TokenizerError(f"tokenizer {name!r}: tiktoken has no such encoding; it has {', '.join(sorted(known))}")
    _provide_vocabulary(encoding_name)
    try:
        parameters = tiktoken_ext.openai_public.ENCODING_CONSTRUCTORS.get(encoding_name)
        encoding = _encoding(**parameters()) if parameters else tiktoken.get_encoding(encoding_name)
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


def _encoding(*, name: str, pat_str: str, **others: Any) -> tiktoken.Encoding:
    return tiktoken.Encoding(name, pat_str=quick(pat_str), **others)


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


# Meta's own words: tiktoken's cl100k_base of today cuts blanks at the end of a text otherwise.
_LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3 = _Known(_LLAMA3_PATTERN, _llama3_special_tokens(), "<|begin_of_text|>", "<|end_of_text|>")
_CL100K = _Known("cl100k_base", {"<|endoftext|>": 100257}, "", "<|endoftext|>")
_O200K = _Known("o200k_base", {"<|endoftext|>": 199999}, "", "<|endoftext|>")
_KNOWN_FILES = {
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": _LLAMA3,
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": _CL100K,
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": _O200K,
}


def vocabulary_file(path: Path, config: TokensConfig) -> TiktokenTokenizer:
    """A vocabulary in tiktoken's format; `config` says what the file does not, unless we know it. Raises TokenizerError."""
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
    if not all(0 <= number <= MAX_ID for number in (*taken, *special.values())):
        raise TokenizerError(f"tokenizer {path}: an id is not between 0 and {MAX_ID}; check the file and the config")
    if pattern in _BUNDLED:
        _provide_vocabulary(pattern)
        pattern = getattr(tiktoken_ext.openai_public, pattern)()["pat_str"]
    try:
        encoding = _encoding(name=path.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    except Exception as error:
        raise TokenizerError(f"tokenizer {path}: tiktoken refuses it ({error}); check tokens.pattern") from error
    opening = (special[known.bos],) if known and known.bos else ()
    settings = json.dumps([digest, pattern, special, eos_text], sort_keys=True)
    fingerprint = hashlib.sha256(settings.encode()).hexdigest()
    return TiktokenTokenizer(str(path), fingerprint, opening, special[eos_text], encoding.n_vocab, encoding)


def _parse_ranks(data: bytes) -> dict[bytes, int]:
    """tiktoken's format: a base64 token and its rank a line."""
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
