"""How Node and the TypeScript compiler turn a path without extension, or a package's name, into a file.

Packages are the package.json files of the repository outside node_modules. A bare name means one of them if the
importing package itself has that name and exports, if a workspace holds both, or if a dependency on it is declared
that its version can satisfy. Where `exports` or `main` name what a build would make, the source it is made from
stands in: the same path under `src`, whatever folder (`dist`, `lib/esm`) the build writes to.
"""

from __future__ import annotations

import itertools
import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

import yaml

from repo2ctx.languages import RepoTree, ancestors, join

EXTERNAL = ""
"""The answer for a name that means nothing in the repository."""

TYPESCRIPT_SOURCES = (".ts", ".tsx", ".mts", ".cts")
BUILTINS = frozenset({
    "assert", "assert/strict", "async_hooks", "buffer", "child_process", "cluster", "console", "constants",
    "crypto", "dgram", "diagnostics_channel", "dns", "dns/promises", "domain", "events", "fs", "fs/promises",
    "http", "http2", "https", "inspector", "inspector/promises", "module", "net", "os", "path", "path/posix",
    "path/win32", "perf_hooks", "process", "punycode", "querystring", "readline", "readline/promises", "repl",
    "stream", "stream/consumers", "stream/promises", "stream/web", "string_decoder", "sys", "timers",
    "timers/promises", "tls", "trace_events", "tty", "url", "util", "util/types", "v8", "vm", "wasi",
    "worker_threads", "zlib",
})  # fmt: skip

# What may be added to a name: before a folder of that name is tried, and after.
_TYPED_ENDINGS = (".ts", ".tsx", ".d.ts", ".js", ".jsx")
_PLAIN_ENDINGS = (".js", ".json", ".jsx", ".mjs", ".cjs", ".ts", ".tsx")
_LATE_ENDINGS = (".json", ".mts", ".cts", ".mjs", ".cjs", ".vue", ".svelte", ".d.ts", ".d.mts", ".d.cts")
# What an ending may stand for, since a TypeScript file is imported under the name that its output will have.
_WRITTEN_FOR = {
    ".js": (".ts", ".tsx", ".d.ts"),
    ".jsx": (".tsx", ".ts", ".d.ts"),
    ".mjs": (".mts", ".d.mts"),
    ".cjs": (".cts", ".d.cts"),
}
_CODE_ENDING = re.compile(r"(\.d)?\.[cm]?[jt]sx?$")
_BUILT = frozenset({"dist", "build", "lib", "out", "output", "es", "esm", "cjs", "umd", "types", "typings"})
_WRITTEN = frozenset({"dist", "build", "out", "output"})  # which nobody writes source into
_FLAVOURS = frozenset({"modern", "legacy", "prod", "production", "dev", "development", "node", "browser", "bundle"})
_CONDITIONS = frozenset({"node", "module-sync", "default"})
_DEPENDENCIES = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_LONGEST_YAML = 1 << 16  # characters; reading takes 20 microseconds for each
_MOST = 100  # patterns of a workspace, packages of one name, targets of one export that are looked at
_COMMENT = re.compile(r'("(?:[^"\\]|\\.|\\\Z)*(?:"|\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.|\\\Z)*(?:"|\Z))|,(?=\s*[}\]])', re.DOTALL)


class Asker(NamedTuple):
    """What the answer to a name depends on, besides the name."""

    folder: str  # of the importing file
    typed: bool  # whether that is TypeScript
    require: bool  # whether it asks by `require`


class Patterns:
    """Names, and names with one `*` in them, mapped to values; the longest text before the `*` wins."""

    def __init__(self) -> None:
        self.exact: dict[str, object] = {}
        self.starred: dict[str, list[tuple[str, object]]] = {}
        self.longest = 0

    def add(self, pattern: str, value: object) -> None:
        before, star, after = pattern.partition("*")
        if star:
            self.starred.setdefault(before, []).append((after, value))
            self.longest = max(self.longest, len(before))
        else:
            self.exact[pattern] = value

    def find(self, name: str) -> tuple[object, str] | None:
        """The value for `name`, and what the `*` stands for."""
        if name in self.exact:
            return self.exact[name], ""
        for length in range(min(len(name), self.longest), -1, -1):
            for after, value in self.starred.get(name[:length], ()):
                if name.endswith(after) and len(name) >= length + len(after):
                    return value, name[length : len(name) - len(after)]
        return None


@dataclass(frozen=True)
class Package:
    """One package.json."""

    folder: str
    data: dict[str, object]
    name: str = ""
    version: str = ""
    exports: Patterns | None = None
    imports: Patterns = field(default_factory=Patterns)


class Packages:
    """The packages of a repository, and the rules by which a path or a name means a file."""

    def __init__(self, tree: RepoTree):
        self.tree = tree
        self.by_folder: dict[str, Package] = {}
        self.by_name: dict[str, list[Package]] = {}
        for path in tree.configs("package.json"):
            if "node_modules" not in path.split("/"):
                package = _package(posixpath.dirname(path), read_json(tree.text(path)))
                self.by_folder[package.folder] = package
                if package.name:
                    self.by_name.setdefault(package.name, []).append(package)
        self.workspaces = self._workspaces()
        self.above: dict[str, tuple[Package, ...]] = {}
        self.meant: dict[tuple[str, str], Package | None] = {}

    def _workspaces(self) -> dict[str, list[str]]:
        """Workspace root -> the patterns of its packages' folders."""
        found: dict[str, list[str]] = {}
        for folder, package in self.by_folder.items():
            declared = package.data.get("workspaces")
            patterns = strings(table(declared).get("packages") if isinstance(declared, dict) else declared)
            found.setdefault(folder, []).extend(patterns)
        for path in self.tree.configs("lerna.json"):
            lerna = read_json(self.tree.text(path))
            found.setdefault(posixpath.dirname(path), []).extend(strings(lerna.get("packages", "packages/*")))
        for path in self.tree.configs("pnpm-workspace.yaml"):
            found.setdefault(posixpath.dirname(path), []).extend(_pnpm_packages(self.tree.text(path) or ""))
        return {folder: patterns[:_MOST] for folder, patterns in found.items() if patterns}

    def scopes(self, folder: str) -> tuple[Package, ...]:
        """The packages that `folder` lies in, innermost first."""
        if folder not in self.above:
            self.above[folder] = tuple(self.by_folder[f] for f in ancestors(folder) if f in self.by_folder)
        return self.above[folder]

    def is_declared(self, name: str, folder: str) -> bool:
        """Whether a package around `folder` names the package of `name` as a dependency."""
        package = split_name(name)[0]
        return any(_dependency(scope, package) is not None for scope in self.scopes(folder))

    def folder_of(self, name: str) -> str | None:
        return self.by_name[name][0].folder if name in self.by_name else None

    def file(self, base: str, typed: bool) -> str | None:
        """The file that `base` means if it is not a folder."""
        stem, ending = posixpath.splitext(base)
        renamed = [stem + e for e in _WRITTEN_FOR.get(ending, ())]
        if typed:
            added = [base + e for e in _TYPED_ENDINGS]
            return self.tree.first([*renamed, base, *added] if ending else [*added, base])
        return self.tree.first([base, *renamed, *(base + e for e in _PLAIN_ENDINGS)])

    def path(self, base: str, asker: Asker, folder_only: bool = False) -> str | None:
        """The file that a path means: with an extension added, or a folder's main file."""
        found = self.file(base, asker.typed) if base and not folder_only else None
        if found is None and base in self.tree.directories:
            package = self.by_folder.get(base)
            found = self.main(package, asker) if package else self.index(base, asker.typed)
        if found is None and base and not folder_only:
            found = self.tree.first([base + e for e in _LATE_ENDINGS])
        return found

    def index(self, folder: str, typed: bool) -> str | None:
        base = posixpath.join(folder, "index")
        return self.file(base, typed) or self.tree.first([base + e for e in _LATE_ENDINGS])

    def main(self, package: Package, asker: Asker) -> str | None:
        """The main file of a package that has no `exports`, or is named by its folder."""
        fields = ("types", "typings") if asker.typed else ()
        named = [v for f in (*fields, "main", "module", "source") for v in strings(package.data.get(f))]
        for name in named:
            base = join(package.folder, name)
            found = None if base is None else self.file(base, asker.typed) or self.index(base, asker.typed)
            found = found or self.source_of(package.folder, name, True)
            if found:
                return found
        return self.index(package.folder, asker.typed) or self.source_of(package.folder, "index.js", True)

    def entry_points(self) -> Iterator[str]:
        """The files, or their sources, that packages give to their users: what is imported by a package's name, or
        run as a command."""
        for package in self.by_folder.values():
            yield from filter(None, self._given(package))

    def _given(self, package: Package) -> Iterator[str | None]:
        for require in (False, True):
            asker = Asker(package.folder, True, require)
            if package.exports is not None:
                yield self._mapped(package, package.exports, ".", asker)
            elif package.name or any(key in package.data for key in ("main", "module")):
                yield self.main(package, asker)
        commands = package.data.get("bin")
        names = strings(list(commands.values()) if isinstance(commands, dict) else commands)
        for name in names[:_MOST]:
            base = join(package.folder, name)
            found = None if base is None else self.file(base, False)
            yield found or self.source_of(package.folder, name, False)

    def bare(self, name: str, asker: Asker) -> str | None:
        """The file that a name like `pkg` or `@scope/pkg/part` means; EXTERNAL, or None if the package lacks it."""
        package_name, subpath = split_name(name)
        package = self._named(package_name, asker.folder)
        if package is None:
            return EXTERNAL
        if package.exports is not None:
            return self._mapped(package, package.exports, subpath, asker)
        if subpath == ".":
            return self.main(package, asker)
        base = join(package.folder, subpath)
        found = None if base is None else self.path(base, asker)
        return found or self.source_of(package.folder, subpath, False)

    def internal(self, name: str, asker: Asker) -> str | None:
        """The file that `#name` means, by the `imports` of the package that the importing file lies in."""
        scopes = self.scopes(asker.folder)
        return self._mapped(scopes[0], scopes[0].imports, name, asker) if scopes else None

    def _mapped(self, package: Package, patterns: Patterns, name: str, asker: Asker) -> str | None:
        value, star = patterns.find(name) or (None, "")
        active = _CONDITIONS | ({"require"} if asker.require else {"import"}) | ({"types"} if asker.typed else set())
        leaves = list(itertools.islice(_leaves(value, active), _MOST))
        if leaves and leaves[0] is None:
            return None
        others = _leaves(value, None)  # targets under other conditions: for when ours lead to no file
        for leaf in itertools.chain(leaves, itertools.islice(others, _MOST)):
            target = (leaf or "").replace("*", star, 8)
            if target.startswith("./"):
                base = join(package.folder, target)
                found = None if base is None else self.file(base, asker.typed)
                found = found or self.source_of(package.folder, target, name == ".")
                if found:
                    return found
            elif patterns is package.imports and target and not target.startswith((".", "#", "/")):
                return EXTERNAL if target in BUILTINS else self.bare(target, asker)
        return None

    def _named(self, name: str, folder: str) -> Package | None:
        """The package of the repository that `name` means for the files in `folder`."""
        if name not in self.by_name:
            return None
        key = (name, folder)
        if key not in self.meant:
            self.meant[key] = self._choose(name, folder)
        return self.meant[key]

    def _choose(self, name: str, folder: str) -> Package | None:
        scopes = self.scopes(folder)
        if scopes and scopes[0].name == name and scopes[0].exports is not None:
            return scopes[0]
        holder, wanted = next(((s, w) for s in scopes for w in [_dependency(s, name)] if w is not None), (None, None))
        if holder is not None and wanted is not None and wanted.startswith(("file:", "link:", "portal:")):
            place = join(holder.folder, wanted.partition(":")[2])
            return None if place is None else self.by_folder.get(place)
        candidates = sorted(self.by_name[name][:_MOST], key=lambda p: _distance(p.folder, folder))
        for root in ancestors(folder):
            for package in candidates if root in self.workspaces else ():
                if self._is_member(package.folder, root) and (wanted is None or _satisfies(package, wanted)):
                    return package
        # A package that depends on its own name means a release of itself.
        others = [p for p in candidates if p not in scopes[:1]]
        return next((p for p in others if wanted is not None and _satisfies(p, wanted)), None)

    def _is_member(self, folder: str, root: str) -> bool:
        if root and not folder.startswith(f"{root}/"):
            return False
        inside = folder[len(root) :].strip("/").split("/")
        patterns = self.workspaces[root]
        excluded = any(_matches(inside, p[1:]) for p in patterns if p.startswith("!"))
        return not excluded and any(_matches(inside, p) for p in patterns if not p.startswith("!"))

    def built(self, base: str) -> str | None:
        """The source of a file that is not here, in the folder of its package that a build writes into."""
        package = next(iter(self.scopes(posixpath.dirname(base))), None)
        inner = base[len(package.folder) :].lstrip("/") if package else ""
        if package is None or inner.split("/")[0] not in _WRITTEN:
            return None
        stem = posixpath.basename(inner).partition(".")[0]
        whole = stem in (posixpath.basename(package.folder), package.name.rpartition("/")[2])
        return self.source_of(package.folder, inner, whole)

    def source_of(self, folder: str, built: str, entry: bool) -> str | None:
        """The source of a file that a build would write, in the package at `folder`; `entry`: of its main file."""
        named = [posixpath.join(folder, d) for d in ("src", "source", "lib")]
        roots = [d for d in named if d in self.tree.directories] or [folder]
        for stem in _source_stems(folder, built, entry):
            for base in (join(root, stem) for root in roots):
                found = None if base is None else self.file(base, True) or self.index(base, True)
                if found:
                    return found
        return None


def _source_stems(folder: str, built: str, entry: bool) -> list[str]:
    """What the source of a built file may be called: without the folders and the endings that a build adds."""
    written = [p for p in built.split("/") if p not in {"", "."}]
    parts = written
    while len(parts) > 1 and re.split(r"[-_.]", parts[0])[0] in _BUILT:
        parts = parts[1:]
    bundled = entry and len(parts) < len(written)  # a bundle of the whole is named after the package
    if len(parts) > 1 and parts[0] in {"src", posixpath.basename(folder)}:
        parts = parts[1:]
    stems: list[str] = []
    for inner in (parts, parts[1:] if len(parts) > 1 and parts[0] in _FLAVOURS else []):
        stem = _CODE_ENDING.sub("", "/".join(inner))
        if stem:
            stems.append(stem)
        while "." in posixpath.basename(stem).lstrip("."):  # name.esm.js and name.min.js are made from name.ts
            stem = stem.rpartition(".")[0]
            stems.append(stem)
    return [*stems[:8], "index"] if bundled else stems[:8]


def _package(folder: str, data: dict[str, object]) -> Package:
    name, version, exports = data.get("name"), data.get("version"), data.get("exports")
    patterns: Patterns | None = None
    if exports is not None:
        patterns = Patterns()
        by_subpath = isinstance(exports, dict) and any(key.startswith(".") for key in exports)
        for key, value in (table(exports) if by_subpath else {".": exports}).items():
            _add_target(patterns, key, value)
    imports = Patterns()
    for key, value in table(data.get("imports")).items():
        _add_target(imports, key, value)
    name, version = name if isinstance(name, str) else "", version if isinstance(version, str) else ""
    return Package(folder, data, name, version, patterns, imports)


def _add_target(patterns: Patterns, key: str, value: object) -> None:
    # A folder, "./lib/", is an older way to write "./lib/*".
    if key.endswith("/") and isinstance(value, str) and value.endswith("/"):
        key, value = f"{key}*", f"{value}*"
    patterns.add(key, value)


def _leaves(value: object, active: frozenset[str] | set[str] | None) -> Iterator[str | None]:
    """The targets that a value of `exports` leads to under the active conditions (None: under any), in order."""
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict):
            waiting += [v for k, v in reversed(current.items()) if active is None or k in active]
        elif isinstance(current, list):
            waiting += reversed(current)
        elif isinstance(current, str) or (current is None and value is not None):
            yield current


def _distance(folder: str, other: str) -> tuple[int, str]:
    """Sorts folders by how much of the path to `other` they share, the most first."""
    return -len(posixpath.commonpath([f"/{folder}", f"/{other}"])), folder


def _dependency(package: Package, name: str) -> str | None:
    """The version that a package wants of another, if it names it as a dependency."""
    for key in _DEPENDENCIES:
        wanted = table(package.data.get(key)).get(name)
        if isinstance(wanted, str):
            return wanted
    return None


def _satisfies(package: Package, wanted: str) -> bool:
    """Whether a declared dependency can mean this package; versions are compared by their first number."""
    if wanted.startswith("workspace:"):
        return True
    if ":" in wanted or "/" in wanted:  # another package under this name, or one from elsewhere
        return wanted.startswith("catalog:") and package.version != ""
    for wanted_range in wanted.split("||"):
        number = re.match(r"\s*([\^~>=v]*)\s*(\d+)", wanted_range)
        if number is None:
            return package.version != "" or wanted.strip() in {"", "*"}
        own = re.match(r"\d{1,9}(?!\d)", package.version)
        if own and (own[0] == number[2] or (">" in number[1] and len(number[2]) < 10 and int(own[0]) > int(number[2]))):
            return True
    return False


def _matches(parts: list[str], pattern: str) -> bool:
    """Whether a folder is one that a workspace pattern (`packages/*`, `apps/**`) means."""
    wanted = [p for p in pattern.split("/") if p not in {"", "."}]
    if "**" in wanted:
        head, tail = wanted[: wanted.index("**")], [p for p in wanted[wanted.index("**") + 1 :] if p != "**"]
        if len(parts) < len(head) + len(tail):
            return False
        parts = parts[: len(head)] + parts[len(parts) - len(tail) :]
        wanted = head + tail
    return len(parts) == len(wanted) and all(fnmatchcase(p, w) for p, w in zip(parts, wanted, strict=True))


def _pnpm_packages(source: str) -> list[str]:
    if len(source) > _LONGEST_YAML:
        return []
    try:
        # The loader that builds strings only: no merge keys to blow up, no types to choke on.
        data = yaml.load(source, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return []
    return strings(table(data).get("packages"))


def split_name(name: str) -> tuple[str, str]:
    """`@scope/pkg/part` -> (`@scope/pkg`, `./part`); the second is "." for the package itself."""
    parts = name.split("/")
    count = 2 if name.startswith("@") else 1
    return "/".join(parts[:count]), "/".join([".", *parts[count:]])


def read_json(source: str | None) -> dict[str, object]:
    """A JSON object, comments and trailing commas allowed; {} for anything else."""
    plain = (source or "").lstrip("\ufeff")
    try:
        return table(json.loads(plain))
    except (ValueError, RecursionError):
        plain = _COMMENT.sub(lambda m: m[1] or " ", plain)
    try:
        return table(json.loads(_LAST_COMMA.sub(lambda m: m[1] or "", plain)))
    except (ValueError, RecursionError):
        return {}


def table(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def strings(value: object) -> list[str]:
    """The strings of a list, or the one string that stands for it."""
    if isinstance(value, list):
        return [v for v in value if isinstance(v, str)]
    return [value] if isinstance(value, str) else []
