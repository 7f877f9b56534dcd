"""The list of repositories: what each line means, and how bad lines are told."""

import json
from pathlib import Path

import pytest

from repo2ctx.errors import ListError
from repo2ctx.repolist import parse_plain, read_list


def read(tmp_path: Path, text: str | bytes):
    path = tmp_path / "list.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_list(path)


@pytest.mark.parametrize(
    ("line", "name", "url", "ref"),
    [
        ("pallets/flask", "github.com/pallets/flask", "https://github.com/pallets/flask", None),
        ("pallets/flask.git", "github.com/pallets/flask", "https://github.com/pallets/flask", None),
        ("pallets/flask@3.0.x", "github.com/pallets/flask", "https://github.com/pallets/flask", "3.0.x"),
        ("a/b@fix/issue#40", "github.com/a/b", "https://github.com/a/b", "fix/issue#40"),
        ("https://example.org/a/b.git", "example.org/a/b", "https://example.org/a/b.git", None),
        ("https://example.org/group/sub/b@v1", "example.org/group/sub/b", "https://example.org/group/sub/b", "v1"),
        ("example.org/a/b", "example.org/a/b", "https://example.org/a/b", None),
        ("ssh://git@example.org/a/b@main", "example.org/a/b", "ssh://git@example.org/a/b", "main"),
        ("git@example.org:a/b.git@main", "example.org/a/b", "git@example.org:a/b.git", "main"),
        ("http://localhost:8080/a/b", "localhost:8080/a/b", "http://localhost:8080/a/b", None),
    ],
)
def test_remote_lines(line, name, url, ref):
    spec = parse_plain(line, Path("/nowhere"))
    assert (spec.name, spec.url, spec.ref) == (name, url, ref)


def test_credentials_reach_git_and_nothing_else():
    spec = parse_plain("https://user:s3cret@example.org/a/b@main", Path("/"))
    assert "s3cret" in spec.url
    assert "s3cret" not in spec.source + spec.name


def test_local_lines(tmp_path):
    (tmp_path / "re@po").mkdir()
    (tmp_path / "plain").mkdir()
    folder = tmp_path.name
    for line, path, ref in [
        ("./plain", "plain", None),
        ("./plain@v1", "plain", "v1"),
        ("./plain@fix/x@2", "plain", "fix/x@2"),
        ("./re@po", "re@po", None),
        ("./re@po@main", "re@po", "main"),
        (f"{tmp_path}/plain/.git", "plain", None),
        (f"file://{tmp_path}/plain@v2", "plain", "v2"),
        (f"file://{tmp_path}/re%40po", "re@po", None),
    ]:
        spec = parse_plain(line, tmp_path)
        assert (spec.url, spec.ref, spec.name) == (str(tmp_path / path), ref, f"local/{folder}/{path}"), line


def test_comments_blank_lines_and_numbers(tmp_path):
    specs, notices = read(tmp_path, "\ufeff# first\n\n a/b@x#y   # why\n  # indented\nc/d\na/b@x#y\n")
    assert [(s.source, s.ref, s.line) for s in specs] == [("a/b@x#y", "x#y", 3), ("c/d", None, 5)]
    assert len(notices) == 1
    assert ":6:" in notices[0]
    assert "line 3" in notices[0]


def test_json_lines(tmp_path):
    line = json.dumps({"repo": "a/b", "ref": "main", "summary": " It does. ", "split": "test"})
    specs, _ = read(tmp_path, line)
    assert (specs[0].ref, specs[0].summary, specs[0].split) == ("main", "It does.", "test")


def test_a_local_copy_may_be_named(tmp_path):
    specs, _ = read(tmp_path, json.dumps({"repo": "./copy", "name": "github.com/a/b"}))
    assert specs[0].name == "github.com/a/b"
    with pytest.raises(ListError, match="host/owner/name"):
        read(tmp_path, json.dumps({"repo": "./copy", "name": "a b@c"}))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--upload-pack=touch x", "looks like an option"),
        ("ext::sh -c id", "remote helper"),
        ("ext::sh%20-c%20id", "remote helper"),
        ("fd::17", "remote helper"),
        ("ftp://example.org/a/b", "not fetched"),
        ("file://example.org/a", "names no host"),
        ("https:///a/b", "names no host"),
        ("https://-oProxyCommand=x/a/b", "names no host"),
        ("https://example.org/", "names no repository"),
        ("https://example.org/a/../b", "names no repository"),
        ("just-a-word", "expected owner/name"),
        ("a/b c/d", "expected owner/name"),
        ("a/b@", "no branch"),
        ("https://example.org/a/b@", "no branch"),
        ("a/b@-x", "no branch"),
        ("a/b@x..y", "no branch"),
        ("a/b@HEAD^", "no branch"),
        ("a/b@\x1b[31m", "control character"),
        ('{"repo": "a/b", "reff": "x"}', "did you mean 'ref'"),
        ('{"repo": "a/b", "colour": "x"}', "known keys"),
        ('{"ref": "x"}', "needs the key 'repo'"),
        ('{"repo": 3}', "must be a string"),
        ('{"repo": "a/b", "summary": " "}', "must be a string that is not empty"),
        ('{"repo": "a/b", "split": "dev"}', "none of train, validation, test"),
        ('{"repo": "a/b@x", "ref": "y"}', "gives the ref twice"),
        ('{"repo": "a/b"', "not a JSON object"),
        ('{"a":' * 2000, "not a JSON object"),
        (b"a/b\xff", "not UTF-8 at byte 4"),
    ],
)
def test_bad_lines_are_named_with_their_number(tmp_path, line, says):
    text = b"ok/ok\n" + (line if isinstance(line, bytes) else line.encode()) + b"\n"
    with pytest.raises(ListError) as error:
        read(tmp_path, text)
    assert "list.txt:2: " in str(error.value)
    assert says in str(error.value)
    assert error.value.exit_code == 2


def test_all_bad_lines_are_told_at_once(tmp_path):
    with pytest.raises(ListError) as error:
        read(tmp_path, "nope\nok/ok\nnope-too\n")
    assert [line.split(":")[1] for line in str(error.value).splitlines()] == ["1", "3"]


def test_a_name_that_is_also_a_folder_is_refused(tmp_path):
    (tmp_path / "owner" / "name").mkdir(parents=True)
    with pytest.raises(ListError, match=r"\./owner/name"):
        read(tmp_path, "owner/name\n")


def test_contradicting_lines_are_refused(tmp_path):
    with pytest.raises(ListError, match="line 1"):
        read(tmp_path, 'a/b\n{"repo": "a/b", "summary": "Other words."}\n')


def test_empty_and_missing_lists(tmp_path):
    with pytest.raises(ListError, match="names no repository"):
        read(tmp_path, "# nothing\n")
    with pytest.raises(ListError, match="check --repos"):
        read_list(tmp_path / "missing.txt")
