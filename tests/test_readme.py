"""The README is true: its tree, its commands, its examples."""

import re
import shlex
from pathlib import Path

import yaml

from repo2ctx.config import load_config
from repo2ctx.repolist import parse_plain, read_list
from train import run as train_run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_tree_is_what_is_there():
    tree = section("Files")
    listed = set(re.findall(r"^      (\S+)  ", tree, re.MULTILINE))
    there = {p.name + ("/" if p.is_dir() else "") for p in (ROOT / "repo2ctx").iterdir()}
    assert listed == there - {"__init__.py", "__pycache__/"}
    for name in re.findall(r"^    (\S+/)  ", tree, re.MULTILINE):
        assert (ROOT / name).is_dir(), name
    for name in tree.split("\n    repo2ctx/")[0].split():
        assert (ROOT / name).exists(), name


def test_the_commands_exist():
    targets = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for target in re.findall(r"^    make (\w+)", README, re.MULTILINE):
        assert target in targets


def test_the_list_of_the_readme_can_be_read(tmp_path):
    block = section("Your own list").split("\n\n")[1]
    (tmp_path / "list.txt").write_text("\n".join(line.strip() for line in block.splitlines()))
    specs, notices = read_list(tmp_path / "list.txt")
    assert len(specs) == 7
    assert not notices


def test_the_configuration_of_the_readme_is_the_default(tmp_path):
    block = next(b for b in section("Your own list").split("\n\n") if "selection:" in b)
    text = "\n".join(line.strip() for line in block.splitlines())
    (tmp_path / "c.yaml").write_text(text.replace("32k, 1m", "32k"))
    assert load_config(tmp_path / "c.yaml", {}) == load_config(None, {})


def test_the_training_command_of_the_readme_is_understood(capsys, monkeypatch):
    command = section("Training").split("-m train.run ")[1].split("\n\n")[0].replace("\\\n", " ")
    monkeypatch.setattr("sys.argv", ["train.run", *shlex.split(command), "--dry-run"])
    monkeypatch.chdir(ROOT)
    assert train_run.main() == 0
    config = yaml.safe_load(capsys.readouterr().out)
    assert (config["data"]["length"], config["rope"]["target"], config["out"]) == (8 << 10, 32 << 10, "outputs/my")
    assert config["optim"]["steps"] == 100


def test_the_demo_list_can_be_read():
    specs, _ = read_list(ROOT / "data" / "lists" / "demo.txt")
    samples = {p.name for p in (ROOT / "data" / "sample").iterdir()}
    assert {Path(s.url).name for s in specs} == samples | {"repo2ctx"}
    assert parse_plain("./x", ROOT).local
