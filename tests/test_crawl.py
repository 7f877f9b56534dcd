"""Getting repositories: refs, caches, and that nothing a repository holds ever runs."""

import http.server
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from conftest import git, write_files

from repo2ctx.crawl import CrawlOptions, fetch_commits, find_repository, open_snapshot
from repo2ctx.errors import CrawlError
from repo2ctx.history import root_commits
from repo2ctx.records import RepoSpec
from repo2ctx.repolist import parse_plain
from repo2ctx.safegit import isolate_environment


@pytest.fixture(autouse=True)
def _isolated(monkeypatch):
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_CONFIG_GLOBAL"):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    isolate_environment()
    yield
    os.environ.clear()
    os.environ.update(before)


def contents(source: str, options: CrawlOptions | None = None) -> dict[str, bytes | None]:
    spec = parse_plain(source, Path("/"))
    with open_snapshot(spec, options or CrawlOptions(None)) as snapshot:
        entries = [e for e in snapshot.entries() if e.mode != "160000"]
        return dict(zip([e.path for e in entries], snapshot.read([e.blob for e in entries]), strict=True))


def test_refs_of_a_local_repository(make_repo):
    repo = make_repo({"a.txt": "main"})
    first = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "tag", "-a", "v1", "-m", "annotated")
    git(repo, "checkout", "-q", "-b", "fix/issue#40")
    write_files(repo, {"a.txt": "fix"})
    git(repo, "commit", "-aqm", "fix")
    for ref, text in [("", b"fix"), ("@main", b"main"), ("@v1", b"main"), ("@fix/issue#40", b"fix"), (f"@{first}", b"main"), (f"@{first[:9]}", b"main")]:  # fmt: skip
        assert contents(f"{repo}{ref}") == {"a.txt": text}, ref
    git(repo, "pack-refs", "--all")
    assert contents(f"{repo}@main") == {"a.txt": b"main"}
    assert contents(f"file://{repo}@v1") == {"a.txt": b"main"}
    git(repo, "checkout", "-q", "--detach", first)
    assert contents(str(repo)) == {"a.txt": b"main"}


def test_bare_repositories_worktrees_and_submodules(make_repo, tmp_path):
    repo = make_repo({"a.txt": "one"})
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    assert contents(str(tmp_path / "bare.git")) == {"a.txt": b"one"}
    (tmp_path / "bare.git" / "config").unlink()
    assert contents(str(tmp_path / "bare.git")) == {"a.txt": b"one"}
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"))
    write_files(tmp_path / "tree", {"a.txt": "two"})
    git(tmp_path / "tree", "commit", "-aqm", "side")
    assert contents(str(tmp_path / "tree")) == {"a.txt": b"two"}
    outer = make_repo({"b.txt": "outer"}, "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repo), "inner")
    assert contents(str(outer / "inner")) == {"a.txt": b"one"}


def test_a_git_file_may_not_name_a_stranger(make_repo, tmp_path):
    private = make_repo({"secret.txt": "private"}, "private")
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / ".git").write_text(f"gitdir: {private}/.git\n")
    with pytest.raises(CrawlError, match="does not know it"):
        contents(str(hostile))


def test_what_cannot_be_had_says_why(make_repo, tmp_path):
    repo = make_repo({"a.txt": "x"})
    with pytest.raises(CrawlError, match="check the branch, tag or commit"):
        contents(f"{repo}@missing")
    with pytest.raises(CrawlError, match="no such directory"):
        contents(str(tmp_path / "missing"))
    (tmp_path / "plain").mkdir()
    with pytest.raises(CrawlError, match="not a git repository"):
        contents(str(tmp_path / "plain"))
    git(tmp_path, "init", "-q", "empty")
    with pytest.raises(CrawlError, match="without commits"):
        contents(str(tmp_path / "empty"))


def test_no_other_door_leads_to_a_private_repository(make_repo, tmp_path):
    private = make_repo({"secret.txt": "private"}, "private")
    commit = git(private, "rev-parse", "HEAD").strip()

    def borrowed(name: str) -> Path:
        folder = tmp_path / name
        (folder / ".git" / "objects" / "info").mkdir(parents=True)
        (folder / ".git" / "refs").mkdir()
        (folder / ".git" / "HEAD").write_text(commit + "\n")
        return folder

    common = borrowed("common")
    (common / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (common / ".git" / "commondir").write_text(f"{private}/.git\n")
    linked = borrowed("linked")
    shutil.rmtree(linked / ".git" / "objects")
    (linked / ".git" / "objects").symlink_to(private / ".git" / "objects")
    whole = tmp_path / "whole"
    whole.mkdir()
    (whole / ".git").symlink_to(private / ".git")
    alternates = borrowed("alternates")
    (alternates / ".git" / "objects" / "info" / "alternates").write_text(f"{private}/.git/objects\n")
    for folder in (common, linked, whole, alternates):
        with pytest.raises(CrawlError):
            contents(str(folder))


def test_pipes_in_an_object_store_are_not_waited_for(make_repo):
    for i, name in enumerate(("info/alternates", "pack/pack-1.idx", "aa/" + "b" * 38)):
        repo = make_repo({"a.txt": "x"}, f"repo{i}")
        place = repo / ".git" / "objects" / name
        place.parent.mkdir(exist_ok=True)
        os.mkfifo(place)
        with pytest.raises(CrawlError):
            contents(str(repo))


def test_odd_git_directories_are_no_repositories(tmp_path):
    for i, make in enumerate(
        (
            lambda p: (p / "HEAD").mkdir(),
            lambda p: (p / "HEAD").write_text("ref: a\0b"),
            lambda p: os.mkfifo(p / "HEAD"),
        )
    ):
        folder = tmp_path / str(i)
        (folder / "objects").mkdir(parents=True)
        make(folder)
        with pytest.raises(CrawlError):
            contents(str(folder))
    (tmp_path / "nul").mkdir()
    (tmp_path / "nul" / ".git").write_text("gitdir: a\0b")
    with pytest.raises(CrawlError):
        contents(str(tmp_path / "nul"))


def hostile_repository(make_repo, trap: Path) -> Path:
    """A repository whose config, hooks, attributes and alternates would each create `trap` if they acted."""
    repo = make_repo({"a.py": "x = 1\n", ".gitattributes": "* filter=evil diff=evil\n", "b.py": "y = 2\n"})
    run = f"touch {trap}"
    for key, value in {
        "core.fsmonitor": run,
        "core.hooksPath": str(repo / "hooks"),
        "core.sshCommand": run,
        "core.pager": run,
        "core.editor": run,
        "core.alternateRefsCommand": run,
        "core.askPass": run,
        "filter.evil.smudge": run,
        "filter.evil.clean": run,
        "filter.evil.process": run,
        "diff.evil.textconv": run,
        "diff.external": run,
        "alias.ls-tree": f"!{run}",
        "alias.cat-file": f"!{run}",
        "alias.rev-parse": f"!{run}",
        "uploadpack.packObjectsHook": run,
        "credential.helper": f"!{run}",
        "gpg.program": run,
        "remote.origin.url": f"ext::sh -c '{run}'",
        "remote.origin.uploadpack": run,
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "protocol.ext.allow": "always",
        "core.repositoryformatversion": "1",
        "include.path": "/dev/zero",
    }.items():
        git(repo, "config", "--file", str(repo / ".git" / "config"), key, value)
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "fsmonitor-watchman"):
        for folder in (repo / "hooks", repo / ".git" / "hooks"):
            folder.mkdir(exist_ok=True)
            (folder / hook).write_text(f"#!/bin/sh\n{run}\n")
            (folder / hook).chmod(0o755)
    return repo


def test_nothing_of_a_hostile_repository_runs(make_repo, tmp_path):
    trap = tmp_path / "sprung"
    repo = hostile_repository(make_repo, trap)
    blob = git(make_repo({"x": "y = 2\n"}, "other"), "rev-parse", "HEAD:x").strip()
    (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()  # a promisor would fetch it: ext::sh
    read = contents(str(repo))
    assert read["a.py"] == b"x = 1\n"
    assert read["b.py"] is None
    assert not trap.exists()
    assert find_repository(repo / "hooks") == (repo, "hooks")


def test_refs_that_are_links_or_pipes_are_not_read(make_repo, tmp_path):
    repo = make_repo({"a.py": "x"})
    secret = tmp_path / "secret"
    secret.write_text("a" * 40)
    (repo / ".git" / "refs" / "heads" / "link").symlink_to(secret)
    os.mkfifo(repo / ".git" / "refs" / "heads" / "pipe")
    for ref in ("link", "pipe"):
        with pytest.raises(CrawlError) as error:
            contents(f"{repo}@{ref}")
        assert "aaaa" not in str(error.value)


class _Backend(http.server.BaseHTTPRequestHandler):
    """git's own smart HTTP server behind Python's."""

    root = ""

    def _serve(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        env = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": self.root, "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "REMOTE_ADDR": "127.0.0.1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "GIT_CONFIG_GLOBAL": os.devnull,
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True, check=True)
        head, _, payload = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(payload)

    do_GET = do_POST = _serve

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def served(make_repo, tmp_path):
    """(URL of a repository served over HTTP on loopback, its folder)."""
    if not Path(subprocess.check_output(["git", "--exec-path"], text=True).strip(), "git-http-backend").exists():
        pytest.skip("this git comes without its HTTP server")
    repo = make_repo({"a.txt": "main"})
    handler = type("Handler", (_Backend,), {"root": str(tmp_path)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/repo/.git", repo
    server.shutdown()
    server.server_close()


def test_fetching_over_http_is_shallow_cached_and_pinned(served, tmp_path):
    url, repo = served
    git(repo, "tag", "v1")
    first = git(repo, "rev-parse", "HEAD").strip()
    write_files(repo, {"a.txt": "later"})
    git(repo, "commit", "-aqm", "later")
    options = CrawlOptions(tmp_path / "cache")
    for ref, text in [("", b"later"), ("@main", b"later"), ("@v1", b"main"), (f"@{first}", b"main"), (f"@{first[:10]}", b"main")]:  # fmt: skip
        assert contents(url + ref, options) == {"a.txt": text}, ref
    spec = parse_plain(url, Path("/"))
    with open_snapshot(spec, CrawlOptions(tmp_path / "fresh")) as snapshot:
        assert git(snapshot.git_dir, "rev-list", "--count", snapshot.commit).strip() == "1"
        assert not (snapshot.git_dir / "index").exists()
    write_files(repo, {"a.txt": "newest"})
    git(repo, "commit", "-aqm", "newest")
    assert contents(url, CrawlOptions(tmp_path / "cache", offline=True)) == {"a.txt": b"later"}
    assert contents(url, options) == {"a.txt": b"newest"}
    with pytest.raises(CrawlError, match="run once without --offline"):
        contents(url + "@other", CrawlOptions(tmp_path / "cache", offline=True))
    with pytest.raises(CrawlError, match="cannot be fetched"):
        contents(url + "@missing", options)


def test_no_cache_leaves_nothing(served, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    assert contents(served[0]) == {"a.txt": b"main"}
    assert list((tmp_path / "scratch").iterdir()) == []


def test_failures_hide_credentials(tmp_path):
    spec = parse_plain("http://user:s3cret@127.0.0.1:9/a/b", Path("/"))
    with pytest.raises(CrawlError) as error, open_snapshot(spec, CrawlOptions(tmp_path)):
        pass
    assert "cannot be fetched" in str(error.value)
    assert "s3cret" not in str(error.value)
    assert not any("s3cret" in p.read_text(errors="replace") for p in tmp_path.rglob("*") if p.is_file())


def test_helpers_are_refused_even_if_a_spec_slips_through(tmp_path):
    trap = tmp_path / "sprung"
    for url in (f"ext::sh -c 'touch {trap}'", "--upload-pack=touch"):
        spec = RepoSpec(url, url, "x/y/z")
        with pytest.raises(CrawlError), open_snapshot(spec, CrawlOptions(None)):
            pass
    assert not trap.exists()


def test_an_interrupted_clone_leaves_no_half_repository(served, tmp_path, monkeypatch):
    options = CrawlOptions(tmp_path / "cache")
    monkeypatch.setattr("repo2ctx.safegit.write_config", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        contents(served[0], options)
    monkeypatch.undo()
    assert contents(served[0], options) == {"a.txt": b"main"}
    assert shutil.which("git")


# Root commits ----------------------------------------------------------------------------------------------


def roots(source: str, options: CrawlOptions | None = None) -> tuple[str, ...]:
    spec, options = parse_plain(source, Path("/")), options or CrawlOptions(None)
    with open_snapshot(spec, options) as snapshot:
        return root_commits(spec, snapshot, options)


def grow(repo: Path, name: str) -> str:
    """One more commit; returns its id."""
    write_files(repo, {name: name})
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", name)
    return git(repo, "rev-parse", "HEAD").strip()


def test_roots_of_a_local_history(make_repo, tmp_path):
    repo = make_repo({"a.txt": "a"})
    first = git(repo, "rev-parse", "HEAD").strip()
    last = grow(repo, "b.txt")
    assert roots(str(repo)) == (first,)
    assert roots(f"{repo}@{first}") == (first,)
    other = make_repo({"z.txt": "z"}, "other")
    second = git(other, "rev-parse", "HEAD").strip()
    git(repo, "fetch", "-q", str(other), "main")
    git(repo, "merge", "-q", "--allow-unrelated-histories", "-m", "both", "FETCH_HEAD")
    assert roots(str(repo)) == tuple(sorted((first, second)))
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "grafts").write_text(f"{last}\n")
    assert git(repo, "rev-list", "--max-parents=0", last).split() == [last]
    git(repo, "replace", "--graft", git(repo, "rev-parse", "HEAD").strip())
    assert roots(str(repo)) == tuple(sorted((first, second)))
    git(repo, "worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"), last)
    assert roots(str(tmp_path / "tree")) == (first,)


def test_a_history_that_is_cut_has_no_root(make_repo, tmp_path):
    repo = make_repo({"a.txt": "a"})
    for name in ("b", "c"):
        grow(repo, name)
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{repo}", "shallow")
    assert roots(str(tmp_path / "shallow")) == ()
    assert contents(str(tmp_path / "shallow")) == {"a.txt": b"a", "b": b"b", "c": b"c"}


def test_a_commit_graph_that_lies_is_not_believed(make_repo):
    """A graph file of the same length in which the last commit has no parents."""
    repo = make_repo({"a.txt": "a"})
    first = git(repo, "rev-parse", "HEAD").strip()
    last = grow(repo, "b.txt")
    git(repo, "commit-graph", "write", "--reachable")
    path = repo / ".git" / "objects" / "info" / "commit-graph"
    data = bytearray(path.read_bytes())
    parents = (0 if first < last else 1).to_bytes(4, "big") + b"\x70\0\0\0"
    assert data.count(parents) == 1
    at = data.index(parents)
    data[at : at + 4] = b"\x70\0\0\0"
    path.chmod(0o644)
    path.write_bytes(data)
    assert git(repo, "rev-list", "--max-parents=0", "HEAD").split() == [last]
    assert roots(str(repo)) == (first,)


@pytest.mark.parametrize("filters", ["true", "false"])
def test_the_history_of_a_remote_is_fetched_once_and_only_its_roots_are_kept(served, tmp_path, filters):
    url, repo = served
    git(repo, "config", "uploadpack.allowFilter", filters)
    first = git(repo, "rev-parse", "HEAD").strip()
    old = grow(repo, "b.txt")
    options = CrawlOptions(tmp_path / "cache")
    assert roots(url, options) == (first,)
    (git_dir,) = (tmp_path / "cache" / "git").glob("*.git")
    assert not list((tmp_path / "cache" / "git").glob("*.history*"))
    assert (
        git(git_dir, "rev-list", "--count", "--all").strip() == "1"
    )  # the cache itself stays shallow, and no partial clone
    assert "promisor" not in (git_dir / "config").read_text()
    git(repo, "checkout", "-q", "--orphan", "fresh")
    new = grow(repo, "c.txt")
    assert roots(url, options) == (new,)
    offline = CrawlOptions(tmp_path / "cache", offline=True)
    assert roots(url, offline) == (new,)
    assert roots(f"{url}@{old}", options) == (first,)  # from the cache: no branch of a shallow clone reaches it
    spec = parse_plain(url, Path("/"))
    fetch_commits(spec, new, tmp_path / "history", 60)
    kinds = git(tmp_path / "history", "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)").split()
    assert set(kinds) == ({"commit"} if filters == "true" else {"commit", "tree", "blob"})
    assert "127.0.0.1" not in (tmp_path / "history" / "config").read_text()


def test_a_remote_history_that_cannot_be_had(served, tmp_path):
    url, repo = served
    options = CrawlOptions(tmp_path / "cache")
    offline = CrawlOptions(tmp_path / "cache", offline=True)
    spec = parse_plain(url, Path("/"))
    with open_snapshot(spec, options) as snapshot:
        with pytest.raises(CrawlError, match="history is not in the cache; run once without --offline"):
            root_commits(spec, snapshot, offline)
        repo.rename(tmp_path / "moved")
        with pytest.raises(CrawlError, match="cannot be fetched"):
            root_commits(spec, snapshot, options)
        (tmp_path / "moved").rename(repo)
        (first,) = root_commits(spec, snapshot, options)
        (kept,) = snapshot.git_dir.glob("repo2ctx-roots/*.json")
        for damage in ("", "{", '["x"]', "{}"):
            kept.write_text(damage)
            with pytest.raises(CrawlError, match="history is not in the cache"):
                root_commits(spec, snapshot, offline)
        assert root_commits(spec, snapshot, options) == (first,)
    assert list((tmp_path / "cache" / "git").glob("*.history*")) == []


def test_a_server_with_a_shallow_history_tells_no_root(served, tmp_path):
    url, repo = served
    for name in ("b", "c", "d"):
        grow(repo, name)
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{repo}", "cut")
    assert roots(url.replace("/repo/", "/cut/"), CrawlOptions(tmp_path / "cache")) == ()
