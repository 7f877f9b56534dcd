"""The measure behind the leak guard: what it counts, that it is never less than the plain one, and that it maps back."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repo2ctx.overlap import NGRAM, Measure, Overlap, _letters, _origins, words_of

SAID = (
    "Keeps plain-text notes in folders, finds them by their words, and writes an index that other programs can read. "
    "It needs no server and runs wherever a shell does."
)


def plain_measure(target: str, text: str) -> Measure:
    """Lower-case words, compared one by one: what anyone would check with."""
    a, b = (re.findall(r"[^\W_]+", t.lower()) for t in (target, text))
    grams = {tuple(b[i : i + NGRAM]) for i in range(len(b) - NGRAM + 1)}
    count = max(0, len(a) - NGRAM + 1)
    found = sum(tuple(a[i : i + NGRAM]) in grams for i in range(count))
    longest = max(
        (
            n
            for i in range(len(a))
            for j in range(len(b))
            for n in [_run(a[i:], b[j:])]
            if len("".join(a[i : i + n])) >= 8
        ),
        default=0,
    )
    return Measure(found / count if count else 0.0, longest if longest > 1 else 0)


def _run(a: list[str], b: list[str]) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def measured(target: str, *texts: str, name: str = "") -> Measure:
    overlap = Overlap(target, name)
    return overlap.measure(run for text in texts for run in overlap.runs(text))


def test_a_text_holds_all_of_itself_and_nothing_of_another():
    words = len(words_of(SAID))
    assert measured(SAID, SAID) == Measure(1.0, words)
    assert measured(SAID, "def find(words):\n    return index[words]\n") == Measure(0.0, 0)
    assert measured("", SAID) == measured(SAID, "") == Measure(0.0, 0)


@pytest.mark.parametrize(
    "form",
    [
        str.upper,
        lambda s: s.replace(" ", "\n"),
        lambda s: "\n".join(f" * {line}" for line in re.findall(r".{1,30}(?: |$)", s)),
        lambda s: s.replace(" ", "_").lower(),
        lambda s: "".join(w.title() for w in re.findall(r"\w+", s)),
        lambda s: re.sub(r"(\w+)", r"<b>\1</b>", s),
        lambda s: re.sub(r"(\w+)", r"**\1**", s),
        lambda s: s.replace(" ", "&nbsp;"),
        lambda s: s.replace(" ", "%20"),
        lambda s: s.replace(" ", r"\n"),
        lambda s: "".join(f"\\u{ord(c):04x}" for c in s),
        lambda s: "".join(f"&#{ord(c)};" for c in s),
        lambda s: s.replace("folders", "[folders](https://example.com/a/b/c)"),
        lambda s: s.replace("ind", 'in" + "d'),
        lambda s: s.replace("e", "\u00e9").replace("a", "\uff41"),
        lambda s: s.replace("e", "e\u00ad").replace("o", "o\u200b"),
    ],
)
def test_the_form_of_a_quote_does_not_matter(form):
    assert measured(SAID, f"x = 1\n{form(SAID)}\ny = 2\n").share > 0.95


@pytest.mark.parametrize("leader", ["REM ", "dnl ", "      C ", 'echo "', 'println!("', '.\\" ', "%% ", "print('"])
def test_words_before_each_line_do_not_break_a_run(leader):
    lines = re.findall(r".{1,40}(?: |$)", SAID)
    assert measured(SAID, "\n".join(leader + line for line in lines)).share > 0.9


def test_words_put_in_or_left_out_do_not_count_as_found():
    overlap = Overlap("one two three four five six seven eight nine ten eleven twelve")
    (run,) = overlap.runs("one two three four five seven eight nine ten eleven twelve")
    assert run.words == (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11)
    assert overlap.measure([run]) == Measure(0.0, 11)


def test_parts_of_words_are_not_found():
    assert measured("banknotes are found by swords", "notes are found by words") == Measure(0.0, 3)


def test_the_name_of_the_project_is_no_quote():
    said = "Apache Commons CSV reads and writes files of comma separated values"
    assert measured(said, "// Apache Commons CSV, see NOTICE", name="apache/commons-csv") == Measure(0.0, 0)
    assert measured(said, "// Apache Commons CSV, see NOTICE").run == 3
    assert Overlap(said, "apache/commons-csv").name_share == pytest.approx(3 / 11)


def test_the_name_may_be_written_as_one_word_or_as_several():
    said = "Note Keeper and tools around plain files"
    assert measured(said, "import org.notekeeper.Files;", name="a/notekeeper") == Measure(0.0, 0)
    assert measured(said, "import org.notekeeper.Files;").run == 2
    assert Overlap("NoteKeeper keeps files", "a/note-keeper").named == {0}
    assert Overlap("Keeper of a note", "a/note-keeper").named == {0, 2, 3}


def test_ngrams_are_counted_over_all_texts_together():
    words = SAID.split()
    half = len(words) // 2
    share = measured(SAID, " ".join(words[:half]), " ".join(words[half:])).share
    assert 0.5 < share < 1
    assert share == measured(SAID, " ".join(words[half:]), " ".join(words[:half])).share


_WORDS = st.sampled_from(
    "notes index words plain-text program a of to the Größe JavaScript x86_64 data's naïve 日本語".split()
)
_MARKS = st.sampled_from([" ", "\n", "\n// ", "_", "  ", ", ", "<br/>", "\\n", "&amp;", "%20", ' " + "'])
_TEXT = st.lists(st.tuples(_WORDS, _MARKS), max_size=40).map(lambda pairs: "".join(w + m for w, m in pairs))


@settings(max_examples=300, deadline=None)
@given(_TEXT, _TEXT)
def test_never_less_than_what_a_plain_comparison_finds(target, text):
    ours, plain = measured(target, text), plain_measure(" ".join(words_of(target)), " ".join(words_of(text)))
    assert ours.share >= plain.share - 1e-6
    assert ours.run >= plain.run


@settings(max_examples=300, deadline=None)
@given(
    st.text(
        alphabet=st.one_of(
            st.sampled_from("aé\\un0041x&#;<b>%2/_ \nＡ½İßﬁ\u0301"), st.characters(exclude_categories=["Cs"])
        ),
        max_size=60,
    )
)
def test_every_letter_has_the_place_that_it_comes_from(text):
    places = _origins(text)
    assert len(places) == len(_letters(text))
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert [start for start, _ in places] == sorted(start for start, _ in places)


@settings(max_examples=200, deadline=None)
@given(_TEXT, _TEXT)
def test_places_hold_the_words_that_were_found(target, text):
    overlap = Overlap(target)
    runs = overlap.runs(text)
    held = "".join(words_of(" ".join(text[start:end] for start, end in overlap.places(text, runs))))
    for run in runs:
        for word in run.words:
            assert overlap.words[word] in held


def test_linear_on_hostile_texts():
    target = "a a a a a a a a b a a a a a a a a a c " * 10 + SAID
    for text in ("a" * 300_000, "a a b " * 50_000, "<" * 300_000, "&" * 300_000, "\\" * 300_000, SAID * 2000):
        measured(target, text)
