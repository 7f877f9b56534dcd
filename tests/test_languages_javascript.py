"""JavaScript and TypeScript names resolve as Node and the compiler would."""

import json

import pytest

from repo2ctx.parsing import scan


def package(**fields):
    return json.dumps(fields)


def config(**options):
    return json.dumps({"compilerOptions": options})


def imports(source, language="TypeScript"):
    return [(i.name, i.kind, i.strength) for i in scan(language, "a", source.encode()).imports]


# ---------------------------------------------------------------- what a file imports


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


# ---------------------------------------------------------------- relative names


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


# ---------------------------------------------------------------- tsconfig and jsconfig


def test_paths_without_base_url_start_at_their_config(edges_of):
    files = {
        "tsconfig.json": (
            '\ufeff{ // why\n "compilerOptions": { "paths": { "@/*": ["./src/*",],'
            ' /* "x": 1 */ "nav": ["./nav//Nav"], }, },\n}'
        ),
        "app/page.ts": "import '@/db'; import 'nav'\n",
        "src/db.ts": "",
        "app/src/db.ts": "",
        "nav/Nav.tsx": "",
    }
    assert edges_of(files) == {("app/page.ts", "src/db.ts"), ("app/page.ts", "nav/Nav.tsx")}


def test_a_comment_sign_in_a_json_string_is_no_comment(edges_of):
    files = {"tsconfig.json": '{"compilerOptions": {"paths": {"//*": ["a//*"], "b": ["b,]"]}}}', "x.ts": "import 'b'\n"}
    assert edges_of({**files, "b,].ts": ""}) == {("x.ts", "b,].ts")}


def test_paths_start_at_base_url_and_base_url_serves_bare_names(edges_of):
    files = {
        "tsconfig.json": config(baseUrl="src", paths={"~/*": ["deep/*"]}),
        "src/a.ts": "import '~/b'; import 'util/c'; import 'react'; import 'zlib'\n",
        "src/deep/b.ts": "",
        "src/util/c.ts": "",
        "src/zlib.ts": "",
        "react/index.ts": "",
    }
    assert edges_of(files) == {("src/a.ts", "src/deep/b.ts"), ("src/a.ts", "src/util/c.ts")}


def test_base_url_reaches_javascript_only_where_the_config_is_about_it(edges_of):
    files = {"a.js": "import 'b'\n", "b.js": ""}
    assert edges_of({**files, "tsconfig.json": config(baseUrl=".")}) == set()
    assert edges_of({**files, "tsconfig.json": config(baseUrl=".", allowJs=True)}) == {("a.js", "b.js")}
    assert edges_of({**files, "jsconfig.json": config(baseUrl=".")}) == {("a.js", "b.js")}


def test_base_url_does_not_turn_a_package_into_a_data_file(edges_of):
    assert edges_of({"tsconfig.json": config(baseUrl="."), "a.ts": "import 'jest'\n", "jest.json": "{}"}) == set()


def test_the_most_specific_pattern_wins_and_its_places_are_tried_in_order(edges_of):
    files = {
        "tsconfig.json": config(
            paths={"*": ["./any/*"], "@/*": ["./one/*", "./two/*"], "@/ui/*": ["./ui/*"], "@/x": ["./exact"]}
        ),
        "a.ts": "import '@/p'; import '@/q'; import '@/ui/r'; import '@/x'; import 'free'; import 'gone'\n",
        "one/p.ts": "", "two/p.ts": "", "two/q.ts": "", "one/ui/r.ts": "", "ui/r.ts": "", "one/x.ts": "",
        "exact.ts": "", "any/free.ts": "",
    }  # fmt: skip
    assert {t for _, t in edges_of(files)} == {"one/p.ts", "two/q.ts", "ui/r.ts", "exact.ts", "any/free.ts"}


def test_the_nearest_config_decides(edges_of):
    files = {
        "tsconfig.json": config(paths={"@/*": ["./src/*"]}),
        "src/x.ts": "",
        "sub/tsconfig.json": config(paths={"@/*": ["./lib/*"]}),
        "sub/lib/x.ts": "",
        "sub/a.ts": "import '@/x'\n",
        "bare/tsconfig.json": "{}",
        "bare/a.ts": "import '@/x'\n",
    }
    assert edges_of(files) == {("sub/a.ts", "sub/lib/x.ts")}


def test_extends_passes_options_on_relative_to_where_they_are_written(edges_of):
    files = {
        "base/tsconfig.base.json": config(paths={"@/*": ["./src/*"], "own/*": ["${configDir}/own/*"]}),
        "base/src/x.ts": "",
        "app/tsconfig.json": json.dumps({"extends": ["./tsconfig.other", "../base/tsconfig.base.json"]}),
        "app/tsconfig.other.json": config(paths={"@/*": ["./wrong/*"]}),
        "app/wrong/x.ts": "",
        "app/own/y.ts": "",
        "app/a.ts": "import '@/x'; import 'own/y'\n",
    }
    assert edges_of(files) == {("app/a.ts", "base/src/x.ts"), ("app/a.ts", "app/own/y.ts")}


def test_extends_may_name_a_package_of_the_repository(edges_of):
    files = {
        "cfg/package.json": package(name="@acme/cfg"),
        "cfg/tsconfig.json": config(paths={"@/*": ["${configDir}/src/*"]}),
        "app/tsconfig.json": json.dumps({"extends": "@acme/cfg/tsconfig.json"}),
        "app/src/x.ts": "",
        "app/a.ts": "import '@/x'\n",
    }
    assert edges_of(files) == {("app/a.ts", "app/src/x.ts")}


def test_configs_that_go_in_circles_or_are_broken_do_no_harm(edges_of):
    circle = {"extends": "./tsconfig.b.json", "references": [{"path": "."}, {"path": "./tsconfig.b.json"}, 3]}
    files = {
        "tsconfig.json": json.dumps(circle),
        "tsconfig.b.json": json.dumps(
            {**circle, "extends": ["./tsconfig.json", None], "compilerOptions": {"paths": 1}}
        ),
        "x/tsconfig.json": '{"compilerOptions": {"paths": {"@/*": "s/*", "a": [null]}, "baseUrl": [], "rootDirs": {}}}',
        "y/tsconfig.json": "[" * 100_000,
        "z/tsconfig.json": '{"compilerOptions": null, "extends": {}, "references": "x"} trailing',
        **{f"{d}/a.ts": "import './b'; import '@/q'; import 'r'\n" for d in "xyz"},
        **{f"{d}/b.ts": "" for d in "xyz"},
        "a.ts": "import './x/b'; import 'r'\n",
    }
    assert edges_of(files) == {("a.ts", "x/b.ts"), *((f"{d}/a.ts", f"{d}/b.ts") for d in "xyz")}


def test_referenced_configs_serve_the_files_below_them_only(edges_of):
    files = {
        "tsconfig.json": json.dumps({"files": [], "references": [{"path": "./tsconfig.app.json"}, {"path": "./pkg"}]}),
        "tsconfig.app.json": config(paths={"@/*": ["./src/*"]}),
        "pkg/tsconfig.json": config(paths={"#/*": ["./in/*"]}),
        "pkg/in/y.ts": "",
        "src/x.ts": "import '#/y'\n",
        "a.ts": "import '@/x'\n",
        "pkg/b.ts": "import '#/y'\n",
    }
    assert edges_of(files) == {("a.ts", "src/x.ts"), ("pkg/b.ts", "pkg/in/y.ts")}


def test_root_dirs_lie_over_one_another(edges_of):
    files = {
        "tsconfig.json": config(rootDirs=["src", "generated"]),
        "src/v/a.ts": "import './messages'; import './near'\n",
        "generated/v/messages.ts": "",
        "src/v/near.ts": "",
        "generated/v/near.ts": "",
    }
    assert edges_of(files) == {("src/v/a.ts", "generated/v/messages.ts"), ("src/v/a.ts", "src/v/near.ts")}


def test_a_config_of_another_name_serves_where_there_is_no_other(edges_of):
    files = {"tsconfig.base.json": config(paths={"@/*": ["./src/*"]}), "src/x.ts": "", "a/b.ts": "import '@/x'\n"}
    assert edges_of(files) == {("a/b.ts", "src/x.ts")}


def test_an_alias_that_leads_nowhere_is_unresolved_unless_it_is_a_dependency(unresolved_of):
    files = {
        "tsconfig.json": config(paths={"@acme/*": ["./p/*"], "react": ["./node_modules/@types/react"]}),
        "package.json": package(dependencies={"@acme/published": "1.0.0"}),
        "a.ts": "import '@acme/gone'; import '@acme/published'; import 'react'; import '@/gone'; import '@o/gone'\n",
    }
    assert unresolved_of(files) == {("a.ts", "@acme/gone"), ("a.ts", "@/gone")}


# ---------------------------------------------------------------- packages


def workspace(files, **root):
    return {"package.json": package(private=True, **({"workspaces": ["packages/*"]} | root)), **files}


def test_workspace_packages_are_found_by_their_names(edges_of):
    files = workspace(
        {
            "packages/a/package.json": package(name="@acme/a", main="main.js"),
            "packages/a/main.js": "",
            "packages/a/deep/x.js": "",
            "packages/b/package.json": package(name="b"),
            "packages/b/index.ts": "import '@acme/a'; import '@acme/a/deep/x'; import '@acme/ab'\n",
        }
    )
    assert {t for _, t in edges_of(files)} == {"packages/a/main.js", "packages/a/deep/x.js"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package.json", package(workspaces={"packages": ["./libs/**", "!libs/not"]})),
        ("pnpm-workspace.yaml", "packages:\n  - 'libs/**'\n  - '!libs/not'\ncatalog:\n  x: 1\n"),
        ("lerna.json", json.dumps({"packages": ["libs/*/*", "libs/a"]})),
    ],
)
def test_workspaces_are_declared_in_several_ways(edges_of, name, text):
    files = {
        name: text,
        "libs/deep/x/package.json": package(name="x"), "libs/deep/x/index.js": "",
        "libs/not/package.json": package(name="not"), "libs/not/index.js": "",
        "fixtures/f/package.json": package(name="f"), "fixtures/f/index.js": "",
        "libs/a/use.js": "import 'x'; import 'not'; import 'f'\n",
    }  # fmt: skip
    assert edges_of(files) == {("libs/a/use.js", "libs/deep/x/index.js")}


@pytest.mark.parametrize(
    ("wanted", "version", "found"),
    [
        ("workspace:*", None, True),
        ("^2.0.0", "2.3.4", True),
        ("*", None, True),
        ("^1.0.0 || ^2.0.0", "2.3.4", True),
        (">=1", "2.0.0", True),
        ("^1.0.0", "2.3.4", False),
        ("^2.0.0", None, False),
        ("npm:other@^2.0.0", "2.3.4", False),
        ("github:acme/lib", "2.3.4", False),
    ],
)
def test_a_declared_dependency_means_a_package_that_can_satisfy_it(edges_of, wanted, version, found):
    files = {
        "lib/package.json": package(name="lib", **({"version": version} if version else {})),
        "lib/index.js": "",
        "app/package.json": package(name="app", dependencies={"lib": wanted}),
        "app/a.js": "import 'lib'\n",
    }
    assert edges_of(files) == ({("app/a.js", "lib/index.js")} if found else set())


def test_a_file_dependency_names_its_folder(edges_of):
    files = {
        "fork/lib/package.json": package(name="renamed"), "fork/lib/index.js": "",
        "lib/package.json": package(name="lib", version="1.0.0"), "lib/index.js": "",
        "app/package.json": package(devDependencies={"lib": "file:../fork/lib"}),
        "app/src/a.js": "import 'lib'\n",
    }  # fmt: skip
    assert edges_of(files) == {("app/src/a.js", "fork/lib/index.js")}


def test_a_package_that_nothing_declares_is_not_meant(edges_of):
    files = {
        "package.json": package(name="root"),
        "test/fixtures/react/package.json": package(name="react", version="1.0.0"),
        "test/fixtures/react/index.js": "",
        "node_modules/vue/package.json": package(name="vue"),
        "node_modules/vue/index.js": "",
        "src/a.js": "import 'react'; import 'vue'\n",
    }
    assert edges_of(files) == set()


def test_exports_hide_what_they_do_not_name(edges_of, unresolved_of):
    files = workspace(
        {
            "packages/a/package.json": package(
                name="a",
                exports={".": "./src/main.js", "./f/*": "./src/f/*.js", "./f/secret/*": None, "./d/": "./src/d/"},
            ),
            **{f"packages/a/{p}.js": "" for p in ("index", "src/main", "src/f/x", "src/f/secret/y", "z", "src/d/w")},
            "packages/b/use.js": "import 'a'; import 'a/f/x'; import 'a/f/secret/y'; import 'a/z'; import 'a/d/w.js'\n",
        }
    )
    assert {t for _, t in edges_of(files)} == {
        "packages/a/src/main.js",
        "packages/a/src/f/x.js",
        "packages/a/src/d/w.js",
    }
    assert {name for _, name in unresolved_of(files)} == {"a/f/secret/y", "a/z"}


def test_conditions_follow_the_kind_of_import_and_of_file(edges_of):
    files = workspace(
        {
            "packages/a/package.json": package(
                name="a",
                exports={
                    "browser": "./b.js",
                    "types": "./t.d.ts",
                    "import": {"node": ["./m.mjs"]},
                    "require": "./c.cjs",
                },
            ),
            **{f"packages/a/{p}": "" for p in ("b.js", "t.d.ts", "m.mjs", "c.cjs")},
            "packages/b/e.mjs": "import 'a'\n",
            "packages/b/r.cjs": "require('a')\n",
            "packages/b/t.ts": "import 'a'\n",
        }
    )
    assert edges_of(files) == {
        ("packages/b/e.mjs", "packages/a/m.mjs"),
        ("packages/b/r.cjs", "packages/a/c.cjs"),
        ("packages/b/t.ts", "packages/a/t.d.ts"),
    }


def test_other_conditions_serve_when_ours_lead_to_no_file(edges_of):
    files = workspace(
        {
            "packages/a/package.json": package(
                name="a", exports={".": {"@acme/src": "./code/a.ts", "import": "./x.js"}}
            ),
            "packages/a/code/a.ts": "",
            "packages/b/b.ts": "import 'a'\n",
        }
    )
    assert edges_of(files) == {("packages/b/b.ts", "packages/a/code/a.ts")}


@pytest.mark.parametrize(
    ("fields", "name", "source"),
    [
        ({"main": "dist/index.js"}, "a", "src/index.ts"),
        ({"main": "dist/a.cjs.js"}, "a", "src/index.ts"),
        ({"module": "./lib/esm/main.mjs"}, "a", "src/main.ts"),
        ({"types": "dist-types/src/core.d.ts"}, "a", "src/core.ts"),
        ({"exports": "./build/modern/index.js"}, "a", "src/index.tsx"),
        ({"exports": {"./x": {"types": "./dist/x.d.ts", "default": "./dist/x.js"}}}, "a/x", "src/x/index.ts"),
        ({"exports": {"./*": {"import": "./dist/esm/*.mjs"}}}, "a/x", "src/x.ts"),
        ({"exports": {"./x": "./x.js"}}, "a/x", "src/x.ts"),
        ({"main": "dist/index.js"}, "a/dist/x", "src/x.ts"),
        ({"main": "./out/index.js"}, "a", "index.ts"),
    ],
)
def test_what_a_build_would_write_stands_for_its_source(edges_of, fields, name, source):
    files = workspace(
        {
            "packages/a/package.json": package(name="a", **fields),
            f"packages/a/{source}": "",
            "packages/b/b.ts": f"import '{name}'\n",
        }
    )
    assert edges_of(files) == {("packages/b/b.ts", f"packages/a/{source}")}


def test_a_built_file_in_the_repository_is_the_target(edges_of):
    files = workspace(
        {
            "packages/a/package.json": package(name="a", main="dist/x.js"),
            "packages/a/dist/x.js": "",
            "packages/a/src/x.ts": "",
            "packages/b/b.js": "import 'a'\n",
        }
    )
    assert edges_of(files) == {("packages/b/b.js", "packages/a/dist/x.js")}


def test_a_subpath_without_source_is_not_the_main_file(edges_of, unresolved_of):
    files = workspace(
        {
            "packages/a/package.json": package(name="a", exports={".": "./dist/index.js", "./x": "./dist/x.js"}),
            "packages/a/src/index.ts": "",
            "packages/b/b.ts": "import 'a/x'\n",
        }
    )
    assert edges_of(files) == set()
    assert unresolved_of(files) == {("packages/b/b.ts", "a/x")}


def test_a_package_may_import_itself_by_name_if_it_has_exports(edges_of):
    files = {"index.js": "", "test/t.js": "import 'self'\n"}
    assert edges_of({**files, "package.json": package(name="self")}) == set()
    assert edges_of({**files, "package.json": package(name="self", exports="./index.js")}) == {
        ("test/t.js", "index.js")
    }


def test_private_imports_belong_to_the_nearest_package(edges_of, unresolved_of):
    files = workspace(
        {
            "packages/a/package.json": package(
                name="a",
                imports={
                    "#in/*": "./src/*.ts",
                    "#dep": "dep",
                    "#ext": {"node": "fs", "default": "ext"},
                    "#no": "./no.js",
                },
                dependencies={"dep": "workspace:*"},
            ),
            "packages/a/src/x.ts": "import '#in/y'; import '#dep'; import '#ext'; import '#no'; import '#top'\n",
            "packages/a/src/y.ts": "",
            "packages/dep/package.json": package(name="dep"),
            "packages/dep/index.ts": "",
            "top.ts": "",
        },
        imports={"#top": "./top.ts"},
    )
    assert {t for _, t in edges_of(files)} == {"packages/a/src/y.ts", "packages/dep/index.ts"}
    assert {name for _, name in unresolved_of(files)} == {"#no", "#top"}


def test_of_two_packages_with_one_name_the_nearest_is_meant(edges_of):
    files = {
        **{f"{d}/lib/package.json": package(name="lib", version="1.0.0") for d in ("a", "b")},
        **{f"{d}/lib/index.js": "" for d in ("a", "b")},
        **{f"{d}/app/package.json": package(dependencies={"lib": "1"}) for d in ("a", "b")},
        **{f"{d}/app/x.js": "import 'lib'\n" for d in ("a", "b")},
    }
    assert edges_of(files) == {(f"{d}/app/x.js", f"{d}/lib/index.js") for d in ("a", "b")}


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"exports": [[], null, 1], "imports": {"#a": 3}, "name": 4}'])
def test_odd_package_files_do_no_harm(edges_of, text):
    files = {
        "package.json": text,
        "pnpm-workspace.yaml": "{[",
        "lerna.json": text,
        "p/package.json": '{"name": "p", "workspaces": {"packages": 3}, "main": [], "exports": {"./*": {"a": [{}]}}}',
        "p/a.ts": "import '#a'; import 'p'; import 'p/x'; import './b'; import '..'; import '@'; import '@/'\n",
        "p/b.ts": "",
    }
    assert edges_of(files) == {("p/a.ts", "p/b.ts")}
