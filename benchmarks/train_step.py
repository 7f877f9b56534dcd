"""What a training step takes, by length: seconds, tokens a second, and the most memory.

    python benchmarks/train_step.py --config data/recipes/llama3-8b-1m-1xH200.yaml [section.key=value …]
                                    [--lengths 8k 32k 128k] [--documents 1] [--steps 3]

The trainer's own model, attention, loss and optimizer, on one row a step of random tokens, the last 200 tokens of each document
counted as a target's are. The model has the shape of `model.shape` and random weights, so that nothing but the recipe is needed;
`qlora` is left out, since its weights are quantized from files. For each length: median seconds of a step after one that warms
up, tokens a second, TFLOP/s of what the step computes (without what checkpointing computes again), and the most memory held,
in 10^9 bytes, by the step that warms up too. A length that does not fit says so.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from attention_paths import lengths_of
from machine import machine

from repo2ctx.config import length_name, parse_length, read_config
from repo2ctx.models import pick_device
from repo2ctx.positions import set_positions
from train.adapters import described, trained_weights
from train.attention import row_inputs, use
from train.batches import TrainingRow
from train.config import TrainConfig
from train.loss import loss_sum
from train.memory import used_gb
from train.model import in_training
from train.rope import decide_positions
from train.run import parse_overrides
from train.shape import model_shape

TARGET = 200  # tokens of a document that count


def random_model(config: TrainConfig) -> Any:
    """The model of `model.shape`, in training, with random weights."""
    import transformers

    shape = model_shape(config.model, config.rope)
    rope, window = decide_positions(config)
    set_positions(shape, rope.rope_parameters, rope.max_position_embeddings, window)
    dtype = torch.float32 if config.adapter.kind == "full" else getattr(torch, config.model.dtype)
    device = pick_device(config.model.device)
    with torch.device(device):
        base = transformers.AutoModelForCausalLM.from_config(shape, dtype=dtype)  # type: ignore[no-untyped-call]
    return in_training(base, config)


def random_row(tokens: int, documents: int, words: int) -> TrainingRow:
    """A row of documents of unlike lengths, each with a target at its end."""
    lengths = lengths_of(tokens, documents, seed=1)
    positions: list[int] = []
    start = 0
    for n in lengths:
        positions += range(start + max(1, n - TARGET), start + n)
        start += n
    ids_T = torch.randint(words, (tokens,), generator=torch.Generator().manual_seed(1))
    return TrainingRow(ids_T, lengths, torch.tensor(positions), torch.ones(len(positions)), len(positions), "random")


def work(model: Any, row: TrainingRow) -> float:
    """Floating-point operations of a step: 2 a weight and token forwards, 2 backwards, 2 more where the weight is trained; of
    attention 4 a pair that is seen, dimension and head forwards, and twice that backwards."""
    config, tokens = model.config, len(row.ids_T)
    head = model.get_output_embeddings().weight
    linear = sum(m.weight.numel() for m in model.modules() if isinstance(m, torch.nn.Linear) and m.weight is not head)
    trained = sum(n for what, n in trained_weights(model).items() if what in ("LoRA", "linear layers"))
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    pairs = sum(n * (n + 1) / 2 for n in row.documents)
    attention = 12 * config.num_hidden_layers * config.num_attention_heads * size * pairs
    return float(tokens * (4 * linear + 2 * trained) + 4 * head.numel() * len(row.positions_P) + attention)


def measure(model: Any, config: TrainConfig, row: TrainingRow, steps: int) -> str:
    """The cells of a length's line of the table."""
    device, weights = model.device, [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=1e-6)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    seconds = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        inputs = row_inputs(row.documents, device, config.attention.across_documents)
        (loss_sum(model, row, inputs, config.loss.chunk) / row.weight).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(weights, config.optim.clip_norm).item()
        optimizer.step()
        optimizer.zero_grad()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds[1:])
    rate = work(model, row) / median / 1e12
    return f"{median:,.2f} | {len(row.ids_T) / median:,.0f} | {rate:.3g} | {used_gb(device):.1f}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--config", type=Path, required=True)
    arguments.add_argument("--lengths", type=parse_length, nargs="+", default=[8 << 10, 32 << 10, 128 << 10])
    arguments.add_argument("--documents", type=int, default=1)
    arguments.add_argument("--steps", type=int, default=3)
    arguments.add_argument("overrides", nargs="*", metavar="section.key=value")
    options = arguments.parse_intermixed_args()
    config = read_config(TrainConfig, options.config, parse_overrides(options.overrides))
    if config.adapter.kind == "qlora":
        arguments.error("adapter.kind qlora is not measured: its weights are quantized from files")
    torch.manual_seed(0)
    model = random_model(config)
    path = use(model, config.attention.path, dtype=getattr(torch, config.model.dtype))
    where = f"{torch.cuda.get_device_name()}, " if model.device.type == "cuda" else ""
    kept = "checkpointing" if config.model.checkpointing else "no checkpointing"
    print(f"{where}{machine()}, torch {torch.__version__}; {options.config.stem}, {config.adapter.kind}, ", end="")
    print(f"{config.model.dtype}, {kept}, attention by {path}; {described(model)}\n")
    print("| tokens | documents | s a step | tokens/s | TFLOP/s | GB |\n|---|---:|---:|---:|---:|---:|")
    for tokens in options.lengths:
        row = random_row(tokens, options.documents, model.config.vocab_size)
        try:
            cells = measure(model, config, row, options.steps)
        except torch.OutOfMemoryError:
            cells = "out of memory | | | "
            model.zero_grad()
            torch.cuda.empty_cache()
        print(f"| {length_name(tokens)} | {options.documents} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
