"""Rust paths resolve through the module trees of the repository's crates."""

import pytest
import tree_sitter
from conftest import graph_of_files

from repo2ctx.languages import rust

CARGO = '[package]\nname = "tool"\nedition = "2021"\n'


def crate(files, **more):
    return {"Cargo.toml": CARGO, **files, **more}


def test_mod_finds_the_childs_file(edges_of):
    files = crate(
        {
            "src/lib.rs": "mod a;\npub mod b;\nmod inner { pub(crate) mod deep; }\n",
            "src/a.rs": "mod under;\n",
            "src/a/under.rs": "",
            "src/b/mod.rs": "mod beside;\n",
            "src/b/beside.rs": "",
            "src/inner/deep.rs": "",
            "src/under.rs": "",
        }
    )
    assert edges_of(files) == {
        ("src/lib.rs", "src/a.rs"),
        ("src/lib.rs", "src/b/mod.rs"),
        ("src/lib.rs", "src/inner/deep.rs"),
        ("src/a.rs", "src/a/under.rs"),
        ("src/b/mod.rs", "src/b/beside.rs"),
    }


def test_mod_with_a_path(edges_of):
    files = crate(
        {
            "src/lib.rs": '/// Doc.\n#[path = "sys/unix.rs"]\n#[cfg(unix)]\nmod imp;\n#[cfg_attr(x, path = "odd.rs")]\nmod o;\n',
            "src/sys/unix.rs": "mod fs;\n",
            "src/sys/fs.rs": "use super::Handle;\n",
            "src/odd.rs": 'mod nest { #[path = "far.rs"] mod near; }\n',
            "src/o.rs": "",
            "src/nest/far.rs": "",
        }
    )
    assert edges_of(files) == {
        ("src/lib.rs", "src/sys/unix.rs"),
        ("src/sys/unix.rs", "src/sys/fs.rs"),
        ("src/sys/fs.rs", "src/sys/unix.rs"),
        ("src/lib.rs", "src/odd.rs"),
        ("src/lib.rs", "src/o.rs"),
        ("src/odd.rs", "src/nest/far.rs"),
    }


def test_every_target_is_a_crate(edges_of):
    files = {
        "Cargo.toml": CARGO + 'build = "gen.rs"\n[lib]\npath = "lib/root.rs"\n[[bin]]\nname = "x"\npath = "cmd/x.rs"\n',
        "gen.rs": "mod help;\n",
        "help.rs": "",
        "lib/root.rs": "pub mod part;\n",
        "lib/part.rs": "pub struct Part;\n",
        "cmd/x.rs": "mod args;\nuse tool::part::Part;\nuse crate::args::Args;\n",
        "cmd/args.rs": "pub struct Args;\n",
        "src/main.rs": "fn main() { tool::part::Part; }\n",
        "src/bin/two/main.rs": "mod own;\n",
        "src/bin/two/own.rs": "",
        "tests/check.rs": "mod common;\nuse tool::part::Part;\n",
        "tests/common/mod.rs": "pub fn run() {}\n",
        "examples/show.rs": "use tool::*;\n",
    }
    assert edges_of(files) == {
        ("gen.rs", "help.rs"),
        ("lib/root.rs", "lib/part.rs"),
        ("cmd/x.rs", "cmd/args.rs"),
        ("cmd/x.rs", "lib/part.rs"),
        ("src/main.rs", "lib/part.rs"),
        ("src/bin/two/main.rs", "src/bin/two/own.rs"),
        ("tests/check.rs", "tests/common/mod.rs"),
        ("tests/check.rs", "lib/part.rs"),
        ("examples/show.rs", "lib/root.rs"),
    }


def test_use_trees(edges_of):
    files = crate(
        {
            "src/lib.rs": "mod a; mod b; mod c; mod d; mod user;\n",
            "src/a.rs": "pub struct A;\n",
            "src/b.rs": "pub mod inner { pub struct B; }\n",
            "src/c.rs": "",
            "src/d.rs": "pub fn d() {}\n",
            "src/user.rs": (
                "use crate::{a::{self, A as Other}, b::inner::{B, /* all of */ *},\n    c::*, // and\n};\n"
                "use std::{fmt, d::d};\nuse d::d;\n"
            ),
        }
    )
    assert {t for s, t in edges_of(files) if s == "src/user.rs"} == {"src/a.rs", "src/b.rs", "src/c.rs"}


def test_paths_from_a_childs_point_of_view(strengths_of):
    files = crate(
        {
            "src/lib.rs": "mod a; mod b;\npub struct Top;\n",
            "src/a.rs": "pub mod one; pub mod two;\npub struct Mid;\nmod tests { use super::*; use super::super::b::B; }\n",
            "src/a/one.rs": "use super::two::Two;\nuse super::Mid;\nuse crate::Top;\n",
            "src/a/two.rs": "pub struct Two;\nfn f() { super::super::b::B; self::g(); }\n",
            "src/b.rs": "pub struct B;\n",
        }
    )
    assert strengths_of(files) == {
        ("src/lib.rs", "src/a.rs"): "hard",
        ("src/lib.rs", "src/b.rs"): "hard",
        ("src/a.rs", "src/a/one.rs"): "hard",
        ("src/a.rs", "src/a/two.rs"): "hard",
        ("src/a.rs", "src/b.rs"): "hard",
        ("src/a/one.rs", "src/a/two.rs"): "hard",
        ("src/a/one.rs", "src/a.rs"): "soft",
        ("src/a/one.rs", "src/lib.rs"): "soft",
        ("src/a/two.rs", "src/b.rs"): "hard",
    }


def test_names_in_scope_start_paths(edges_of):
    files = crate(
        {
            "src/lib.rs": "mod a;\nmod log;\nuse a::A;\nuse self::a as short;\nuse short::deep::D;\nuse log::warn;\n",
            "src/a.rs": "pub mod deep;\npub struct A;\n",
            "src/a/deep.rs": "pub struct D;\n",
            "src/log.rs": "pub fn warn() {}\n",
            "src/a/other.rs": "",
        }
    )
    assert ("src/lib.rs", "src/a/deep.rs") in edges_of(files)


def test_edition_2015_uses_start_at_the_root(edges_of):
    files = {
        "Cargo.toml": '[package]\nname = "old"\n',
        "src/lib.rs": "extern crate serde;\nmod a;\nmod b;\n",
        "src/a.rs": "use b::B;\nuse ::b::C;\nuse serde::Serialize;\n",
        "src/b.rs": "pub struct B;\npub struct C;\n",
    }
    assert edges_of(files) == {("src/lib.rs", "src/a.rs"), ("src/lib.rs", "src/b.rs"), ("src/a.rs", "src/b.rs")}


def test_re_exports_lead_to_the_file_that_declares(edges_of):
    files = crate(
        {
            "src/lib.rs": "mod deep;\npub mod prelude;\npub use deep::Thing as Renamed;\nmod user;\n",
            "src/deep/mod.rs": "mod core;\nmod rest;\npub use self::core::Thing;\npub use rest::*;\n",
            "src/deep/core.rs": "pub struct Thing;\n",
            "src/deep/rest.rs": "pub trait Rest { fn hidden(); }\n",
            "src/prelude.rs": "pub use crate::deep::*;\npub use http::Request;\n",
            "src/user.rs": "use crate::Renamed;\nuse crate::deep::Rest;\n",
            "tests/t.rs": "use tool::prelude::Thing;\nuse tool::prelude::Request;\n",
        }
    )
    edges = edges_of(files)
    assert {t for s, t in edges if s == "src/user.rs"} == {"src/deep/core.rs", "src/deep/rest.rs"}
    assert {t for s, t in edges if s == "tests/t.rs"} == {"src/deep/core.rs", "src/prelude.rs"}


def test_re_exports_in_a_circle_end(edges_of):
    files = crate(
        {
            "src/lib.rs": "mod a; mod b;\nuse a::Gone;\nuse b::Here;\n",
            "src/a.rs": "pub use super::b::*;\n",
            "src/b.rs": "pub use super::a::*;\npub struct Here;\n",
        }
    )
    assert ("src/lib.rs", "src/b.rs") in edges_of(files)


def test_crates_of_a_workspace(edges_of):
    files = {
        "Cargo.toml": (
            '[workspace]\nmembers = ["crates/*"]\n[workspace.package]\nedition = "2021"\n'
            '[workspace.dependencies]\nshared-bits = { path = "crates/shared" }\n'
            '[patch.crates-io]\npatched = { path = "crates/patched" }\n'
        ),
        "crates/shared/Cargo.toml": '[package]\nname = "shared-bits"\nedition.workspace = true\n',
        "crates/shared/src/lib.rs": "pub struct S;\n#[macro_export]\nmacro_rules! say { () => {} }\n",
        "crates/named/Cargo.toml": '[package]\nname = "named-pkg"\n[lib]\nname = "called"\n',
        "crates/named/src/lib.rs": "pub fn n() {}\n",
        "crates/patched/Cargo.toml": '[package]\nname = "patched"\n',
        "crates/patched/src/lib.rs": "pub fn p() {}\n",
        "crates/log/Cargo.toml": '[package]\nname = "log"\n',
        "crates/log/src/lib.rs": "pub fn info() {}\n",
        "crates/app/Cargo.toml": (
            '[package]\nname = "app"\nedition.workspace = true\n[dependencies]\nshared-bits.workspace = true\nlog = "0.4"\n'
            'patched = "1"\n[target."cfg(unix)".dependencies]\nnamed-pkg = { path = "../named" }\n'
            '[dev-dependencies]\nother = { path = "../shared", package = "shared-bits" }\n'
        ),
        "crates/app/src/main.rs": (
            "use shared_bits::S;\nuse log::info;\nfn main() { called::n(); patched::p(); assert_eq!(1, called::n()); }\n"
        ),
        "crates/app/src/bin/b.rs": "use other::say;\n",
    }
    assert edges_of(files) == {
        ("crates/app/src/main.rs", "crates/shared/src/lib.rs"),
        ("crates/app/src/main.rs", "crates/named/src/lib.rs"),
        ("crates/app/src/main.rs", "crates/patched/src/lib.rs"),
        ("crates/app/src/bin/b.rs", "crates/shared/src/lib.rs"),
    }


def test_exported_macros_are_at_the_root_of_their_crate(edges_of):
    files = crate(
        {
            "src/lib.rs": "#[macro_use]\nmod macros;\nmod a;\n",
            "src/macros.rs": "#[macro_export]\nmacro_rules! shout { () => { $crate::a::hear() } }\n",
            "src/a.rs": "use crate::shout;\npub fn hear() {}\n",
        }
    )
    assert {("src/a.rs", "src/macros.rs"), ("src/macros.rs", "src/a.rs")} <= edges_of(files)


def test_what_macros_wrap(edges_of):
    files = crate(
        {
            "src/lib.rs": "cfg_x! {\n    mod a;\n    pub mod b { pub mod c; }\n    pub use a::made;\n}\nmod user;\n",
            "src/a.rs": "cfg_y! { pub fn made() {} }\n",
            "src/b/c.rs": "pub struct C;\n",
            "src/user.rs": "use crate::made;\nfn f() { vec![crate::b::c::C] }\n",
        }
    )
    assert edges_of(files) == {
        ("src/lib.rs", "src/a.rs"),
        ("src/lib.rs", "src/b/c.rs"),
        ("src/lib.rs", "src/user.rs"),
        ("src/user.rs", "src/a.rs"),
        ("src/user.rs", "src/b/c.rs"),
    }


def test_included_files(edges_of, unresolved_of):
    files = crate(
        {
            "src/lib.rs": (
                'include!("table.rs");\nstatic T: &str = include_str!("../data/t.txt");\n'
                'static M: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/m.bin"));\n'
                'include!(concat!(env!("OUT_DIR"), "/made.rs"));\nstatic G: &str = include_str!("gone.txt");\n'
            ),
            "src/table.rs": "",
            "data/t.txt": "",
            "data/m.bin": "",
        }
    )
    assert edges_of(files) == {("src/lib.rs", name) for name in ("src/table.rs", "data/t.txt", "data/m.bin")}
    assert unresolved_of(files) == {("src/lib.rs", "gone.txt")}


def test_comments_and_strings_name_nothing(edges_of):
    files = crate(
        {
            "src/lib.rs": '//! use crate::a::A;\n/* mod a; */\n// crate::a::f();\nconst S: &str = "\nmod a;\nuse crate::a;\n";\n',
            "src/a.rs": "",
        }
    )
    assert edges_of(files) == set()


def test_raw_names(edges_of):
    files = crate(
        {
            "src/lib.rs": "mod r#type;\nmod b;\n",
            "src/type.rs": "pub fn r#match() {}\n",
            "src/b.rs": "use crate::r#type::r#match;\n",
        }
    )
    assert ("src/b.rs", "src/type.rs") in edges_of(files)


def test_what_looks_internal_and_leads_nowhere_is_unresolved(unresolved_of):
    files = crate(
        {
            "src/lib.rs": "mod gone;\nmod a;\nuse crate::lost::X;\nuse serde::Serialize;\nuse std::fmt;\n",
            "src/a.rs": "use super::super::super::y;\nuse crate::Made;\n",
        }
    )
    assert unresolved_of(files) == {
        ("src/lib.rs", "gone"),
        ("src/lib.rs", "crate::lost::X"),
        ("src/a.rs", "super::super::super::y"),
    }


def test_files_without_a_manifest_or_out_of_reach(edges_of):
    files = {
        "tool/main.rs": "mod a;\nuse crate::a::A;\n",
        "tool/a.rs": "pub struct A;\n",
        "ui/case.rs": "mod helper;\nuse self::helper::H;\n",
        "ui/helper.rs": "pub struct H;\n",
        "lost/b.rs": "mod c;\n",
        "lost/b/c.rs": "",
    }
    assert edges_of(files) == {
        ("tool/main.rs", "tool/a.rs"),
        ("ui/case.rs", "ui/helper.rs"),
        ("lost/b.rs", "lost/b/c.rs"),
    }


def test_a_file_shared_by_crates_is_seen_from_each(edges_of):
    files = crate(
        {
            "tests/one.rs": "mod common;\nmod data;\n",
            "tests/two.rs": "mod common;\n",
            "tests/common/mod.rs": "fn f() { crate::data::load(); }\n",
            "tests/data/mod.rs": "pub fn load() {}\n",
        }
    )
    assert ("tests/common/mod.rs", "tests/data/mod.rs") in edges_of(files)


@pytest.mark.parametrize(
    "manifest",
    [
        "not = [toml",
        "a = " + "[" * 50_000,
        'package = 3\nlib = "x"\nbin = {}\n',
        '[package]\nname = "tool"\n[dependencies]\na = 3\nb = { path = 4 }\nc = { path = "../../.." }\n[lib]\npath = "../.."\n'
        "[[bin]]\npath = 7\n[patch]\nx = 1\n",
    ],
)
def test_broken_manifests(edges_of, manifest):
    files = {"Cargo.toml": manifest, "src/lib.rs": "mod a;\n", "src/a.rs": "use crate::b;\nuse d::e;\n"}
    assert ("src/lib.rs", "src/a.rs") in edges_of(files)


def test_mod_in_a_circle_ends(edges_of):
    files = crate(
        {
            "src/lib.rs": '#[path = "a.rs"] mod x;\n#[path = "lib.rs"] mod me;\n',
            "src/a.rs": '#[path = "lib.rs"] mod y;\nuse super::x::x::z;\n',
        }
    )
    assert edges_of(files) == {("src/lib.rs", "src/a.rs"), ("src/a.rs", "src/lib.rs")}


def test_odd_input():
    parser = tree_sitter.Parser(tree_sitter.Language(rust.GRAMMARS["Rust"]()))
    source = (
        b"\n\xff mod a;\nmod b {{{ use x::{y, {z::{;\nuse "
        + b"a::{" * 5000
        + b";\nfn f() { crate::\xc3\x28::g }\nuse q::r;"
    )
    syntax = rust.scan(parser.parse(source).root_node, "x.rs")
    assert [(i.name, i.line) for i in syntax.imports if i.kind == "mod"] == [("a", 2)]
    assert "q::r" in {i.name for i in syntax.imports}
    assert rust.scan(parser.parse(b"").root_node, "x.rs").imports == ()


def test_what_is_there_in_tests_only_is_of_the_kind_test():
    files = {
        "Cargo.toml": '[package]\nname = "farm"\n',
        "src/lib.rs": "mod oat;\nmod rye;\nmod help;\n#[cfg(test)]\nmod tests;\n",
        "src/oat.rs": (
            "use crate::rye::Rye;\n\n#[cfg(all(test, feature = \"x\"))]\nmod tests {\n    use super::*;\n"
            "    use crate::help::{self, Help};\n    mod inner {\n        fn f() { crate::help::g() }\n    }\n}\n"
            "#[cfg(any(test, feature = \"x\"))]\nmod other {\n    use crate::rye::Corn;\n}\n"
        ),
        "src/rye.rs": "pub struct Rye;\npub struct Corn;\n",
        "src/help.rs": "pub struct Help;\npub fn g() {}\n",
        "src/tests.rs": "use crate::rye::Rye;\n",
    }  # fmt: skip
    edges = {(e.source, e.target, e.kind, e.strength) for e in graph_of_files(files).edges}
    assert edges == {
        *(("src/lib.rs", f"src/{name}.rs", "mod", "hard") for name in ("oat", "rye", "help")),
        ("src/lib.rs", "src/tests.rs", "test", "soft"),
        ("src/oat.rs", "src/rye.rs", "use", "hard"),
        ("src/oat.rs", "src/help.rs", "test", "soft"),
        ("src/tests.rs", "src/rye.rs", "use", "hard"),
    }


def test_procedural_macros_are_in_the_root_of_their_crate(edges_of):
    files = {
        "Cargo.toml": '[package]\nname = "farm"\n[dependencies]\nmill = { path = "mill" }\n',
        "src/lib.rs": "mod oat;\nuse mill::{grind, Sow};\n#[crate::test]\nfn f() {}\npub use mill::trial as test;\n",
        "src/oat.rs": "#[cfg(test)]\nmod tests {\n    macro_rules! test { () => {} }\n}\n",
        "mill/Cargo.toml": '[package]\nname = "mill"\n[lib]\nproc-macro = true\n',
        "mill/src/lib.rs": (
            "mod grind;\nmod sow;\nuse sow::Kind::Sow;\n#[proc_macro_attribute]\npub fn grind() {}\n"
            "#[proc_macro_derive(Sow, attributes(sow))]\npub fn derive_sow() {}\n#[proc_macro_attribute]\npub fn trial() {}\n"
        ),
        "mill/src/grind.rs": "",
        "mill/src/sow.rs": "pub enum Kind { Sow }\nfn f() { quote! { extern crate farm as _farm; use farm::oat; } }\n",
    }
    assert edges_of(files) == {
        ("src/lib.rs", "src/oat.rs"),
        ("src/lib.rs", "mill/src/lib.rs"),
        ("mill/src/lib.rs", "mill/src/grind.rs"),
        ("mill/src/lib.rs", "mill/src/sow.rs"),
    }
