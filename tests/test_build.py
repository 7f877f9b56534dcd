"""The main job, end to end, on small repositories."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import datasets
import pytest
from conftest import git, write_files

from repo2ctx import pipeline
from repo2ctx.analysis import analyse
from repo2ctx.config import BuildConfig, TokensConfig
from repo2ctx.crawl import CrawlOptions, open_snapshot
from repo2ctx.dataset import Dataset
from repo2ctx.errors import OutputError
from repo2ctx.parsing import outline
from repo2ctx.pipeline import build
from repo2ctx.repolist import read_list
from repo2ctx.sandbox import Sandbox
from repo2ctx.schema import PACKED
from repo2ctx.tokens import load_tokenizer
from repo2ctx.verify import verify

ROOT = Path(__file__).parents[1]
README = "# Notes\n\nKeeps plain-text notes and finds them by the words in them.\n"
PYTHON = {
    "pyproject.toml": '[project]\nname = "notes"\ndescription = "Keeps notes and finds them again"\nlicense = "MIT"\n',
    "README.md": README,
    "notes/__init__.py": "from notes.index import Index\n",
    "notes/index.py": "from notes.words import split\n\n\nclass Index:\n    pass\n",
    "notes/words.py": "def split(text):\n    return text.split()\n",
    "tests/test_index.py": "from notes import Index\n",
    "logo.png": b"\x89PNG\r\n\x1a\n\0\0",
    "uv.lock": "version = 1\n",
    "vendor/x.py": "y = 1\n",
    "empty.py": "",
}


class Silent:
    """A reporter for tests."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def stage(self, name: str, total: int, done: int = 0) -> None:
        pass

    def advance(self, what: str) -> None:
        pass

    def notice(self, text: str) -> None:
        self.notices.append(text)


def run(tmp_path: Path, lines: list[str], out: str = "out", workers: int = 1, **config):
    (tmp_path / "list.txt").write_text("\n".join(lines) + "\n")
    specs, _ = read_list(tmp_path / "list.txt")
    settings = BuildConfig.model_validate({"pack": {"lengths": "2k,8k"}, **config})
    return build(specs, settings, tmp_path / out, CrawlOptions(tmp_path / "cache"), workers, Silent())


def command(*args: object, **kwargs) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "repo2ctx.cli", *map(str, args)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        **kwargs,
    )


def hashes(out: Path) -> dict[str, str]:
    return {
        str(p.relative_to(out)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(out.rglob("*"))
        if p.is_file()
    }


def test_every_file_has_a_row_with_its_fate(make_repo, tmp_path):
    repo = make_repo(PYTHON)
    (repo / "link.py").symlink_to("/etc/passwd")
    git(repo, "add", "link.py")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    git(repo, "commit", "-qm", "more")
    result = run(tmp_path, [str(repo)])
    rows = {r["path"]: r for r in Dataset(tmp_path / "out").rows("files")}
    assert {p: r["fate"] for p, r in rows.items() if r["fate"] != "kept"} == {
        "README.md": "target-source", "logo.png": "binary", "uv.lock": "lock-file", "vendor/x.py": "vendored",
        "link.py": "symlink", "sub": "submodule",
    }  # fmt: skip
    assert set(rows) == {*PYTHON, "link.py", "sub"}
    for row in rows.values():
        kept = row["fate"] == "kept"
        assert (row["text"] is not None) == (row["position"] is not None) == (row["rank"] is not None) == kept
        if kept:
            assert row["text_sha256"] == hashlib.sha256(row["text"].encode()).hexdigest()
    assert (
        rows["notes/words.py"]["position"] < rows["notes/index.py"]["position"] < rows["notes/__init__.py"]["position"]
    )
    assert rows["pyproject.toml"]["text"] == PYTHON["pyproject.toml"].replace("Keeps notes and finds them again", "")
    assert result.fates["kept"] == 6


def test_outlines_are_of_the_texts_as_they_are_written(make_repo, tmp_path):
    said = "Keeps plain-text notes in folders and finds them again by the words in them, quickly and without any index."
    body = "        self.count = self.count + 1\n" * 60
    quoting = f'class Notes:\n    """{said}"""\n\n    def find(self, word):\n        """Finds one note."""\n{body}'
    emptied = (
        f'"""{said}\n\nMore of it."""\n\nclass Index:\n    """An index of the notes."""\n\n    def add(self):\n{body}'
    )
    repo = make_repo(
        {
            "README.md": f"# Notes\n\n{said}\n",
            "pyproject.toml": f'[project]\nname = "notes"\ndescription = "{said}"\n',
            "notes/quoting.py": quoting,
            "notes/plain.py": quoting.replace(said, "A plain class."),
            "notes/__init__.py": emptied,
            "doc.txt": f"See also: {said}\n",
        }
    )
    run(tmp_path, [str(repo)], targets={"sources": ["docstring", "metadata"]})
    rows = {r["path"]: r for r in Dataset(tmp_path / "out").rows("files")}
    for path, row in rows.items():
        if row["fate"] != "kept":
            assert row["outline"] is None
        else:
            assert row["outline"] == outline(row["language"], row["text"].encode()), path
        assert "without any index" not in (row["outline"] or "")
    assert "finds them again" not in rows["notes/quoting.py"]["text"]
    assert "class Notes:" in rows["notes/quoting.py"]["outline"]
    assert "def find(self, word):" in rows["notes/quoting.py"]["outline"]
    assert '"""A plain class."""' in rows["notes/plain.py"]["outline"]
    assert "class Index:" in rows["notes/__init__.py"]["outline"]
    assert rows["doc.txt"]["outline"] is None
    with Sandbox(20, 4 << 30) as sandbox:
        config = BuildConfig()
        spec = read_list(tmp_path / "list.txt")[0][0]
        found = {}
        with open_snapshot(spec, CrawlOptions(tmp_path / "cache")) as snapshot:
            analyse(snapshot, config, sandbox, lambda file, text, made: found.update({file.path: made}), outlined=True)
            assert "without any index" in found["notes/quoting.py"]  # before the guard
            analyse(snapshot, config, sandbox, lambda file, text, made: found.update({file.path: made}))
            assert set(found.values()) == {None}  # not asked for, not made


def test_a_packed_row_is_what_it_says(make_repo, tmp_path):
    run(tmp_path, [str(make_repo(PYTHON))], split={"validation": 0, "test": 0})
    dataset = Dataset(tmp_path / "out")
    texts = {r["path"]: r for r in dataset.rows("files") if r["fate"] == "kept"}
    tokenizer = load_tokenizer(TokensConfig())
    row = dataset.packed_row("packed/8k/train", 0)
    (segment,) = row["segments"]
    assert segment["start"] == 0
    assert segment["target_end"] == len(row["input_ids"])
    assert tokenizer.decode(row["input_ids"][segment["target_start"] : -1]) == "Keeps notes and finds them again"
    assert row["input_ids"][-1] == tokenizer.eos
    context = tokenizer.decode(row["input_ids"][: segment["target_start"]])
    assert "finds them" not in context
    assert [s["path"] for s in row["spans"]] == sorted(texts, key=lambda p: texts[p]["position"])
    for span in row["spans"]:
        assert tokenizer.decode(row["input_ids"][span["start"] : span["end"]]) == texts[span["path"]]["text"]
        assert span["text_sha256"] == texts[span["path"]]["text_sha256"]
        assert f'"{span["path"]}"\n' in context


def test_a_long_repository_leaves_out_its_lowest_ranked_files(make_repo, tmp_path):
    files = {"core.py": "x = 1\n" * 20, "README.md": README}
    files |= {f"user_{i:02d}.py": f"import core\n\nvalue = {i}\n" * 30 for i in range(40)}
    files |= {f"tests/test_{i:02d}.py": f"import core\n\nvalue = {i}\n" * 30 for i in range(40)}
    run(tmp_path, [str(make_repo(files))], split={"validation": 0, "test": 0})
    dataset = Dataset(tmp_path / "out")
    rank = {r["path"]: r["rank"] for r in dataset.rows("files") if r["fate"] == "kept"}
    row = dataset.packed_row("packed/2k/train", 0)
    paths = [s["path"] for s in row["spans"] if s["fidelity"] == "full"]
    assert 0.97 * 2048 < len(row["input_ids"]) <= 2048
    assert paths[0] == "core.py"
    assert not any(p.startswith("tests/") for p in paths)
    assert min(rank[p] for p in paths) >= max(rank[p] for p in rank if p not in paths)
    target = row["input_ids"][row["segments"][0]["target_start"] :]
    assert load_tokenizer(TokensConfig()).decode(target[:-1]).startswith("Keeps plain-text notes")


def test_short_repositories_share_a_row(make_repo, tmp_path):
    names = [str(make_repo({**PYTHON, "n.py": f"n = {i}\n"}, f"repo{i}")) for i in range(5)]
    run(tmp_path, names, split={"validation": 0, "test": 0}, targets={"max_similarity": None})
    dataset = Dataset(tmp_path / "out")
    rows = [
        dataset.packed_row("packed/2k/train", i) for i in range(sum(s.rows for s in dataset.shards("packed/2k/train")))
    ]
    assert len(rows) < 5
    seen = []
    for row in rows:
        assert row["segments"][0]["start"] == 0
        for a, b in zip(row["segments"], row["segments"][1:], strict=False):
            assert a["target_end"] == b["start"]
        assert row["segments"][-1]["target_end"] == len(row["input_ids"]) <= 2048
        for span in row["spans"]:
            segment = row["segments"][span["segment"]]
            assert segment["start"] < span["start"] <= span["end"] < segment["target_start"]
        seen += [s["repository"] for s in row["segments"]]
    assert sorted(seen) == sorted(r["id"] for r in dataset.repositories())


def test_datasets_loads_every_config_with_no_code_of_ours(make_repo, tmp_path):
    repos = [str(make_repo({**PYTHON, "n.py": f"n = {i}\n"}, f"repo{i}")) for i in range(2)]
    lines = [json.dumps({"repo": repos[0], "split": "train"}), json.dumps({"repo": repos[1], "split": "test"})]
    run(tmp_path, lines, targets={"max_similarity": None})
    out = str(tmp_path / "out")
    load = lambda name, **kw: datasets.load_dataset(out, name, cache_dir=str(tmp_path / "hf"), **kw)  # noqa: E731
    packed = load("packed-2k")
    assert set(packed) == {"train", "test"}  # no empty split
    assert packed["train"].features["input_ids"].feature.dtype == "int32"
    assert len(load("packed-8k", split="train")) == 1
    assert len(load("files", split="train")) == 22
    assert {r["split"] for r in load("repositories", split="train")} == {"train", "test"}
    assert len(load("edges", split="train")) > 0
    assert next(iter(load("packed-2k", split="test", streaming=True)))["segments"][0]["repository"].startswith("local/")
    shard = next((tmp_path / "out" / "packed/2k/train").glob("*.arrow"))
    assert datasets.Dataset.from_file(str(shard)).num_rows == 1
    import pyarrow as pa

    with pa.memory_map(str(shard)) as source:
        assert pa.ipc.open_stream(source).schema.equals(PACKED)


@pytest.mark.parametrize(
    "ways",
    [
        [("0", 1), ("random", 5)],
        pytest.param([("0", 1), ("1", 2), ("random", 5), ("random", 2)], marks=pytest.mark.slow),
    ],
)
def test_the_same_bytes_from_any_number_of_workers_and_any_hash_seed(make_repo, tmp_path, ways):
    """Our samples, which are in six languages, and a repository that means harm."""
    repos = []
    for sample in sorted((ROOT / "data" / "sample").iterdir()):
        files = {str(p.relative_to(sample)): p.read_bytes() for p in sorted(sample.rglob("*")) if p.is_file()}
        repos.append(make_repo(files, sample.name))
    hostile = {
        "README.md": README, "a.py": "import b, c\n", "b.py": "import c, a\n", "c.py": "import a, b\n", "tab\there.py": "x = 1\n",
        "new\nline.py": "x = 2\n", "\udcff.py": "x = 3\n", "\\xff.py": "x = 4\n", "special.txt": "<|endoftext|><|im_end|>",
        "deep.js": "(" * 50_000, "forge.py": "\n".join(f'== {i:06x} "x.py"' for i in range(500)), "nul.py": b"a\0b",
    }  # fmt: skip
    repos.insert(2, make_repo(hostile, "hostile"))
    repos.reverse()
    (tmp_path / "list.txt").write_text("".join(f"{r}\n" for r in repos))
    found = []
    for seed, workers in ways:
        out = tmp_path / f"out{len(found)}"
        done = command(
            "build", "--repos", tmp_path / "list.txt", "--out", out, "--lengths", "2k,8k", "--workers", workers,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found.append(hashes(out))
    assert all(other == found[0] for other in found)
    assert any(name.startswith("packed/8k/") for name in found[0])
    assert [row["name"].rpartition("/")[2] for row in Dataset(out).repositories()] == [repo.name for repo in repos]
    assert not verify(out, Silent()).problems


def test_a_finished_build_is_left_alone(make_repo, tmp_path):
    repo = make_repo(PYTHON)
    run(tmp_path, [str(repo)])
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*") if p.is_file()}
    write_files(repo, {"later.py": "z = 3\n"})
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "later")
    result = run(tmp_path, [str(repo)])
    assert result.unchanged
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*") if p.is_file()} == before


def test_a_list_that_has_changed_keeps_what_is_done(make_repo, tmp_path, monkeypatch):
    repos = [make_repo({**PYTHON, "n.py": f"n = {i}\n"}, f"repo{i}") for i in range(4)]
    run(tmp_path, [str(r) for r in repos[:3]])
    for repo in repos[1:3]:  # pinned: what was built stays as it was
        git(repo, "tag", "then")
        write_files(repo, {"later.py": ""})
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "later")
    lines = [str(repos[3]), str(repos[2]), json.dumps({"repo": str(repos[1]), "split": "test"})]
    result = run(tmp_path, lines)
    assert result.repositories == 3
    assert result.splits["test"] >= 1
    rows = {r["name"].rsplit("/")[-1]: r for r in Dataset(tmp_path / "out").repositories()}
    assert list(rows) == ["repo3", "repo2", "repo1"]
    assert rows["repo2"]["commit"] == git(repos[2], "rev-parse", "then").strip()
    for repo in repos[1:3]:
        git(repo, "reset", "-q", "--hard", "then")
    run(tmp_path, lines, out="fresh")
    assert hashes(tmp_path / "out") == hashes(tmp_path / "fresh")
    assert run(tmp_path, lines).unchanged


def test_another_configuration_stops_and_says_what_differs(make_repo, tmp_path):
    repo = make_repo(PYTHON)
    run(tmp_path, [str(repo)])
    before = hashes(tmp_path / "out")
    for config, says in (
        (
            {"pack": {"lengths": "4k"}},
            r"pack\.lengths was 2k,8k, now 4k; `repo2ctx pack \S+ --lengths 4k` adds what is missing; or give",
        ),
        (
            {"pack": {"lengths": "8k"}},
            r"pack\.lengths was 2k,8k, now 8k; give --lengths 2k,8k, which it has; or give another",
        ),
        ({"tokens": {"eos": "<|endofprompt|>"}}, r"tokens\.eos was '', now '<\|endofprompt\|>'; give another --out"),
        (
            {"tokens": {"tokenizer": "tiktoken:cl100k_base"}},
            r"--tokenizer tiktoken:cl100k_base --lengths 2k,8k --replace` makes",
        ),
        ({"pack": {"lengths": "4k", "long_share": 0.5}}, r"pack\.long_share was 0\.6, now 0\.5; give another --out"),
        ({"order": {"method": "path"}}, r"order\.method was 'dependency', now 'path'; give another --out"),
    ):
        with pytest.raises(OutputError, match=says):
            run(tmp_path, [str(repo)], **config)
    assert hashes(tmp_path / "out") == before
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "thesis.tex").write_text("x")
    with pytest.raises(OutputError, match=r"holds other files \(thesis\.tex\)"):
        run(tmp_path, [str(repo)], out="strange")
    assert [p.name for p in (tmp_path / "strange").iterdir()] == ["thesis.tex"]


def test_a_failed_repository_is_told_and_tried_again(make_repo, tmp_path):
    good = make_repo(PYTHON)
    lines = [str(good), str(tmp_path / "later")]
    result = run(tmp_path, lines)
    assert [f.source for f in result.failures] == [lines[1]]
    assert result.failures[0].line == 2
    assert result.repositories == 1
    first = Dataset(tmp_path / "out").repositories()
    write_files(good, {"moved_on.py": ""})
    git(good, "add", "-A")
    git(good, "commit", "-qm", "moved on")
    make_repo({**PYTHON, "z.py": ""}, "later")
    result = run(tmp_path, lines)
    assert not result.failures
    rows = Dataset(tmp_path / "out").repositories()
    assert [r["name"] for r in rows] == [f"local/{tmp_path.name}/repo", f"local/{tmp_path.name}/later"]
    assert rows[0]["commit"] == first[0]["commit"]  # pinned when it was built
    assert not (tmp_path / "out" / ".build").exists()
    assert run(tmp_path, lines).unchanged


def test_one_commit_named_twice_is_built_once(make_repo, tmp_path):
    repo = make_repo(PYTHON)
    for _ in range(2):
        result = run(tmp_path, [str(repo), f"{repo}@main"])
        assert result.repositories == 1
        assert not result.failures
    assert result.unchanged


def test_splits_by_hash_do_not_depend_on_the_rest_of_the_list(make_repo, tmp_path):
    repos = [str(make_repo({**PYTHON, "n.py": f"n = {i}\n"}, f"repo{i}")) for i in range(8)]
    split = {"validation": 0.3, "test": 0.3}
    run(tmp_path, repos, out="all", split=split)
    run(tmp_path, repos[3:5], out="some", split=split)
    everything = {r["id"]: r["split"] for r in Dataset(tmp_path / "all").repositories()}
    assert len(set(everything.values())) > 1
    for row in Dataset(tmp_path / "some").repositories():
        assert everything[row["id"]] == row["split"]
    for table in Dataset(tmp_path / "all").tables():
        if table.startswith("packed/2k/"):
            for row in Dataset(tmp_path / "all").rows(table, ("segments",)):
                assert {everything[s["repository"]] for s in row["segments"]} == {table.rsplit("/", 1)[1]}


def test_a_repository_without_a_target_has_files_but_no_row(make_repo, tmp_path):
    result = run(tmp_path, [str(make_repo({"a.py": "x = 1\n"})), str(make_repo(PYTHON, "other"))])
    assert result.targets == {"line": {"metadata": 1, "none": 1}, "paragraph": {"none": 2}}
    assert result.packed["2k"]["documents"] == 1
    assert result.repositories == 2


def test_a_target_longer_than_the_row_is_refused_not_cut(make_repo, tmp_path):
    words = "It keeps many different notes. " * 70
    result = run(
        tmp_path,
        [json.dumps({"repo": str(make_repo(PYTHON)), "summary": words})],
        pack={"lengths": [256, 8192]},
    )
    assert result.refused == {"256 paragraph: target longer than the row": 1}
    assert result.packed["8k"]["documents"] == 2  # the manifest has a line


@pytest.mark.parametrize("files", [{}, {"only.png": b"\0\1"}, {"README.md": README}])
def test_repositories_with_nothing_to_read(make_repo, tmp_path, files):
    result = run(tmp_path, [json.dumps({"repo": str(make_repo(files)), "summary": "Nothing is here."})])
    assert result.refused == {"2k line: no kept file": 1, "8k line: no kept file": 1}
    assert not result.failures
    assert Dataset(tmp_path / "out").repositories()[0]["files"] == len(files)


@pytest.mark.slow  # as test_kills.py, from without
def test_a_killed_build_goes_on_and_gives_the_same_bytes(make_repo, tmp_path):
    repos = [make_repo({**PYTHON, "n.py": f"n = {i}\n"}, f"repo{i}") for i in range(6)]
    (tmp_path / "list.txt").write_text("".join(f"{r}\n" for r in repos))
    arguments = ["build", "--repos", tmp_path / "list.txt", "--lengths", "2k", "--workers", 1, "--out"]
    assert command(*arguments, tmp_path / "whole").returncode == 0
    out = tmp_path / "killed"
    for wanted in (1, 3, 5):
        process = subprocess.Popen(
            [sys.executable, "-m", "repo2ctx.cli", *map(str, arguments), str(out)],
            cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            units = out / ".build" / "units"
            if units.exists() and sum(not u.name.startswith(".") for u in units.iterdir()) >= wanted:
                break
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert not (out / "manifest.json").exists()
        partial = command("inspect", out)
        assert partial.returncode == 1
        assert "again to finish" in partial.stderr
    unit_times = {p: p.stat().st_mtime_ns for p in (out / ".build" / "units").glob("[!.]*")}
    assert unit_times
    done = command(*arguments, out)
    assert done.returncode == 0, done.stderr
    assert hashes(out) == hashes(tmp_path / "whole")


def test_damage_is_told_and_not_taken_for_finished(make_repo, tmp_path):
    out, line = tmp_path / "out", [str(make_repo(PYTHON))]
    run(tmp_path, line)
    shard = next(out.glob("packed/8k/*/*.arrow"))
    whole = shard.read_bytes()
    for damage in (lambda: shard.write_bytes(whole[:-9]), shard.unlink):
        damage()
        with pytest.raises(OutputError, match="missing or cut short"):
            run(tmp_path, line)
    files = next(out.glob("files/*.arrow"))
    files.write_bytes(files.read_bytes()[:1000])
    done = command("order", out)
    assert done.returncode == 1
    assert "damaged" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    for text in ("[]", "{}", "{", '{"schema_version": 1}'):
        (out / "manifest.json").write_text(text)
        done = command("inspect", out)
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    (out / "manifest.json").unlink()
    (out / ".build").mkdir()
    state = out / ".build" / "state.json"
    for text in ("{}", "[]", "{", "[" * 100_000, '{"config": {}, "list": [], "tool": "repo2ctx 0.1.0"}', "\udce4"):
        state.write_text(text, errors="surrogateescape")
        with pytest.raises(
            OutputError, match=r"state.json: is damaged; remove .*/out and run the same `repo2ctx build` again$"
        ):
            run(tmp_path, line)


@pytest.fixture
def loaded_once(monkeypatch):
    """For tests that build many times: it is the tokenizer that takes the time."""
    tokenizer = load_tokenizer(TokensConfig())
    monkeypatch.setattr(pipeline, "load_tokenizer", lambda tokens: tokenizer)


def test_a_state_that_is_not_whole_is_told_in_one_line(make_repo, tmp_path, loaded_once):
    """Every key of it away, or of another kind, one after the other."""
    line = [str(make_repo(PYTHON)), str(tmp_path / "later")]
    assert len(run(tmp_path, line).failures) == 1
    out = tmp_path / "out"
    (out / "manifest.json").unlink()
    path = out / ".build" / "state.json"
    whole = json.loads(path.read_text())
    needed = whole.keys() - {"config_sha256"}
    assert needed > {"config", "list", "tool"}
    wrong = [{k: v for k, v in whole.items() if k != key} for key in needed]
    wrong += [whole | {key: value} for key in needed | {"assigned"} for value in (None, 1.5)]
    wrong += [
        whole | {"list": [{"name": "x"}]},
        whole | {"config": {"pack": []}},
        whole | {"assigned": {"x": ["train"]}},
    ]
    for state in wrong:
        path.write_text(json.dumps(state))
        with pytest.raises(OutputError, match=r"^[^\n]*state.json: is damaged; remove"):
            run(tmp_path, line)
    path.write_text(json.dumps(whole | {"assigned": {"x": ["y", "train"]}}))
    assert len(run(tmp_path, line).failures) == 1


def test_what_is_damaged_of_an_unfinished_build_is_named_and_made_anew(make_repo, tmp_path, loaded_once):
    """Units and documents that an earlier run finished, cut short or overwritten: one line, and a folder to remove."""
    line, pack = [str(make_repo(PYTHON)), str(tmp_path / "later")], {"lengths": "2k"}
    run(tmp_path, line, pack=pack)
    out = tmp_path / "out"
    finished = lambda: {name: h for name, h in hashes(out).items() if not name.startswith(".build")}  # noqa: E731
    wanted = finished()
    names = ("repository.json", "summary.json", "*.arrow")
    paths = [p for name in names for p in sorted((out / ".build").rglob(name))]
    folders = {out / ".build" / Path(*p.relative_to(out / ".build").parts[:2]) for p in paths}
    assert {f.parent.name for f in folders} == {"units", "documents"}
    for path in paths:
        (folder,) = folders & set(path.parents)
        whole = path.read_bytes()
        for damage in (whole[: len(whole) // 2], *([b"{}"] if path.suffix == ".json" else [])):
            path.write_bytes(damage)
            with pytest.raises(OutputError) as told:
                run(tmp_path, line, pack=pack)
            assert str(told.value).startswith(f"{folder}: is damaged; remove it and run the same command again")
        path.write_bytes(whole)
    for folder in folders:
        shutil.rmtree(folder)
    run(tmp_path, line, pack=pack)
    assert finished() == wanted


def test_places_that_cannot_be_written(make_repo, tmp_path):
    (tmp_path / "list.txt").write_text(f"{make_repo(PYTHON)}\n")
    (tmp_path / "file").write_text("x")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "x")
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / ".build").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    nowhere = "is a link that leads nowhere; mend or remove it, or give another --out"
    a_file = "is a file, where a directory is to be; move it away, or give another --out"
    for out, said in [
        ("file", f"/file: {a_file}"),
        ("file/below/it", f"/file: {a_file}"),
        ("dangling", f"/dangling: {nowhere}"),
        ("dangling/below", f"/dangling: {nowhere}"),
        ("loop", f"/loop: {nowhere}"),
        ("blocked", f"/blocked/.build: {a_file}"),
        ("n" * 300, "too long"),
        ("/proc/1/x", "/proc/1/x"),
    ]:
        done = command("build", "--repos", tmp_path / "list.txt", "--out", tmp_path / out, "--lengths", "2k", "--quiet")
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), (out, done.stderr)
        assert said in done.stderr
    assert (tmp_path / "file").read_text() == (tmp_path / "blocked" / ".build").read_text() == "x"


def test_two_builds_do_not_share_a_directory(make_repo, tmp_path):
    import fcntl

    (tmp_path / "out" / ".build").mkdir(parents=True)
    with (tmp_path / "out" / ".build" / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OutputError, match="another build is at work"):
            run(tmp_path, [str(make_repo(PYTHON))])


def test_the_manifest_tells_the_truth_and_no_secrets(make_repo, tmp_path):
    run(tmp_path, [str(make_repo(PYTHON))])
    out = tmp_path / "out"
    manifest = json.loads((out / "manifest.json").read_text())
    for shards in manifest["tables"].values():
        for shard in shards:
            data = (out / shard["path"]).read_bytes()
            assert hashlib.sha256(data).hexdigest() == shard["sha256"]
            assert sum(shard["batch_rows"]) == shard["rows"]
    for name in ("manifest.json", "README.md"):
        assert str(tmp_path) not in (out / name).read_text()
    on_disk = {str(p.relative_to(out)) for p in out.rglob("*.arrow")}
    assert on_disk == {s["path"] for shards in manifest["tables"].values() for s in shards}


def test_tables_of_many_batches_and_shards_read_back(make_repo, tmp_path):
    files = {f"f{i:03d}.txt": f"line {i}\n" * 400 for i in range(60)} | {"README.md": README}
    repos = [str(make_repo({**files, "x": f"{i}"}, f"repo{i}")) for i in range(3)]
    small = {"max_bytes": 66_000, "batch_bytes": 20_000}
    same = {"split": {"validation": 0, "test": 0}, "targets": {"max_similarity": None}}
    run(tmp_path, repos, out="small", shards=small, **same)
    run(tmp_path, repos, out="large", **same)
    a, b = Dataset(tmp_path / "small"), Dataset(tmp_path / "large")
    assert len(a.shards("packed/8k/train")) > 1
    for table in b.tables():
        assert list(a.rows(table)) == list(b.rows(table))
    for repository in a.repositories():
        rows = [r for batch in a.of_repository("files", repository["id"]) for r in batch.to_pylist()]
        assert rows == [r for r in a.rows("files") if r["repository"] == repository["id"]]
    for i in range(3):
        assert (
            a.packed_row("packed/8k/train", i)["input_ids"].tolist()
            == b.packed_row("packed/8k/train", i)["input_ids"].tolist()
        )


def test_rows_hold_the_same_files_under_every_order(make_repo, tmp_path):
    """Files of equal rank compete for what is left of a short row; the ablation is of order alone."""
    body = "x = 'a line of some length, so that few files fit'\n" * 12
    repo = make_repo(
        {**{f"m{i:02d}.py": (f"import m{i + 1:02d}\n" if i < 3 else "") + body for i in range(20)}, "README.md": README}
    )
    held = {}
    for method in ("dependency", "path", "reversed", "random"):
        pack = {"lengths": "2k", "long_share": 0}
        run(tmp_path, [str(repo)], out=method, order={"method": method}, pack=pack)
        (row,) = Dataset(tmp_path / method).rows("packed/2k/train")
        held[method] = [span["path"] for span in row["spans"] if span["fidelity"] != "path"]
    assert held["dependency"] != held["path"] != held["random"]
    assert len({frozenset(paths) for paths in held.values()}) == 1
    assert len(held["path"]) < 20
