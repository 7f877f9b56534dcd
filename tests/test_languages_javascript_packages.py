"""Names of packages resolve as Node and the compiler would."""

import json

import pytest


def package(**fields):
    return json.dumps(fields)


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


def test_a_built_file_named_by_its_path_stands_for_its_source(edges_of, unresolved_of):
    files = {
        "packages/farm/package.json": package(name="farm", main="index.js"),
        "packages/farm/index.js": "module.exports = require('./dist/farm.cjs.js')\nrequire('./lost/farm.js')\nrequire('./dist/gone.js')\n",
        "packages/farm/src/index.ts": "",
        "dist/x.js": "",
    }
    assert edges_of(files) == {("packages/farm/index.js", "packages/farm/src/index.ts")}
    assert unresolved_of(files) == {("packages/farm/index.js", name) for name in ("./lost/farm.js", "./dist/gone.js")}


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
