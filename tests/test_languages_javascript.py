"""What a JavaScript or TypeScript file imports, and what relative names mean."""

import json

import pytest

from repo2ctx.parsing import scan


def package(**fields):
    return json.dumps(fields)


def imports(source, language="TypeScript"):
    return [(i.name, i.kind, i.strength) for i in scan(language, "a", source.encode()).imports]


def test_every_form_of_static_import_is_hard():
    source = (
        "import './a'\nimport b from './b'\nimport * as c from \"./c\"\nimport { d, type D } from './d'\n"
        "export { e } from './e'\nexport * from './f'\nexport * as g from './g'\nimport h = require('./h')\n"
        "import i, { type I } from './i'\nimport { default as j } from './j' with { type: 'json' }\n"
    )
    assert imports(source) == [(f"./{n}", "require" if n == "h" else "import", "hard") for n in "abcdefghij"]


@pytest.mark.parametrize(
    "statement",
    [
        "import type { T } from './t'",
        "import type T from './t'",
        "import type * as T from './t'",
        "import { type T, type U } from './t'",
        "export type { T } from './t'",
        "export type * from './t'",
        "export { type T } from './t'",
        "import type T = require('./t')",
        "let x: import('./t').T",
        "type T = typeof import('./t')",
    ],
)
def test_type_only_forms_are_soft(statement):
    ((name, _, strength),) = imports(statement)
    assert (name, strength) == ("./t", "soft")


@pytest.mark.parametrize(
    "statement",
    [
        "import type from './t'",
        "import type, { x } from './t'",
        "import { type } from './t'",
        "import { type as kind } from './t'",
        "import T, { type U } from './t'",
        "import {} from './t'",
    ],
)
def test_a_value_that_is_called_type_is_hard(statement):
    assert imports(statement) == [("./t", "import", "hard")]


def test_flow_type_imports_are_soft():
    assert imports("import type { T } from './t'; import typeof U from './u'", "JavaScript") == [
        ("./t", "import", "soft"),
        ("./u", "import", "soft"),
    ]


@pytest.mark.parametrize(
    ("source", "strength"),
    [
        ("const a = require('./x')", "hard"),
        ("if (process.env.A) { require(`./x`) } else { }", "hard"),
        ("try { a = require(/* why */ './x') } catch { }", "hard"),
        ("class A { b = new (require('./x'))() }", "hard"),
        ("(function () { require('./x') })()", "hard"),
        ("(function () { require('./x') }).call(this)", "hard"),
        ("!(() => { require('./x') })()", "hard"),
        ("function f() { return require('./x') }", "soft"),
        ("const f = () => require('./x')", "soft"),
        ("class A { m() { require('./x') } }", "soft"),
        ("const o = { get a() { return require('./x') } }", "soft"),
        ("define(function (require) { require('./x') })", "soft"),
        ("(function () { function g() { require('./x') } })()", "soft"),
    ],
)
def test_require_is_soft_inside_a_function_that_waits(source, strength):
    assert imports(source, "JavaScript") == [("./x", "require", strength)]


def test_dynamic_imports_are_soft_and_need_a_literal():
    source = (
        "import('./a'); const b = await import(/* webpackChunkName: 'b' */ './b')\nimport(`./c`)\n"
        "import(`./${d}`); import('./e' + f); import(g)\n"
    )
    assert imports(source) == [(f"./{n}", "import", "soft") for n in "abc"]


def test_what_only_looks_like_an_import_is_none():
    source = (
        "require.resolve('./a'); jest.mock('./b'); loader.require('./c')\n"
        "require('./d' + e); require(f ? './g' : './h')\n"
        "// import './i'\n/* require('./j') */\nconst k = \"import './k'\"; const l = `import x from './l'`\n"
        "Array.from('./m'); x.import('./n'); require(''); import.meta.glob('./o')\n"
    )
    assert imports(source, "JavaScript") == []


def test_reference_paths_count_above_the_first_statement_and_need_no_dot():
    source = (
        "#!/usr/bin/env node\n// why\n/// <reference path='globals.d.ts' />\n/// <reference types=\"node\" />\n"
        '/// <reference path="../first.ts"/>\nlet x = 1\n/// <reference path="late.ts" />\n'
    )
    assert imports(source) == [("./globals.d.ts", "import", "soft"), ("../first.ts", "import", "hard")]


def test_imports_survive_syntax_errors_and_bytes_that_are_no_text():
    source = "import a from './a'\nfoo((((\nconst = = ; }}}\nimport {b} from './b'\nvar c = require('./c')\n"
    assert [name for name, _, _ in imports(source, "JavaScript")] == ["./a", "./b", "./c"]
    found = scan("JavaScript", "a", b"\xff\xfe\x00 import x from './x'; import y from './\xff'")
    assert [i.name for i in found.imports] == ["./x", "./\ufffd"]


def test_imports_in_tsx_and_at_their_lines():
    source = "const A = lazy(() => import('./a'))\nconst C = () => <p>import d from './d'</p>\n\nimport B from './b'\n"
    found = scan("TSX", "a.tsx", source.encode()).imports
    assert [(i.name, i.line) for i in found] == [("./a", 1), ("./b", 4)]


def test_a_very_deep_expression_hides_nothing():
    source = "x = " + "+\n".join(f"'{i}'" for i in range(6000)) + "\nrequire('./a')\n"
    assert imports(source, "JavaScript") == [("./a", "require", "hard")]


def test_a_typescript_file_prefers_source_then_declarations_then_javascript(edges_of):
    files = {
        "use.ts": "import './a'; import './b'; import './c'; import './d'; import './e'\n",
        "a.ts": "", "a.tsx": "", "a.js": "", "b.tsx": "", "b.d.ts": "", "c.d.ts": "", "c.js": "", "d.js": "",
        "e.vue": "",
    }  # fmt: skip
    assert {t for _, t in edges_of(files)} == {"a.ts", "b.tsx", "c.d.ts", "d.js", "e.vue"}


def test_a_javascript_file_prefers_javascript(edges_of):
    files = {
        "use.js": "require('./a'); require('./b'); require('./c'); require('./d.svelte')\n",
        "a.js": "", "a.ts": "", "a.json": "", "b.json": "", "b.d.ts": "", "c.ts": "", "c.d.ts": "", "d.svelte": "",
    }  # fmt: skip
    assert {t for _, t in edges_of(files)} == {"a.js", "b.json", "c.ts", "d.svelte"}


def test_a_written_js_ending_may_mean_its_source(edges_of):
    files = {
        "use.ts": "import './a.js'; import './b.js'; import './c.mjs'; import './d.cjs'; import './e.js'\n",
        "a.ts": "", "a.js": "", "b.tsx": "", "c.mts": "", "d.cts": "", "e.js": "",
        "use.js": "import './a.js'; import './f.js'\n", "f.ts": "",
    }  # fmt: skip
    assert edges_of(files) == {
        *(("use.ts", t) for t in ("a.ts", "b.tsx", "c.mts", "d.cts", "e.js")),
        ("use.js", "a.js"),
        ("use.js", "f.ts"),
    }


def test_a_file_comes_before_a_folder_unless_a_slash_says_otherwise(edges_of):
    files = {
        "lib/use.js": "require('./a'); require('./b/'); require('.'); require('..'); require('./dots/..')\n",
        "lib/a.js": "", "lib/a/index.js": "", "lib/b.js": "", "lib/b/index.js": "", "lib/index.js": "",
        "lib.js": "", "index.js": "",
    }  # fmt: skip
    assert {t for _, t in edges_of(files)} == {"lib/a.js", "lib/b/index.js", "lib/index.js", "index.js"}


def test_a_folder_means_the_main_file_of_its_package(edges_of):
    files = {
        "use.js": "require('./a'); require('./b'); require('./c'); require('./d')\n",
        "a/package.json": package(main="go"), "a/go.js": "", "a/index.js": "",
        "b/package.json": package(main="lib"), "b/lib/index.js": "",
        "c/package.json": package(module="m.mjs"), "c/m.mjs": "",
        "d/package.json": "{ broken", "d/index.js": "",
    }  # fmt: skip
    assert {t for _, t in edges_of(files)} == {"a/go.js", "b/lib/index.js", "c/m.mjs", "d/index.js"}


def test_typescript_takes_the_types_of_a_package_folder(edges_of):
    files = {
        "use.ts": "import './a'\n",
        "use.js": "import './a'\n",
        "a/package.json": package(main="m.js", types="t.d.ts"), "a/m.js": "", "a/t.d.ts": "",
    }  # fmt: skip
    assert edges_of(files) == {("use.ts", "a/t.d.ts"), ("use.js", "a/m.js")}


def test_a_query_after_a_name_is_no_part_of_it(edges_of):
    assert edges_of({"a.ts": "import s from './b.css?inline'\n", "b.css": ""}) == {("a.ts", "b.css")}


def test_relative_names_that_lead_nowhere_are_unresolved(unresolved_of, edges_of):
    files = {"a/b.ts": "import './gone'; import '../../out'; import './b'; import './c.js'\n", "a/c.jsx": ""}
    assert unresolved_of(files) == {("a/b.ts", "./gone"), ("a/b.ts", "../../out"), ("a/b.ts", "./c.js")}
    assert edges_of(files) == set()


def test_bare_names_and_builtins_are_external_whatever_folders_are_called(edges_of, unresolved_of):
    files = {
        "lodash/index.js": "import './pick'\n",
        "lodash/pick.js": "import 'lodash'; import 'fs'; import 'node:path'; import 'lodash/pick'; import '/abs'\n",
        "fs.js": "import 'https://example.com/x.js'\n",
        "fs/index.js": "",
        "package.json": package(name="demo", dependencies={"lodash": "^4.0.0"}),
    }
    assert edges_of(files) == {("lodash/index.js", "lodash/pick.js")}
    assert unresolved_of(files) == set()
