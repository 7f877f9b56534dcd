"""The lists in data/ are what data/README.md says of them."""

import re
from collections import Counter
from pathlib import Path

from repo2ctx.config import load_config
from repo2ctx.repolist import read_list

DATA = Path(__file__).parents[1] / "data"
LIST = DATA / "lists" / "python-java-1000.txt"
CONFIG = DATA / "lists" / "python-java-1000.yaml"


def test_the_list_of_1000_names_as_many_repositories_each_once():
    specs, notices = read_list(LIST)
    assert notices == []
    assert len(specs) == 1000
    assert len({s.name.lower() for s in specs}) == 1000
    assert all(re.fullmatch(r"github\.com/[\w-]+/[\w.-]+", s.name) and s.ref is None for s in specs)


def test_no_owner_has_too_much_of_it():
    owners = Counter(s.name.split("/")[1].lower() for s in read_list(LIST)[0])
    owner, most = owners.most_common(1)[0]
    assert most <= 40
    said = (DATA / "README.md").read_text("utf-8")
    assert f"the most are of {owner}, {most}. There are {len(owners)} owners." in said


def test_its_groups_are_as_large_as_they_say():
    said: dict[str, int] = {}
    counted: Counter[str] = Counter()
    group = ""
    for line in LIST.read_text("utf-8").splitlines():
        if heading := re.fullmatch(r"# ([^:(]+?)(?: \(.*\))?: (\d+)", line):
            group = heading[1]
            said[group] = int(heading[2])
        elif line and not line.startswith("#"):
            counted[group] += 1
    assert counted == said
    rows = re.findall(r"^\| (Python|Java|other languages) \| (\d+) \|$", (DATA / "README.md").read_text("utf-8"), re.M)
    assert {name: int(number) for name, number in rows} == said


def test_its_configuration_bounds_licence_and_size():
    limits = load_config(CONFIG, {}).limits
    assert limits.licenses == ("permissive",)
    assert None not in (limits.max_files, limits.max_bytes, limits.min_files)


def test_the_list_of_long_rows_names_fixed_commits():
    specs, notices = read_list(DATA / "lists" / "million.txt")
    assert notices == []
    assert len({s.name for s in specs}) == len(specs) >= 10
    assert all(
        re.fullmatch(r"github\.com/[\w-]+/[\w.-]+", s.name) and re.fullmatch(r"[0-9a-f]{40}", s.ref) for s in specs
    )
