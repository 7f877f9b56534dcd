"""One build at a time in a directory, however many come and go, and no lock is left behind."""

import fcntl
import json
import os
import subprocess
import sys
from collections import Counter

import pytest
from conftest import make_repository
from test_build import ROOT, run

from repo2ctx import locking
from repo2ctx.errors import OutputError
from repo2ctx.locking import HeldElsewhereError, held
from repo2ctx.state import WORK, clear, locked, scratch

# What an unchanged build does, over and over; a holder shows by a folder that only one can make.
TURNS = """
import collections, json, sys, time
from pathlib import Path
from repo2ctx.errors import OutputError
from repo2ctx.state import clear, explained, locked, scratch

out, turns = Path(sys.argv[1]), int(sys.argv[2])
mark = out.with_name("holder")
said = collections.Counter()
for _ in range(turns):
    try:
        with explained(out), locked(out):
            try:
                mark.mkdir()
            except FileExistsError:
                said["two hold the lock"] += 1
                continue
            scratch(out)
            time.sleep(0.001)
            mark.rmdir()
            clear(out)
        said["done"] += 1
    except OutputError as error:
        said["in use" if "another build is at work here" in str(error) else str(error)] += 1
print(json.dumps(said))
"""

BUILDS = """
import collections, json, sys
from pathlib import Path
from repo2ctx import pipeline
from repo2ctx.config import BuildConfig
from repo2ctx.crawl import CrawlOptions
from repo2ctx.errors import OutputError
from repo2ctx.repolist import read_list
sys.path.append("tests")
from test_build import Silent

out, turns = Path(sys.argv[1]), int(sys.argv[2])
specs, _ = read_list(out.with_name("list.txt"))
config = BuildConfig.model_validate({"pack": {"lengths": "2k,8k"}})
tokenizer = pipeline.load_tokenizer(config.tokens)
pipeline.load_tokenizer = lambda tokens: tokenizer  # once: what follows is to meet
said = collections.Counter()
for _ in range(turns):
    try:
        result = pipeline.build(specs, config, out, CrawlOptions(None), 1, Silent())
        said["done" if result.unchanged else "built"] += 1
    except OutputError as error:
        said["in use" if "another build is at work here" in str(error) else str(error)] += 1
print(json.dumps(said))
"""


def together(program: str, out, turns: int, processes: int = 4) -> Counter:
    """What several processes that do the same in one directory say, counted."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(out), str(turns)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(processes)
    ]
    said = Counter()
    for process in running:
        stdout, stderr = process.communicate(timeout=300)
        assert process.returncode == 0, stderr.decode()
        said.update(json.loads(stdout))
    return said


def test_many_processes_take_the_lock_in_turns(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    said = together(TURNS, out, 150)
    assert said.keys() <= {"done", "in use"}, said
    assert said["done"] >= 3
    assert not list(out.iterdir())


def test_builds_that_run_side_by_side_leave_a_finished_one_as_it_is(tmp_path):
    repo = make_repository(
        tmp_path / "repo", {"README.md": "# N\n\nKeeps notes and finds them again.\n", "a.py": "x = 1\n"}
    )
    run(tmp_path, [str(repo)])
    out = tmp_path / "out"
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    said = together(BUILDS, out, 60, processes=3)
    assert said.keys() <= {"done", "in use"}, said
    assert said["done"] >= 3
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_a_lock_file_that_was_removed_while_it_was_opened_is_no_lock(tmp_path, monkeypatch):
    """Its holder goes between our open and our lock, and a third takes a file of the same name."""
    path, others, flock = tmp_path / "work" / "lock", [], fcntl.flock

    def slow(file, how):
        if not others:
            path.unlink()
            others.append(path.open("w"))
            flock(others[0], fcntl.LOCK_EX)
        flock(file, how)

    monkeypatch.setattr(locking.fcntl, "flock", slow)
    with pytest.raises(HeldElsewhereError), held(path):
        pass
    monkeypatch.undo()
    assert path.exists(), "the lock of another was removed"
    others[0].close()
    with held(path):
        assert path.exists()
    assert not list(tmp_path.iterdir())


def test_the_lock_is_held_after_the_work_is_cleared(tmp_path):
    with locked(tmp_path):
        (scratch(tmp_path) / "file").write_text("x")
        (tmp_path / WORK / "state.json").write_text("{}")
        clear(tmp_path)
        assert [path.name for path in (tmp_path / WORK).iterdir()] == ["lock"]
        with pytest.raises(OutputError, match="another build is at work here"), locked(tmp_path):
            pass
    assert not list(tmp_path.iterdir())


def test_what_a_refused_build_found_stays_and_the_lock_of_another_too(tmp_path):
    with locked(tmp_path):
        (tmp_path / WORK / "state.json").write_text("{}")
    assert {path.name for path in (tmp_path / WORK).iterdir()} == {"lock", "state.json"}
    with locked(tmp_path):  # the folder goes, and another build begins one of the same name
        clear(tmp_path)
        (tmp_path / WORK).rename(tmp_path / "moved")
        (tmp_path / WORK).mkdir()
        (tmp_path / WORK / "lock").write_text("")
    assert (tmp_path / WORK / "lock").exists()


def test_a_process_that_cannot_start_is_not_told_as_another_build(tmp_path):
    """EAGAIN is what both a lock that is held and a limit of processes give."""
    with pytest.raises(BlockingIOError), locked(tmp_path):
        raise BlockingIOError("Resource temporarily unavailable")
