"""Families and splits: every repository of a family is in one split, in this build and in those that it goes on from.

A family has the name that an earlier build of this OUT gave it, else its smallest root commit, else its smallest repository's
name. Its split is what the list says of a member, else what the earlier build had, else one by hash of the family's name.
Repositories take their places in this order: those of the earlier build, then those whose split the list gives, then the
rest, each in the list's order. One that is tied to two splits, or to another than its own line gives, is left out and named:
to take it would put one work into two splits, or move what has its place.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from repo2ctx.config import SplitConfig
from repo2ctx.families import By, Member, Sets, Tie, blob_ids, ties
from repo2ctx.records import KEPT, Failure, RepoSpec
from repo2ctx.state import unit_key
from repo2ctx.unit import Unit

COUNTED_COLUMNS = ("path", "blob", "size", "fate")
"""The columns of `files` that `counted_blobs` reads."""

_LEAST_BYTES = 128  # shorter files are alike by chance: empty modules, one import
# What communities and editors ask of every repository: anything with a leading dot, licences, codes of conduct and the like.
_BOILERPLATE = (
    r"(?i)(?:^|/)(?:\.|licenses/|(?:(?:un)?licen[cs]es?|copying|copyright|notice|patents|code[._-]?of[._-]?conduct|contributing|contributors"
    r"|authors|maintainers|codeowners|governance|security|support)(?:[._-][^/]*)?$)"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A repository that asks for a place. says: the split that the list gives it; earlier: the one that it had; or ""."""

    member: Member
    says: str = ""
    earlier: str = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """What keeps a candidate out: another, by index, which is in a split that it cannot join, and what ties them."""

    other: int
    split: str
    by: By
    share: float


@dataclass(frozen=True, slots=True)
class Places:
    """The family and the split of every candidate that has a place, and what keeps the others out, by index."""

    families: dict[int, str]
    splits: dict[int, str]
    conflicts: dict[int, list[Conflict]]


def place(candidates: Sequence[Candidate], config: SplitConfig) -> Places:
    """Give candidates, in the list's order, their places. Cost: `ties` once, and about twice more for each that is left out."""
    conflicts: dict[int, list[Conflict]] = {}
    wanted = _wanted(candidates)
    order = sorted(range(len(candidates)), key=lambda i: (not candidates[i].earlier, not candidates[i].says, i))
    while True:
        staying = [index for index in order if index not in conflicts]
        found = ties([candidates[index].member for index in staying])
        sets, splits, refused = _settle(candidates, wanted, staying, found)
        # Who is left out holds no blobs either, and may have stood between two others: the rest is looked at anew.
        conflicts |= refused
        if not refused:
            break
    together: dict[int, list[Member]] = defaultdict(list)
    for index in staying:
        together[sets.find(index)].append(candidates[index].member)
    names = {first: _name(members) for first, members in together.items()}
    families = {index: names[sets.find(index)] for index in staying}
    placed = {index: splits.get(sets.find(index)) or by_hash(families[index], config) for index in staying}
    # by the places that all have now, also those by hash, as the next build will find them
    conflicts = {
        index: _clashes(index, wanted[index], candidates, placed) or found for index, found in conflicts.items()
    }
    return Places(families, placed, conflicts)


def by_hash(family: str, config: SplitConfig) -> str:
    """The split of a family by hash of its name, so that it does not depend on what else the list holds."""
    digest = hashlib.sha256(f"{config.seed}\0{family}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    if share < config.test:
        return "test"
    return "validation" if share < config.test + config.validation else "train"


def _wanted(candidates: Sequence[Candidate]) -> list[str]:
    """The split that each candidate brings with it, or "". What the list says of one moves its earlier family with it."""
    moved: dict[str, str] = {}
    for candidate in candidates:
        if candidate.earlier and candidate.says:
            moved.setdefault(candidate.member.earlier, candidate.says)
    return [c.says or (c.earlier and moved.get(c.member.earlier, c.earlier)) for c in candidates]


def _settle(
    candidates: Sequence[Candidate], wanted: Sequence[str], staying: Sequence[int], found: Sequence[Tie]
) -> tuple[Sets, dict[int, str], dict[int, list[Conflict]]]:
    """(the families, the split of those that have one by the number that stands for them, who is left out and why).

    staying: in the order in which they take their places, so that `found`, which ties all to the first, ties each to one that
    has its place. That ends with the first that is left out: of those that follow, only who certainly cannot stay is told.
    """
    near: dict[int, list[tuple[int, Tie]]] = defaultdict(list)
    for tie in found:
        near[staying[tie.first]].append((staying[tie.second], tie))
        near[staying[tie.second]].append((staying[tie.first], tie))
    sets, splits = Sets(len(candidates)), dict[int, str]()
    placed: set[int] = set()
    sure: set[int] = set()
    refused: dict[int, list[Conflict]] = {}
    for index in staying:
        neighbours = [(other, tie) for other, tie in near[index] if other in placed]
        met = _closest((other, splits.get(sets.find(other), ""), tie) for other, tie in neighbours)
        own = wanted[index]
        if len({*met, own} - {""}) > 1:
            clashes = [conflict for split, conflict in sorted(met.items()) if split != own]
            sure = sure or set(placed)
            if not refused or (own and any(c.by != "blobs" and c.other in sure for c in clashes)):
                refused[index] = clashes
            continue
        placed.add(index)
        for other, _ in neighbours:
            sets.unite(index, other)
        if split := own or next(iter(met), ""):
            splits[sets.find(index)] = split
    return sets, splits, refused


def _clashes(index: int, own: str, candidates: Sequence[Candidate], placed: Mapping[int, str]) -> list[Conflict]:
    """For each split but its own, the one with a place there that is closest to who was left out, whatever the order was."""
    others = sorted(placed)
    # all of one name or root are tied to the first
    found = ties([candidates[index].member, *(candidates[other].member for other in others)])
    own_ties = ((others[tie.second - 1], tie) for tie in found if tie.first == 0)
    met = _closest((other, placed[other], tie) for other, tie in own_ties)
    return [conflict for split, conflict in sorted(met.items()) if split != own]


def _closest(found: Iterable[tuple[int, str, Tie]]) -> dict[str, Conflict]:
    """For each split, the first with the largest share of those who are in it, those that an earlier build tied after all others.

    found: (who, its split or "", what ties it).
    """
    best: dict[str, tuple[tuple[bool, float], Conflict]] = {}
    for other, split, tie in found:
        closeness = (not tie.by.startswith("family"), tie.share)
        if split and (split not in best or best[split][0] < closeness):
            best[split] = closeness, Conflict(other, split, tie.by, tie.share)
    return {split: conflict for split, (_, conflict) in best.items()}


def _name(members: Iterable[Member]) -> str:
    members = list(members)
    earlier = [member.earlier for member in members if member.earlier]
    return min(earlier or [root for member in members for root in member.roots] or [member.name for member in members])


# Of units and of what a build wrote ------------------------------------------------------------------------


def counted_blobs(batches: Iterable[pa.RecordBatch]) -> list[str]:
    """The object ids of the files that tell one work from another: kept, of 128 bytes or more, and no boilerplate."""
    found: list[str] = []
    for batch in batches:
        own = pc.invert(pc.match_substring_regex(batch.column("path"), _BOILERPLATE))
        large = pc.greater_equal(batch.column("size"), _LEAST_BYTES)
        kept = pc.equal(batch.column("fate"), KEPT)
        found += batch.column("blob").filter(pc.and_(kept, pc.and_(large, own))).to_pylist()
    return found


def member_of(repository: Mapping[str, Any], files: Iterable[pa.RecordBatch], earlier: str = "") -> Member:
    """What a repository, given as its row and the batches of its files, is tied by."""
    return Member(repository["name"], tuple(repository["roots"]), blob_ids(counted_blobs(files)), earlier)


def assign(
    units: Sequence[Unit], earlier: Mapping[str, Sequence[str]], config: SplitConfig
) -> tuple[list[Unit], list[dict[str, Any]]]:
    """Write family and split into the units' rows. Returns the units that have a place, and the manifest's `left_out`.

    earlier: a repository's name -> its family and split in the build that this one goes on from.
    """
    candidates = []
    for unit in units:
        row = unit.repository
        family, split = earlier.get(row["name"], ("", ""))
        member = member_of(row, unit.batches("files", COUNTED_COLUMNS), family)
        candidates.append(Candidate(member, row["split"], split))
    places = place(candidates, config)
    for index, family in places.families.items():
        units[index].repository.update(family=family, split=places.splits[index])
    left_out = [
        {
            "unit": units[index].folder.name,
            "says": candidates[index].says,
            "ties": [
                {"unit": units[c.other].folder.name, "split": c.split, "by": c.by, "share": round(c.share, 4)}
                for c in conflicts
            ],
        }
        for index, conflicts in sorted(places.conflicts.items())
    ]
    return [units[index] for index in sorted(places.families)], left_out


_BY: dict[By, str] = {
    "name": "they have one name",
    "family": "they were one family in the earlier build",
    "family-name": "in the earlier build, one of them was in the family that has the other's name",
    "family-root": "in the earlier build, one of them was in the family that has the other's root commit",
    "root": "they share a root commit",
    "blobs": "they share {share:.0%} of the files of the smaller one",
}


def why(by: By, share: float) -> str:
    """What ties two repositories, in words."""
    return _BY[by].format(share=share)


def left_out_failures(left_out: Sequence[Mapping[str, Any]], specs: Sequence[RepoSpec]) -> list[Failure]:
    """The manifest's `left_out` for people: who was left out, why, and the way out."""
    by_key = {unit_key(spec): spec for spec in specs}
    failures = []
    for entry in left_out:
        spec = by_key[entry["unit"]]
        others = [
            f"{by_key[tie['unit']].source} (line {by_key[tie['unit']].line}), which is in {tie['split']}: "
            f"{why(tie['by'], tie['share'])}"
            for tie in entry["ties"]
        ]
        said = f"left out: its line says {entry['says']}, but" if entry["says"] else "left out:"
        reason = (
            f"{said} it is of one family with {'; and with '.join(others)}; give the lines of all of them one split, or take "
            "some out of the list"
        )
        failures.append(Failure(spec.source, spec.line, reason))
    return failures
