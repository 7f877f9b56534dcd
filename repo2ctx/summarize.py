"""A repository -> a summary, by a model that was tuned for it or any causal language model.

The repository goes the very way of training: the same crawl, selection, order, leak guard, fit and prompt, with room for
the answer where the target would be. torch and transformers load inside.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repo2ctx.config import BuildConfig, PackConfig, TokensConfig, length_name
from repo2ctx.crawl import CrawlOptions, find_repository
from repo2ctx.errors import ModelError, Repo2CtxError, UsageError
from repo2ctx.fitting import Size, fit_documents
from repo2ctx.models import (
    SETTINGS,
    SMOLLM2,
    check_vocabulary,
    load_base,
    load_shape,
    load_tuned,
    model_source,
    pick_device,
    read_settings,
)
from repo2ctx.packing import PATH
from repo2ctx.progress import Reporter, printable, printable_lines
from repo2ctx.prompt import PROMPT_VERSION
from repo2ctx.repolist import parse_plain
from repo2ctx.safegit import isolate_environment
from repo2ctx.tokens import Tokenizer, load_tokenizer
from repo2ctx.unit import UnitTask, build_unit, read_unit

_USUAL_LENGTH = 8192
_LONGEST_ANSWER = {"line": 64, "paragraph": 256}  # tokens


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary, and what it was made from. complete: the model ended it; else it was cut at the most tokens."""

    summary: str
    complete: bool
    model: str
    commit: str
    files_used: list[str]
    files_left_out: list[str]
    tokens: int


def summarize(
    path: Path, model: str, style: str, length: int | None, max_new_tokens: int | None, reporter: Reporter
) -> Summary:
    """Summarize the HEAD commit of the repository at `path`.

    model: a directory of `train.run`, or what `load_base` takes. style: line or paragraph. length: tokens of the prompt
    and the answer; by default what the model was tuned on, or its own context up to 8k. max_new_tokens: of the answer; by
    default 64 or 256, by style. Raises Repo2CtxError.
    """
    tuned = Path(model) if (Path(model) / SETTINGS).is_file() else None
    settings = read_settings(tuned) if tuned else {}
    if settings and settings["prompt_version"] != PROMPT_VERSION:
        raise ModelError(f"{model}: was trained with prompt version {settings['prompt_version']}, not {PROMPT_VERSION}")
    base = model if settings.get("kind") == "full" else settings.get("base", model)
    tokenizer = load_tokenizer(TokensConfig(tokenizer=model_source(base), chat=settings.get("chat", "auto")))
    longest = settings.get("max_position_embeddings") or getattr(load_shape(base), "max_position_embeddings", None)
    room = length or settings.get("length") or min(_USUAL_LENGTH, longest or _USUAL_LENGTH)
    if longest and room > longest:
        raise UsageError(
            f"--length {length_name(room)} is more than the context of {model}, {length_name(longest)}; lower it"
        )
    answer = max_new_tokens or _LONGEST_ANSWER[style]
    repository, files, context = _context(path, style, room, tokenizer, answer)
    used = [span.path for span in context["spans"] if span.fidelity != PATH]
    device = pick_device()
    dtype = "float32" if device == "cpu" else "bfloat16"
    reporter.notice(f"{model} reads {len(context['input_ids']):,} tokens of {len(used):,} files on {device}")
    loaded = (load_tuned(tuned, dtype, device) if tuned else load_base(model, dtype=dtype, device=device)).eval()
    ids = context["input_ids"]
    check_vocabulary(loaded, (int(ids.min()), int(ids.max())), f"{path}, as tokens")
    reporter.stage("tokens", answer)
    made = _generate(loaded, context["input_ids"], answer, tokenizer, style, reporter)
    text = tokenizer.decode([t for t in made if t != tokenizer.eos]).strip()
    return Summary(
        summary=text.partition("\n")[0] if style == "line" else text,
        complete=len(made) < answer or made[-1] == tokenizer.eos or (style == "line" and "\n" in text),
        model=str(model),
        commit=repository["commit"],
        files_used=used,
        files_left_out=[f for f in files if f not in set(used)],
        tokens=len(context["input_ids"]),
    )


def default_model(outputs: Path) -> str:
    """The newest tuned model under `outputs`, else smollm2."""
    found = sorted(outputs.glob(f"**/model/{SETTINGS}"), key=lambda p: (p.stat().st_mtime_ns, p))
    return str(found[-1].parent) if found else SMOLLM2


def _context(
    path: Path, style: str, length: int, tokenizer: Tokenizer, answer_tokens: int
) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    """(the repository's row, its kept files in order, the prompt's ids and spans)."""
    isolate_environment()
    root, folder = find_repository(path)
    if folder:
        raise Repo2CtxError(f"{path}: is a folder inside the repository {root}; give the repository")
    with tempfile.TemporaryDirectory() as scratch:
        spec = parse_plain(str(root), root)
        build_unit(UnitTask(spec, Path(scratch) / "unit", BuildConfig(), CrawlOptions(None)))
        unit = read_unit(Path(scratch) / "unit")
        answer = [tokenizer.eos] * answer_tokens
        documents, refused = fit_documents(
            unit.repository,
            lambda columns: (b.select(columns) for b in unit.batches("files")),
            [Size(length, length, style)],
            tokenizer,
            {style: answer},
            PackConfig(),
        )
        files = [
            (f["position"], f["path"])
            for batch in unit.batches("files")
            for f in batch.select(("path", "position")).to_pylist()
            if f["position"] is not None
        ]
    if not documents:
        raise Repo2CtxError(
            f"{path}: nothing to summarize in {length:,} tokens: {', '.join(refused.values())}"
            + ("; raise --length" if files else "")
        )
    (document,) = documents.values()
    context = {"input_ids": document.input_ids[: document.target_start], "spans": document.spans}
    return unit.repository, [p for _, p in sorted(files)], context


def _generate(
    model: Any, context_C: Any, longest: int, tokenizer: Tokenizer, style: str, reporter: Reporter
) -> list[int]:
    """The greedy continuation, up to the end token; a line ends with its first line break."""
    import torch
    from transformers import StoppingCriteria

    ids = torch.from_numpy(context_C.astype("int64"))[None].to(model.device)

    class Watch(StoppingCriteria):
        def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
            reporter.advance("")
            text = tokenizer.decode(input_ids[0, ids.shape[1] :].tolist()).lstrip() if style == "line" else ""
            return torch.tensor(["\n" in text], device=input_ids.device)

    with torch.inference_mode():
        made = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=longest,
            do_sample=False,
            eos_token_id=tokenizer.eos,
            pad_token_id=tokenizer.eos,
            stopping_criteria=[Watch()],
        )
    answer: list[int] = made[0, ids.shape[1] :].tolist()
    return answer


def as_markdown(found: Summary) -> str:
    """The summary, then what it rests on."""
    left = len(found.files_left_out)
    lines = [
        printable_lines(found.summary) + ("" if found.complete else " […]"),
        "",
        f"*{printable(found.model)} on commit {found.commit[:12]}: {found.tokens:,} tokens from {len(found.files_used):,} files; "
        f"{left:,} files were left out"
        + (f", the first of them {printable(found.files_left_out[0])}" if left else "")
        + ".*",
    ]
    return "\n".join(lines)
