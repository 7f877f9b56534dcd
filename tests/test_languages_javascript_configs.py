"""tsconfig and jsconfig change what names mean."""

import json


def package(**fields):
    return json.dumps(fields)


def config(**options):
    return json.dumps({"compilerOptions": options})


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
