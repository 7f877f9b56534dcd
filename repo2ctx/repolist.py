"""Reads the list of repositories: one a line, plain or as a JSON object.

    owner/name                       a GitHub repository
    https://host/owner/name          any URL git can fetch over https, http, ssh or git
    /path, ./path, ~/path, file://…  a local git repository; relative ones count from the list's own folder
    {"repo": …, "ref": …, "summary": …, "split": …, "name": …}

A plain line may end in `@ref` (branch, tag or full commit). Blank lines and what follows `#` at the start of a
line, or after a blank, are skipped. `name` says what a local copy is called (host/owner/name). Every bad line is
reported with its number before anything is fetched.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from repo2ctx.errors import ListError
from repo2ctx.records import RepoSpec
from repo2ctx.safegit import PROTOCOLS
from repo2ctx.schema import SPLITS

_MAX_SAID = 500
_KEYS = ("repo", "ref", "summary", "split", "name")
_EXPECTED = (
    "expected owner/name, a URL (https://…), a path (/…, ./…, ~/…, file://…), each with an optional @ref, or JSON"
)
_OWNER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")
_HOST_FIRST = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+/[^/\s]+/.+")
_NAME = re.compile(r"[A-Za-z0-9.:-]+(?:/[A-Za-z0-9._+-]+)+")
_SCP = re.compile(r"(?P<user>[A-Za-z0-9._-]+)@(?P<host>[A-Za-z0-9.-]+):(?P<path>[^@]+)(?:@(?P<ref>.*))?")
_BAD_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|^[-/.]|//|\.lock(?:/|$)|[/.]$")


class _BadLineError(Exception):
    """What is wrong with one line."""


def read_list(path: Path) -> tuple[list[RepoSpec], list[str]]:
    """The list's repositories in order, and a notice for each line that repeats an earlier one.

    Raises ListError naming every line that cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ListError(f"{path}: cannot read the list of repositories ({error.strerror}); check --repos") from error
    specs: list[RepoSpec] = []
    notices: list[str] = []
    problems: list[str] = []
    seen: dict[tuple[str, str | None], RepoSpec] = {}
    for number, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            spec = _parse_line(raw, path.parent)
        except _BadLineError as error:
            said = str(error)
            problems.append(f"{path}:{number}: {said if len(said) <= _MAX_SAID else said[:_MAX_SAID] + '…'}")
            continue
        if spec is None:
            continue
        spec = replace(spec, line=number)
        earlier = seen.setdefault((spec.url, spec.ref), spec)
        if earlier is spec:
            specs.append(spec)
        elif (earlier.summary, earlier.split) != (spec.summary, spec.split):
            problems.append(
                f"{path}:{number}: says otherwise of the repository in line {earlier.line}; keep one of them"
            )
        else:
            notices.append(f"{path}:{number}: repeats line {earlier.line}; skipped")
    if problems:
        raise ListError(*problems)
    if not specs:
        raise ListError(f"{path}: the list names no repository; {_EXPECTED}")
    return specs, notices


def parse_plain(text: str, folder: Path) -> RepoSpec:
    """One plain line, also what a command takes as a repository. Raises ListError."""
    try:
        return _parse_plain(text, folder)
    except _BadLineError as error:
        raise ListError(str(error)) from error


def _parse_line(raw: bytes, folder: Path) -> RepoSpec | None:
    try:
        text = raw.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise _BadLineError(f"not UTF-8 at byte {error.start + 1}; save the list as UTF-8") from error
    if not text or text.startswith("#"):
        return None
    if text.startswith("{"):
        return _parse_json(text, folder)
    return _parse_plain(re.split(r"\s#", text, maxsplit=1)[0].strip(), folder)


def _parse_json(text: str, folder: Path) -> RepoSpec:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _BadLineError(f"not a JSON object on one line ({error})") from error
    for key in fields:
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(_KEYS)}"
            raise _BadLineError(f"unknown key {key!r}; {hint}")
    for key, value in fields.items():
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise _BadLineError(f"{key!r} must be a string that is not empty, not {json.dumps(value)}")
        if value is not None and not _is_unicode(value):
            raise _BadLineError(f"{key!r} holds half of a surrogate pair; write the character whole")
    if not fields.get("repo"):
        raise _BadLineError("needs the key 'repo'")
    split = fields.get("split")
    if split is not None and split not in SPLITS:
        raise _BadLineError(f"split {split!r} is none of {', '.join(SPLITS)}")
    spec = _parse_plain(fields["repo"].strip(), folder)
    ref = fields.get("ref")
    if ref is not None:
        if spec.ref is not None:
            raise _BadLineError("gives the ref twice: in 'repo' after @, and in 'ref'")
        spec = replace(spec, ref=_checked_ref(ref))
    name = fields.get("name")
    if name is not None:
        if not _NAME.fullmatch(name):
            raise _BadLineError(f"name {name!r} is not of the form host/owner/name")
        spec = replace(spec, name=name)
    summary = fields.get("summary")
    return replace(spec, summary=summary.strip() if summary else None, split=split)


def _parse_plain(text: str, folder: Path) -> RepoSpec:
    if any(not c.isprintable() for c in text):
        raise _BadLineError(f"holds a control character: {text!r}")
    if text.startswith("-"):
        raise _BadLineError(f"{text!r} looks like an option, not a repository; {_EXPECTED}")
    if re.match(r"[A-Za-z0-9+.-]+::", text):
        raise _BadLineError(f"{text!r} names a git remote helper, which could run any command; {_EXPECTED}")
    if text.startswith("file://"):
        parts = urlsplit(text.replace("#", "%23").replace("?", "%3F"))
        if parts.netloc not in ("", "localhost"):
            raise _BadLineError(f"{text!r}: a file:// URL has three slashes and names no host")
        return _local(unquote(parts.path), text, folder)
    if "://" in text:
        return _remote(text)
    if text in (".", "..") or text.startswith(("/", "./", "../", "~")):
        return _local(text, text, folder)
    if scp := _SCP.fullmatch(text):
        path = scp["path"].strip("/").removesuffix(".git")
        url = f"{scp['user']}@{scp['host']}:{scp['path']}"
        return RepoSpec(
            url, url, f"{scp['host'].lower()}/{path}", _optional_ref("@" if scp["ref"] is not None else "", scp["ref"])
        )
    repository, at, ref = text.partition("@")
    if _OWNER_NAME.fullmatch(repository):
        if (folder / repository).is_dir():
            raise _BadLineError(
                f"{repository!r} could be a GitHub repository or the folder here: write ./{repository} "
                f"or https://github.com/{repository}"
            )
        name = f"github.com/{repository.removesuffix('.git')}"
        return RepoSpec(text, f"https://{name}", name, _optional_ref(at, ref))
    if _HOST_FIRST.fullmatch(repository):
        return _remote("https://" + text)
    raise _BadLineError(f"cannot read {text!r}; {_EXPECTED}")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _remote(text: str) -> RepoSpec:
    try:
        parts = urlsplit(text.replace("#", "%23").replace("?", "%3F"))
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _BadLineError(f"cannot read the URL ({error})") from error
    if parts.scheme not in PROTOCOLS:
        raise _BadLineError(f"{parts.scheme}:// is not fetched; use one of {', '.join(PROTOCOLS)}, or a path")
    if not host or host.startswith("-"):
        raise _BadLineError(f"{text!r} names no host")
    path, at, ref = parts.path.partition("@")
    names = [p for p in unquote(path).removesuffix("/").removesuffix(".git").split("/") if p]
    if not names or any(n in (".", "..") for n in names):
        raise _BadLineError(f"the URL on {host} names no repository")
    where = host if port is None else f"{host}:{port}"
    checked = _optional_ref(at, unquote(ref))
    return RepoSpec(
        source=f"{parts.scheme}://{where}{path}" + (f"@{checked}" if checked else ""),
        url=f"{parts.scheme}://{parts.netloc}{path}",
        name="/".join((where, *names)),
        ref=checked,
    )


def _local(text: str, source: str, folder: Path) -> RepoSpec:
    """A local repository. A path that exists is taken whole; otherwise what follows its last @ is the ref."""
    ref: str | None = None
    path = _absolute(text, folder)
    head, at, tail = text.rpartition("@")
    if at and not path.exists():
        path, ref = _absolute(head, folder), _checked_ref(tail)
        while not path.exists() and "@" in head:  # refs may hold an @ too
            head, _, more = head.rpartition("@")
            path, ref = _absolute(head, folder), _checked_ref(f"{more}@{ref}")
    name = path.name.removesuffix(".git") or "root"
    if path.name == ".git":
        path, name = path.parent, path.parent.name
    return RepoSpec(source, str(path), f"local/{path.parent.name or '-'}/{name}", ref)


def _absolute(text: str, folder: Path) -> Path:
    try:
        return (folder / Path(text).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise _BadLineError(f"cannot read the path {text!r} ({error})") from error


def _optional_ref(at: str, text: str | None) -> str | None:
    """The ref after `at`, which is "@" where there is one."""
    return _checked_ref(text or "") if at else None


def _checked_ref(text: str) -> str:
    if not text or _BAD_REF.search(text):
        raise _BadLineError(f"{text!r} is no branch, tag or commit name")
    return text
