"""Families and splits in builds of real repositories."""

import json
from pathlib import Path

import pytest
from conftest import git, write_files
from test_build import Silent, command, hashes, run
from test_crawl import served  # noqa: F401

from repo2ctx.dataset import Dataset
from repo2ctx.verify import verify

README = "# {0}\n\nKeeps {0} in plain files and finds them again by their words.\n"


def work(name: str, first: int = 0, last: int = 20) -> dict[str, str]:
    """A project of small modules, each of which is long enough to count."""
    modules = {f"{name}_{i}.py": f"# {name} {i}\n" + f"{name}_{i} = {i}\n" * 20 for i in range(first, last)}
    return {**modules, "README.md": README.format(name)}


def fork(origin: Path, name: str, files: dict[str, str]) -> Path:
    """A clone of `origin` whose files are all gone but these."""
    git(origin.parent, "clone", "-q", str(origin), name)
    folder = origin.parent / name
    git(folder, "rm", "-qr", ".")
    write_files(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "another project")
    return folder


def line(repo: Path | str, split: str | None = None) -> str:
    return json.dumps({"repo": str(repo), "split": split})


def rows_of(out: Path) -> dict[str, dict]:
    return {row["name"].rpartition("/")[2]: row for row in Dataset(out).repositories()}


def splits_of(out: Path) -> dict[str, str]:
    return {name: row["split"] for name, row in rows_of(out).items()}


def root(repo: Path) -> str:
    return git(repo, "rev-list", "--max-parents=0", "HEAD").strip()


def test_a_list_that_grows(make_repo, tmp_path):
    """A fork with other files, a copy without a history, a bridge and its second chance."""
    origin, other = make_repo(work("notes"), "origin"), make_repo(work("songs"), "other")
    out = tmp_path / "out"
    run(tmp_path, [line(origin, "test"), line(other, "train")], pack={"lengths": "2k"})
    assert rows_of(out)["origin"]["roots"] == [root(origin)]
    assert rows_of(out)["origin"]["family"] == root(origin)

    forked = fork(origin, "forked", work("birds"))
    copied = make_repo({**work("notes", 0, 8), **work("trees", 0, 12)}, "copied")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{forked}", "shallow")
    bridge = fork(origin, "bridge", {**work("clouds"), **work("songs", 0, 15)})
    # the list says nothing of the first two any more: they stay where they are, and what belongs to them goes there
    grown = [str(bridge), str(shallow), str(copied), str(forked), str(origin), str(other)]
    result = run(tmp_path, grown, pack={"lengths": "2k"})
    assert not result.failures
    assert splits_of(out) == {
        "shallow": "test", "copied": "test", "forked": "test", "origin": "test", "other": "train",
    }  # fmt: skip
    found = rows_of(out)
    assert found["shallow"]["roots"] == []  # it belongs by the files that it shares with the fork
    assert {found[name]["family"] for name in ("shallow", "copied", "forked", "origin")} == {root(origin)}
    (left,) = result.left_out
    assert (left.source, left.line) == (str(bridge), 1)
    assert f"{forked} (line 4), which is in test: they share a root commit" in left.reason
    assert f"{other} (line 6), which is in train: they share 75% of the files of the smaller one" in left.reason
    assert verify(out, Silent()).problems == []

    before = hashes(out)
    result = run(tmp_path, ["# a comment moves the lines", *grown], pack={"lengths": "2k"})
    assert result.unchanged
    assert hashes(out) == before
    (left,) = result.left_out
    assert left.line == 2
    assert f"{other} (line 7)" in left.reason

    # the way out that the message names
    ends = [line(origin, "train"), line(other, "train")]
    result = run(tmp_path, [*grown[:4], *ends], pack={"lengths": "2k"})
    assert not result.left_out
    assert set(splits_of(out).values()) == {"train"}
    assert len(splits_of(out)) == 6
    assert len({row["family"] for row in rows_of(out).values()}) == 1


def test_who_never_was_in_a_family_is_not_told_that_it_was(make_repo, tmp_path):
    """The repository that gave a family its name leaves the list; its fork, left out before, still has its root commit."""
    origin = make_repo(work("notes"), "origin")
    whole = make_repo({**work("notes", 0, 8), **work("trees", 0, 12)}, "whole")
    git(whole, "commit", "-q", "--allow-empty", "-m", "another state")
    copied = tmp_path / "copied"  # without a root commit that could give the family its name
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{whole}", "copied")
    forked = fork(origin, "forked", work("birds"))
    ends = [line(copied, "train"), line(forked, "test")]
    result = run(tmp_path, [line(origin, "train"), *ends], pack={"lengths": "2k"})
    (left,) = result.left_out
    assert left.source == str(forked)
    assert "they share a root commit" in left.reason
    assert {row["family"] for row in rows_of(tmp_path / "out").values()} == {root(origin)}
    result = run(tmp_path, ends, pack={"lengths": "2k"})
    (left,) = result.left_out
    assert left.source == str(forked)
    assert (
        f"{copied} (line 1), which is in train: in the earlier build, one of them was in the family that has the other's root "
        "commit; give the lines"
    ) in left.reason
    assert verify(tmp_path / "out", Silent()).problems == []


def test_two_splits_of_the_list_in_one_family(make_repo, tmp_path):
    origin = make_repo(work("notes"), "origin")
    forked, third = fork(origin, "forked", work("birds")), fork(origin, "third", work("songs"))
    (tmp_path / "list.txt").write_text(
        "\n".join([line(third), line(origin, "validation"), line(forked, "test")]) + "\n"
    )
    out = tmp_path / "out"
    arguments = ["build", "--repos", tmp_path / "list.txt", "--out", out, "--lengths", "2k"]
    states = []
    for _ in range(2):
        done = command(*arguments)
        assert done.returncode == 1, done.stderr
        assert f"{forked} (line 3): left out: its line says test, but it is of one family with" in done.stdout
        assert f"{third} (line 1), which is in validation" in done.stdout or f"{origin} (line 2)" in done.stdout
        assert "finished but for what was left out" in done.stdout
        assert splits_of(out) == {"third": "validation", "origin": "validation"}
        assert not (out / ".build").exists()
        states.append(hashes(out))
    assert states[0] == states[1]
    said = json.loads(command(*arguments, "--json", "--quiet").stdout)
    assert [entry["line"] for entry in said["left_out"]] == [3]
    assert said["unchanged"]


def test_by_root_can_be_left_out(make_repo, tmp_path):
    origin = make_repo(work("notes"), "origin")
    forked = fork(origin, "forked", work("birds"))
    lines = [line(origin, "validation"), line(forked, "test")]
    assert not run(tmp_path, lines, pack={"lengths": "2k"}, split={"by_root": False}).left_out
    found = rows_of(tmp_path / "out")
    assert [found[name]["roots"] for name in ("origin", "forked")] == [[], []]
    assert found["origin"]["family"].endswith("/origin")


def test_a_remote_belongs_to_its_fork(served, make_repo, tmp_path):  # noqa: F811
    url, origin = served
    write_files(origin, work("notes"))
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "more")
    forked = fork(origin, "forked", work("birds"))
    run(tmp_path, [line(forked, "test"), url], pack={"lengths": "2k"})
    found = Dataset(tmp_path / "out").repositories()
    assert [row["split"] for row in found] == ["test", "test"]
    assert [row["roots"] for row in found] == [[root(origin)]] * 2


@pytest.mark.parametrize("way", ["root", "files"])
def test_verify_finds_one_family_in_two_splits(make_repo, tmp_path, monkeypatch, way):
    """What a build that knows no ties has written."""
    origin = make_repo(work("notes"), "origin")
    if way == "root":
        other = fork(origin, "other", work("birds"))
    else:
        other = make_repo({**work("notes", 0, 10), **work("birds")}, "other")
    monkeypatch.setattr("repo2ctx.splitting.ties", lambda members: [])
    run(tmp_path, [line(origin, "train"), line(other, "test")], pack={"lengths": "2k"})
    found = verify(tmp_path / "out", Silent()).problems
    said = "they share a root commit" if way == "root" else "they share 50% of the files of the smaller one"
    assert [problem for problem in found if "lies in several splits" not in problem] == [found[-1]]
    assert said in found[-1]
    assert "is in train" in found[-1]
