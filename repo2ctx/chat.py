"""A chat template -> what stands around a user's turn and the answer to it.

The template is rendered once with two stand-ins, so that a document is put together from its pieces' own tokens and no file
can write a control token. The pieces are those of `apply_chat_template` in transformers, but for a date, which stays the one
that the template itself names: rows do not depend on the day. A template is a program that came with a model, so it runs in
the sandbox, with limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from repo2ctx.errors import TokenizerError
from repo2ctx.sandbox import Sandbox, Stopped

# Of all that a template might change, but for blanks at the ends, which our texts have none of.
_CHANGEABLE = '  A\n\n\n&amp; <b>"it\'s"</b> \\n {{ x }} {% y %} \u00e9 e\u0301 [INST] \t*'
_USER, _ANSWER = f"user5a1f0c3e{_CHANGEABLE}9d", f"answer7d2b9e64{_CHANGEABLE}3c"
_TIMEOUT_S, _MEMORY_BYTES = 10.0, 3 << 30
_LONGEST = 1 << 20  # characters


@dataclass(frozen=True, slots=True)
class Framing:
    """Text before the user's turn, between it and the answer, and after the answer."""

    before: str
    between: str
    after: str


class _Generation(jinja2.ext.Extension):
    """`{% generation %}`, by which some templates mark the answer; what is in it stays as it is."""

    tags = {"generation"}  # noqa: RUF012 - jinja2's own way

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def framing(template: str, special_tokens: Mapping[str, str], where: str) -> Framing:
    """What a chat template puts around one question and its answer.

    special_tokens: what templates name, such as `bos_token`. Raises TokenizerError if it cannot be rendered, or does not hold
    each text once, as it is.
    """
    text, problem = _rendered(template, tuple(sorted(special_tokens.items())))
    if problem:
        raise _unusable(where, f"cannot be rendered ({problem})")
    if text.count(_USER) != 1 or text.count(_ANSWER) != 1:
        raise _unusable(where, "does not hold a question and its answer once each, as they are")
    before, _, rest = text.partition(_USER)
    between, _, after = rest.partition(_ANSWER)
    if not after and _ANSWER in before:
        raise _unusable(where, "puts the answer before the question")
    return Framing(before, between, after)


@lru_cache(maxsize=16)
def _rendered(template: str, special_tokens: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    try:
        with Sandbox(_TIMEOUT_S, _MEMORY_BYTES) as sandbox:
            return sandbox.call(render, template, dict(special_tokens))
    except Stopped as stopped:
        return "", stopped.problem


def render(template: str, special_tokens: Mapping[str, str]) -> tuple[str, str]:
    """(a question and its answer in a chat template, what is wrong with it or ""); takes what the template likes to take."""

    def refuse(message: str) -> NoReturn:
        raise jinja2.TemplateError(message)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )
    environment.globals["raise_exception"] = refuse
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "sort_keys": False}
    messages = [{"role": "user", "content": _USER}, {"role": "assistant", "content": _ANSWER}]
    variables: dict[str, Any] = {**special_tokens, "messages": messages, "add_generation_prompt": False, "tools": None}
    try:
        text = environment.from_string(template).render(variables)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a template raises is its own problem
        return "", f"{type(error).__name__}: {error}"[:200]
    return (text, "") if len(text) <= _LONGEST else ("", f"makes {len(text):,} characters")


def _unusable(where: str, what: str) -> TokenizerError:
    return TokenizerError(f"tokenizer {where!r}: its chat template {what}; set tokens.chat to never for plain rows")
