"""Which file defines a Ruby constant, as Ruby's lookup and Zeitwerk's convention say.

A name is looked up in each enclosing class or module, innermost first (`class A::B` is one, not two), then in what
the innermost inherits or mixes in, then at the top level. Of the files that define what is found, the one whose path
spells the constant (`billing/tax.rb` for `Billing::Tax`) is meant, under `app/*`, `app/*/concerns`, `lib`, `test` or
`spec`; or one that an `autoload` names; or the only one that there is, if its namespace is this repository's own.
Files that merely reopen a namespace, or a class of a gem, define nothing. Only tests see tests, and only of their own project; an
application inside the repository (`config/application.rb`) is seen by its own files only.
"""

from __future__ import annotations

import posixpath
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from repo2ctx.languages import RepoTree, ancestors
from repo2ctx.languages._ruby_paths import distance, gem_roots, is_test, project
from repo2ctx.records import Syntax

_ANCESTORS = 32  # classes and modules looked at above one, at most

# Ruby itself has these: a file that opens one at the top level adds to it.
_CORE = frozenset(
    """
    ARGF ARGV ArgumentError Array BasicObject Binding Class ClosedQueueError Comparable Complex ConditionVariable Data
    Dir ENV EOFError Encoding EncodingError Enumerable Enumerator Errno Exception FalseClass Fiber FiberError File
    FileTest Float FloatDomainError FrozenError GC Hash IO IOError IndexError Integer Interrupt Kernel KeyError
    LoadError LocalJumpError Marshal MatchData Math Method Module Monitor Mutex NameError NilClass NoMatchingPatternError
    NoMatchingPatternKeyError NoMemoryError NoMethodError NotImplementedError Numeric Object ObjectSpace Proc Process
    Queue RUBY_ENGINE RUBY_PLATFORM RUBY_VERSION Ractor Random Range RangeError Rational Refinement Regexp RegexpError
    RubyVM RuntimeError STDERR STDIN STDOUT ScriptError SecurityError Set Signal SignalException SizedQueue
    StandardError StopIteration String Struct Symbol SyntaxError SystemCallError SystemExit SystemStackError Thread
    ThreadError ThreadGroup Time TracePoint TrueClass TypeError UnboundMethod UncaughtThrowError UnicodeNormalize
    Warning ZeroDivisionError
""".split()
)


_Zone = tuple[str | None, str | None]  # the project whose test a file is, and the application that it is in


class Constants:
    """All constants of one repository. `autoloaded`: constant -> the file that an `autoload` names for it."""

    def __init__(self, tree: RepoTree, syntax: Mapping[str, Syntax], autoloaded: Mapping[str, str]):
        self.gem_roots = frozenset(gem_roots(tree))
        self.applications = frozenset(
            posixpath.dirname(posixpath.dirname(path))
            for path in tree.by_name.get("application.rb", ())
            if posixpath.basename(posixpath.dirname(path)) == "config"
        )
        self.zones: dict[str, _Zone] = {}
        self.heads: set[str] = set()  # first parts of the names of the repository's code
        self.by_spelling: dict[str, list[str]] = {}  # path as a constant spells it -> files
        for folder, paths in sorted(tree.by_directory.items()):
            self._index_folder(folder, paths)
        self.known = {
            entry.replace("|", "::")
            for file in syntax.values()
            for entry in (*file.defines, *_tagged(file, "wraps:"))
            if "::" not in entry
        }
        self.definers: dict[str, dict[str, None]] = {}
        self.openers: dict[str, dict[str, None]] = {}  # of namespaces
        self.nestings: dict[str, tuple[str, ...]] = {}
        self.parents: dict[str, list[tuple[str, str, str]]] = {}  # class -> nesting, name and file of each
        for path in sorted(syntax):
            self._index_file(path, syntax[path])
        for path in sorted(syntax):
            self._index_reopened(path, syntax[path])
        self.autoloaded = {self.nesting(scoped)[-1]: target for scoped, target in autoloaded.items()}
        self.namespaces = {above_it for name in self.definers if (above_it := name.rpartition("::")[0])}
        self.holders: dict[str, set[str]] = {}  # last part of a constant's name -> what stands before it
        for name in (*self.definers, *self.openers, *self.autoloaded, *self.namespaces):
            outer, _, last = name.rpartition("::")
            self.holders.setdefault(last, set()).add(outer)
        self.existing: dict[tuple[str, _Zone], bool] = {}
        self.spelled: dict[str, list[str]] = {}
        self.direct: dict[str, list[str]] = {}
        self.inherited: dict[str, list[str]] = {}

    def _index_folder(self, folder: str, paths: Iterable[str]) -> None:
        application = next((a for a in ancestors(folder) if a in self.applications), None)
        inside = f"{folder}/"
        zone = project(inside) if is_test(inside) else None, application
        roots = [root for root in ancestors(folder) if self._is_root(root)]
        for path in paths:
            self.zones[path] = zone
            for root in roots if path.endswith(".rb") else ():
                name = _spelling(path[len(root) :].lstrip("/").removesuffix(".rb"))
                self.by_spelling.setdefault(name, []).append(path)
                if zone[0] is None:
                    self.heads.add(name.partition("/")[0])

    def _index_file(self, path: str, file: Syntax) -> None:
        for entry in file.defines:
            self.definers.setdefault(self.nesting(entry)[-1], {})[path] = None
        for entry in _tagged(file, "wraps:"):
            self.openers.setdefault(self.nesting(entry)[-1], {})[path] = None
        for use in file.uses:
            if " parent " in use:
                scope, name, _, heir = use.split(" ")
                self.parents.setdefault(self.nesting(heir)[-1], []).append((scope, name, path))

    def _index_reopened(self, path: str, file: Syntax) -> None:
        """`class A::B` in a file of another name defines B only if the repository defines A: otherwise both are a gem's."""
        for entry in _tagged(file, "reopens:"):
            full = self.nesting(entry)[-1]
            named = self.definers if full.rpartition("::")[0] in self.definers else self.openers
            named.setdefault(full, {})[path] = None

    def _is_root(self, folder: str) -> bool:
        """Whether paths below a folder spell constants."""
        if folder in self.gem_roots:
            return True
        parts = folder.rsplit("/", 3)[-3:]
        if parts[-1] == "concerns":
            parts = parts[:-1]
        return parts[-1] in ("lib", "test", "spec") or parts[-2:-1] == ["app"]

    def nesting(self, scoped: str) -> tuple[str, ...]:
        """The full names of the classes and modules around a place, outermost first, from `A|B::C`."""
        if scoped not in self.nestings:
            found: list[str] = []
            for piece in scoped.split("|") if scoped else ():
                outer = f"{found[-1]}::" if found else ""
                first = piece.partition("::")[0]
                if "::" in piece and outer + first not in self.known and first in self.known:
                    outer = ""  # `class A::B` within a module that has no A of its own
                found.append(piece[2:] if piece.startswith("::") else outer + piece)
            self.nestings[scoped] = tuple(found)
        return self.nestings[scoped]

    def find(self, scope: str, name: str, path: str) -> str | None:
        """The file that defines what `name` means in `path` at a nesting; a constant in it, if that has no file."""
        chain = self._chain(scope, name, path, inherit=True)
        if not chain:
            return None
        return self._file(chain[-1], path) or next(
            (found for full in reversed(chain[:-1]) if (found := self._spelled_file(full, path))), None
        )

    def autoload(self, scoped: str, under: str, path: str) -> str | None:
        """The file of ActiveSupport's `autoload :Name` without a path."""
        outer, _, name = "/".join(self.nesting(scoped)[-1].split("::")).rpartition("/")
        files = self.by_spelling.get(_spelling("/".join(filter(None, (outer, under, name)))), ())
        return self._nearest(files, path)

    def _chain(self, scope: str, name: str, path: str, inherit: bool) -> list[str]:
        """The constants that a name leads through, each in the one before."""
        zone = self.zones[path]
        absolute = name.startswith("::")
        first, *rest = name.removeprefix("::").split("::")
        if first not in self.holders:
            return []
        start = next(self._starts(() if absolute else self.nesting(scope), first, zone, inherit), None)
        chain = [start] if start else []
        for part in rest:
            if not chain or not self._exists(f"{chain[-1]}::{part}", zone):
                break
            chain.append(f"{chain[-1]}::{part}")
        return chain

    def _starts(self, nesting: Sequence[str], first: str, zone: _Zone, inherit: bool) -> Iterator[str]:
        """What the first part of a name may mean, as Ruby searches."""
        holders = self.holders[first]
        for outer in reversed(nesting):
            if outer in holders and self._exists(f"{outer}::{first}", zone):
                yield f"{outer}::{first}"
        if nesting and inherit and len(holders) > ("" in holders):
            for outer in self._ancestors(nesting[-1]):
                if outer in holders and self._exists(f"{outer}::{first}", zone):
                    yield f"{outer}::{first}"
        if "" in holders and self._exists(first, zone):
            yield first

    def _exists(self, name: str, zone: _Zone) -> bool:
        known = self.existing.get((name, zone))
        if known is None:
            files = (*self.definers.get(name, ()), *self.openers.get(name, ()))
            known = self.existing[name, zone] = (
                name in self.namespaces or name in self.autoloaded or any(self._sees(zone, f) for f in files)
            )
        return known

    def _ancestors(self, name: str) -> list[str]:
        """What a class inherits from and mixes in, as far as that is in the repository, nearest first."""
        if name not in self.inherited:
            found: dict[str, None] = {}
            waiting = deque([name])
            while waiting and len(found) < _ANCESTORS:
                new = [p for p in self._parents(waiting.popleft()) if p not in found]
                found.update(dict.fromkeys(new))
                waiting += new
            self.inherited[name] = list(found)[:_ANCESTORS]
        return self.inherited[name]

    def _parents(self, name: str) -> list[str]:
        if name not in self.direct:
            chains = [
                (parent, self._chain(scope, parent, path, False)) for scope, parent, path in self.parents.get(name, ())
            ]
            whole = [c[-1] for parent, c in chains if len(c) == len(parent.removeprefix("::").split("::"))]
            self.direct[name] = list(dict.fromkeys(whole))[:_ANCESTORS]
        return self.direct[name]

    def _sees(self, zone: _Zone, target: str) -> bool:
        test, application = self.zones[target]
        return (test is None or test == zone[0]) and (
            not application or f"{zone[1] or ''}/".startswith(f"{application}/")
        )

    def _file(self, name: str, path: str) -> str | None:
        definers = self.definers.get(name, {})
        if path in definers:
            return path
        if name in _CORE:
            return None
        if found := self._spelled_file(name, path):
            return found
        seen = list(islice((d for d in definers if self._sees(self.zones[path], d)), 2))
        ours = "::" in name and _spelling(name.partition("::")[0]) in self.heads
        return seen[0] if len(seen) == 1 and ours else None

    def _spelled_file(self, name: str, path: str) -> str | None:
        """The file that `autoload` or its own path says is the constant's."""
        if name in _CORE:
            return None
        declared = self.autoloaded.get(name)
        if declared and self._sees(self.zones[path], declared):
            return declared
        if name not in self.spelled:
            spelling = _spelling(name.replace("::", "/"))
            files = dict.fromkeys((*self.definers.get(name, ()), *self.openers.get(name, ())))
            rooted = [f for f in self.by_spelling.get(spelling, ()) if f in files]
            loose = [f for f in files if _spelling(f"/{f}").endswith(f"/{spelling}.rb")] if "/" in spelling else []
            self.spelled[name] = rooted or loose
        return self._nearest(self.spelled[name], path)

    def _nearest(self, files: Iterable[str], path: str) -> str | None:
        seen = (f for f in files if self._sees(self.zones[path], f))
        return min(seen, key=lambda f: (distance(path, f), f), default=None)


def _tagged(file: Syntax, kind: str) -> list[str]:
    return [tag.removeprefix(kind) for tag in file.tags if tag.startswith(kind)]


def _spelling(path: str) -> str:
    """A path or constant without what inflections differ in: `html_parser` and `HTMLParser` are the same."""
    return path.replace("_", "").lower()
