"""Disks that are full, break, become read-only or vanish under a build: one line that says the way out, and the same command goes on.

The disk refuses from within (`injected.py`) at every stage; where user namespaces are permitted, a small tmpfs is really full.
"""

import errno
import json
import os
import re
import subprocess
import sys

import pytest
from conftest import git, make_repository
from faults import Watched
from test_build import ROOT, Silent, command, hashes
from test_crawl import served  # noqa: F401 - a fixture

from repo2ctx.config import BuildConfig
from repo2ctx.crawl import CrawlOptions
from repo2ctx.pipeline import build
from repo2ctx.repolist import read_list

STAGES = (
    r"mkdir out/.build$",
    r"open out/.build/lock",
    r"write out/.build/.state.json",
    r"mkdir out/.build/scratch$",
    r"mkdir out/.build/units/\.UNIT",
    r"mkdir out/.build/scratch/TEMPORARY",
    r"open \S*units/\S*/spool/",
    r"write \S*units/\S*/spool/",
    r"write \S*units/\S*/files/",
    r"fsync \S*units/\S*/files/\S*partial",
    r"write \S*units/\S*repository.json",
    r"write \S*units/\S*summary.json",
    r"rename out/.build/units/UNIT$",
    r"write out/repositories/",
    r"write out/files/",
    r"fsync out/edges/\S*partial",
    r"write \S*documents/\S*arrow",
    r"write \S*documents/\S*summary.json",
    r"mkdir out/packed/2k/train",
    r"write out/packed/2k/train/",
    r"write out/.README.md",
    r"fsync out/.manifest.json",
    r"rename out/manifest.json",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """(list file, hashes of the undisturbed build)."""
    folder = tmp_path_factory.mktemp("whole")
    repos = [
        make_repository(
            folder / name,
            {
                "pyproject.toml": f'[project]\nname = "n"\ndescription = "Keeps {name} in files and finds them again"\n',
                "a.py": f"x = '{name}'\n" * 400,
                "b.py": "import a\n",
            },
        )
        for name in ("notes", "songs")
    ]
    (folder / "list.txt").write_text("".join(f"{repo}\n" for repo in repos))
    done = command(*arguments(folder / "list.txt", folder / "out"))
    assert done.returncode == 0, done.stderr
    return folder / "list.txt", hashes(folder / "out")


def arguments(listed, out):
    return ["build", "--repos", listed, "--lengths", "2k,8k", "--workers", 1, "--no-cache", "--quiet", "--out", out]


def refused(stderr, expected) -> None:
    """One line, which says what to do."""
    assert len(stderr.splitlines()) == 1, stderr
    assert re.search(expected, stderr), stderr
    assert stderr.startswith("repo2ctx: ")
    assert "run the same command again" in stderr


@pytest.mark.parametrize(
    "stages", [STAGES[1::3], *(pytest.param(STAGES[i::3], marks=pytest.mark.slow) for i in (0, 2))]
)
def test_a_disk_that_is_full_at_any_stage_ends_the_build_and_it_goes_on(whole, tmp_path, stages):
    listed, wanted = whole
    watched = Watched(tmp_path / "watched")
    out = watched.place / "out"
    for stage in stages:
        failed = watched.run(arguments(listed, out), fail=(f"^before {stage}", errno.ENOSPC))
        assert failed.returncode == 1, (stage, failed.stderr)
        refused(failed.stderr, "No space left on device.*free some space")
        assert not (out / "manifest.json").exists()
    done = watched.run(arguments(listed, out))
    assert (done.returncode, done.stderr) == (0, "")
    assert hashes(out) == wanted


@pytest.mark.parametrize(
    ("number", "said"),
    [
        pytest.param(errno.EDQUOT, "quota exceeded.*free some space", marks=pytest.mark.slow),
        pytest.param(errno.EIO, "Input/output error.*check the disk", marks=pytest.mark.slow),
        pytest.param(errno.EROFS, "Read-only.*make it writable", marks=pytest.mark.slow),
        (errno.EACCES, "Permission denied.*make it writable"),
    ],
)
def test_other_things_that_a_disk_says(whole, tmp_path, number, said):
    listed, wanted = whole
    watched = Watched(tmp_path / "watched")
    out = watched.place / "out"
    stages = [r"write \S*units/\S*/files/", r"open out/packed/2k/train/"]
    for stage in stages if number != errno.EACCES else stages[1:]:
        failed = watched.run(arguments(listed, out), fail=(f"^before {stage}", number))
        assert failed.returncode == 1, (stage, failed.stderr)
        refused(failed.stderr, said)
    assert watched.run(arguments(listed, out)).returncode == 0
    assert hashes(out) == wanted


@pytest.mark.parametrize(
    "moment",
    [
        "after open out/.build/units/.UNIT.PID.partial/files/.00000.arrow.partial",
        pytest.param("after rename out/.build/units/UNIT", marks=pytest.mark.slow),
        pytest.param("before open out/files/.00000.arrow.partial", marks=pytest.mark.slow),
        pytest.param("before fsync out/packed/2k/train", marks=pytest.mark.slow),
        "before open out/.manifest.json.partial",
    ],
)
def test_an_out_that_vanishes_is_told_and_not_made_anew(whole, tmp_path, moment):
    listed, wanted = whole
    watched = Watched(tmp_path / "watched")
    out, gone = watched.place / "out", tmp_path / "gone"
    failed = watched.run(arguments(listed, out), move=(moment, str(out), str(gone)))
    assert gone.exists(), "the moment does not come"
    assert failed.returncode == 1, failed.stderr
    refused(failed.stderr, "was removed, moved or unmounted")
    assert not out.exists()
    gone.rename(out)
    assert watched.run(arguments(listed, out)).returncode == 0
    assert hashes(out) == wanted


# A disk that is really full --------------------------------------------------------------------------------

NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]


def permitted() -> bool:
    """Whether we may mount what only we see."""
    try:
        script = 'mount -t tmpfs none "$0"'
        return not subprocess.run(
            [*NAMESPACE, "bash", "-c", script, "/mnt"], capture_output=True, check=False
        ).returncode
    except OSError:
        return False


needs_mounts = pytest.mark.skipif(
    not permitted(), reason="no mounts in user namespaces here; the tests above inject what a disk says"
)


def in_namespace(script: str, *args: object) -> subprocess.CompletedProcess[str]:
    """Run a script in a mount namespace of its own; $PYTHON is ours."""
    env = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*NAMESPACE, "bash", "-ec", script, *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=env,
    )


@needs_mounts
def test_a_small_disk_that_is_made_larger_bit_by_bit(whole, tmp_path):
    """Each run ends a little later; the last gives the same bytes."""
    listed, wanted = whole
    (tmp_path / "disk").mkdir()
    script = """
        disk=$0; shift_to=$1; shift
        mount -t tmpfs -o size=16k tmpfs "$disk"
        mount -o remount,ro "$disk"
        for size in ro 16k 64k 128k 8m; do
            [ $size = ro ] || mount -o "remount,rw,size=$size" "$disk"
            code=0; "$PYTHON" -m repo2ctx.cli "$@" > /dev/null || code=$?
            echo "$size $code"
        done
        cp -r "$disk/out" "$shift_to"
    """
    done = in_namespace(script, tmp_path / "disk", tmp_path / "copy", *arguments(listed, tmp_path / "disk" / "out"))
    assert done.returncode == 0, done.stderr
    ends = dict(line.split() for line in done.stdout.splitlines())
    assert ends.pop("8m") == "0"
    assert ends.pop("ro") == "1"
    first, *lines = done.stderr.splitlines()
    refused(first, "Read-only file system.*make it writable")
    assert len(lines) == list(ends.values()).count("1") >= 3  # a full disk each, and nothing else said
    for line in lines:
        refused(line, "No space left on device.*free some space")
    assert hashes(tmp_path / "copy") == wanted


@needs_mounts
def test_a_full_cache_is_named(served, tmp_path):  # noqa: F811
    url, repo = served
    (repo / "large.bin").write_bytes(os.urandom(300_000))
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "large")
    (tmp_path / "list.txt").write_text(f"{url}\n")
    (tmp_path / "cache").mkdir()
    script = """
        disk=$0
        mount -t tmpfs -o size=120k tmpfs "$disk"
        "$PYTHON" -m repo2ctx.cli "$@" || echo failed $?
        mount -o remount,size=8m "$disk"
        "$PYTHON" -m repo2ctx.cli "$@" > /dev/null
    """
    done = in_namespace(
        script, tmp_path / "cache", "build", "--repos", tmp_path / "list.txt", "--out", tmp_path / "out", "--lengths", "2k",
        "--workers", 1, "--quiet", "--cache", tmp_path / "cache",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "failed 1\n"
    refused(done.stderr, "cache/git/.*no room for .*free some space, or give another --cache")
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["failures"] == []


@needs_mounts
def test_a_ledger_and_answers_without_room_end_the_build(tmp_path):
    (tmp_path / "disk").mkdir()
    script = """
        mount -t tmpfs -o size=64k tmpfs "$0"
        head -c 1m /dev/zero > "$0/filler" 2> /dev/null || true
        "$PYTHON" - "$0" <<'PYTHON'
import sys
from pathlib import Path
from repo2ctx.config import TeacherConfig
from repo2ctx.errors import TeacherUnavailableError
from repo2ctx.teacher_client import Answer, Client
from repo2ctx.teacher_ledger import Ledger

disk = Path(sys.argv[1])
ledger = Ledger(disk / "spent.sqlite", 1000)
client = Client(TeacherConfig(model="m"), None, disk / "answers", ledger)
for what in (lambda: ledger.reserve(5), lambda: client._keep("ab" * 32, Answer("a" * 9000, "stop", 1, 1, False, "m"))):
    try:
        what()
    except TeacherUnavailableError as error:
        assert error.ends_build
        print(error)
PYTHON
    """
    done = in_namespace(script, tmp_path / "disk")
    assert done.returncode == 0, done.stderr
    ledger, answer = done.stdout.splitlines()
    assert re.search(r"spent\.sqlite: cannot be used \(.*\); free some space", ledger)
    assert re.search(r"answers/ab/.*cannot be kept \(No space left on device\); make room", answer)


def test_git_that_was_killed_while_it_fetched_is_no_hindrance(served, tmp_path):  # noqa: F811
    url, repo = served
    (tmp_path / "list.txt").write_text(f"{url}\n")
    specs, _ = read_list(tmp_path / "list.txt")
    config = BuildConfig.model_validate({"pack": {"lengths": "2k"}})
    go = lambda out: build(specs, config, tmp_path / out, CrawlOptions(tmp_path / "cache"), 1, Silent())  # noqa: E731
    assert not go("one").failures
    (git_dir,) = (tmp_path / "cache" / "git").glob("*.git")
    pin = next(p for p in (git_dir / "refs" / "repo2ctx").iterdir())
    for lock in (git_dir / "shallow.lock", git_dir / "config.lock", pin.with_name(pin.name + ".lock")):
        lock.write_text("")
    (repo / "later.txt").write_text("later")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "later")
    assert not go("two").failures
    rows = json.loads((tmp_path / "two" / "manifest.json").read_text())["repositories"]
    assert [row["commit"] for row in rows.values()] == [git(repo, "rev-parse", "HEAD").strip()]
