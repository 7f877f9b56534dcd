"""Files that a program or a package's user starts with, and what files export: both count in the rank."""

import pytest
from conftest import graph_of_files

from repo2ctx.inspection import order_of
from repo2ctx.order import order

MAIN = "its main function"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "pyproject.toml": '[project.scripts]\nshop = "shop.till:run"\n[project.entry-points.x]\ny = "shop.plug"\n',
                "src/shop/__init__.py": "",
                "src/shop/till.py": "",
                "src/shop/plug.py": "",
                "src/shop/other.py": "",
            },
            {"src/shop/till.py": "pyproject.toml", "src/shop/plug.py": "pyproject.toml"},
        ),
        (
            {
                "setup.cfg": "[options.entry_points]\nconsole_scripts =\n    a = pkg.a:main\n    b = gone.b:main\n",
                "pkg/__init__.py": "",
                "pkg/a.py": "",
            },
            {"pkg/a.py": "setup.cfg"},
        ),
        (
            {
                "package.json": '{"name": "x", "exports": {".": "./dist/index.js"}, "bin": {"x": "./bin/x.js"}}',
                "src/index.ts": "export const a = 1\n",
                "src/other.ts": "",
                "bin/x.js": "",
            },
            {"src/index.ts": "package.json", "bin/x.js": "package.json"},
        ),
        ({"package.json": '{"main": "lib/m.js"}', "lib/m.js": "", "index.js": ""}, {"lib/m.js": "package.json"}),
        ({"package.json": '{"private": true}', "index.js": "1\n"}, {}),
        (
            {"cmd/a/run.go": "package main\nfunc main() {}\n", "b/b.go": "package b\nfunc main() {}\n"},
            {"cmd/a/run.go": MAIN},
        ),
        (
            {
                "Cargo.toml": '[package]\nname = "x"\n[[bin]]\nname = "tool"\npath = "tool/start.rs"\n',
                "src/lib.rs": "mod a;",
                "src/a.rs": "",
                "tool/start.rs": "fn main() {}",
                "src/bin/two.rs": "fn main() {}",
                "tests/t.rs": "",
            },
            dict.fromkeys(["src/lib.rs", "tool/start.rs", "src/bin/two.rs"], "Cargo.toml"),
        ),
        ({"A.java": "class A { public static void main(String[] a) {} }\n", "B.java": "class B {}\n"}, {"A.java": MAIN}),
        ({"A.cs": "class A { static async Task Main() {} }\n", "B.cs": 'class B { string s = "static int Main()"; }\n'},
         {"A.cs": MAIN}),
        ({"a.c": "int\nx;\nint main(void) { return 0; }\n", "b.c": "/*\nint main(void)\n*/\nint mainly;\n"}, {"a.c": MAIN}),
        (
            {"shop.gemspec": "", "lib/shop.rb": "", "lib/till.rb": "", "exe/run.rb": ""},
            {"lib/shop.rb": "the gemspec", "exe/run.rb": "the gemspec"},
        ),
        ({"composer.json": '{"bin": ["bin/go.php", "gone"]}', "bin/go.php": "", "a.php": ""}, {"bin/go.php": "composer.json"}),
    ],
)  # fmt: skip
def test_manifests_and_main_functions_name_entry_points(files, expected):
    assert graph_of_files(files).entry_points == expected


@pytest.mark.parametrize(
    ("path", "source", "count"),
    [
        ("a.py", "def f(): pass\nclass C:\n    def m(self): pass\n@d\ndef g(): pass\ndef _h(): pass\n", 3),
        ("a.ts", "export const a = 1\nexport default function () {}\nconst b = 2, c = 3\nexport { b, c }\n", 4),
        ("a.js", "exports.a = 1\nexports.b = 2\nexports.a = 3\nif (exports.c == 4) {}\n", 2),
        ("a.go", "package a\ntype T struct{ F int }\nfunc (T) M() {}\nfunc F() {}\nfunc g() {}\n", 2),
        ("A.java", "class A { class B {} }\n", 2),
        ("a.rs", "pub fn a() {}\nfn b() {}\npub(crate) fn c() {}\npub struct D;\n", 2),
        ("a.h", "#ifndef A\n#define A\nint f(void);\ntypedef int t;\nstruct s { int a; };\n#endif\n", 3),
        ("a.c", "int f(void);\n", 0),
    ],
)
def test_exports_are_counted(path, source, count):
    assert graph_of_files({path: source}).exports.get(path, 0) == count


def test_entry_points_and_exports_raise_the_rank():
    def ranks(**known):
        return {p.path: p for p in order(dict.fromkeys(["a.py", "b.py", "c.py"], "code"), [], **known).placed}

    plain = ranks()
    assert plain["a.py"].rank == plain["b.py"].rank
    started = ranks(entry_points={"b.py": "setup.cfg"})
    assert started["b.py"].rank == pytest.approx(2 * started["a.py"].rank)
    assert started["b.py"].entry_point == "setup.cfg"
    exporting = ranks(exports={"c.py": 255, "b.py": 1})
    assert exporting["c.py"].rank == pytest.approx(2 * exporting["a.py"].rank)
    assert exporting["a.py"].rank < exporting["b.py"].rank < exporting["c.py"].rank


def test_order_says_what_counted(make_repo):
    repo = make_repo(
        {
            "pyproject.toml": '[project.scripts]\ngo = "tool.start:go"\n',
            "tool/__init__.py": "",
            "tool/start.py": "from tool import part\ndef go(): pass\n",
            "tool/part.py": "def a(): pass\ndef b(): pass\n",
        }
    )
    why = {row.path: row.why for row in order_of(repo, None)}
    assert why["tool/start.py"] == "code, entry point by pyproject.toml, exports 1, needs 1"
    assert why["tool/part.py"] == "code, exports 2, needed by 1"
    assert why["tool/__init__.py"] == "code, entry point by its name"
