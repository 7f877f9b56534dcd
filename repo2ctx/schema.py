"""The disk format: Arrow schemas, and records -> rows. Nothing else knows the columns.

Shards are Arrow streams (what `datasets` loads). Rows of one repository are contiguous and start a record batch
of their own, and the manifest holds every batch's byte offset, so that any part is read without the rest.
Packed rows are uncompressed, so that they can be mapped (`dataset.py` reads).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from repo2ctx.records import Document, Edge, GuardedTarget, Repository, SourceFile

SCHEMA_VERSION = 5
MANIFEST = "manifest.json"
SPLITS = TRAIN, VALIDATION, TEST = ("train", "validation", "test")

_ORDER = pa.struct(
    [
        ("edges", pa.int64()),
        ("hard_edges", pa.int64()),
        ("unresolved", pa.int64()),
        ("resolved", pa.float64()),
        ("cycles", pa.int64()),
        ("largest_cycle", pa.int64()),
        ("satisfied", pa.float64()),
        ("fallbacks", pa.int64()),
    ]
)
_TARGET = pa.struct(
    [
        ("style", pa.string()),
        ("text", pa.string()),
        ("source", pa.string()),
        ("license", pa.string()),
        ("name_share", pa.float64()),
        ("leak_share_before", pa.float64()),
        ("leak_run_before", pa.int64()),
        ("leak_share", pa.float64()),
        ("leak_run", pa.int64()),
        ("masked_lines", pa.int64()),
        ("duplicate_of", pa.string()),
    ]
)
_CONSIDERED = pa.struct([("style", pa.string()), ("source", pa.string()), ("fate", pa.string())])
_LANGUAGE = pa.struct([("language", pa.string()), ("files", pa.int64()), ("bytes", pa.int64())])

REPOSITORIES = pa.schema(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("commit", pa.string()),
        ("ref", pa.string()),
        ("roots", pa.list_(pa.string())),
        ("family", pa.string()),
        ("split", pa.string()),
        ("license", pa.string()),
        ("languages", pa.list_(_LANGUAGE)),
        ("targets", pa.list_(_TARGET)),
        ("considered", pa.list_(_CONSIDERED)),
        ("refused", pa.string()),
        ("boundary", pa.string()),
        ("order", _ORDER),
        ("files", pa.int64()),
        ("kept_files", pa.int64()),
        ("kept_bytes", pa.int64()),
    ]
)
FILES = pa.schema(
    [
        ("repository", pa.string()),
        ("path", pa.string()),
        ("blob", pa.string()),
        ("size", pa.int64()),
        ("language", pa.string()),
        ("role", pa.string()),
        ("encoding", pa.string()),
        ("fate", pa.string()),
        ("position", pa.int32()),
        ("component", pa.int32()),
        ("rank", pa.float64()),
        ("entry_point", pa.string()),
        ("exports", pa.int32()),
        ("text", pa.string()),
        ("outline", pa.string()),
        ("text_sha256", pa.string()),
    ]
)
EDGES = pa.schema(
    [
        ("repository", pa.string()),
        ("from", pa.string()),
        ("to", pa.string()),
        ("kind", pa.string()),
        ("strength", pa.string()),
    ]
)
_SEGMENT = pa.struct(
    [
        ("repository", pa.string()),
        ("style", pa.string()),
        ("start", pa.int64()),
        ("target_start", pa.int64()),
        ("target_end", pa.int64()),
        ("leak_share", pa.float64()),
        ("leak_run", pa.int64()),
    ]
)
_SPAN = pa.struct(
    [
        ("segment", pa.int32()),
        ("path", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("fidelity", pa.string()),
        ("text_sha256", pa.string()),
    ]
)
PACKED = pa.schema(
    [
        ("input_ids", pa.large_list(pa.int32())),
        ("segments", pa.list_(_SEGMENT)),
        ("spans", pa.list_(_SPAN)),
    ]
)

SCHEMAS = {"repositories": REPOSITORIES, "files": FILES, "edges": EDGES}


def schema_of(table: str) -> pa.Schema:
    """The columns of a table, by its name."""
    return SCHEMAS.get(table, PACKED)


def kind(said: str) -> str:
    """What comes before the details: `too-short` of `too-short: 3 words`, `metadata` of `metadata:pom.xml`."""
    return said.partition(":")[0]


def usable_targets(repository: dict[str, Any]) -> list[dict[str, Any]]:
    """The targets of a row of `repositories` that documents are made of: all but those that repeat another repository's."""
    return [target for target in repository["targets"] if target["duplicate_of"] is None]


def target_text(repository: dict[str, Any], style: str) -> str:
    """The text of a repository's target in a style."""
    text: str = next(target["text"] for target in repository["targets"] if target["style"] == style)
    return text


# Records -> rows -------------------------------------------------------------------------------------------


def repository_row(repository: Repository) -> dict[str, Any]:
    return {
        "id": repository.id,
        "name": repository.name,
        "commit": repository.commit,
        "ref": repository.ref,
        "roots": list(repository.roots),
        "family": "",  # family and split are given at assembly, when all repositories are known
        "split": "",
        "license": repository.license,
        "languages": [asdict(share) for share in repository.languages],
        "targets": [_target_row(guarded) for guarded in repository.targets],
        "considered": [asdict(considered) for considered in repository.considered],
        "refused": repository.refused,
        "boundary": repository.boundary,
        "order": asdict(repository.quality),
        "files": repository.files,
        "kept_files": repository.kept_files,
        "kept_bytes": repository.kept_bytes,
    }


def _target_row(guarded: GuardedTarget) -> dict[str, Any]:
    target, leak = guarded.target, guarded.leak
    return {
        "style": target.style,
        "text": target.text,
        "source": target.source,
        "license": target.license,
        "name_share": guarded.name_share,
        "leak_share_before": leak.share_before,
        "leak_run_before": leak.run_before,
        "leak_share": leak.share,
        "leak_run": leak.run,
        "masked_lines": leak.masked_lines,
        "duplicate_of": None,  # told at assembly, when all targets are known
    }


def file_row(repository: str, file: SourceFile) -> dict[str, Any]:
    """A file's row before it is placed; what that gives it, `text`, its outline and its hash are None."""
    return {
        "repository": repository,
        "path": file.path,
        "blob": file.blob,
        "size": file.size,
        "language": file.language,
        "role": file.role,
        "encoding": file.encoding,
        "fate": file.fate,
        "position": None,
        "component": None,
        "rank": None,
        "entry_point": None,
        "exports": None,
        "text": None,
        "outline": None,
        "text_sha256": None,
    }


def edge_row(repository: str, edge: Edge) -> dict[str, Any]:
    return {
        "repository": repository,
        "from": edge.source,
        "to": edge.target,
        "kind": edge.kind,
        "strength": edge.strength,
    }


def packed_batch(documents: Sequence[Document]) -> pa.RecordBatch:
    """One packed row: the documents one after another, offsets absolute in the row."""
    segments, spans, ids = [], [], []
    base = 0
    for index, document in enumerate(documents):
        end = base + len(document)
        segments.append(
            {
                "repository": document.repository,
                "style": document.style,
                "start": base,
                "target_start": base + document.target_start,
                "target_end": end,
                "leak_share": document.leak_share,
                "leak_run": document.leak_run,
            }
        )
        for span in document.spans:
            spans.append(
                {
                    "segment": index,
                    "path": span.path,
                    "start": base + span.start,
                    "end": base + span.end,
                    "fidelity": span.fidelity,
                    "text_sha256": span.text_sha256,
                }
            )
        ids.append(document.input_ids)
        base = end
    tokens = pa.LargeListArray.from_arrays(pa.array([0, base], pa.int64()), pa.array(np.concatenate(ids)))
    return pa.RecordBatch.from_arrays(
        [tokens, pa.array([segments], PACKED.field("segments").type), pa.array([spans], PACKED.field("spans").type)],
        schema=PACKED,
    )
