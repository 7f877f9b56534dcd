"""The documentation of a repository's main module: where it may be, its prose, and the file with it emptied in place.

Python docstrings come from the syntax tree; comments of Go, Rust, Java and JavaScript from the head of the file, read comment by
comment. `_doc_prose.py` cuts them to prose. Nothing is run; linear in the text.
"""

from __future__ import annotations

import ast
import inspect
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from repo2ctx._doc_prose import javadoc_markup, prose
from repo2ctx._python_source import PythonSource, emptied_literal, line_ends

_MOST = 20  # files that may hold the documentation
_LONGEST_PYTHON = 1_000_000  # characters; the tree of a longer file takes too long
_NO_PACKAGE = re.compile(
    r"(?:[_.].*|.*tests?|testing|docs?|examples?|samples?|demos?|bench(?:mark)?s?|scripts?|tools?|ci|build|dist|contrib|vendor"
    r"|third_party|tasks|utils?|notebooks|tutorials|integration|e2e|fixtures)",
    re.IGNORECASE,
)
_NO_MODULE = re.compile(r"(?:_.*|setup|conftest|noxfile|tasks|fabfile|manage|conf|versioneer|build|make|ez_setup)\.py")
_DEEPEST = 4  # folders above an __init__.py
_JS_INDEX = tuple(
    f"{folder}index.{ending}" for folder in ("", "src/", "lib/") for ending in ("ts", "js", "mjs", "cjs", "tsx")
)

_MOST_JAVA = 3
_ENTRY_POINT = re.compile(
    r"entry[ -]?point|python3? -m|__main__|-m switch|as a script|\binvoke|command[ -]line interface", re.IGNORECASE
)

Spans = list[tuple[int, int]]


# Which files -----------------------------------------------------------------------------------------------


def main_modules(paths: Collection[str], name: str) -> list[str]:
    """The files that may hold the documentation of the main module, best first, at most 20.

    paths: all that are kept. name: the repository's, without its owner: a package of the same name (whatever the case, marks
    between words, and `python` or `py` around it) goes before the only one there is.
    """
    names = _spellings(name)
    known = set(paths)
    named, lone = _python(known, names)
    found = [*named, *_go(known, names), *_rust(known, names), *_java(known, names), *lone]
    found += [path for path in _JS_INDEX if path in known]
    return list(dict.fromkeys(found))[:_MOST]


def _spellings(name: str) -> frozenset[str]:
    plain = _plain(name)
    found = {plain}
    for word in ("python", "py", "golang", "go", "rust", "rs", "java", "js", "lib"):
        for rest in (plain.removeprefix(word), plain.removesuffix(word)):
            found.add(rest if len(rest) > 1 else plain)
    return frozenset(found | {"py" + plain, "python" + plain})


def _plain(name: str) -> str:
    return re.sub(r"[-_.\s]+", "", name.lower())


def _python(known: set[str], names: Collection[str]) -> tuple[list[str], list[str]]:
    """Of the same name, and the only ones there are."""
    named, lone, modules = [], [], []
    for path in known:
        *parents, base = path.split("/")
        if base == "__init__.py" and 0 < len(parents) <= _DEEPEST:
            above, package = parents[:-1], parents[-1]
            good = not any(_NO_PACKAGE.fullmatch(part) for part in above) and _joined(*above, base) not in known
            if good and _plain(package) in names:
                named.append((package.startswith("_"), above not in ([], ["src"]), len(above), path))
            if above in ([], ["src"], ["lib"], ["python"]) and not _NO_PACKAGE.fullmatch(package):
                lone.append(path)
        elif base.endswith(".py") and parents in ([], ["src"], ["lib"]):
            if _plain(base[:-3]) in names:
                named.append((False, True, _DEEPEST, path))
            elif not _NO_MODULE.fullmatch(base):
                modules.append(path)
    of_name = [path for *_, path in sorted(named)]
    if of_name or not {"setup.py", "setup.cfg", "pyproject.toml"} & known:
        return _with_main(of_name, known), []
    only = lone if len(lone) == 1 else modules if len(modules) == 1 and not lone else []
    return _with_main(of_name, known), _with_main(only, known)


def _with_main(modules: list[str], known: set[str]) -> list[str]:
    mains = [path.replace("__init__.py", "__main__.py") for path in modules if path.endswith("/__init__.py")]
    return modules + [path for path in mains if path in known]


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _go(known: set[str], names: Collection[str]) -> list[str]:
    files = [path for path in known if path.endswith(".go") and not path.endswith("_test.go")]
    root = sorted((path != "doc.go", _plain(path[:-3]) not in names, path) for path in files if "/" not in path)
    below = []
    for path in files:
        folder, _, base = path.rpartition("/")
        parent, _, package = folder.rpartition("/")
        if (
            parent in ("", "cmd", "pkg")
            and _plain(package) in names
            and (base in ("doc.go", "main.go") or base[:-3] == package)
        ):
            below.append((base != "doc.go", path))
    return [path for *_, path in root] + [path for _, path in sorted(below)]


def _rust(known: set[str], names: Collection[str]) -> list[str]:
    found: list[str] = [path for path in ("src/lib.rs", "src/main.rs") if path in known]
    for path in sorted(known):
        if path.endswith(("/src/lib.rs", "/src/main.rs")):
            member = path[: path.rindex("/src/")]
            if _plain(member.removeprefix("crates/").removeprefix("packages/")) in names:
                found.append(path)
    return found


def _java(known: set[str], names: Collection[str]) -> list[str]:
    """Of the topmost packages of the root's or the main module's sources."""
    top: dict[str, int] = {}
    infos = []
    for path in known:
        module, found, package = f"/{path}".partition("/src/main/java/")
        if found and path.endswith(".java") and package != "module-info.java":
            depth = package.count("/")
            top[module] = min(depth, top.get(module, depth))
            if path.endswith("/package-info.java"):
                infos.append((module, depth, posixpath.basename(posixpath.dirname(package)), path))
    ranked = []
    for module, depth, package, path in infos:
        of_name = any(_plain(module.strip("/")) in (name, f"{name}core", "core", "") for name in names)
        if of_name and depth == top[module]:
            ranked.append((module.count("/"), _plain(package) not in names, len(path), path))
    return [path for *_, path in sorted(ranked)][:_MOST_JAVA]


# What they say ---------------------------------------------------------------------------------------------


def documentation(path: str, text: str) -> str:
    """The prose of a file's module documentation: paragraphs with a blank line between, code as `code`. Examples, parameters,
    licences and what else is not prose end it. "" if there is none or the file cannot be read."""
    reader = _READERS.get(posixpath.splitext(path)[1])
    found = reader(text) if reader else None
    said = prose(found[0]) if found else ""
    return "" if posixpath.basename(path) == "__main__.py" and _ENTRY_POINT.search(said) else said


def without_documentation(path: str, text: str) -> str | None:
    """The file with its module documentation emptied: a docstring is left without text, a comment's lines are blank; as many
    lines, and nothing else changed. None if that cannot be done for sure."""
    reader = _READERS.get(posixpath.splitext(path)[1])
    if reader is None:
        return text
    found = reader(text)
    if found is None:
        return None
    empty = emptied_literal if path.endswith((".py", ".pyi")) else line_ends
    parts, at = [], 0
    for start, end in found[1]:
        parts += [text[at:start], empty(text[start:end])]
        at = end
    result = "".join(parts) + text[at:]
    again = reader(result)
    if again is None or again[0].strip() or len(line_ends(result)) != len(line_ends(text)):
        return None
    return result


Reader = Callable[[str], tuple[str, Spans] | None]
"""Text -> what the documentation says, and where it stands; None where the file cannot be read."""


def _read_python(text: str) -> tuple[str, Spans] | None:
    source = PythonSource.parse(text) if len(text) <= _LONGEST_PYTHON else None
    if source is None:
        return None
    body = source.tree.body
    literals = [node.value for node in body[:1] if isinstance(node, ast.Expr)]
    literals += [node.value for node in body if isinstance(node, ast.Assign) and _sets_doc(node)]
    for literal in literals:
        if isinstance(literal, ast.Constant) and isinstance(literal.value, str) and literal.value.strip():
            return inspect.cleandoc(literal.value), [source.span(literal)]
    return "", []


def _sets_doc(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "__doc__" for target in node.targets)


_COMMENT = re.compile(r"//[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)", re.DOTALL)
_SPACE = re.compile(r"\ufeff?\s*+")
_SHEBANG = re.compile(r"\ufeff?#!(?!\[)[^\r\n]*+")
_ATTRIBUTE = re.compile(r"#!\[(?:[^\]\"]++|\"(?:[^\"\\]++|\\.)*+\")*+\]", re.DOTALL)
_STRICT = re.compile(r"[\"']use strict[\"'];?")
_ANNOTATION = re.compile(r"(?:@[\w.]+(?:\([^)]*+\))?|import[^;]*+;|\s++)*+", re.DOTALL)
_PACKAGE = re.compile(r"package\s")
_DIRECTIVE = re.compile(r"//(?:go:|\s?\+build|line |export |nolint|lint:|#)")
_TAGGED = re.compile(r"@(?:module|packageDocumentation|file[oO]verview|file|overview)\b")


def _head(text: str, *passed: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The comments before the first code, and the place of that code as an empty one; what matches `passed` is no code."""
    at = 0
    if shebang := _SHEBANG.match(text):
        at = shebang.end()
    while True:
        space = _SPACE.match(text, at)
        at = space.end() if space else at
        if comment := _COMMENT.match(text, at):
            yield comment.span()
            at = comment.end()
        elif other := next((m for pattern in passed if (m := pattern.match(text, at)) and m[0]), None):
            at = other.end()
        else:
            yield at, at
            return


def _read_go(text: str) -> tuple[str, Spans] | None:
    """The comment right above `package`."""
    *comments, (at, _) = _head(text)
    if not _PACKAGE.match(text, at):
        return "", []
    group: Spans = []
    for start, end in reversed(comments):
        if not re.fullmatch(r"[ \t]*(?:\r\n|\n)?[ \t]*", text[end:at]):
            break
        group.append((start, end))
        at = start
    group = [(start, end) for start, end in reversed(group) if not _DIRECTIVE.match(text, start)]
    return _comment_text(text, group), group


def _read_rust(text: str) -> tuple[str, Spans] | None:
    """`//!` and `/*! … */` at the top, attributes of the crate between them or not."""
    spans = [(s, e) for s, e in _head(text, _ATTRIBUTE) if text.startswith(("//!", "/*!"), s)]
    return _comment_text(text, spans), spans


def _read_java(text: str) -> tuple[str, Spans] | None:
    """The last `/** … */` above `package` and its annotations."""
    *comments, (at, _) = _head(text)
    annotation = _ANNOTATION.match(text, at)
    if not _PACKAGE.match(text, annotation.end() if annotation else at):
        return "", []
    spans = [(s, e) for s, e in comments if text.startswith("/**", s)][-1:]
    return javadoc_markup(_comment_text(text, spans)), spans


def _read_javascript(text: str) -> tuple[str, Spans] | None:
    """The first `/** … */` above all code that says it is about the module."""
    for start, end in _head(text, _STRICT):
        if text.startswith("/**", start) and _TAGGED.search(text, start, end):
            lines = [line.strip() for line in _comment_text(text, [(start, end)]).split("\n")]
            return javadoc_markup("\n".join(_untagged(lines))), [(start, end)]
    return "", []


def _untagged(lines: Iterable[str]) -> Iterator[str]:
    """The description, be it before the tags or in one."""
    for line in lines:
        tag = re.match(r"@(file[oO]verview|file|overview|desc|description|remarks)\b\s*", line)
        if tag:
            yield line[tag.end() :]
        elif re.match(r"@(module|packageDocumentation|author|version|since|namespace|internal|public)\b", line):
            yield ""
        else:
            yield line


_READERS: Mapping[str, Reader] = {
    ".py": _read_python,
    ".pyi": _read_python,
    ".go": _read_go,
    ".rs": _read_rust,
    ".java": _read_java,
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"), _read_javascript),
}


def _comment_text(text: str, spans: Spans) -> str:
    """The words of comments, without their marks and the indentation that all lines share."""
    lines: list[str] = []
    for start, end in spans:
        comment = text[start:end]
        if comment.startswith("//"):
            lines.append(comment[2:].removeprefix("!"))
        else:
            body = comment[2:].removesuffix("*/").lstrip("*!").replace("\r\n", "\n").split("\n")
            lines += ["", *(re.sub(r"^[ \t]*\*(?!\*)", "", line) for line in body), ""]
    return inspect.cleandoc("\n" + "\n".join(lines))
