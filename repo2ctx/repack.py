"""`repo2ctx pack`: rows of other lengths or of another tokenizer, from what OUT holds: no clone, no parse.

New tables are written under `OUT/.build/next`, and last a manifest there. From then on the change is made, whatever happens:
whoever opens OUT to write completes it first (`complete_change`). OUT is then what a build with that configuration would have
given, byte for byte.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from repo2ctx.card import keep_card, write_card
from repo2ctx.config import BuildConfig, TokensConfig, length_name
from repo2ctx.dataset import Dataset, read_manifest
from repo2ctx.engine import Workers
from repo2ctx.errors import OutputError, UsageError, rebuild
from repo2ctx.manifest import ManifestError, parse_manifest, sealed
from repo2ctx.packs import make_documents, tasks_of, write_packed
from repo2ctx.progress import Reporter
from repo2ctx.prompt import PROMPT_VERSION
from repo2ctx.records import Failure
from repo2ctx.results import BuildResult, result_of
from repo2ctx.schema import MANIFEST, SCHEMA_VERSION, SCHEMAS
from repo2ctx.shards import make_folder, sync_directory, write_text
from repo2ctx.state import DOCUMENTS, SCRATCH, WORK, clear, explained, locked, retract, scratch
from repo2ctx.tokens import load_tokenizer

_NEXT = "next"
_REPO_TIMEOUT_S = 7200


def repack(
    out: Path,
    lengths: Sequence[int],
    tokens: TokensConfig | None,
    replace: bool,
    workers: int,
    cache: Path | None,
    reporter: Reporter,
) -> BuildResult:
    """Add rows of `lengths` to the finished build in `out`, or make rows anew.

    tokens: another tokenizer than the build's, whose rows then replace all that are there; replace has to agree to that. With
    replace and the build's own tokenizer, rows of `lengths` are made anew that are there already. In both, no `lengths`
    means all that are there. cache: for token ids, or None. Raises UsageError, OutputError, TokenizerError.
    """
    if not (out / WORK / _NEXT / MANIFEST).exists():
        read_manifest(out)  # or it is no place of ours
    with explained(out), locked(out):
        complete_change(out)
        manifest = read_manifest(out)
        config = BuildConfig.model_validate(manifest["config"])
        there = config.pack.lengths
        if tokens is None or tokens == config.tokens:
            wanted = tuple(sorted({*there, *lengths}))
            new = tuple(lengths or there) if replace else tuple(length for length in wanted if length not in there)
        else:
            if not replace:
                names = ", ".join(map(length_name, there))
                raise UsageError(
                    f"{out}: its rows ({names}) are of the tokenizer {config.tokens.tokenizer!r}; to have them replaced by those "
                    f"of {tokens.tokenizer!r}, give --replace, or build into another --out"
                )
            wanted = new = tuple(lengths) or there
        tokens = tokens or config.tokens
        fingerprint = load_tokenizer(tokens).fingerprint
        kept = {length_name(length) for length in wanted if length not in new}
        dataset = Dataset(out, manifest)
        _check_kept(dataset, kept, fingerprint)
        if not new:
            keep_card(out, manifest)
            _tidy(out, manifest)
            return result_of(out, manifest, unchanged=True)
        for table in ("repositories", "files"):  # or damage would get good hashes
            dataset.check(table)
        changed = _with_packing(config, tokens, wanted)
        scratch(out)
        count = len(manifest["repositories"])
        with Workers(min(workers, max(1, count)), _REPO_TIMEOUT_S) as pool:
            packed = _pack(manifest, _with_packing(config, tokens, new), out, pool, cache, reporter)
        _write_next(manifest, kept, changed, fingerprint, packed, out)
        complete_change(out)
        _tidy(out, manifest)
        return result_of(out, read_manifest(out))


def _check_kept(dataset: Dataset, kept: Collection[str], fingerprint: str) -> None:
    """Raise OutputError unless rows of the lengths `kept` can stand beside new ones."""
    out, manifest = dataset.out, dataset.manifest
    dataset.check_sizes(SCHEMAS)
    if not kept:
        return
    dataset.check_sizes(table for table in dataset.tables() if _length_of(table) in kept)
    if (wrote := manifest["prompt_version"]) != PROMPT_VERSION:
        raise OutputError(
            f"{out}: its rows have prompt version {wrote}, this repo2ctx writes {PROMPT_VERSION}; give --replace without "
            "--lengths to make all of them anew"
        )
    if fingerprint != manifest["tokenizer_fingerprint"]:
        raise OutputError(
            f"{out}: the tokenizer is not what it was when the rows were packed; give --replace without --lengths to make all "
            "of them anew, or put the earlier files back"
        )


def _length_of(table: str) -> str:
    """The length of a packed table's rows; "" for others."""
    return table.split("/")[1] if table.startswith("packed/") else ""


def complete_change(out: Path) -> None:
    """Finish a change of rows that was decided before a kill; remove one that was not."""
    following = out / WORK / _NEXT
    if not (following / MANIFEST).exists():
        shutil.rmtree(following, ignore_errors=True)
        return
    try:
        manifest = parse_manifest((following / MANIFEST).read_bytes(), SCHEMA_VERSION)
    except ManifestError as error:
        again = f"remove {following} and run the same `repo2ctx pack` again"
        way = again if (out / MANIFEST).exists() else rebuild(out)
        raise OutputError(f"{following / MANIFEST}: {error}; {way}") from error
    moving = sorted((following / "packed").glob("*/*"))
    if _stale_rows(out, manifest["tables"]) or any((out / f.relative_to(following)).exists() for f in moving):
        retract(out)
    remove_stale_rows(out, manifest["tables"])
    for folder in moving:
        place = out / folder.relative_to(following)
        _remove(place)
        make_folder(place.parent, out)
        folder.rename(place)
        sync_directory(place.parent)
    manifest["card_sha256"] = write_card(out, manifest)
    write_text(out / MANIFEST, sealed(manifest))
    shutil.rmtree(following)


def _tidy(out: Path, manifest: dict[str, Any]) -> None:
    """Remove what a change needs no more; the work of a build that is to go on stays."""
    if not manifest["failures"]:
        clear(out)
    for leftover in (DOCUMENTS, SCRATCH):
        shutil.rmtree(out / WORK / leftover, ignore_errors=True)


def remove_stale_rows(out: Path, tables: Collection[str]) -> None:
    """Remove the folders of packed rows that are none of the manifest's `tables`."""
    for folder in _stale_rows(out, tables):
        _remove(folder)


def _stale_rows(out: Path, tables: Collection[str]) -> list[Path]:
    return [p for p in sorted((out / "packed").glob("*/*")) if p.relative_to(out).as_posix() not in tables]


def _remove(folder: Path) -> None:
    """Remove a folder of rows, and the length's with it if nothing else is left there."""
    if folder.exists():
        shutil.rmtree(folder)
        if not any(folder.parent.iterdir()):
            folder.parent.rmdir()
            folder = folder.parent
        sync_directory(folder.parent)


def _with_packing(config: BuildConfig, tokens: TokensConfig, lengths: tuple[int, ...]) -> BuildConfig:
    pack = config.pack.model_copy(update={"lengths": lengths})
    return config.model_copy(update={"tokens": tokens, "pack": pack})


def _pack(
    manifest: dict[str, Any],
    config: BuildConfig,
    out: Path,
    workers: Workers,
    cache: Path | None,
    reporter: Reporter,
) -> dict[str, Any]:
    """Pack what the manifest holds into OUT/.build/next; returns its tables, figures and what is missing."""
    tasks = tasks_of(Dataset(out, manifest).repositories(), manifest, config, out, cache)
    failures = make_documents(tasks, out, workers, reporter)
    if failures:
        raise OutputError(
            f"{out}: {_told(failures)}; nothing has changed; mend it and run the same command again, what is done is kept"
        )
    following = out / WORK / _NEXT
    make_folder(following, out)
    packed = write_packed(tasks, config, following, reporter)
    return {"tables": packed.tables, "packed": packed.figures, "refused": packed.refused}


def _told(failures: Sequence[Failure]) -> str:
    first = failures[0]
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    return f"{first.source}: {first.reason}{more}"


def _write_next(
    manifest: dict[str, Any],
    kept: Collection[str],
    config: BuildConfig,
    fingerprint: str,
    packed: dict[str, Any],
    out: Path,
) -> None:
    """Write the manifest of what OUT is to become. kept: the lengths whose rows stay."""
    tables = {n: shards for n, shards in manifest["tables"].items() if not _length_of(n) or _length_of(n) in kept}
    summary = manifest["summary"]
    figures = {name: values for name, values in summary["packed"].items() if name in kept}
    refused = {why: number for why, number in summary["refused"].items() if why.split(" ")[0] in kept}
    following = {
        **manifest,
        "config": config.model_dump(mode="json"),
        "config_sha256": config.digest(),
        "prompt_version": PROMPT_VERSION,
        "tokenizer_fingerprint": fingerprint,
        "tables": {**tables, **packed["tables"]},
        "summary": {**summary, "packed": figures | packed["packed"], "refused": refused | packed["refused"]},
    }
    make_folder(out / WORK / _NEXT, out)
    write_text(out / WORK / _NEXT / MANIFEST, sealed(following))
