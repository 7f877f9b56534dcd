"""A tiny Llama with random weights, rows made for it, and a training configuration: fixtures of the train and eval tests."""

import shutil
from pathlib import Path

import pytest
import torch
from conftest import make_repository, small_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from repo2ctx.config import BuildConfig
from repo2ctx.crawl import CrawlOptions
from repo2ctx.pipeline import build
from repo2ctx.records import RepoSpec
from repo2ctx.repolist import parse_plain
from train.config import TrainConfig

NATIVE = 512


class Silent:
    def stage(self, name: str, total: int, done: int = 0) -> None: ...
    def advance(self, what: str) -> None: ...
    def notice(self, text: str) -> None: ...


def tiny_shape(**changes) -> LlamaConfig:
    shape = {
        "vocab_size": 512, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": NATIVE, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "bos_token_id": 0, "eos_token_id": 2, "initializer_range": 0.2,
    }  # fmt: skip
    return LlamaConfig(**(shape | changes))


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
    """A folder with what `base` and `data` give, made once."""
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    LlamaForCausalLM(tiny_shape()).save_pretrained(folder / "base")
    small_tokenizer(folder / "base")
    specs = []
    for i in range(6):
        files = {
            "README.md": f"# T\n\nKeeps note number {i} and finds it by its words again.\n",
            "a.py": f"x = {i}\n" * (2 + 30 * (i % 3)),
        }
        specs.append(parse_plain(str(make_repository(folder / f"repo{i}", files)), folder))
    rows_of(specs, folder / "base", folder / "data")
    return folder


@pytest.fixture
def base(tmp_path, made) -> Path:
    """The directory of a tiny Llama with random weights and a tokenizer."""
    return Path(shutil.copytree(made / "base", tmp_path / "base"))


@pytest.fixture
def data(tmp_path, made) -> Path:
    """Rows of 1k made from small repositories; the short ones share a row."""
    return Path(shutil.copytree(made / "data", tmp_path / "data"))


def rows_of(specs: list[RepoSpec], base: Path, out: Path) -> Path:
    """Rows of 1k, all for training."""
    config = BuildConfig.model_validate(
        {"tokens": {"tokenizer": str(base)}, "pack": {"lengths": "1k"}, "split": {"validation": 0, "test": 0}}
    )
    build(specs, config, out, CrawlOptions(None), 1, Silent())
    return out


@pytest.fixture
def config(tmp_path, base, data) -> TrainConfig:
    return TrainConfig.model_validate(
        {
            "model": {"base": str(base), "device": "cpu"},
            "data": {"path": data, "length": "1k"},
            "rope": {"target": 4 * NATIVE},
            "adapter": {"r": 4, "alpha": 8},
            "optim": {"lr": 1e-2, "steps": 6, "rows_per_step": 2},
            "checkpoint": {"every": 2, "keep": 2},
            "out": tmp_path / "out",
        }
    )
