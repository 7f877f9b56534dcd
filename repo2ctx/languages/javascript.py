"""JavaScript and TypeScript: import, export-from, `require`, `import()`, resolved as Node and the compiler would.

A relative name means a file, with the extensions and index files that the importing language tries in its order;
`.js` written in a TypeScript project may mean a `.ts` file. Any other name is first looked up in the `paths`, then
`baseUrl`, of the nearest tsconfig or jsconfig and of those it references, then among the packages of the repository
(`_node_resolution`). What is none of these is external, and so is a built-in module of Node.
Soft: type-only imports and exports, `import()`, `require` inside a function that is not called on the spot, and
triple-slash references to declarations.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Node

from repo2ctx.languages import RepoTree, _javascript_outline, ancestors, join, line, text
from repo2ctx.languages._node_resolution import (
    BUILTINS,
    EXTERNAL,
    TYPESCRIPT_SOURCES,
    Asker,
    Packages,
    Patterns,
    read_json,
    split_name,
    strings,
    table,
)
from repo2ctx.languages._places import Places
from repo2ctx.records import Edge, EntryPoint, Found, Import, Strength, Syntax, Unresolved

GRAMMARS = {
    "JavaScript": tree_sitter_javascript.language,
    "TypeScript": tree_sitter_typescript.language_typescript,
    "TSX": tree_sitter_typescript.language_tsx,
}
CONFIG_FILES = ("package.json", "*tsconfig*.json", "jsconfig*.json", "pnpm-workspace.yaml", "lerna.json")
OUTLINE = _javascript_outline.SHAPE

# Finds the strings that can be a module's name; the tree then says whether they are. A search costs far less than
# visiting every call of a file. Comments in between are bounded, so that no input makes the search quadratic.
_GAP = rb"(?:\s|/\*.{0,300}?\*/|//[^\n]{0,300}\n)*+"
_NAMED = re.compile(
    rb"\b(?:(?:from|import)%b|(?:import|require)%b(?:<[^<>()]{0,300}>)?\(%b)(?=[\"'`])" % (_GAP, _GAP, _GAP), re.DOTALL
)
_ASSIGNED_EXPORT = re.compile(rb"^(?:module\.)?exports\b(?:\.([\w$]+))?\s*=(?!=)", re.MULTILINE)
_REFERENCE = re.compile(r"///\s*<reference\s+path\s*=\s*[\"']([^\"']+)[\"']")
_STATEMENTS = frozenset({"import_statement", "export_statement"})
_TYPE_WORDS = frozenset({"type", "typeof"})
_FUNCTIONS = frozenset({
    "function_declaration", "function_expression", "generator_function_declaration", "generator_function",
    "arrow_function", "method_definition",
})  # fmt: skip
_AROUND_CALLEE = frozenset({"parenthesized_expression", "member_expression", "unary_expression"})
_LONGEST_NAME = 1000  # bytes; longer strings name no file
_MOST_EXTENDED = 30  # configs that one may extend
_MOST_REFERENCED = 200  # configs that one may reference
_MOST_PLACES = 30  # that one name may be looked for in, by one config
_MOST_PLACES_IN_ALL = 300


def scan(root: Node, path: str) -> Syntax:
    """Module names anywhere in the file, whatever surrounds them."""
    imports = list(_references(root))
    source = root.text or b""
    places = Places(root)
    for match in _NAMED.finditer(source):
        imported = _imported(_chain(places, root.start_byte + match.end()))
        if imported is not None:
            imports.append(imported)
    return Syntax(imports=tuple(imports), exports=_exports(root, source))


def _exports(root: Node, source: bytes) -> int:
    """How many names the module exports, by statements or, if there are none, by assignments."""
    if b"export" not in source:
        return 0
    count = 0
    cursor = root.walk()
    more = cursor.goto_first_child()
    while more and cursor.node is not None:
        if cursor.node.type == "export_statement":
            clauses = [node for node in cursor.node.named_children if node.type == "export_clause"]
            count += sum(clause.named_child_count for clause in clauses) if clauses else 1
        more = cursor.goto_next_sibling()
    return count or len(set(_ASSIGNED_EXPORT.findall(source)))


def _references(root: Node) -> Iterator[Import]:
    """`/// <reference path="…" />`, which counts only above the first statement."""
    cursor = root.walk()
    more = cursor.goto_first_child()
    while more and cursor.node is not None and cursor.node.type in {"comment", "hash_bang_line"}:
        match = _REFERENCE.match(text(cursor.node))
        if match:
            name = match[1] if match[1].startswith((".", "/")) else f"./{match[1]}"
            yield Import(name, line(cursor.node), "import", "soft" if name.endswith(".d.ts") else "hard")
        more = cursor.goto_next_sibling()


def _chain(places: Places, start: int) -> list[Node]:
    """The nodes around byte `start`, outermost first, down to the string that starts there (or whatever does)."""
    around = places.around(start)
    for index in range(len(around) - 1, max(0, len(around) - 4), -1):
        if around[index].start_byte == start and around[index].type in {"string", "template_string"}:
            return around[: index + 1]
    return around


def _imported(chain: list[Node]) -> Import | None:
    """The import whose module name is the last of `chain`, if it is one."""
    if len(chain) < 2 or chain[-1].type not in {"string", "template_string"}:
        return None
    string, parent = chain[-1], chain[-2]
    if string.end_byte - string.start_byte > _LONGEST_NAME:
        return None
    name = text(string)[1:-1]
    if not name or "${" in name or "\\" in name:
        return None
    if parent.type in _STATEMENTS:
        return Import(name, line(string), "import", "soft" if _is_type_only(parent) else "hard")
    if parent.type == "import_require_clause":
        return Import(name, line(string), "require", "soft" if _is_type_only(chain[-3]) else "hard")
    if parent.type == "arguments" and chain[-3].type == "call_expression":
        called = text(chain[-3].child_by_field_name("function"))
        if called == "import":
            return Import(name, line(string), "import", "soft")
        if called == "require":
            return Import(name, line(string), "require", _strength(chain))
    if parent.type == "ERROR":  # syntax that the grammar does not know
        return Import(name, line(string)) if text(string.prev_sibling) in {"from", "import"} else None
    return None


def _is_type_only(statement: Node) -> bool:
    """`import type …`, `export type …`, or a list in braces each of whose names is marked `type`."""
    for child in statement.children[1:]:
        if child.type in _TYPE_WORDS or (child.type == "ERROR" and text(child) in _TYPE_WORDS):
            return True
        if child.type in {"import_clause", "export_clause"}:
            inner = child.named_children if child.type == "import_clause" else [child]
            if len(inner) != 1 or inner[0].type not in {"named_imports", "export_clause"}:
                return False
            names = [n for n in inner[0].named_children if n.type in {"import_specifier", "export_specifier"}]
            return bool(names) and all(_is_marked(n) for n in names)
    return False


def _is_marked(specifier: Node) -> bool:
    first = specifier.child(0)
    return first is not None and (first.type in _TYPE_WORDS or (first.type == "ERROR" and text(first) in _TYPE_WORDS))


def _strength(chain: list[Node]) -> Strength:
    """Soft inside a function, unless that function is called where it stands, as module wrappers are."""
    for index, node in enumerate(chain):
        if node.type not in _FUNCTIONS:
            continue
        above = index - 1
        while above > 0 and chain[above].type in _AROUND_CALLEE:
            above -= 1
        if chain[above].type != "call_expression":
            return "soft"
        if chain[above].child_by_field_name("function") != chain[above + 1]:
            return "soft"
    return "hard"


def resolve(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Found]:
    resolver = _Resolver(tree)
    for path in sorted(syntax):
        for imported in syntax[path].imports:
            target = resolver.target(path, imported)
            if target is None:
                yield Unresolved(path, imported.name, imported.line)
            elif target not in (EXTERNAL, path):
                yield Edge(path, target, imported.kind, imported.strength)
    for target in resolver.packages.entry_points():
        yield EntryPoint(target, "package.json")


class _Resolver:
    """Says which file a name means; remembers the answers, which depend on the folder and not on the file."""

    def __init__(self, tree: RepoTree):
        self.packages = Packages(tree)
        self.projects = _Projects(tree, self.packages)
        self.known: dict[tuple[str, Asker], str | None] = {}

    def target(self, path: str, imported: Import) -> str | None:
        """A path, EXTERNAL, or None if the name looks internal and leads nowhere."""
        typed = path.endswith(TYPESCRIPT_SOURCES)
        asker = Asker(posixpath.dirname(path), typed, imported.kind == "require")
        key = (imported.name, asker)
        if key not in self.known:
            self.known[key] = self._find(imported.name.partition("?")[0] or imported.name, asker)
        return self.known[key]

    def _find(self, name: str, asker: Asker) -> str | None:
        if name.startswith(("./", "../")) or name in {".", ".."}:
            return self._relative(name, asker)
        if name.startswith("/") or ":" in name or name in BUILTINS:
            return EXTERNAL
        mapped, places = False, 0
        for project in self.projects.of(asker.folder):
            bases, own = project.bases(name, asker)
            mapped |= own
            places += len(bases)
            if places > _MOST_PLACES_IN_ALL:
                break
            for base in bases:
                found = self.packages.path(base, asker)
                # No alias leaves the ending of a data file out: `jest` is not jest.json.
                if found is not None and (not found.endswith(".json") or base.endswith(".json")):
                    return found
        if name.startswith("#"):
            return self.packages.internal(name, asker)
        found = self.packages.bare(name, asker)
        # An alias for the repository's own files means one, and no package can have a name like the last two.
        mapped = mapped and not self.packages.is_declared(name, asker.folder)
        return None if found == EXTERNAL and (mapped or name.startswith(("@/", "~/"))) else found

    def _relative(self, name: str, asker: Asker) -> str | None:
        base = join(asker.folder, name)
        if base is None:
            return None
        folder_only = name.endswith("/") or name.rpartition("/")[2] in {".", ".."}
        found = self.packages.path(base, asker, folder_only)
        if found is not None:
            return found
        for project in self.projects.of(asker.folder):
            for other in project.overlaid(base):
                found = self.packages.path(other, asker, folder_only)
                if found is not None:
                    return found
        return self.packages.built(base)


@dataclass(frozen=True)
class _Project:
    """What one tsconfig or jsconfig, with all that it extends, says about names."""

    folder: str
    paths: Patterns
    base_url: str | None
    root_dirs: tuple[str, ...]
    javascript: bool  # whether it is about JavaScript files too

    def bases(self, name: str, asker: Asker) -> tuple[list[str], bool]:
        """Where `name` may be, before extensions; and whether it is surely a name of the repository's own."""
        value, star = self.paths.find(name) or ((), "")
        assert isinstance(value, tuple)
        found = [base for base in (join("", target.replace("*", star, 1)) for target in value) if base is not None]
        own = bool(found) and star != name and not any("node_modules" in base for base in found)
        if self.base_url is not None and (asker.typed or self.javascript):
            found += [base for base in (join(self.base_url, name),) if base]
        return found, own

    def overlaid(self, base: str) -> Iterator[str]:
        """`base` in the other folders that `rootDirs` lays over the one that it is in."""
        inside = [d for d in self.root_dirs if not d or base.startswith(f"{d}/")]
        if inside:
            rest = base[len(max(inside, key=len)) :].lstrip("/")
            yield from (posixpath.join(d, rest) for d in self.root_dirs)


class _Projects:
    """Finds the projects that a folder's files belong to."""

    def __init__(self, tree: RepoTree, packages: Packages):
        self.tree = tree
        self.packages = packages
        self.by_folder: dict[str, tuple[_Project, ...]] = {}
        self.by_config: dict[str, tuple[_Project, ...]] = {}
        self.data: dict[str, dict[str, object]] = {}
        self.lone: dict[str, str] = {}  # folder -> a tsconfig.*.json there, for want of a tsconfig.json
        for config in reversed(tree.configs("*tsconfig*.json")):
            self.lone[posixpath.dirname(config)] = config

    def of(self, folder: str) -> tuple[_Project, ...]:
        """The projects of the nearest folder that has any, the likeliest first."""
        if folder not in self.by_folder:
            configs = self._nearest(folder)
            found = [p for config in configs for p in self._with_references(config)]
            self.by_folder[folder] = tuple(p for p in found if not p.folder or f"{folder}/".startswith(f"{p.folder}/"))
        return self.by_folder[folder]

    def _nearest(self, folder: str) -> list[str]:
        for above in ancestors(folder):
            configs = [posixpath.join(above, name) for name in ("tsconfig.json", "jsconfig.json")]
            configs = [c for c in configs if self.tree.text(c) is not None]
            if configs:
                return configs
        return next(([self.lone[above]] for above in ancestors(folder) if above in self.lone), [])

    def _with_references(self, config: str) -> tuple[_Project, ...]:
        if config not in self.by_config:
            reached = [config]
            for current in reached:  # grows as it goes
                references = self._read(current).get("references")
                for reference in references if isinstance(references, list) else ():
                    for name in strings(table(reference).get("path")):
                        base = join(posixpath.dirname(current), name)
                        found = None if base is None else self._readable(base, posixpath.join(base, "tsconfig.json"))
                        if found and found not in reached and len(reached) < _MOST_REFERENCED:
                            reached.append(found)
            self.by_config[config] = tuple(self._project(c) for c in reached)
        return self.by_config[config]

    def _project(self, config: str) -> _Project:
        chain = self._extended(config)
        folder = posixpath.dirname(config)

        def option(key: str) -> tuple[object, str]:
            """Its value, and the folder that its relative names start from: that of the file which sets it."""
            for name, data in chain:
                if key in table(data.get("compilerOptions")):
                    return table(data.get("compilerOptions"))[key], posixpath.dirname(name)
            return None, folder

        def places(names: object, start: str) -> tuple[str, ...]:
            found = []
            for name in strings(names)[:_MOST_PLACES]:
                own = name.startswith("${configDir}")
                found.append(join(folder, name.replace("${configDir}", ".", 1)) if own else join(start, name))
            return tuple(place for place in found if place is not None)

        base_url = next(iter(places(*option("baseUrl"))), None)
        paths, start = option("paths")
        patterns = Patterns()
        for key, names in table(paths).items():
            patterns.add(key, places(names, start if base_url is None else base_url))
        javascript = "jsconfig" in posixpath.basename(config) or option("allowJs")[0] is True
        javascript = javascript or option("checkJs")[0] is True
        return _Project(folder, patterns, base_url, places(*option("rootDirs")), javascript)

    def _extended(self, config: str) -> list[tuple[str, dict[str, object]]]:
        """The config and all that it extends: what comes earlier overrides what comes later."""
        found: dict[str, dict[str, object]] = {}
        waiting = [config]
        while waiting and len(found) < _MOST_EXTENDED:
            current = waiting.pop()
            if current in found:
                continue
            found[current] = self._read(current)
            bases = (self._base(current, name) for name in strings(found[current].get("extends")))
            waiting += [base for base in bases if base is not None]
        return list(found.items())

    def _base(self, config: str, name: str) -> str | None:
        """The config that `extends` names: a relative path, or one inside a package of the repository."""
        folder: str | None = posixpath.dirname(config)
        if not name.startswith("."):
            package, name = split_name(name)
            folder = self.packages.folder_of(package)
        base = None if folder is None else join(folder, name)
        return None if base is None else self._readable(base, f"{base}.json", posixpath.join(base, "tsconfig.json"))

    def _readable(self, *candidates: str) -> str | None:
        return next((c for c in candidates if self.tree.text(c) is not None), None)

    def _read(self, config: str) -> dict[str, object]:
        if config not in self.data:
            self.data[config] = read_json(self.tree.text(config))
        return self.data[config]
