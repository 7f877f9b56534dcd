"""RepoSpec -> Snapshot: makes a repository's objects readable and pins the commit. The only code that fetches.

A remote repository is fetched shallow and bare into a cache of ours, never checked out. A local one is not
copied: `shadow` makes a git directory of ours that borrows its objects, so that its config, hooks and
attributes are never read, and objects missing from its store stay missing instead of being fetched.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import git

from repo2ctx import safegit
from repo2ctx.errors import CacheError, CrawlError
from repo2ctx.records import RepoSpec
from repo2ctx.snapshot import Snapshot

_OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_EVERYTHING = ["+refs/heads/*:refs/repo2ctx/heads/*", "+refs/tags/*:refs/repo2ctx/tags/*"]
_MAX_REF_BYTES = 4096
_MAX_PACKED_REFS_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class CrawlOptions:
    """cache: where fetched repositories are kept; None keeps nothing. timeout_s: limit of one fetch. scratch: where temporary
    git directories go; None for the system's place."""

    cache: Path | None
    offline: bool = False
    timeout_s: float = 1800
    scratch: Path | None = None


def default_cache() -> Path:
    """The cache directory: $REPO2CTX_CACHE, else $XDG_CACHE_HOME/repo2ctx, else ~/.cache/repo2ctx."""
    if own := os.environ.get("REPO2CTX_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "repo2ctx"


@contextmanager
def open_snapshot(spec: RepoSpec, options: CrawlOptions) -> Iterator[Snapshot]:
    """The repository of `spec` at its ref (HEAD if it names none), readable until the block ends.

    Raises CrawlError if the repository or the ref cannot be had.
    """
    with tempfile.TemporaryDirectory(prefix="repo2ctx-", dir=options.scratch) as scratch:
        if spec.local:
            git_dir = Path(scratch) / "shadow.git"
            commit = shadow(Path(spec.url), spec.ref, git_dir)
        else:
            root = options.cache or Path(scratch)
            git_dir, commit = _fetch(spec, root / "git", options)
        yield Snapshot(git_dir, commit)


# Local repositories ----------------------------------------------------------------------------------------


def find_repository(path: Path) -> tuple[Path, str]:
    """The work tree or bare repository that holds `path`, and `path` relative to it ("" for the root).

    Raises CrawlError if there is none.
    """
    try:
        path = path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:  # no such file, a loop of links, a name too long, no such home
        reason = "no such directory" if isinstance(error, FileNotFoundError) else str(error)
        raise CrawlError(f"{path}: {reason}") from error
    if not path.is_dir():
        raise CrawlError(f"{path}: is a file; give a folder in a git repository")
    for folder in (path, *path.parents):
        if _git_dirs(folder) is not None:
            relative = path.relative_to(folder).as_posix()
            # Names that are no UTF-8 are written as the snapshot writes them.
            return folder, "" if relative == "." else os.fsencode(relative).decode("utf-8", "backslashreplace")
    raise CrawlError(f"{path}: not a git repository; run `git init`, `git add` and `git commit` in it first")


def shadow(path: Path, ref: str | None, git_dir: Path) -> str:
    """Make `git_dir`, a git directory of ours over the objects of the repository at `path`; returns the commit."""
    found = _git_dirs(path)
    if found is None:
        hint = "" if path.exists() else " (no such directory)"
        raise CrawlError(f"{path} is not a git repository{hint}; give the folder that holds .git, or a bare repository")
    own, common = found
    if (common / "reftable").exists():
        raise CrawlError(f"{path} keeps its refs as a reftable; run `git refs migrate --ref-format=files` in it first")
    _check_objects(common / "objects")
    wanted = _resolve_ref(own, common, ref or "HEAD")
    object_format = "sha256" if len(wanted) == 64 else "sha1"
    git_dir.mkdir(parents=True)
    (git_dir / "refs").mkdir()
    (git_dir / "HEAD").write_text("ref: refs/heads/none\n")
    (git_dir / "objects").symlink_to(common / "objects", target_is_directory=True)
    safegit.write_config(git_dir, object_format)
    done = safegit.read(git_dir, ["rev-parse", "--verify", "--quiet", "--end-of-options", wanted + "^{commit}"])
    if done.returncode:
        raise CrawlError(f"{path} has no commit {ref or 'HEAD'}: {_no_ref_hint(ref)}")
    return done.stdout.decode().strip()


def _no_ref_hint(ref: str | None) -> str:
    return (
        "check the branch, tag or commit after @" if ref else "its HEAD names a branch without commits, or is damaged"
    )


def _git_dirs(path: Path) -> tuple[Path, Path] | None:
    """(git directory of this work tree, common git directory), or None if `path` holds no repository.

    A repository may name other places as its own (a `.git` file or link, `commondir`, linked or borrowed objects).
    A hostile one could so pass any private repository of this machine off as its own: only a worktree and a submodule
    whose other side agrees are followed. Raises CrawlError for the rest.
    """
    dot_git = path / ".git"
    if dot_git.is_symlink():
        raise CrawlError(f"{dot_git} is a link; give the repository that it points to")
    if dot_git.is_file():
        own = _follow_git_file(dot_git)
    else:
        own = dot_git if dot_git.is_dir() else path
    common = own
    if own.parent.name == "worktrees" and _small_file(own / "gitdir", _MAX_REF_BYTES):
        common = own.parent.parent
    if _small_file(own / "HEAD", _MAX_REF_BYTES) is None or not (common / "objects").is_dir():
        return None
    return own, common


def _follow_git_file(dot_git: Path) -> Path:
    """Where a `.git` file points, if that place agrees: a worktree's administrative folder names the work tree back;
    a submodule's lies under the `.git/modules` of a repository around it."""
    line = (_small_file(dot_git, _MAX_REF_BYTES) or "").strip()
    own = (dot_git.parent / line.removeprefix("gitdir:").strip()).resolve()
    back = _small_file(own / "gitdir", _MAX_REF_BYTES)
    if own.parent.name == "worktrees" and back and (own / back.strip()).resolve() == dot_git.resolve():
        return own
    if any(own.is_relative_to(folder / ".git" / "modules") for folder in dot_git.resolve().parent.parents):
        return own
    raise CrawlError(f"{dot_git} points to {own}, which does not know it; give the repository itself")


def _check_objects(objects: Path) -> None:
    """Raise CrawlError unless the object store is made of plain files and folders of its own: git would wait for ever
    on a pipe, and read what a link or `alternates` names."""
    if (objects / "info" / "alternates").exists():
        raise CrawlError(f"{objects} borrows objects from elsewhere; run `git repack -a -d` and remove info/alternates")
    pending = [objects]
    while pending:
        folder = pending.pop()
        if folder.is_symlink():
            raise CrawlError(f"{folder} is a link; give the repository that it belongs to")
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False):
                    raise CrawlError(f"{entry.path} is no plain file; an object store that holds one is not read")


def _small_file(path: Path, limit: int) -> str | None:
    """A regular file's text; None for links, devices, pipes, folders, what is too large, holds a zero byte, or is
    not there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read()
    finally:
        os.close(descriptor)
    return None if b"\0" in data else data.decode("utf-8", "surrogateescape")


def _resolve_ref(own: Path, common: Path, ref: str) -> str:
    """The object id that a ref names, or `ref` itself where it may be an abbreviated id.

    Read from the files directly, in git's order of precedence, so that git need not run in the repository.
    """
    packed: dict[str, str] | None = None
    names = ["HEAD"] if ref == "HEAD" else [ref, *(f"refs/{p}{ref}" for p in ("", "tags/", "heads/", "remotes/"))]
    for name in names:
        target = name
        for _ in range(6):  # a symbolic ref may point to another
            place = own if target == "HEAD" else common
            loose = _small_file(place / target, _MAX_REF_BYTES) if target == "HEAD" or "/" in target else None
            if loose is None and packed is None:
                packed = _packed_refs(common)
            content = (packed or {}).get(target, "") if loose is None else loose.strip()
            if not content.startswith("ref:"):
                break
            target = content.removeprefix("ref:").strip()
            if not target.startswith("refs/") or ".." in target:
                content = ""
                break
        if _OBJECT_ID.fullmatch(content):
            return content
    return ref


def _packed_refs(common: Path) -> dict[str, str]:
    found = {}
    for line in (_small_file(common / "packed-refs", _MAX_PACKED_REFS_BYTES) or "").splitlines():
        object_id, _, name = line.partition(" ")
        if name and _OBJECT_ID.fullmatch(object_id):
            found[name] = object_id
    return found


# Remote repositories ---------------------------------------------------------------------------------------


def _fetch(spec: RepoSpec, root: Path, options: CrawlOptions) -> tuple[Path, str]:
    """Fetch the ref into the cache, unless the cache has that very commit or we are offline."""
    digest = hashlib.sha256(spec.url.encode()).hexdigest()[:16]
    git_dir = root / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', spec.name)[-80:]}-{digest}.git"
    ref = spec.ref or "HEAD"
    pin = "refs/repo2ctx/" + hashlib.sha256(ref.encode()).hexdigest()[:16]
    root.mkdir(parents=True, exist_ok=True)
    with locked(git_dir.with_suffix(".lock")):
        if not (git_dir / "HEAD").exists():
            _initialise(git_dir)
        exact = bool(_OBJECT_ID.fullmatch(ref))
        if not (exact or options.offline) or _commit(git_dir, pin) is None:
            if options.offline:
                raise CrawlError(f"{spec.source}: not in the cache; run once without --offline")
            _remove_stale_locks(git_dir)
            _fetch_ref(spec, ref, pin, git_dir, options.timeout_s)
        commit = _commit(git_dir, pin)
        if commit is None:
            raise CrawlError(f"{spec.source}: {ref} is not a commit; {_no_ref_hint(spec.ref)}")
        return git_dir, commit


def _initialise(git_dir: Path) -> None:
    """A bare repository of ours, complete under its name or not there at all."""
    aside = git_dir.with_suffix(f".{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    git.Repo.init(aside, bare=True)
    safegit.write_config(aside)
    shutil.rmtree(git_dir, ignore_errors=True)
    aside.rename(git_dir)


def _remove_stale_locks(git_dir: Path) -> None:
    """What a git that was killed leaves, on which every later one would fail; we hold the lock that counts."""
    for lock in (
        *git_dir.glob("*.lock"),
        *(git_dir / "refs").rglob("*.lock"),
        *(git_dir / "objects" / "info").glob("*.lock"),
    ):
        lock.unlink(missing_ok=True)


def _fetch_ref(spec: RepoSpec, ref: str, pin: str, git_dir: Path, timeout_s: float) -> None:
    """Fetch one commit; where the server cannot give it alone (old servers, abbreviated ids), everything."""
    plans = [(["--depth=1"], [f"+{ref}:{pin}"]), ([], [f"+{ref}:{pin}"])]
    if re.fullmatch(r"[0-9a-f]{7,64}", ref):
        plans[1] = ([], _EVERYTHING)
    used = _fetch_by_plan(spec, plans, spec.url, git_dir, timeout_s)
    if used is _EVERYTHING:
        git.Repo(git_dir).git.update_ref(pin, f"{ref}^{{commit}}")


def fetch_commits(spec: RepoSpec, commit: str, git_dir: Path, timeout_s: float) -> None:
    """Make `git_dir` with the history of a commit: its commits without their trees, where the server can filter.

    Raises CrawlError. If the server's own history is cut, `git_dir` has a file `shallow`.
    """
    _initialise(git_dir)
    flags = ["--filter=tree:0", "--update-shallow"]
    plans = [(flags, [f"+{commit}:refs/repo2ctx/commit"]), (flags, _EVERYTHING)]
    # A filter makes git note where it fetched from. A remote named in the environment keeps the URL, which may hold
    # credentials, out of the file.
    named = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "remote.history.url", "GIT_CONFIG_VALUE_0": spec.url}
    _fetch_by_plan(spec, plans, "history", git_dir, timeout_s, named)
    safegit.write_config(git_dir)


def _fetch_by_plan(
    spec: RepoSpec,
    plans: list[tuple[list[str], list[str]]],
    remote: str,
    git_dir: Path,
    timeout_s: float,
    environment: dict[str, str] | None = None,
) -> list[str]:
    """Fetch by the first plan (flags, refspecs) that the server agrees to; returns its refspecs."""
    for left, (flags, refspecs) in zip(range(len(plans) - 1, -1, -1), plans, strict=True):
        try:
            git.Repo(git_dir).git.fetch(
                *("--no-tags", "--quiet", "--force", *flags, "--", remote, *refspecs),
                kill_after_timeout=timeout_s,
                env=environment,
            )
            return refspecs
        except git.GitCommandError as error:
            reason = _reason(error, spec)
            if re.search(r"No space left on device|Disk quota exceeded", reason):
                raise CacheError(
                    f"{git_dir}: no room for {spec.source} ({reason}); free some space, or give another --cache, and run the "
                    "same command again: what is finished is kept"
                ) from None
            if not left or not re.search(r"shallow|unadvertised|not our ref|couldn't find remote ref", reason):
                raise CrawlError(f"{spec.source}: cannot be fetched: {reason}") from None
        except git.UnsafeProtocolError:
            raise CrawlError(f"{spec.source}: its protocol is not allowed") from None
    raise AssertionError("unreachable")


def _reason(error: git.GitCommandError, spec: RepoSpec) -> str:
    """What git said, in one line and without credentials."""
    said = str(error.stderr or error.stdout or error.status).strip().removeprefix("stderr:").strip(" '\n")
    said = said.replace(spec.url, spec.source)
    return _CREDENTIALS.sub("", " / ".join(line.strip() for line in said.splitlines() if line.strip()))


def _commit(git_dir: Path, ref: str) -> str | None:
    done = safegit.read(git_dir, ["rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}"])
    return done.stdout.decode().strip() if done.returncode == 0 else None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file: builds that run beside each other share the cache."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def check_git() -> None:
    """Raise CrawlError unless a git that can read in batches is installed."""
    try:
        subprocess.run(["git", "version"], capture_output=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise CrawlError("git is not installed, or does not run; install git 2.36 or later") from error
