"""C# files need the types that they name."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import PurePath

import pytest
import tree_sitter
from conftest import outputs_by_hash_seed

from repo2ctx.languages import RepoTree, csharp
from repo2ctx.records import Edge, Syntax, Unresolved

PARSER = tree_sitter.Parser(tree_sitter.Language(csharp.GRAMMARS["C#"]()))
PROJECT = '<Project Sdk="Microsoft.NET.Sdk"><ItemGroup>{}</ItemGroup></Project>'
TO = '<ProjectReference Include="..\\{0}\\{0}.csproj" />'


def scan(source: str | bytes) -> Syntax:
    return csharp.scan(PARSER.parse(source.encode() if isinstance(source, str) else source).root_node, "A.cs")


def resolve(files: Mapping[str, str]) -> list[Edge | Unresolved]:
    configs = {p: t for p, t in files.items() if any(fnmatchcase(PurePath(p).name, c) for c in csharp.CONFIG_FILES)}
    syntax = {path: scan(source) for path, source in files.items() if path.endswith(".cs")}
    return list(csharp.resolve(RepoTree(files, configs), syntax))


def edges(files: Mapping[str, str]) -> set[tuple[str, str]]:
    found = [e for e in resolve(files) if isinstance(e, Edge)]
    assert all(e.kind == "use" and e.source != e.target for e in found)
    return {(e.source.removesuffix(".cs"), e.target.removesuffix(".cs")) for e in found}


def needed_by_a(source: str, **others: str) -> set[str]:
    """What A.cs needs of the other files; these are `class Name { }` of namespace N if nothing else is said."""
    files = {f"{name}.cs": text or f"namespace N {{ public class {name} {{ }} }}" for name, text in others.items()}
    return {target for origin, target in edges({"A.cs": source, **files}) if origin == "A"}


def strengths(files: Mapping[str, str]) -> dict[tuple[str, str], str]:
    return {(e.source, e.target): e.strength for e in resolve(files) if isinstance(e, Edge)}


def unresolved(source: str, **others: str) -> set[str]:
    files = {"A.cs": source, **{f"{name}.cs": text for name, text in others.items()}}
    return {u.name for u in resolve(files) if isinstance(u, Unresolved)}


def test_every_place_where_a_type_can_stand():
    source = """
        using System;
        using Named = N.Aliased;
        namespace N {
            [Mark(typeof(InTypeof)), Second] [return: Third]
            public class A<T> : Base<Arg>, Face where T : Bound {
                Field f = new Made(); Elem[] all; Maybe? may; (int, InTuple b) t; List<Item> items; Map<int, Val> map;
                Ret Do<U>(Param p, out Out o) where U : Limit {
                    Stat.Go(); var o = (Cast)p; if (p is Is) { } if (p is not IsNot) { } var q = p as As;
                    try { } catch (Caught e) { } foreach (Each e in all) { } Call<TypeArg>(); default(Def); Func<Lam, int> g;
                    switch (p) { case Case c: break; case Enum.One: break; }
                    var s = p switch { Arm a => 1, _ => 2 }; Named n; var x = new Arr[2]; return $"{Hole.Text} {new InHole()}";
                }
                event Handler Done; Prop P { get; set; } static int X => Get.Y; public static A operator +(Op a, int b) => null;
            }
        }"""
    names = (
        "MarkAttribute SecondAttribute ThirdAttribute InTypeof Face Bound Arg Field Made Elem Maybe InTuple Item Val Ret Param Out "
        "Limit Stat Cast Is IsNot As Caught Each TypeArg Def Lam Case Enum Arm Aliased Arr Hole InHole Handler Prop Get Op"
    ).split()
    others = dict.fromkeys(names, "")
    others["Base"] = "namespace N { public class Base<T> { } }"
    others["Map"] = "namespace N { public class Map<K, V> { } }"
    assert needed_by_a(source, **others) == set(others)


def test_names_that_are_no_types():
    source = """
        #region Barn
        namespace N {
            // Barn
            /* Barn b = new Barn(); */
            class A {
                string s = "Barn", v = @"new Barn() ""Barn b"" ", r = \"""
                    new Barn()
                    \""", i = $"Barn {{Barn b}}", j = $@"Barn"; char c = '"'; string k = "new Barn()";
                void Barn() { Barn(); this.Barn(); x.Barn.Barn = 1; Call(Barn: 1); new Q { Barn = 1 }; RedBarn b; BarnDoor d; }
            }
        }"""
    assert needed_by_a(source, Barn="") == set()


def test_members_of_the_file_hide_types_where_a_value_can_stand():
    source = """namespace N { class A {
        public string Barn { get; } int Crop; void Tool() { } void Go() { Barn.Trim(); Use(Crop, Tool); if (Crop > 1) { } }
        public Oat Oat { get; } int Rye => Oat.Count; } }"""
    assert needed_by_a(source, Barn="", Crop="", Tool="", Oat="") == {"Oat"}


def test_members_hide_no_type_where_only_a_type_can_stand():
    source = "namespace N { class A { List<Barn> Barn; string Crop { get; } void Go() { Crop c = new Crop(); } } }"
    assert needed_by_a(source, Barn="", Crop="") == {"Barn", "Crop"}


def test_inherited_members_hide_types_too():
    files = {
        "A.cs": "namespace N { class A : Base { int X() => Barn.Length; } }",
        "Base.cs": "namespace N { class Base : Root { } }",
        "Root.cs": "namespace N { class Root { protected string Barn; } }",
        "Barn.cs": "namespace N { class Barn { } }",
    }
    assert edges(files) == {("A", "Base"), ("Base", "Root")}


def test_enum_values_type_parameters_and_record_parameters_are_no_types():
    source = """namespace N {
        enum Kind { Barn, Crop } class A<Oat> { Oat o; Rye Go<Rye>(Rye r) => r; } record R(int Hay) { int X => Hay.Y; } }"""
    assert needed_by_a(source, Barn="", Crop="", Oat="", Rye="", Hay="") == set()


def test_inner_namespaces_win_over_outer_ones_and_these_over_using():
    files = {
        "a.cs": "using Far;\nnamespace Farm.Field { class Use { Oat o; Rye r; Hay h; } }",
        "1.cs": "namespace Farm.Field { class Oat { } }",
        "2.cs": "namespace Farm { class Oat { } class Rye { } }",
        "3.cs": "namespace Far { class Oat { } class Rye { } class Hay { } }",
    }
    assert edges(files) == {("a", "1"), ("a", "2"), ("a", "3")}
    files["1.cs"] = "namespace Other { class Oat { } }"
    assert edges(files) == {("a", "2"), ("a", "3")}


def test_using_inside_a_namespace_wins_over_the_outer_namespace():
    files = {
        "a.cs": "namespace Farm.Field { using Far; class Use { Oat o; } }",
        "b.cs": "namespace Farm.Field;\nusing Far;\nclass Use2 { Oat o; }",
        "1.cs": "namespace Farm { class Oat { } }",
        "2.cs": "namespace Far { class Oat { } }",
        "3.cs": "namespace Farm.Far2 { class Oat { } }",
    }
    assert edges(files) == {("a", "2"), ("b", "2")}


def test_a_namespace_is_not_visible_without_using():
    assert needed_by_a("namespace M { class A { Barn b; } }", Barn="") == set()
    assert needed_by_a("using N;\nnamespace M { class A { Barn b; } }", Barn="") == {"Barn"}
    assert needed_by_a("using N.Deep;\nnamespace M { class A { Barn b; } }", Barn="") == set()


def test_names_with_dots_lead_through_namespaces_aliases_and_types():
    source = """using Short = Big.Farm; using One = Big.Farm.Only;
        namespace Big.Town { class A {
            Big.Farm.Oat a; Farm.Rye b; Short.Hay c; global::Big.Farm.Corn d; Short::Soy e; One f; Outer.Inner g; System.Text h;
        } }"""
    other = "namespace Big.Farm { class %s { } }"
    others = {name: other % name for name in ("Oat", "Rye", "Hay", "Corn", "Soy", "Only", "Unused")}
    others["Outer"] = "namespace Big.Town { class Outer { public class Inner { } } }"
    assert needed_by_a(source, **others) == {*others} - {"Unused"}


def test_an_alias_to_an_external_type_hides_one_of_ours():
    source = "using Barn = System.Text.StringBuilder;\nnamespace N { class A { Barn b; Barn.Part c; } }"
    assert needed_by_a(source, Barn="") == set()


def test_the_number_of_type_parameters_tells_types_apart():
    files = {
        "A.cs": "namespace N { class A { Pair a; } }",
        "B.cs": "namespace N { class B { Pair<int> a; } }",
        "C.cs": "namespace N { class C { Pair<Dictionary<int, string>, (int, int)> a; } }",
        "D.cs": "namespace N { class D { object a = typeof(Pair<,>), b = Pair < 1; } }",
        "Pair.cs": "namespace N { class Pair { } }",
        "Pair1.cs": "namespace N { class Pair<T> { } }",
        "Pair2.cs": "namespace N { class Pair<T, U> { } }",
    }
    assert edges(files) == {("A", "Pair"), ("B", "Pair1"), ("C", "Pair2"), ("D", "Pair2")}


def test_attributes_with_and_without_their_suffix():
    files = {
        "A.cs": "[assembly: N.Whole]\nnamespace N { [Mark(1), Other] [Test, PlainAttribute] class A { int x = y[Barn]; } }",
        "Mark.cs": "namespace N { class MarkAttribute : System.Attribute { } class Mark { } }",
        "Other.cs": "namespace N { class Other : Attribute { } }",
        "Test.cs": "namespace N { class Test { } }",
        "Barn.cs": "namespace N { class Barn { } }",
        "Plain.cs": "namespace N { class PlainAttribute { } }",
        "Whole.cs": "namespace N { class WholeAttribute { } }",
    }
    assert edges(files) == {("A", name) for name in ("Mark", "Other", "Plain", "Whole")}


def test_a_reference_to_a_file_of_properties_does_no_harm(edges_of):
    files = {
        "p/p.csproj": "<Project/>", "p/A.cs": "namespace N; class A { B b; }\n", "p/B.cs": "namespace N; class B {}\n",
        "e/e.csproj": '<Project><ItemGroup><ProjectReference Include="../x/y.props"/></ItemGroup></Project>',
        "x/y.props": "<Project/>", "e/E.cs": "namespace N; class E { B b; }\n",
    }  # fmt: skip
    assert ("p/A.cs", "p/B.cs") in edges_of(files)


def test_using_static_brings_nested_types_and_needs_the_class():
    files = {
        "A.cs": "using static N.Tools;\nclass A { Saw s; }",
        "B.cs": "using static N.Tools;\nclass B { int x = Max(1); }",
        "Tools.cs": "namespace N { static class Tools { public class Saw { } } }",
        "Saw.cs": "class Other { }",
    }
    assert edges(files) == {("A", "Tools"), ("B", "Tools")}


def test_nested_types_are_inherited():
    files = {
        "A.cs": "namespace N { class A : M.Base { Oat o; } }",
        "Oat.cs": "namespace N { class Oat { } }",
        "Base.cs": "namespace M { class Base : Root { } }",
        "Root.cs": "namespace M { class Root { public class Oat { } } }",
    }
    assert edges(files) == {("A", "Base"), ("A", "Root"), ("Base", "Root")}


def test_a_base_with_arguments_is_needed():
    source = "namespace N { class A(int x) : Barn(x); record R(int X) : Crop<int>(X); }"
    assert needed_by_a(source, Barn="", Crop="namespace N { record Crop<T>(T X); }") == {"Barn", "Crop"}


def test_of_a_partial_type_the_part_with_its_name_is_needed_also_by_the_others():
    files = {
        "Use.cs": "namespace N { class Use { Barn b; } }",
        "Barn.cs": "namespace N { partial class Barn { Oat o; } }",
        "Barn.Async.cs": "namespace N { partial class Barn { } }",
        "Oat.cs": "namespace N { class Oat { } }",
    }
    assert edges(files) == {("Use", "Barn"), ("Barn.Async", "Barn"), ("Barn", "Oat")}


def test_of_a_partial_type_without_a_part_of_its_name_the_one_with_its_bases_is_needed():
    files = {
        "Use.cs": "namespace N { class Use { Barn<int> b; } }",
        "BarnOfT.cs": "namespace N { partial class Barn<T> : Root { } }",
        "BarnAsync.cs": "namespace N { partial class Barn<T> { } }",
        "Root.cs": "namespace N { class Root { } }",
    }
    assert edges(files) == {("Use", "BarnOfT"), ("BarnAsync", "BarnOfT"), ("BarnOfT", "Root")}


def test_of_a_partial_type_with_neither_a_few_parts_are_needed():
    parts = {f"part{n}.cs": "namespace N { partial class Barn { } }" for n in range(6)}
    assert len(edges({"Use.cs": "namespace N { class Use { Barn b; } }", **parts})) == 4


def test_nested_types_of_other_parts():
    files = {
        "Barn.cs": "namespace N { partial class Barn { Stall s; } }",
        "Stalls.cs": "namespace N { partial class Barn { class Stall { } } }",
    }
    assert edges(files) == {("Barn", "Stalls"), ("Stalls", "Barn")}


def test_without_projects_the_nearest_of_several_types_is_meant():
    barn = "namespace N { class Barn { } }"
    files = {
        "x/Barn.cs": barn,
        "y/Barn.cs": barn,
        "x/deep/A.cs": "namespace N { class A { Barn b; } }",
        "y/B.cs": "namespace N { class B { Barn b; } }",
    }
    assert edges(files) == {("x/deep/A", "x/Barn"), ("y/B", "y/Barn")}


def test_a_file_sees_its_project_and_those_that_it_refers_to():
    files = {
        "App/App.csproj": PROJECT.format(TO.format("Mid")),
        "Mid/Mid.csproj": PROJECT.format(TO.format("low")),
        "Low/Low.csproj": PROJECT.format(""),
        "Aside/Aside.csproj": PROJECT.format(""),
        "App/A.cs": "namespace N { class A { Low l; Aside a; Twice t; } }",
        "Low/Low.cs": "namespace N { class Low { } class Twice { } }",
        "Aside/Aside.cs": "namespace N { class Aside { A a; } class Twice { } }",
    }
    assert edges(files) == {("App/A", "Low/Low")}


def test_a_package_or_assembly_with_the_name_of_a_project_is_that_project():
    files = {
        "App/App.csproj": PROJECT.format(
            '<PackageReference Include="Low" Version="1" /><Reference Include="Mid, Version=1" />'
        ),
        "Low/Low.csproj": PROJECT.format(""),
        "Mid/Mid.csproj": PROJECT.format(""),
        "App/A.cs": "namespace N { class A { Low l; Mid m; } }",
        "Low/Low.cs": "namespace N { class Low { } }",
        "Mid/Mid.cs": "namespace N { class Mid { } }",
    }
    assert edges(files) == {("App/A", "Low/Low"), ("App/A", "Mid/Mid")}


@pytest.mark.parametrize(
    "project",
    [
        "<Project",
        '<!DOCTYPE Project [<!ENTITY x "y">]><Project>&x;</Project>',
        PROJECT.format('<ProjectReference Include="$(Somewhere)Gone.csproj" />'),
        PROJECT.format('<ProjectReference Include="..\\..\\..\\Gone.csproj" />'),
    ],
)
def test_a_project_that_cannot_be_known_sees_all(project):
    files = {
        "App/App.csproj": project,
        "Low/Low.csproj": PROJECT.format(""),
        "App/A.cs": "namespace N { class A { Low l; } }",
        "Low/Low.cs": "namespace N { class Low { } }",
    }
    assert edges(files) == {("App/A", "Low/Low")}


def test_references_with_variables_are_found_by_name():
    files = {
        "App/App.csproj": PROJECT.format('<ProjectReference Include="$(Root)\\src\\Low.csproj" />'),
        "Low/Low.csproj": PROJECT.format(""),
        "Aside/Aside.csproj": PROJECT.format(""),
        "App/A.cs": "namespace N { class A { Low l; Aside a; } }",
        "Low/Low.cs": "namespace N { class Low { } }",
        "Aside/Aside.cs": "namespace N { class Aside { } }",
    }
    assert edges(files) == {("App/A", "Low/Low")}


def test_files_that_a_project_links_belong_to_it():
    files = {
        "App/App.csproj": PROJECT.format(
            '<Compile Include="..\\Common\\**\\*.cs" /><Compile Include="..\\Low\\Low.cs" />'
        ),
        "Low/Low.csproj": PROJECT.format(""),
        "Common/Common.csproj": PROJECT.format(""),
        "App/A.cs": "namespace N { class A { Low l; High h; Shared s; } }",
        "Low/Low.cs": "namespace N { class Low { } }",
        "Low/High.cs": "namespace N { class High { } }",
        "Common/x/Shared.cs": "namespace N { class Shared { } }",
    }
    assert edges(files) == {("App/A", "Low/Low"), ("App/A", "Common/x/Shared")}


def test_global_usings_hold_in_their_project_and_their_file_is_needed():
    files = {
        "App/App.csproj": PROJECT.format(""),
        "App/Usings.cs": "global using N; global using Short = N.Oat; global using static System.Math;",
        "App/A.cs": "class A { Barn b; }",
        "App/B.cs": "class B { Short b; }",
        "App/C.cs": "class C { Max m; }",
        "App/N.cs": "namespace N { class Barn { } class Oat { } }",
        "Other/Other.csproj": PROJECT.format(TO.format("App")),
        "Other/D.cs": "class D { Barn b; }",
    }
    found = edges(files)
    assert found == {
        ("App/A", "App/N"),
        ("App/A", "App/Usings"),
        ("App/B", "App/N"),
        ("App/B", "App/Usings"),
        ("App/Usings", "App/N"),
    }


def test_usings_of_project_files():
    files = {
        "Directory.Build.props": PROJECT.format('<Using Include="Props" />'),
        "Directory.Build.targets": '<Project><Import Project="build/more.props" /></Project>',
        "build/more.props": PROJECT.format('<Using Include="More" />'),
        "App/App.csproj": PROJECT.format(
            '<Using Include="Own" /><Using Include="Own.Tools" Static="true" /><Using Include="Far.X" Alias="Y" />'
        ),
        "App/A.cs": "class A { InProps a; InMore b; InOwn c; Saw d; Y e; }",
        "App/1.cs": "namespace Props { class InProps { } }",
        "App/2.cs": "namespace More { class InMore { } }",
        "App/3.cs": "namespace Own { class InOwn { } }",
        "App/4.cs": "namespace Own { class Tools { public class Saw { } } }",
        "App/5.cs": "namespace Far { class X { } }",
    }
    assert edges(files) == {("App/A", f"App/{n}") for n in range(1, 6)}


def test_implicit_usings_only_where_they_are_enabled():
    files = {
        "App/App.csproj": "<Project><PropertyGroup><ImplicitUsings>enable</ImplicitUsings></PropertyGroup></Project>",
        "Low/Low.csproj": "<Project><PropertyGroup><ImplicitUsings>disable</ImplicitUsings></PropertyGroup></Project>",
        "App/A.cs": "class A { Index i; }",
        "Low/B.cs": "class B { Index i; }",
        "App/Index.cs": "namespace System { struct Index { } }",
        "Low/Index.cs": "namespace System { struct Index { } }",
    }
    assert edges(files) == {("App/A", "App/Index")}


def test_extension_methods_are_needed_softly_if_the_name_can_mean_nothing_else():
    tools = "namespace N { static class Tools { public static int Frob(this string s) => 1; public static int Frob(this int s) => 2; } }"
    use = 'namespace N { class A { int x = y.Frob(), z = "".Trim().Frob(); } }'
    files = {"A.cs": use, "Tools.cs": tools}
    assert strengths(files) == {("A.cs", "Tools.cs"): "soft"}
    assert not strengths({**files, "B.cs": "class B { int Frob(int x) => x; }"})
    assert not strengths({**files, "B.cs": "static class B { public static int Frob(this object o) => 1; }"})
    assert not strengths({**files, "A.cs": use.replace("namespace N", "namespace M")})
    assert not strengths({**files, "A.cs": "namespace N { class A { int x = Other.Frob(1); } }"})
    assert not strengths({name: text.replace("Frob", "ToList") for name, text in files.items()})


def test_nameof_and_cref_alone_are_soft():
    files = {
        "A.cs": (
            'namespace N {\n/// <summary><see cref=\'x\'/> <see cref="Oat.Grow(int)"/> <see cref="T:N.Rye"/> <see cref="Map{K, V}"/></summary>\n'
            "class A { string s = nameof(Barn), t = nameof(Hay.X); Hay h; } }"
        ),
        "Barn.cs": "namespace N { class Barn { } }",
        "Oat.cs": "namespace N { class Oat { } }",
        "Rye.cs": "namespace N { class Rye { } }",
        "Map.cs": "namespace N { class Map<K, V> { } }",
        "Hay.cs": "namespace N { class Hay { } }",
    }
    found = strengths(files)
    assert found.pop(("A.cs", "Hay.cs")) == "hard"
    assert found == {("A.cs", f"{name}.cs"): "soft" for name in ("Barn", "Oat", "Rye", "Map")}


def test_both_branches_of_directives_count():
    source = """
        #if NET
        using N;
        #else
        using M;
        #endif
        class A {
        #if NET
            Barn b;
        #elif OLD
            Crop c;
        #endif
        }"""
    assert needed_by_a(source, Barn="", Crop="namespace M { class Crop { } }") == {"Barn", "Crop"}


def test_a_style_with_spaces_before_brackets():
    source = "namespace N { [Mark ] class A { void Go () { Use (typeof (Barn), new Crop (), nameof (Oat)); } } }"
    assert needed_by_a(source, Barn="", Crop="", Oat="", MarkAttribute="") == {"Barn", "Crop", "Oat", "MarkAttribute"}


def test_the_global_namespace_and_top_level_statements():
    files = {
        "Program.cs": "var b = new Barn();\nCrop.Grow();",
        "Barn.cs": "class Barn { }",
        "Crop.cs": "namespace N { class Crop { } }",
    }
    assert edges(files) == {("Program", "Barn")}


def test_what_looks_internal_and_leads_nowhere_is_unresolved():
    source = """using Big.Farm; using Big.Farm.Gone; using static Big.Farm.Lost; using X = Big.Farm.Missing; using Big.Farm.Barn;
        using Big.Other; using System.Text; using System.IO.Gone; class A { }"""
    others = {"B": "namespace Big.Farm { class Barn { } }", "C": "namespace System.IO { class Oat { } }"}
    assert unresolved(source, **others) == {"Big.Farm.Gone", "Big.Farm.Lost", "Big.Farm.Missing"}


def test_a_syntax_error_hides_neither_the_names_nor_the_types():
    files = {
        "A.cs": "namespace N { class A { void a() { int = ; } B b; void c( { C.Go(); } } }",
        "B.cs": "namespace N { public partial class B {\n#if X\n void A() {\n#else\n void B() {\n#endif\n int = ( ; } class In { } }",
        "C.cs": "namespace N { class C { } }",
    }
    assert {("A", "B"), ("A", "C")} <= edges(files)


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"namespace",
        b"namespace ;\nusing ;\nusing static ;\nusing = ;\nusing X = ;\nusing .;\nclass { } record (;",
        b"global using global::;\nclass A : { new",
        b"class A { string s = \"unclosed\n char c = 'x\n /* ",
        b'class A { string s = """ unclosed " \\',
        b'class A { string s = $"{a{b"c{ } {{ ; @" ',
        b"class \xff\xfe A\0B { \xe9t\xe9 x; \xc3\x89t\xc3\xa9 y; }",
        b"class A { int x = " + b"(" * 5000,
        b"using " + b"A." * 3000 + b"B;\nclass A { " + b"A." * 3000 + b"B b; " + b"List<" * 3000,
        b"".join(b"class A%d { " % n for n in range(1500)),
        b"".join(b"namespace A%d { " % n for n in range(500)) + b"class X { X x; }",
        b'class A { object o = $"' + b"{{{" * 2000,
        b"[" * 3000 + b"A" + b"<A," * 3000,
        b"#if X\n" * 1000,
    ],
)
def test_odd_input_does_not_raise(source):
    found = scan(source)
    assert pickle.loads(pickle.dumps(found)) == found
    list(csharp.resolve(RepoTree(["A.cs", "B.cs"]), {"A.cs": found, "B.cs": found}))


@pytest.mark.parametrize(
    "project",
    [
        "",
        "\ufeff<Project />",
        '<?xml version="1.0" encoding="nonsense"?><Project />',
        "<Project>\0</Project>",
        "<a>" * 50_000,
        "<a>" * 50_000 + "</a>" * 50_000,
        PROJECT.format(
            '<Compile Include="' + "..\\**\\*" * 500 + '" /><Compile Include="" /><Using Include=";;" /><Using />'
        ),
        PROJECT.format('<ProjectReference /><ProjectReference Include="..\\App\\App.csproj" /><Import />'),
        '<Project><Import Project="App.csproj" /><Import Project="$([MSBuild]::GetPathOfFileAbove(\'Directory.Build.props\'))" /></Project>',
        '<Project><Import Project="..\\Directory.Build.props" /><ImplicitUsings /></Project>',
    ],
)
def test_odd_projects_do_not_raise(project):
    files = {
        "App/App.csproj": project,
        "App/Directory.Build.props": project,
        "Directory.Build.props": project,
        "App/A.cs": "class A { B b; }",
        "App/B.cs": "class B { }",
    }
    assert edges(files) == {("App/A", "App/B")}


def test_classes_that_derive_from_each_other_end():
    files = {
        "A.cs": "namespace N { class A : B { X x; class X : A { } } }",
        "B.cs": "namespace N { class B : A { X x; } }",
    }
    assert edges(files) == {("A", "B"), ("B", "A")}


def test_the_order_of_sets_does_not_show():
    program = (
        "import tree_sitter\nfrom repo2ctx.languages import RepoTree, csharp\n"
        "parser = tree_sitter.Parser(tree_sitter.Language(csharp.GRAMMARS['C#']()))\n"
        "def scan(s): return csharp.scan(parser.parse(s).root_node, 'A.cs')\n"
        "a = scan(b'using N; using M; [X, Y(1)] class A<T> : B, C { D<E, F> d; int G => H.I(); string J; }')\n"
        "b = scan(b'namespace N { partial class B { } partial class C { } class D<T, U> { } class E { } class H { } }')\n"
        "c = scan(b'namespace M { partial class B { } class D<T, U> { } class E { } class H { } }')\n"
        "s = {'A.cs': a, 'B.cs': b, 'C.cs': c}\n"
        "print(s, list(csharp.resolve(RepoTree(s), s)))\n"
    )
    assert len(outputs_by_hash_seed(program)) == 1


def test_an_extension_method_of_a_partial_class_is_in_the_part_that_declares_it():
    files = {
        "A.cs": "namespace N { class A { int x = y.Frob(); } }",
        "Mixin.cs": "namespace N { static partial class Mixin { } }",
        "Frobs.cs": "namespace N { static partial class Mixin { public static int Frob(this string s) => 1; } }",
    }
    assert strengths(files) == {("A.cs", "Frobs.cs"): "soft", ("Frobs.cs", "Mixin.cs"): "hard"}
