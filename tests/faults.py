"""Runs a build in processes that are watched, killed and refused disk space from within (`injected.py`), and works out what a power
cut would leave behind.

Nothing in the program knows of this: a `sitecustomize.py` on PYTHONPATH loads it into every Python process.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from test_build import ROOT

TESTS = Path(__file__).parent


@dataclass
class Run:
    """What became of one run of the command."""

    returncode: int
    stderr: str
    stdout: str
    log: list[dict]

    @property
    def labels(self) -> list[str]:
        """The moments of this run, each once, in order."""
        return list(dict.fromkeys(entry["label"] for entry in self.log))


@dataclass
class Watched:
    """A folder that builds write to under watch. place: holds the OUTs, and nothing else."""

    folder: Path
    place: Path = field(init=False)

    def __post_init__(self) -> None:
        self.place = self.folder / "place"
        self.place.mkdir(parents=True)

    def run(
        self,
        arguments: Sequence[object],
        kill: str | None = None,
        kill_after_s: float | None = None,
        **faults: object,
    ) -> Run:
        """Run `repo2ctx ARGUMENTS`. kill: the label at which every process is killed; faults: others of `injected.py`."""
        notes, site = self.folder / "notes", self.folder / "site"
        shutil.rmtree(notes, ignore_errors=True)
        for folder in (notes, site):
            folder.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text(
            f"import sys\nsys.path.append({str(TESTS)!r})\nimport injected\ninjected.install()\n"
        )
        self.before = _state(self.place)
        process = subprocess.Popen(
            [sys.executable, "-m", "repo2ctx.cli", *map(str, arguments)],
            cwd=ROOT,
            start_new_session=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]),
                "FAULTS_PLACE": str(self.place.resolve()),
                "FAULTS_NOTES": str(notes),
                "FAULTS_KILL": json.dumps(kill),
                **{f"FAULTS_{name.upper()}": json.dumps(value) for name, value in faults.items()},
            },
        )
        try:
            stdout, stderr = process.communicate(timeout=kill_after_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            stdout, stderr = process.communicate()
        _wait_for_session(process.pid)
        path = notes / "log"
        log = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return Run(process.returncode, stderr, stdout, log)

    def lose_unsynced_data(self, log: Sequence[dict]) -> None:
        """What a power cut may leave: names as they are, files without what was not synced."""
        sizes, _ = _synced(log, self.before)
        for path in self.place.rglob("*"):
            if path.is_file() and not path.is_symlink():
                durable = sizes.get(path.stat().st_ino, 0)
                if path.stat().st_size > durable:
                    os.truncate(path, durable)

    def lose_all_unsynced(self, log: Sequence[dict]) -> None:
        """What a power cut may leave: only names whose directory was synced, and files as they were synced."""
        sizes, names = _synced(log, self.before)
        graves = self.folder / "notes" / "graves"
        files = {int(p.name): p for p in graves.iterdir()} if graves.exists() else {}
        files |= {p.stat().st_ino: p for p in self.place.rglob("*") if p.is_file() and not p.is_symlink()}
        after = self.folder / "after"

        def restore(folder: Path, inode: int) -> None:
            folder.mkdir()
            for name, below in names.get(inode, {}).items():
                if below in names:
                    restore(folder / name, below)
                elif below in sizes:
                    (folder / name).write_bytes(files[below].read_bytes()[: sizes[below]])

        restore(after, self.place.stat().st_ino)
        shutil.rmtree(self.place)
        after.rename(self.place)


def _state(place: Path) -> tuple[dict[int, int], dict[int, dict[str, int]]]:
    """(inode -> size of each file, inode -> names of each folder): what is taken to have lasted before a run."""
    sizes, names = {}, {}
    for folder, below, files in os.walk(place):
        entries = {name: os.lstat(Path(folder) / name) for name in (*below, *files)}
        names[Path(folder).stat().st_ino] = {name: status.st_ino for name, status in entries.items()}
        sizes |= {entries[name].st_ino: entries[name].st_size for name in files}
    return sizes, names


def _synced(log: Sequence[dict], before: tuple[dict, dict]) -> tuple[dict[int, int], dict[int, dict[str, int]]]:
    """As `_state`: what has lasted after a run with this log."""
    sizes, names = dict(before[0]), dict(before[1])
    for entry in (e for e in log if e["when"] == "after"):
        match entry["kind"]:
            case "open":
                sizes[entry["ino"]] = 0
                names.pop(entry["ino"], None)
            case "mkdir":
                names[entry["ino"]] = {}
                sizes.pop(entry["ino"], None)
            case "fsync" if "names" in entry:
                names[entry["ino"]] = entry["names"]
            case "fsync":
                sizes[entry["ino"]] = entry["size"]
    return sizes, names


def _wait_for_session(leader: int) -> None:
    """Until every process of the session is gone: what writes on would spoil what is looked at next."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        left = 0
        for process in psutil.process_iter():
            try:
                left += os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE
            except (ProcessLookupError, psutil.NoSuchProcess):
                continue
        if not left:
            return
        time.sleep(0.02)
    raise AssertionError(f"processes of session {leader} do not end")
