"""Shared by the tests: small repositories made on the fly, and their graphs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

from repo2ctx.graph import Graph, build_graph
from repo2ctx.languages import RepoTree, is_config_file
from repo2ctx.parsing import scan

# Tests run side by side, and threads that wait for each other on a busy core cost far more than they bring to tiny models.
os.environ.setdefault("OMP_NUM_THREADS", "1")
pytest_plugins = ["tiny", "endpoint"]

LANGUAGE_OF = {
    ".py": "Python", ".pyi": "Python", ".js": "JavaScript", ".jsx": "JavaScript", ".mjs": "JavaScript",
    ".cjs": "JavaScript", ".ts": "TypeScript", ".mts": "TypeScript", ".cts": "TypeScript", ".tsx": "TSX",
    ".go": "Go", ".java": "Java", ".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++", ".hpp": "C++", ".rs": "Rust",
    ".rb": "Ruby", ".php": "PHP", ".cs": "C#",
}  # fmt: skip


def graph_of_files(files: Mapping[str, str]) -> Graph:
    """The graph of a repository given as path -> text."""
    parsed = {}
    for path, source in files.items():
        language = LANGUAGE_OF.get(Path(path).suffix)
        if language:
            parsed[path] = (language, scan(language, path, source.encode()))
    configs = {p: t for p, t in files.items() if is_config_file(Path(p).name)}
    return build_graph(RepoTree(files.keys(), configs), parsed)


@pytest.fixture
def edges_of() -> Callable[[Mapping[str, str]], set[tuple[str, str]]]:
    """`edges_of({path: text})` -> the set of (source, target)."""
    return lambda files: {(e.source, e.target) for e in graph_of_files(files).edges}


@pytest.fixture
def strengths_of() -> Callable[[Mapping[str, str]], dict[tuple[str, str], str]]:
    """`strengths_of({path: text})` -> {(source, target): hard or soft}, hard if any edge is."""

    def strengths(files: Mapping[str, str]) -> dict[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        for edge in graph_of_files(files).edges:
            if found.get((edge.source, edge.target)) != "hard":
                found[edge.source, edge.target] = edge.strength
        return found

    return strengths


@pytest.fixture
def unresolved_of() -> Callable[[Mapping[str, str]], set[tuple[str, str]]]:
    """`unresolved_of({path: text})` -> the set of (source, name) that looked internal and led nowhere."""
    return lambda files: {(u.source, u.name) for u in graph_of_files(files).unresolved}


def git(folder: Path, *args: str, check: bool = True) -> str:
    """Run git in `folder` with no configuration but its own, at a fixed time and as a made-up author."""
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Test", "GIT_AUTHOR_EMAIL": "test@example.invalid",
        "GIT_COMMITTER_NAME": "Test", "GIT_COMMITTER_EMAIL": "test@example.invalid",
        "GIT_AUTHOR_DATE": "2024-03-01T12:00:00+0000", "GIT_COMMITTER_DATE": "2024-03-01T12:00:00+0000",
    }  # fmt: skip
    done = subprocess.run(
        ["git", "-C", str(folder), "-c", "core.autocrlf=false", *args], env=env, check=check, capture_output=True
    )
    return done.stdout.decode("utf-8", "surrogateescape")


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = Path(os.fsdecode(os.fsencode(str(folder / name))))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def make_repository(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """A git repository with one commit of `files` (path -> text or bytes) at `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    write_files(folder, files)
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one state")
    return folder


@pytest.fixture
def make_repo(tmp_path: Path) -> Callable[..., Path]:
    """`make_repo({path: text or bytes}, name="repo")` -> the path of a git repository with one commit."""
    return lambda files, name="repo": make_repository(tmp_path / name, files)


def small_tokenizer(folder, eos="<|im_end|>", normalizer=None, bos=False):
    """A small byte-level BPE tokenizer with control tokens, saved as models are."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(["def f(x): return x", "the end of the text"] * 20, trainer)
    tokenizer.add_tokens(["<tool_call>", "    "])  # models mark such as ordinary tokens
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": eos}}))
    return folder


def outputs_by_hash_seed(program: str) -> set[bytes]:
    """The different outputs of a Python program under several hash seeds: one, if no set's order shows."""
    path = os.pathsep.join(p for p in sys.path if p)
    return {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2", "3", "77")
    }
