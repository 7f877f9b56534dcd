"""Go: the files that declare what a file uses, in its own package and in the packages that it imports.

A package is the files of one folder with one package name. A bare name means a declaration at the top of the own
package, unless the function declares it itself; `pkg.Name` one of the imported package; `x.name`, whose type is
unknown here, the method or field of that name if just one file of the own package declares one. Import paths are
looked up in the file's own module, `vendor` folders, `replace` lines of go.work and go.mod, and the repository's
other modules; without any go.mod, under the path that most imports share. A test file is a target for tests of its
own folder only. Files whose build constraints exclude each other do not need each other. A blank import needs the
whole package.

Every edge is hard: the compiler wants a whole package at once.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product

import tree_sitter_go
from tree_sitter import Node

from repo2ctx.languages import RepoTree, join, line, text, walk
from repo2ctx.records import Edge, Found, Import, Syntax, Unresolved

GRAMMARS = {"Go": tree_sitter_go.language}
CONFIG_FILES = ("go.mod", "go.work")

_FUNCTIONS = frozenset({"function_declaration", "method_declaration"})
_VALUES = frozenset({"const_spec", "var_spec"})
_TYPES = frozenset({"type_spec", "type_alias"})
_LISTS = _VALUES | {"field_declaration"}  # several names in one
_MEMBERS = frozenset({"field_declaration", "method_elem"})
_WANTED = _FUNCTIONS | _VALUES | _TYPES | _MEMBERS | {"package_clause", "import_spec"}
# Declarations and the insides of types, but no bodies of functions and no values.
_ENTERED = frozenset(
    {
        "import_declaration", "import_spec_list", "const_declaration", "var_declaration", "var_spec_list",
        "type_declaration", "type_spec", "struct_type", "field_declaration_list", "interface_type",
    }
)  # fmt: skip
_WITHOUT_NAMES = frozenset({"comment", "package_clause", "import_declaration"})

# Names are read off the text, which costs a third of what a tree query for them does; Go's lexis is regular.
# NUL separates the parts of a file, and nothing crosses it.
# Whatever is not closed ends with the line or the part, so that the search never goes back.
_NO_CODE = re.compile(
    rb"""/(?:/[^\n\0]*+|\*[^*\0]*+(?:\*(?!/)[^*\0]*+)*+(?:\*/)?)|`[^`\0]*+`?"""
    rb"""|"[^"\\\n\0]*+(?:\\[^\0][^"\\\n\0]*+)*+"?|'[^'\\\n\0]*+(?:\\[^\0][^'\\\n\0]*+)*+'?"""
)
_W = rb"[\w\x80-\xff]"
# In Go, a name right before another name is being declared: a parameter, a field, a variable with its type. What
# stands before tells names from types: in `a T, b U` the list of names before U is not `T, b`.
_DECLARED = re.compile(
    rb"(?<=[(\[{,;\n\t ])(?<![^(\[{,; ] )(%b++(?:\s*+,\s*+%b++){0,50}+)[ \t]+(?=[\w\x80-\xff*\[]|<-)" % (_W, _W)
)
_METHOD = re.compile(rb"(?:^|[{;])[ \t]*%b+\(" % _W, re.MULTILINE)
_LITERAL = re.compile(rb"func\s*\([^{\n]*")
_LOCALS = tuple(
    (word, re.compile(rb"%b\s+(%b+(?:\s*,\s*%b+)*)" % (word, _W, _W))) for word in (b"var", b"const", b"type")
)
_STRUCT = re.compile(rb"struct\s*\{[^{}]*\}")
_VERSION = re.compile(r"/v\d+$")
_BROKEN_CHAIN = re.compile(rb"\.\n\s*")
_NAMES_ONLY = bytes(c if chr(c).isalnum() or c in b"_.:" or c >= 0x80 else 0x20 for c in range(256))

# Methods that types outside the repository are most likely to have.
_COMMON = frozenset(
    {
        "Close", "Decode", "Encode", "Error", "Flush", "Format", "Get", "Header", "Len", "Less", "Lock", "Name", "Open",
        "Read", "ReadAt", "ReadFrom", "Run", "Scan", "Seek", "ServeHTTP", "Set", "Size", "Stat", "String", "Swap",
        "Type", "Unlock", "Unwrap", "Value", "Write", "WriteHeader", "WriteString", "WriteTo",
    }
)  # fmt: skip
_DEEPEST = 64  # slashes of an import path: keeps the cost of absurd ones linear


def scan(root: Node, path: str) -> Syntax:
    """Imports and declarations from the tree; the names that each declaration uses from its text."""
    imports: list[Import] = []
    defines: list[str] = []
    package = ""
    for node in walk(root, _WANTED, _ENTERED):
        kind = node.type
        if kind == "package_clause":
            package = text(node.named_child(0))
        elif kind == "import_spec":
            alias = text(node.child_by_field_name("name"))
            name = text(node.child_by_field_name("path")).strip('"`')
            imports.append(Import(name, line(node), "import", "hard", (alias,) if alias else ()))
        else:
            dot = "." if kind in _MEMBERS or kind == "method_declaration" else ""
            defines += [dot + name for name in _declared(node) if name not in ("_", "init")]
    words = b" ".join(sorted(_uses(root, _import_names(imports)))).decode("utf-8", "replace").split()
    names = [word for word in words if not word[0].isdigit()]
    tags = tuple(f"build:{rule}" for rule in _build_lines(root))
    declared = dict.fromkeys(defines)
    exports = sum(name[0].isupper() for name in declared)
    main = package == "main" and "main" in declared
    return Syntax(tuple(imports), package, tuple(declared), tuple(names), tags, exports=exports, main=main)


def _declared(node: Node) -> Iterator[str]:
    if node.type in _LISTS:
        names = node.children_by_field_name("name")
        if not names and node.type == "field_declaration":  # embedded: the field is called as its type
            yield text(node.child_by_field_name("type")).partition("[")[0].rpartition(".")[2].strip("* ")
    else:
        names = [found for found in (node.child_by_field_name("name"),) if found is not None]
    yield from (text(name) for name in names if name.is_named)


def _build_lines(root: Node) -> Iterator[str]:
    """Build constraints above the package clause, all in the form of `//go:build`."""
    for node in root.children:
        if node.type != "comment":
            return
        comment = text(node)
        if comment.startswith("//go:build "):
            yield comment.removeprefix("//go:build ").strip()
        elif comment.removeprefix("//").lstrip().startswith("+build "):
            options = comment.partition("+build ")[2].split()
            yield " || ".join(" && ".join(part for part in option.split(",") if part) for option in options)


def _import_names(imports: list[Import]) -> set[bytes]:
    """The names that imports most likely have in the file."""
    names = (item.names[0] if item.names else _VERSION.sub("", item.name).rpartition("/")[2] for item in imports)
    return {name.encode() for name in names}


def _uses(root: Node, imported: set[bytes]) -> set[bytes]:
    """Dotted names that the declarations use; `.x` is a selector, `x:` a key, a case or a label.

    A variable with the name of an import mostly comes after the last use of the import in its function, so such
    names do not count as local.
    """
    found: set[bytes] = set()
    parts = [_split(node) for node in root.children if node.is_named and node.type not in _WITHOUT_NAMES]
    clean = _NO_CODE.sub(b" ", b"\0".join(piece.replace(b"\0", b" ") for part in parts for piece in part))
    clean = _BROKEN_CHAIN.sub(b".", clean).replace(b"...", b" ").replace(b":", b": ")
    pieces = clean.split(b"\0") if parts else []
    for parameters, heading, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        generic = _DECLARED.findall(parameters) if parameters else []
        # Split by a pattern with one group, every other part is what the group matched: the names declared.
        between = _DECLARED.split(heading)
        _gather(b" ".join(between[::2]), _names(generic), found)
        if b"struct" in body:
            body = _STRUCT.sub(lambda fields: _DECLARED.sub(b" ", fields[0]), body)
        if body:
            _gather(body, _names(generic + between[1::2] + _locals(body)) - imported, found)
    return found


def _split(node: Node) -> tuple[bytes, bytes, bytes]:
    """A declaration as its type parameters; the part where a name before a name is being declared, without the
    declaration's own name; and the rest.
    """
    source, start = node.text or b"", node.start_byte
    if node.type == "type_declaration":
        parameters = (spec.child_by_field_name("type_parameters") for spec in node.named_children)
        return b" ".join(n.text or b"" for n in parameters if n is not None), _METHOD.sub(b"(", source), b""
    name = node.child_by_field_name("name") if node.type in _FUNCTIONS else None
    if name is None:
        return b"", b"", source
    block = node.child_by_field_name("body")
    end = len(source) if block is None else block.start_byte - start
    own, after = name.start_byte - start, name.end_byte - start
    listed = node.child_by_field_name("type_parameters") if source[after : after + 1] == b"[" else None
    return (listed.text if listed else None) or b"", source[:own] + b" " + source[after:end], source[end:]


def _names(lists: list[bytes]) -> set[bytes]:
    return set(b" ".join(lists).replace(b",", b" ").split())


def _locals(body: bytes) -> list[bytes]:
    """Names that code declares, in lists: `x, y := …`, `var x T` and the parameters of function literals."""
    found: list[bytes] = []
    for word, pattern in _LOCALS:
        if word in body:
            found += pattern.findall(body)
    if b"func" in body:
        for literal in _LITERAL.findall(body):
            found += _DECLARED.findall(literal)
    for part in body.split(b": =")[:-1]:
        found.append(part[max(part.rfind(b"\n"), part.rfind(b"{"), part.rfind(b";")) + 1 :])
    return found


def _gather(code: bytes, local: set[bytes], to: set[bytes]) -> None:
    """Add the dotted names in code to a set, those that begin with a local name as selectors only."""
    words = set(code.translate(_NAMES_ONLY).split())
    words -= local
    words -= to
    for word in [word for word in words if b"." in word or b":" in word]:
        head, *rest = word.rstrip(b":").split(b".")
        if not head or head in local:
            words.discard(word)
            words.update([b"." + part for part in rest if part])
    to |= words


def resolve(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Found]:
    index = _Index(syntax)
    paths = _ImportPaths(tree, syntax)
    for path in sorted(syntax):
        file = _File(path, syntax[path], index)
        for item in syntax[path].imports:
            folder = paths.folder(path, item.name)
            if folder is not None:
                file.take(item, index.importable(folder))
        for use in syntax[path].uses:
            file.use(use)
        for target, kind in file.targets:
            if target != path:
                yield Edge(path, target, kind, "hard")
        for item in file.unresolved():
            yield Unresolved(path, item.name, item.line)


class _Package:
    """The files of one folder with one package name, and which of them declare what."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.files: list[str] = []
        self.declared: dict[str, list[str]] = {}  # name, or .name of a method or field

    def add(self, path: str, file: Syntax) -> None:
        self.files.append(path)
        for name in file.defines:
            self.declared.setdefault(name, []).append(path)


class _Index:
    """All packages of the repository."""

    def __init__(self, syntax: Mapping[str, Syntax]):
        self.folders: dict[str, dict[str, _Package]] = {}
        self.constraints: dict[str, tuple[str, ...]] = {}
        for path in sorted(syntax):
            name = syntax[path].package
            packages = self.folders.setdefault(posixpath.dirname(path), {})
            packages.setdefault(name, _Package(name)).add(path, syntax[path])
            rules = tuple(tag.removeprefix("build:") for tag in syntax[path].tags) + _name_rules(path)
            if rules:
                self.constraints[path] = rules

    def importable(self, folder: str) -> _Package | None:
        """The package that importing the folder means: tests apart, and a program only if there is nothing else."""
        found = [p for p in self.folders.get(folder, {}).values() if not all(map(_is_test, p.files))]
        return min(found, key=lambda p: (p.name == "main", -len(p.files), p.name), default=None)

    def visible(self, path: str, declaring: Iterable[str]) -> list[str]:
        """Those of the files that can be compiled together with `path`; none if it declares the name itself."""
        found = []
        for other in declaring:
            if other == path:
                return []
            if _is_test(other) and not (_is_test(path) and posixpath.dirname(path) == posixpath.dirname(other)):
                continue
            rules = (self.constraints.get(path), self.constraints.get(other))
            if rules[0] and rules[1] and not _satisfiable(rules[0] + rules[1]):
                continue
            found.append(other)
        return found


class _File:
    """Gathers what one file needs."""

    def __init__(self, path: str, syntax: Syntax, index: _Index):
        self.path = path
        self.index = index
        self.own = index.folders[posixpath.dirname(path)][syntax.package]
        self.targets: dict[tuple[str, str], None] = {}  # (file, kind) in the order found
        self.imported: dict[str, tuple[Import, _Package]] = {}  # local name -> what it stands for
        self.needed: dict[tuple[str, ...], bool] = {}
        self.dotted: list[_Package] = []
        self.lost: list[Import] = []
        self.found: set[str] = set()  # imports of which a name led somewhere

    def take(self, item: Import, package: _Package | None) -> None:
        """Note an import of a package of the repository; None if there is no such package."""
        if package is None:
            self.lost.append(item)
        elif item.names == ("_",):
            self.targets.update(((f, "import"), None) for f in self.index.visible(self.path, package.files))
        elif item.names == (".",):
            self.dotted.append(package)
        else:
            self.imported[item.names[0] if item.names else package.name] = (item, package)

    def use(self, use: str) -> None:
        if use in self.own.declared:
            self._own(use)
        elif use.endswith(":"):
            # A name that is also a field is more likely the key of a struct; the struct's own name is there too.
            if "." in use or f".{use[:-1]}" not in self.own.declared:
                self.use(use[:-1])
        elif use.startswith("."):
            return
        elif "." in use:
            head, *rest = use.split(".")
            if head in self.imported:
                if self._need(self.imported[head][1].declared.get(rest[0], []), "import"):
                    self.found.add(head)
            elif head in self.own.declared:
                for name in (head, *(f".{part}" for part in rest)):
                    self._own(name)
            else:
                self._dotted(head)
        else:
            self._dotted(use)

    def _own(self, name: str) -> None:
        """A name of the own package. `x.name` is worth a guess if one file alone has it, which is no test, and
        no interface of the standard library has it as well.
        """
        files = self.own.declared.get(name, [])
        if not name.startswith(".") or (len(files) == 1 and name[1:] not in _COMMON and not _is_test(files[0])):
            self._need(files, "use")

    def _dotted(self, name: str) -> None:
        for package in self.dotted:
            self._need(package.declared.get(name, []), "import")

    def _need(self, files: list[str], kind: str) -> bool:
        # Where a package has a file for each system, hundreds of names have the same dozens of files.
        key = (kind, *files)
        if key not in self.needed:
            visible = self.index.visible(self.path, files)
            self.targets.update(((f, kind), None) for f in visible)
            self.needed[key] = bool(visible)
        return self.needed[key]

    def unresolved(self) -> Iterator[Import]:
        yield from self.lost
        yield from (item for name, (item, _) in self.imported.items() if name not in self.found)


def _is_test(path: str) -> bool:
    return path.endswith("_test.go")


class _ImportPaths:
    """Import path -> folder of the repository. Every module of the repository counts, used by go.work or not."""

    def __init__(self, tree: RepoTree, syntax: Mapping[str, Syntax]):
        self.tree = tree
        self.code = frozenset(posixpath.dirname(path) for path in syntax)
        self.modules: dict[str, str] = {}  # folder of a go.mod -> module path
        self.replaced: dict[str, dict[str, str]] = {}  # go.mod or go.work -> path -> folder
        for config in (*tree.configs("go.mod"), *tree.configs("go.work")):
            self._read(config)
        self.homes: dict[str, str] = {}  # module path -> folder, the shallowest
        for folder, name in self.modules.items():
            self.homes.setdefault(name, folder)
        if not self.modules:
            self.homes.update(_guessed_home(syntax, self.code))
        self.tables: dict[str, dict[str, str]] = {}
        self.vendors: dict[str, list[str]] = {}  # folder -> those below it that hold packages by import path
        older = () if self.modules else ("src",)
        for start in ("vendor", "Godeps/_workspace/src", *older):
            for folder in sorted(f for f in tree.directories if f"/{f}".endswith(f"/{start}")):
                self.vendors.setdefault(folder[: -len(start)].rstrip("/"), []).append(folder)

    def _read(self, config: str) -> None:
        folder = posixpath.dirname(config)
        replaced = self.replaced.setdefault(config, {})
        for verb, first, target in _directives(self.tree.text(config) or ""):
            if verb == "module" and config.endswith("go.mod"):
                self.modules.setdefault(folder, first)
            elif verb == "replace" and target.startswith("."):
                local = join(folder, target)
                if local is not None:
                    replaced[first] = local

    def folder(self, path: str, name: str) -> str | None:
        """The folder that an import means, whether it exists or not; None if the import is external."""
        here = posixpath.dirname(path)
        if name.startswith(("./", "../")):
            return join(here, name)
        if name.count("/") > _DEEPEST:
            return None
        above = _above(here)
        home = next((folder for folder in above if folder in self.modules), None)
        found = self._in_modules(self._table(here, home, above), name)
        if home is None or found is None or not _inside(name, self.modules[home]):
            for vendor in (vendor for folder in above for vendor in self.vendors.get(folder, ())):
                if f"{vendor}/{name}" in self.code:
                    return f"{vendor}/{name}"
        return found

    def _table(self, here: str, home: str | None, above: tuple[str, ...]) -> dict[str, str]:
        """Module path -> folder, as a file in `here` sees it: the replacements of go.work are the strongest."""
        if here not in self.tables:
            table = dict(self.homes)
            if home is not None:
                table[self.modules[home]] = home
                table.update(self.replaced.get(posixpath.join(home, "go.mod"), {}))
            works = (posixpath.join(folder, "go.work") for folder in above)
            table.update(next((self.replaced[work] for work in works if work in self.replaced), {}))
            self.tables[here] = table
        return self.tables[here]

    def _in_modules(self, table: Mapping[str, str], name: str) -> str | None:
        module = name
        while module not in table:
            module = module.rpartition("/")[0]
            if not module:
                return None
        folder = posixpath.join(table[module], name[len(module) :].lstrip("/")).rstrip("/")
        # A folder below that is a module of its own does not belong to this one.
        nearest = next((f for f in _above(folder) if f in self.modules), table[module])
        return folder if nearest == table[module] or table[module] not in self.modules else None


def _directives(source: str) -> Iterator[tuple[str, str, str]]:
    """Lines of go.mod and go.work as verb, first word, and the word after `=>`."""
    block = ""
    for row in source.splitlines():
        left, _, right = row.partition("//")[0].partition("=>")
        words = [word.strip('"`') for word in left.replace("(", " ( ").split()]
        if words[:1] == [")"]:
            block = ""
        elif len(words) > 1 and words[1] == "(":
            block = words[0]
        elif block or len(words) > 1:
            verb, *rest = [block, *words] if block else words
            if rest:
                yield verb, rest[0], "".join(right.split()[:1]).strip('"`')


def _above(folder: str) -> tuple[str, ...]:
    """The folder and those above it, up to the root."""
    found = [folder]
    while found[-1]:
        found.append(posixpath.dirname(found[-1]))
    return tuple(found)


def _inside(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}/")


def _guessed_home(syntax: Mapping[str, Syntax], code: frozenset[str]) -> dict[str, str]:
    """The repository's own import path where no go.mod tells: most imports below it must lead to a folder."""
    names = {item.name for file in syntax.values() for item in file.imports if item.name.count("/") <= _DEEPEST}
    good: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    for parts in (name.split("/") for name in sorted(names)):
        for size in (2, 3):
            if len(parts) > size and "." in parts[0]:
                (good if "/".join(parts[size:]) in code else bad)["/".join(parts[:size])] += 1
    best = max(sorted(good), key=lambda name: good[name], default="")
    return {best: ""} if good[best] > bad[best] else {}


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


def _name_rules(path: str) -> tuple[str, ...]:
    """The constraints that the file's name makes: `_linux.go`, `_arm64.go`, `_linux_arm64_test.go`."""
    words = posixpath.basename(path).removesuffix(".go").removesuffix("_test").split("_")[1:]
    if words and words[-1] in _MACHINES:
        return tuple(words[-2:]) if len(words) > 1 and words[-2] in _SYSTEMS else (words[-1],)
    return (words[-1],) if words and words[-1] in _SYSTEMS else ()


@cache
def _satisfiable(rules: tuple[str, ...]) -> bool:
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
