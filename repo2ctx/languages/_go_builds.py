"""Go's build constraints: in comments, and in names of files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product

from tree_sitter import Node

from repo2ctx.languages import text

_SYSTEMS = frozenset(
    {
        "aix", "android", "darwin", "dragonfly", "freebsd", "hurd", "illumos", "ios", "js", "linux", "nacl", "netbsd",
        "openbsd", "plan9", "solaris", "wasip1", "windows", "zos",
    }
)  # fmt: skip
_VARIANTS = frozenset({"android", "illumos", "ios"})  # of linux, solaris and darwin, whose files they use too
_NOT_UNIX = frozenset({"js", "nacl", "plan9", "wasip1", "windows", "zos"})
_MACHINES = frozenset(
    {
        "386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le",
        "riscv64", "s390x", "sparc64", "wasm",
    }
)  # fmt: skip
_TERM = re.compile(r"\|\||&&|[!()]|[\w.]+")


def name_rules(path: str) -> tuple[str, ...]:
    """The constraints that the file's name makes: `_linux.go`, `_arm64.go`, `_linux_arm64_test.go`."""
    words = posixpath.basename(path).removesuffix(".go").removesuffix("_test").split("_")[1:]
    if words and words[-1] in _MACHINES:
        return tuple(words[-2:]) if len(words) > 1 and words[-2] in _SYSTEMS else (words[-1],)
    return (words[-1],) if words and words[-1] in _SYSTEMS else ()


@cache
def satisfiable(rules: tuple[str, ...]) -> bool:
    """Whether some build meets all constraints; taken for granted where there are too many tags to try."""
    terms = [_TERM.findall(rule) for rule in rules]
    tags = sorted({term for rule in terms for term in rule if term[0] not in "!()&|"})
    if len(tags) > 8 or sum(map(len, terms)) > 200:
        return True
    for values in product((False, True), repeat=len(tags)):
        build = dict(zip(tags, values, strict=True))
        systems = [tag for tag in tags if tag in _SYSTEMS - _VARIANTS and build[tag]]
        machines = [tag for tag in tags if tag in _MACHINES and build[tag]]
        if len(systems) > 1 or len(machines) > 1:
            continue
        if systems and "unix" in build and build["unix"] == (systems[0] in _NOT_UNIX):
            continue
        if all(_holds(rule, build) for rule in terms):
            return True
    return False


def _holds(rule: list[str], build: Mapping[str, bool]) -> bool:
    """The value of `a && !b || (c)`, worked off from the innermost brackets; true if these do not match."""
    left = "".join(str(int(build[term])) if term in build else term for term in rule)
    while "(" in left:
        shorter = re.sub(r"\(([^()]*)\)", lambda found: str(int(_holds_flat(found[1]))), left)
        if shorter == left:
            return True
        left = shorter
    return _holds_flat(left)


def _holds_flat(rule: str) -> bool:
    return any(
        all(term.lstrip("!") == "01"[term.count("!") % 2 == 0] for term in option.split("&&"))
        for option in rule.split("||")
    )


def build_lines(root: Node, source: bytes) -> Iterator[str]:
    """Build constraints above the package clause, all in the form of `//go:build`."""
    if b"+build " not in source and b"//go:build " not in source:
        return
    for node in root.children:
        if node.type != "comment":
            return
        comment = text(node)
        if comment.startswith("//go:build "):
            yield comment.removeprefix("//go:build ").strip()
        elif comment.removeprefix("//").lstrip().startswith("+build "):
            options = comment.partition("+build ")[2].split()
            yield " || ".join(" && ".join(part for part in option.split(",") if part) for option in options)
