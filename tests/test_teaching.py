"""A teacher in a build: when it is asked, what it is shown, what becomes of its texts, and what happens when it fails."""

import json
import os
import re
from pathlib import Path

import pytest
from endpoint import KEY
from test_build import PYTHON, Silent, command, hashes

from repo2ctx.config import BuildConfig
from repo2ctx.crawl import CrawlOptions
from repo2ctx.dataset import Dataset
from repo2ctx.errors import ConfigError, TeacherUnavailableError
from repo2ctx.pipeline import build
from repo2ctx.repolist import read_list
from repo2ctx.teacher_client import Endpoint
from repo2ctx.teaching import TeacherOptions

PARAGRAPH = (
    "A small tool for people who write things down. It splits every note into words, remembers in which note each word stands, "
    "and gives back whatever matches a question. The splitting lives in one module and the index in another, so that either may "
    "be exchanged, and a package at the top offers both under one name."
)
ALL = ["list", "metadata", "readme", "docstring", "teacher"]


def a_summary(body):
    return PARAGRAPH if "60 to 200 words" in str(body["messages"]) else "Finds what was once written down by its words."


@pytest.fixture
def taught(tmp_path, fake):
    """`taught(repositories, out="out", budget=None, offline=False, **config)`: a build with the made-up teacher."""
    fake.answer = a_summary

    def run(repositories, out="out", budget=None, offline=False, url=None, cache="answers", **config):
        (tmp_path / "list.txt").write_text("".join(f"{r}\n" for r in repositories))
        specs, _ = read_list(tmp_path / "list.txt")
        settings = {"pack": {"lengths": "4k"}, "targets": {"sources": ALL}, "teacher": {"model": "big"}, **config}
        endpoint = None if offline else Endpoint(url or fake.url, KEY, timeout_s=10, retries=0)
        options = TeacherOptions(endpoint, budget, tmp_path / cache)
        crawl = CrawlOptions(None, offline)
        return build(
            specs, BuildConfig.model_validate(settings), tmp_path / out, crawl, 1, Silent(), teacher=options
        )  # fmt: skip

    return run


def targets(out: Path) -> dict[str, dict[str, dict]]:
    """name -> style -> target."""
    rows = Dataset(out).rows("repositories")
    return {row["name"].rpartition("/")[2]: {t["style"]: t for t in row["targets"]} for row in rows}


def test_a_teacher_is_asked_for_what_is_missing_alone_and_shown_what_the_student_sees(
    make_repo, tmp_path, fake, taught
):
    result = taught([make_repo(PYTHON, "notes")])
    assert not result.failures
    found = targets(tmp_path / "out")["notes"]
    assert found["line"]["source"] == "metadata:pyproject.toml"
    assert (found["paragraph"]["source"], found["paragraph"]["text"]) == ("teacher:big", PARAGRAPH)
    assert found["paragraph"]["license"] == "NOASSERTION"
    assert found["line"]["license"] == "MIT"
    (request,) = fake.requests
    shown = request["messages"][0]["content"]
    kept = [r for r in Dataset(tmp_path / "out").rows("files") if r["text"] is not None]
    assert re.findall(r'^== \w{6} "([^"]+)"', shown, re.MULTILINE) == [
        r["path"] for r in sorted(kept, key=lambda r: r["position"])
    ]
    for row in kept:
        assert f'"{row["path"]}"\n{row["text"]}\n' in shown
    assert "finds them" not in shown  # neither README nor description
    assert result.teacher_tokens > 100
    card = (tmp_path / "out" / "README.md").read_text()
    assert "written by the model `big` at 127.0.0.1 (prompt 1)" in card
    assert "| paragraph | teacher | 1 |" in card
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["teacher"]["model"] == "big"
    assert not any(KEY.encode() in p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())


def test_a_module_whose_documentation_is_the_target_is_shown_without_it(make_repo, tmp_path, fake, taught):
    files = {"notes/__init__.py": f'"""{PARAGRAPH}"""\nfrom notes.a import x\n', "notes/a.py": "x = 1\n"}
    taught([make_repo(files, "notes")], targets={"sources": ["docstring", "teacher"], "line_words": [4, 8]})
    assert targets(tmp_path / "out")["notes"]["paragraph"]["source"].startswith("docstring:")
    (request,) = fake.requests
    assert "remembers in which note" not in request["messages"][0]["content"]
    assert "from notes.a import x" in request["messages"][0]["content"]


def test_what_is_answered_is_not_asked_twice_and_gives_the_same_bytes(make_repo, tmp_path, fake, taught):
    repositories = [make_repo(PYTHON, "notes"), make_repo({"a.py": "x = 1\n"}, "bare")]
    taught(repositories)
    asked = len(fake.requests)
    again = taught(repositories, "again", offline=True)
    assert len(fake.requests) == asked == 3
    assert again.teacher_tokens == 0
    shards = {p: h for p, h in hashes(tmp_path / "out").items() if p.endswith(".arrow")}
    assert shards == {p: h for p, h in hashes(tmp_path / "again").items() if p.endswith(".arrow")}
    assert len(shards) > 3


def test_the_first_good_text_wins_wherever_the_teacher_stands(make_repo, tmp_path, fake, taught):
    readme = "# Notes\n\n" + PARAGRAPH.replace("small", "tiny") + "\n"
    repo = make_repo({**PYTHON, "README.md": readme}, "notes")
    taught([repo], targets={"sources": ["teacher", "readme"]})
    found = targets(tmp_path / "out")["notes"]
    assert {t["source"] for t in found.values()} == {"teacher:big"}
    fake.answer = lambda body: "I'm sorry, but I can't help with that."
    taught([repo], "refused", targets={"sources": ["teacher", "readme"]}, teacher={"model": "small"})
    found = targets(tmp_path / "refused")["notes"]
    assert {t["source"] for t in found.values()} == {"readme:README.md"}
    (row,) = Dataset(tmp_path / "refused").rows("repositories")
    fates = {(c["source"], c["style"]): c["fate"] for c in row["considered"]}
    assert fates["teacher:small", "line"] == fates["teacher:small", "paragraph"] == "refusal"
    taught([repo], "never", targets={"sources": ["readme", "teacher"]}, teacher={"model": "none"})
    assert not [r for r in fake.requests if r["model"] == "none"]


@pytest.mark.parametrize(
    ("answer", "fate"),
    [
        ("", "empty"),
        ("Notes.", "too-short"),
        ("Ein kleines Werkzeug für Menschen, die sich etwas notieren und es später wiederfinden möchten.", "language"),
        ("Calls `frobnicate_all()` and `quux_the_lot()` on every note that it finds.", "names-not-in-code"),
        ("word " * 3000, "too-long"),
    ],
)
def test_a_teachers_text_is_judged_like_any_other(make_repo, tmp_path, fake, taught, answer, fate):
    fake.answer = lambda body: answer
    taught([make_repo({"a.py": "x = 1\n"}, "bare")], targets={"sources": ["teacher"], "styles": ["line"]})
    (row,) = Dataset(tmp_path / "out").rows("repositories")
    assert row["targets"] == []
    assert [c["fate"].partition(":")[0] for c in row["considered"]] == [fate]


def test_what_a_teacher_copied_leaves_the_context(make_repo, tmp_path, fake, taught):
    wrapped = "".join(f"# {line}\n" for line in re.findall(r".{1,60}(?:\s|\Z)", PARAGRAPH))
    taught(
        [make_repo({"a.py": f"{wrapped}x = 1\n"}, "bare")], targets={"sources": ["teacher"], "styles": ["paragraph"]}
    )
    target = targets(tmp_path / "out")["bare"]["paragraph"]
    assert target["leak_share_before"] == 1
    assert target["leak_share"] == 0
    (text,) = (r["text"] for r in Dataset(tmp_path / "out").rows("files"))
    assert "remembers" not in text
    assert "x = 1" in text


def test_a_spent_budget_loses_nothing(make_repo, tmp_path, fake, taught):
    repositories = [make_repo({f"m{i}.py": f"value_{i} = {i}\n" * 50}, f"r{i}") for i in range(4)]
    repositories.append(make_repo({**PYTHON, "README.md": f"# Notes\n\n{PARAGRAPH}\n"}, "notes"))
    first = taught(repositories, budget=2500)
    assert 1 <= len(first.failures) < 4
    assert all("--teacher-budget" in f.reason for f in first.failures)
    assert "notes" in targets(tmp_path / "out")  # it needs no teacher
    assert len(targets(tmp_path / "out")) == 5 - len(first.failures)
    assert first.teacher_tokens <= 2500
    asked = len(fake.requests)
    second = taught(repositories, budget=100_000)
    assert not second.failures
    assert second.teacher_tokens > first.teacher_tokens
    sent = [json.dumps(r) for r in fake.requests]
    assert len(sent) > asked
    assert len(set(sent)) == len(sent)
    taught(repositories, "whole", offline=True)
    for out in ("out", "whole"):
        assert len(targets(tmp_path / out)) == 5
    shards = {p: h for p, h in hashes(tmp_path / "out").items() if p.endswith(".arrow")}
    assert shards == {p: h for p, h in hashes(tmp_path / "whole").items() if p.endswith(".arrow")}


def test_an_endpoint_that_refuses_ends_the_build_and_it_goes_on_later(make_repo, tmp_path, fake, taught):
    repositories = [make_repo({f"m{i}.py": f"value_{i} = {i}\n"}, f"r{i}") for i in range(3)]
    fake.replies += [{}, {}, {"status": 401, "body": {"error": {"message": f"bad key {KEY}"}}}]
    with pytest.raises(TeacherUnavailableError, match="OPENAI_API_KEY") as caught:
        taught(repositories)
    assert KEY not in str(caught.value)
    assert not (tmp_path / "out" / "manifest.json").exists()
    asked = len(fake.requests)
    result = taught(repositories)
    assert not result.failures
    assert len(targets(tmp_path / "out")) == 3
    assert len(fake.requests) == asked + 4


def test_offline_without_an_answer_fails_that_repository_alone(make_repo, tmp_path, fake, taught):
    bare = make_repo({"a.py": "x = 1\n"}, "bare")
    taught([bare])
    result = taught([bare, make_repo({"b.py": "y = 2\n"}, "other")], "again", offline=True)
    assert [Path(f.source).name for f in result.failures] == ["other"]
    assert "--offline" in result.failures[0].reason
    assert list(targets(tmp_path / "again")) == ["bare"]


def test_a_build_without_what_a_teacher_needs_starts_nothing(make_repo, tmp_path, fake, taught):
    bare = make_repo({"a.py": "x = 1\n"}, "bare")
    with pytest.raises(ConfigError, match=r"teacher\.model"):
        taught([bare], teacher={})
    with pytest.raises(ConfigError, match=r"teacher\.context"):
        taught([bare], teacher={"model": "big", "context": 512, "max_answer_tokens": 64})
    assert not (tmp_path / "out").exists()
    assert not fake.requests


def test_the_command_line_takes_the_teacher_from_the_environment(make_repo, tmp_path, fake):
    fake.answer = a_summary
    (tmp_path / "list.txt").write_text(f"{make_repo(PYTHON, 'notes')}\n")
    (tmp_path / "taught.yaml").write_text(f"targets: {{sources: {ALL}}}\npack: {{lengths: 4k}}\n")
    environ = {**os.environ, "REPO2CTX_CACHE": str(tmp_path / "cache")}
    arguments = ("build", "--repos", tmp_path / "list.txt", "--out", tmp_path / "out")
    with_config = (*arguments, "--config", tmp_path / "taught.yaml", "--workers", 1)
    endpoint = {"OPENAI_BASE_URL": fake.url, "OPENAI_API_KEY": KEY}
    for changes, extra, said in (
        ({}, (), "OPENAI_MODEL"),
        ({"OPENAI_MODEL": "big"}, (), "OPENAI_BASE_URL"),
        ({"OPENAI_MODEL": "big", "OPENAI_BASE_URL": f"http://{KEY}:x@h/v1"}, (), "without user"),
    ):
        done = command(*with_config, *extra, env={**environ, **changes})
        assert done.returncode == 2
        assert said in done.stderr
        assert KEY not in done.stderr
        assert not (tmp_path / "out").exists()
    done = command(*arguments, "--teacher-budget", 9, env=environ)
    assert done.returncode == 2
    assert "--teacher-budget" in done.stderr
    done = command(*with_config, "--teacher-budget", 5000, env={**environ, **endpoint, "OPENAI_MODEL": "big"})
    assert done.returncode == 0, done.stderr
    assert re.search(r"teacher +[\d,]+ tokens", done.stdout)
    assert "paragraph from teacher:big" in done.stderr
    assert KEY not in done.stdout + done.stderr
    assert list((tmp_path / "cache" / "teacher").rglob("*.json"))
    assert not any(KEY.encode() in p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    shown = command(*with_config, "--dry-run", env={**environ, "OPENAI_MODEL": "big"})
    assert "model: big" in shown.stdout
    again = command(
        *arguments[:-1],
        tmp_path / "two",
        *with_config[-4:],
        "--offline",
        "--json",
        env={**environ, "OPENAI_MODEL": "big"},
    )
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["targets"]["paragraph"] == {"teacher": 1}
    assert len(fake.requests) == 1
