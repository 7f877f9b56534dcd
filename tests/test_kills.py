"""Builds that are killed at every kind of moment, and lose power there: the same command again gives the same bytes.

Every kill is a SIGKILL of all processes at once, from within, before or after something was done to a file (`injected.py`).
"""

import itertools
import json
import random
import re
import shutil
from pathlib import Path

import pytest
from conftest import git, make_repository, write_files
from faults import Watched
from test_build import Silent, hashes

from repo2ctx.config import BuildConfig
from repo2ctx.crawl import CrawlOptions
from repo2ctx.pipeline import build
from repo2ctx.repolist import read_list
from repo2ctx.shards import finish_folder, partial_folder
from repo2ctx.state import WORK
from repo2ctx.verify import verify

STAGES = (  # the moments that a killed build must survive, as patterns of labels
    r"after mkdir out$",
    r"before rename out/.build/state.json",
    r"after rename out/.build/state.json",
    r"before write \S*/spool/\S*partial$",
    r"before fsync \S*units/\S*/files/\S*partial$",
    r"before rename \S*units/\S*/files/00000.arrow",
    r"before unlink \S*/spool/00000.arrow",
    r"before write \S*units/\S*summary.json.partial",
    r"after rename \S*units/\S*summary.json",
    r"before rename out/.build/units/UNIT$",
    r"after rename out/.build/units/UNIT$",
    r"before write out/files/\S*partial$",
    r"before rename out/files/00000.arrow",
    r"after rename out/files/00000.arrow",
    r"before rename out/.build/documents/UNIT[^/]*$",
    r"before write out/packed/2k/train/\S*partial$",
    r"after rename out/packed/2k/train/00000.arrow",
    r"before fsync out/packed/2k/train$",
    r"after rename out/README.md",
    r"before rename out/manifest.json",
    r"after rename out/manifest.json",
    r"after rename out/.build/.gone-units",
    r"before unlink \S*gone-units/UNIT/repository.json",
    r"before unlink out/.build/lock",
    r"before rmdir out/.build$",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """(list file, hashes of the undisturbed build, its run, the repositories' names)."""
    folder = tmp_path_factory.mktemp("whole")
    names = []
    for number, said in enumerate(
        ["Keeps notes and finds them again", "Plays the songs of a whole folder", "Counts stamps"]
    ):
        name = f"repo{number}"
        files = {
            "pyproject.toml": f'[project]\nname = "n"\ndescription = "{said} by their words"\n',
            "a.py": f"x = {number}\n",
            "b.py": "import a\n",
        }
        names.append(str(make_repository(folder / name, files)))
    (folder / "list.txt").write_text("\n".join(names) + "\n")
    watched = Watched(folder / "watched")
    done = watched.run(command(folder / "list.txt", watched))
    assert done.returncode == 0, done.stderr
    return folder / "list.txt", hashes(watched.place / "out"), done, watched


def command(listed, watched, workers=1):
    return [
        "build",
        "--repos",
        listed,
        "--lengths",
        "2k",
        "--workers",
        workers,
        "--no-cache",
        "--out",
        watched.place / "out",
    ]


def units(out) -> set[str]:
    """The finished repositories."""
    places = (out / WORK / "units").glob("[!.]*/repository.json")
    return {json.loads(place.read_text())["name"] for place in places}


def crawled(run) -> set[str]:
    return set(re.findall(r"^(\S+): kept ", run.stderr, re.MULTILINE))


def chain(whole, tmp_path, moments, aftermath=None, seed=0):
    """One build killed at one moment after another, never undisturbed for longer; started anew when it has come to its end."""
    listed, wanted, _, _ = whole
    watched = Watched(tmp_path / "watched")
    out = watched.place / "out"
    kills = 0
    for moment in moments:
        for _ in range(2):
            had = units(out)
            killed = watched.run(command(listed, watched), kill=moment)
            assert not crawled(killed) & had, "a finished repository was done again"
            assert "Traceback" not in killed.stderr
            if killed.returncode == -9:
                kills += 1
                break
            # This moment has passed already: what was left was finished; from the start it comes.
            assert killed.returncode == 0, killed.stderr
            assert hashes(out) == wanted
            shutil.rmtree(out)
        else:
            raise AssertionError(f"{moment} does not come")
        if aftermath is not None:
            aftermath(watched, killed.log)
    had = units(out)
    done = watched.run(command(listed, watched))
    assert done.returncode == 0, done.stderr
    assert not crawled(done) & had
    assert hashes(out) == wanted
    assert not (out / WORK).exists()
    assert kills == len(moments)


def chosen(whole, patterns):
    labels = whole[2].labels
    found = {pattern: next((label for label in labels if re.match(pattern, label)), None) for pattern in patterns}
    assert None not in found.values(), [pattern for pattern, label in found.items() if label is None]
    return list(found.values())


@pytest.mark.parametrize("stages", [STAGES[::2], pytest.param(STAGES[1::2], marks=pytest.mark.slow)])
def test_a_build_killed_at_every_stage_goes_on_to_the_same_bytes(whole, tmp_path, stages):
    chain(whole, tmp_path, chosen(whole, stages))


def test_a_power_cut_leaves_files_without_what_was_not_synced(whole, tmp_path):
    chain(whole, tmp_path, chosen(whole, STAGES[2::4]), Watched.lose_unsynced_data)


def test_a_power_cut_leaves_only_names_that_were_synced(whole, tmp_path):
    chain(whole, tmp_path, chosen(whole, STAGES[1::4]), Watched.lose_all_unsynced)


@pytest.mark.slow
@pytest.mark.parametrize("aftermath", [None, Watched.lose_unsynced_data, Watched.lose_all_unsynced])
@pytest.mark.parametrize("part", range(6))
def test_a_build_killed_at_every_moment_at_all(whole, tmp_path, aftermath, part):
    chain(whole, tmp_path, whole[2].labels[part::6], aftermath)


def test_a_build_killed_at_random_times(whole, tmp_path):
    listed, wanted, _, _ = whole
    watched = Watched(tmp_path / "watched")
    dice = random.Random(7)
    kills = 0
    for _ in range(4):
        had = units(watched.place / "out")
        run = watched.run(command(listed, watched, workers=2), kill_after_s=dice.uniform(0.2, 4))
        assert not crawled(run) & had
        kills += run.returncode == -9
    assert kills >= 2
    assert watched.run(command(listed, watched)).returncode == 0
    assert hashes(watched.place / "out") == wanted


def test_what_a_build_says_is_finished_outlasts_a_power_cut(whole, tmp_path):
    listed, wanted, _, _ = whole
    watched = Watched(tmp_path / "watched")
    done = watched.run(command(listed, watched))
    watched.lose_all_unsynced(done.log)
    found = hashes(watched.place / "out")
    assert {name: found.get(name) for name in wanted} == wanted
    again = watched.run(command(listed, watched))
    assert "kept" not in again.stderr
    assert hashes(watched.place / "out") == wanted
    assert not (watched.place / "out" / WORK).exists()


def test_files_are_synced_before_they_are_renamed_and_their_folder_after(whole):
    log = whole[2].log
    synced, renames = set(), 0
    for number, entry in enumerate(log):
        if (entry["when"], entry["kind"]) == ("after", "fsync"):
            synced.add(entry["ino"])
        elif (entry["when"], entry["kind"]) == ("after", "open"):
            synced.discard(entry["ino"])
        elif (entry["when"], entry["kind"]) == ("after", "rename"):
            renames += 1
            assert entry["folder"] or entry["ino"] in synced, entry
            following = [e for e in log[number + 1 :] if e["pid"] == entry["pid"]]
            # two folders that lose their names one after the other may share a sync
            following = list(itertools.dropwhile(lambda e: ".gone-" in e["path"] and e["kind"] != "unlink", following))
            assert (following[0]["kind"], following[0]["path"]) == ("fsync", str(Path(entry["path"]).parent)), entry
    assert renames > 30


def test_what_says_that_a_build_is_whole_goes_before_its_tables_change(whole, tmp_path):
    """A list that has grown: tables are written over, and the manifest's end must have lasted by then."""
    listed, _, _, _ = whole
    watched = Watched(tmp_path / "watched")
    short = tmp_path / "short.txt"
    short.write_text("".join(listed.read_text().splitlines(keepends=True)[:1]))
    assert watched.run(command(short, watched)).returncode == 0
    label = "before rename out/repositories/00000.arrow"
    killed = watched.run(command(listed, watched), kill=label)
    assert killed.returncode == -9
    assert any(entry["label"] == "after unlink out/manifest.json" for entry in killed.log)
    watched.lose_all_unsynced(killed.log)
    assert not (watched.place / "out" / "manifest.json").exists()
    assert watched.run(command(listed, watched)).returncode == 0
    assert hashes(watched.place / "out") == whole[1]


@pytest.mark.parametrize("order", [(0, 1), pytest.param((1, 0), marks=pytest.mark.slow)])
def test_a_list_that_changes_after_a_kill_changes_what_repeats(tmp_path, order):
    """Which targets repeat another repository's, and so make no document, is known from the whole list alone."""
    same = {
        "pyproject.toml": '[project]\nname = "n"\ndescription = "Keeps notes and finds them again"\n',
        "a.py": "x = 1\n",
    }
    prose = (
        "Every note is a file of its own, which any editor can write, and the index beside the notes is built anew when it is lost, "
        "so that nothing which was ever written down has to be looked for by hand in old folders again.",
        "Under the hood sits a small search engine with stemming, ranked results and a query language of four operators; it needs no "
        "daemon, fits on a floppy disk, and answers in a few milliseconds even with a hundred thousand documents.",
    )
    lines = [
        str(make_repository(tmp_path / name, {**same, "README.md": f"# n\n\n{text}\n"}))
        for name, text in zip(("first", "second"), prose, strict=True)
    ]
    watched = Watched(tmp_path / "watched")
    out = watched.place / "out"
    results = []
    for number, listed in enumerate((lines, lines[1:])):
        (tmp_path / f"{number}.txt").write_text("\n".join(listed) + "\n")
        results.append(watched.run(command(tmp_path / f"{number}.txt", watched)))
        assert results[-1].returncode == 0, results[-1].stderr
        results[-1] = hashes(out)
        assert json.loads((out / "manifest.json").read_text())["summary"]["packed"]["2k"]["documents"] == (3, 2)[number]
        shutil.rmtree(out)
    killed = watched.run(command(tmp_path / f"{order[0]}.txt", watched), kill="before rename out/manifest.json")
    assert killed.returncode == -9
    assert watched.run(command(tmp_path / f"{order[1]}.txt", watched)).returncode == 0
    assert hashes(out) == results[order[1]]
    assert not verify(out, Silent()).problems


def test_repositories_stay_pinned_where_only_the_dataset_is_left(tmp_path):
    """A build with a failure keeps its work; without it, what is finished comes from the tables, not from a newer commit."""
    repo = make_repository(
        tmp_path / "repo", {"README.md": "# T\n\nKeeps notes and finds them again.\n", "a.py": "x = 1\n"}
    )
    (tmp_path / "list.txt").write_text(f"{repo}\n{tmp_path / 'later'}\n")
    config = BuildConfig.model_validate({"pack": {"lengths": "2k"}})
    go = lambda: build(read_list(tmp_path / "list.txt")[0], config, tmp_path / "out", CrawlOptions(None), 1, Silent())  # noqa: E731
    assert len(go().failures) == 1
    commit = git(repo, "rev-parse", "HEAD").strip()
    shutil.rmtree(tmp_path / "out" / WORK)
    write_files(repo, {"new.py": ""})
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "new")
    make_repository(tmp_path / "later", {"a.py": "x = 2\n"})
    assert not go().failures
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert commit in {r["commit"] for r in manifest["repositories"].values()}


def test_half_a_folder_never_has_a_final_name(tmp_path):
    whole = tmp_path / "unit"
    aside = partial_folder(whole)
    (aside / "x").write_text("x")
    finish_folder(aside, whole)
    again = partial_folder(whole)
    with pytest.raises(OSError, match="not empty"):
        finish_folder(again, whole)
    assert (whole / "x").read_text() == "x"


def test_a_killed_main_process_takes_its_workers_along(whole, tmp_path):
    """kill -9 of the main process alone: nothing of it writes on into what the next run works in."""
    listed, wanted, _, _ = whole
    watched = Watched(tmp_path / "watched")
    out = watched.place / "out"
    killed = watched.run(command(listed, watched, workers=2), leader="before rename out/.build/units/UNIT")
    assert killed.returncode == -9  # `run` has waited until all were gone
    assert len(units(out)) <= 2  # what was about to get its name may have got it
    assert watched.run(command(listed, watched)).returncode == 0
    assert hashes(out) == wanted
