"""Chat templates: the pieces are those of transformers."""

import pytest
import transformers
from conftest import small_tokenizer

from repo2ctx.chat import framing, render
from repo2ctx.errors import TokenizerError

TEMPLATES = {
    "chatml": "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}<|im_start|>system\nBe brief.<|im_end|>\n{% endif %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "headers": "{{- bos_token }}{% if not date_string is defined %}{% if strftime_now is defined %}{% set date_string = strftime_now('%d %b') %}{% else %}{% set date_string = '26 Jul 2024' %}{% endif %}{% endif %}{% for m in messages %}{{- '<|h|>' + m['role'] + '<|/h|>\n\n' + m['content'] | trim + '<|eot|>' }}{% endfor %}",
    "instruct": "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% elif m.role == 'assistant' %} {{ m.content }}{{ eos_token }}{% else %}{{ raise_exception('only user and assistant') }}{% endif %}{% endfor %}",
    "generation": "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}A: {{ m.content }}\n{% endgeneration %}{% else %}U: {{ m.content }}\n{% endif %}{% endfor %}",
    "thinking": "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and loop.last %}<think>\n\n</think>\n\n{% endif %}{{ m.content.strip() }}<|im_end|>\n{% endfor %}",
    "break": "{% for m in messages %}{{ m.content }}|{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}{{ messages[0] | tojson | length > 3 }}",
}


@pytest.fixture
def here(monkeypatch):
    """Templates are rendered in this process: a sandbox for each costs most of a second."""
    monkeypatch.setattr("repo2ctx.chat._rendered", lambda template, special: render(template, dict(special)))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", TEMPLATES)
def test_the_pieces_are_those_of_transformers(name, tmp_path):
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    file = small_tokenizer(tmp_path / "t") / "tokenizer.json"
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(file), **special)
    tokenizer.chat_template = TEMPLATES[name]
    question, answer = "What is\nthis?", "A tool — for «notes»."
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    found = framing(TEMPLATES[name], special, "t")
    assert found.before + question + found.between + answer + found.after == tokenizer.apply_chat_template(
        messages, tokenize=False
    )


def test_a_template_that_would_take_the_day_does_not(tmp_path):
    assert "26 Jul 2024" not in framing(TEMPLATES["headers"] + "{{ date_string }}", {}, "t").before
    assert framing(TEMPLATES["headers"] + "{{ date_string }}", {}, "t").after.endswith("26 Jul 2024")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{% for m in messages %}", "cannot be rendered"),
        ("{{ raise_exception('no assistant') }}", "no assistant)"),
        ("{{ messages[0].content }}", "once each"),
        ("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}", "once each"),
        ("{{ messages[1].content }}{{ messages[0].content }}", "before the question"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "cannot be rendered"),
        ("{{ messages.append(1) }}", "cannot be rendered"),
        ("{% for i in range(999999999) %}x{% endfor %}", "cannot be rendered"),
        ("{% for m in messages %}{{ m.content }}{{ 'x' * 2000000 }}{% endfor %}", "makes 4,"),
        ("{{ 1 // 0 }}", "ZeroDivisionError"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError"),
        ("{% for m in messages %}{{ m.content | e }}|{% endfor %}", "as they are"),
        ("{% for m in messages %}{{ m.content | tojson }}|{% endfor %}", "as they are"),
        ("{% for m in messages %}{{ m.content | replace('<', '') }}|{% endfor %}", "as they are"),
        ("{% for m in messages %}{{ m.content.split() | join(' ') }}|{% endfor %}", "as they are"),
        ("{% for m in messages %}{{ m.content | lower }}|{% endfor %}", "as they are"),
    ],
)
def test_a_template_that_cannot_be_used_says_so(template, says):
    with pytest.raises(TokenizerError) as error:
        framing(template, {}, "t")
    assert says in str(error.value)
    assert "tokens.chat" in str(error.value)


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{% for i in range(99999) %}" * 3 + "{% endfor %}" * 3, "timeout"),
        ("{{ 'a' * 100000000000 }}", "memory"),
    ],
)
def test_a_template_has_little_time_and_memory(template, says, monkeypatch):
    monkeypatch.setattr("repo2ctx.chat._TIMEOUT_S", 0.5)
    with pytest.raises(TokenizerError, match=rf"cannot be rendered \({says}\)"):
        framing(template, {}, "t")
