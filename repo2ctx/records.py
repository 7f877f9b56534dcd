"""The types that travel between stages. Plain data: no behaviour beyond naming, no I/O.

A stage takes records and yields records; `schema.py` alone knows how they lie on disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

Strength = Literal["hard", "soft"]
OrderMethod = Literal["dependency", "path", "random", "reversed", "least-indegree"]
Style = Literal["line", "paragraph"]

KEPT = "kept"
"""The fate of a file that is part of the context. Any other fate is the reason why it is not."""


@dataclass(frozen=True, slots=True)
class RepoSpec:
    """One line of the list: which repository, at which ref, and what the list says about it."""

    source: str  # a path, a URL without credentials, or owner/name as written; shown to users
    url: str  # what git is given: an absolute path or a URL (may carry credentials: never shown or stored)
    name: str  # host/owner/name
    ref: str | None = None
    summary: str | None = None
    split: str | None = None
    line: int = 0

    @property
    def local(self) -> bool:
        return self.url.startswith("/")


def short_name(name: str) -> str:
    """owner/name of host/owner/name: what a model sees."""
    return name.partition("/")[2] or name


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One entry of the commit's tree: `path` is text, `raw_path` the bytes that git holds."""

    path: str
    raw_path: bytes
    mode: str  # git's: 100644, 100755, 120000 (symlink), 160000 (submodule)
    blob: str  # object id, hexadecimal
    usable: bool = True  # whether a checkout could have this path; objects made by hand may hold any


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of the repository, kept or not, and why."""

    path: str
    blob: str
    size: int  # bytes in the object store; 0 for what has no blob
    fate: str  # KEPT, or the reason why not
    language: str = ""  # linguist's name
    encoding: str = ""
    role: str = "code"  # code, test, docs, example, config, manifest, generated: weighs in order and rank


@dataclass(frozen=True, slots=True)
class Import:
    """One reference from a file to another, as the language writes it (`name`), before it is resolved."""

    name: str
    line: int
    kind: str = "import"  # import, include, mod, use, require, autoload, implements, test
    strength: Strength = "hard"  # hard: needed when the file loads or compiles
    names: tuple[str, ...] = ()  # members named with it: `from a import b, c`


@dataclass(frozen=True, slots=True)
class Syntax:
    """What one file says about itself; made by a language's `scan` from the syntax tree, and picklable."""

    imports: tuple[Import, ...] = ()
    package: str = ""  # the package, module or namespace that the file declares
    defines: tuple[str, ...] = ()  # names that it declares for other files
    uses: tuple[str, ...] = ()  # names that it uses and may get from other files without importing them
    tags: tuple[str, ...] = ()  # whatever else its language needs (build constraints, file kind)
    exports: int = 0  # how many names it offers to whoever uses the repository
    main: bool = False  # whether a program starts here, as the file itself says
    problem: str = ""  # why parsing fell back, when it did: "timeout", "memory", "crash", "errors"


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """`source` needs `target`; paths within one repository."""

    source: str
    target: str
    kind: str
    strength: Strength


@dataclass(frozen=True, slots=True, order=True)
class Unresolved:
    """A reference that looked like one into the repository and led nowhere."""

    source: str
    name: str
    line: int


@dataclass(frozen=True, slots=True, order=True)
class EntryPoint:
    """A file that a program or a package's user starts with, and what says so (`package.json`, say)."""

    path: str
    said_by: str


Found = Edge | Unresolved | EntryPoint
"""What the rules of a language say of a repository."""


@dataclass(frozen=True, slots=True)
class Target:
    """A summary that a model is to learn, and where it came from."""

    text: str
    source: str  # list, metadata:pyproject.toml, readme:README.md, docstring:src/x/__init__.py, teacher:MODEL
    style: Style
    license: str = ""  # of the text: the repository's, NOASSERTION for what the list or a teacher says


@dataclass(frozen=True, slots=True)
class Considered:
    """A text that might have become a target. fate: chosen, spare (good, but another came first), or why not."""

    style: Style
    source: str
    fate: str


@dataclass(frozen=True, slots=True)
class LeakFigures:
    """How much of a target its repository's files hold: the share of its 8-grams and the longest common run, in words.
    before: all files as they were selected. Then as they were written; a row holds no more than that."""

    share_before: float = 0.0
    run_before: int = 0
    share: float = 0.0
    run: int = 0
    masked_lines: int = 0


@dataclass(frozen=True, slots=True)
class GuardedTarget:
    """A target after the leak guard. name_share: how much of it is the project's name, by words."""

    target: Target
    name_share: float
    leak: LeakFigures


@dataclass(frozen=True, slots=True)
class OrderQuality:
    """How the order came to be: what a row needs to be judged by."""

    edges: int = 0
    hard_edges: int = 0
    unresolved: int = 0  # references that looked like ones into the repository and led nowhere
    resolved: float = 1.0  # edges, as a share of edges and unresolved references
    cycles: int = 0  # components of more than one file
    largest_cycle: int = 0
    satisfied: float = 1.0  # share of the pairs of files with an edge whose needed file comes first
    fallbacks: int = 0  # files whose parser was stopped or found errors


@dataclass(frozen=True, slots=True)
class Placed:
    """A kept file's place: `position` counts from 0; `component` is shared by the files of one cycle. `entry_point`
    says what makes it one ("" if it is none), `exports` how many names it offers: both count in the rank."""

    path: str
    position: int
    component: int
    rank: float
    entry_point: str = ""
    exports: int = 0


@dataclass(frozen=True, slots=True)
class LanguageShare:
    """How much of a repository's kept text is in one language."""

    language: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at a commit, as one row of `repositories`."""

    id: str  # host/owner/name@commit
    name: str
    commit: str
    ref: str
    license: str
    refused: str  # why it was not taken at all ("" if it was), and then it has nothing of the following
    roots: tuple[str, ...] = ()  # root commits; none where the history is cut, or was not looked at
    languages: tuple[LanguageShare, ...] = ()
    targets: tuple[GuardedTarget, ...] = ()  # at most one of each style
    considered: tuple[Considered, ...] = ()
    boundary: str = ""  # what marks files in the prompt; found in none of them
    quality: OrderQuality = OrderQuality()
    files: int = 0
    kept_files: int = 0
    kept_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """Where a file stands in a row: tokens start to end decode to what the row holds of it, which `fidelity` says: full, its
    prepared text; outline; head, a beginning of the text; path, its line in the tree. text_sha256: of the prepared text (None
    where only the path stands)."""

    path: str
    start: int
    end: int
    fidelity: str
    text_sha256: str | None


@dataclass(slots=True)
class Document:
    """One repository fitted to a length: offsets count from the document's first token."""

    repository: str
    input_ids: npt.NDArray[np.int32]
    target_start: int
    style: str
    spans: list[Span] = field(default_factory=list)
    left_out: int = 0  # kept files of which not even the path stands in it
    leak_share: float = 0.0  # of the target's 8-grams, those that its context holds
    leak_run: int = 0  # words of the longest run that they share

    def __len__(self) -> int:
        return len(self.input_ids)


@dataclass(frozen=True, slots=True)
class Failure:
    """A repository that could not be had or read; the build goes on without it."""

    source: str
    line: int
    reason: str
