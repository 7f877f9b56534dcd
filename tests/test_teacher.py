"""The teacher: a made-up endpoint on loopback that misbehaves as told, and `transformers serve` with a tiny model."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
import urllib.request
from pathlib import Path

import pytest
from endpoint import KEY, count, file

from repo2ctx.config import BuildConfig, TeacherConfig, load_config
from repo2ctx.errors import ConfigError, TeacherError
from repo2ctx.teacher import Teacher
from repo2ctx.teacher_client import Endpoint, endpoint_from_environment, identity
from repo2ctx.teacher_ledger import Ledger
from repo2ctx.teaching import TeacherOptions, check_teacher

pytestmark = pytest.mark.usefixtures("alone")
ROOT = Path(__file__).parents[1]


def ask(teacher, text="What is it?", most=64):
    return teacher.ask([{"role": "user", "content": text}], most)


# Asking ----------------------------------------------------------------------------------------------------


def test_what_is_answered_is_kept_and_not_asked_again(fake, teacher, tmp_path):
    first = ask(teacher())
    again = ask(teacher())
    assert (first.text, first.cached, again.cached, len(fake.requests)) == (again.text, False, True, 1)
    assert first.model == "big-2024"
    assert fake.keys == [f"Bearer {KEY}"]
    assert {k: v for k, v in fake.requests[0].items() if k != "messages"} == {
        "model": "big", "max_tokens": 64, "temperature": 0.0, "seed": 0,
    }  # fmt: skip
    assert teacher().ledger.spent == first.prompt_tokens + first.completion_tokens
    (kept,) = (tmp_path / "cache").rglob("*.json")
    assert kept.parent.name == kept.stem[:2]
    assert sorted(json.loads(kept.read_text())) == ["finish_reason", "model", "request", "text", "usage"]
    assert [p for p in (tmp_path / "cache").rglob("*") if p.is_file()] == [kept]


@pytest.mark.parametrize("change", [{"model": "other"}, {"temperature": 0.5}, {"seed": 1}])
def test_whatever_decides_an_answer_decides_its_place(fake, teacher, change):
    ask(teacher())
    assert not ask(teacher(**change)).cached
    assert not ask(teacher(), most=65).cached
    assert not ask(teacher(), "And now?").cached
    assert ask(teacher(context="64k")).cached


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"text": "x"}', "other"])
def test_a_damaged_answer_is_asked_for_again(fake, teacher, tmp_path, damage):
    good = ask(teacher())
    (kept,) = (tmp_path / "cache").rglob("*.json")
    text = json.dumps({**json.loads(kept.read_text()), "request": "0" * 64}) if damage == "other" else damage
    kept.write_text(text)
    assert not ask(teacher()).cached
    assert ask(teacher()).text == good.text
    assert len(fake.requests) == 2


def test_offline_gives_only_what_is_kept(fake, teacher):
    ask(teacher())
    assert ask(teacher(offline=True)).cached
    with pytest.raises(TeacherError, match="--offline"):
        ask(teacher(offline=True), "Something new?")
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    "trouble",
    [
        {"status": 429, "headers": {"retry-after": "0.01"}},
        {"status": 429, "headers": {"retry-after": "0"}},
        {"status": 408},
        {"status": 409},
        {"status": 500},
        {"status": 503},
        {"drop": True},
    ],
)
def test_what_may_pass_is_tried_again(fake, teacher, trouble):
    fake.replies += [trouble]
    start = time.monotonic()
    assert ask(teacher()).text
    assert len(fake.requests) == 2
    assert time.monotonic() - start < 5
    assert fake.requests[0] == fake.requests[1]


def test_a_server_that_stays_down_is_an_error_and_costs_nothing(fake, teacher):
    fake.replies += [{"status": 503, "headers": {"retry-after-ms": "1"}}] * 3
    with pytest.raises(TeacherError, match=r"127\.0\.0\.1:\d+ answers 503 .*again later"):
        ask(teacher())
    assert (len(fake.requests), teacher().ledger.spent) == (3, 0)
    fake.close()
    with pytest.raises(TeacherError, match="cannot be reached"):
        ask(teacher(retries=0), "Are you there?")


def test_a_slow_server_is_an_error(fake, tmp_path):
    fake.answer = lambda body: time.sleep(1) or "late"
    endpoint = Endpoint(fake.url, KEY, timeout_s=0.2, retries=0)
    slow = Teacher(TeacherConfig(model="big"), endpoint, tmp_path, Ledger(tmp_path / "spent", None))
    with pytest.raises(TeacherError, match=r"did not answer in 0\.2 s"):
        ask(slow)
    slow.close()


@pytest.mark.parametrize(
    ("status", "way"), [(400, "teacher.context"), (401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "/v1"), (422, "teacher.model")]
)  # fmt: skip
def test_what_will_not_pass_is_not_tried_again_and_the_key_is_told_to_nobody(
    fake, teacher, tmp_path, caplog, status, way
):
    fake.replies += [{"status": status, "body": {"error": {"message": f"bad key {KEY}, " + "x" * 900}}}]
    with caplog.at_level(0), pytest.raises(TeacherError) as caught:
        ask(teacher())
    error = caught.value
    assert error.ends_build == (status not in (400, 422))
    assert f"{fake.url.split('/')[2]} answers {status}" in str(error)
    assert way in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 500
    assert len(fake.requests) == 1
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = repr(teacher().endpoint) + str(vars(teacher())) + caplog.text + "".join(traceback.format_exception(error))
    assert KEY not in shown
    ask(teacher())
    assert not any(KEY.encode() in p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())


@pytest.mark.parametrize(
    "reply",
    [
        {"raw": b"<html>hello</html>", "headers": {"content-type": "text/html"}},
        {"body": {"choices": []}},
        {"body": []},
        {"raw": b"\xff\xfe"},
        {"raw": b""},
    ],
)
def test_an_answer_of_another_kind_is_an_error(fake, teacher, reply):
    fake.replies += [reply]
    with pytest.raises(TeacherError, match="not as OpenAI-compatible"):
        ask(teacher())
    assert teacher().ledger.spent == 0


def test_options_that_a_model_refuses_are_spelt_otherwise_or_left_out(fake, teacher):
    for param, code in (("max_tokens", "unsupported_parameter"), ("temperature", "unsupported_value")):
        fake.replies += [{"status": 400, "body": {"error": {"message": "no", "param": param, "code": code}}}]
    one = teacher()
    ask(one)
    ask(one, "And now?")
    assert [sorted(set(r) - {"model", "messages", "seed"}) for r in fake.requests[1:]] == [
        ["max_completion_tokens", "temperature"], ["max_completion_tokens"], ["max_completion_tokens"],
    ]  # fmt: skip
    fake.replies += [
        {"status": 400, "body": {"error": {"param": "max_completion_tokens", "code": "unsupported_parameter"}}}
    ]
    with pytest.raises(TeacherError, match="400"):
        ask(one, "And then?")


def test_tokens_are_guessed_where_the_server_does_not_count_them(fake, teacher):
    fake.replies += [{"usage": None}]
    answer = ask(teacher(), "x" * 300)
    assert (answer.prompt_tokens, answer.completion_tokens) == (101, len(answer.text) // 3 + 1)
    assert teacher().ledger.spent == answer.prompt_tokens + answer.completion_tokens


# The budget ------------------------------------------------------------------------------------------------


def test_a_request_over_the_budget_is_not_sent_and_a_larger_budget_goes_on(fake, teacher):
    ask(teacher(budget=200), "x" * 90, 64)
    spent = teacher().ledger.spent
    with pytest.raises(
        TeacherError,
        match=rf"budget of 200 tokens does not reach \({spent} used.*--teacher-budget.*what is answered is kept",
    ):
        ask(teacher(budget=200), "y" * 900, 64)
    assert len(fake.requests) == 1
    assert teacher().ledger.spent == spent
    assert ask(teacher(budget=200), "x" * 90, 64).cached
    assert ask(teacher(budget=1000), "y" * 900, 64)


def test_two_processes_share_a_budget(fake, tmp_path):
    """Each would ask 20 times at 100 tokens; 13 fit into the budget, whoever asks."""
    program = """
import sys
from pathlib import Path
from repo2ctx.config import BuildConfig, TeacherConfig, load_config
from repo2ctx.errors import TeacherError
from repo2ctx.teacher import Teacher
from repo2ctx.teacher_client import Endpoint
from repo2ctx.teacher_ledger import Ledger
out, url, who = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
teacher = Teacher(TeacherConfig(model="big"), Endpoint(url, "k"), out / "cache", Ledger(out / "spent.sqlite", 1350))
for i in range(20):
    try:
        teacher.ask([{"role": "user", "content": f"{who} {i}"}], 60, 40)
    except TeacherError as error:
        print("over" if "budget" in str(error) else error)
"""
    fake.replies += [{"usage": {"prompt_tokens": 40, "completion_tokens": 60}}] * 40
    command = [sys.executable, "-c", program, str(tmp_path), fake.url]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    both = [subprocess.Popen([*command, who], env=environ, stdout=subprocess.PIPE, text=True) for who in "ab"]
    said = "".join(process.communicate(timeout=60)[0] for process in both)
    assert (len(fake.requests), said.split()) == (13, ["over"] * 27)
    assert Ledger(tmp_path / "spent.sqlite", None).spent == 1300
    assert len(list((tmp_path / "cache").rglob("*.json"))) == 13


def test_a_damaged_ledger_is_named(teacher, tmp_path):
    (tmp_path / "spent.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(TeacherError, match=r"spent\.sqlite"):
        ask(teacher())


# Settings --------------------------------------------------------------------------------------------------


def test_the_endpoint_comes_from_the_environment():
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL"):
        endpoint_from_environment({"OPENAI_API_KEY": KEY})
    local = endpoint_from_environment({"OPENAI_BASE_URL": "http://localhost:8000/v1 "})
    assert (local.base_url, local.key, repr(local)) == ("http://localhost:8000/v1", "none", "Endpoint(localhost:8000)")
    assert endpoint_from_environment({"OPENAI_BASE_URL": local.base_url, "OPENAI_API_KEY": KEY}).key == KEY
    for bad in ("localhost:8000", "ftp://x/v1", f"https://me:{KEY}@host/v1", f"https://host/v1?key={KEY}", "http://[x"):
        with pytest.raises(ConfigError, match="OPENAI_BASE_URL") as caught:
            Endpoint(bad, "k")
        assert KEY not in str(caught.value)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        Endpoint(local.base_url, KEY + "\nX: y")


def test_the_model_comes_from_the_configuration_or_else_the_environment():
    wanted = {"targets": {"sources": ["list", "teacher"]}}
    with pytest.raises(ConfigError, match="OPENAI_MODEL"):
        load_config(None, wanted, {})
    assert load_config(None, wanted, {"OPENAI_MODEL": "big"}).teacher.model == "big"
    assert load_config(None, {**wanted, "teacher": {"model": "own"}}, {"OPENAI_MODEL": "big"}).teacher.model == "own"
    assert load_config(None, {}, {"OPENAI_MODEL": "big"}) == load_config(
        None, {}, {}
    )  # what is not used changes nothing
    card = identity(TeacherConfig(model="own"), Endpoint("https://api.example.org:444/v1", KEY))
    assert card == {"model": "own", "host": "api.example.org", "prompt_version": 1}
    assert identity(TeacherConfig(model="own"), None)["host"] is None


def test_settings_are_checked():
    assert TeacherConfig.model_validate({"context": "128k"}).context == 131072
    for bad in ({"context": "much"}, {"context": True}, {"context": "2k", "max_answer_tokens": 512}, {"modle": "x"}):
        with pytest.raises(ValueError, match=r"teacher\.context|length|modle"):
            TeacherConfig.model_validate(bad)


def test_the_package_is_asked_for_only_when_it_is_needed(monkeypatch):
    code = "import repo2ctx.teaching, sys; print([m for m in ('openai', 'torch', 'transformers') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT).strip() == "[]"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    config = BuildConfig.model_validate({"targets": {"sources": ["teacher"]}, "teacher": {"model": "m"}})
    with pytest.raises(ConfigError, match=r"repo2ctx\[teacher\]"):
        check_teacher(config, TeacherOptions(Endpoint("http://x/v1", "k")), len)
    check_teacher(config, TeacherOptions(None), lambda text: len(text.split()))
    with pytest.raises(ConfigError, match="TeacherOptions"):
        check_teacher(config, None, len)
    check_teacher(BuildConfig(), None, len)


@pytest.mark.parametrize(
    "usage",
    [{"prompt_tokens": 10**30, "completion_tokens": 9}, {"prompt_tokens": -5, "completion_tokens": 9}, {"total_tokens": 5}, 7],
)  # fmt: skip
def test_a_wrong_count_is_replaced_by_a_guess(fake, teacher, usage):
    fake.replies += [{"usage": usage}]
    answer = ask(teacher())
    assert 0 < answer.prompt_tokens < 100
    assert teacher().ledger.spent == answer.prompt_tokens + answer.completion_tokens


def test_a_key_in_an_answer_is_not_kept(fake, teacher, tmp_path):
    fake.replies += [{"text": f"It greets with {KEY}."}]
    assert ask(teacher()).text == "It greets with ***."
    assert not any(KEY.encode() in p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())


def test_an_error_in_an_answer_is_about_its_request(fake, teacher):
    fake.replies += [{"body": {"error": {"message": "no such thing"}}}, {"body": {"choices": [{"message": 5}]}}]
    for said in ("no such thing", "not as OpenAI-compatible"):
        with pytest.raises(TeacherError, match=said) as caught:
            ask(teacher())
        assert not caught.value.ends_build


def test_a_cache_that_cannot_be_written_is_refused_before_anything_is_asked(tmp_path):
    (tmp_path / "file").write_text("mine")
    options = TeacherOptions(Endpoint("http://x/v1", KEY), cache=tmp_path / "file")
    with pytest.raises(ConfigError, match="--cache"):
        options.prepare()


# A real server ---------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def served(tmp_path):
    """The address and model of `transformers serve` on loopback, with a tiny random Llama under SmolLM2's tokenizer."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    torch = pytest.importorskip("torch")
    from tiny import tiny_shape
    from transformers import LlamaForCausalLM

    from repo2ctx.models import tokenizer_files

    torch.manual_seed(0)
    folder = tmp_path / "model"
    LlamaForCausalLM(tiny_shape(vocab_size=49152, max_position_embeddings=8192, bos_token_id=1)).save_pretrained(folder)
    for path in tokenizer_files("smollm2"):
        shutil.copy(path, folder)
    port = free_port()
    command = [
        str(Path(sys.executable).with_name("transformers")), "serve", str(folder), "--host", "127.0.0.1",
        "--port", str(port), "--device", "cpu", "--dtype", "float32",
    ]  # fmt: skip
    environ = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with (tmp_path / "serve.log").open("wb") as log:
        server = subprocess.Popen(command, env=environ, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                said = (tmp_path / "serve.log").read_text(errors="replace")[-2000:]
                assert server.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1", str(folder)
    finally:
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(server.pid, how)
                server.wait(15)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        server.wait()


def test_a_real_server_answers_and_is_not_asked_twice(served, tmp_path):
    url, model = served
    settings = TeacherConfig(model=model, context=2048, max_answer_tokens=16)
    ledger = Ledger(tmp_path / "spent.sqlite", 100_000)
    files = [file(f"m{i}.py", f"def f{i}(x):\n    return x + {i}\n" * 12, i) for i in range(8)]
    asked = Teacher(settings, Endpoint(url, "none", retries=0), tmp_path / "cache", ledger)
    written = asked.summarize("h/o/n", files, "paragraph", count)
    assert written.requests >= 2  # random weights never end by themselves: each is asked with twice the room
    assert written.completion_tokens == sum(16 * (1 + i % 2) for i in range(written.requests))
    assert written.prompt_tokens > count(files[0].text)
    assert ledger.spent == written.prompt_tokens + written.completion_tokens
    again = Teacher(settings, None, tmp_path / "cache", ledger).summarize("h/o/n", files, "paragraph", count)
    assert (again.cached, again.requests, again.text) == (written.requests, written.requests, written.text)
    other = Teacher(TeacherConfig(model="another"), Endpoint(url, "none"), tmp_path / "cache", ledger)
    with pytest.raises(TeacherError, match="answers 400"):  # the server serves one model
        other.summarize("h/o/n", files, "line", count)
    other.close()
    assert ledger.spent == written.prompt_tokens + written.completion_tokens
    asked.close()
