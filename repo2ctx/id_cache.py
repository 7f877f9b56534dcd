"""Token ids kept on disk, by text and tokenizer, so that no text is tokenized twice: one SQLite file for all processes.

An entry is believed only if its checksum is right for this very text, tokenizer and code that runs it. The cache is never
in the way: a full disk, a read-only folder or a file that somebody else has damaged mean that nothing is kept, and `notice`
says so. A damaged file is removed as soon as no other process has it open. When the file grows over its bound, the entries
used least recently go first.

Cost: about a third of a byte for a byte of text. A kept text comes back several times faster than it is tokenized
(benchmarks/tokenizer_speed.py); texts under a kilobyte do not, so they are left out. Not for a folder that several
machines share: SQLite's write-ahead log needs one machine.
"""

from __future__ import annotations

import fcntl
import hashlib
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from repo2ctx.tokens import Tokenizer

Ids = npt.NDArray[np.int32]
MAX_BYTES = 8 << 30
_LEAST_TEXT = 1024  # characters
_BATCH_BYTES = 4 << 20  # written at a time
_USED_AGAIN = 3600  # seconds after which the use of an entry is noted again
_CHECKSUM = 8  # bytes
_WAIT_S = 5.0  # for other writers; then what was to be written is dropped
_CODEC = pa.Codec("zstd", compression_level=1)
_TABLES = (
    "CREATE TABLE IF NOT EXISTS ids (key BLOB PRIMARY KEY, used INTEGER NOT NULL, value BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS by_use ON ids (used)",
)
# What says nothing about the file's content. Any other error of SQLite's means that it is not as we wrote it.
_OUTSIDE = ("BUSY", "LOCKED", "FULL", "READONLY", "CANTOPEN", "IOERR", "PERM", "NOMEM", "AUTH", "INTERRUPT", "PROTOCOL")


class IdCache:
    """Ids of texts, kept in `folder`; use as a context manager, one per process, or call `flush` now and then.

    max_bytes: bound of the file; it may be passed by what one process writes at a time. `who`, in what follows, says all that
    decides the ids of a text beside the text.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES):
        self.path = folder / "ids.sqlite"
        self.notice = ""
        self.hits = self.misses = 0
        self._max_bytes = max_bytes
        self._waiting: dict[bytes, bytes] = {}
        self._waiting_bytes = 0
        self._used: set[bytes] = set()
        self._wrong: set[bytes] = set()
        self._lock: IO[bytes] | None = None
        self._db: sqlite3.Connection | None = None
        try:
            self._open(folder)
        except (sqlite3.Error, OSError) as error:
            self._stop(error)

    def __enter__(self) -> IdCache:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def get(self, who: str, text: str) -> Ids | None:
        """The ids of a text, or None if they are not kept, or not whole."""
        if self._db is None:
            return None
        key = _key(who, text)
        try:
            row = self._db.execute("SELECT value, used FROM ids WHERE key = ?", (key,)).fetchone()
        except (sqlite3.Error, OSError) as error:
            self._stop(error)
            return None
        value = self._waiting.get(key) if row is None else row[0]
        ids = None if value is None else _unpack(key, value)
        if ids is None:
            self.misses += 1
            if row is not None:
                self._wrong.add(key)
            return None
        self.hits += 1
        if row is not None and row[1] < time.time() - _USED_AGAIN:
            self._used.add(key)
        return ids

    def put(self, who: str, text: str, ids: Ids) -> None:
        """Keep the ids of a text. They are on disk after `flush` or `close`, or when enough have come together."""
        if self._db is None:
            return
        key = _key(who, text)
        value = _pack(key, ids)
        self._waiting_bytes += len(value)
        self._waiting[key] = value
        if self._waiting_bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what waits; what cannot be written within seconds, since others write, is dropped."""
        waiting, used, wrong = self._waiting, self._used, self._wrong
        self._waiting, self._used, self._wrong, self._waiting_bytes = {}, set(), set(), 0
        if self._db is None or not (waiting or used or wrong):
            return
        now = int(time.time())
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("DELETE FROM ids WHERE key = ?", [(key,) for key in wrong])
            self._db.executemany("UPDATE ids SET used = ? WHERE key = ?", [(now, key) for key in used])
            rows = [(key, now, value) for key, value in waiting.items()]
            self._db.executemany("INSERT OR REPLACE INTO ids VALUES (?, ?, ?)", rows)
            self._make_room()
            self._db.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            if not _named(error, "SQLITE_BUSY"):
                self._stop(error)

    def close(self) -> None:
        """Write what waits and let go of the file."""
        self.flush()
        self._let_go()

    def _open(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / "ids.lock").open("ab")
        try:  # alone: now is the time to remove what was found damaged
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._damaged.exists():
                self._remove()
        except BlockingIOError:
            pass
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        if self._damaged.exists():
            raise OSError("it is damaged, and another process has it open")
        self._db = sqlite3.connect(self.path, timeout=_WAIT_S, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        for statement in _TABLES:
            self._db.execute(statement)
        self._db.execute("SELECT key, used, value FROM ids LIMIT 1")

    @property
    def _damaged(self) -> Path:
        return self.path.with_suffix(".damaged")

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        self._damaged.unlink()

    def _make_room(self) -> None:
        """Take out least recently used entries until what the file holds is below the bound."""
        assert self._db is not None
        while self._size() > self._max_bytes:
            entries = self._db.execute("SELECT count(*) FROM ids").fetchone()[0]
            oldest = "SELECT rowid FROM ids ORDER BY used, rowid LIMIT ?"
            gone = self._db.execute(f"DELETE FROM ids WHERE rowid IN ({oldest})", (max(1, entries // 8),)).rowcount
            if not gone:
                return

    def _size(self) -> int:
        assert self._db is not None
        pages, free, size = (
            self._db.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _stop(self, error: Exception) -> None:
        """Keep nothing from now on, and say why. A damaged file is marked, and removed at once if nobody else has it open."""
        said = f"the cache of token ids, {self.path}: {error}"
        damaged = isinstance(error, sqlite3.Error) and not _named(error, *(f"SQLITE_{kind}" for kind in _OUTSIDE))
        self._let_go()
        if not damaged:
            self.notice = f"{said}; no ids are kept in this run"
            return
        self.notice = f"{said}; it is damaged and will be removed, and no ids are kept in this run"
        try:
            self._damaged.touch()
            with (self.path.parent / "ids.lock").open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._remove()
        except OSError:
            pass  # others have it open, or the folder cannot be written: whoever opens it next alone removes it

    def _let_go(self) -> None:
        self._waiting.clear()
        try:
            if self._db is not None:
                self._db.close()
        except sqlite3.Error:
            pass  # of a damaged file
        self._db = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _named(error: Exception, *names: str) -> bool:
    """Whether an error is one of SQLite's of these names, or a special case of one."""
    return getattr(error, "sqlite_errorname", "").startswith(names)


def _key(who: str, text: str) -> bytes:
    return hashlib.sha256(f"{who}\0{text}".encode("utf-8", "surrogatepass")).digest()


def _pack(key: bytes, ids: Ids) -> bytes:
    """Checksum, number of ids, and the ids as little-endian 32-bit numbers under zstd."""
    packed: bytes = _CODEC.compress(ids.astype("<i4", copy=False).tobytes(), asbytes=True)
    body = len(ids).to_bytes(8, "little") + packed
    return _checksum(key, body) + body


def _unpack(key: bytes, value: object) -> Ids | None:
    if not isinstance(value, bytes) or value[:_CHECKSUM] != _checksum(key, value[_CHECKSUM:]):
        return None
    body = value[_CHECKSUM:]
    size = 4 * int.from_bytes(body[:8], "little")
    return np.frombuffer(_CODEC.decompress(body[8:], size, asbytes=True), "<i4").astype(np.int32, copy=False)


def _checksum(key: bytes, body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECKSUM, key=key).digest()


@dataclass(frozen=True, slots=True)
class CachedTokenizer:
    """A tokenizer, itself a `Tokenizer`, that looks longer texts up first."""

    tokenizer: Tokenizer
    cache: IdCache
    name: str = field(init=False)
    fingerprint: str = field(init=False)
    opening: tuple[int, ...] = field(init=False)
    answer: tuple[int, ...] = field(init=False)
    eos: int = field(init=False)
    vocabulary_size: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("name", "fingerprint", "opening", "answer", "eos", "vocabulary_size"):
            object.__setattr__(self, name, getattr(self.tokenizer, name))

    @property
    def notice(self) -> str:
        return " ".join(filter(None, (self.tokenizer.notice, self.cache.notice)))

    @property
    def code(self) -> str:
        return self.tokenizer.code

    @property
    def _who(self) -> str:
        # The code is asked for each time: ids of an engine that is left aside are not those of what comes after it.
        return f"{self.fingerprint} {self.tokenizer.code}"

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.encode_array(text).tolist()
        return ids

    def encode_array(self, text: str) -> Ids:
        if len(text) < _LEAST_TEXT:
            return self.tokenizer.encode_array(text)
        ids = self.cache.get(self._who, text)
        if ids is None:
            ids = self.tokenizer.encode_array(text)
            self.cache.put(self._who, text, ids)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def control_tokens(self) -> dict[str, int]:
        return self.tokenizer.control_tokens()
