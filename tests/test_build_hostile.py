"""Repositories that mean harm: names, links, trees and files that a build must survive and not believe."""

import json
import re
import subprocess
from pathlib import Path

from conftest import git
from test_build import PYTHON, README, run

from repo2ctx.dataset import Dataset


def test_symbolic_links_are_names_and_nothing_more(make_repo, tmp_path):
    repo = make_repo(
        {"pkg/README.md": README, "src/real.js": "export const x = 1\n", "src/use.js": "import './link.js'\n"}
    )
    for name, to in [
        ("README.md", "pkg/README.md"),
        ("src/link.js", "./real.js"),
        ("out.md", "/etc/hostname"),
        ("up.md", "../../x"),
    ]:
        (repo / name).symlink_to(to)
    (repo / "loop").symlink_to("loop")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "links")
    run(tmp_path, [str(repo)])
    dataset = Dataset(tmp_path / "out")
    (repository,) = dataset.repositories()
    assert [t["source"] for t in repository["targets"]] == ["readme:README.md"]
    fates = {r["path"]: r["fate"] for r in dataset.rows("files")}
    assert fates["pkg/README.md"] == "target-source"
    assert {p for p, fate in fates.items() if fate == "symlink"} == {
        "README.md",
        "src/link.js",
        "out.md",
        "up.md",
        "loop",
    }
    assert [(r["from"], r["to"]) for r in dataset.rows("edges")] == [("src/use.js", "src/real.js")]


def mktree(repo: Path, lines: list[bytes]) -> str:
    """A tree object with whatever names, written past git's checks."""
    body = b"".join(mode + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in lines)
    done = subprocess.run(
        ["git", "-C", str(repo), "hash-object", "-t", "tree", "--literally", "-w", "--stdin"],
        input=body,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def commit_tree(repo: Path, tree: str) -> None:
    git(repo, "update-ref", "refs/heads/main", git(repo, "commit-tree", tree, "-m", "by hand").strip())


def test_names_that_no_checkout_could_have(make_repo, tmp_path):
    repo = make_repo({"a.py": "x = 1\n", "README.md": README})
    blob = git(repo, "rev-parse", "HEAD:a.py").strip()
    readme = git(repo, "rev-parse", "HEAD:README.md").strip()
    names = [
        b"/__init__.py",
        b"//x.ts",
        b"..",
        b"../x.py",
        b"/x.c",
        b"/x.go",
        b"/x.rs",
        b"n" * 5000 + b".py",
        b"a.py",
        b".git",
    ]
    commit_tree(repo, mktree(repo, [(b"100644", n, blob) for n in names] + [(b"100644", b"README.md", readme)]))
    result = run(tmp_path, [str(repo)])
    assert not result.failures
    rows = {r["path"]: r["fate"] for r in Dataset(tmp_path / "out").rows("files")}
    assert len(rows) == len(names) + 1
    assert {p for p, fate in rows.items() if fate == "kept"} == {"a.py", ".git"}
    assert sum(fate == "unusable-name" for fate in rows.values()) == 8


def test_a_tree_that_lists_more_than_any_memory_holds(make_repo, tmp_path):
    repo = make_repo({"a.py": "x = 1\n"})
    tree = mktree(repo, [(b"100644", b"%02d.py" % i, git(repo, "rev-parse", "HEAD:a.py").strip()) for i in range(20)])
    for _ in range(8):
        tree = mktree(repo, [(b"40000", b"%02d" % i, tree) for i in range(20)])
    commit_tree(repo, tree)
    other = make_repo(PYTHON, "other")
    result = run(tmp_path, [str(repo), str(other)])
    assert "files; leave it out" in result.failures[0].reason
    assert result.repositories == 1


BOMBS = {
    "pyproject.toml": ["a = " + "[" * 100_000, "a = " + "1" * 5000, '[project]\ndescription = "x"\n' + "\n" * 900_000, "a" + ".a" * 300_000 + "=1"],
    "Cargo.toml": ["a = " + "1" * 5000],
    "setup.cfg": ["[metadata]\na" + " " * 900_000 + "b"],
    "package.json": ['{"description": "one half \\ud800 of a pair of words"}', "[" * 100_000],
    "pom.xml": ['<?xml version="1.0" encoding="rot13"?><a/>', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "<!--" + "<description>" * 60_000 + "-->"],
    "README.md": ["[" * 300_000, "[a\n" * 200_000],
    "README.rst": [".. |a0| replace:: |a1| |a1|\n" + "".join(f".. |a{i}| replace:: |a{i + 1}| |a{i + 1}|\n" for i in range(1, 30)) + ".. |a30| replace:: x\n\n|a0|\n", "*a " * 200_000],
    "tsconfig.json": ['{"extends": "./tsconfig.json", "compilerOptions": {"paths": {"*": ["*"]}}}', "[" * 100_000],
    "go.mod": ["module " + "a/" * 300_000],
}  # fmt: skip


def test_bombs_in_the_files_that_we_read_cost_no_repository(make_repo, tmp_path):
    lines = []
    for name, texts in BOMBS.items():
        for i, text in enumerate(texts):
            repo = make_repo(
                {name: text, "a.py": "import b\n", "b.py": "", "c.ts": "import './d'", "d.ts": ""}, f"{name}-{i}"
            )
            lines.append(json.dumps({"repo": str(repo), "summary": "What the list says of it."}))
    result = run(tmp_path, lines, workers=2, parse={"timeout_s": 2})
    assert not result.failures
    assert result.packed["8k"]["documents"] == len(lines)
    edges = {(r["from"], r["to"]) for r in Dataset(tmp_path / "out").rows("edges")}
    assert edges == {("a.py", "b.py"), ("c.ts", "d.ts")}


def test_a_date_in_a_readme_is_not_the_time_of_the_build(make_repo, tmp_path):
    text = "Built at |now| with very many useful words.\n\n.. |now| date:: %H:%M:%S %f\n"
    run(tmp_path, [str(make_repo({"README.rst": text, "a.py": "x = 1\n"}))])
    (row,) = Dataset(tmp_path / "out").repositories()
    assert not any(re.search(r"\d", target["text"]) for target in row["targets"])


def test_hostile_names_and_contents(make_repo, tmp_path):
    files = {
        "ok.py": "import sys\n", "tab\there.py": "x = 1\n", "new\nline.py": "x = 2\n", "\udcff.py": "x = 3\n", "\\xff.py": "x = 4\n",
        'quo"te.py': "x = 5\n", "forge.py": '== aaaaaa "fake.py"\n', "nul.py": b"a\0b", "bom.py": b"\xef\xbb\xbfx = 6\n",
        "special.txt": "<|endoftext|><|im_end|>", "deep.js": "(" * 50_000, "README.md": README,
    }  # fmt: skip
    result = run(tmp_path, [str(make_repo(files))])
    assert not result.failures
    rows = {r["path"]: r for r in Dataset(tmp_path / "out").rows("files")}
    assert len(rows) == len(files) - 1  # the two names that read alike
    assert rows["special.txt"]["text"] == "<|endoftext|><|im_end|>"
    assert rows["bom.py"]["text"] == "\ufeffx = 6\n"
    assert rows["nul.py"]["fate"] == "binary"
    fates = [r["fate"] for r in Dataset(tmp_path / "out").rows("files") if r["path"] == "\\xff.py"]
    assert sorted(fates) == ["kept", "name-collision"]


def test_no_file_can_forge_another(make_repo, tmp_path):
    run(tmp_path, [str(make_repo({**PYTHON, "forge.py": "\n".join(f'== {i:06x} "x.py"' for i in range(3000))}))])
    dataset = Dataset(tmp_path / "out")
    (repository,) = dataset.repositories()
    assert not any(repository["boundary"] in (r["text"] or "") for r in dataset.rows("files"))
