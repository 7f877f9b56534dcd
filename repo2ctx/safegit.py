"""Runs git so that nothing a repository holds can act: no hooks, filters, fsmonitor, helpers or config of its own.

Two rules make it so. Git only ever runs inside a git directory that we made, whose config we wrote; a local
repository is read through such a directory (see `crawl.shadow`), never in place. And the environment is ours:
no inherited GIT_DIR and the like, no lazy fetch of missing objects, no replaced objects, only the network
protocols that a list may name.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

PROTOCOLS = ("https", "http", "ssh", "git")
"""Transports that a repository may be fetched over. `ext::` and every other remote helper are refused."""

_INHERITED = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH")
_OURS = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TEMPLATE_DIR": "",  # no hooks from a template
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS),
    "LC_ALL": "C.UTF-8",
}
SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.alternateRefsCommand": "true",
    "core.commitGraph": "false",  # it lies with the objects, and could say that a commit has no parents
    "core.pager": "cat",
    "core.fsync": "all",  # a cache that a power cut left half written would be read as it is
    "protocol.allow": "never",
    **{f"protocol.{name}.allow": "always" for name in PROTOCOLS},
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "transfer.bundleURI": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
}


def isolate_environment() -> None:
    """Drop inherited GIT_* variables from this process (a GIT_DIR would redirect every command), and set ours.

    The user's own global configuration stays in force for fetches: credential helpers and proxies live there.
    """
    for name in [n for n in os.environ if n.startswith("GIT_") and n not in _INHERITED and n not in _OURS]:
        if name not in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM"):
            del os.environ[name]
    os.environ.update(_OURS)


def reading_environment() -> dict[str, str]:
    """The environment for commands that only read objects: no configuration but the git directory's own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k == "GIT_EXEC_PATH"}
    return {**kept, **_OURS, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def command(git_dir: Path, *args: str) -> list[str]:
    """The command line of a git command inside `git_dir`, one of our own directories."""
    return ["git", "--no-pager", "--git-dir", os.fspath(git_dir), *args]


def read(git_dir: Path, args: Sequence[str], timeout_s: float = 600) -> subprocess.CompletedProcess[bytes]:
    """Run a reading command to its end; the caller looks at `returncode`."""
    return subprocess.run(
        command(git_dir, *args),
        env=reading_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )


def write_config(git_dir: Path, object_format: str = "sha1") -> None:
    """Write the config of a git directory of ours."""
    lines = ["[core]", "\trepositoryformatversion = 1", "\tbare = true"]
    if object_format != "sha1":
        lines += ["[extensions]", f"\tobjectformat = {object_format}"]
    for key, value in SETTINGS.items():
        section, _, name = key.rpartition(".")
        head, _, sub = section.partition(".")
        lines += [f'[{head} "{sub}"]' if sub else f"[{head}]", f"\t{name} = {value}"]
    (git_dir / "config").write_text("\n".join(lines) + "\n")
