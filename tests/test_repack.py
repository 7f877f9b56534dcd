"""`repo2ctx pack`: what a build of those lengths would have given, without the repositories."""

import contextlib
import hashlib
import json
import shutil

import pytest
from conftest import small_tokenizer
from test_build import PYTHON, Silent, command, hashes, run

from repo2ctx import repack as module
from repo2ctx.config import TokensConfig
from repo2ctx.dataset import Dataset
from repo2ctx.errors import OutputError, UsageError
from repo2ctx.manifest import sealed
from repo2ctx.repack import repack
from repo2ctx.schema import MANIFEST
from repo2ctx.state import WORK

LONG = {**PYTHON, **{f"notes/m{i}.py": f"def f{i}():\n    return {i}\n" * 40 for i in range(30)}}


@pytest.fixture
def built(make_repo, tmp_path):
    """A build at 2k, and its list."""
    lines = [str(make_repo({**LONG, "n.py": f"n = {i}\n"}, f"repo{i}")) for i in range(3)]
    lines.append(json.dumps({"repo": str(make_repo(PYTHON, "small")), "split": "test"}))
    run(tmp_path, lines, pack={"lengths": "2k"})
    return lines


def test_added_lengths_are_those_of_a_build(built, tmp_path):
    run(tmp_path, built, out="fresh", pack={"lengths": "2k,4k,16k"})
    before = hashes(tmp_path / "out")
    for line in built:
        shutil.rmtree(json.loads(line)["repo"] if line.startswith("{") else line)
    result = repack(tmp_path / "out", (16384, 4096), None, False, 2, tmp_path / "cache", Silent())
    assert list(result.packed) == ["2k", "4k", "16k"]
    assert not result.unchanged
    after = hashes(tmp_path / "out")
    assert after == hashes(tmp_path / "fresh")
    assert {n: h for n, h in after.items() if n in before and n not in (MANIFEST, "README.md")} == {
        n: h for n, h in before.items() if n not in (MANIFEST, "README.md")
    }
    assert repack(tmp_path / "out", (4096,), None, False, 1, None, Silent()).unchanged
    assert hashes(tmp_path / "out") == after


def test_another_tokenizer_takes_the_rows_place_only_if_told(built, tmp_path):
    name = str(small_tokenizer(tmp_path / "hf"))
    tokens = TokensConfig(tokenizer=name)
    before = hashes(tmp_path / "out")
    with pytest.raises(UsageError, match=r"its rows \(2k\) are of the tokenizer .* give --replace"):
        repack(tmp_path / "out", (4096,), tokens, False, 1, None, Silent())
    assert hashes(tmp_path / "out") == before
    run(tmp_path, built, out="fresh", pack={"lengths": "4k"}, tokens={"tokenizer": name})
    repack(tmp_path / "out", (4096,), tokens, True, 1, None, Silent())
    assert hashes(tmp_path / "out") == hashes(tmp_path / "fresh")
    run(tmp_path, built, out="again", pack={"lengths": "4k"})
    repack(tmp_path / "out", (), TokensConfig(), True, 1, None, Silent())
    assert hashes(tmp_path / "out") == hashes(tmp_path / "again")


@pytest.mark.parametrize(
    ("same", "moment"),
    [
        (True, 2),
        (True, 6),
        (False, 4),
        *(
            pytest.param(*rest, marks=pytest.mark.slow)
            for rest in [(True, 0), (True, 4), (False, 0), (False, 2), (False, 6)]
        ),
    ],
)
def test_a_change_that_was_cut_off_is_made_or_was_never_begun(built, tmp_path, monkeypatch, moment, same):
    """Stopped at each step of the change, and gone on with by the next command."""
    name = "tiktoken:o200k_base" if same else str(small_tokenizer(tmp_path / "hf"))
    arguments = ((4096,), TokensConfig(tokenizer=name), True, 1, None, Silent())
    shutil.copytree(tmp_path / "out", tmp_path / "whole")
    repack(tmp_path / "whole", *arguments)

    class Cut(BaseException):
        pass

    left = [moment]

    def counted(function):
        def wrapper(*a, **k):
            if left[0] == 0:
                raise Cut
            left[0] -= 1
            return function(*a, **k)

        return wrapper

    with monkeypatch.context() as patch:
        for name in ("write_text", "write_card", "_remove", "retract", "sync_directory"):
            patch.setattr(module, name, counted(getattr(module, name)))
        with contextlib.suppress(Cut):
            repack(tmp_path / "out", *arguments)
    repack(tmp_path / "out", *arguments)
    assert hashes(tmp_path / "out") == hashes(tmp_path / "whole")


def test_a_failure_changes_nothing(built, tmp_path):
    dataset = Dataset(tmp_path / "out")
    (shard,) = dataset.shards("files")
    path = tmp_path / "out" / shard.path
    data = path.read_bytes()
    path.write_bytes(data[:2000] + bytes(len(data) - 4000) + data[-2000:])
    with pytest.raises(OutputError, match=r"its bytes are not those that were written; .* remove"):
        repack(tmp_path / "out", (4096,), None, False, 1, None, Silent())
    dataset.manifest["tables"]["files"][0]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "out" / MANIFEST).write_text(sealed(dataset.manifest))
    before = hashes(tmp_path / "out")
    with pytest.raises(OutputError, match=r"nothing has changed; mend it and run the same command again"):
        repack(tmp_path / "out", (4096,), None, False, 1, None, Silent())
    after = {n: h for n, h in hashes(tmp_path / "out").items() if not n.startswith(WORK)}
    assert after == before


def test_rows_that_are_damaged_or_gone_are_made_anew(built, tmp_path):
    out = tmp_path / "out"
    repack(out, (4096,), None, False, 1, None, Silent())
    before = hashes(out)
    shutil.rmtree(out / "packed" / "2k")
    for lengths in (2048,), (16384,):
        with pytest.raises(OutputError, match=r"is missing or cut short; .*pack .* --lengths 2k --replace"):
            repack(out, lengths, None, False, 1, None, Silent())
    repack(out, (2048,), None, True, 1, None, Silent())
    assert hashes(out) == before
    shard = next((out / "packed/4k/train").iterdir())
    shard.write_bytes(bytes(shard.stat().st_size))
    (out / "README.md").unlink()
    assert repack(out, (2048,), None, False, 1, None, Silent()).unchanged
    assert (out / "README.md").exists()
    repack(out, (), None, True, 1, None, Silent())
    assert hashes(out) == before


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"schema_version": 5, "tables": 1}'])
def test_a_change_whose_manifest_is_damaged_is_told(built, tmp_path, text):
    following = tmp_path / "out" / WORK / "next"
    following.mkdir(parents=True)
    (following / MANIFEST).write_text(text)
    with pytest.raises(OutputError, match=r"next/manifest\.json: .*; remove \S+/next and run the same"):
        repack(tmp_path / "out", (4096,), None, False, 1, None, Silent())


def test_rows_of_another_prompt_are_not_added_to(built, tmp_path, monkeypatch):
    out = tmp_path / "out"
    before = hashes(out)
    dataset = Dataset(out)
    dataset.manifest["prompt_version"] += 1
    (out / MANIFEST).write_text(sealed(dataset.manifest))
    for lengths, replace in ((4096,), False), ((4096,), True):
        with pytest.raises(OutputError, match=r"prompt version .* give --replace without --lengths"):
            repack(out, lengths, None, replace, 1, None, Silent())
    repack(out, (), None, True, 1, None, Silent())
    assert hashes(out) == before


def test_the_command(built, tmp_path):
    done = command("pack", tmp_path / "out", "--lengths", "4k", "--quiet", "--json")
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["packed"]) == {"2k", "4k"}
    assert command("verify", tmp_path / "out", "--quiet").returncode == 0
    for arguments, says in (
        ((), "give --lengths, --tokenizer, or --replace"),
        (("--lengths", "3x"), "expected a number such as 8k"),
        (("--tokenizer", "tiktoken:nope", "--replace"), "no such encoding"),
    ):
        done = command("pack", tmp_path / "out", *arguments)
        assert done.returncode == 2
        assert says in done.stderr
    done = command("pack", tmp_path, "--lengths", "4k")
    assert done.returncode == 1
    assert "give the --out of a finished build" in done.stderr
