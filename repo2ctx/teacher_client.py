"""Questions to a model at an OpenAI-compatible endpoint, answered once: what comes back is kept on disk, and tokens are counted.

Each answer is a small JSON file under the SHA-256 of everything that decides it, so a build that is run again asks nothing
twice; a request that might go over the budget is not sent (`teacher_ledger.py`). The `openai` package sends, and tries again
with exponential backoff (0.5 s, doubled to at most 8 s, up to a quarter less by chance) on 408, 409, 429, 5xx, dropped
connections and timeouts, or as Retry-After says, up to two minutes. The key stays out of representations, errors and files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError, model_validator

from repo2ctx.config import TeacherConfig
from repo2ctx.errors import ConfigError, TeacherError, TeacherUnavailableError
from repo2ctx.teacher_ledger import Ledger

if TYPE_CHECKING:
    import openai

TEACHER_PROMPT_VERSION = 1
"""Of the texts in `teacher.py`: part of what decides an answer, and of the dataset card."""

_MOST_CHARACTERS_A_TOKEN = 32
_MOST_TOKENS = 1 << 40  # more is no count
_LONGEST_BODY = 16 << 20  # bytes
_CHARACTERS_A_TOKEN = 3  # where nobody counted; code has 3 to 4
_SAID = 200  # characters of what a server says that an error repeats
_NO_KEY = "none"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the teacher is. timeout_s: of one try, of which there are 1 + `retries`. Shown, it is only its host."""

    base_url: str = field(repr=False)
    key: str = field(repr=False)
    timeout_s: float = 600.0
    retries: int = 8

    def __post_init__(self) -> None:
        """Refuse, without repeating it, an address that could carry a secret into logs, or a key that no header can hold."""
        try:
            parts = urlsplit(self.base_url)
            plain = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
        except ValueError:
            plain = False
        if not plain or parts.username is not None or parts.query or parts.fragment:
            raise ConfigError(
                "OPENAI_BASE_URL: expected http(s)://host[:port]/path, such as http://localhost:8000/v1, without user, "
                "password or query; the key goes into OPENAI_API_KEY"
            )
        if not re.fullmatch(r"[!-~]+", self.key):
            raise ConfigError("OPENAI_API_KEY: holds blanks or characters that are not ASCII; set the key alone")

    @property
    def host(self) -> str:
        """host[:port], for errors."""
        return urlsplit(self.base_url).netloc

    def __repr__(self) -> str:
        return f"Endpoint({self.host})"

    def without_key(self, text: str) -> str:
        return text if self.key == _NO_KEY else text.replace(self.key, "***")


def endpoint_from_environment(environ: Mapping[str, str] = os.environ) -> Endpoint:
    """OPENAI_BASE_URL with OPENAI_API_KEY, which a local server may do without. Raises ConfigError."""
    address = environ.get("OPENAI_BASE_URL", "").strip()
    if not address:
        raise ConfigError(
            "no teacher: set OPENAI_BASE_URL to an OpenAI-compatible endpoint, such as http://localhost:8000/v1, and "
            "OPENAI_API_KEY if it wants a key"
        )
    return Endpoint(address, environ.get("OPENAI_API_KEY", "").strip() or _NO_KEY)


def identity(config: TeacherConfig, endpoint: Endpoint | None) -> dict[str, Any]:
    """What a dataset card says of the teacher; without an endpoint the host is not known."""
    host = urlsplit(endpoint.base_url).hostname if endpoint else None
    return {"model": config.model, "host": host, "prompt_version": TEACHER_PROMPT_VERSION}


@dataclass(frozen=True, slots=True)
class Answer:
    """finish: stop, length (cut off), content_filter … model: as the server names it. cached: it was not asked for now."""

    text: str
    finish: str
    prompt_tokens: int
    completion_tokens: int
    cached: bool
    model: str


Messages = Sequence[Mapping[str, str]]


class Client:
    """Asks the model of `config` at `endpoint`. Answers are kept under `cache`; without an endpoint only those are given."""

    def __init__(self, config: TeacherConfig, endpoint: Endpoint | None, cache: Path, ledger: Ledger):
        self.config, self.endpoint, self.cache, self.ledger = config, endpoint, cache, ledger
        self._options = {"max_tokens": "max_tokens", "temperature": "temperature", "seed": "seed"}

    def ask(self, messages: Messages, max_tokens: int, prompt_tokens: int | None = None) -> Answer:
        """The answer to `messages`, of at most `max_tokens`. prompt_tokens: about how many the messages have, for the budget.

        Raises TeacherError: over the budget, refused by the endpoint, or not answered yet and offline;
        TeacherUnavailableError if nothing can be asked of the endpoint.
        """
        digest = self._digest(messages, max_tokens)
        if kept := self._kept(digest):
            return kept
        if self.endpoint is None:
            raise TeacherError(
                f"the teacher has not answered this yet (request {digest[:12]}), and --offline asks nobody; run again without it"
            )
        if prompt_tokens is None:
            prompt_tokens = sum(len(m["content"]) for m in messages) // _CHARACTERS_A_TOKEN + 1
        reserved = prompt_tokens + max_tokens
        self.ledger.reserve(reserved)
        try:
            completion = self._send(messages, max_tokens)
        except TeacherError:
            self.ledger.settle(reserved, 0)
            raise
        choice = completion.choices[0]
        text = self.endpoint.without_key(choice.message.content or "")[: _MOST_CHARACTERS_A_TOKEN * max_tokens]
        guess = _Usage(prompt_tokens=prompt_tokens, completion_tokens=len(text) // _CHARACTERS_A_TOKEN + 1)
        try:
            usage = _Usage.model_validate(completion.usage)
        except ValidationError:  # servers that do not count, or wrongly
            usage = guess
        answer = Answer(
            text,
            choice.finish_reason or "stop",
            usage.prompt_tokens,
            usage.completion_tokens,
            cached=False,
            model=self.endpoint.without_key(completion.model or self.config.model),
        )
        self._keep(digest, answer)
        self.ledger.settle(reserved, usage.prompt_tokens + usage.completion_tokens)
        return answer

    def close(self) -> None:
        """Close connections; asking opens them again."""
        if opened := self.__dict__.pop("_openai", None):
            opened.close()

    # The cache ---------------------------------------------------------------------------------------------

    def _digest(self, messages: Messages, max_tokens: int) -> str:
        decides = {
            "model": self.config.model,
            "messages": [dict(message) for message in messages],
            "max_tokens": max_tokens,
            "temperature": self.config.temperature,
            "seed": self.config.seed,
            "prompt_version": TEACHER_PROMPT_VERSION,
        }
        return hashlib.sha256(json.dumps(decides, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def _place(self, digest: str) -> Path:
        return self.cache / digest[:2] / f"{digest}.json"

    def _kept(self, digest: str) -> Answer | None:
        """The answer on disk; None if there is none, or its file is damaged."""
        try:
            kept = _Kept.model_validate_json(self._place(digest).read_bytes(), strict=True)
        except (OSError, ValueError):
            return None
        if kept.request != digest:
            return None
        usage = kept.usage
        return Answer(kept.text, kept.finish_reason, usage.prompt_tokens, usage.completion_tokens, True, kept.model)

    def _keep(self, digest: str, answer: Answer) -> None:
        kept = {
            "request": digest,
            "model": answer.model,
            "usage": {"prompt_tokens": answer.prompt_tokens, "completion_tokens": answer.completion_tokens},
            "finish_reason": answer.finish,
            "text": answer.text,
        }
        place = self._place(digest)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            # a name of its own: other processes may keep the same answer
            with tempfile.NamedTemporaryFile("w", dir=place.parent, suffix=".partial", delete=False) as file:
                json.dump(kept, file, indent=1, sort_keys=True)
                file.flush()
                os.fsync(file.fileno())
            Path(file.name).replace(place)
        except OSError as error:
            raise TeacherUnavailableError(
                f"{place}: an answer cannot be kept ({error.strerror}); make room, and run again"
            ) from error

    # The wire ----------------------------------------------------------------------------------------------

    @cached_property
    def _openai(self) -> openai.OpenAI:
        import openai

        assert self.endpoint
        return openai.OpenAI(
            base_url=self.endpoint.base_url,
            api_key=self.endpoint.key,
            timeout=openai.Timeout(self.endpoint.timeout_s, connect=min(30.0, self.endpoint.timeout_s)),
            max_retries=self.endpoint.retries,
            http_client=openai.DefaultHttpxClient(follow_redirects=False),  # the files go where the user said
        )

    def _send(self, messages: Messages, max_tokens: int) -> _Completion:
        import httpx2
        import openai

        assert self.endpoint
        conversation: Any = [dict(message) for message in messages]
        values = {"max_tokens": max_tokens, "temperature": self.config.temperature, "seed": self.config.seed}
        kind: type[TeacherError] = TeacherUnavailableError
        data, broken = b"", 0
        while True:
            options: dict[str, Any] = {spelt: values[name] for name, spelt in self._options.items()}
            try:
                with self._openai.chat.completions.with_streaming_response.create(
                    model=self.config.model, messages=conversation, **options
                ) as reply:
                    data = _body(reply.iter_bytes(), self.endpoint.timeout_s)
                completion = _Completion.model_validate_json(data)
                if completion.choices:
                    return completion
                message = f"answers with an error ({self._shown(str(completion.error))})"
                kind = TeacherError
            except openai.APIStatusError as error:
                if self._adapted(error):
                    continue
                said, status = error.message, error.status_code
                message = f"answers {status} ({self._shown(said)}); {_way_out(status)}"
                kind = TeacherError if status in _ABOUT_THE_REQUEST else TeacherUnavailableError
            except openai.APITimeoutError:
                message = (
                    f"did not answer in {self.endpoint.timeout_s:g} s, after {self.endpoint.retries} retries; {_LATER}"
                )
            except openai.APIConnectionError as error:
                message = (
                    f"cannot be reached ({self._shown(str(error.__cause__ or error))}); check OPENAI_BASE_URL; {_LATER}"
                )
            except httpx2.HTTPError as error:  # while the body came
                broken += 1
                if broken <= self.endpoint.retries:
                    time.sleep(min(0.5 * 2 ** (broken - 1), 8))
                    continue
                message = f"breaks off ({self._shown(str(error) or type(error).__name__)}); {_LATER}"
            except _BodyError as error:
                message = f"{error}; check OPENAI_BASE_URL; {_LATER}"
            except ValidationError:
                kind = TeacherError if b'"choices"' in data else TeacherUnavailableError
                message = "answers, but not as OpenAI-compatible endpoints do; check OPENAI_BASE_URL (most end in /v1)"
            except openai.OpenAIError as error:
                message = f"cannot be asked ({self._shown(str(error))}); check OPENAI_BASE_URL and OPENAI_API_KEY"
            break
        # raised out here, so that no traceback leads to the client's errors, which hold the request and its key
        raise kind(f"the teacher at {self.endpoint.host} {message}")

    def _adapted(self, error: openai.APIStatusError) -> bool:
        """Whether the model refused an option that can be spelt otherwise or left out: some take no temperature or seed."""
        name = next((name for name, spelt in self._options.items() if spelt == error.param), None)
        if error.status_code != 400 or name is None or not str(error.code).startswith("unsupported"):
            return False
        options = {key: spelt for key, spelt in self._options.items() if key != name}
        if error.param == "max_tokens":
            options["max_tokens"] = "max_completion_tokens"
        elif name == "max_tokens":
            return False
        self._options = options
        return True

    def _shown(self, said: str) -> str:
        assert self.endpoint
        return " ".join(self.endpoint.without_key(said).split())[:_SAID]


class _BodyError(Exception):
    """An answer that does not end."""


def _body(chunks: Iterable[bytes], seconds: float) -> bytes:
    """All of an answer, if it is no longer than `_LONGEST_BODY` and comes within `seconds`."""
    until = time.monotonic() + seconds
    found = bytearray()
    for chunk in chunks:
        found += chunk
        if len(found) > _LONGEST_BODY:
            raise _BodyError(f"answers with more than {_LONGEST_BODY >> 20} MiB")
        if time.monotonic() > until:
            raise _BodyError(f"did not end its answer in {seconds:g} s")
    return bytes(found)


_ABOUT_THE_REQUEST = (400, 413, 422)
_LATER = "run the same command again later: what is answered is kept"


def _way_out(status: int) -> str:
    if status in (401, 403):
        return "check OPENAI_API_KEY, and that it may use teacher.model"
    if status == 404:
        return "check OPENAI_BASE_URL (most end in /v1) and the name in teacher.model"
    if status in _ABOUT_THE_REQUEST:
        return "check that the endpoint serves teacher.model, and that teacher.context is no more than it can read"
    return _LATER


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int = Field(ge=0, le=_MOST_TOKENS)
    completion_tokens: int = Field(ge=0, le=_MOST_TOKENS)


class _Completion(BaseModel):
    """What is read of a server's answer."""

    choices: list[_Choice] = Field(default_factory=list)
    model: str | None = None
    usage: Any = None
    error: Any = None

    @model_validator(mode="after")
    def _says_something(self) -> _Completion:
        if not self.choices and self.error is None:
            raise ValueError("neither choices nor an error")
        return self


class _Kept(BaseModel):
    """An answer on disk."""

    request: str
    model: str
    usage: _Usage
    finish_reason: str
    text: str
