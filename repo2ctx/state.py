"""What an output directory already holds: whether it is this build, finished or not, and what can be taken over.

Two builds are the same if their configuration, tokenizer and versions are; the list may grow and shrink between
them. `OUT/.build/state.json` says which build is under way, the manifest which is finished.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from repo2ctx import __version__
from repo2ctx.card import CARD, keep_card
from repo2ctx.config import BuildConfig, TokensConfig, length_name
from repo2ctx.dataset import Dataset, read_manifest
from repo2ctx.engine import DISK_FULL, Outcome
from repo2ctx.errors import OutputError
from repo2ctx.locking import HeldElsewhereError, held
from repo2ctx.manifest import sealed
from repo2ctx.progress import Reporter
from repo2ctx.prompt import PROMPT_VERSION
from repo2ctx.records import Failure, RepoSpec
from repo2ctx.schema import MANIFEST, SCHEMA_VERSION
from repo2ctx.shards import make_folder, sync_directory, write_json, write_text
from repo2ctx.unit import restore_unit

WORK = ".build"
"""The directory of everything unfinished, in the output directory."""
UNITS, DOCUMENTS = "units", "documents"
_LOCK, _STATE, SCRATCH, _GONE = "lock", "state.json", "scratch", ".gone-"
_WAYS = {
    **dict.fromkeys(DISK_FULL, "free some space"),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "make it writable (or give another --out)"),
    errno.EIO: "check the disk",
}

_ASSIGNED = (
    "assigned"  # in the state: families and splits that stay; the manifest that tells them goes before the next comes
)


class _Entry(BaseModel):
    model_config = ConfigDict(strict=True)
    name: str
    ref: str | None
    split: str | None
    unit: str


class _State(BaseModel):
    """The shape of a state, whatever repo2ctx wrote it: what is in it is compared with what is to be built."""

    model_config = ConfigDict(strict=True)
    tool: str
    schema_version: int
    prompt_version: int
    tokenizer_fingerprint: str
    config: dict[str, dict[str, Any]]
    listed: list[_Entry] = Field(alias="list")
    assigned: dict[str, Annotated[list[str], Field(min_length=2, max_length=2)]] = {}


def unit_key(spec: RepoSpec) -> str:
    """What a unit is made from, besides the configuration."""
    return hashlib.sha256(json.dumps([spec.url, spec.name, spec.ref, spec.summary]).encode()).hexdigest()[:20]


def unit_folder(out: Path, spec: RepoSpec) -> Path:
    return out / WORK / UNITS / unit_key(spec)


def identity_of(specs: Sequence[RepoSpec], config: BuildConfig, tokenizer_fingerprint: str) -> dict[str, Any]:
    """What two builds must share for one to be the continuation of the other."""
    return {
        "tool": f"repo2ctx {__version__}",
        "schema_version": SCHEMA_VERSION,
        "prompt_version": PROMPT_VERSION,
        "tokenizer_fingerprint": tokenizer_fingerprint,
        "config": config.model_dump(mode="json"),
        "config_sha256": config.digest(),
        "list": [{"name": s.name, "ref": s.ref, "split": s.split, "unit": unit_key(s)} for s in specs],
    }


def already_finished(out: Path, identity: dict[str, Any], reporter: Reporter) -> bool:
    """Whether `out` holds this very build, whole. Raises OutputError if it holds anything else.

    A list that has grown or shrunk is the same build going on: what is there of it is taken over.
    """
    state = out / WORK / _STATE
    if (out / MANIFEST).exists():
        earlier = read_manifest(out)
    elif state.exists():
        earlier = _read_state(state)
    else:
        strangers = [p.name for p in out.iterdir() if p.name != WORK]
        if strangers:
            raise OutputError(
                f"{out}: holds other files ({', '.join(sorted(strangers)[:3])}); give an empty or new directory"
            )
        write_json(state, identity)
        return False
    differences = list(_differences(earlier, identity))
    if differences:
        raise OutputError(
            f"{out}: was built from another configuration: {'; '.join(differences)}; "
            f"{_way_from(earlier, identity, out)}give another --out, or remove this one"
        )
    added = [entry for entry in identity["list"] if _unlike_any(entry, earlier["list"])]
    removed = [entry for entry in earlier["list"] if _unlike_any(entry, identity["list"])]
    same = [_compared(e) for e in earlier["list"]] == [_compared(e) for e in identity["list"]]
    if (out / MANIFEST).exists():
        if same and not earlier["failures"]:
            dataset = Dataset(out, earlier)
            dataset.check_sizes(dataset.tables())
            keep_card(out, earlier)
            clear(out)  # whatever a build that was killed at its very end has left
            return True
        assigned = _splits_of(out, earlier)
        _take_over(out, earlier, identity)
    else:
        assigned = earlier.get(_ASSIGNED, {})
    if not same:
        reporter.notice(f"the list has changed: {len(added)} entries new or altered, {len(removed)} gone")
    write_json(state, {**identity, _ASSIGNED: assigned})
    return False


def earlier_splits(out: Path) -> dict[str, list[str]]:
    """The name of each repository of the build that the one under way goes on from -> its family and split there."""
    found: dict[str, list[str]] = _read_state(out / WORK / _STATE).get(_ASSIGNED, {})
    return found


def _splits_of(out: Path, manifest: dict[str, Any]) -> dict[str, list[str]]:
    rows = Dataset(out, manifest).rows("repositories", ("name", "family", "split"))
    return {row["name"]: [row["family"], row["split"]] for row in rows}


def _read_state(path: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads(path.read_text("utf-8"))
        _State.model_validate(state)
        return state
    except (ValueError, RecursionError) as error:
        raise OutputError(
            f"{path}: is damaged; remove {path.parent.parent} and run the same `repo2ctx build` again"
        ) from error


def _compared(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry["unit"], entry["split"]


def _unlike_any(entry: dict[str, Any], others: list[dict[str, Any]]) -> bool:
    return _compared(entry) not in {_compared(other) for other in others}


def _take_over(out: Path, earlier: dict[str, Any], identity: dict[str, Any]) -> None:
    """Turn the finished repositories that the list still has, and that are no units any more, back into units. Raises OutputError
    if their tables are damaged: the damage would get good hashes."""
    wanted = {entry["unit"] for entry in identity["list"]}
    needed = [(entry["id"], out / WORK / UNITS / entry["unit"]) for entry in earlier["list"] if entry["unit"] in wanted]
    needed = [(repository, folder) for repository, folder in needed if repository and not folder.exists()]
    if not needed:
        return
    dataset = Dataset(out, earlier)
    for table in ("repositories", "files", "edges"):
        dataset.check(table)
    rows = {row["id"]: row for row in dataset.repositories()}
    make_folder(out / WORK / UNITS, out)
    for repository, folder in needed:
        if repository in rows:
            restore_unit(dataset, rows[repository], folder)


def _differences(earlier: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for section, values in now["config"].items():
        for key, value in values.items():
            before = earlier["config"].get(section, {}).get(key)
            if before != value:
                said = [_lengths(v) if key == "lengths" else repr(v) for v in (before, value)]
                yield f"{section}.{key} was {said[0]}, now {said[1]}"
    for key in ("tool", "schema_version", "prompt_version"):
        if earlier[key] != now[key]:
            yield f"{key} was {earlier[key]!r}, now {now[key]!r}"
    same_tokens = earlier["config"].get("tokens") == now["config"]["tokens"]
    if same_tokens and earlier["tokenizer_fingerprint"] != now["tokenizer_fingerprint"]:
        yield "the tokenizer's files are not what they were"


def _lengths(values: Iterable[int] | None) -> str:
    return ",".join(map(length_name, values or ()))


def _way_from(earlier: dict[str, Any], now: dict[str, Any], out: Path) -> str:
    """The shorter way to what is wanted, where the builds differ in their rows alone."""
    parts = {section for section, values in now["config"].items() if values != earlier["config"].get(section)}
    if not (out / MANIFEST).exists() or not parts or not parts <= {"tokens", "pack"}:
        return ""
    before, after = (dict(config["pack"]) for config in (earlier["config"], now["config"]))
    there, wanted = before.pop("lengths"), after.pop("lengths")
    tokens = now["config"]["tokens"]
    name = tokens["tokenizer"]
    if before != after or ("tokens" in parts and tokens != TokensConfig(tokenizer=name).model_dump(mode="json")):
        return ""
    if "tokens" in parts:
        return (
            f"`repo2ctx pack {out} --tokenizer {name} --lengths {_lengths(wanted)} --replace` makes its rows anew; or "
        )
    if missing := [length for length in wanted if length not in there]:
        return f"`repo2ctx pack {out} --lengths {_lengths(missing)}` adds what is missing; or "
    return f"give --lengths {_lengths(there)}, which it has; or "


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Only one build works in a directory at a time. A finished one leaves nothing here; one that was refused, what it found."""
    lock = out / WORK / _LOCK
    _check_place(lock.parent)
    try:
        with held(lock):
            sync_directory(out)
            with suppress(PermissionError):  # a folder above may be one that we cannot read
                sync_directory(out.absolute().parent)
            try:
                yield
            except OSError as error:
                if not lock.exists():
                    raise _vanished(out) from error
                raise
    except HeldElsewhereError as error:
        raise OutputError(f"{out}: another build is at work here; wait for it, or give another --out") from error


def _check_place(path: Path) -> None:
    """Raise OutputError if what is there makes a directory impossible."""
    for place in (path, *path.parents):
        try:
            found = place.stat()  # once: another build may make or remove it at any moment
        except OSError as error:
            if place.is_symlink():
                raise OutputError(
                    f"{place}: is a link that leads nowhere; mend or remove it, or give another --out"
                ) from error
            continue
        if stat.S_ISDIR(found.st_mode):
            return
        raise OutputError(f"{place}: is a file, where a directory is to be; move it away, or give another --out")


def _vanished(out: Path) -> OutputError:
    return OutputError(
        f"{out}: was removed, moved or unmounted while the build was at work; run the same command again"
    )


def check_present(out: Path) -> None:
    """Raise OutputError if the directory of the build under way is gone: what is missing in it would be taken for not done."""
    if not (out / WORK / _LOCK).is_file():
        raise _vanished(out)


def scratch(out: Path) -> Path:
    """An empty place for temporary files, which what was killed may have left full."""
    work = out / WORK
    for name in (UNITS, DOCUMENTS):
        make_folder(work / name, out)
    for leftover in (*work.glob("*/.*.partial"), *work.glob(f"{_GONE}*"), work / SCRATCH):
        shutil.rmtree(leftover, ignore_errors=True)
    (work / SCRATCH).mkdir()
    return work / SCRATCH


@contextmanager
def explained(out: Path) -> Iterator[None]:
    """Turn what the disk refuses into an error that says the way out."""
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else out
        what = error.strerror or str(error)
        way = _WAYS.get(error.errno or 0, "mend it")
        raise OutputError(f"{where}: {what}; {way} and run the same command again: what is finished is kept") from error


def retract(out: Path) -> None:
    """Before tables are written anew, take away what says that the directory is whole."""
    check_present(out)
    for name in (MANIFEST, CARD):
        (out / name).unlink(missing_ok=True)
    sync_directory(out)


def finish(out: Path, manifest: Mapping[str, Any], keep_work: bool) -> None:
    """Write the manifest, which says that all the rest is there. keep_work: leave the units to a run that goes on."""
    check_present(out)
    write_text(out / MANIFEST, sealed(manifest))
    if not keep_work:
        clear(out)


def clear(out: Path) -> None:
    """Remove what a build was made from, but the lock, which its holder removes at the end. Units and documents lose their names
    first: half of one must not be taken for whole."""
    work = out / WORK
    for name in (UNITS, DOCUMENTS):
        gone = work / f"{_GONE}{name}"
        shutil.rmtree(gone, ignore_errors=True)
        if (work / name).exists():
            (work / name).rename(gone)
    sync_directory(work)
    for path in [p for p in work.iterdir() if p.name != _LOCK]:
        shutil.rmtree(path, ignore_errors=True)  # the next run takes what may be left
        with suppress(OSError):
            path.unlink()


def failed(outcome: Outcome[Any], failure: Failure, out: Path, reporter: Reporter) -> Failure:
    """Tell of a failure at once; the traceback of one that we did not foresee is kept for a report. Raises what is fatal."""
    if outcome.fatal is not None:
        raise outcome.fatal
    check_present(out)
    reporter.advance("")
    if outcome.trace:
        place = out / WORK / "errors" / f"{hashlib.sha256(failure.source.encode()).hexdigest()[:12]}.txt"
        place.parent.mkdir(exist_ok=True)
        write_text(place, outcome.trace)
        failure = replace(failure, reason=f"{failure.reason}; a fault of repo2ctx: please report {place}")
    where = f" (line {failure.line})" if failure.line else ""
    reporter.notice(f"failed: {failure.source}{where}: {failure.reason}")
    return failure
