"""Whatever is in a file or a tree, the repository gets its graph and its order, and a row that says what fell back."""

import json
import resource
import subprocess
import time
from contextlib import suppress

import pytest
from conftest import git, graph_of_files

from repo2ctx.inspection import analysed
from repo2ctx.languages import languages
from repo2ctx.languages._places import Places
from repo2ctx.order import order
from repo2ctx.parsing import _parser, scan
from repo2ctx.records import Syntax
from repo2ctx.sandbox import Sandbox, Stopped

DEEP = 100_000
PIECES = [
    b"(", b"[", b"{", b"<", b"()", b"[]", b"{}", b"({[<", b"'", b'"', b"`", b"/*", b"//", b"#", b"\\", b"\\\n", b"a.", b"a::", b"a\\",
    b"a, ", b"\0", b"\xff\xfe", b"\xf0\x9f", b"\n", b" ", b"import ", b"use ", b"require '", b'#include "a', b"from a import (", b"class A {",
    b"namespace a {", b"mod a {", b"module A\n", b"func f(", b"def f(", b"x = ", b"$a = ", b"<?php ", b"using A.", b"/** a *", b"if (", b"#if 1\n",
    b"<<A\n", b"r#\"", b"%w[", b"@", b"=> ", b"&", b"a b ", b"import('a') ", b"quote!(a) ", b"#[cfg(test)] mod a {}\n", b"var x, ",
]  # fmt: skip


def _parse(language: str, source: bytes) -> bool:
    return _parser(language).parse(source).root_node.has_error


@pytest.mark.parametrize("count", [DEEP // 40, pytest.param(DEEP // 4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("language", sorted(languages()))
def test_reading_a_file_ends_wherever_parsing_it_does(language, count):
    """A file of one piece, again and again: our reading may take longer than the parser, but only so much."""
    slow = []
    limit = 20 if count > DEEP // 10 else 2
    with Sandbox(20, 3 << 30) as sandbox:
        for piece in PIECES:
            source = piece * count
            try:
                start = time.monotonic()
                sandbox.call(_parse, language, source, timeout_s=4)
                parsing = time.monotonic() - start
            except Stopped:
                continue  # the parser alone is too slow, or dies: the build records that the file fell back
            try:
                assert isinstance(sandbox.call(scan, language, "x", source, timeout_s=limit + 10 * parsing), Syntax)
            except Stopped as stopped:
                slow.append((piece, stopped.problem))
        assert sandbox.call(scan, "Python", "x.py", b"import a\n").imports
    assert not slow


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("JavaScript", b"import('a') f(b) " * 20 + b"\nfunction g() { return [1, {x: require('c')}] }\n"),
        ("Ruby", b"class A::B < C\n  def m(x) = [x, D::E]\nend\n" * 5 + b"class ((\n"),
        ("Rust", b"mod a { use crate::{b, c::D}; fn f() { x!(a::b) } }\n" * 5 + b"fn ((("),
        ("C", b"#if A\n#include <a.h>\n#else\nint f(int a) { return (a + 1); }\n#endif\n" * 5),
    ],
)
def test_the_slow_search_for_a_place_finds_what_the_fast_one_does(language, source):
    root = _parser(language).parse(source).root_node
    fast, slow = Places(root), Places(root, most_steps=0)
    for offset in range(root.start_byte, root.end_byte):
        found = slow.node(offset, offset + 1)
        assert found == fast.node(offset, offset + 1)
        assert slow.around(offset)[0] == root
    for offset in range(root.end_byte - 1, root.start_byte, -7):  # places need not grow
        assert slow.node(offset, offset + 1) == fast.node(offset, offset + 1)


@pytest.mark.parametrize("language", sorted(languages()))
def test_deep_nesting_falls_back_or_ends(language):
    with Sandbox(20, 3 << 30) as sandbox:
        for opening, closing in ((b"(", b")"), (b"{", b"}"), (b"a<", b">")):
            for source in (opening * DEEP, b"x = " + opening * DEEP + b"1" + closing * DEEP):
                with suppress(Stopped):
                    assert isinstance(sandbox.call(scan, language, "x", source), Syntax)
        assert sandbox.call(scan, "Python", "x.py", b"import a\n").imports


def _import_tree(folder, files) -> None:
    """Commit many files at once, without writing each to disk."""
    git(folder, "init", "-q", "-b", "main")
    head = b"commit refs/heads/main\ncommitter a <a@example.invalid> 1700000000 +0000\ndata 1\nx\n"
    stream = [head]
    for path, data in files:
        stream.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data))
    subprocess.run(["git", "-C", str(folder), "fast-import", "--quiet"], input=b"".join(stream), check=True)


def test_a_repository_of_hostile_files_keeps_its_good_edges(tmp_path):
    files = [
        ("nul.py", b"import ok\0\n"),
        ("invalid.py", b"import ok\n# \xff\xfe\xfa\n"),
        ("deep.js", b"(\n" * DEEP),
        ("deep.py", b"x = " + b"[\n" * DEEP + b"]\n" * DEEP),
        ("deep.rb", b"[\n" * DEEP),
        ("long.py", b"import ok\nx = '" + b"a" * 900_000 + b"'\n"),
        ("big.py", b"x = 1\n" * 400_000),
        ("user.py", b"import ok\n"),
        ("ok.py", b"y = 1\n"),
    ]
    _import_tree(tmp_path, files)
    found = analysed(tmp_path, everything=False)
    fates = {f.path: f.fate for f in found.files}
    assert fates["nul.py"] == "binary"
    assert fates["big.py"] == "too-large"
    assert fates["user.py"] == fates["ok.py"] == fates["deep.js"] == "kept"
    edges = {(e.source, e.target) for e in found.graph.edges}
    assert ("user.py", "ok.py") in edges
    assert found.ordered.quality.fallbacks == len(found.problems)
    assert set(found.problems.values()) <= {"errors", "timeout", "memory", "crash"}
    kept = [path for path, fate in fates.items() if fate == "kept"]
    assert sorted(p.path for p in found.ordered.placed) == sorted(kept)


def test_a_cycle_of_thousands_of_files_is_one_component():
    count = 5_000
    files = {f"p/m{i}.py": f"from p import m{(i + 1) % count}\n" for i in range(count)} | {"p/__init__.py": ""}
    graph = graph_of_files(files)
    found = order(dict.fromkeys(files, "code"), graph.edges)
    assert found.quality.largest_cycle == count
    assert found.quality.satisfied == pytest.approx(1 - 1 / len({(e.source, e.target) for e in graph.edges}), abs=1e-6)


@pytest.mark.parametrize("end", [".py", ".ts", ".go", ".java", ".cs", ".c", ".rs", ".rb", ".php"])
def test_many_files_in_one_folder_take_time_in_proportion(end):
    """Twice the files may not take four times as long to resolve."""
    sources = {
        ".py": "import m{j}\nclass C{i}: pass\n", ".ts": "import {{a}} from './m{j}'\nexport const a = {i}\n",
        ".go": "package m\nfunc F{i}() {{ F{j}() }}\n", ".java": "package m;\nclass C{i} {{ C{j} c; }}\n",
        ".cs": "namespace M;\nclass C{i} {{ C{j} c; }}\n", ".c": '#include "m{j}.c"\nint f{i}(void);\n',
        ".rs": '#[path = "m{j}.rs"]\nmod n;\npub fn f{i}() {{}}\n', ".rb": "require_relative 'm{j}'\nclass C{i}\n  C{j}\nend\n",
        ".php": "<?php\nnamespace M;\nclass C{i} {{ public C{j} $c; }}\n",
    }  # fmt: skip

    def seconds(count: int) -> float:
        files = {f"m{i}{end}": sources[end].format(i=i, j=(i + 1) % count) for i in range(count)}
        start = time.process_time()
        graph = graph_of_files(files)
        assert len({(e.source, e.target) for e in graph.edges}) >= count - 1
        return time.process_time() - start

    seconds(50)
    best = min(seconds(1_000) for _ in range(2)), min(seconds(4_000) for _ in range(2))
    assert best[1] < 10 * best[0] + 1


RULES = {
    "deep folders of C": lambda: {
        "d/" * 1_900 + "x.c": "".join(f'#include "gone{i}.h"\n' for i in range(2_000)), "a.c": '#include "b.h"\n', "b.h": "",
    },
    "long dotted names of Python": lambda: {
        "x.py": "from ." + "a." * 50_000 + "a import " + ", ".join(f"n{i}" for i in range(10_000)) + "\n",
        "a.py": "import b\n", "b.py": "",
    },
    "many roots of Python": lambda: {
        **{f"p{i}/pyproject.toml": "" for i in range(2_000)},
        "x.py": "".join(f"import gone{i % 500}\n" for i in range(10_000)), "a.py": "import b\n", "b.py": "",
    },
    "deep tables of TOML": lambda: {
        "pyproject.toml": "".join(f"k{i}." + "a." * 9_900 + "b=1\n" for i in range(50)), "a.py": "import b\n", "b.py": "",
    },
    "referenced configs of TypeScript": lambda: {
        "tsconfig.json": json.dumps({"references": [{"path": f"./tsconfig.{i}.json"} for i in range(199)]}),
        **{f"tsconfig.{i}.json": json.dumps({"compilerOptions": {"paths": {"*": [f"q{j}/*" for j in range(30)]}}}) for i in range(199)},
        "x.ts": "".join(f"import 'gone{i}'\n" for i in range(3_000)), "a.ts": "import './b'\n", "b.ts": "",
    },
    "a chain of Java classes": lambda: {
        **{f"C{i}.java": f"class C{i} extends C{i + 1} {{}}\n" for i in range(3_000)},
    },
    "a crowd of Java classes": lambda: {
        **{f"d{i}/T.java": "package p; " + "".join(f"class T{j} {{}} " for j in range(50)) for i in range(500)},
        **{f"u/U{i}.java": f"package p; class U{i} {{ " + "".join(f"T{j} t{j}; " for j in range(50)) + "}" for i in range(500)},
        "a/A.java": "package a; class A { B b; }\n", "a/B.java": "package a; class B {}\n",
    },
    "a long workspace file": lambda: {
        **{f"w{i}/pnpm-workspace.yaml": "packages:\n" + "- a\n" * 200_000 for i in range(5)},
        "a.ts": "import './b'\n", "b.ts": "",
    },
    "programs of Rust with one tree": lambda: {
        "Cargo.toml": '[package]\nname = "x"\n',
        **{f"src/bin/b{i}.rs": '#[path = "../all/mod.rs"]\nmod all;\n' for i in range(800)},
        "src/all/mod.rs": "".join(f"mod m{i};\n" for i in range(800)), **{f"src/all/m{i}.rs": "" for i in range(800)},
    },
}  # fmt: skip


@pytest.mark.parametrize("case", RULES)
def test_hostile_names_and_manifests_take_no_square_time(case):
    files = RULES[case]()
    start = time.process_time()
    edges = {(e.source, e.target) for e in graph_of_files(files).edges}
    assert time.process_time() - start < 25
    good = [(f"a{end}", f"b{end}") for end in (".py", ".ts") if f"a{end}" in files] + [("a.c", "b.h")] * (
        "a.c" in files
    )
    assert edges >= {*good}
    assert edges


def test_one_large_file_many_times_costs_no_edge(tmp_path):
    readme = b"word " * 200_000
    files = [("a.py", b"import b\n"), ("b.py", b""), *((f"d{i}/README.md", readme) for i in range(600))]
    _import_tree(tmp_path, files)
    found = analysed(tmp_path, everything=False)
    assert [(e.source, e.target) for e in found.graph.edges] == [("a.py", "b.py")]
    assert not found.problems


@pytest.mark.slow
def test_a_flat_folder_of_twenty_thousand_files_a_million_lines_and_fifty_megabytes(tmp_path):
    count = 20_000
    files = [(f"m{i}.py", b"import m%d\n" % ((i + 1) % count)) for i in range(count)]
    files += [("huge.py", b"x = 1 # abc\n" * (50 << 20 >> 3)), ("lines.js", b"f();\n" * 1_000_000)]
    _import_tree(tmp_path, files)
    start = time.monotonic()
    found = analysed(tmp_path, everything=False)
    assert time.monotonic() - start < 300
    assert len(found.graph.edges) == count
    assert found.ordered.quality.largest_cycle == count
    assert {f.fate for f in found.files if not f.path.startswith("m")} == {"too-large"}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 << 20
