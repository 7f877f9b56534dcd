import pytest

from inkwell import InvertedIndex, Note, search
from inkwell.cli import main
from inkwell.storage import INDEX_NAME, load

TEXTS = {
    "moon": "The moon\nThe moon pulls the tides; the moon wanes. #sky",
    "harbour": "Harbour log\nSpring tides at dawn, under the moon. #sea #sky",
    "compost": "Compost\nTurn the heap in spring. #garden",
}


@pytest.fixture
def index():
    return InvertedIndex(Note.from_text(key, text) for key, text in TEXTS.items())


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("moon", ["moon", "harbour"]),
        ("moon -dawn", ["moon"]),
        ('"spring tide"', ["harbour"]),
        ("#sky OR #garden", ["compost", "harbour", "moon"]),
        ("nothing", []),
    ],
)
def test_search(index, query, keys):
    assert [hit.key for hit in search(index, query)] == keys


def test_adding_a_note_again_replaces_it(index):
    index.add(Note.from_text("moon", "Empty\n"))
    assert index.matching("wane") == set()
    assert index.tags["sky"] == {"harbour"}


def test_the_saved_index_follows_the_notes(tmp_path, capsys):
    for key, text in TEXTS.items():
        (tmp_path / f"{key}.txt").write_text(text, "utf-8")
    first = load(tmp_path)
    assert (tmp_path / INDEX_NAME).exists()
    assert load(tmp_path).postings == first.postings
    (tmp_path / "moon.txt").unlink()
    assert main(["--root", str(tmp_path), "find", "moon"]) == 0
    assert capsys.readouterr().out.split()[1:] == ["harbour"]
    assert main(["--root", str(tmp_path), "find", "(moon"]) == 2
