"""What the names of one C# file mean, and which files it therefore needs."""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections.abc import Iterator

from repo2ctx.languages._csharp_index import Found, Index, outwards
from repo2ctx.languages._csharp_projects import Using
from repo2ctx.records import Edge, Import, Strength, Unresolved

_DEEPEST = 16  # generations of base types
_MOST_BASES = 200  # of all types of a file, and theirs
_MOST_LEVELS = 64  # namespaces around all types of a file
_MOST_PARTS = 4  # of a partial type without a main part: more of them say little
_MOST_NEAR = 16  # files that declare one type, of which the nearest is looked for
# Names of methods that the framework's own types have: a call of one is no sign of an extension method.
_FRAMEWORK_METHODS = frozenset(
    """
    Add AddRange All Any Append Aggregate Average Cast Clear Clone Close CompareTo Concat Contains ContainsKey CopyTo Count
    Distinct Dispose ElementAt EndsWith Equals Except First FirstOrDefault Flush ForEach Format GetEnumerator GetHashCode
    GetType GroupBy IndexOf Insert Intersect Invoke Join Last LastOrDefault Max Min OfType OrderBy OrderByDescending Parse
    Read ReadAsync Remove RemoveAll Replace Reverse Select SelectMany SequenceEqual Single SingleOrDefault Skip SkipWhile
    Sort Split StartsWith Substring Sum Take TakeWhile ThenBy ToArray ToDictionary ToList ToLookup ToLower ToString ToUpper
    Trim TrimEnd TrimStart TryGetValue TryParse Union Wait Where Write WriteAsync WriteLine Zip
""".split()
)


class Files:
    """The files of a repository, made when asked for."""

    def __init__(self, index: Index):
        self.index = index
        self.known: dict[str, File] = {}
        self.direct: dict[str, list[str]] = {}

    def __getitem__(self, path: str) -> File:
        if path not in self.known:
            self.known[path] = File(self, path)
        return self.known[path]

    def bases(self, full: str) -> list[str]:
        """Full names of the types that a type's declarations name as bases."""
        if full not in self.direct:
            found = [self[path].named(name) for path, name in self.index.supers.get(full, ())]
            self.direct[full] = list(dict.fromkeys(f[0] for f in found if f))
        return self.direct[full]


class File:
    """One file's names, and which files they mean."""

    def __init__(self, files: Files, path: str):
        self.files = files
        self.index = index = files.index
        self.path = path
        self.syntax = index.syntax[path]
        self.project = index.project_of[path]
        self.own = dict.fromkeys(self.syntax.defines)
        self.bases: dict[str, None] = {}  # of its own types, and of these; known when edges are asked for
        self.hiding: list[set[str]] = []  # names of the members of all these
        self.ranks: dict[str, int] = {}  # container that the file sees -> how late it is asked
        self.aliases: dict[str, str] = {}
        self.needed: dict[str, str] = {}  # container or alias -> the file whose `global using` brings it
        self.unresolved: list[Unresolved] = []
        self.needs: dict[str, Strength] = {}
        declared = [tag.split(":")[1] for tag in self.syntax.tags if tag.startswith("namespace:")]
        around = dict.fromkeys(level for name in declared[:_MOST_LEVELS] for level in outwards(name) if level)
        self.around = [*list(around)[:_MOST_LEVELS], ""]
        self._see()

    def _see(self) -> None:
        """Rank the containers: per level of namespaces first its own types, then what `using` brings."""
        scoped: dict[str, list[tuple[str, Using]]] = {}
        for item in self.syntax.imports:
            how, scope, alias = item.names
            if not how.startswith("global "):
                scoped.setdefault(scope, []).append((self.path, (how, item.name, alias)))
                self._check(item, scope)
        usings = scoped.setdefault("", [])
        usings += self.index.global_usings.get(self.project, ())
        usings += [("", using) for using in self.index.projects.usings(self.project)]
        for level in self.around:
            self.ranks.setdefault(level, 2 * len(self.ranks))
            rank = 2 * len(self.ranks) - 1
            for path, (how, name, alias) in scoped.get(level, ()):
                if alias:
                    self.aliases.setdefault(alias, name)
                    brings = alias
                else:
                    found = self._container(name, level)
                    if found is None or found in self.ranks or (how == "static") != bool(self.index.declaring(found)):
                        continue
                    self.ranks[found] = rank
                    brings = found
                if path and path != self.path:
                    self.needed.setdefault(brings, path)

    def _container(self, name: str, scope: str) -> str | None:
        """The full name of a namespace or type that `using` names inside a namespace."""
        if name.partition(".")[0] not in self.index.known:
            return None
        for level in outwards(scope):
            full = f"{level}.{name}" if level else name
            if full in self.index.namespaces or self.index.declaring(full):
                return full
        return None

    def _check(self, item: Import, scope: str) -> None:
        """Note a `using` that leads nowhere though the namespace above it has types of ours."""
        above = item.name.rpartition(".")[0]
        internal = "." in above and above in self.index.containers and not above.startswith("System.")
        if internal and self._container(item.name, scope) is None:
            self.unresolved.append(Unresolved(self.path, item.name, item.line))

    def edges(self) -> Iterator[Edge | Unresolved]:
        """What the file needs."""
        yield from self.unresolved
        self._add_bases()
        for full in self.own:
            if full in self.index.partial:
                self._need_main_part(full)
            for path, name in self.index.supers.get(full, ()):
                if path == self.path:  # else another part of the type says so
                    self._need(self.named(name, inherit=True), "hard", name)
        known, aliases = self.index.known, self.aliases
        for use in self.syntax.uses:
            sign = use[0]
            name = use[1:] if sign in ".?@~" else use
            head = name.partition(".")[0]
            if sign == ".":
                self._need_called(*name.split("(", 1))
            elif sign == "@":
                self._need(self._attribute(name), "hard")
            elif (head in known or head in aliases) and (name == use or not self._is_member(head)):
                self._need(self.named(name, inherit=True), "soft" if sign == "~" else "hard", head)
        for target, strength in self.needs.items():
            yield Edge(self.path, target, "use", strength)

    def _is_member(self, name: str) -> bool:
        return any(name in members for members in self.hiding)

    def _add_bases(self) -> None:
        generation = list(self.own)
        for _ in range(_DEEPEST):
            if not generation:
                break
            found = dict.fromkeys(base for full in generation for base in self.files.bases(full))
            new = [base for base in found if base not in self.own and base not in self.bases]
            generation = new[: _MOST_BASES - len(self.bases)]
            self.bases.update(dict.fromkeys(generation))
        members = self.index.members
        self.hiding = [set().union(*(members.get(full, ()) for full in self.own))]
        self.hiding += [members[base] for base in self.bases if base in members]

    def named(self, name: str, inherit: bool = False) -> Found | None:
        """The type that a name means in this file; `inherit`: also what the bases of the file's types nest."""
        head, *rest = name.split(".")
        if head in self.aliases:
            return self.index.down("", [*self.aliases[head].split("."), *rest])
        if rest and head in self.index.heads:
            for level in self.around:
                full = f"{level}.{head}" if level else head
                found = self.index.down(full, rest) if full in self.index.namespaces else None
                if found and self.index.seen(self.project, *found):
                    return found
        found = self._simple(head, inherit)
        return (self.index.down(found[0], rest) or found) if found and rest else found

    def _simple(self, name: str, inherit: bool) -> Found | None:
        best: tuple[int, str, list[str]] | None = None
        containers = self.index.by_name.get(name, {})
        asked = containers
        if len(containers) > len(self.own) + len(self.bases) + len(self.ranks):
            asked = {c: containers[c] for c in (*self.own, *self.bases, *self.ranks) if c in containers}
        for container, files in asked.items():
            nested = container in self.own or (inherit and container in self.bases)
            rank = -1 if nested else self.ranks.get(container)
            if rank is None or (best and best[:2] < (rank, container)):
                continue
            full = f"{container}.{name}" if container else name
            if self.index.seen(self.project, full, files):
                best = rank, container, files
        return (f"{best[1]}.{name}" if best[1] else name, best[2]) if best else None

    def _attribute(self, name: str) -> Found | None:
        """`[Name]`: the class NameAttribute, or Name if that is the class of an attribute."""
        name, tick, arity = name.partition("`")
        if name.partition(".")[0] not in self.index.known and f"{name}Attribute{tick}{arity}" not in self.index.known:
            return None
        found = self.named(f"{name}Attribute{tick}{arity}", inherit=True)
        if found and found[0].partition("`")[0].endswith("Attribute"):
            return found
        found = self.named(name + tick + arity, inherit=True)
        bases = self.index.supers.get(found[0], ()) if found else ()
        return found if name.endswith("Attribute") or any(b.endswith("Attribute") for _, b in bases) else None

    def _need_called(self, method: str, head: str) -> None:
        """The class whose extension method a call can only mean: no other method of the repository has its name."""
        classes = self.index.extensions.get(method, {})
        if len(classes) != 1 or method in self.index.methods or method in _FRAMEWORK_METHODS:
            return
        if head and not self._is_member(head):
            return  # a type, whose own method it is
        [(full, files)] = classes.items()
        if self.path not in files and (full in self.ranks or full.rpartition(".")[0] in self.ranks):
            for target in self._nearest(self.index.seen(self.project, f"{full}.{method}", files))[:1]:
                self.needs.setdefault(target, "soft")

    def _need_main_part(self, full: str) -> None:
        """The other parts of a type need its main one, where fields use to be."""
        for target in self._nearest(self.index.main_parts(self.project, full))[:1]:
            if target != self.path:
                self.needs[target] = "hard"

    def _need(self, found: Found | None, strength: Strength, head: str = "") -> None:
        """Note the files of a type, and of the `global using` that it was found by, unless it is the file's own."""
        if found is None or found[0] in self.own:
            return
        targets = self._declaring(*found)
        used = head if head in self.aliases else found[0].rpartition(".")[0]
        if used in self.needed:
            targets = [*targets, self.needed[used]]
        for target in targets:
            if strength == "hard" or target not in self.needs:
                self.needs[target] = strength

    def _declaring(self, full: str, files: list[str]) -> list[str]:
        """Of the files that declare a type, those to read: of a partial type the main part, or the nearest few; of
        several types the nearest one."""
        seen = self.index.seen(self.project, full, files)
        if len(seen) > 1 and full in self.index.partial:
            main = self.index.main_parts(self.project, full)
            return self._nearest(main)[:1] or self._nearest(seen)[:_MOST_PARTS]
        return self._nearest(seen)[:1]

    def _nearest(self, files: list[str]) -> list[str]:
        """The files, those of this project only if there are any, nearest first. Only neighbours, if there are many."""
        if len(files) < 2:
            return files
        if len(files) > 2 * _MOST_NEAR:
            at = bisect_left(files, self.path)
            files = files[max(0, at - _MOST_NEAR) : at + _MOST_NEAR]
        own = [f for f in files if self.index.project_of[f] == self.project]
        return sorted(own or files, key=self._distance)

    def _distance(self, other: str) -> tuple[int, str]:
        return -len(posixpath.commonprefix([self.path.split("/"), other.split("/")])), other
