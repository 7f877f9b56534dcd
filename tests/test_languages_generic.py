"""Languages without rules: literal relative paths."""

import time

from repo2ctx.graph import build_graph
from repo2ctx.languages import RepoTree
from repo2ctx.languages.generic import scan_text
from repo2ctx.parsing import scan


def edges(files: dict[str, str], language: str = "Shell") -> set[tuple[str, str]]:
    parsed = {path: (language, scan(language, path, text.encode())) for path, text in files.items()}
    found = build_graph(RepoTree(files), parsed).edges
    assert all(e.kind == "include" and e.strength == "soft" for e in found)
    return {(e.source, e.target) for e in found}


def test_shell():
    main = """#!/bin/sh
. ./lib/log.sh
source "$(dirname "$0")/lib/args.sh"
source ${ROOT}/lib/net.sh
. lib/dot.sh
exec ../tool.sh --x ./none.sh
"""
    others = ("bin/lib/log.sh", "bin/lib/args.sh", "lib/net.sh", "lib/dot.sh", "tool.sh", "lib/other.sh")
    found = edges({"bin/main.sh": main} | dict.fromkeys(others, ""))
    assert found == {("bin/main.sh", o) for o in others if o != "lib/other.sh"}


def test_pages_and_styles():
    page = """<link href="css/site.css"><img src='img/logo.svg'><script src="./js/app.js"></script>"""
    assert edges({"index.html": page, "css/site.css": "a{b:url(../img/logo.svg)}", "img/logo.svg": "", "js/app.js": ""}) == {
        ("index.html", "css/site.css"), ("index.html", "img/logo.svg"), ("index.html", "js/app.js"),
        ("css/site.css", "img/logo.svg"),
    }  # fmt: skip
    sass = {
        "a/main.scss": """@use './base/colors';\n@import "mixins.scss";""",
        "a/base/_colors.scss": "",
        "a/_mixins.scss": "",
    }
    assert edges(sass) == {("a/main.scss", "a/base/_colors.scss"), ("a/main.scss", "a/_mixins.scss")}


def test_components_import_scripts_without_a_suffix():
    app = "<script>import Row from './Row.vue'; import { f } from '../lib/f'; import g from './g'</script>"
    found = edges({"src/App.vue": app, "src/Row.vue": "", "lib/f.ts": "", "src/g/index.js": ""}, "Vue")
    assert found == {("src/App.vue", "src/Row.vue"), ("src/App.vue", "lib/f.ts"), ("src/App.vue", "src/g/index.js")}


def test_a_path_from_the_root_needs_a_slash():
    files = {"proto/a/b.proto": 'import "proto/c/d.proto"; import "d.proto";', "proto/c/d.proto": "", "d.proto": ""}
    assert edges(files, "Protocol Buffer") == {("proto/a/b.proto", "proto/c/d.proto")}


def test_nothing_is_guessed():
    text = "see lib/log.sh or log.sh, http://x.org/lib/log.sh, ./lib/log.shx, 'lib/log', itself 'main.sh'\n"
    assert edges({"main.sh": text, "lib/log.sh": "", "log.sh": ""}) == set()
    assert edges({"main.sh": "./../../../etc/passwd ./a/../../x.sh", "etc/passwd": "", "x.sh": ""}) == set()


def test_long_and_hostile_texts_end():
    for text in (
        "a/" * 500_000,
        "./a" * 300_000,
        "'" * 1_000_000,
        '("' * 400_000,
        "../" * 300_000,
        "a/a.b" * 200_000,
        "x" * 1_000_000,
    ):
        start = time.process_time()
        scan_text(text)
        assert time.process_time() - start < 20
    assert len(scan_text("\n".join(f"./f{i}" for i in range(20_000))).imports) == 5_000
