"""Java files need the types that they name."""

from __future__ import annotations

import pickle

import pytest
from conftest import outputs_by_hash_seed

from repo2ctx.languages import RepoTree, java
from repo2ctx.parsing import scan


def test_imports_name_types_nested_types_and_static_members(edges_of):
    files = {
        "app/Main.java": (
            "package app;\n\nimport farm.Barn;\nimport farm.Crop.Oat;\nimport static farm.Tools.saw;\n"
            "import static farm.Limits.*;\nimport java.util.List;\n\nclass Main { }\n"
        ),
        "farm/Barn.java": "package farm;\npublic class Barn { }\n",
        "farm/Crop.java": "package farm;\npublic class Crop { public static class Oat { } }\n",
        "farm/Tools.java": "package farm;\npublic final class Tools { public static void saw() { } }\n",
        "farm/Limits.java": "package farm;\npublic interface Limits { int LOW = 1; }\n",
        "farm/Other.java": "package farm;\nclass Other { }\n",
    }
    assert edges_of(files) == {("app/Main.java", f"farm/{name}.java") for name in ("Barn", "Crop", "Tools", "Limits")}


def test_kinds_tell_imports_from_other_uses():
    files = {
        "app/A.java": "package app;\nimport farm.B;\nclass A extends B { C c; farm.D d; }\n",
        "app/C.java": "package app;\nclass C { }\n",
        "farm/B.java": "package farm;\npublic class B { }\n",
        "farm/D.java": "package farm;\npublic class D { }\n",
    }
    syntax = {path: scan("Java", path, source.encode()) for path, source in files.items()}
    found = {(e.target, e.kind, e.strength) for e in java.resolve(RepoTree(files), syntax)}
    assert found == {
        ("farm/B.java", "import", "hard"),
        ("app/C.java", "use", "hard"),
        ("farm/D.java", "use", "hard"),
    }


def test_every_place_where_a_type_of_the_package_can_stand(edges_of):
    names = ["Ann", "Base", "Face", "Oops", "Arg", "Ret", "Bound", "Made", "Stat", "Ref", "Cast", "Inst", "Lit", "Arr",
             "Caught", "Outer", "Perm", "Field", "Elem", "Con"]  # fmt: skip
    files = {f"p/{name}.java": f"package p;\nclass {name} {{ }}\n" for name in names}
    files["p/Main.java"] = (
        "package p;\n\n@Ann(value = Con.X)\n"
        "sealed class Main<T extends Bound> extends Base<Arg> implements java.io.Closeable, Face permits Perm {\n"
        "  Field f = new Made();\n"
        "  Ret m(Elem... all) throws Oops {\n"
        "    Stat.go();\n    run(Ref::go);\n    Object o = (Cast) null;\n    if (o instanceof Inst) { }\n"
        "    use(Lit.class, new Arr[0], new Outer.Inner());\n"
        "    try { } catch (Caught e) { }\n"
        "    return null;\n  }\n}\n"
    )
    assert edges_of(files) == {("p/Main.java", f"p/{name}.java") for name in names}


def test_names_that_are_no_types(edges_of):
    """Comments, Javadoc, strings, text blocks, methods, members and longer names."""
    files = {
        "p/Main.java": (
            "package p;\n\n/** See {@link Barn}. */\nclass Main {\n  // Barn\n"
            '  String s = "Barn", b = """\n    Barn "Barn" \\""" Barn\n    """;\n'
            "  void Barn() { Barn(); this.Barn(); x().Barn\n   .Barn(); BarnDoor d; RedBarn$Barn r; }\n}\n"
        ),
        "p/Barn.java": "package p;\nclass Barn { }\n",
    }
    assert edges_of(files) == set()


def test_own_types_type_parameters_constants_and_fields_hide_types_of_the_package(edges_of):
    files = {
        "p/Main.java": (
            "package p;\n\nclass Main<T> {\n  enum Kind { OAT, RYE { } }\n  class Node { Entry e; }\n  record Entry(int n) { }\n"
            "  static final int LOW = 1;\n  <U> T go(U u, Node n) { return OAT == RYE ? LOW : null; }\n}\n"
        ),
        **{f"p/{n}.java": f"package p;\nclass {n} {{ }}\n" for n in ("T", "U", "OAT", "RYE", "Node", "Entry", "LOW")},
    }
    assert edges_of(files) == set()


def test_single_imports_win_over_the_package_and_that_over_wildcards(edges_of):
    files = {
        "road/Truck.java": (
            "package road;\nimport fleet.*;\nimport parts.Item;\nclass Truck extends Vehicle { Item i; Near n; Far f; }\n"
        ),
        "road/Near.java": "package road;\nclass Near { }\n",
        "road/Item.java": "package road;\nclass Item { }\n",
        "fleet/Vehicle.java": "package fleet;\npublic class Vehicle { }\n",
        "fleet/Item.java": "package fleet;\npublic class Item { }\n",
        "fleet/Near.java": "package fleet;\npublic class Near { }\n",
        "fleet/Unused.java": "package fleet;\npublic class Unused { }\n",
        "parts/Item.java": "package parts;\npublic class Item { }\n",
    }
    assert edges_of(files) == {
        ("road/Truck.java", "fleet/Vehicle.java"),
        ("road/Truck.java", "parts/Item.java"),
        ("road/Truck.java", "road/Near.java"),
    }


def test_an_external_import_hides_a_type_of_the_package(edges_of):
    files = {
        "p/A.java": "package p;\nimport java.util.List;\nclass A { List l; }\n",
        "p/List.java": "package p;\nclass List { }\n",
        "p/B.java": "package p;\nclass B { List l; Object o; String s; }\n",
        "p/String.java": "package p;\nclass String { }\n",
    }
    assert edges_of(files) == {("p/B.java", "p/List.java"), ("p/B.java", "p/String.java")}


def test_wildcards_of_classes_bring_nested_types(edges_of):
    files = {
        "p/A.java": "package p;\nimport q.Crops.*;\nclass A { Oat o; }\n",
        "p/B.java": "package p;\nclass B { }\n",
        "q/Crops.java": "package q;\npublic class Crops { public static class Oat { } public static class B { } }\n",
    }
    assert edges_of(files) == {("p/A.java", "q/Crops.java")}


def test_nested_types_are_inherited(edges_of):
    files = {
        "p/A.java": "package p;\nimport q.Base;\nclass A extends Base { Oat o; }\n",
        "p/Oat.java": "package p;\nclass Oat { }\n",
        "q/Base.java": "package q;\nimport r.Root;\npublic class Base extends Root { }\n",
        "r/Root.java": "package r;\npublic class Root { public static class Oat { } }\n",
    }
    assert edges_of(files) == {
        ("p/A.java", "q/Base.java"),
        ("p/A.java", "r/Root.java"),
        ("q/Base.java", "r/Root.java"),
    }


def test_full_names_in_code(edges_of):
    files = {
        "p/A.java": (
            "package p;\nclass A {\n  com.farm.crop.Oat o = com.farm.crop.Rye.Kind.of(com.farm.Barn.X);\n"
            "  com.farm.crop.x y;\n}\n"
        ),
        "com/farm/crop/Oat.java": "package com.farm.crop;\npublic class Oat { }\n",
        "com/farm/crop/Rye.java": "package com.farm.crop;\npublic class Rye { public enum Kind { A } }\n",
        "com/farm/Barn.java": "package com.farm;\npublic class Barn { }\n",
        "com/farm/Other.java": "package com.farm;\npublic class Other { }\n",
    }
    assert edges_of(files) == {
        ("p/A.java", "com/farm/crop/Oat.java"),
        ("p/A.java", "com/farm/crop/Rye.java"),
        ("p/A.java", "com/farm/Barn.java"),
    }


def test_of_several_files_with_one_type_the_nearest_is_meant(edges_of):
    oat = "package p;\npublic class Oat { }\n"
    use = "package p;\nclass %s { Oat o; }\n"
    files = {
        "a/src/main/java/p/Oat.java": oat,
        "a/src/main/java/p/Main.java": use % "Main",
        "a/src/test/java/p/MainTest.java": use % "MainTest",
        "b/src/main/java/p/Oat.java": oat,
        "b/src/test/java/p/Oat.java": oat,
        "b/src/test/java/p/MainTest.java": use % "MainTest",
        "c/src/main/java/p/Use.java": use % "Use",
    }
    assert edges_of(files) == {
        ("a/src/main/java/p/Main.java", "a/src/main/java/p/Oat.java"),
        ("a/src/test/java/p/MainTest.java", "a/src/main/java/p/Oat.java"),
        ("a/src/test/java/p/MainTest.java", "a/src/main/java/p/Main.java"),
        ("b/src/test/java/p/MainTest.java", "b/src/test/java/p/Oat.java"),
        ("c/src/main/java/p/Use.java", "a/src/main/java/p/Oat.java"),
    }


def test_only_tests_see_tests(edges_of):
    files = {
        "src/main/java/p/A.java": "package p;\nclass A { Helper h; }\n",
        "src/test/java/p/Helper.java": "package p;\nclass Helper { A a; }\n",
    }
    assert edges_of(files) == {("src/test/java/p/Helper.java", "src/main/java/p/A.java")}


def test_package_and_module_declarations(edges_of):
    files = {
        "a/src/p/package-info.java": "/** Barn. */\n@Marked\n@q.Other\npackage p;\n\nimport q.Marked;\n",
        "a/src/p/Barn.java": "package p;\nclass Barn { }\n",
        "a/src/q/Marked.java": "package q;\npublic @interface Marked { }\n",
        "a/src/q/Other.java": "package q;\npublic @interface Other { }\n",
        "a/src/module-info.java": "module farm.a {\n  exports p;\n  provides q.Marked with p.Barn;\n}\n",
        "b/src/module-info.java": "open module farm.b {\n  requires transitive farm.a;\n  requires java.base;\n}\n",
    }
    assert edges_of(files) == {
        ("a/src/p/package-info.java", "a/src/q/Marked.java"),
        ("a/src/p/package-info.java", "a/src/q/Other.java"),
        ("a/src/module-info.java", "a/src/q/Marked.java"),
        ("a/src/module-info.java", "a/src/p/Barn.java"),
        ("b/src/module-info.java", "a/src/module-info.java"),
    }


def test_the_default_package(edges_of):
    files = {"A.java": "class A { B b; }\n", "B.java": "class B { }\n", "x/C.java": "package x;\nclass C { B b; }\n"}
    assert edges_of(files) == {("A.java", "B.java")}


def test_what_looks_internal_and_leads_nowhere_is_unresolved(unresolved_of):
    files = {
        "A.java": (
            "package com.acme.farm;\nimport com.acme.farm.Gone;\nimport com.acme.farm.gen.Made;\nimport com.acme.other.X;\n"
            "import com.acme.farm.gone.*;\nimport static com.acme.farm.Lost.x;\nimport java.util.*;\nclass A { }\n"
        ),
    }
    assert unresolved_of(files) == {
        ("A.java", "com.acme.farm.Gone"),
        ("A.java", "com.acme.farm.gen.Made"),
        ("A.java", "com.acme.farm.gone"),
        ("A.java", "com.acme.farm.Lost"),
    }


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"package",
        b"package ;\nimport ;\nimport static ;\nimport .*;\nclass { }",
        b"import a b c;\nimport static x;\nclass A extends { new",
        b"class A { String s = \"unclosed\n char c = 'x\n /* ",
        b'class A { String s = """ unclosed " \\',
        b"class \xff\xfe A\0B { \xe9t\xe9 x; }",
        b"class A { int x = " + b"(" * 5000,
        b"import " + b"a." * 3000 + b"B;\nclass A { " + b"a." * 3000 + b"B b; }",
        b"".join(b"class A%d { " % n for n in range(1500)),
    ],
)
def test_odd_input_does_not_raise(source):
    found = scan("Java", "A.java", source)
    assert pickle.loads(pickle.dumps(found)) == found
    list(java.resolve(RepoTree(["A.java", "B.java"]), {"A.java": found, "B.java": found}))


def test_classes_that_extend_each_other_end():
    files = {
        "A.java": "package p;\nclass A extends B { X x; }\n",
        "B.java": "package p;\nclass B extends A { X x; }\n",
    }
    syntax = {path: scan("Java", path, source.encode()) for path, source in files.items()}
    assert len({(e.source, e.target) for e in java.resolve(RepoTree(files), syntax)}) == 2


def test_a_syntax_error_does_not_hide_the_rest(edges_of):
    files = {
        "p/A.java": "package p;\nclass A { void a() { int = ; } B b; void c( { C.go(); } }\n",
        "p/B.java": "package p;\nclass B { }\n",
        "p/C.java": "package p;\nclass C { }\n",
    }
    assert edges_of(files) == {("p/A.java", "p/B.java"), ("p/A.java", "p/C.java")}


def test_the_order_of_sets_does_not_show():
    program = (
        "from repo2ctx.parsing import scan\nfrom repo2ctx.languages import RepoTree, java\n"
        "s = scan('Java', 'A.java', b'package p; class A<T> extends B { C c = new D(e.F.g); }')\n"
        "print(s, list(java.resolve(RepoTree(['A.java']), {'A.java': s})))\n"
    )
    assert len(outputs_by_hash_seed(program)) == 1


def test_two_crowds_of_one_size_are_told_apart(edges_of):
    """Of types that very many files declare, those beside a file count: each type's own files."""
    files = {f"{folder}/T.java": "package p;\nclass Oat {}\n" for folder in (f"d{i:02d}" for i in range(70))}
    files |= {f"d{i:02d}/R.java": "package p;\nclass Rye {}\n" for i in range(1, 70)}
    files["d00/T.java"] = "package p;\nclass Oat {}\nclass Rye {}\n"  # both crowds start with this file
    files["d69/Use.java"] = "package p;\nclass Use { Oat oat; Rye rye; }\n"
    assert {target for source, target in edges_of(files) if source == "d69/Use.java"} == {"d69/T.java", "d69/R.java"}
