"""What a build may be told: one section per stage, each owned by the stage that reads it.

Everything here changes the bytes that a build writes, and so is part of the configuration's hash; what does not
(workers, cache, offline) is an argument of `pipeline.build`.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from repo2ctx._license_names import canonical
from repo2ctx.errors import ConfigError
from repo2ctx.records import OrderMethod, Style
from repo2ctx.strict_yaml import read_yaml

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20}
MIN_LENGTH, MAX_LENGTH = 256, 1 << 24
_FEWEST_ANSWERS = 8  # answers that a teacher's context must have room for: fewer leave too little for the files


def parse_length(text: str | int) -> int:
    """Tokens of a length: "32k" is 32,768, "1m" is 1,048,576, a plain number is itself. Raises ConfigError."""
    match = re.fullmatch(r"([0-9]{1,12})([km]?)", str(text).strip(), re.IGNORECASE | re.ASCII)
    value = int(match[1]) * _UNITS[match[2].lower()] if match else 0
    if not MIN_LENGTH <= value <= MAX_LENGTH:
        raise ConfigError(
            f"length {str(text)[:40]!r}: expected a number such as 8k, 32k or 1m, from {MIN_LENGTH} to 16m"
        )
    return value


def parse_lengths(text: str) -> tuple[int, ...]:
    """The lengths of a list such as "32k,1m", each once, shortest first. Raises ConfigError."""
    return tuple(sorted({parse_length(part) for part in text.split(",")}))


def length_name(tokens: int) -> str:
    """The short name of a length: 32768 is "32k"."""
    for unit, size in (("m", 1 << 20), ("k", 1 << 10)):
        if tokens % size == 0:
            return f"{tokens // size}{unit}"
    return str(tokens)


def checked_length(value: object) -> int:
    """`parse_length` for a field of a configuration, whose error pydantic gives the field's name."""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ValueError("expected a length such as 8k, 32k or 1m")
    try:
        return parse_length(value)
    except ConfigError as error:
        raise ValueError(str(error)) from error


def _licenses(value: object) -> object:
    if value is None:
        return None
    names = value if isinstance(value, list | tuple) else [value]
    for name in names:
        if name not in ("permissive", "NOASSERTION") and not (isinstance(name, str) and canonical(name)):
            raise ValueError(f"{str(name)[:100]!r} is no SPDX identifier, such as MIT or GPL-3.0-only, nor permissive")
    return tuple(names)


def _lengths(value: object) -> object:
    parts: list[Any] = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    return tuple(sorted({checked_length(part) for part in parts}))


class Section(BaseModel):
    """A part of a configuration: unknown keys are refused, and nothing changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SelectionConfig(Section):
    """Which files are kept (`selection.py`)."""

    max_file_bytes: int = Field(1 << 20, gt=0, description="files larger than this are not read")
    max_data_bytes: int = Field(
        64 << 10, gt=0, description="data files (JSON, CSV, SVG …) larger than this are not kept"
    )


class ParseConfig(Section):
    """How much parsing may use (`sandbox.py`)."""

    timeout_s: float = Field(20.0, gt=0, le=86_400, description="wall seconds that parsing one file may take")
    resolve_timeout_s: float = Field(600.0, gt=0, le=86_400, description="the same for one language's import rules")
    memory_bytes: int = Field(3 << 30, ge=1 << 29, le=1 << 40, description="address space of the process that parses")


class OrderConfig(Section):
    """In which order files are read (`order.py`); every other than dependency is there to be compared with (`baselines.py`)."""

    method: OrderMethod = "dependency"
    seed: str = Field("", description="of the random order")


TargetSource = Literal["list", "metadata", "readme", "docstring", "teacher"]


class TargetsConfig(Section):
    """Where summaries come from, and which are good enough (`targets.py`, `filters.py`)."""

    sources: tuple[TargetSource, ...] = Field(
        ("list", "metadata", "readme", "docstring"), min_length=1, description="tried in this order, for each style"
    )
    styles: tuple[Style, ...] = Field(get_args(Style), min_length=1, description="line, paragraph or both")
    line_words: tuple[int, int] = Field((4, 40), description="fewest and most words of a line")
    paragraph_words: tuple[int, int] = Field((40, 400), description="fewest and most words of a paragraph")
    languages: tuple[str, ...] = Field(("en",), description="ISO 639-1 codes; none: any language")
    min_names_found: float = Field(0.5, ge=0, le=1, description="share of its code-like names that the code must have")
    max_name_share: float = Field(0.6, ge=0, le=1, description="share of its words that may be the project's name")
    min_distinct: float = Field(0.3, ge=0, le=1, description="share of its words that must differ from each other")
    max_similarity: float | None = Field(
        0.7, gt=0, le=1, description="to another repository's target, or it is a duplicate; none: repeat as you like"
    )

    @model_validator(mode="after")
    def _ranges(self) -> TargetsConfig:
        for name in ("line_words", "paragraph_words"):
            fewest, most = getattr(self, name)
            if not 1 <= fewest <= most:
                raise ValueError(f"targets.{name} is {fewest}, {most}; give the fewest words, then the most")
        return self


class TeacherConfig(Section):
    """The model that writes summaries, where targets.sources names teacher (`teacher.py`); its endpoint is $OPENAI_BASE_URL."""

    model: str = Field("", description="as the endpoint names it; empty: $OPENAI_MODEL")
    context: Annotated[int, BeforeValidator(checked_length)] = Field(
        32 << 10, description="tokens that the model can read"
    )
    max_answer_tokens: int = Field(512, ge=16, le=1 << 16, description="raise it for models that think aloud")
    temperature: float = Field(0.0, ge=0, le=2)
    seed: int = Field(0, ge=0, lt=1 << 31)

    @model_validator(mode="after")
    def _has_room(self) -> TeacherConfig:
        if self.context < (least := _FEWEST_ANSWERS * self.max_answer_tokens):
            raise ValueError(f"teacher.context is {self.context}; give {least} or more, or lower max_answer_tokens")
        return self


class LeakageConfig(Section):
    """How much of a target its context may hold (`leakage.py`)."""

    action: Literal["mask", "drop"] = Field("mask", description="over the limit: blank the quotes, or make no row")
    max_share: float = Field(0.05, ge=0, le=1, description="share of the target's 8-grams that the context may hold")
    max_run: int = Field(20, ge=1, description="longest common run, in words")
    max_run_share: float = Field(0.5, gt=0, le=1, description="the same relative to the target's words, for short ones")


class LimitsConfig(Section):
    """Which repositories are taken at all (`admission.py`)."""

    licenses: Annotated[tuple[str, ...] | None, BeforeValidator(_licenses)] = Field(
        None,
        description="SPDX ids, of which a licence must be satisfiable; permissive: a list of ours; none: any licence",
    )
    max_files: int | None = Field(None, gt=0, description="files in the commit")
    max_bytes: int | None = Field(None, gt=0, description="bytes of the files that would be read")
    min_files: int | None = Field(None, gt=0, description="files that would be read")


class SplitConfig(Section):
    """Shares of families, by hash, where the list does not say (`splitting.py`)."""

    validation: float = Field(0.05, ge=0, lt=1)
    test: float = Field(0.05, ge=0, lt=1)
    seed: str = ""
    by_root: bool = Field(
        True, description="a common root commit makes a family; costs the fetch of each remote history's commits"
    )

    @model_validator(mode="after")
    def _leaves_training(self) -> SplitConfig:
        if self.validation + self.test >= 1:
            raise ValueError("split.validation and split.test leave nothing to train on; lower them")
        return self


class TokensConfig(Section):
    """The tokenizer (`tokens.py`)."""

    tokenizer: str = Field(
        "tiktoken:o200k_base", description="tiktoken:NAME, a vocabulary file, or a Hugging Face name"
    )
    pattern: str = Field("", description="for a vocabulary file: cl100k_base, o200k_base, or a regular expression")
    eos: str = Field("", description="the token that ends a document, where the tokenizer does not say")
    chat: Literal["auto", "never"] = Field(
        "auto",
        description="with a chat template the repository is the user's turn and the target the answer; never: plain",
    )
    special_tokens: dict[str, int] = Field(default_factory=dict, description="for a vocabulary file: text -> id")


class PackConfig(Section):
    """The lengths of rows, and what goes into them (`packing.py`)."""

    lengths: Annotated[tuple[int, ...], BeforeValidator(_lengths)] = Field((32 << 10,), min_length=1)
    documents: Literal["each-style", "first-style"] = Field(
        "each-style", description="a document for each target of a repository, or for the first in targets.styles"
    )
    outline_share: float = Field(
        0.25, ge=0, lt=1, description="of the room for files, what outlines may have where not all files fit in full"
    )
    long_share: float = Field(
        0.6, ge=0, lt=1, description="of a training length's tokens, in documents over half of it; 0: whatever comes"
    )


class ShardsConfig(Section):
    """Sizes of shards and record batches (`shards.py`)."""

    max_bytes: int = Field(512 << 20, gt=1 << 16, description="a shard is closed when it is larger than this")
    batch_bytes: int = Field(4 << 20, gt=1 << 10, description="about how large a record batch is")


class BuildConfig(Section):
    """The whole configuration of a build."""

    selection: SelectionConfig = SelectionConfig()
    parse: ParseConfig = ParseConfig()
    order: OrderConfig = OrderConfig()
    limits: LimitsConfig = LimitsConfig()
    targets: TargetsConfig = TargetsConfig()
    teacher: TeacherConfig = TeacherConfig()
    leakage: LeakageConfig = LeakageConfig()
    split: SplitConfig = SplitConfig()
    tokens: TokensConfig = TokensConfig()
    pack: PackConfig = PackConfig()
    shards: ShardsConfig = ShardsConfig()

    def digest(self) -> str:
        """SHA-256 of the resolved configuration."""
        return hashlib.sha256(json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


def load_config(
    path: Path | None, overrides: dict[str, dict[str, Any]], environ: Mapping[str, str] = os.environ
) -> BuildConfig:
    """The build's configuration: a YAML file (or the defaults) with a command line's overrides, section by section.

    Where a teacher is wanted and not named, it is $OPENAI_MODEL.
    """
    config = read_config(BuildConfig, path, overrides)
    if "teacher" not in config.targets.sources or config.teacher.model:
        return config
    if model := environ.get("OPENAI_MODEL", "").strip():
        return config.model_copy(update={"teacher": config.teacher.model_copy(update={"model": model})})
    raise ConfigError("no teacher: set teacher.model, or OPENAI_MODEL, to the name of a model that the endpoint serves")


M = TypeVar("M", bound=BaseModel)


def read_config(model: type[M], path: Path | None, overrides: Mapping[str, Any]) -> M:
    """A configuration of sections, from a YAML file and overrides: section -> {key: value}, or a top-level key -> its value.

    Of a section that is a list, keys are places in it, each with {key: value} or a new value; None takes that item out.

    Raises ConfigError for a file that cannot be read, an unknown key (naming the nearest), or a bad value.
    """
    where = str(path) if path else "options"
    values: Any = {}
    if path:
        try:
            values = read_yaml(path.read_text("utf-8")) or {}
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror}); check --config") from error
        except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date or number out of range
            raise ConfigError(f"{path}: not YAML ({' '.join(str(error).split())[:300]})") from error
    if not isinstance(values, dict):
        raise ConfigError(
            f"{path}: expected sections such as `pack:` with keys below them, not a {type(values).__name__}"
        )
    for section, options in overrides.items():
        field = model.model_fields.get(section)
        below = values.get(section) or ([] if field and get_origin(field.annotation) is tuple else {})
        if not isinstance(options, dict):
            values[section] = options
        elif isinstance(below, list):
            values[section] = _into_list(below, options, f"{where}: {section}")
        elif options and isinstance(below, dict):
            values[section] = {**below, **options}
        elif options and section in model.model_fields:
            raise ConfigError(f"{where}: {section} is {str(below)[:100]!r}, and has no {', '.join(options)}")
    try:
        config = model.model_validate(values)
        text = json.dumps(plain := config.model_dump(mode="json"), ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{where}: a value holds half of a surrogate pair; write the character whole") from error
    except ValidationError as error:
        raise ConfigError(*(f"{where}: {_explain(model, e)}" for e in error.errors())) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: a value holds itself ({error}); write it out without the anchor") from error
    if "\\u0000" in text and (place := _holding_nul(plain)):
        raise ConfigError(f"{where}: {place}: holds a NUL character, which no path or name can; leave it out")
    return config


def _into_list(items: list[Any], options: Mapping[str, Any], where: str) -> list[Any]:
    """A list with some of its items changed or left out."""
    found = dict(enumerate(items))
    for place, value in options.items():
        number = int(place) if place.isdecimal() and len(place) < 6 else -1
        if number not in found:
            have = f"it has {len(items)}, from 0 to {len(items) - 1}" if items else "there are none; give them whole"
            raise ConfigError(f"{where} has no {place}; {have}")
        item = found[number]
        if value is None:
            del found[number]
        else:
            found[number] = {**item, **value} if isinstance(item, dict) and isinstance(value, dict) else value
    return list(found.values())


def _holding_nul(value: Any) -> str | None:
    """Where a NUL character stands in nested values."""
    if isinstance(value, str):
        return "" if "\0" in value else None
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        if (found := _holding_nul(below)) is not None or (found := _holding_nul(key)) is not None:
            return f"{key}.{found}".rstrip(".")
    return None


def _explain(model: type[BaseModel], error: Any) -> str:
    location = [str(part) for part in error["loc"]]
    if error["type"] != "extra_forbidden":
        message, given = error["msg"].removeprefix("Value error, "), error["input"]
        # our own messages say what was given, and of a whole section it is too much
        said = "" if error["type"] == "value_error" or isinstance(given, dict | list) else f", not {str(given)[:100]!r}"
        return f"{'.'.join(location) or 'configuration'}: {message}{said}"
    for part in location[:-1]:
        if part in model.model_fields:  # others are places in a list
            model = _section_of(model.model_fields[part].annotation) or model
    near = difflib.get_close_matches(location[-1], model.model_fields, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(model.model_fields)}"
    return f"unknown key {'.'.join(location)!r}; {hint}"


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """The section that a field holds, by itself or several of it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _section_of(inner))), None)
