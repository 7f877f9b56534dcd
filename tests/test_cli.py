"""The commands, as a user meets them: output, exit codes, one line per error."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import git, write_files

ROOT = Path(__file__).parents[1]
FILES = {
    "README.md": "# Notes\n\nKeeps plain-text notes and finds them by their words.\n",
    "app.py": "import store\n",
    "store.py": "import words\n",
    "words.py": "def f():\n    import app\n",
    "vendor/dep.py": "import helper\n",
    "vendor/helper.py": "",
    "lost.py": "from pkg import gone\nimport pkg.missing\n",
    "pkg/__init__.py": "",
}


def run(*args: object, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "repo2ctx.cli", *map(str, args)], capture_output=True, text=True, cwd=cwd, check=False,
        env={**os.environ, **env},
    )  # fmt: skip


@pytest.fixture
def repo(make_repo):
    return make_repo(FILES)


def test_graph_formats(repo):
    tsv = run("graph", repo)
    assert tsv.returncode == 0
    assert tsv.stdout.splitlines() == [
        "app.py\tstore.py\timport\thard",
        "lost.py\tpkg/__init__.py\timport\thard",
        "store.py\twords.py\timport\thard",
        "vendor/dep.py\tvendor/helper.py\timport\thard",
        "words.py\tapp.py\timport\tsoft",
    ]
    assert json.loads(run("graph", repo, "--format", "json").stdout)[0] == {
        "from": "app.py", "to": "store.py", "kind": "import", "strength": "hard",
    }  # fmt: skip
    dot = run("graph", repo, "--format", "dot").stdout
    assert dot.startswith("digraph {")
    assert '"words.py" -> "app.py" [label="import", style=dashed];' in dot
    assert run("graph", repo, "--unresolved").stdout == "lost.py\t2\tpkg.missing\n"


def test_order_lists_kept_files_dependencies_first(repo):
    paths = run("order", repo, "--paths").stdout.splitlines()
    assert paths.index("words.py") < paths.index("store.py") < paths.index("app.py")
    assert "vendor/dep.py" not in paths
    explained = run("order", repo).stdout
    assert "in a cycle of 3" in explained
    assert "needed by 1" in explained
    rows = json.loads(run("order", repo, "--json").stdout)
    assert [r["path"] for r in rows] == paths


def test_a_folder_inside_a_repository(repo):
    assert run("graph", repo / "vendor").stdout == "vendor/dep.py\tvendor/helper.py\timport\thard\n"
    assert run("order", "--paths", "pkg", cwd=repo, PYTHONPATH=str(ROOT)).stdout == "pkg/__init__.py\n"


def test_uncommitted_work_is_not_read(repo):
    write_files(repo, {"new.py": "import app\n"})
    assert "new.py" not in run("graph", repo).stdout


def test_names_that_would_break_a_line_are_quoted(make_repo):
    repo = make_repo({"a\tb.py": "import c\n", "c.py": "", "new\nline.py": "import c\n"})
    assert run("graph", repo).stdout.splitlines() == [
        '"a\\tb.py"\tc.py\timport\thard',
        '"new\\nline.py"\tc.py\timport\thard',
    ]
    assert '"new\\nline.py"' in run("order", repo, "--paths").stdout.splitlines()


def test_inspect_says_how_much_of_each_file_a_row_holds(make_repo, tmp_path):
    long = "".join(
        f'def step_{i}(x):\n    "The step {i}."\n    return x + {i} * 17 - x ** {i}\n\n\n' for i in range(60)
    )
    small = {f"lib/part_{i}.py": f"import core\n\nVALUE_{i} = core.step_{i}({i})\n" for i in range(20)}
    about = '[project]\nname = "n"\ndescription = "Counts the steps of a long walk"\n'
    repo = make_repo({"pyproject.toml": about, "core.py": long, **small})
    (tmp_path / "list.txt").write_text(f"{repo}\n")
    assert (
        run("build", "--repos", tmp_path / "list.txt", "--out", tmp_path / "out", "--lengths", "1k,8k").returncode == 0
    )
    shown = run("inspect", tmp_path / "out", "--length", "1k").stdout
    assert "files: 21 in full, 1 by its beginning\n" in shown
    assert re.search(r"^ +\d+  beginning  core.py$", shown, re.MULTILINE)
    assert re.search(r"^ +\d+             lib/part_0.py$", shown, re.MULTILINE)
    assert "files: 22 in full\n" in run("inspect", tmp_path / "out", "--style", "line").stdout
    assert "no row of length 8k with a paragraph" in run("inspect", tmp_path / "out", "--style", "paragraph").stdout


def test_build_then_look(repo, tmp_path):
    (tmp_path / "list.txt").write_text(f"{repo}\n")
    out = tmp_path / "out"
    done = run("build", "--repos", tmp_path / "list.txt", "--out", out, "--lengths", "2k")
    assert done.returncode == 0, done.stderr
    for words in ("files kept", "target-source 1", "vendored 2", "2k", "finished"):
        assert words in done.stdout
    assert "kept 5 files" in done.stderr
    stages = r"^seconds +[\d.]+: repositories [\d.]+, tables [\d.]+, documents [\d.]+, rows [\d.]+ *$"
    assert re.search(stages, done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^memory +[1-9]\d+ MB at most in one process;", done.stdout, re.MULTILINE), done.stdout
    shown = run("inspect", out)
    assert shown.returncode == 0
    assert "--- target ---\nKeeps plain-text notes and finds them by their words." in shown.stdout
    assert '"words.py"' in shown.stdout
    assert run("order", out, "--paths").stdout.splitlines() == [
        p for p in run("order", repo, "--paths").stdout.splitlines() if p != "README.md"
    ]
    assert "app.py\tstore.py\timport\thard" in run("graph", out).stdout
    nobody = run("inspect", out, "nobody")
    assert nobody.returncode == 2
    assert "'nobody' names no repository of" in nobody.stderr
    assert "no rows of length 4k" in run("inspect", out, "--length", "4k").stderr
    again = run("build", "--repos", tmp_path / "list.txt", "--out", out, "--lengths", "2k", "--json", "--quiet")
    assert json.loads(again.stdout)["unchanged"] is True
    assert again.stderr == ""


def test_a_failed_repository_ends_with_1_after_the_rest(repo, tmp_path):
    (tmp_path / "list.txt").write_text(f"{tmp_path}/missing\n{repo}\n")
    done = run("build", "--repos", tmp_path / "list.txt", "--out", tmp_path / "out", "--lengths", "2k")
    assert done.returncode == 1
    assert f"failed: {tmp_path}/missing (line 1)" in done.stdout
    assert (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["build", "--repos", "LIST", "--out", "OUT", "--lengths", "8q"], "length '8q'"),
        (["build", "--repos", "LIST", "--out", "OUT", "--lengths", ""], "length '': expected a number such as 8k"),
        (["build", "--repos", "LIST", "--out", "OUT", "--lengths", "8k,"], "length '': expected a number such as 8k"),
        (
            ["build", "--repos", "LIST", "--out", "OUT", "--lengths", "٢٠٤٨"],
            "length '٢٠٤٨': expected a number such as 8k",
        ),
        (
            ["build", "--repos", "LIST", "--out", "OUT", "--lengths", "２k"],
            "length '２k': expected a number such as 8k",
        ),
        (["build", "--repos", "LIST", "--out", "OUT", "--lengths", "32\u212a"], "expected a number such as 8k"),
        (["build", "--repos", "LIST", "--out", "OUT", "--lengths", "1" * 6000], f"length '{'1' * 40}': expected"),
        (["build", "--repos", "LIST", "--out", "OUT", "--tokenizer", ""], "--tokenizer: names none"),
        (["pack", "OUT", "--lengths", ""], "length '': expected a number such as 8k"),
        (["pack", "OUT", "--tokenizer", " ", "--replace"], "--tokenizer: names none"),
        (["pack", "OUT"], "nothing to do"),
        (["build", "--repos", "LIST", "--out", "OUT", "--tokenizer", "tiktoken:x"], "no such encoding"),
        (["build", "--repos", "MISSING", "--out", "OUT"], "check --repos"),
        (["build", "--repos", "BAD", "--out", "OUT"], "bad.txt:2: "),
        (["build", "--repos", "LIST", "--out", "OUT", "--config", "CONFIG"], "did you mean 'lengths'"),
        (["build", "--repos", "LIST", "--out", "OUT", "--config", "DATE"], "not YAML"),
        (["build", "--repos", "LIST", "--out", "OUT", "--config", "MIXED"], "expected a length such as"),
        (["build", "--repos", "LIST", "--out", "OUT", "--config", "INF"], "timeout_s"),
        (["build", "--repos", "HALF", "--out", "OUT"], "half of a surrogate pair"),
        (["build", "--repos", "LIST"], "--out"),
        (["build", "--repos", "LIST", "--out", "OUT", "--workers", "0"], "--workers"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_wrong_usage_ends_with_2_before_anything_is_made(repo, tmp_path, args, says):
    write_files(
        tmp_path,
        {
            "list.txt": f"{repo}\n",
            "bad.txt": f"{repo}\next::sh -c id\n",
            "c.yaml": "pack:\n  lenghts: 8k\n",
            "date.yaml": "a: 2001-99-99\n",
            "mixed.yaml": "pack: {lengths: [32k, 3.5]}\n",
            "inf.yaml": "parse: {timeout_s: .inf}\n",
            "half.txt": '{"repo": "./a", "summary": "\\ud800 x"}\n',
        },
    )
    places = {
        "LIST": "list.txt",
        "OUT": "out",
        "MISSING": "none.txt",
        "BAD": "bad.txt",
        "CONFIG": "c.yaml",
        "DATE": "date.yaml",
        "MIXED": "mixed.yaml",
        "INF": "inf.yaml",
        "HALF": "half.txt",
    }
    done = run(*[tmp_path / places[a] if a in places else a for a in args])
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_dry_run_prints_and_stops(repo, tmp_path):
    (tmp_path / "list.txt").write_text(f"{repo}@main\n")
    done = run("build", "--repos", tmp_path / "list.txt", "--out", tmp_path / "out", "--dry-run", "--lengths", "1m")
    assert done.returncode == 0
    assert "- 1048576" in done.stdout
    assert f"local/{tmp_path.name}/repo@main" in done.stdout
    assert not (tmp_path / "out").exists()


def test_places_that_are_no_repository(tmp_path):
    for command in ("graph", "order"):
        done = run(command, tmp_path)
        assert done.returncode == 1
        assert "not a git repository" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    done = run("inspect", tmp_path)
    assert done.returncode == 1
    assert "give the --out of a finished build" in done.stderr


def test_output_cannot_steer_a_terminal(make_repo, tmp_path):
    repo = make_repo(
        {
            "\x1b]0;owned\x07.py": "x = '\x1b[2J'\n",
            "README.md": FILES["README.md"] + "\n\x1b[31mred words in the prose here\n",
        }
    )
    (tmp_path / "list.txt").write_text(f"{repo}\n")
    done = run("build", "--repos", tmp_path / "list.txt", "--out", tmp_path / "out", "--lengths", "2k")
    outputs = [
        done,
        run("inspect", tmp_path / "out"),
        run("order", repo),
        run("graph", repo),
        run("order", tmp_path / "out", "--paths"),
    ]
    for output in outputs:
        assert output.returncode == 0
        assert "\x1b" not in output.stdout + output.stderr


def test_a_name_cannot_forge_a_line(make_repo, tmp_path):
    """A line break in a name is escaped wherever one line is meant."""
    forged = "\n      9,999             forged.py"
    files = {f"{n:02d}{forged}": f"x{n} = 'of some length'\n" * 60 for n in range(60)}
    files |= {f"w{forged}/package.json": '{"name": "w", "main": "m.js"}', f"w{forged}/m.js": "export const x = 1\n"}
    repo = make_repo({**files, "README.md": "# N\n\nKeeps notes and finds them again by their words.\n"})
    (tmp_path / "list.txt").write_text(f"{repo}\n")
    out = tmp_path / "out"
    assert run("build", "--repos", tmp_path / "list.txt", "--out", out, "--lengths", "2k").returncode == 0
    listing = run("inspect", out).stdout.partition("--- context ---")[0]
    assert listing.count("\\n      9,999") > 12  # those in the row and those that were left out
    assert "left out " in listing
    ordered = run("order", repo)
    assert ordered.stdout.count("\n") == len(files) + 1
    (out / "files" / f"x{forged}").write_text("")
    found = run("verify", out, "--quiet")
    assert "is not in manifest.json" in found.stdout
    for text in (listing, ordered.stdout, found.stdout):
        assert not any(line.startswith("      9,999") for line in text.splitlines())
    lost = run("inspect", tmp_path / f"gone{forged}")
    assert (lost.returncode, len(lost.stderr.splitlines())) == (1, 1)
    assert "gone\\n      9,999" in lost.stderr


def test_an_inherited_git_dir_does_not_redirect(repo, make_repo):
    other = make_repo({"other.py": "import os\n"}, "other")
    done = run("order", repo, "--paths", GIT_DIR=str(other / ".git"), GIT_INDEX_FILE="/nowhere")
    assert "app.py" in done.stdout
    assert "other.py" not in done.stdout


def test_a_hostile_local_config_is_never_read(repo, tmp_path):
    trap = tmp_path / "sprung"
    git(repo, "config", "core.fsmonitor", f"touch {trap}")
    git(repo, "config", "core.hooksPath", "/nowhere")
    git(repo, "config", "alias.ls-tree", f"!touch {trap}")
    (repo / ".git" / "config").write_text((repo / ".git" / "config").read_text() + "\n[broken\n")
    assert run("graph", repo).returncode == 0
    assert not trap.exists()


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "repo2ctx", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == run("--version").stdout
    done = subprocess.run(
        [sys.executable, "-m", "repo2ctx", "order", "/nowhere"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "no such directory" in done.stderr


def test_help_and_version():
    assert run("--version").stdout.startswith("repo2ctx ")
    for command in ("build", "graph", "order", "inspect"):
        assert run(command, "--help").returncode == 0


def test_paths_that_are_no_repository_say_so(tmp_path, make_repo):
    repo = make_repo(
        {
            "pkg/a.py": "import b\n",
            "pkg/b.py": "",
            "manifest.json": '{"name": "ext"}',
            "\udcff/s/a.py": "from . import b\n",
            "\udcff/s/b.py": "",
        }
    )
    (tmp_path / "loop").symlink_to("loop")
    (repo / "untracked").mkdir()
    for path, reason in [
        (tmp_path / "loop", "loop"),
        ("~nosuchuser/x", "home"),
        ("a" * 5_000, "too long"),
        (repo / "pkg/a.py", "is a file"),
        (repo / "untracked", "commit it"),
        (tmp_path / "gone", "no such directory"),
    ]:
        done = run("graph", path)
        assert done.returncode in (1, 2), path
        assert reason in done.stderr
        assert "Traceback" not in done.stderr
    assert run("graph", repo).stdout.count("\n") == 2
    assert run("graph", os.fsdecode(os.fsencode(str(repo)) + b"/\xff/s")).stdout.count("\n") == 1


def test_quoted_paths_are_not_taken_for_others(make_repo):
    repo = make_repo({"a\tb.py": "", '"a\\tb.py"': ""})
    assert len(set(run("order", repo, "--paths").stdout.splitlines())) == 2


def test_json_forms(make_repo):
    repo = make_repo({"pkg/__init__.py": "", "pkg/a.py": "from .gone import x\nfrom . import b\n", "pkg/b.py": ""})
    assert json.loads(run("graph", repo, "--unresolved", "--format", "json").stdout) == [
        {"from": "pkg/a.py", "line": 1, "name": ".gone"}
    ]
    assert run("graph", repo, "--unresolved", "--format", "dot").returncode == 2
    assert json.loads(run("order", repo, "--paths", "--json").stdout)[-1] == "pkg/a.py"
