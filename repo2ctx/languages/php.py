"""PHP: the classes, functions and constants that a file names, and the files that it includes.

Names are made full while scanning, as the compiler does: by the file's `use` statements, else by its namespace; a
function also has its global name. A full name means the file that declares it. Where several do, that is the file
itself, then one of the same folder, then the one that an autoloader of composer.json would take, then the closest by
path; only tests see what is in tests. Where none does, it is the file that an autoloader would load.
A name that an autoloader would look for in a folder of the repository, and that is not there, is unresolved.
Names of PHP's own are never files of the repository, even where one stands in for them in older versions.

Hard: parents, traits and attributes; calls, `new` and includes outside functions and classes.
Soft: whatever else the bodies of functions and classes name, and what never loads a class: types, `catch`,
`instanceof`, `X::class`. A `use` statement is as hard as what its name is used for; one that is only the start of
longer names is no import of its own. A constant named without its namespace is looked for in the file's own only.
A call of a function that no `use function` names is of the kind `autoload`: Composer's `files` have loaded it before.
Comments make no edges. An included path counts if it is literal; a relative one is taken from the file's folder, then
from the root.

In `Syntax`, `imports` has full names and `defines` "class", "function" or "const" before each. The `names` of an
import are that word and the global name to fall back to, if there is one. `uses` has what need not be in the
repository and is soft: calls of functions, with `()`, and names that are a class, a constant or neither.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from functools import cache, cached_property

import tree_sitter_php
from tree_sitter import Node

from repo2ctx.languages import Crowds, RepoTree, _php_outline, join, line, text, walk_within
from repo2ctx.languages._php_composer import Autoload
from repo2ctx.languages._php_names import Names, fold, is_built_in
from repo2ctx.languages._php_text import Marks, has_statements, words
from repo2ctx.records import Edge, EntryPoint, Found, Import, Strength, Syntax, Unresolved

GRAMMARS = {"PHP": tree_sitter_php.language_php}
CONFIG_FILES = ("composer.json",)
OUTLINE = _php_outline.SHAPE

_TYPES = ("class_declaration", "interface_declaration", "trait_declaration", "enum_declaration")
_MEMBERS = ("declaration_list", "enum_declaration_list")
_PARENTS = ("base_clause", "class_interface_clause", "use_declaration")
_NAMES = frozenset({"name", "qualified_name", "relative_name"})
_SPACES = ("namespace_definition", "namespace_use_declaration")
_WANTED = frozenset((*_TYPES, *_MEMBERS, *_PARENTS, *_SPACES, "function_definition", "const_declaration"))
# What runs when the file loads, as far as a declaration may be in it; no bodies of functions.
_ENTERED = frozenset(
    """
    namespace_definition compound_statement colon_block if_statement else_clause else_if_clause try_statement
    return_statement expression_statement assignment_expression object_creation_expression anonymous_class
    """.split()
).union(_TYPES, _MEMBERS)

_MOST_LINES = 2000  # names of one file whose lines are looked for
_DEEPEST = 32


def scan(root: Node, path: str) -> Syntax:
    """Declarations and parents come from the tree, the names in code from the text."""
    found: dict[str, list[Node]] = {}
    for node, around in walk_within(root, _WANTED, _ENTERED):
        if node.type != "const_declaration" or around[-1].type not in _MEMBERS:
            found.setdefault(node.type, []).append(node)
    file = _File(root, found)
    file.read_declarations()
    file.read_code()
    for what, full in file.names.unused(file.uses):
        file.uses[what, full] = Import(full, file.names.lines[what, full], "use", "soft", (what,))
    imports = (*file.uses.values(), *file.includes)
    defines = tuple(dict.fromkeys(file.defines))
    return Syntax(imports, file.names.spaces[-1], defines, tuple(file.hints), exports=len(defines))


class _File:
    """What one file names and declares. Offsets are those in `source`."""

    def __init__(self, root: Node, found: Mapping[str, list[Node]]):
        self.found = found
        self.names = Names(*(found.get(kind, []) for kind in _SPACES))
        self.source = b"?>" + (root.text or b"")  # a file starts as if after the end of code
        self.shift = len(b"?>") - root.start_byte
        self.first_line = line(root)
        self.counted = (0, self.first_line)  # an offset, and its line
        self.defines: list[str] = []
        self.uses: dict[tuple[str, str], Import] = {}
        self.hints: dict[str, None] = {}
        self.includes: list[Import] = []

    def _all(self, *kinds: str) -> Iterator[Node]:
        for kind in kinds:
            yield from self.found.get(kind, ())

    def read_declarations(self) -> None:
        """What is declared when the file loads, and what that needs."""
        for what, kinds in (("class", _TYPES), ("function", ("function_definition",))):
            for node in self._all(*kinds):
                if (name := node.child_by_field_name("name")) is not None:
                    self.defines.append(f"{what} {self.names.declared(name)}")
        for node in self._all("const_declaration"):
            for element in node.named_children:
                if element.type == "const_element" and element.named_child(0) is not None:
                    self.defines.append(f"const {self.names.declared(element.named_children[0])}")
        for node in self._all(*_PARENTS):
            space = self.names.space(node.start_byte)
            for name in node.named_children:
                if name.type in _NAMES:
                    written = "".join(text(name).split())
                    self._use("class", self.names.full("class", written, space)[0], "hard", line(name))

    def read_code(self) -> None:
        """The names in stretches of code: by namespace, and by when they run."""
        code: dict[tuple[int, bool], list[bytes]] = {}
        statements = has_statements(self.source)
        for start, end, runs_later in self._stretches():
            marks = Marks(self.source, start, end, statements, closures=not runs_later)
            space = self.names.space(start - self.shift)
            at = start
            for opened, closed in marks.closures:
                code.setdefault((space, False), []).append(self.source[at:opened])
                code.setdefault((space, True), []).append(self.source[opened:closed])
                at = closed
            code.setdefault((space, runs_later), []).append(self.source[at:end])
            for offset, included in marks.includes:
                is_later = runs_later or marks.is_in_closure(offset)
                self.includes.append(Import(included, self._line(offset), "include", "soft" if is_later else "hard"))
            self.defines += [f"const {name}" for name in marks.constants]
            self.defines += [f"class {self.names.full('class', name, space)[0]}" for name in marks.classes]
        for (space, runs_later), parts in code.items():
            self._read_names(b"\n".join(parts), space, "soft" if runs_later else "hard")

    def _stretches(self) -> Iterator[tuple[int, int, bool]]:
        """Start and end of code, and whether it runs later than the file loads; without namespaces and imports."""
        cuts = [(n.start_byte, n.end_byte, True) for n in self._all(*_MEMBERS, "function_definition")]
        cuts += [(n.start_byte, n.end_byte, False) for n in self._all("namespace_use_declaration")]
        for node in self._all("namespace_definition"):
            name = node.child_by_field_name("name")
            cuts.append((node.start_byte, node.start_byte if name is None else name.end_byte, False))
        at = 0
        for start, end, runs_later in sorted(cuts):
            start, end = start + self.shift, end + self.shift
            if start >= at:
                if not self.source[at:start].isspace():
                    yield at, start, False
                if runs_later:
                    yield start, end, True
                at = end
        yield at, len(self.source), False

    def _read_names(self, code: bytes, space: int, strength: Strength) -> None:
        for how, name in words(code):
            what = "function" if how == "call" else "class"
            full, fallback = self.names.full(what, name, space)
            if (what, full) not in self.names.lines:
                if how == "hint":
                    self.hints[full] = None
                    continue
                if how == "call" and strength == "soft" and "\\" not in name:
                    self.hints[f"{full}()"] = None
                    continue
            hard = how == "attribute" or (how in ("class", "call") and strength == "hard")
            self._use(what, full, "hard" if hard else "soft", name, fallback)

    def _use(self, what: str, full: str, strength: Strength, at: str | int, fallback: str | None = None) -> None:
        """Note that something is named, hard if it is anywhere. `at`: the line, or the name that tells it."""
        key = (what, full)
        known = self.uses.get(key)
        if known is not None and (strength == "soft" or known.strength == "hard"):
            return
        if known is not None or key in self.names.lines:
            at = known.line if known else self.names.lines[key]
        elif isinstance(at, str):
            at = self._line(self._find(at))
        kind = "autoload" if what == "function" and key not in self.names.lines else "use"
        self.uses[key] = Import(full, at, kind, strength, (what,) if fallback is None else (what, fallback))

    def _find(self, name: str) -> int:
        if len(self.uses) > _MOST_LINES:
            return 0
        raw = name.encode("utf-8", "replace")
        found = (self.source.find(form) for form in (raw + b"::", b"new " + raw, raw))
        return next((at for at in found if at >= 0), 0)

    def _line(self, offset: int) -> int:
        if offset < self.counted[0]:
            self.counted = (0, self.first_line)
        start, at = self.counted
        self.counted = (offset, at + self.source.count(b"\n", start, offset))
        return self.counted[1]


def resolve(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Found]:
    index = _Index(tree, syntax)
    for path in sorted(syntax):
        for item in syntax[path].imports:
            if item.kind == "include":
                target = _included_file(tree, path, item.name)
                missed = target is None and _is_expected_file(item.name)
            else:
                target = index.find(path, item.names[0], item.name)
                if target is None and len(item.names) > 1:
                    target = index.find(path, *item.names)
                missed = target is None and len(item.names) == 1 and index.is_expected(item.name)
            if missed:
                yield Unresolved(path, item.name, item.line)
            elif target is not None and target != path:
                yield Edge(path, target, item.kind, item.strength)
        for name in syntax[path].uses:
            target = index.hinted(path, name)
            if target is not None and target != path:
                yield Edge(path, target, "autoload" if name.endswith("()") else "use", "soft")
    for target in index.autoload.commands:
        yield EntryPoint(target, "composer.json")


def _included_file(tree: RepoTree, path: str, name: str) -> str | None:
    folder = posixpath.dirname(path)
    if name.startswith("__DIR__"):
        places = [join(folder, f".{name.removeprefix('__DIR__')}")]
    else:
        places = [join(folder, name), join("", name)]
    return tree.first(p for p in places if p is not None)


def _is_expected_file(name: str) -> bool:
    """Whether an included file should be there: not one that an include path may have, or that Composer installs."""
    return name.startswith(("__DIR__", ".")) and "vendor" not in name.split("/")


class _Index:
    """Who declares which full name."""

    def __init__(self, tree: RepoTree, syntax: Mapping[str, Syntax]):
        self.autoload = Autoload(tree)
        self.declared: dict[tuple[str, str], dict[str, None]] = {}
        self.crowds = Crowds()
        self.spelled: dict[str, str] = {}  # class or constant -> which of them
        self.functions: set[str] = set()  # without namespaces
        for path in sorted(syntax):
            for item in syntax[path].defines:
                what, _, name = item.partition(" ")
                self.declared.setdefault((what, fold(what, name)), {})[path] = None
                if what == "function":
                    self.functions.add(name.rpartition("\\")[2].lower())
                elif self.spelled.get(name) != "class":
                    self.spelled[name] = what
        self.expected: dict[str, bool] = {}
        self.loaded: dict[str, dict[str, str]] = {}

    @cached_property
    def namespaces(self) -> frozenset[str]:
        """Every namespace that something is declared in, directly or below, in lower case."""
        seen = {""}
        for _, name in self.declared:
            space = name.rpartition("\\")[0].lower() if name.count("\\") < _DEEPEST else ""
            while space not in seen:
                seen.add(space)
                space = space.rpartition("\\")[0]
        return frozenset(seen)

    def hinted(self, source: str, name: str) -> str | None:
        """The file that a name from `uses` means. Other than what follows `new`, it may be a label or a word of the
        language, which are told apart from classes by their case."""
        if not name.endswith("()"):
            what = self.spelled.get(name)
            return self.find(source, what, name) if what else None
        short = name[:-2].rpartition("\\")[2]
        if short.lower() not in self.functions:
            return None
        return self.find(source, "function", name[:-2]) or self.find(source, "function", short)

    def find(self, source: str, what: str, name: str) -> str | None:
        """The file that declares the name, as the file `source` sees it."""
        folded = fold(what, name)
        if is_built_in(what, folded):
            return None
        declared = self.declared.get((what, folded), {})
        if source in declared:
            return source
        files = self.crowds.near((what, folded), declared, posixpath.dirname(source))
        if len(files) == 1 and (_is_test(source) or not _is_test(files[0])):
            return files[0]
        loaded = {f: owner for f in files if (owner := self.autoload.owner_of_listed(f)) is not None}
        if what == "class":
            loaded.update(self._loaded(name))
        seen = [f for f in files if f in loaded or _is_test(source) or not _is_test(f)]
        if what != "class" and len(seen) > 1 and not loaded:
            # Nothing loads functions but an include, and scripts that stand alone repeat each other's names.
            seen = [f for f in seen if posixpath.dirname(f) == posixpath.dirname(source)]
        if not seen:
            return next(iter(loaded), None)  # nothing that was parsed declares it
        return min(seen, key=lambda f: _distance(source, f, loaded))

    def _loaded(self, name: str) -> dict[str, str]:
        """The files in which an autoloader looks for a class, the best first -> the package's folder."""
        if name not in self.loaded:
            self.loaded[name] = self.autoload.paths(name)
        return self.loaded[name]

    def is_expected(self, name: str) -> bool:
        """Whether a class that no file declares should be in the repository, and is not a namespace."""
        if name not in self.expected:
            self.expected[name] = self.autoload.is_mapped(name) and name.lower() not in self.namespaces
        return self.expected[name]


def _distance(source: str, file: str, loaded: Mapping[str, str]) -> tuple[bool, int, bool, bool, int, str]:
    """Orders the files that declare one name."""
    owner = loaded.get(file)
    own = owner is not None and f"{source}/".startswith(f"{owner}/" if owner else "")
    return (
        posixpath.dirname(file) != posixpath.dirname(source),
        -len(owner or "") if own else 1,
        owner is None,
        _is_test(file) != _is_test(source),
        -len(posixpath.commonprefix([source.split("/"), file.split("/")])),
        file,
    )


@cache
def _is_test(path: str) -> bool:
    return any(part in ("test", "tests") for part in path.lower().split("/")[:-1])
