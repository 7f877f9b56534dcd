"""Loaded by every Python process of a build under test (`faults.py` says how): it notes what each does to the files under one folder,
and at a chosen moment kills them all, as a power cut would, or has the disk refuse.

Standard library only, and nothing of ours: it must not change what the build itself imports.
"""

import builtins
import fcntl
import io
import json
import os
import re
import signal
import stat
import sys
from pathlib import Path

PLACE = os.environ.get("FAULTS_PLACE", "")  # the folder that is watched
NOTES = os.environ.get("FAULTS_NOTES", "")  # the folder that holds our log, and what was removed
KILL = json.loads(os.environ.get("FAULTS_KILL", "null"))  # a label at which everything is killed
LEADER = json.loads(os.environ.get("FAULTS_LEADER", "null"))  # one at which the first process is killed, by another
FAIL = json.loads(os.environ.get("FAULTS_FAIL", "null"))  # [pattern of labels, errno]
MOVE = json.loads(os.environ.get("FAULTS_MOVE", "null"))  # [label, a folder, where it goes at that moment]

_real = {
    name: getattr(os, name) for name in ("fsync", "rename", "replace", "unlink", "remove", "rmdir", "mkdir", "open")
}
_open = io.open


def label(kind, path):
    """What is done to what kind of thing: names that differ from unit to unit are left out."""
    path = os.path.relpath(path, PLACE)
    path = re.sub(r"[0-9a-f]{20}", "UNIT", path)
    path = re.sub(r"\.\d+\.partial", ".PID.partial", path)
    return f"{kind} {re.sub(r'repo2ctx-[^/]*.*', 'TEMPORARY', path)}"


def _watched(path):
    return path == PLACE or path.startswith(PLACE + "/")


def _path(path, dir_fd=None):
    path = os.fsdecode(path)
    if dir_fd is not None:
        path = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), path)
    return os.path.abspath(path)


def _note(when, kind, path, **more):
    """Write a line of the log, then do what is to be done at this moment."""
    said = label(f"{when} {kind}", path)
    line = json.dumps({"label": said, "when": when, "kind": kind, "path": path, "pid": os.getpid(), **more}) + "\n"
    log = _real["open"](os.path.join(NOTES, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    fcntl.flock(log, fcntl.LOCK_EX)  # closed with the process, if that is killed here
    os.write(log, line.encode())
    if said == KILL:
        os.killpg(os.getsid(0), signal.SIGKILL)
        signal.pause()
    os.close(log)
    if said == LEADER:
        os.kill(os.getsid(0), signal.SIGKILL)
    if MOVE and said == MOVE[0] and os.path.exists(MOVE[1]):
        _real["rename"](*MOVE[1:])
    if when == "before" and FAIL and re.search(FAIL[0], said):
        raise OSError(FAIL[1], os.strerror(FAIL[1]), *([path] if kind in ("open", "mkdir", "rename") else []))


def _bury(path):
    """Keep what a removal or a rename takes away: it comes back if that does not last."""
    try:
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            _real["open"](path, os.O_RDONLY)  # held, so that nothing new gets its number
        elif stat.S_ISREG(status.st_mode):
            os.link(path, os.path.join(NOTES, "graves", str(status.st_ino)))
    except (FileNotFoundError, FileExistsError):
        pass


def _fsync(descriptor):
    descriptor = descriptor if isinstance(descriptor, int) else descriptor.fileno()
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    if not _watched(path):
        return _real["fsync"](descriptor)
    _note("before", "fsync", path)
    _real["fsync"](descriptor)
    status = os.fstat(descriptor)
    known = {"ino": status.st_ino, "size": status.st_size}
    if stat.S_ISDIR(status.st_mode):
        known["names"] = {entry.name: entry.inode() for entry in os.scandir(path)}
    _note("after", "fsync", path, **known)


def _rename(kind):
    def rename(source, target, *, src_dir_fd=None, dst_dir_fd=None):
        source_path, target_path = _path(source, src_dir_fd), _path(target, dst_dir_fd)
        if not _watched(source_path):
            return _real[kind](source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        _note("before", "rename", target_path, source=source_path)
        _bury(target_path)
        _real[kind](source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        status = os.lstat(target_path)
        folder = stat.S_ISDIR(status.st_mode)
        _note("after", "rename", target_path, source=source_path, ino=status.st_ino, folder=folder)

    return rename


def _removal(name, kind):
    def remove(path, *, dir_fd=None):
        full = _path(path, dir_fd)
        if not _watched(full):
            return _real[name](path, dir_fd=dir_fd)
        _note("before", kind, full)
        _bury(full)
        _real[name](path, dir_fd=dir_fd)
        _note("after", kind, full)

    return remove


def _mkdir(path, mode=0o777, *, dir_fd=None):
    full = _path(path, dir_fd)
    if not _watched(full):
        return _real["mkdir"](path, mode, dir_fd=dir_fd)
    _note("before", "mkdir", full)
    _real["mkdir"](path, mode, dir_fd=dir_fd)
    _note("after", "mkdir", full, ino=os.lstat(full).st_ino)


class _Written:
    """A file that is being written: its writes are noted."""

    def __init__(self, file, path):
        self._file, self._path = file, path

    def write(self, data):
        _note("before", "write", self._path, ino=os.fstat(self._file.fileno()).st_ino)
        return self._file.write(data)

    def flush(self):
        self._file.flush()

    def __enter__(self):
        self._file.__enter__()
        return self

    def __exit__(self, *error):
        return self._file.__exit__(*error)

    def __getattr__(self, name):
        return getattr(self._file, name)


def _opened(file, mode="r", *args, **kwargs):
    if isinstance(file, int) or not set(mode) & set("wax+") or not _watched(_path(file)):
        return _open(file, mode, *args, **kwargs)
    path = _path(file)
    _note("before", "open", path)
    found = _open(file, mode, *args, **kwargs)
    _note("after", "open", path, ino=os.fstat(found.fileno()).st_ino)
    return _Written(found, path)


def install():
    """Take the place of what reaches the disk."""
    if not PLACE or "repo2ctx.sandbox" in " ".join(sys.orig_argv):
        return
    Path(NOTES, "graves").mkdir(exist_ok=True)
    os.fsync, os.mkdir = _fsync, _mkdir
    os.rename, os.replace = _rename("rename"), _rename("replace")
    os.unlink, os.remove, os.rmdir = (
        _removal("unlink", "unlink"),
        _removal("remove", "unlink"),
        _removal("rmdir", "rmdir"),
    )
    io.open = builtins.open = _opened
