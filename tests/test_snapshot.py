"""Reading a commit's files: odd names, missing and damaged blobs."""

from pathlib import Path

import pytest
from conftest import git

from repo2ctx.crawl import CrawlOptions, open_snapshot
from repo2ctx.errors import SnapshotError
from repo2ctx.repolist import parse_plain


def snapshot_of(repo: Path):
    return open_snapshot(parse_plain(str(repo), Path("/")), CrawlOptions(None))


def loose(repo: Path, name: str) -> Path:
    blob = git(repo, "rev-parse", f"HEAD:{name}").strip()
    return repo / ".git" / "objects" / blob[:2] / blob[2:]


def test_names_may_hold_anything(make_repo):
    names = ["größe.py", "日本語.md", 'quo"te', "back\\slash", "cafe\u0301", "tab\there", "new\nline", "[id].tsx", "-rf", "sp ace", "\udcff\udcfe.txt"]  # fmt: skip
    repo = make_repo({name: name.encode("utf-8", "surrogateescape") for name in names})
    with snapshot_of(repo) as snapshot:
        entries = snapshot.entries()
        assert {e.path for e in entries} == {*names[:-1], "\\xff\\xfe.txt"}
        for entry, content in zip(entries, snapshot.read([e.blob for e in entries]), strict=True):
            assert entry.raw_path == content


def test_missing_and_damaged_blobs_are_none_and_the_rest_goes_on(make_repo):
    repo = make_repo({f"{i}.txt": f"content {i}\n" * 50 for i in range(8)})
    loose(repo, "1.txt").unlink()
    for damaged in ("3.txt", "4.txt", "7.txt"):
        path = loose(repo, damaged)
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:20])
    with snapshot_of(repo) as snapshot:
        entries = snapshot.entries()
        blobs = [e.blob for e in entries]
        found = [None if c is None else c.decode().split("\n")[0] for c in snapshot.read(blobs)]
        sizes = snapshot.sizes(blobs)
    assert found == ["content 0", None, "content 2", None, None, "content 5", "content 6", None]
    assert [s is not None for s in sizes][:3] == [True, False, True]


def test_modes_are_told(make_repo):
    repo = make_repo({"a.txt": "x"})
    (repo / "link").symlink_to("/etc/passwd")
    git(repo, "add", "link")
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    git(repo, "commit", "-qm", "modes")
    with snapshot_of(repo) as snapshot:
        assert {e.path: e.mode for e in snapshot.entries()} == {"a.txt": "100644", "link": "120000", "sub": "160000"}


def test_a_missing_tree_is_an_error_that_says_so(make_repo):
    repo = make_repo({"folder/a.txt": "x"})
    loose(repo, "folder").unlink()
    with snapshot_of(repo) as snapshot, pytest.raises(SnapshotError, match="cannot be read"):
        snapshot.entries()


def test_many_and_large_blobs_do_not_deadlock(make_repo):
    files = {f"{i:04d}": b"%d " % i * 20_000 for i in range(40)} | {f"small/{i:05d}": b"%d" % i for i in range(3000)}
    repo = make_repo(files)
    with snapshot_of(repo) as snapshot:
        entries = snapshot.entries()
        for entry, content in zip(entries, snapshot.read([e.blob for e in entries]), strict=True):
            assert files[entry.path] == content


def test_sha256_repositories(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", "repo")
    (tmp_path / "repo" / "a.txt").write_text("x")
    git(tmp_path / "repo", "add", "-A")
    git(tmp_path / "repo", "commit", "-qm", "one")
    with snapshot_of(tmp_path / "repo") as snapshot:
        assert list(snapshot.read([e.blob for e in snapshot.entries()])) == [b"x"]
