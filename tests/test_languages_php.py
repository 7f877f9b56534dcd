"""PHP names mean the files that declare them, and includes the files at their paths."""

from __future__ import annotations

import json
import time

import pytest

from repo2ctx.languages import RepoTree
from repo2ctx.languages.php import resolve
from repo2ctx.parsing import scan


def composer(**autoload):
    return json.dumps({"name": "acme/shop", "autoload": autoload})


PSR4 = composer(**{"psr-4": {"Acme\\": "src/"}})


def declared(namespace, name, kind="class"):
    return f"<?php\nnamespace {namespace};\n{kind} {name} {{}}\n"


def targets(edges, source):
    return {target for found, target in edges if found == source}


def test_use_statements_plain_aliased_and_grouped(edges_of):
    edges = edges_of(
        {
            "composer.json": PSR4,
            "src/Cart.php": declared("Acme", "Cart"),
            "src/Price.php": declared("Acme", "Price"),
            "src/Tax/Rate.php": declared("Acme\\Tax", "Rate"),
            "src/Tax/Zone.php": declared("Acme\\Tax", "Zone", "interface"),
            "src/Tax/Kind.php": declared("Acme\\Tax", "Kind", "enum"),
            "src/Unused.php": declared("Acme", "Unused"),
            "bin/run.php": "<?php\nuse Acme\\Cart, \\Acme\\Price as Money;\nuse Acme\\Tax\\{Rate, Zone as Area, Kind,};\n",
        }
    )
    assert targets(edges, "bin/run.php") == {
        "src/Cart.php",
        "src/Price.php",
        "src/Tax/Rate.php",
        "src/Tax/Zone.php",
        "src/Tax/Kind.php",
    }


def test_functions_and_constants_are_imported_by_their_own_kind_of_use(edges_of):
    edges = edges_of(
        {
            "lib/math.php": "<?php\nnamespace Acme;\nfunction total() {}\nfunction mean() {}\n",
            "lib/limits.php": "<?php\nnamespace Acme;\nconst MOST = 3, LEAST = 1;\n",
            "lib/flags.php": "<?php\ndefine('Acme\\\\FLAG', 1);\n",
            "lib/Total.php": declared("Acme", "Total"),
            "a.php": "<?php\nuse function Acme\\total;\n",
            "b.php": "<?php\nuse const Acme\\LEAST;\n",
            "c.php": "<?php\nuse Acme\\{function mean as average, const FLAG};\naverage();\n",
            "d.php": "<?php\necho \\Acme\\MOST, \\Acme\\total();\n",
            "e.php": "<?php\nuse Acme\\Total;\n",
        }
    )
    assert edges == {
        ("a.php", "lib/math.php"),
        ("b.php", "lib/limits.php"),
        ("c.php", "lib/math.php"),
        ("c.php", "lib/flags.php"),
        ("d.php", "lib/limits.php"),
        ("d.php", "lib/math.php"),
        ("e.php", "lib/Total.php"),
    }


def test_constants_of_the_own_namespace_need_no_import(strengths_of):
    files = {
        "limits.php": "<?php\nnamespace Acme;\nconst MOST = 3;\nclass C { const INNER = 1; }\n",
        "flags.php": "<?php\ndefine('FLAG', 1);\n",
        "a.php": "<?php\nnamespace Acme;\nfunction f() { return MOST + most + INNER + FLAG; }\n",
        "b.php": "<?php\necho FLAG, MOST;\n",
    }
    assert strengths_of(files) == {("a.php", "limits.php"): "soft", ("b.php", "flags.php"): "soft"}


@pytest.mark.parametrize(
    "code",
    [
        "class X extends Part {}",
        "class X implements Other, Part {}",
        "interface X extends Part {}",
        "enum X: string implements Part { case A = 'a'; }",
        "class X { use Part; }",
        "trait X { use Other, Part { Part::go insteadof Other; } }",
        "#[Part] class X {}",
        "class X { #[Part(1)] public $a; }",
        "class X { private ?Part $a; }",
        "class X { private Part|null $a = null; }",
        "class X { function f(Part ...$a) {} }",
        "class X { function __construct(private readonly Part $a) {} }",
        "class X { function f(): Part {} }",
        "function f():?Part {}",
        "function f() { try { g(); } catch (Other | Part $e) {} }",
        "function f($a) { return $a instanceof Part; }",
        "function f() { return new Part; }",
        "function f() { return Part::make(); }",
        "function f() { return Part::$all; }",
        "function f() { return Part::MOST; }",
        "function f() { return Part::class; }",
        "function f($a) { switch ($a) { case Part::ONE: return 1; } }",
        "function f($a) { return $a?Part::one():2; }",
        "function f() { return array_map(Part::make(...), []); }",
        "class X { const A = Part::ONE; }",
        "$f = fn (Part $a) => $a;",
        "$f = static function () use ($a): Part {};",
        "$x = new class extends Part {};",
        "function f() { return new class(1) extends Other implements Part { }; }",
        "function f() { return namespace\\Part::ONE; }",
        "function f() { return PART::one(); }",
        "?><p>it's</p><?php new Part ?><b><?= 1 ?>",
    ],
)
def test_names_of_the_same_namespace_need_no_import(edges_of, code):
    files = {"a/Part.php": declared("Acme", "Part"), "b/x.php": f"<?php\nnamespace Acme;\n{code}\n"}
    assert edges_of(files) == {("b/x.php", "a/Part.php")}


@pytest.mark.parametrize(
    "code",
    [
        "// new Part\n# Part::make()\n/* new Part */\n/** @param Part $a */",
        "$a = 'new Part'; $b = \"new Part {$a}\"; $c = `Part::x`;",
        "$a = <<<TEXT\n  new Part; it's\n  TEXT;\n$b = <<<'RAW'\nPart::x()\nRAW;\n",
        "?> new Part; Part::make() <?php",
        "$a->Part; $a->Part(); $a?->Part(); Other::Part(); Other::Part; Other::$Part; $Part = 1;",
        "class X { function Part() {} const Part = 1; public $Part; }",
        "enum X: int { case Part = 1; case Other = 2; }\nenum Y { case Part; }",
        "f(Part: 1); $a = ['Part' => 1];",
        "use Vendor\\Part; new Part; Part::x();",
        "new \\Part; new \\Vendor\\Part; new Vendor\\Part;",
        "part: goto part;",
        "new Partial; Parts::x(); MyPart::x();",
    ],
)
def test_what_only_looks_like_the_name(edges_of, code):
    files = {"a/Part.php": declared("Acme", "Part"), "b/x.php": f"<?php\nnamespace Acme;\n{code}\n"}
    assert edges_of(files) == set()


def test_full_names_and_names_after_an_alias(edges_of):
    edges = edges_of(
        {
            "src/Tax/Rate.php": declared("Acme\\Tax", "Rate"),
            "src/Tax/Zone.php": declared("Acme\\Tax", "Zone"),
            "src/Tax.php": declared("Acme", "Tax"),
            "a.php": "<?php\nnamespace Other;\nnew \\Acme\\Tax\\Rate;\n",
            "b.php": "<?php\nnamespace Other;\nuse Acme\\Tax as T;\nT\\Zone::all();\n",
            "c.php": "<?php\nnamespace Acme;\nfunction f(Tax\\Rate $r) {}\n",
            "d.php": "<?php\nnamespace Other;\nnew Acme\\Tax\\Rate;\n",
        }
    )
    # b.php names the namespace Acme\Tax; that a class has the same name is chance.
    assert edges == {("a.php", "src/Tax/Rate.php"), ("b.php", "src/Tax/Zone.php"), ("c.php", "src/Tax/Rate.php")}


def test_one_file_may_have_several_namespaces_each_with_its_imports(edges_of):
    edges = edges_of(
        {
            "a/One.php": declared("A", "Thing"),
            "b/Two.php": declared("B", "Thing"),
            "c/Three.php": declared("C", "Thing"),
            "glob.php": "<?php class Thing {}\n",
            "both.php": "<?php\nnamespace X { use A\\Thing; new Thing; }\nnamespace B { new Thing; }\n",
            "root.php": "<?php\nnamespace C { new Thing; }\nnamespace { new Thing; }\n",
        }
    )
    assert edges == {
        ("both.php", "a/One.php"),
        ("both.php", "b/Two.php"),
        ("root.php", "c/Three.php"),
        ("root.php", "glob.php"),
    }


def test_functions_fall_back_to_the_global_namespace(edges_of):
    edges = edges_of(
        {
            "composer.json": composer(files=["lib/helpers.php"]),
            "lib/helpers.php": "<?php\nif (! function_exists('slug')) {\n    function slug() {}\n}\nfunction clock() {}\n",
            "lib/fakes.php": "<?php\nnamespace Acme;\nfunction clock() {}\n",
            "src/a.php": "<?php\nnamespace Acme;\nclass A { function f() { return slug(clock()); } }\n",
            "src/b.php": "<?php\nnamespace Other;\nclass B { function clock() { return $this->slug(); } }\nclock();\n",
        }
    )
    assert edges == {
        ("src/a.php", "lib/helpers.php"),
        ("src/a.php", "lib/fakes.php"),
        ("src/b.php", "lib/helpers.php"),
    }


def test_functions_that_several_scripts_declare_are_not_guessed(edges_of):
    script = "<?php\nfunction run() {}\nrun();\n"
    files = {"a/x.php": script, "b/x.php": script, "c/y.php": "<?php run();\n", "b/z.php": "<?php run();\n"}
    assert edges_of(files) == {("b/z.php", "b/x.php")}


def test_stand_ins_for_what_php_has_are_not_needed(edges_of):
    files = {
        "compat.php": "<?php\nfunction str_contains() {}\nfunction mb_strlen() {}\ninterface Stringable {}\nfunction own() {}\n",
        "a.php": "<?php\nclass A implements Stringable { function f() { return str_contains(mb_strlen(1), 2); } }\n",
        "b.php": "<?php\nown();\n",
    }
    assert edges_of(files) == {("b.php", "compat.php")}


def test_hard_is_what_loading_the_file_needs(strengths_of):
    names = [
        *("Base", "Contract", "Mixin", "Mark", "Top", "Made", "Typed", "Caught", "Named", "Late", "Closed", "Doc"),
        *("InClosure", "Anonymous", "LateMark"),
    ]
    code = (
        "<?php\nnamespace Acme;\nuse Acme\\Doc;\n"
        "#[Mark]\nclass X extends Base implements Contract {\n    use Mixin;\n    private Typed $t;\n"
        "    #[LateMark] function f() { Late::x(); try { g(); } catch (Caught $e) {} }\n}\n"
        "Top::boot(); $x = new Made(1); $y = Named::class;\n"
        "on(function () { if (1) { new Closed; } }, 2); function h() { InClosure::x(); }\n"
        "return new class extends Anonymous {};\n"
    )
    files = {f"src/{name}.php": declared("Acme", name) for name in names}
    strengths = strengths_of({**files, "x.php": code})
    hard = {"Base", "Contract", "Mixin", "Mark", "LateMark", "Top", "Made", "Anonymous"}
    assert strengths == {("x.php", f"src/{name}.php"): "hard" if name in hard else "soft" for name in names}


def test_includes_with_literal_paths(edges_of):
    files = {
        "app/boot.php": (
            "<?php\nrequire __DIR__ . '/a.php';\nrequire_once(dirname(__FILE__) . '/b.php');\n"
            "include 'c.php';\nreturn [include __DIR__.'/../lib/d.php', require \"./e.php\"];\n"
        ),
        "app/deep/x.php": (
            "<?php\nrequire dirname(__DIR__, 2) . '/lib/d.php';\n"
            "require_once dirname(dirname(__FILE__)) . DIRECTORY_SEPARATOR . 'a.php';\ninclude_once ('lib/f.inc');\n"
        ),
        "app/no.php": "<?php\n// require 'a.php';\n$s = \"include 'b.php'\";\n$x->include('a.php');\ninclude $dir . '/a.php';\ninclude \"$dir/b.php\";\ninclude __DIR__ . $a . '/c.php';\n",
        "app/a.php": "", "app/b.php": "", "app/c.php": "", "app/e.php": "", "lib/d.php": "", "lib/f.inc": "",
    }  # fmt: skip
    assert edges_of(files) == {
        ("app/boot.php", "app/a.php"),
        ("app/boot.php", "app/b.php"),
        ("app/boot.php", "app/c.php"),
        ("app/boot.php", "lib/d.php"),
        ("app/boot.php", "app/e.php"),
        ("app/deep/x.php", "lib/d.php"),
        ("app/deep/x.php", "app/a.php"),
        ("app/deep/x.php", "lib/f.inc"),
    }


def test_includes_in_functions_and_closures_are_soft(strengths_of):
    files = {
        "a.php": "<?php\nrequire 'b.php';\nfunction f() { require 'c.php'; }\ngo(function () { require 'd.php'; });\n",
        "b.php": "", "c.php": "", "d.php": "",
    }  # fmt: skip
    assert strengths_of(files) == {("a.php", "b.php"): "hard", ("a.php", "c.php"): "soft", ("a.php", "d.php"): "soft"}


def test_class_aliases_declare_their_new_name(edges_of):
    files = {
        "src/Fresh.php": "<?php\nnamespace Acme;\nclass Fresh {}\nclass_alias(Fresh::class, 'Acme\\Old');\n",
        "src/More.php": "<?php\nnamespace Acme;\nclass_alias('Acme\\\\Fresh', Older::class);\n",
        "a.php": "<?php new \\Acme\\Old;\n",
        "b.php": "<?php new \\Acme\\Older;\n",
    }
    assert {e for e in edges_of(files) if e[0] in ("a.php", "b.php")} == {
        ("a.php", "src/Fresh.php"),
        ("b.php", "src/More.php"),
    }


def test_autoload_paths_serve_where_nothing_declares_the_class(edges_of):
    files = {
        "composer.json": composer(
            **{"psr-4": {"Acme\\": ["none/", "src/"]}, "psr-0": {"Old_": "legacy", "Ns\\Old": "l2/"}}
        ),
        "src/Made/Up.php": "<?php\neval($code);\n",
        "legacy/Old/Cart_Item.php": "",
        "legacy/Old/Cart/Item.php": "<?php return;\n",
        "l2/Ns/Old/A/B.php": "<?php return;\n",
        "a.php": "<?php\nnew Acme\\Made\\Up;\nnew Old_Cart_Item;\nnew Ns\\Old\\A_B;\n",
    }
    assert edges_of(files) == {
        ("a.php", "src/Made/Up.php"),
        ("a.php", "legacy/Old/Cart/Item.php"),
        ("a.php", "l2/Ns/Old/A/B.php"),
    }


def test_packages_of_a_monorepo_and_development_autoload(edges_of):
    files = {
        "composer.json": json.dumps({"repositories": [{"type": "path", "url": "packages/*"}]}),
        "packages/core/composer.json": composer(**{"psr-4": {"Core\\": ""}}),
        "packages/core/Run.php": "<?php return 1;\n",
        "packages/web/composer.json": json.dumps({"autoload-dev": {"psr-4": {"Web\\Tests\\": "tests"}}}),
        "packages/web/tests/Base.php": "<?php return 1;\n",
        "packages/web/tests/ATest.php": "<?php\nnamespace Web\\Tests;\nuse Core\\Run;\nclass ATest extends Base { }\n",
    }
    assert edges_of(files) == {
        ("packages/web/tests/ATest.php", "packages/core/Run.php"),
        ("packages/web/tests/ATest.php", "packages/web/tests/Base.php"),
    }


def test_of_several_declarations_the_own_the_nearest_or_the_autoloaded_one_is_meant(edges_of):
    files = {
        "composer.json": PSR4,
        "src/User.php": declared("Acme", "User"),
        "src/Shop.php": "<?php\nnamespace Acme;\nclass Shop { function f(User $u) {} }\n",
        "tests/fixtures/one/User.php": declared("Acme", "User"),
        "tests/fixtures/one/Shop.php": "<?php\nnamespace Acme;\nnew User;\n",
        "tests/fixtures/two/all.php": "<?php\nnamespace Acme;\nclass User {}\nnew User;\n",
        "tests/ShopTest.php": "<?php\nuse Acme\\User;\nnew User;\n",
        "packages/p/composer.json": PSR4,
        "packages/p/src/User.php": declared("Acme", "User"),
        "packages/p/bin/run.php": "<?php\nnew \\Acme\\User;\n",
    }
    assert edges_of(files) == {
        ("src/Shop.php", "src/User.php"),
        ("tests/fixtures/one/Shop.php", "tests/fixtures/one/User.php"),
        ("tests/ShopTest.php", "src/User.php"),
        ("tests/ShopTest.php", "src/Shop.php"),
        ("packages/p/bin/run.php", "packages/p/src/User.php"),
    }


def test_only_tests_see_what_tests_declare(edges_of):
    files = {
        "src/Store.php": "<?php\nnamespace Acme;\nclass Store { function f(\\Redis $r) { return new \\Redis; } }\n",
        "tests/stubs.php": "<?php\nclass Redis {}\n",
        "tests/StoreTest.php": "<?php\nnew Redis;\n",
    }
    assert edges_of(files) == {("tests/StoreTest.php", "tests/stubs.php"), ("tests/StoreTest.php", "src/Store.php")}


def test_what_should_be_in_a_mapped_folder_and_is_not_is_unresolved(unresolved_of):
    files = {
        "composer.json": PSR4,
        "src/Cart.php": (
            "<?php\nnamespace Acme;\nuse Acme\\Lost;\nuse Acme\\Http\\Client;\nuse Vendor\\Thing;\nuse Acme\\Tax;\n"
            "class Cart extends Missing { function f() { Tax\\Gone::x(); new \\DateTime; strlen(PHP_EOL); new Thing; } }\n"
            "require __DIR__ . '/gone.php';\nrequire __DIR__ . '/../vendor/autoload.php';\ninclude 'elsewhere.php';\n"
        ),
        "src/Tax/Rate.php": declared("Acme\\Tax", "Rate"),
    }
    # Acme\Http is another package's: the folder that it would be in is not here.
    assert unresolved_of(files) == {
        ("src/Cart.php", name) for name in ("Acme\\Lost", "Acme\\Missing", "Acme\\Tax\\Gone", "__DIR__/gone.php")
    }


@pytest.mark.parametrize(
    "config",
    [
        "", "[", "[" * 100_000, "null", '{"autoload": 3}', '{"autoload": {"psr-4": [1], "files": {"a": null}}}',
        '{"autoload": {"psr-4": {"Acme\\\\": [null, 3, "../../..", "/etc", {}]}, "psr-0": "x", "classmap": [[]]}}',
        '{"autoload-dev": {"psr-4": {"": "", "\\\\": "\\u0000"}}, "autoload": []}', "1" * 5000,
    ],
)  # fmt: skip
def test_broken_composer_files_do_no_harm(edges_of, config):
    files = {"composer.json": config, "a.php": "<?php new \\Acme\\B; new C;\n", "b.php": declared("Acme", "B")}
    assert edges_of(files) == {("a.php", "b.php")}


@pytest.mark.parametrize(
    "source",
    [
        b"", b"no code", b"<?php", b"<?php class", b"<?php use", b"<?php use A\\{", b"<?php namespace", b"\xff\xfe<?php new \xff;",
        b"<?php new A\\\\\\B; \\; new \\;", b"<?php '", b"<?php <<<X\n", b"<?php include", b"<?php include '", b"<?php define(",
        b"<?php function (", b"<?php #[", b"<?php " + b"(" * 3000, b"<?php class A { function f() { " * 300, bytes(range(256)),
        b"<?php include dirname(dirname(", b"<?php class \x00 extends \x00 {}", b"<?php use A as, B;", b"<?php }}}} } new A;",
    ],
)  # fmt: skip
def test_odd_input_is_survived(source):
    syntax = {"a.php": scan("PHP", "a.php", source), "b.php": scan("PHP", "b.php", b"<?php class A {}")}
    list(resolve(RepoTree(syntax), syntax))


def test_errors_do_not_hide_the_rest(edges_of):
    files = {
        "Part.php": declared("Acme", "Part"),
        "x.php": "<?php\nnamespace Acme;\nclass X { function f() { $a = = 3 ]; } }\nclass Y { function g() { Part::x(); } }\n",
    }
    assert edges_of(files) == {("x.php", "Part.php")}


def test_lines_of_what_is_missed():
    files = {
        "src/A.php": b"<html>\n<?php\nnamespace Acme;\n\nuse Acme\\Lost;\n\nclass A {\n    function f() {\n        new Gone(1);\n    }\n}\nrequire __DIR__ . '/no.php';\n"
    }
    syntax = {path: scan("PHP", path, source) for path, source in files.items()}
    found = resolve(RepoTree(["src/A.php", "composer.json"], {"composer.json": PSR4}), syntax)
    assert {(item.name, item.line) for item in found} == {("Acme\\Lost", 5), ("Acme\\Gone", 9), ("__DIR__/no.php", 12)}


def test_names_that_very_many_files_declare_cost_no_more():
    one = scan("PHP", "a.php", b"<?php class A {} function f() {}")
    other = scan("PHP", "b.php", b"<?php new A; f();")
    syntax = {f"d{i % 40}/a{i}.php": one for i in range(4000)} | {f"d{i % 40}/b{i}.php": other for i in range(4000)}
    start = time.process_time()
    edges = list(resolve(RepoTree(syntax), syntax))
    assert time.process_time() - start < 8
    assert all(edge.source.split("/")[0] == edge.target.split("/")[0] for edge in edges)
