"""A commit's files, straight from git's object store: listed by one `ls-tree`, read by one `cat-file --batch`.

Nothing is checked out, so no filter, attribute or symlink can act. Blobs stream: memory is bounded by the
largest blob asked for. A blob that is missing or damaged is reported as such and the rest go on.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO

from repo2ctx import safegit
from repo2ctx.errors import SnapshotError
from repo2ctx.records import TreeEntry

SYMLINK, SUBMODULE = "120000", "160000"
MAX_ENTRIES = 2_000_000
_MAX_NAMES_BYTES = 1 << 29
_MAX_PATH_BYTES = 4096  # PATH_MAX: a longer one could not be checked out


class Snapshot:
    """A commit in a git directory of ours."""

    def __init__(self, git_dir: Path, commit: str):
        self.git_dir = git_dir
        self.commit = commit

    def entries(self) -> list[TreeEntry]:
        """Every entry of the commit's tree but directories, in git's order. Raises SnapshotError if a tree is
        missing or damaged.

        A name that is not UTF-8 gets its stray bytes written as `\\xNN` in `path`.
        """
        entries = []
        size = 0
        for record in self._tree_records():
            head, _, raw_path = record.partition(b"\t")
            mode, _, blob = head.decode().split(" ")
            parts = raw_path.split(b"/")
            usable = len(raw_path) <= _MAX_PATH_BYTES and not any(part in (b"", b".", b"..") for part in parts)
            if len(raw_path) > _MAX_PATH_BYTES:
                raw_path = raw_path[:64] + b"... sha256 " + hashlib.sha256(raw_path).hexdigest().encode()
            entries.append(TreeEntry(raw_path.decode("utf-8", "backslashreplace"), raw_path, mode, blob, usable))
            size += len(raw_path)
            if len(entries) > MAX_ENTRIES or size > _MAX_NAMES_BYTES:
                raise SnapshotError(f"commit {self.commit[:12]} holds more than {MAX_ENTRIES:,} files; leave it out")
        return entries

    def _tree_records(self) -> Iterator[bytes]:
        """`ls-tree`'s records as they come: a tree made by hand can list more than any memory holds."""
        arguments = ("ls-tree", "-r", "-z", "--full-tree", self.commit)
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                safegit.command(self.git_dir, *arguments),
                env=safegit.reading_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
            assert process.stdout is not None
            try:
                rest = b""
                while chunk := process.stdout.read(1 << 20):
                    *records, rest = (rest + chunk).split(b"\0")
                    yield from records
                if process.wait():
                    errors.seek(0)
                    said = (
                        errors.read(1000).decode("utf-8", "replace").strip() or f"git ended with {process.returncode}"
                    )
                    raise SnapshotError(
                        f"the tree of commit {self.commit[:12]} cannot be read ({said}); fetch the repository anew, "
                        "or leave it out"
                    )
            finally:
                process.kill()
                process.wait()
                process.stdout.close()

    @cached_property
    def sized(self) -> list[tuple[TreeEntry, int | None]]:
        """Every entry with the bytes of its blob: None for a submodule, and where the store lacks it. Listed once."""
        entries = self.entries()
        sizes = iter(self.sizes([entry.blob for entry in entries if entry.mode != SUBMODULE]))
        return [(entry, None if entry.mode == SUBMODULE else next(sizes)) for entry in entries]

    def sizes(self, blobs: Sequence[str]) -> list[int | None]:
        """Bytes of each blob, None where the store lacks it; reads headers only."""
        sizes: list[int | None] = []
        for found in self._batch(blobs, "--batch-check"):
            sizes.append(found if isinstance(found, int) else None)
        return sizes

    def read(self, blobs: Sequence[str]) -> Iterator[bytes | None]:
        """The content of each blob, in order; None where it is missing or damaged."""
        for found in self._batch(blobs, "--batch"):
            yield found if isinstance(found, bytes) else None

    def _batch(self, blobs: Sequence[str], mode: str) -> Iterator[bytes | int | None]:
        """Answers for each blob. A damaged object ends git's process: it is skipped, and a new one goes on."""
        done = 0
        while done < len(blobs):
            for answer in self._batch_until_damage(blobs[done:], mode):
                yield answer
                done += 1
            if done < len(blobs):
                yield None
                done += 1

    def _batch_until_damage(self, blobs: Sequence[str], mode: str) -> Iterator[bytes | int | None]:
        process = subprocess.Popen(
            safegit.command(self.git_dir, "cat-file", mode, "--buffer"),
            env=safegit.reading_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        # git answers while we ask: a thread asks, or both sides could wait on full pipes.
        asking = threading.Thread(target=_write_lines, args=(process.stdin, blobs), daemon=True)
        asking.start()
        try:
            for _ in blobs:
                header = process.stdout.readline()
                if not header.endswith(b"\n"):
                    return
                words = header.split()
                if len(words) != 3 or words[1] != b"blob":
                    if len(words) == 3 and mode == "--batch":
                        process.stdout.read(int(words[2]) + 1)
                    yield None
                    continue
                size = int(words[2])
                if mode == "--batch-check":
                    yield size
                    continue
                content = process.stdout.read(size)
                if len(content) < size:
                    return
                process.stdout.read(1)
                yield content
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            asking.join()


def _write_lines(stream: IO[bytes], lines: Sequence[str]) -> None:
    try:
        for text in lines:
            stream.write(text.encode() + b"\n")
        stream.close()
    except (BrokenPipeError, ValueError):
        pass  # the reader has stopped early
