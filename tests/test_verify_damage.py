"""`verify` on datasets that were damaged or forged in every way that we could think of: it names the place and the way out.

Every test starts from a copy of one sound dataset.
"""

import hashlib
import json
import random
import re
import shutil

import pyarrow as pa
import pytest
from conftest import make_repository
from test_build import Silent, command

from repo2ctx.cli import _run, app
from repo2ctx.config import BuildConfig, TokensConfig
from repo2ctx.crawl import CrawlOptions
from repo2ctx.dataset import Dataset, is_output
from repo2ctx.errors import OutputError
from repo2ctx.manifest import sealed
from repo2ctx.pipeline import build
from repo2ctx.repolist import read_list
from repo2ctx.schema import SCHEMAS, schema_of
from repo2ctx.tokens import load_tokenizer
from repo2ctx.verify import verify

SAID = "Keeps plain-text {} in folders and finds them again by their words"
PACKED_TABLE = "packed/2k/train"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Four small repositories, the last of which is for testing; rows of 2k hold two of them."""
    folder = tmp_path_factory.mktemp("sound")
    lines = []
    for name, split in [("notes", "train"), ("songs", "train"), ("stamps", "train"), ("coins", "test")]:
        said = SAID.format(name)
        repo = make_repository(
            folder / name,
            {
                "pyproject.toml": f'[project]\nname = "{name}"\ndescription = "{said}"\nlicense = "MIT"\n',
                "README.md": f"# {name}\n\n{said}. Each of the {name} is a file; the index of all {name} stands beside them, is "
                f"built anew when it is lost, and makes it fast to look for {name} by any word, even on slow disks.\n",
                f"{name}/__init__.py": f"from {name}.find import find\n",
                f"{name}/find.py": f"from {name}.words import split\n\n\ndef find():\n    return split('{name}')\n",
                f"{name}/words.py": "def split(text):\n    return text.split()\n",
                f"{name}/empty.py": "",
                "twin_a.py": "x = 1\n",
                "twin_b.py": "x = 1\n",
                "logo.png": b"\x89PNG\0",
            },
        )
        lines.append(json.dumps({"repo": str(repo), "split": split}))
    (folder / "list.txt").write_text("\n".join(lines) + "\n")
    specs, _ = read_list(folder / "list.txt")
    config = BuildConfig.model_validate({"pack": {"lengths": "2k,16k"}, "targets": {"max_similarity": None}})
    build(specs, config, folder / "out", CrawlOptions(None), 1, Silent())
    assert not checked(folder / "out")
    return folder / "out"


@pytest.fixture
def out(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "out")


def checked(out) -> list[str]:
    """The problems of a dataset; one whose manifest cannot be believed has one."""
    try:
        problems = verify(out, Silent()).problems
    except OutputError as error:
        problems = [str(error)]
    for problem in problems:
        assert re.search(r"; (put back a sound copy|remove it|use the repo2ctx|put that one)", problem), problem
        assert "\n" not in problem
    return problems


def rewrite(out, table, change, seal=True) -> None:
    """Change a table's rows (`change(rows)` in place), and forge its shard's hash, offsets and counts to match."""
    manifest = json.loads((out / "manifest.json").read_text())
    rows = list(Dataset(out).rows(table))
    change(rows)
    (entry,) = manifest["tables"][table]
    compression = None if table.startswith("packed/") else "zstd"
    data = pa.BufferOutputStream()
    batches = grouped(rows, table)
    offsets = []
    with pa.ipc.new_stream(data, schema_of(table), options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for batch in batches:
            offsets.append(data.tell() or schema_of(table).serialize().size)
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema_of(table)))
    (out / entry["path"]).write_bytes(data.getvalue())
    entry |= {"offsets": offsets, "batch_rows": [len(b) for b in batches], "rows": len(rows)}
    forge(out, manifest, entry)


def grouped(rows, table):
    """Rows in the batches that they came in: a repository each, or a packed row each."""
    if table == "repositories":
        return [rows]
    key = (lambda row, n: n) if table.startswith("packed/") else (lambda row, n: row["repository"])
    batches, last = [], object()
    for number, row in enumerate(rows):
        if key(row, number) != last:
            batches.append([])
            last = key(row, number)
        batches[-1].append(row)
    return batches


def forge(out, manifest, *entries) -> None:
    for entry in entries:
        data = (out / entry["path"]).read_bytes()
        entry |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    (out / "manifest.json").write_text(sealed(manifest))


def edit(out, change) -> None:
    """Change the manifest and seal it anew."""
    manifest = json.loads((out / "manifest.json").read_text())
    change(manifest)
    (out / "manifest.json").write_text(sealed(manifest))


# Damage ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_any_byte_that_changes_is_found(sound, tmp_path, seed):
    """One random byte of every file, to any other value; then one bit of it."""
    dice = random.Random(seed)
    for path in sorted(p for p in sound.rglob("*") if p.is_file()):
        name = path.relative_to(sound)
        whole = path.read_bytes()
        at = dice.randrange(len(whole))
        for value in (whole[at] ^ dice.randrange(1, 256), whole[at] ^ (1 << dice.randrange(8))):
            shutil.rmtree(tmp_path / "out", ignore_errors=True)
            shutil.copytree(sound, tmp_path / "out")
            (tmp_path / "out" / name).write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            problems = checked(tmp_path / "out")
            assert problems, f"byte {at} of {name}"
            assert name.name in problems[0]


@pytest.mark.parametrize("table", [*SCHEMAS, PACKED_TABLE, "packed/16k/test"])
def test_a_flipped_bit_in_every_part_of_a_shard_is_found(out, table):
    (shard,) = Dataset(out).shards(table)
    path = out / shard.path
    whole = path.read_bytes()
    for at in (20, shard.offsets[0] + 30, shard.offsets[-1] + 400, len(whole) - 3):  # schema, batches, end
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        (problem,) = checked(out)
        assert f"{shard.path}: is damaged" in problem
    for damage in (whole[:-1], whole + b"\0", b"", whole[: len(whole) // 2]):
        path.write_bytes(damage)
        (problem,) = checked(out)
        assert f"{shard.path}: is damaged" in problem
    path.unlink()
    (problem,) = checked(out)
    assert f"{shard.path}: cannot be read" in problem


@pytest.mark.parametrize("table", [*SCHEMAS, PACKED_TABLE])
def test_shards_with_forged_hashes_must_still_be_shards_of_their_table(out, table):
    manifest = Dataset(out).manifest
    (entry,) = manifest["tables"][table]
    whole = (out / entry["path"]).read_bytes()
    other = "edges" if table != "edges" else "files"
    for data in (
        whole[: entry["offsets"][-1]],
        whole[: len(whole) // 2],
        whole + whole,
        whole + b"more",
        b"PAR1" * 200,
        (out / manifest["tables"][other][0]["path"]).read_bytes(),
        whole.replace(b"repository", b"repositorx").replace(b"input_ids", b"input_idx").replace(b"commit", b"commix"),
    ):
        (out / entry["path"]).write_bytes(data)
        digest = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        (out / "manifest.json").write_text(
            sealed({**manifest, "tables": {**manifest["tables"], table: [entry | digest]}})
        )
        problems = checked(out)
        assert problems
        assert entry["path"] in problems[0] or "offsets do not grow" in problems[0], problems


def test_files_that_the_manifest_does_not_know_are_found(out):
    shard = out / PACKED_TABLE / "00000.arrow"
    strays = [
        "packed/2k/train/00001.arrow",
        "packed/8k/train/00000.arrow",
        "files/x.txt",
        "edges/.00001.arrow.partial",
        "x.arrow",
    ]
    for name in strays:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shard, out / name)
    (out / "repositories" / "link.arrow").symlink_to(shard)
    (out / "packed" / "link").symlink_to(out / "packed" / "2k")
    problems = checked(out)
    assert len(problems) == len(strays) + 2
    for name in [*strays, "repositories/link.arrow", "packed/link"]:
        assert any(f"{name}: is not in manifest.json" in problem for problem in problems)
    for name in (
        ".gitattributes",
        ".cache/huggingface/x.arrow",
        "LICENSE.txt",
    ):  # what publishing adds is nobody's harm
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("x")
    assert len(checked(out)) == len(problems)


def test_a_dataset_of_links_is_sound(out, tmp_path):
    """As download caches keep it."""
    (tmp_path / "blobs").mkdir()
    for number, path in enumerate(sorted(p for p in out.rglob("*") if p.is_file())):
        shutil.move(path, tmp_path / "blobs" / str(number))
        path.symlink_to(tmp_path / "blobs" / str(number))
    assert checked(out) == []


def test_an_edited_card_is_found(out):
    card = out / "README.md"
    whole = card.read_text()
    card.write_text(whole.replace("packed/2k/train/*.arrow", "packed/2k/test/*.arrow"))
    (problem,) = checked(out)
    assert "README.md: was damaged or changed" in problem
    edit(out, lambda m: m.update(card_sha256=hashlib.sha256(card.read_bytes()).hexdigest()))
    (problem,) = checked(out)
    assert "README.md: does not lead `datasets`" in problem
    for text in ("", "---\n[" * 5000, "---\nconfigs: !!python/object:os.system\n---\n"):
        card.write_text(text)
        edit(out, lambda m: m.update(card_sha256=hashlib.sha256(card.read_bytes()).hexdigest()))
        (problem,) = checked(out)
        assert "README.md: does not lead `datasets`" in problem
    card.unlink()
    (problem,) = checked(out)
    assert "README.md: cannot be read" in problem


# The manifest ----------------------------------------------------------------------------------------------

NOT_MANIFESTS = {
    "empty": b"",
    "truncated": None,
    "binary": bytes(range(256)) * 20,
    "deep": b'{"schema_version": 4, "a": ' + b"[" * 200_000,
    "digits": b'{"schema_version": ' + b"9" * 50_000 + b"}",
    "list": b"[]",
    "number": b"4",
    "null": b"null",
    "object": b"{}",
    "surrogate": b'{"schema_version": 4, "tokenizer_fingerprint": "\\ud800"}',
    "bare": b'{"schema_version": 4, "tokenizer_fingerprint": "x"}',
    "twice": b'{"schema_version": 4, "schema_version": true}',
    "utf-16": '{"schema_version": 4}'.encode("utf-16"),
}


@pytest.mark.parametrize("what", NOT_MANIFESTS)
def test_what_is_no_manifest_is_told_by_every_reader(out, what, capfd):
    path = out / "manifest.json"
    damage = NOT_MANIFESTS[what]
    path.write_bytes(path.read_bytes()[:-500] if damage is None else damage)
    (problem,) = checked(out)
    assert "manifest.json" in problem
    assert "repo2ctx build" in problem
    assert is_output(out)
    for arguments in (["verify", "--quiet"], ["inspect"], ["graph"], ["order"]):
        code = _run(lambda arguments=arguments: app([*arguments, str(out)], standalone_mode=False))
        said = capfd.readouterr()
        assert (code, said.out, len(said.err.splitlines())) == (1, "", 1), said
        assert "manifest.json" in said.err


def test_the_command_tells_of_damage_in_lines_and_an_exit_code(out):
    (out / "manifest.json").write_text("{")
    done = command("verify", out, "--quiet")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    (out / "manifest.json").unlink()
    done = command("verify", out, "--quiet")
    assert done.returncode == 1
    assert "no manifest.json; give the --out of a finished build" in done.stderr


def test_every_edit_breaks_the_seal(out):
    path = out / "manifest.json"
    whole = path.read_text()
    for old, new in [
        ('"split": "test"', '"split": "train"'), ('"rows": 1', '"rows": 2'), ("\n", " \n"), ('"max_run": 20', '"max_run": 99'),
        ('"manifest_sha256": "', '"manifest_sha256": "0'), (' "manifest_sha256"', ' "other"'),
    ]:  # fmt: skip
        assert old in whole
        path.write_text(whole.replace(old, new, 1))
        (problem,) = checked(out)
        assert "its own hash does not match" in problem


def shard_of(manifest, table=PACKED_TABLE):
    return manifest["tables"][table][0]


def first_repository(manifest):
    return next(iter(manifest["repositories"].values()))


def configured(change):
    """Changes the configuration, and its hash with it."""

    def do(manifest):
        change(manifest["config"])
        text = json.dumps(manifest["config"], sort_keys=True)
        manifest["config_sha256"] = hashlib.sha256(text.encode()).hexdigest()

    return do


def rename_table(length, other):
    """A table, with its paths, under another length."""

    def do(manifest):
        for name in [name for name in manifest["tables"] if name.startswith(f"packed/{length}/")]:
            shards = manifest["tables"].pop(name)
            name = name.replace(length, other)
            manifest["tables"][name] = [{**s, "path": s["path"].replace(length, other)} for s in shards]

    return do


def drop_repository(manifest):
    manifest["repositories"].pop(next(iter(manifest["repositories"])))


FORGED_MANIFESTS = {
    "rows": (lambda m: shard_of(m).update(rows=7), "do not agree"),
    "rows and batches": (lambda m: shard_of(m).update(rows=7, batch_rows=[7]), "do not agree|has 1 rows; manifest.json says"),
    "bytes": (lambda m: shard_of(m).update(bytes=10**9), "is damaged"),
    "negative bytes": (lambda m: shard_of(m).update(bytes=-1), "bytes"),
    "sha256": (lambda m: shard_of(m).update(sha256="0" * 64), "is damaged"),
    "no sha256": (lambda m: shard_of(m).pop("sha256"), "sha256"),
    "offsets": (lambda m: shard_of(m)["offsets"].__setitem__(0, 8), "stands at"),
    "offsets beyond": (lambda m: shard_of(m)["offsets"].__setitem__(-1, 10**12), "offsets do not grow"),
    "offsets of text": (lambda m: shard_of(m).update(offsets="abc"), "offsets"),
    "a batch less": (lambda m: shard_of(m, "edges").update(batch_rows=[], offsets=[], rows=0), "name"),
    "batch_rows": (lambda m: shard_of(m, "files")["batch_rows"].__setitem__(0, 5), "do not agree"),
    "float rows": (lambda m: shard_of(m).update(rows=1.5), "rows"),
    "outside": (lambda m: shard_of(m).update(path="../../etc/passwd"), "path"),
    "absolute": (lambda m: shard_of(m).update(path="/etc/passwd"), "path"),
    "inside out": (lambda m: shard_of(m).update(path="packed/2k/train/../../../x.arrow"), "path"),
    "nul": (lambda m: shard_of(m).update(path="packed/2k/train/\0"), "path"),
    "another's shard": (lambda m: shard_of(m).update(path="packed/2k/test/00000.arrow"), "path"),
    "config": (lambda m: m["config"]["leakage"].update(max_run=99), "config_sha256"),
    "config gone": (lambda m: m.update(config={}), "config_sha256"),
    "splits": (lambda m: first_repository(m).update(split="validation"), "manifest.json has commit"),
    "strange split": (lambda m: first_repository(m).update(split="dev"), "split"),
    "commit": (lambda m: first_repository(m).update(commit="0" * 40), "manifest.json has commit"),
    "repository removed": (drop_repository, "name"),
    "repository without list": (lambda m: m["list"][0].update(id="x"), "is not in `repositories`"),
    "places": (lambda m: first_repository(m)["files"][0].update(batch=99), "named twice"),
    "places twice": (lambda m: first_repository(m)["files"].append(first_repository(m)["files"][0]), "named twice"),
    "places of nothing": (lambda m: first_repository(m).update(files="x"), "files"),
    "table removed": (lambda m: m["tables"].pop("files"), "files is missing"),
    "packed table removed": (lambda m: m["tables"].pop("packed/16k/train"), "packed/16k"),
    "strange table": (lambda m: m["tables"].update({"../x": []}), "tables"),
    "tables a list": (lambda m: m.update(tables=[]), "tables"),
    "no tables": (lambda m: m.update(tables={}), "is missing"),
    "summary gone": (lambda m: m.pop("summary"), "summary"),
    "summary of fates": (lambda m: m["summary"]["fates"].update(kept=1), "files of each fate"),
    "summary of splits": (lambda m: m["summary"]["splits"].update(test=4), "of each split"),
    "summary of rows": (lambda m: m["summary"]["packed"]["2k"].update(tokens=1), "manifest.json says 1"),
    "summary of files": (lambda m: m["summary"]["packed"]["2k"].update(left_out=9999), "left_out: its rows have"),
    "summary of long rows": (lambda m: m["summary"]["packed"]["2k"].update(long_tokens=1), "long_tokens: its rows have"),
    "summary without a figure": (lambda m: m["summary"]["packed"]["2k"].pop("outline"), "outline"),
    "summary of what was refused": (lambda m: m["summary"]["refused"].update({"2k line: leak": 3}), "could not be made"),
    "schema version": (lambda m: m.update(schema_version=3), "has schema version 3"),
    "no schema version": (lambda m: m.pop("schema_version"), "no manifest"),
    "true schema version": (lambda m: m.update(schema_version=True), "has schema version True"),
    "prompt version": (lambda m: m.update(prompt_version=99), "prompt version 99"),
    "tokenizer": (lambda m: m.update(tokenizer_fingerprint="0"), "is not the tokenizer"),
    "failures": (lambda m: m.update(failures=[1]), "failures"),
    "no configuration": (configured(dict.clear), "lengths 16k, 2k; the config 32k"),
    "a strange section": (configured(lambda c: c.update(x={})), "config: x"),
    "a section of text": (configured(lambda c: c.update(leakage="mask")), "config: leakage"),
    "lengths as text": (configured(lambda c: c["pack"].update(lengths="2k,16k")), r"config.pack.lengths: is \"2k,16k\", not \["),
    "lengths in disorder": (configured(lambda c: c["pack"]["lengths"].reverse()), "config.pack.lengths: is"),
    "a length as a float": (configured(lambda c: c["pack"].update(lengths=[2048.0, 16384])), "config"),
    "a switch as a number": (configured(lambda c: c["split"].update(by_root=1)), "config.split.by_root: is 1, not true"),
    "a length less": (configured(lambda c: c["pack"].update(lengths=[2048])), "lengths 16k, 2k; the config 2k"),
    "a length more": (configured(lambda c: c["pack"]["lengths"].append(1 << 20)), "the config 16k, 1m, 2k"),
    "a table of no length": (rename_table("2k", "5"), "tables: packed/5/.* is of no length of the config"),
    "a length spelt out": (rename_table("2k", "2048"), "tables: packed/2048/.* is of no length of the config"),
    "figures of no length": (lambda m: m["summary"]["packed"].update(x=m["summary"]["packed"]["2k"]), "summary.packed"),
    "figures gone": (lambda m: m["summary"].update(packed={}), "summary.packed: has the lengths none"),
    "more rows than can be": (lambda m: shard_of(m).update(rows=10**30, batch_rows=[10**30]), "rows"),
    "larger than can be": (lambda m: shard_of(m).update(bytes=10**30, offsets=[10**29]), "bytes"),
    "places beyond count": (lambda m: first_repository(m)["files"][0].update(batch=10**29), "batch"),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED_MANIFESTS)
def test_a_forged_manifest_is_found(out, what):
    change, expected = FORGED_MANIFESTS[what]
    edit(out, change)
    problems = checked(out)
    assert problems
    assert re.search(expected, " ".join(problems)), problems


@pytest.mark.parametrize(
    "what",
    ["no configuration", "lengths as text", "a table of no length", "larger than can be", "figures of no length"],
)
def test_every_command_tells_of_a_forged_manifest_where_it_is_and_the_way_out(out, what, capfd):
    edit(out, FORGED_MANIFESTS[what][0])
    for args in (["inspect", out], ["verify", out], ["order", out], ["pack", out, "--lengths", "4k", "--no-cache"]):
        assert _run(lambda args=args: app(list(map(str, args)), standalone_mode=False)) == 1
        said = capfd.readouterr().err
        assert re.fullmatch(
            rf"repo2ctx: {re.escape(str(out))}/manifest.json: is damaged: .*; put back a sound copy.*\n", said
        )


@pytest.mark.parametrize("gone", ["leakage", "shards", "teacher", "split.by_root", "pack.long_share"])
def test_what_an_earlier_configuration_did_not_name_has_its_default(out, gone, capfd):
    """Another repo2ctx of this schema may have had fewer keys; what it wrote is read on, and packed anew with them."""
    section, _, key = gone.partition(".")
    edit(out, configured(lambda c: c[section].pop(key) if key else c.pop(section)))
    assert Dataset(out).manifest["config"] == BuildConfig.model_validate(
        {"pack": {"lengths": "2k,16k"}, "targets": {"max_similarity": None}}
    ).model_dump(mode="json")
    assert checked(out) == []
    if gone in ("leakage", "shards"):
        for args in (["inspect", out], ["pack", out, "--lengths", "4k", "--no-cache", "--workers", "1", "--quiet"]):
            assert _run(lambda args=args: app(list(map(str, args)), standalone_mode=False)) == 0, capfd.readouterr().err
        assert checked(out) == []


def test_a_forged_tokenizer_that_cannot_be_had_is_told(out):
    def change(manifest):
        manifest["config"]["tokens"]["tokenizer"] = "/nowhere/at/all"
        text = json.dumps(manifest["config"], sort_keys=True)
        manifest["config_sha256"] = hashlib.sha256(text.encode()).hexdigest()

    edit(out, change)
    with pytest.raises(AssertionError):  # the tokenizer's own way out
        checked(out)
    (problem,) = verify(out, Silent()).problems
    assert "/nowhere/at/all" in problem


# Rows ------------------------------------------------------------------------------------------------------


def test_rewriting_a_table_as_it_is_changes_nothing(out):
    for table in [*SCHEMAS, PACKED_TABLE]:
        rewrite(out, table, lambda rows: None)
    assert checked(out) == []


def span_of(row, name, segment=0):
    return next(s for s in row["spans"] if s["path"].endswith(name) and s["segment"] == segment)


def move(row, name, **by):
    span = span_of(row, name)
    for key, step in by.items():
        span[key] += step


def swap(row, *names):
    """Let two spans' places change places."""
    a, b = span_of(row, "find.py"), span_of(row, "words.py")
    for name in names:
        a[name], b[name] = b[name], a[name]


def cut_target(row):
    segment = row["segments"][-1]
    segment["target_end"] -= 2
    row["input_ids"] = row["input_ids"][:-2]


def plant_leak(row):
    """Write the target over the longest file."""
    segment = row["segments"][0]
    target = row["input_ids"][segment["target_start"] : segment["target_end"] - 1]
    span = max((s for s in row["spans"] if s["segment"] == 0), key=lambda s: s["end"] - s["start"])
    row["input_ids"][span["start"] : span["start"] + len(target)] = target
    assert span["start"] + len(target) <= segment["target_start"]


def set_id(row, value, name="words.py"):
    row["input_ids"][span_of(row, name)["start"]] = value


def repeat_row(rows):
    rows.append(rows[0])


def lengthen(row):
    extra = 2049 - len(row["input_ids"])
    row["input_ids"] += [row["input_ids"][0]] * extra
    row["segments"][-1]["target_end"] += extra


def insert(row, at, ids):
    """Put tokens into a row, and let everything after them move on."""
    row["input_ids"][at:at] = ids
    for part in (*row["segments"], *row["spans"]):
        for key in ("start", "target_start", "target_end", "end"):
            if part.get(key, -1) >= at + (key == "end"):
                part[key] += len(ids)


def spell_otherwise(row):
    """Other tokens for the same text: its first token as two."""
    tokenizer = load_tokenizer(TokensConfig())
    span = span_of(row, "find.py")
    text = tokenizer.decode(row["input_ids"][span["start"] : span["start"] + 1])
    row["input_ids"][span["start"]] = tokenizer.encode(text[0])[0]
    insert(row, span["start"] + 1, tokenizer.encode(text[1:]))


def end_inside(row):
    """The end token's text in a file's tokens is the end token."""
    insert(row, span_of(row, "find.py")["start"] + 1, [row["input_ids"][-1]])


FORGED_ROWS = {
    "tokens between files": (lambda r: insert(r, span_of(r, "find.py")["end"], [17, 18]), "what is of no file"),
    "end token between files": (
        lambda r: insert(r, span_of(r, "find.py")["end"], [r["input_ids"][-1]]),
        "what is of no file",
    ),
    "end token in a file": (end_inside, "find.py: its tokens are not those of the text"),
    "other tokens of the same text": (spell_otherwise, "find.py: its tokens are not those of the text"),
    "tokens in the tree": (
        lambda r: insert(r, min(s["start"] for s in r["spans"]) - 30, [17, 18]),
        "its tree, or a span of a path",
    ),
    "span off by one": (lambda r: move(r, "find.py", start=1, end=1), "find.py: .*are not those"),
    "span one too short": (lambda r: move(r, "find.py", end=-1), "find.py: .*are not those"),
    "span of the marker": (lambda r: move(r, "find.py", start=-1), "find.py: .*are not those"),
    "an empty file's span moved": (lambda r: move(r, "empty.py", start=1, end=1), "empty.py: the line before"),
    "spans' places swapped": (lambda r: swap(r, "start", "end"), "find.py|words.py"),
    "spans' names swapped": (lambda r: swap(r, "path"), "its hash is not the one in files"),
    "spans' names and hashes swapped": (lambda r: swap(r, "path", "text_sha256"), "are not those"),
    "twins' names swapped": (
        lambda r: (span_of(r, "twin_a.py").update(path="twin_b.py"), r["spans"][-1].update(path="twin_a.py")),
        "twin_.*(the line before|twice|order)",
    ),
    "span of no file": (lambda r: span_of(r, "find.py").update(path="no.py"), "no.py: is no kept file"),
    "span of a dropped file": (lambda r: span_of(r, "find.py").update(path="logo.png"), "logo.png: is no kept file"),
    "span with a strange hash": (lambda r: span_of(r, "find.py").update(text_sha256="0" * 64), "its hash is not"),
    "span of a strange fidelity": (lambda r: span_of(r, "find.py").update(fidelity="half"), "its fidelity is 'half'"),
    "span out of the row": (lambda r: span_of(r, "find.py").update(end=10**9), "lies outside"),
    "negative span": (lambda r: span_of(r, "find.py").update(start=-5), "lies outside"),
    "span of no segment": (lambda r: span_of(r, "find.py").update(segment=99), "segment 99"),
    "span in another segment": (lambda r: span_of(r, "find.py").update(segment=1), "segment 1 .*find.py"),
    "spans gone": (lambda r: r["spans"].clear(), "a file there has no span"),
    "one span gone": (lambda r: r["spans"].remove(span_of(r, "find.py")), "before it stands a file that has no span"),
    "first span gone": (lambda r: r["spans"].pop(0), "before it stands a file that has no span"),
    "last span gone": (lambda r: r["spans"].pop(), "a file there has no span"),
    "span without a path": (lambda r: span_of(r, "find.py").update(path=None), "spans.path is empty"),
    "cut target": (cut_target, "its target is not the one"),
    "target begins late": (
        lambda r: r["segments"][0].update(target_start=r["segments"][0]["target_start"] + 1),
        "its target",
    ),
    "another style": (lambda r: r["segments"][0].update(style="poem"), "poem.*its style is none"),
    "segment out of the row": (lambda r: r["segments"][-1].update(target_end=10**9), "its segments end at"),
    "segment backwards": (lambda r: r["segments"][0].update(start=5), "should begin at 0"),
    "no segments": (lambda r: (r["segments"].clear(), r["spans"].clear()), "its segments end at 0"),
    "null segments": (lambda r: r.update(segments=None), "segments is empty"),
    "of no repository": (lambda r: r["segments"][0].update(repository="a/b@c"), "has no row in repositories"),
    "planted leak": (plant_leak, "over the limit"),
    "leak stated wrongly": (lambda r: r["segments"][0].update(leak_share=0.01), "the row states 1.00%"),
    "leak not a number": (lambda r: r["segments"][0].update(leak_share=float("nan")), "the row states nan"),
    "token out of the vocabulary": (lambda r: set_id(r, 10**9), "no tokens of the vocabulary: 1000000000"),
    "negative token": (lambda r: set_id(r, -1), "no tokens of the vocabulary: -1"),
    "another token": (lambda r: set_id(r, 17), "words.py: .*are not those"),
    "another token in the marker": (lambda r: set_id(r, 17, "find.py") or set_id(r, 17), "are not those"),
    "no end token": (lambda r: r["input_ids"].__setitem__(-1, 17), "its target is not the one"),
    "row longer than its length": (lengthen, "more than its length"),
    "no tokens": (lambda r: r.update(input_ids=[]), "its segments end at"),
}


@pytest.mark.parametrize("what", FORGED_ROWS)
def test_a_forged_row_is_found(out, what):
    change, expected = FORGED_ROWS[what]
    rewrite(out, PACKED_TABLE, lambda rows: change(rows[0]))
    problems = checked(out)
    assert problems
    assert any(re.search(expected, problem) for problem in problems), problems
    place = f"{PACKED_TABLE}, row 0|{PACKED_TABLE}/00000.arrow: rows 0 to 0"
    assert any(re.search(place, problem) for problem in problems), problems


def test_markers_between_files_are_read(out):
    """A token of what the prompt itself says, before a file and before the target."""
    tokenizer = load_tokenizer(TokensConfig())

    def change(rows):
        span, other = span_of(rows[0], "find.py"), rows[0]["segments"][0]["target_start"]
        rows[0]["input_ids"][span["start"] - 2] = tokenizer.encode("zebra")[0]
        rows[0]["input_ids"][other - 2] = tokenizer.encode("zebra")[0]

    rewrite(out, PACKED_TABLE, change)
    said = " ".join(checked(out))
    assert "find.py: the line before it does not name it" in said
    assert "between its files and its target is not the prompt's" in said


def test_rows_in_two_splits_twice_or_missing_are_found(out):
    rewrite(out, "packed/2k/test", lambda rows: rows.extend(Dataset(out).rows(PACKED_TABLE)))
    said = "\n".join(checked(out))
    assert "packed/2k/test, row 1" in said
    assert "its repository is of split train" in said
    assert "has 2 documents of" in said


def test_a_document_that_is_missing_is_found(out):
    rewrite(out, PACKED_TABLE, lambda rows: rows.pop())
    assert any("packed/2k: has" in problem for problem in checked(out))


def repository(rows, name="notes"):
    return next(row for row in rows if row["name"].endswith(name))


def forge_repository(**values):
    return lambda rows: repository(rows).update(values)


FORGED_REPOSITORIES = {
    "twice": (repeat_row, "repositories, row 4 .*the same repository as row 0"),
    "gone": (lambda rows: rows.pop(0), "has no row in repositories"),
    "another split": (forge_repository(split="test"), "manifest.json has commit"),
    "no split": (forge_repository(split="dev"), "its split is 'dev'"),
    "another id": (forge_repository(id="a/b@c"), "its id is not made of"),
    "another commit": (forge_repository(commit="0" * 40), "its id is not made of"),
    "a family in two splits": (
        lambda rows: repository(rows, "coins").update(family=rows[0]["family"]),
        "several splits",
    ),
    "another target": (lambda rows: rows[0]["targets"][0].update(text="It is."), "its target is not the one"),
    "two of a style": (lambda rows: rows[0]["targets"].append(rows[0]["targets"][0]), "has 2 targets of style"),
    "a duplicate of nobody": (lambda rows: rows[0]["targets"][0].update(duplicate_of="x"), "which has no row"),
    "counts": (forge_repository(kept_files=1), "its row in repositories says"),
    "no name": (forge_repository(name=None), "name is empty"),
    "boundary": (forge_repository(boundary="def"), "holds the marker"),
}


@pytest.mark.parametrize("what", FORGED_REPOSITORIES)
def test_forged_repositories_are_found(out, what):
    change, expected = FORGED_REPOSITORIES[what]
    rewrite(out, "repositories", change)
    problems = checked(out)
    assert any(re.search(expected, problem) for problem in problems), problems
    assert all(re.match(r"repositories|files|edges|packed/|/.*(manifest.json|arrow)", problem) for problem in problems)


def forge_file(number=1, **values):
    return lambda rows: [row for row in rows if row["fate"] == "kept"][number].update(values)


FORGED_FILES = {
    "text": (forge_file(text="x = 2\n"), "files, row 3 .*its text is not the one with its hash"),
    "text and hash": (
        forge_file(text="x = 2\n", text_sha256=hashlib.sha256(b"x = 2\n").hexdigest()), "its hash is not the one in files",
    ),
    "no text": (forge_file(text=None), "text is missing"),
    "fate": (forge_file(fate="binary"), "position, component, rank, text, text_sha256 is there"),
    "strange fate": (lambda rows: next(r for r in rows if r["fate"] == "binary").update(fate="lost"), "its fate is 'lost'"),
    "path": (forge_file(path="other.py"), "no kept file"),
    "a file twice": (lambda rows: rows.insert(0, rows[0]), "its row in repositories says"),
    "a path twice": (forge_file(path="twin_a.py"), "has the path of row"),
    "position": (forge_file(position=99), "does not stand in the order of files"),
    "a position twice": (lambda rows: [r.update(position=1) for r in rows if r["fate"] == "kept"][:0], "the same position"),
    "negative position": (forge_file(position=-1), "or one is negative"),
    "repository": (lambda rows: rows[1].update(repository=rows[-1]["repository"]), "named twice|name"),
    "a row less": (lambda rows: rows.pop(0), "its row in repositories says"),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED_FILES)
def test_forged_files_are_found(out, what):
    change, expected = FORGED_FILES[what]
    rewrite(out, "files", change)
    problems = checked(out)
    assert any(re.search(expected, problem) for problem in problems), problems


@pytest.mark.parametrize(
    "values", [{"to": "no.py"}, {"from": "logo.png"}, {"strength": "firm"}, {"repository": "a/b@c"}]
)
def test_forged_edges_are_found(out, values):
    manifest = Dataset(out).manifest
    rewrite(out, "edges", lambda rows: rows[0].update(values))
    batches = manifest["tables"]["edges"][0]["batch_rows"]
    if "repository" in values:  # in one batch with its neighbours, as it was
        (entry,) = json.loads((out / "manifest.json").read_text())["tables"]["edges"]
        assert entry["batch_rows"] != batches
    problems = checked(out)
    assert problems
    assert "edges" in problems[0]


def test_a_build_that_goes_on_does_not_take_damage_over(sound, out, tmp_path):
    """With another list a finished build's tables become units again: a flipped bit would get a good hash."""
    lines = (sound.parent / "list.txt").read_text().splitlines()[:2]
    (tmp_path / "list.txt").write_text("\n".join(lines) + "\n")
    specs, _ = read_list(tmp_path / "list.txt")
    config = BuildConfig.model_validate({"pack": {"lengths": "2k,16k"}, "targets": {"max_similarity": None}})
    (shard,) = Dataset(out).shards("files")
    data = bytearray((out / shard.path).read_bytes())
    data[shard.offsets[-1] + 400] ^= 1
    (out / shard.path).write_bytes(data)
    with pytest.raises(OutputError, match=r"files/00000\.arrow: is damaged"):
        build(specs, config, out, CrawlOptions(None), 1, Silent())
