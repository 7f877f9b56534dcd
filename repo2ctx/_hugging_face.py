"""Hugging Face fast tokenizers: on tiktoken's engine where it gives the same ids (`_byte_level`), else on their own code.

That the ids are the same is shown when a tokenizer is loaded. It is still tried: on a fixed corpus then, and on parts of
the texts as they come, one character in 256. Should they ever differ, the tokenizer's own code goes on, and `notice` tells.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tokenizers

from repo2ctx._byte_level import ByteLevelEngine, byte_level_engine
from repo2ctx._hf_splits import UnfitError
from repo2ctx._tiktoken_vocabularies import CODE, MAX_ID
from repo2ctx._tokenizer_corpus import EVERY_BYTE, TEXTS
from repo2ctx.chat import Framing, framing
from repo2ctx.config import TokensConfig
from repo2ctx.errors import TokenizerError

OWN_CODE = "REPO2CTX_TOKENIZERS"
"""Set to `own` in the environment, it keeps every Hugging Face tokenizer on its own code."""
_TEMPLATE = "chat_template.jinja"
_PART = "\ufffd"  # what the decoder gives for the bytes of a character of which one is missing
_CONTROL_TOKEN = re.compile(r"<[^\s<>]{1,80}>|\[[A-Z_]{2,40}\]|<\|.{1,80}\|>")
_TRIED_AT_FIRST, _TRIED_SHARE, _TRIED_SIZE = 1 << 15, 1 / 256, 1 << 12  # in characters


@dataclass(slots=True)
class HuggingFaceTokenizer:
    """A Hugging Face fast tokenizer.

    engine: gives the ids where it can; None where the tokenizer's own code always does, and then `notice` says why. lost:
    finds the characters that it has no tokens for, and leaves out.
    """

    name: str
    fingerprint: str
    opening: tuple[int, ...]
    answer: tuple[int, ...]
    eos: int
    vocabulary_size: int
    tokenizer: tokenizers.Tokenizer
    engine: ByteLevelEngine | None = None
    notice: str = ""
    lost: re.Pattern[str] | None = None
    _seen: int = 0
    _tried: int = 0

    @property
    def code(self) -> str:
        own = f"tokenizers {tokenizers.__version__}"
        return own if self.engine is None else f"{CODE} for {own}"

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.encode_array(text).tolist()
        return ids

    def encode_array(self, text: str) -> npt.NDArray[np.int32]:
        ids = self.engine.encode(text) if self.engine is not None and self._agrees_on_part(text) else None
        return self._held(text, self.own_ids(text)) if ids is None else ids

    def own_ids(self, text: str) -> npt.NDArray[np.int32]:
        """What the tokenizer's own code gives."""
        return np.asarray(self.tokenizer.encode(text, add_special_tokens=False).ids, np.int32)

    def _held(self, text: str, ids: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The ids that its own code gave, if they decode to the text: what a normalizer does to it, no trial can tell before."""
        back = self.decode(ids.tolist())
        if self.lost is not None and self.lost.search(text):
            text, back = self.lost.sub("", text).replace(_PART, ""), back.replace(_PART, "")
        given_back(self.name, text, back)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        if self.engine is not None:
            return self.engine.decode(ids)
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=False)
        return text

    def control_tokens(self) -> dict[str, int]:
        added = self.tokenizer.get_added_tokens_decoder()
        return {token.content: number for number, token in added.items() if token.special}

    def _agrees_on_part(self, text: str) -> bool:
        """Try a part of some of the texts that come: the same parts, however they come to be asked for, in the same order."""
        self._seen += len(text)
        if self._tried > _TRIED_AT_FIRST + self._seen * _TRIED_SHARE:
            return True
        start = self._seen % max(1, len(text) - _TRIED_SIZE + 1)
        part = text[start : start + _TRIED_SIZE]
        self._tried += len(part)
        return self.agrees(part)

    def agrees(self, text: str) -> bool:
        """Whether the engine gives the tokenizer's own ids; if not, it is left aside from now on."""
        assert self.engine is not None
        ids = self.engine.encode(text)
        if ids is None or np.array_equal(ids, self.own_ids(text)):
            return True
        self.engine = None
        self.notice += (" " if self.notice else "") + (
            f"tokenizer {self.name!r}: on {text[:40]!r} tiktoken's engine does not give the tokenizer's own ids, which count; "
            f"it is left aside from here on. Please report this. Texts before it were only sampled: to be sure of them, "
            f"build anew with {OWN_CODE}=own in the environment"
        )
        return False


def hugging_face(name: str, path: Path, config: TokensConfig) -> HuggingFaceTokenizer:
    """The tokenizer of a tokenizer.json, of a directory that holds one, or of a name on the Hub. Raises TokenizerError."""
    source, settings = _tokenizer_json(name, path)
    try:
        data: dict[str, Any] = json.loads(source)
        for token in data.get("added_tokens") or ():
            # Some models mark control tokens as ordinary ones; a file must not be able to write those either.
            token["special"] = bool(token.get("special")) or bool(_CONTROL_TOKEN.fullmatch(token["content"]))
        data["truncation"] = data["padding"] = None
        tokenizer = tokenizers.Tokenizer.from_str(json.dumps(data))
        if getattr(tokenizer.model, "dropout", None):
            tokenizer.model.dropout = None  # merges are dropped at random in training alone: a text has one list of ids
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
    fingerprint = hashlib.sha256("\0".join((source, framed, f"{opening} {answer} {eos}")).encode()).hexdigest()
    if tokenizer.get_vocab_size() > MAX_ID or any(tokenizer.id_to_token(i) is None for i in (*opening, *answer, eos)):
        raise TokenizerError(
            f"tokenizer {name!r}: its files are not those of a tokenizer, or not of one and the same: what it puts around a "
            "text has ids that are no tokens"
        )
    made = HuggingFaceTokenizer(name, fingerprint, opening, answer, eos, tokenizer.get_vocab_size(), tokenizer)
    if os.environ.get(OWN_CODE) != "own":
        _quicken(made, data)
    _note_losses(made)
    return made


def given_back(name: str, text: str, back: str) -> None:
    """Raise TokenizerError unless a text came back as it was, or in NFC: the one normalisation that models in use apply (Qwen's);
    it loses nothing that a reader sees."""
    if back in (text, unicodedata.normalize("NFC", text)):
        return
    at = next((i for i, (a, b) in enumerate(zip(text, back, strict=False)) if a != b), min(len(text), len(back)))
    start = max(0, at - 10)
    raise TokenizerError(
        f"tokenizer {name!r}: does not give text back as it was: {text[start : at + 20]!r} became {back[start : at + 20]!r}; "
        "use a byte-level tokenizer, or one that falls back to bytes"
    )


def _note_losses(tokenizer: HuggingFaceTokenizer) -> None:
    """Find what it has no tokens for; raise TokenizerError if that is more than control characters and what Unicode has not
    given away."""
    found = [(c, tokenizer.decode(tokenizer.own_ids(c).tolist())) for c in EVERY_BYTE]
    lost = [c for c, back in found if back != c and not back.strip(_PART)]
    if not lost:
        return
    names = ", ".join(f"U+{ord(c):04X}" for c in lost[:8]) + (f" and {len(lost) - 8:,} more" if len(lost) > 8 else "")
    if any(unicodedata.category(c) not in ("Cc", "Cn") for c in lost):
        raise TokenizerError(
            f"tokenizer {tokenizer.name!r}: has no token for {names}; use a tokenizer whose vocabulary has every byte"
        )
    ranges = "".join(f"{re.escape(c)}-{re.escape(chr(ord(c) | _LIKE_IT[len(c.encode())]))}" for c in lost)
    tokenizer.lost = re.compile(f"[{ranges}]")
    said = f"tokenizer {tokenizer.name!r}: has no token for {names}, which rows leave out of texts."
    tokenizer.notice = f"{said} {tokenizer.notice}".rstrip()


_LIKE_IT = {
    1: 0,
    2: 0,
    3: 0xFFF,
    4: 0x3FFFF,
}  # length in UTF-8 -> the bits in which characters of one first byte differ


def _quicken(tokenizer: HuggingFaceTokenizer, data: dict[str, Any]) -> None:
    """Give a tokenizer its engine, if it can have one that gives the right ids on every text tried."""
    try:
        tokenizer.engine = byte_level_engine(data, tokenizer.tokenizer)
    except UnfitError as error:
        tokenizer.notice = (
            f"tokenizer {tokenizer.name!r}: {error}; its own code encodes, several times slower than tiktoken's"
        )
        return
    for text in (*TEXTS, *tokenizer.control_tokens()):
        if not tokenizer.agrees(text):
            return


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
