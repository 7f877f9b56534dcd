"""What the processes of a build have spent on a teacher, in tokens: one SQLite file, so that a budget holds for all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from repo2ctx.errors import TeacherError, TeacherUnavailableError


@dataclass(frozen=True, slots=True)
class Ledger:
    """Tokens that the processes of a build have spent together, in an SQLite file at `path`; budget: None for no limit.

    A process that dies between `reserve` and `settle` leaves its reservation spent: it may have been charged for it.
    """

    path: Path
    budget: int | None

    @property
    def spent(self) -> int:
        with self._open() as db:
            return self._read(db)

    def reserve(self, tokens: int) -> None:
        """Count tokens as spent before they are. Raises TeacherError, and counts nothing, if they go over the budget."""
        with self._open() as db:
            spent = self._read(db)
            if self.budget is not None and spent + tokens > self.budget:
                raise TeacherError(
                    f"the teacher's budget of {self.budget} tokens does not reach ({spent} used, and the next request may "
                    f"take {tokens}); raise --teacher-budget and run the same command again: what is answered is kept"
                )
            db.execute("UPDATE ledger SET tokens = tokens + ?", (tokens,))

    def settle(self, reserved: int, used: int) -> None:
        """Say what a reservation came to."""
        with self._open() as db:
            db.execute("UPDATE ledger SET tokens = max(0, tokens + ?)", (used - reserved,))

    def _read(self, db: sqlite3.Connection) -> int:
        return int(db.execute("SELECT tokens FROM ledger").fetchone()[0])

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=60, isolation_level=None)) as db:
                db.execute("BEGIN IMMEDIATE")
                db.execute("CREATE TABLE IF NOT EXISTS ledger (id INTEGER PRIMARY KEY CHECK (id = 0), tokens INTEGER)")
                db.execute("INSERT OR IGNORE INTO ledger VALUES (0, 0)")
                yield db
                db.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise TeacherUnavailableError(
                f"{self.path}: cannot be used ({error}); free some space if the disk is full; if the file is damaged, remove it: "
                "the budget is then counted anew"
            ) from error
