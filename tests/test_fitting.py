"""Documents of repositories that are drawn at random: what must be true of every one of them."""

import hashlib
from itertools import pairwise

import pyarrow as pa
import pytest
from conftest import small_tokenizer
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from repo2ctx import prompt, ranked
from repo2ctx.config import PackConfig, TokensConfig
from repo2ctx.fitting import Size, fit_documents
from repo2ctx.packing import FULL, HEAD, OUTLINE, PATH
from repo2ctx.tokens import load_tokenizer

BOUNDARY = "0a1b2c"
LARGE = 4096
SIZES = [
    Size(LARGE, LARGE, "line"),
    Size(LARGE, LARGE // 2, "line"),
    Size(LARGE, LARGE, "paragraph"),
    Size(1024, 1024, "line"),
    Size(256, 256, "line"),
]
LINES = (
    "def f(x): return x\n",
    "the end of the text\n",
    "\n",
    "ж" * 7 + "\n",
    "a" * 90 + "\n",
    "\t" * 40 + "\r\n",
    "no end",
    "=" * 400 + "\n",
    " " * 900,
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    small_tokenizer(folder)
    return load_tokenizer(TokensConfig(tokenizer=str(folder)))


@st.composite
def repositories(draw):
    """Rows of `files`: most small, some larger than a row, some without an outline, some not kept."""
    rows = []
    names = draw(st.lists(st.sampled_from(["a", "b/c", "b/d/e", "x y", '"q"']), max_size=12))
    positions = draw(st.permutations(range(len(names))))
    for number, (name, position) in enumerate(zip(names, positions, strict=True)):
        lines = draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=6))
        text = "".join(lines) * draw(st.sampled_from([1, 3, 40, 300]))
        outline = draw(st.sampled_from([None, 2, 10]))
        rows.append(
            {
                "path": f"{name}{number}",
                "fate": draw(st.sampled_from(["kept", "kept", "kept", "binary"])),
                "position": position,
                "rank": draw(st.sampled_from([0.1, 0.2, 0.4])),
                "text_sha256": hashlib.sha256(text.encode()).hexdigest(),
                "size": len(text.encode()),
                "outline": outline and f"# {number}\n" + text[: len(text) // outline],
                "text": text,
            }
        )
    return rows


def documents_of(rows, tokenizer, sizes=SIZES, share=0.25, batch=5):
    """What `fit_documents` makes of rows that come in batches."""
    table = pa.Table.from_pylist(
        rows,
        pa.schema(
            [("path", pa.string()), ("fate", pa.string()), ("position", pa.int32()), ("rank", pa.float32()),
             ("text_sha256", pa.string()), ("size", pa.int64()), ("outline", pa.large_string()), ("text", pa.large_string())]
        ),
    )  # fmt: skip
    repository = {"id": "h/o/n@1", "name": "h/o/n", "boundary": BOUNDARY}
    targets = {style: [*tokenizer.encode(f"a {style}"), tokenizer.eos] for style in ("line", "paragraph")}
    batches = lambda columns: table.select(list(columns)).to_batches(max_chunksize=batch)  # noqa: E731
    return fit_documents(repository, batches, sizes, tokenizer, targets, PackConfig(outline_share=share))


def shape(document):
    return document.input_ids.tolist(), document.spans, document.target_start, document.left_out


def check(document, size, rows, tokenizer):
    kept = {row["path"]: row for row in rows if row["fate"] == "kept"}
    assert len(document.input_ids) <= size.room
    paths = [span.path for span in document.spans]
    assert len(set(paths)) == len(paths)
    assert set(paths) <= kept.keys()
    assert document.left_out == len(kept) - len(paths)
    assert all(one.end <= other.start for one, other in pairwise(sorted(document.spans, key=lambda s: s.start)))
    held = [span for span in document.spans if span.fidelity != PATH]
    positions = [kept[span.path]["position"] for span in held]
    assert positions == sorted(positions)
    assert [span.fidelity for span in held].count(HEAD) <= 1
    for span in document.spans:
        row, text = kept[span.path], tokenizer.decode(document.input_ids[span.start : span.end].tolist())
        if span.fidelity == PATH:
            assert text.strip().strip('"').replace('\\"', '"').endswith(span.path.rsplit("/", 1)[-1].strip('"'))
            assert span.text_sha256 is None
            continue
        assert span.text_sha256 == row["text_sha256"]
        if span.fidelity == HEAD:
            assert row["text"].startswith(text)
            assert text != row["text"]
            assert text
        else:
            assert text == row["text" if span.fidelity == FULL else "outline"]
        marker = prompt.file_opening(span.path, BOUNDARY, span.fidelity)
        ids = tokenizer.encode(marker)
        assert document.input_ids[span.start - len(ids) : span.start].tolist() == ids
    ended = document.input_ids[document.target_start :].tolist()
    assert ended == [*tokenizer.encode(f"a {size.style}"), tokenizer.eos]


RANDOM = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@RANDOM
@given(rows=repositories(), share=st.sampled_from([0.0, 0.25, 0.5]), group=st.sampled_from([1, 3000, 32 << 20]))
def test_every_document_is_right(rows, share, group, tokenizer):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranked, "GROUP_BYTES", group)
        documents, refused = documents_of(rows, tokenizer, share=share)
    for size, document in documents.items():
        check(document, size, rows, tokenizer)
        whole = all(span.fidelity == FULL for span in document.spans) and not document.left_out
        if not whole and size.room == LARGE:
            assert len(document.input_ids) >= 0.97 * size.room, [
                (s.path, s.fidelity, s.end - s.start) for s in document.spans
            ]
    assert not documents.keys() & refused.keys()
    missing = {size for size in SIZES if size.whole} - documents.keys()
    assert missing <= refused.keys()
    if not any(row["fate"] == "kept" for row in rows):
        assert not documents
    halves = [size for size in documents if not size.whole]
    assert all(len(documents[Size(s.length, s.length, s.style)].input_ids) > s.length // 2 for s in halves)


@RANDOM
@given(rows=repositories(), batch=st.integers(1, 7))
def test_a_document_does_not_depend_on_what_else_is_asked_for(rows, batch, tokenizer):
    together, _ = documents_of(rows, tokenizer)
    for size in SIZES:
        if size.whole:
            alone, _ = documents_of(rows, tokenizer, [size], batch=batch)
            assert (size in alone) == (size in together)
            if size in alone:
                assert shape(alone[size]) == shape(together[size])


@RANDOM
@given(rows=repositories())
def test_what_fits_whole_is_whole(rows, tokenizer):
    """A repository of which every file fits is taken in full, whatever its outlines cost."""
    (size,) = sizes = [Size(1 << 24, 1 << 24, "line")]
    assume(any(row["fate"] == "kept" for row in rows))
    documents, _ = documents_of(rows, tokenizer, sizes)
    spans = documents[size].spans
    assert {span.fidelity for span in spans} == {FULL}
    assert len(spans) == sum(row["fate"] == "kept" for row in rows)


def test_outlines_taken_at_the_end_are_read_again(tokenizer):
    """No outline is within the share for outlines, no second file fits in full: outlines fill what is left over."""
    rows = []
    for number in range(40):
        text = f"def f{number}(x): return x\n" * (200 if number else 240)
        rows.append(
            {"path": f"m{number:02d}.py", "fate": "kept", "position": number, "rank": 1 / (1 + number),
             "text_sha256": hashlib.sha256(text.encode()).hexdigest(), "size": len(text), "outline": text[:200], "text": text}
        )  # fmt: skip
    documents, _ = documents_of(rows, tokenizer, share=0.02)
    document = documents[SIZES[0]]
    check(document, SIZES[0], rows, tokenizer)
    assert {span.fidelity for span in document.spans} >= {FULL, OUTLINE}
    assert [s.fidelity for s in document.spans].count(OUTLINE) > 5


@pytest.mark.parametrize("text", [" " * 60_000 + "\n", "=" * 30_000 + "\n", ("-" * 80 + "\n") * 900])
def test_a_text_of_few_tokens_for_its_size_is_taken_whole(text):
    """Rulers and blanks have dozens of characters a token; none is called a beginning that is whole."""
    tokenizer = load_tokenizer(TokensConfig(tokenizer="tiktoken:o200k_base"))
    tokens = len(tokenizer.encode(text))
    assert len(text) > 12 * tokens
    rows = []
    for number, source in enumerate((text, "x = 1\n")):
        hashed = hashlib.sha256(source.encode()).hexdigest()
        rows.append({"path": f"f{number}", "fate": "kept", "position": number, "rank": 0.5, "text_sha256": hashed, "size": len(source),
                     "outline": None, "text": source})  # fmt: skip
    for room in range(tokens + 150, tokens + 260, 5):
        documents, _ = documents_of(rows, tokenizer, [size := Size(room, room, "line")])
        check(documents[size], size, rows, tokenizer)
    assert [span.fidelity for span in documents[size].spans] == [FULL, FULL]
    large = 16 * tokens
    documents, _ = documents_of(rows, tokenizer, [Size(large, large, "line"), Size(large, large // 2, "line")])
    assert list(documents) == [Size(large, large, "line")]  # it is short, and has no shorter documents
