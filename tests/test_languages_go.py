"""Go files need the files that declare what they use."""

from __future__ import annotations

import pickle

import pytest
import tree_sitter
from conftest import outputs_by_hash_seed

from repo2ctx.languages import RepoTree, go
from repo2ctx.languages._go_builds import satisfiable
from repo2ctx.parsing import scan

MOD = {"go.mod": "module example.com/farm\n\ngo 1.22\n"}


def test_own_package_by_top_level_name(edges_of):
    files = {
        "a.go": "package farm\n\nfunc Run() Barn { return Barn{limit, feed()} }\n",
        "barn.go": "package farm\n\ntype Barn struct{ n, m int }\n",
        "limit.go": "package farm\n\nconst (\n\tlow = iota\n\tlimit\n)\n",
        "feed.go": "package farm\n\nvar unused, spare = 1, 2\n\nfunc feed() int { return 1 }\n",
        "other.go": "package farm\n\nfunc alone() {}\n",
    }
    assert edges_of(files) == {("a.go", "barn.go"), ("a.go", "limit.go"), ("a.go", "feed.go")}


def test_imported_package_needs_only_the_files_that_declare_the_names(edges_of):
    files = MOD | {
        "main.go": 'package main\n\nimport (\n\t"fmt"\n\t"example.com/farm/crop"\n)\n\nfunc main() { fmt.Println(crop.Oat) }\n',
        "crop/oat.go": "package crop\n\nconst Oat = 1\n",
        "crop/rye.go": "package crop\n\nconst Rye = 2\n",
        "fmt/fmt.go": "package fmt\n\nfunc Println() {}\n",
    }
    assert edges_of(files) == {("main.go", "crop/oat.go")}


def test_aliases_and_packages_named_unlike_their_folder(edges_of):
    files = MOD | {
        "main.go": (
            'package main\n\nimport g "example.com/farm/crop"\nimport "example.com/farm/go-tool/v2"\n\n'
            "var x = g.Oat\nvar y = tool.Saw\nvar z = crop.Rye\n"
        ),
        "crop/oat.go": "package crop\n\nconst Oat = 1\n",
        "crop/rye.go": "package crop\n\nconst Rye = 2\n",
        "go-tool/v2/saw.go": "package tool\n\nvar Saw int\n",
    }
    assert edges_of(files) == {("main.go", "crop/oat.go"), ("main.go", "go-tool/v2/saw.go")}


def test_dot_and_blank_imports(edges_of):
    files = MOD | {
        "main.go": 'package main\n\nimport . "example.com/farm/crop"\nimport _ "example.com/farm/side"\n\nvar x = Oat\n',
        "crop/oat.go": "package crop\n\nconst Oat = 1\n",
        "crop/rye.go": "package crop\n\nconst Rye = 2\n",
        "side/one.go": "package side\n",
        "side/two.go": "package side\n",
        "side/two_test.go": "package side\n",
    }
    assert edges_of(files) == {
        ("main.go", "crop/oat.go"),
        ("main.go", "side/one.go"),
        ("main.go", "side/two.go"),
        ("side/two_test.go", "side/two.go"),
    }


def test_local_names_hide_those_of_the_package(edges_of):
    files = {
        "a.go": (
            "package farm\n\n"
            "func a(path string, n, size int) (total int) {\n\tlimit, feed := 1, 2\n\tvar spare int\n\tconst top = 1\n"
            "\treturn limit + feed + spare + total + size + top + len(path)\n}\n\n"
            "func b() { f := func(depth int) int { return depth }\n\tfor i, item := range list() { f(i + item) } }\n"
        ),
        "b.go": (
            "package farm\n\nvar path, limit, feed, spare, total, size, depth, item, top int\n\n"
            "func list() []int { return nil }\n"
        ),
        "c.go": "package farm\n\nvar i, n int\n",
    }
    assert edges_of(files) == {("a.go", "b.go")}
    files["a.go"] = files["a.go"].replace("range list()", "range path")
    assert edges_of(files) == {("a.go", "b.go")}  # `path` is free in b
    files["a.go"] = files["a.go"].replace("range path", "range []int{}")
    assert edges_of(files) == set()


def test_a_parameter_does_not_hide_the_type_it_is_named_after(edges_of):
    files = {
        "a.go": "package farm\n\nfunc a(barn *barn, h horse) { barn.open(); h.run() }\n",
        "b.go": "package farm\n\ntype barn struct{}\n\ntype horse int\n",
    }
    assert edges_of(files) == {("a.go", "b.go")}


def test_names_that_are_no_uses(edges_of):
    """Comments, strings, tags, field names, interface methods, method names and keys that are fields."""
    files = {
        "a.go": (
            "package farm\n\n// oat is not used\n/* nor\n oat */\n\n"
            'type t struct {\n\toat int `oat:"oat"`\n}\n\n'
            "type u interface {\n\toat(x int) error\n}\n\n"
            'func (x t) oat() string { return "oat \\" oat" + `oat` + string(\'o\') }\n\n'
            "var table = []struct{ oat string }{{oat: `x`}}\n"
        ),
        "b.go": "package farm\n\nfunc oat() {}\n",
    }
    assert edges_of(files) == set()


def test_field_types_embedded_types_and_generics(edges_of):
    files = {
        "a.go": (
            "package farm\n\ntype t[K key, T any] struct {\n\t*barn\n\tHorse Horse\n\tlist map[string][]cow\n\tT T\n}\n\n"
            "func each[T any, P pig](x T, y P) {}\n"
        ),
        "barn.go": "package farm\n\ntype barn struct{}\n",
        "horse.go": "package farm\n\ntype Horse int\n",
        "cow.go": "package farm\n\ntype cow = int\n",
        "key.go": "package farm\n\ntype key interface{ ~int }\n",
        "pig.go": "package farm\n\ntype pig interface{ grunt() }\n",
        "t.go": "package farm\n\ntype T int\n\ntype P int\n",
    }
    assert edges_of(files) == {("a.go", f"{name}.go") for name in ("barn", "horse", "cow", "key", "pig")}


def test_map_keys_and_cases_are_uses(edges_of):
    files = {
        "a.go": "package farm\n\nfunc a(k int) int {\n\tswitch k {\n\tcase low, Oat:\n\t\treturn 1\n\t}\n\treturn m[k]\n}\n",
        "b.go": "package farm\n\nvar m = map[int]int{Rye: 1}\n",
        "oat.go": "package farm\n\nconst Oat = 1\n",
        "rye.go": "package farm\n\nconst Rye = 1\n",
        "low.go": "package farm\n\nconst low = 1\n",
    }
    assert edges_of(files) == {("a.go", "b.go"), ("a.go", "oat.go"), ("a.go", "low.go"), ("b.go", "rye.go")}


def test_a_method_or_field_that_one_file_has(edges_of):
    files = {
        "a.go": "package farm\n\nfunc a() { open().Milk(); open().Close(); open().\n\t\tFeed(); open().Twice() }\n",
        "open.go": "package farm\n\nfunc open() *int { return nil }\n",
        "cow.go": "package farm\n\nfunc (c *cow) Milk() {}\nfunc (c *cow) Twice() {}\n",
        "pig.go": "package farm\n\ntype pig struct {\n\tFeed func()\n}\n",
        "std.go": "package farm\n\nfunc (c *cow) Close() {}\n",
        "two.go": "package farm\n\ntype two interface {\n\tTwice()\n}\n",
        "x_test.go": "package farm\n\nfunc (x x) Milky() {}\n",
    }
    assert {target for source, target in edges_of(files) if source == "a.go"} == {"open.go", "cow.go", "pig.go"}


def test_names_of_external_packages_are_not_selectors(edges_of):
    files = {
        "a.go": 'package farm\n\nimport "net/http"\n\nvar e = http.Milk\n',
        "b.go": "package farm\n\nfunc (c *cow) Milk() {}\n\nfunc http() {}\n",
    }
    assert edges_of(files | {"b.go": "package farm\n\nfunc (c *cow) Milk() {}\n"}) == set()


def test_a_variable_may_take_the_name_of_an_import(edges_of):
    files = MOD | {
        "a.go": 'package farm\n\nimport "example.com/farm/crop"\n\nfunc a() int { crop := crop.New(); return crop.n }\n',
        "crop/crop.go": "package crop\n\nfunc New() T { return T{} }\n\ntype T struct{ n int }\n",
    }
    assert edges_of(files) == {("a.go", "crop/crop.go")}


def test_tests_see_their_package_and_are_seen_by_tests_of_the_folder_only(edges_of):
    files = MOD | {
        "crop/oat.go": "package crop\n\nfunc Oat() { helper() }\n",
        "crop/oat_test.go": "package crop\n\nfunc helper() { hidden() }\n\nvar Exported = 1\n",
        "crop/hidden.go": "package crop\n\nfunc hidden() {}\n",
        "crop/out_test.go": 'package crop_test\n\nimport "example.com/farm/crop"\n\nvar x = crop.Exported\n\nvar y = hidden\n',
        "main.go": 'package main\n\nimport "example.com/farm/crop"\n\nvar x = crop.Exported\n',
    }
    assert edges_of(files) == {
        ("crop/oat_test.go", "crop/hidden.go"),
        ("crop/out_test.go", "crop/oat_test.go"),
        ("crop/oat_test.go", "crop/oat.go"),
    }


def test_build_constraints_that_exclude_each_other(edges_of):
    body = "package farm\n\nfunc page() {}\n"
    files = {
        "use.go": "package farm\n\nfunc a() { page() }\n",
        "use_linux.go": "package farm\n\nfunc b() { page() }\n",
        "use_windows_amd64.go": "package farm\n\nfunc c() { page() }\n",
        "slow.go": "//go:build slow && !(linux || windows)\n\npackage farm\n\nfunc d() { page() }\n",
        "page_linux.go": body,
        "page_windows.go": body,
        "page_other.go": "// +build !linux,!windows\n\n" + body,
    }
    targets = {}
    for source, target in edges_of(files):
        targets.setdefault(source, set()).add(target)
    assert targets == {
        "use.go": {"page_linux.go", "page_windows.go", "page_other.go"},
        "use_linux.go": {"page_linux.go"},
        "use_windows_amd64.go": {"page_windows.go"},
        "slow.go": {"page_other.go"},
    }


@pytest.mark.parametrize(
    ("rules", "possible"),
    [
        (("linux", "windows"), False),
        (("linux", "amd64"), True),
        (("arm64", "amd64"), False),
        (("unix", "windows"), False),
        (("unix", "darwin"), True),
        (("android", "linux"), True),
        (("!cgo", "cgo && linux"), False),
        (("a || b && !c", "c && !a"), False),
        (("(a", "!a"), True),
        (("a && b && c && d && e", "f && g && h && i && !a"), True),
    ],
)
def test_which_constraints_can_hold_together(rules, possible):
    assert satisfiable(rules) is possible


def test_modules_workspaces_and_replacements(edges_of):
    main = (
        'package main\n\nimport (\n\t"example.com/m/own"\n\t"example.com/lib/sub"\n'
        '\t"example.com/fork"\n\t"example.com/away"\n)\n\n'
    )
    files = {
        "go.work": 'go 1.22\n\nuse (\n\t./app\n\t./lib\n)\n\nreplace "example.com/fork" v1.0.0 => ./third/fork // local\n',
        "app/go.mod": (
            "module example.com/m // comment\n\n"
            "replace (\n\texample.com/fork => ../wrong\n\texample.com/away => ../../away\n)\n"
        ),
        "app/main.go": main + "var x = own.A + sub.B + fork.C + away.D\n",
        "app/own/own.go": "package own\n\nvar A int\n",
        "lib/go.mod": "module example.com/lib\n",
        "lib/sub/sub.go": "package sub\n\nvar B int\n",
        "third/fork/fork.go": "package fork\n\nvar C int\n",
        "wrong/fork.go": "package fork\n\nvar C int\n",
        "away/away.go": "package away\n\nvar D int\n",
    }
    assert edges_of(files) == {
        ("app/main.go", "app/own/own.go"),
        ("app/main.go", "lib/sub/sub.go"),
        ("app/main.go", "third/fork/fork.go"),
    }


def test_a_nested_module_is_not_part_of_the_outer_one(edges_of, unresolved_of):
    files = MOD | {
        "a.go": 'package farm\n\nimport "example.com/farm/tools/saw"\n\nvar x = saw.X\n',
        "tools/go.mod": "module example.com/elsewhere\n",
        "tools/saw/saw.go": "package saw\n\nvar X int\n",
    }
    assert edges_of(files) == set()


def test_vendored_packages(edges_of):
    files = MOD | {
        "sub/a.go": 'package sub\n\nimport "example.org/x/y"\n\nvar v = y.Z\n',
        "vendor/example.org/x/y/y.go": 'package y\n\nimport "example.org/z"\n\nvar Z = z.Z\n',
        "vendor/example.org/z/z.go": "package z\n\nvar Z int\n",
    }
    assert edges_of(files) == {
        ("sub/a.go", "vendor/example.org/x/y/y.go"),
        ("vendor/example.org/x/y/y.go", "vendor/example.org/z/z.go"),
    }


def test_without_go_mod_the_home_is_the_path_that_imports_share(edges_of):
    files = {
        "main.go": 'package main\n\nimport "github.com/owner/farm/crop"\nimport "github.com/other/crop"\n\nvar x = crop.Oat\n',
        "cmd/x/x.go": 'package main\n\nimport "github.com/owner/farm/barn"\n\nvar x = barn.B\n',
        "crop/oat.go": "package crop\n\nconst Oat = 1\n",
        "barn/b.go": "package barn\n\nconst B = 1\n",
    }
    assert edges_of(files) == {("main.go", "crop/oat.go"), ("cmd/x/x.go", "barn/b.go")}


def test_gopath_layout_and_relative_imports(edges_of):
    files = {
        "src/tool/main.go": 'package main\n\nimport "lib/crop"\nimport "./near"\n\nvar x = crop.Oat + near.N\n',
        "src/lib/crop/oat.go": "package crop\n\nconst Oat = 1\n",
        "src/tool/near/n.go": "package near\n\nconst N = 1\n",
    }
    assert edges_of(files) == {("src/tool/main.go", "src/lib/crop/oat.go"), ("src/tool/main.go", "src/tool/near/n.go")}


def test_what_looks_internal_and_leads_nowhere_is_unresolved(unresolved_of):
    files = MOD | {
        "a.go": (
            'package farm\n\nimport (\n\t"os"\n\t"example.com/farm/gone"\n'
            '\t"example.com/farmer/x"\n\t"example.com/farm/crop"\n)\n\n'
            "var x = gone.X + crop.Generated\n"
        ),
        "crop/oat.go": "package crop\n",
    }
    assert unresolved_of(files) == {("a.go", "example.com/farm/gone"), ("a.go", "example.com/farm/crop")}


def test_a_program_beside_a_package_is_not_what_is_imported(edges_of):
    files = MOD | {
        "a.go": 'package farm\n\nimport "example.com/farm/crop"\n\nvar x = crop.Oat\n',
        "crop/gen.go": "//go:build ignore\n\npackage main\n\nconst Oat = 2\n",
        "crop/make.go": "//go:build ignore\n\npackage main\n\nfunc main() {}\n",
        "crop/oat.go": "package crop\n\nconst Oat = 1\n",
    }
    assert edges_of(files) == {("a.go", "crop/oat.go")}


@pytest.mark.parametrize(
    "mod",
    [
        "",
        "module\n",
        "module (\n",
        "replace => => =>\n(((\n)\n",
        "module example.com/farm\nreplace ../.. => ../../..\n",
        "\0",
    ],
)
def test_broken_configuration_does_no_harm(edges_of, mod):
    files = {
        "go.mod": mod,
        "go.work": mod,
        "a.go": 'package farm\n\nimport "/"\nimport "//x"\nimport ""\nimport "example.com/farm/../x"\n\nvar x = limit\n',
        "b.go": "package farm\n\nconst limit = 1\n",
    }
    assert edges_of(files) == {("a.go", "b.go")}


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"package",
        b'package farm\nimport (\n"x\nfunc ( {{{ `',
        b"package farm\n\0func \0 f(\xff\xfe int) { \xff.x() \0 /* \0",
        b"func f() { x := \"unclosed\n y := 'a\n }",
        b"package p\n" + b"func f() {" + b"{" * 5000,
        b"package p\nvar x = " + b"a." * 5000,
        b"package p\nfunc f(" + b"a, " * 3000 + b")",
    ],
)
def test_odd_input_does_not_raise(source):
    found = scan("Go", "a.go", source)
    assert pickle.loads(pickle.dumps(found)) == found
    list(go.resolve(RepoTree(["a.go", "b.go"]), {"a.go": found, "b.go": found}))


def test_a_syntax_error_does_not_hide_the_rest(edges_of):
    files = {
        "a.go": "package farm\n\nfunc a() { if x := ; { feed() }\n\nfunc b() { limit++ }\n",
        "b.go": "package farm\n\nfunc feed() {}\n",
        "c.go": "package farm\n\nvar limit = 1\n",
    }
    assert edges_of(files) == {("a.go", "b.go"), ("a.go", "c.go")}


def test_the_order_of_sets_does_not_show():
    program = (
        "from repo2ctx.parsing import scan\nfrom repo2ctx.languages import RepoTree, go\n"
        "s = scan('Go', 'a.go', b'package p; func f(a int) { a.x(); g(); h.i(j, k.l) }')\n"
        "print(s, list(go.resolve(RepoTree(['a.go']), {'a.go': s})))\n"
    )
    assert len(outputs_by_hash_seed(program)) == 1


def test_scan_takes_a_tree():
    parser = tree_sitter.Parser(tree_sitter.Language(go.GRAMMARS["Go"]()))
    found = go.scan(parser.parse(b"package p\n\nfunc (t T) M() {}\n\nvar A, b = 1, 2\n").root_node, "p.go")
    assert (found.package, found.defines) == ("p", (".M", "A", "b"))


def test_types_in_a_list_of_parameters_are_uses(edges_of):
    files = {
        "a.go": "package farm\n\nfunc a(x barn, y, z cow, w ...pig) (u *hen, err error) { return x, y }\n",
        "b.go": "package farm\n\nvar x, y, z, w, u, err int\n",
        **{f"{name}.go": f"package farm\n\ntype {name} int\n" for name in ("barn", "cow", "pig", "hen")},
    }
    assert edges_of(files) == {("a.go", f"{name}.go") for name in ("barn", "cow", "pig", "hen")}
