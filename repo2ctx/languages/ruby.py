"""Ruby: `require` and its kin, `autoload`, and the constants that a file names.

`require "x/y"` is looked up where a test run would: in the `lib` (from test files also the `test` or `spec`) of the
folders around the file, nearest first, in folders that it or a file above adds to `$LOAD_PATH`, then in the
`require_paths` of every gemspec, nearest first. Paths made of `__dir__`, `__FILE__`, `File.join` and
`File.expand_path` are read. A name that is no file here is a gem or the standard library, unless this repository
has its folder and the file that names that folder.

A `require` that only a test run satisfies, from a test to a file among the tests, is of the kind `test`, and so is, softly,
what a `.rspec` requires for all specs.
Constants are resolved by lexical nesting, as `_ruby_constants` says. Soft: `require` in a method or in a block that
runs later, every `autoload`, and constants.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import tree_sitter_ruby
from tree_sitter import Node

from repo2ctx.languages import RepoTree, _ruby_outline, ancestors, line, text
from repo2ctx.languages._ruby_constants import Constants
from repo2ctx.languages._ruby_paths import LoadPath, gem_commands, is_test
from repo2ctx.languages._ruby_source import LONGEST, NAME, ROOT, Nesting, Scope, Source, child_of
from repo2ctx.records import Edge, EntryPoint, Found, Import, Strength, Syntax, Unresolved

GRAMMARS = {"Ruby": tree_sitter_ruby.language}
CONFIG_FILES = ("*.gemspec", ".rspec")
OUTLINE = _ruby_outline.SHAPE

_REQUIRE = re.compile(rb"(require(?:_relative)?)(?<![\w.:@$]require)(?<![\w.:@$]require_relative)[ \t(]++(?=[\w\"':])")
_OTHER_CALL = rb"(load|autoload|include|extend|prepend)(?![\w?!:=.])[ \t(]++(?=[\w\"':])"
_LINE = re.compile(rb"\n[ \t]*+" + _OTHER_CALL)
_FIRST_LINE = re.compile(rb"[ \t]*+" + _OTHER_CALL)
_LOAD_PATH = re.compile(rb"\$(?:LOAD_PATH|:)\s*(?:\.\s*(?:unshift|push|append|prepend)\b|<<)[ (]*(?=[\w\"'])")
_CONSTANT = re.compile(rb"[A-Z](?<![\w@$.\"'][A-Z])\w*+(?:::[A-Z]\w*+)*+(?!\?)")
_ASSIGNED = re.compile(rb"[ \t]*(?:\|\|)?=(?![=~>])")

_RSPEC_REQUIRE = re.compile(r"^[ \t]*(?:--require|-r)[ \t=]*([\w./-]{1,200})", re.MULTILINE)
_MOST_REQUIRED = 16  # by one .rspec
_COLON = ord(":")
_BEFORE_A_NAME = frozenset((b"", *(bytes([c]) for c in b" \t\r\n;({[,!&|=<>?+-*/~^%")))
_MIXINS = frozenset({"include", "extend", "prepend"})
_METHODS = frozenset({"method", "singleton_method", "lambda"})
_AT_ONCE = frozenset(
    """
    each each_with_index each_pair map tap then new class_eval module_eval instance_eval class_exec describe context
    eager_autoload autoload_under autoload_at silence_warnings suppress_warnings silence suppress
""".split()
)


def scan(root: Node, path: str) -> Syntax:
    """What the file requires, and the constants that it defines and uses, each with its nesting: `Shop|Cart Line`."""
    file = _File(root, path)
    scopes = list(file.scopes())
    imports, mixins = file.calls(scopes)
    roots = list(file.load_paths())
    uses, assigned = file.constants(scopes, mixins)
    defines = [scope.inner for scope in scopes if not scope.wrapper and not scope.reopens] + assigned
    wraps = [f"wraps:{scope.inner}" for scope in scopes if scope.wrapper]
    wraps += [f"reopens:{scope.inner}" for scope in scopes if scope.reopens]
    defined = dict.fromkeys(defines)
    return Syntax(
        imports=tuple(imports),
        defines=tuple(defined),
        uses=tuple(uses),
        tags=tuple(dict.fromkeys([*wraps, *roots])),
        exports=len(defined),
    )


class _File(Source):
    """What `scan` reads off one file."""

    def calls(self, scopes: Sequence[Scope]) -> tuple[list[Import], dict[int, str]]:
        """Imports, and where the constants end that class bodies mix in."""
        imports: list[Import] = []
        mixins: dict[int, str] = {}
        nesting = Nesting(scopes)
        first = _FIRST_LINE.match(self.source)
        found = [*_REQUIRE.finditer(self.source), *_LINE.finditer(self.source), *([first] if first else ())]
        for start, end, word in sorted((f.start(1), f.end(), f[1]) for f in found):
            node = self.node(start, end + 1)
            if node is None or node.type != "call" or node.start_byte != start:
                continue
            method, arguments = word.decode(), node.child_by_field_name("arguments")
            if arguments is None:
                continue
            around = self.around(node) if node.start_point[1] else []
            if method in _MIXINS:
                if not _lazy(around):
                    mixins.update((n.end_byte, method) for n in arguments.named_children)
            elif method == "autoload":
                imports += self._autoload(node, arguments, around, nesting.at(start))
            else:
                imports += self._require(node, method, arguments, "soft" if _lazy(around) else "hard")
        return imports, mixins

    def _require(self, node: Node, method: str, arguments: Node, strength: Strength) -> Iterator[Import]:
        name = self.value(child_of(arguments, 0))
        if name.removeprefix(ROOT).isprintable() and name:
            mode = {"require_relative": "relative", "load": "load"}.get(method, "")
            yield _import(name, node, "require", strength, mode)

    def _autoload(self, node: Node, arguments: Node, around: Sequence[Node], scope: str) -> Iterator[Import]:
        """`autoload :Name, path`, or ActiveSupport's `autoload :Name`, whose path is in the name or around it."""
        constant = text(child_of(arguments, 0)).strip(":\"'")
        if not NAME.fullmatch(constant):
            return
        full = f"{scope}|{constant}" if scope else constant
        path = self.value(child_of(arguments, 1))
        under = ""
        if arguments.named_child_count == 1:
            for outer in around:
                method = text(outer.child_by_field_name("method")) if outer.type == "call" else ""
                if method in ("autoload_at", "autoload_under"):
                    values = outer.child_by_field_name("arguments")
                    value = self.value(child_of(values, 0) if values else None)
                    path, under = (value, under) if method == "autoload_at" else (path, value)
        if path and path.removeprefix(ROOT).isprintable():
            yield _import(path, node, "autoload", "soft", "", full)
        elif arguments.named_child_count == 1:
            yield Import(constant, line(node), "autoload", "soft", ("constant", full, under))

    def load_paths(self) -> Iterator[str]:
        """Folders that the file adds to `$LOAD_PATH`."""
        for found in _LOAD_PATH.finditer(self.source):
            node = self.node(found.end(), found.end())
            for outer, inner in pairwise((*self.around(node), node)) if node else ():
                if outer.type == "argument_list" or outer.type == "binary":
                    value = self.value(inner)
                    if value.startswith(ROOT):
                        yield f"root:{value.removeprefix(ROOT).lstrip('/')}"
                    break

    def constants(self, scopes: Sequence[Scope], mixins: Mapping[int, str]) -> tuple[list[str], list[str]]:
        """Constants that the file uses, and those that it assigns. `parent` marks superclasses and mixins,
        with the class that inherits from them."""
        uses: dict[str, None] = {}
        assigned: list[str] = []
        nesting = Nesting(scopes)
        named = {scope.named_at for scope in scopes}
        supers = {scope.super_at: scope.inner for scope in scopes}
        special = {*named, *supers, *mixins}
        scope, seen = "", set[bytes]()
        seen_in = {scope: seen}
        source = self.source
        for found in _CONSTANT.finditer(self.source):
            start, end = found.span()
            if start >= nesting.until:
                scope = nesting.at(start)
                seen = seen_in.setdefault(scope, set())
            written = found[0]
            equals = _ASSIGNED.match(source, end)
            # `::A` is not `A`.
            known = written in seen and end not in special and not equals and source[start - 1] != _COLON
            if known or not (name := self._constant(start, written)):
                continue
            if equals and self._assigns(start, equals.end()):
                assigned.append(f"{scope}|{name}" if scope and not name.startswith("::") else name)
            elif end in supers:
                uses[f"{scope} {name} parent {supers[end]}"] = None
            elif end in mixins:
                owner = scope if mixins[end] != "extend" else ""
                uses[f"{scope} {name} parent {owner}".rstrip()] = None
            elif end in named:
                if outer := name.rpartition("::")[0]:
                    uses[f"{scope} {outer}"] = None
            else:
                seen.add(written)
                uses[f"{scope} {name}"] = None
        return list(uses), assigned

    def _constant(self, start: int, found: bytes) -> str:
        """The name, with `::` in front if it is absolute; "" if what the text looks like is none in the tree."""
        source = self.source
        absolute = False
        if start and source[start - 1] == _COLON:
            absolute = start > 1 and source[start - 2] == _COLON
            if not absolute or source[max(0, start - 3) : start - 2] not in _BEFORE_A_NAME:
                return ""
        first = start + len(found.partition(b"::")[0])
        node = self.node(start, first)
        if node is None or node.type != "constant" or node.end_byte != first or len(found) > LONGEST:
            return ""
        name = found.decode()
        if source[start + len(found) : start + len(found) + 1] == b"(":  # a method: Integer("3")
            name = name.rpartition("::")[0]
        return f"::{name}" if absolute and name else name

    def _assigns(self, start: int, end: int) -> bool:
        node = self.node(start, end)
        return node is not None and node.type in ("assignment", "operator_assignment")


def _import(name: str, node: Node, kind: str, strength: Strength, mode: str, *more: str) -> Import:
    """`names` holds how the name is looked up, then the constant that it is to define."""
    if name.startswith(ROOT):
        name, mode = name.removeprefix(ROOT).lstrip("/"), "load-here" if mode == "load" else "here"
    return Import(name, line(node), kind, strength, (mode, *more))


def _lazy(around: Sequence[Node]) -> bool:
    """Whether what lies in these nodes runs later than the file: in a method, or in a block that is kept."""
    for outer, inner in pairwise(around):
        if inner.type in _METHODS or outer.type in _METHODS:
            return True
        block = inner.type in ("do_block", "block") and outer.type == "call"
        if block and text(outer.child_by_field_name("method")) not in _AT_ONCE:
            return True
    return False


def resolve(tree: RepoTree, syntax: Mapping[str, Syntax]) -> Iterator[Found]:
    load_path = LoadPath(tree, syntax)
    autoloaded: dict[str, str] = {}
    for path in sorted(syntax):
        for item in syntax[path].imports:
            target = None if item.names[0] == "constant" else load_path.find(item, path)
            if target == "":
                yield Unresolved(path, item.name, item.line)
            elif target and target != path:
                # Only the load path of a test run has the folder of the tests.
                of_tests = item.kind == "require" and not item.names[0] and is_test(path) and is_test(target)
                yield Edge(path, target, "test" if of_tests else item.kind, item.strength)
                if len(item.names) > 1:
                    autoloaded.setdefault(item.names[1], target)
    yield from _by_rspec(tree, load_path, syntax)
    yield from (EntryPoint(target, "the gemspec") for target in gem_commands(tree) if target in syntax)
    constants = Constants(tree, syntax, autoloaded)
    for path in sorted(syntax):
        yield from _by_constants(constants, path, syntax[path])


def _by_rspec(tree: RepoTree, load_path: LoadPath, syntax: Mapping[str, Syntax]) -> Iterator[Edge]:
    """What `--require` in a `.rspec` loads before each of the specs below its folder."""
    wanted = {
        posixpath.dirname(config): _RSPEC_REQUIRE.findall(tree.text(config) or "")[:_MOST_REQUIRED]
        for config in tree.configs(".rspec")
    }
    for path in sorted(syntax) if wanted else ():
        home = next((folder for folder in ancestors(posixpath.dirname(path)) if folder in wanted), None)
        for name in wanted[home] if home is not None and path.endswith("_spec.rb") else ():
            target = load_path.find(Import(name, 0, "require", names=("",)), path)
            if target and target != path:
                yield Edge(path, target, "test", "soft")


def _by_constants(constants: Constants, path: str, file: Syntax) -> Iterator[Edge | Unresolved]:
    for item in file.imports:
        if item.names[0] == "constant":
            target = constants.autoload(item.names[1], item.names[2], path)
            if target is None:
                yield Unresolved(path, item.name, item.line)
            elif target != path:
                yield Edge(path, target, item.kind, item.strength)
    needed: dict[str, None] = {}
    for use in file.uses:
        scope, name = use.split(" ")[:2]
        target = constants.find(scope, name, path)
        if target is not None and target != path:
            needed[target] = None
    for target in needed:
        yield Edge(path, target, "autoload", "soft")
