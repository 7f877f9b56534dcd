"""The house: who may import whom, and what loads what."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "repo2ctx").rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Absolute names that a module imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


GRAPH = {module(p): imports(p) for p in SOURCES}


def ours(name: str) -> set[str]:
    return {i for i in GRAPH[name] if i in GRAPH and i != name and i != "repo2ctx"}


def test_packages_meet_only_at_files_and_the_shared_modules():
    for path in [*ROOT.glob("train/**/*.py"), *ROOT.glob("eval/**/*.py")]:
        package = path.relative_to(ROOT).parts[0]
        for name in imports(path):
            top = name.split(".")[0]
            assert top != {"train": "eval", "eval": "train"}[package], f"{path} imports {name}"
            if top == "repo2ctx" and name != "repo2ctx":
                assert name.split(".")[1] in (
                    "__version__",
                    "schema",
                    "dataset",
                    "reader",
                    "prompt",
                    "summarize",
                    "models",
                    "positions",
                    "config",
                    "records",
                    "errors",
                    "shards",
                    "tokens",
                    "progress",
                    "strict_yaml",
                ), f"{path} imports {name}"
    for name, found in GRAPH.items():
        assert not {i for i in found if i.split(".")[0] in ("train", "eval", "tests", "benchmarks")}, name


def test_pure_modules_stay_pure():
    assert ours("repo2ctx.errors") == set()
    assert ours("repo2ctx.records") == set()
    assert ours("repo2ctx.prompt") <= {"repo2ctx.records"}
    assert ours("repo2ctx.overlap") == set()
    assert ours("repo2ctx.positions") == {"repo2ctx.errors"}
    assert ours("repo2ctx.families") == set()
    assert ours("repo2ctx.packing") == set()
    assert ours("repo2ctx.ranked") == {"repo2ctx.records", "repo2ctx.tokens"}
    assert ours("repo2ctx.order") <= {"repo2ctx.records"}
    assert ours("repo2ctx.schema") == {"repo2ctx.records"}
    assert ours("repo2ctx.dataset") == {"repo2ctx.schema", "repo2ctx.mapped", "repo2ctx.manifest", "repo2ctx.errors"}
    assert ours("repo2ctx.mapped") == {"repo2ctx.errors"}
    assert ours("repo2ctx.reader") == {"repo2ctx.dataset", "repo2ctx.schema", "repo2ctx.errors"}
    assert ours("repo2ctx.manifest") <= {"repo2ctx.config", "repo2ctx.families"}
    assert ours("repo2ctx.graph") <= {"repo2ctx.records", "repo2ctx.languages", "repo2ctx.testnames"}


def test_only_the_pipeline_sees_every_stage():
    stages = {"repo2ctx.unit", "repo2ctx.packs", "repo2ctx.card", "repo2ctx.shards"}
    assert stages <= ours("repo2ctx.pipeline")
    for name in GRAPH:
        assert name == "repo2ctx.pipeline" or not stages <= ours(name), name
    users = {name for name in GRAPH if "repo2ctx.pipeline" in ours(name)}
    assert users == {"repo2ctx.cli"}


def test_only_crawl_reaches_the_network():
    for name, found in GRAPH.items():
        network = ("git", "requests", "urllib3", "httpx", "socket", "http", "httpx2", "openai")
        reaching = {i for i in found if i.split(".")[0] in network}
        assert (
            not reaching
            or name == "repo2ctx.crawl"
            or (name, reaching) == ("repo2ctx.teacher_client", {"openai", "httpx2"})
        ), name
    # the one other door: a tokenizer asked for by its Hub name
    assert {n for n, f in GRAPH.items() if any(i.startswith("huggingface_hub") for i in f)} == {
        "repo2ctx._hugging_face"
    }


def test_languages_know_only_their_contract():
    for name in GRAPH:
        if name.startswith("repo2ctx.languages."):
            allowed = {"repo2ctx.languages", "repo2ctx.records"}
            assert {i for i in ours(name) if not i.startswith("repo2ctx.languages.")} <= allowed, name


def test_no_cycles_at_import_time():
    def reach(name: str, seen: set[str]) -> set[str]:
        for other in ours(name) - seen:
            seen.add(other)
            reach(other, seen)
        return seen

    # languages import their package, which imports them only by name, when asked
    for name in GRAPH:
        assert name not in reach(name, set()), name


def test_no_module_is_named_like_a_standard_one():
    for path in SOURCES:
        assert path.stem == "__init__" or path.stem not in sys.stdlib_module_names, path


def test_the_command_line_leaves_the_heavy_packages_unloaded():
    code = "import repo2ctx.cli, sys; print([m for m in ('torch', 'transformers', 'pyarrow', 'git', 'enry', 'tiktoken') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT).strip() == "[]"
    code = "import repo2ctx.pipeline, repo2ctx.inspection, repo2ctx.reader, sys; print('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True, cwd=ROOT).strip() == "False"


def test_every_module_and_public_function_says_what_it_does():
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        assert ast.get_docstring(tree), path
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                short = isinstance(node, ast.FunctionDef) and len(node.body) <= 9
                contract = path.parent.name == "languages" and node.name in ("scan", "resolve")
                assert ast.get_docstring(node) or short or contract, f"{path}: {node.name}"
