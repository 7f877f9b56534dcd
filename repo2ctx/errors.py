"""The errors a user may see. Each says what was wrong, where, and what to do about it.

`exit_code` is what the command line ends with: 2 for wrong usage or configuration (nothing was started),
1 for work that failed (what was finished is kept).
"""

from __future__ import annotations

from pathlib import Path


class Repo2CtxError(Exception):
    """Base of every error raised on purpose. Its arguments are problems, of which each is told in a line of its own."""

    exit_code = 1
    ends_build = False
    """Whether the next repository would meet it too."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class UsageError(Repo2CtxError):
    """The command, list or configuration is wrong; nothing was started."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration file or option holds an unknown key or a value that cannot be used."""


class ListError(UsageError):
    """A line of the repository list cannot be read."""


class CrawlError(Repo2CtxError):
    """A repository, or the ref asked of it, cannot be had."""


class CacheError(CrawlError):
    """What is fetched cannot be kept."""

    ends_build = True


class SnapshotError(Repo2CtxError):
    """A repository's objects cannot be read."""


class TokenizerError(UsageError):
    """A tokenizer cannot be loaded or cannot be used safely."""


class ModelError(UsageError):
    """A model cannot be had, or does not fit what it is asked for."""


class TeacherError(Repo2CtxError):
    """The teacher model cannot say this; what it answered is kept."""


class TeacherUnavailableError(TeacherError):
    """The teacher's endpoint is out of reach or does not serve us, or its answers cannot be kept."""

    ends_build = True


class OutputError(Repo2CtxError):
    """The output directory holds something else, or cannot be written or read."""


def rebuild(out: Path, table: str = "") -> str:
    """The way out of damage. table: the one that is damaged, if it is one; packed rows are made anew from the others."""
    if table.startswith("packed/"):
        length = table.split("/")[1]
        return (
            f"put back a sound copy, or run `repo2ctx pack {out} --lengths {length} --replace` to make these rows anew"
        )
    return f"put back a sound copy, or remove {out} and run the same `repo2ctx build` again"
