"""Text -> token ids through one interface over tiktoken and Hugging Face tokenizers.

Text from a repository is plain text: a string such as `<|endoftext|>` in a file is encoded as the characters it
is made of and never becomes a control id. Loading checks, on a small corpus and for every byte, that this holds and that ids
decode to the text again; a tokenizer that fails is refused, with what it did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from repo2ctx._hugging_face import given_back, hugging_face
from repo2ctx._tiktoken_vocabularies import tiktoken_encoding, vocabulary_file
from repo2ctx._tokenizer_corpus import TEXTS
from repo2ctx.config import TokensConfig
from repo2ctx.errors import TokenizerError
from repo2ctx.models import SMOLLM2, model_source


class Tokenizer(Protocol):
    """What packing needs of a tokenizer.

    name: as the user asked for it. fingerprint: SHA-256 of what decides the ids. opening: ids that stand before a
    document, often none; for a chat model all before the user's text. answer: for a chat model, the ids between the user's text
    and the answer; else none. eos: the id that ends the target. code: what computes the ids, with its version. notice: what the
    user should be told of how it runs, often nothing; it may come while texts are encoded.
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
    @property
    def code(self) -> str: ...
    @property
    def notice(self) -> str: ...

    def encode(self, text: str) -> list[int]: ...

    def encode_array(self, text: str) -> npt.NDArray[np.int32]: ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of any span of ids; U+FFFD for a character of which the span holds a part only."""

    def control_tokens(self) -> dict[str, int]: ...


def load_tokenizer(config: TokensConfig) -> Tokenizer:
    """The tokenizer that the configuration names. Raises TokenizerError, saying what to do."""
    try:
        return _load(config)
    except TokenizerError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__module__ != _PANIC:
            raise
        said = f"{type(error).__name__}: {error}"[:200]
        raise TokenizerError(
            f"tokenizer {config.tokenizer[:200]!r}: cannot be loaded ({said}); give tiktoken:NAME, a tiktoken vocabulary "
            "file, or a directory with a tokenizer.json"
        ) from error


_PANIC = "pyo3_runtime"  # of what the tokenizers' own code raises where it is at a loss; it is no Exception


def _load(config: TokensConfig) -> Tokenizer:
    name = config.tokenizer
    path = Path(model_source(name) if name == SMOLLM2 else name).expanduser()
    tokenizer: Tokenizer
    if name.startswith("tiktoken:"):
        tokenizer = tiktoken_encoding(name, config)
    elif path.is_file() and path.suffix != ".json":
        tokenizer = vocabulary_file(path, config)
    else:
        tokenizer = hugging_face(name, path, config)
    _check(tokenizer, tokenizer.control_tokens())
    return tokenizer


def _check(tokenizer: Tokenizer, special: Mapping[str, int]) -> None:
    """Refuse a tokenizer that lets a file write control ids, or whose ids do not decode to the text."""
    control = {*special.values(), tokenizer.eos}
    for text in (*special, tokenizer.decode([tokenizer.eos])):
        if control.intersection(tokenizer.encode(f"before {text} after{text}")):
            raise TokenizerError(
                f"tokenizer {tokenizer.name!r}: turns the text {text!r} into a control id, or into the one that ends a "
                "document; it cannot be used, unless tokens.eos names another one"
            )
    for text in (*TEXTS, *special):
        given_back(tokenizer.name, text, tokenizer.decode(tokenizer.encode(text)))
