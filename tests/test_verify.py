"""What a build states of its leaks, limits and duplicates, and that `verify` finds what is wrong from the rows alone."""

import json

import pyarrow as pa
import pytest
from conftest import small_tokenizer
from test_build import command, run
from tokenizers import normalizers

from repo2ctx.dataset import Dataset
from repo2ctx.manifest import sealed
from repo2ctx.schema import MANIFEST

SAID = "Keeps plain-text notes in folders and finds them again by their words"
LONG = (
    f"{SAID}. A note is a file, so that any editor can write one; the index stands beside the notes and is built anew when it is "
    "lost. The search reads the index alone, which makes it fast even on slow disks, and prints the folders of what it found."
)
FILES = {
    "pyproject.toml": f'[project]\nname = "notes"\ndescription = "{SAID}"\nlicense = "MIT"\n',
    "README.md": f"# notes\n\n{LONG}\n\n## Install\n\nRun it.\n",
    "README.de.md": "# notes\n\nHält Notizen in Ordnern und findet sie wieder.\n",
    "docs/index.md": f"# Documentation\n\n{LONG}\n",
    "src/notes/__init__.py": f'"""{SAID.upper()}."""\n\nVERSION = "1"\n',
    "src/notes/find.py": f"# {LONG[:150]}\nfrom notes import VERSION\n\n\ndef find(words):\n    return words\n",
    "data/about.txt": LONG,
}


@pytest.fixture
def built(make_repo, tmp_path):
    assert not run(tmp_path, [str(make_repo(FILES, "notes"))], split={"validation": 0, "test": 0}).failures
    return tmp_path / "out"


def checked(out) -> dict:
    done = command("verify", out, "--json", "--quiet")
    found = json.loads(done.stdout)
    assert done.returncode == (1 if found["problems"] else 0), done.stderr
    return found


def test_a_build_keeps_both_targets_out_of_their_contexts(built):
    (row,) = Dataset(built).repositories()
    assert [(t["style"], t["source"], t["text"]) for t in row["targets"]] == [
        ("line", "metadata:pyproject.toml", SAID),
        ("paragraph", "readme:README.md", LONG),
    ]
    assert {t["license"] for t in row["targets"]} == {"MIT"}
    for target in row["targets"]:
        assert target["leak_share_before"] == 1.0
        assert target["leak_share"] == 0.0
        assert target["masked_lines"] > 0
        assert 0 < target["name_share"] < 0.2
    files = {f["path"]: f for f in Dataset(built).rows("files")}
    gone = {path for path, f in files.items() if f["fate"] == "target-source"}
    assert gone == {"README.md", "README.de.md", "docs/index.md", "data/about.txt"}
    assert files["pyproject.toml"]["text"] == FILES["pyproject.toml"].replace(SAID, "")
    assert "VERSION" in files["src/notes/__init__.py"]["text"]
    table = Dataset(built)
    segments = [s for batch in table.batches("packed/2k/train") for row in batch.to_pylist() for s in row["segments"]]
    assert {s["style"] for s in segments} == {"line", "paragraph"}
    assert all(s["leak_share"] == 0.0 for s in segments)
    found = checked(built)
    assert found["problems"] == []
    assert (found["documents"], found["largest_share"]) == (4, 0.0)


def test_drop_makes_no_row_of_what_leaks(make_repo, tmp_path):
    result = run(tmp_path, [str(make_repo(FILES, "notes"))], leakage={"action": "drop"})
    assert result.refused["2k line: leak"] == 1
    assert result.packed["2k"]["documents"] == 0
    assert checked(tmp_path / "out")["problems"] == []


def test_first_style_makes_one_document(make_repo, tmp_path):
    result = run(tmp_path, [str(make_repo(FILES, "notes"))], pack={"lengths": [2048], "documents": "first-style"})
    assert result.packed["2k"]["documents"] == 1


def test_a_repository_over_the_limits_has_a_row_and_no_files(make_repo, tmp_path):
    free = make_repo(FILES, "free")
    other = make_repo({**FILES, "pyproject.toml": FILES["pyproject.toml"].replace("MIT", "GPL-3.0-only")}, "other")
    large = make_repo({**FILES, "more.py": "x = 1\n" * 20_000}, "large")
    result = run(
        tmp_path, [str(r) for r in (free, other, large)], limits={"licenses": "permissive", "max_bytes": 50_000}
    )
    assert not result.failures
    assert result.not_taken == {"license": 1, "too-large": 1}
    rows = Dataset(tmp_path / "out").repositories()
    assert [r["refused"].partition(":")[0] for r in rows] == ["", "license", "too-large"]
    assert {f["repository"] for f in Dataset(tmp_path / "out").rows("files")} == {rows[0]["id"]}
    assert "not taken" in command("inspect", tmp_path / "out", "other").stdout


def test_a_target_that_repeats_anothers_makes_no_row(make_repo, tmp_path):
    repos = [str(make_repo({**FILES, "n.py": f"n = {i}\n"}, f"repo{i}")) for i in range(2)]
    result = run(tmp_path, repos)
    assert result.rejected["near-duplicate"] == 2
    first, second = Dataset(tmp_path / "out").repositories()
    assert [t["duplicate_of"] for t in second["targets"]] == [first["id"]] * 2
    assert result.packed["2k"]["documents"] == 2
    # without the first, the second's targets are its own again
    assert run(tmp_path, repos[1:]).packed["2k"]["documents"] == 2


def test_verify_finds_rows_that_were_changed(built):
    """A shard whose text, figures and hash were forged together: what the row holds decides."""
    dataset = Dataset(built)
    (shard,) = dataset.shards("packed/2k/train")
    path = built / shard.path
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_stream(source).read_all()
    rows = table.to_pylist()
    segment = rows[0]["segments"][0]
    target = rows[0]["input_ids"][segment["target_start"] : segment["target_end"] - 1]
    span = next(s for s in rows[0]["spans"] if s["end"] - s["start"] >= len(target))
    rows[0]["input_ids"][span["start"] : span["start"] + len(target)] = target
    with path.open("wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, table.schema))
    found = checked(built)
    assert len(found["problems"]) == 1
    assert "damaged" in found["problems"][0]

    import hashlib

    entry = dataset.manifest["tables"]["packed/2k/train"][0]
    entry |= {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
    (built / MANIFEST).write_text(sealed(dataset.manifest))
    said = "\n".join(checked(built)["problems"])
    assert "are not those of the text with its hash" in said
    assert "the row states" in said
    assert "over the limit" in said


@pytest.mark.parametrize("lengths", ["4k", "1k"])
def test_a_tokenizer_that_changes_texts_gives_sound_rows(make_repo, tmp_path, lengths):
    """It composes letters, and has no token for one byte, as SmolLM2's: rows hold what it makes of a text."""
    folder = small_tokenizer(tmp_path / "tokenizer", normalizer=normalizers.NFC())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    lost = tokenizer["model"]["vocab"].pop("\u0104")  # byte 4
    tokenizer["model"]["vocab"]["unused"] = lost
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    odd = "# e\u0301 \x04\n"
    long = "".join(f"def f_{i}():\n    {odd}    return {i}\n\n\n" for i in range(40))
    repo = make_repo({**FILES, "src/notes/odd.py": odd, "src/notes/long.py": odd + long}, "notes")
    settings = {
        "pack": {"lengths": lengths},
        "tokens": {"tokenizer": str(folder)},
        "split": {"validation": 0, "test": 0},
    }
    assert not run(tmp_path, [str(repo)], **settings).failures
    assert checked(tmp_path / "out")["problems"] == []
    row = next(Dataset(tmp_path / "out").rows(f"packed/{lengths}/train"))
    held = {span["path"]: span["fidelity"] for span in row["spans"]}
    assert held["src/notes/odd.py"] == "full", held
    assert held["src/notes/long.py"] == ("full" if lengths == "4k" else "head")
