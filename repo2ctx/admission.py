"""Whether a repository is taken at all: its licence and its size, looked at before anything is parsed.

Only the tree, the sizes and the small files at the root and in LICENSES/ that say the licence are read. A repository that
is refused has a row that says why, and no files.
"""

from __future__ import annotations

from dataclasses import dataclass

from repo2ctx.config import LimitsConfig, SelectionConfig
from repo2ctx.licenses import PERMISSIVE, UNKNOWN, UNREADABLE, allows, is_license_file, license_of, tells_license
from repo2ctx.records import KEPT
from repo2ctx.sandbox import Sandbox
from repo2ctx.selection import decode, fate_by_entry
from repo2ctx.snapshot import Snapshot

_MAX_BYTES = 1 << 20  # of a file that says the licence
_MOST_READ = 64  # such files


@dataclass(frozen=True, slots=True)
class Admission:
    """license: SPDX expression, or NOASSERTION. refused: why the repository is not taken, or ""."""

    license: str
    refused: str = ""


def admit(snapshot: Snapshot, limits: LimitsConfig, selection: SelectionConfig, sandbox: Sandbox) -> Admission:
    """Look at a repository's size and licence. Raises SnapshotError if its tree is damaged."""
    read = [
        (e, s) for e, s in snapshot.sized if s is not None and fate_by_entry(e, s, selection.max_file_bytes) == KEPT
    ]
    asked = sorted((e for e, s in read if s <= _MAX_BYTES and tells_license(e.path)), key=lambda e: "/" in e.path)[
        :_MOST_READ
    ]
    # a licence file that is a link, too large or one too many puts the licence in doubt, as one that cannot be decoded does
    texts = {e.path: UNREADABLE for e, _ in snapshot.sized if is_license_file(e.path)}
    for entry, data in zip(asked, snapshot.read([e.blob for e in asked]), strict=True):
        decoded = decode(data) if data is not None else ""
        if isinstance(decoded, tuple):
            texts[entry.path] = decoded[0]
    found = sandbox.call_or(UNKNOWN, license_of, texts)
    return Admission(found, _refusal(limits, len(snapshot.sized), [s for _, s in read], found))


def _refusal(limits: LimitsConfig, files: int, sizes: list[int], found: str) -> str:
    if limits.max_files is not None and files > limits.max_files:
        return f"too-many-files: {files:,}, over limits.max_files"
    if limits.max_bytes is not None and sum(sizes) > limits.max_bytes:
        return f"too-large: {sum(sizes):,} bytes, over limits.max_bytes"
    if limits.min_files is not None and len(sizes) < limits.min_files:
        return f"too-few-files: {len(sizes):,}, under limits.min_files"
    allowed = limits.licenses
    if allowed is not None and not allows(found, {*allowed, *(PERMISSIVE if "permissive" in allowed else ())}):
        return f"license: {found}, not in limits.licenses"
    return ""
