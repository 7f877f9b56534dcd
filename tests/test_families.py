"""Which repositories are one family, which split it goes to, and who is left out."""

import hashlib
import random

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from repo2ctx.config import SplitConfig
from repo2ctx.families import Member, blob_ids, families, ties
from repo2ctx.schema import FILES
from repo2ctx.splitting import Candidate, by_hash, counted_blobs, place


def blobs(*names: object):
    return blob_ids(hashlib.sha1(str(name).encode()).hexdigest() for name in names)


def files(start: int, stop: int):
    return blobs(*range(start, stop))


def member(name: str, have=None, roots=(), earlier="") -> Member:
    return Member(name, tuple(roots), blobs() if have is None else have, earlier)


def groups(members) -> set[frozenset[str]]:
    found: dict[int, set[str]] = {}
    for index, family in enumerate(families(members)):
        found.setdefault(family, set()).add(members[index].name)
    return {frozenset(names) for names in found.values()}


def test_forks_with_other_names_and_files_are_one_family():
    fork = member("b/fork", files(100, 200), roots=["1" * 40, "2" * 40])
    assert groups([member("a/it", files(0, 100), roots=["1" * 40]), fork]) == {frozenset({"a/it", "b/fork"})}
    assert groups([member("a/it", roots=["1" * 40]), member("b/it", roots=["3" * 40])]) == {
        frozenset({"a/it"}),
        frozenset({"b/it"}),
    }


@pytest.mark.parametrize(
    ("size", "shared", "tied"),
    [
        (100, 30, True),
        (100, 29, False),
        (20, 8, True),
        (20, 7, False),
        (7, 7, True),
        (7, 6, False),
        (4, 4, True),
        (3, 3, False),
    ],
)
def test_how_much_of_the_smaller_one_has_to_be_shared(size, shared, tied):
    small, large = member("a/a", files(0, size)), member("b/b", files(size - shared, size + 500))
    for pair in ([small, large], [large, small]):
        assert (len(groups(pair)) == 1) == tied


def test_projects_from_one_template_are_strangers():
    projects = [member(f"p/{i}", blobs("a", "b", "c", *(f"{i} {n}" for n in range(5)))) for i in range(40)]
    assert len(groups(projects)) == 40


def test_what_very_many_have_ties_nobody_and_forks_do_not_make_it_so():
    """A framework's 20 files are 40% of each; 20 holders are still told from everybody."""
    app = lambda i: member(f"p/{i}", blobs(*range(20), *(f"{i} {n}" for n in range(30))))  # noqa: E731
    assert len(groups([app(i) for i in range(20)])) == 1
    assert len(groups([app(i) for i in range(21)])) == 21
    work = files(0, 50)
    forks = [member(f"f/{i}", work, roots=["1" * 40]) for i in range(60)]
    assert len(groups([*forks, member("copy/it", files(10, 60))])) == 1
    assert len(groups([member(f"copy/{i}", work) for i in range(60)])) == 1


def test_families_chain():
    chain = [member(f"c/{i}", files(50 * i, 50 * i + 100)) for i in range(5)]
    assert len(groups(chain)) == 1


def test_nothing_is_tied_by_nothing():
    assert len(groups([member("a/a"), member("b/b"), member("c/c", files(0, 9))])) == 3
    assert groups([]) == set()


_repositories = st.lists(
    st.tuples(st.sets(st.integers(0, 40), max_size=25), st.sets(st.sampled_from("abcd"), max_size=2)), max_size=12
)


@given(_repositories, st.randoms())
def test_the_order_of_the_input_does_not_matter(said, shuffle: random.Random):
    members = [member(f"r/{i}", blobs(*sorted(have)), sorted(roots)) for i, (have, roots) in enumerate(said)]
    turned = list(members)
    shuffle.shuffle(turned)
    assert groups(members) == groups(turned)


@given(_repositories)
def test_whoever_shares_enough_is_together(said):
    """By the rule as the docstring has it, pair by pair: no more than 20 hold anything here."""
    members = [member(f"r/{i}", blobs(*sorted(have)), sorted(roots)) for i, (have, roots) in enumerate(said)]
    together = families(members)
    for i, (have, roots) in enumerate(said):
        for j, (others, their_roots) in enumerate(said[:i]):
            least = min(len(have), len(others))
            enough = least >= 4 and len(have & others) >= max(0.3 * least, min(8, least))
            if roots & their_roots or enough:
                assert together[i] == together[j]


def test_false_matches_need_more_than_a_common_start():
    one = "ab" * 8 + "0" * 24
    assert blob_ids([one, one, "ab" * 7 + "cd" + "0" * 24]).size == 2


# Places ----------------------------------------------------------------------------------------------------

EVEN = SplitConfig(validation=0.3, test=0.4)


def names(places) -> list[str | None]:
    return [places.splits.get(i) for i in range(len(places.splits) + len(places.conflicts))]


def test_the_family_follows_the_line_that_gives_a_split():
    for turn in (1, -1):
        asked = [Candidate(member("a/a", files(0, 50))), Candidate(member("b/b", files(0, 60)), says="test")][::turn]
        places = place(asked, EVEN)
        assert names(places) == ["test", "test"]
        assert set(places.families.values()) == {"a/a"}


def test_two_splits_in_one_family_leave_the_later_line_out():
    asked = [
        Candidate(member("a/a", roots=["1"]), says="train"),
        Candidate(member("b/b", roots=["1"]), says="test"),
        Candidate(member("c/c", roots=["1"])),
    ]
    places = place(asked, EVEN)
    assert names(places) == ["train", None, "train"]
    (conflict,) = places.conflicts[1]
    assert (conflict.other, conflict.split, conflict.by) == (0, "train", "root")


def test_who_only_stands_between_them_stays():
    """The first of the list holds the root that ties the two others: the one whose line disagrees goes, not it."""
    asked = [
        Candidate(member("m/m", roots=["1"])),
        Candidate(member("a/a", roots=["1"]), says="validation"),
        *(Candidate(member(f"b/{i}", roots=["1"]), says="test") for i in range(3)),
    ]
    assert names(place(asked, EVEN)) == ["validation", "validation", None, None, None]


def test_who_would_bridge_two_splits_is_left_out_wherever_it_stands():
    bridge = Candidate(member("x/x", roots=["1", "2"]))
    ends = [Candidate(member("a/a", roots=["1"]), says="train"), Candidate(member("b/b", roots=["2"]), says="test")]
    for at in range(3):
        places = place([*ends[:at], bridge, *ends[at:]], EVEN)
        assert list(places.conflicts) == [at]
        assert {c.split for c in places.conflicts[at]} == {"train", "test"}


def test_an_earlier_place_stays_and_its_family_keeps_its_name():
    old = Candidate(member("z/z", roots=["5"], earlier="5"), earlier="validation")
    new = Candidate(member("a/a", roots=["1", "5"]))
    places = place([new, old], EVEN)
    assert names(places) == ["validation", "validation"]
    assert set(places.families.values()) == {"5"}
    other = Candidate(member("b/b", roots=["1"], earlier="1"), earlier="test")
    places = place([new, old, other], EVEN)
    assert names(places) == [None, "validation", "test"]


def test_a_newcomer_with_another_split_does_not_move_what_has_its_place():
    old = Candidate(member("a/a", roots=["1"], earlier="1"), earlier="train")
    new = Candidate(member("b/b", roots=["1"]), says="test")
    assert names(place([new, old], EVEN)) == [None, "train"]
    moved = Candidate(old.member, says="test", earlier="train")
    mate = Candidate(member("c/c", earlier="1"), earlier="train")
    assert names(place([new, moved, mate], EVEN)) == ["test"] * 3


@pytest.mark.parametrize(
    ("old", "new", "by"),
    [
        (member("a/a", roots=["1"], earlier="1"), member("b/b", roots=["1"]), "root"),
        (member("a/a", roots=["2"], earlier="1"), member("b/b", roots=["1"]), "family-root"),
        (member("a/a", earlier="b/b"), member("b/b"), "family-name"),
        (member("a/a", earlier="1"), member("b/b", roots=["1"], earlier="1"), "family"),
        (member("a/a", earlier="1"), member("a/a"), "name"),
        (member("a/a", files(0, 9), earlier="1"), member("b/b", files(0, 9)), "blobs"),
    ],
)
def test_what_ties_two_is_named_for_what_it_is(old, new, by):
    """A family has the name of a root commit or of a repository, whose owner need never have been in it."""
    for pair in ([old, new], [new, old]):
        assert {tie.by for tie in ties(pair)} == {by}
    (conflict,) = place([Candidate(new, says="test"), Candidate(old, earlier="train")], EVEN).conflicts[0]
    assert (conflict.other, conflict.split, conflict.by) == (1, "train", by)


def test_families_of_an_earlier_build_stay_together_though_their_tie_is_gone():
    asked = [Candidate(member(f"{i}/{i}", earlier="1"), earlier="test") for i in range(2)]
    assert set(place(asked, EVEN).families.values()) == {"1"}


def test_who_is_left_out_holds_nothing():
    """Of 21 holders of a framework one is left out: for the others it is no longer what very many have."""
    app = lambda i, **more: Candidate(member(f"p/{i:02d}", blobs(*range(20), *(f"{i} {n}" for n in range(30)))), **more)  # noqa: E731
    both = member("p/both", blobs(*range(20), *(f"both {n}" for n in range(30))), roots=["1", "2"])
    ends = [Candidate(member("a/a", roots=["1"]), says="train"), Candidate(member("b/b", roots=["2"]), says="test")]
    places = place([*(app(i) for i in range(20)), *ends, Candidate(both)], EVEN)
    assert list(places.conflicts) == [22]
    assert len({places.families[i] for i in range(20)}) == 1


@example([({"b"}, ""), ({"a"}, "test"), ({"a", "b"}, "train")], 0)
@given(
    st.lists(
        st.tuples(
            st.sets(st.sampled_from("abcdef"), max_size=2),
            st.sampled_from(["", "", "train", "test"]),
        ),
        max_size=10,
    ),
    st.integers(0, 10),
)
def test_a_list_that_grows_keeps_every_place(said, first):
    """Whoever had a place has it again; no family is in two splits; nothing depends on a second look."""
    asked = [Candidate(member(f"r/{i}", roots=sorted(roots)), says=says) for i, (roots, says) in enumerate(said)]
    before = place(asked[:first], EVEN)
    grown = [
        Candidate(
            member(c.member.name, roots=c.member.roots, earlier=before.families.get(i, "")),
            c.says,
            before.splits.get(i, ""),
        )
        for i, c in enumerate(asked)
    ]
    after = place(grown, EVEN)
    assert {i: after.splits[i] for i in before.splits} == before.splits
    renamed = {(family, after.families[i]) for i, family in before.families.items()}
    assert len(renamed) == len(set(before.families.values()))  # a family may join another of its split, and never part
    assert all(new in before.families.values() for _, new in renamed)
    assert after.conflicts.keys() >= before.conflicts.keys()
    splits: dict[str, str] = {}
    for i, split in after.splits.items():
        assert splits.setdefault(after.families[i], split) == split
        assert split == (asked[i].says or split)
    again = [
        Candidate(
            member(c.member.name, roots=c.member.roots, earlier=after.families.get(i, "")),
            c.says,
            after.splits.get(i, ""),
        )
        for i, c in enumerate(asked)
    ]
    assert place(again, EVEN) == after


def test_the_hash_gives_about_the_shares_asked_for():
    found = [by_hash(str(i), SplitConfig(validation=0.2, test=0.1)) for i in range(2000)]
    assert 0.17 < found.count("validation") / 2000 < 0.23
    assert 0.07 < found.count("test") / 2000 < 0.13


def test_what_counts():
    kept = {"src/a.py": 128, "docs/guide.md": 500, "notes.txt": 200, "licensing.py": 200, "src/security/rules.py": 300}
    passed = {"tiny.py": 127, "LICENSE": 11000, "sub/LICENSE.txt": 900, "CODE_OF_CONDUCT.md": 900, ".github/a.yml": 900,
              "x/.editorconfig": 300, "Contributing.rst": 400, "LICENSES/MIT.txt": 900, "NOTICE": 300}  # fmt: skip
    rows = [
        {"path": path, "size": size, "fate": "kept", "blob": hashlib.sha1(path.encode()).hexdigest()}
        for path, size in (kept | passed).items()
    ]
    rows.append({**rows[0], "path": "vendor/b.py", "blob": "0" * 40, "fate": "vendored"})
    batch = pa.RecordBatch.from_pylist(rows, FILES)
    found = set(counted_blobs([batch]))
    assert {row["path"] for row in rows if row["blob"] in found} == set(kept)
