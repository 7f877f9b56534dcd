"""Python imports resolve as the interpreter would."""

from conftest import graph_of_files


def test_relative_imports_name_modules_or_the_package(edges_of):
    edges = edges_of(
        {
            "depot/__init__.py": "x = 0\n",
            "depot/sibling.py": "W = 1\n",
            "depot/yard/__init__.py": "x = 1\n",
            "depot/yard/sibling.py": "S = 2\n",
            "depot/yard/file.py": "from . import sibling, x\n",
            "depot/yard/other.py": "from .. import x\nfrom ..sibling import W as w\n",
        }
    )
    assert edges == {
        ("depot/yard/file.py", "depot/yard/sibling.py"),
        ("depot/yard/file.py", "depot/yard/__init__.py"),
        ("depot/yard/other.py", "depot/__init__.py"),
        ("depot/yard/other.py", "depot/sibling.py"),
    }


def test_standard_library_names_are_never_files_of_the_repository(edges_of):
    edges = edges_of(
        {
            "proj/__init__.py": "",
            "proj/logging/__init__.py": "LEVEL = 3\n",
            "proj/store.py": "import json\n",
            "json.py": "",
            "proj/core.py": "import logging\nfrom proj.store import DATA\n",
        }
    )
    assert edges == {("proj/core.py", "proj/store.py")}


def test_roots_come_from_src_layout_and_metadata(edges_of):
    files = {
        "src/app/__init__.py": "",
        "src/app/main.py": "import app.store\nimport helpers\n",
        "src/app/store.py": "",
        "code/helpers.py": "",
        "pyproject.toml": '[tool.setuptools.package-dir]\n"" = "code"\n',
        "tests/test_main.py": "from app.main import run\nimport conftest\n",
        "tests/conftest.py": "",
    }
    assert edges_of(files) == {
        ("src/app/main.py", "src/app/store.py"),
        ("src/app/main.py", "code/helpers.py"),
        ("tests/test_main.py", "src/app/main.py"),
        ("tests/test_main.py", "tests/conftest.py"),
    }


def test_imports_of_a_program_and_by_name_are_soft(strengths_of):
    files = {
        "p/__init__.py": "", "p/a.py": "", "p/b.py": "", "p/c.py": "", "p/d.py": "",
        "run.py": (
            "import importlib\nfrom importlib import import_module\n\nif __name__ == '__main__':\n    from p import a\n"
            "if name == '__main__':\n    from p import d\n"
            "importlib.import_module('p.b')\nimport_module(\"p.c\", None)\nimport_module(p.d)\n"
            "# import_module('p.__init__')\nx = \"import_module('p.__init__')\"\n"
        ),
    }  # fmt: skip
    assert strengths_of(files) == {
        ("run.py", "p/a.py"): "soft", ("run.py", "p/b.py"): "soft", ("run.py", "p/c.py"): "soft", ("run.py", "p/d.py"): "hard",
    }  # fmt: skip


def test_tests_need_the_conftests_above_them():
    files = {
        "tests/conftest.py": "", "tests/deep/conftest.py": "", "tests/deep/test_a.py": "", "tests/test_b.py": "from . import conftest\n",
        "tests/deep/data.py": "", "tests/other/conftest.py": "", "conftest.py": "", "tests/__init__.py": "",
    }  # fmt: skip
    edges = {(e.source, e.target, e.kind, e.strength) for e in graph_of_files(files).edges if e.kind == "test"}
    assert edges == {
        (source, target, "test", "soft")
        for source, targets in {
            "tests/deep/test_a.py": ["conftest.py", "tests/conftest.py", "tests/deep/conftest.py"],
            "tests/test_b.py": ["conftest.py", "tests/conftest.py"],
            "tests/deep/conftest.py": ["conftest.py", "tests/conftest.py"],
            "tests/other/conftest.py": ["conftest.py", "tests/conftest.py"],
            "tests/conftest.py": ["conftest.py"],
        }.items()
        for target in targets
    }


def test_imports_that_do_not_run_at_load_time_are_soft(strengths_of):
    files = {
        "p/__init__.py": "",
        "p/a.py": (
            "from typing import TYPE_CHECKING\nfrom . import b\n"
            "if TYPE_CHECKING:\n    from . import c\nelse:\n    from . import d\n"
            "def f():\n    from . import e\n"
            "try:\n    from . import g\nexcept ImportError:\n    g = None\n"
        ),
        **{f"p/{n}.py": "" for n in "bcdeg"},
    }
    assert strengths_of(files) == {
        ("p/a.py", "p/b.py"): "hard",
        ("p/a.py", "p/c.py"): "soft",
        ("p/a.py", "p/d.py"): "hard",
        ("p/a.py", "p/e.py"): "soft",
        ("p/a.py", "p/g.py"): "hard",
    }


def test_namespace_packages_and_stubs(edges_of):
    files = {
        "ns/part/tool.py": "",
        "ns/other.py": "from ns.part import tool\nimport ns.part\n",
        "fast.pyi": "",
        "use.py": "import fast\n",
    }
    assert edges_of(files) == {("ns/other.py", "ns/part/tool.py"), ("use.py", "fast.pyi")}


def test_what_looks_internal_and_leads_nowhere_is_unresolved(unresolved_of):
    files = {"p/__init__.py": "", "p/a.py": "import p.gone\nfrom .lost import x\nimport numpy\nfrom .. import top\n"}
    assert unresolved_of(files) == {("p/a.py", "p.gone"), ("p/a.py", ".lost"), ("p/a.py", "..")}
