"""The root commits of a repository: what its forks and mirrors share with it, whatever their files became.

A local history is read where it lies, through our own git directory: grafts, replaced objects and commit graphs do not act.
A remote repository is in the cache without a history, so that of the commit is fetched once, commits alone, into a
directory beside it; only the roots found there are kept.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from repo2ctx import safegit
from repo2ctx.crawl import CrawlOptions, fetch_commits, locked
from repo2ctx.errors import CrawlError
from repo2ctx.records import RepoSpec
from repo2ctx.snapshot import Snapshot

_MOST_ROOTS = 10_000  # the Linux kernel has four
_KEPT_IN = "repo2ctx-roots"  # a folder in the cached git directory
_OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def root_commits(spec: RepoSpec, snapshot: Snapshot, options: CrawlOptions) -> tuple[str, ...]:
    """The root commits of a snapshot's history, sorted; none where the history is cut (a shallow clone): none is known then.

    Raises CrawlError if a remote history cannot be had.
    """
    if spec.local:
        return _read_roots(spec, snapshot.git_dir, snapshot.commit, options) or ()
    known = snapshot.git_dir / _KEPT_IN / f"{snapshot.commit}.json"
    with locked(snapshot.git_dir.with_suffix(".lock")):
        found = _kept(known)
        if found is None:
            found = _fetched(spec, snapshot, options)
            known.parent.mkdir(exist_ok=True)
            aside = known.with_suffix(".partial")
            aside.write_text(json.dumps(found) + "\n", "utf-8")
            aside.rename(known)
    return found


def _kept(path: Path) -> tuple[str, ...] | None:
    """What an earlier run found, or None; a file that is damaged counts for nothing."""
    try:
        found: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    sound = isinstance(found, list) and all(isinstance(item, str) and _OBJECT_ID.fullmatch(item) for item in found)
    return tuple(found) if sound else None


def _fetched(spec: RepoSpec, snapshot: Snapshot, options: CrawlOptions) -> tuple[str, ...]:
    if options.offline:
        raise CrawlError(
            f"{spec.source}: its history is not in the cache; run once without --offline, or set split.by_root to false"
        )
    history = snapshot.git_dir.with_suffix(".history")
    try:
        fetch_commits(spec, snapshot.commit, history, options.timeout_s)
        if (history / "shallow").exists():
            return ()
        found = _read_roots(spec, history, snapshot.commit, options)
    finally:
        shutil.rmtree(history, ignore_errors=True)
    if found is None:
        raise CrawlError(
            f"{spec.source}: the server did not give the whole history; try again, or set split.by_root to false"
        )
    return found


def _read_roots(spec: RepoSpec, git_dir: Path, commit: str, options: CrawlOptions) -> tuple[str, ...] | None:
    """The roots of a commit's history, or None if a part of it is missing. The whole history is walked: 3 s for the 90,000
    commits of Rails."""
    arguments = ["rev-list", "--max-parents=0", f"--max-count={_MOST_ROOTS + 1}", "--end-of-options", commit]
    try:
        done = safegit.read(git_dir, arguments, options.timeout_s)
    except subprocess.TimeoutExpired:
        raise CrawlError(
            f"{spec.source}: its history took over {options.timeout_s:.0f} s to read; leave it out, or set split.by_root to false"
        ) from None
    found = done.stdout.decode().split()
    if len(found) > _MOST_ROOTS:
        raise CrawlError(
            f"{spec.source}: has over {_MOST_ROOTS:,} root commits; leave it out, or set split.by_root to false"
        )
    return tuple(sorted(found)) if done.returncode == 0 else None
