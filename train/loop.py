"""The training loop, on one process.

A step takes rows whose lengths add up to `rows_per_step` times the stage's length. Each goes through the model once, its
documents apart from each other, and gradients add up; the loss is the weighted mean over all counted tokens of the step. All
that a run is stands in its newest checkpoint, and the same command goes on from there: on a CPU to the last bit, also in the
middle of a step.
"""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import git
import torch

from repo2ctx.config import TokensConfig
from repo2ctx.errors import ConfigError, Repo2CtxError
from repo2ctx.models import check_vocabulary, tokenizer_files
from repo2ctx.prompt import PROMPT_VERSION
from repo2ctx.schema import SCHEMA_VERSION
from repo2ctx.tokens import load_tokenizer
from train.attention import row_inputs, use
from train.batches import Supply, TrainingRow
from train.checkpoint import RunState, load_checkpoint, newest, prune, save_adapter, save_checkpoint, sweep
from train.config import TrainConfig
from train.dry_run import plan_notes
from train.guard import Guard
from train.loss import check_head, loss_sum
from train.memory import told_out_of_memory, used_gb
from train.metrics import Metrics
from train.model import describe, make_model, move_to, weights_digest
from train.output import run_directory
from train.rope import base_rope, set_rope
from train.same_tokens import check_tokenizer
from train.stages import Stage, resolve_stages
from train.validation import Validation

_PROBE = 64  # tokens by which the way to the loss is checked against the model's own


class Interrupted(Exception):
    """The run was told to end by a signal, and has saved what it did."""

    def __init__(self, signum: int, saved: Path | None):
        super().__init__(f"{signal.Signals(signum).name}: saved {saved or 'nothing yet'}")
        self.signum = signum


class Signals:
    """The first SIGTERM or SIGINT is remembered, for the loop to end at a place where it can save; a second one ends at once."""

    def __init__(self) -> None:
        self.came: int | None = None

    def __enter__(self) -> Signals:
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():  # others may not
            self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _: object) -> None:
        self.came = number
        self._restore()


class _EndNow(Exception):
    """A signal came where nothing of a step is lost."""


def train(config: TrainConfig) -> Path:
    """Train, and return the directory of the finished model. Raises Repo2CtxError; Interrupted when a signal ends it."""
    with Signals() as signals:
        return Run(config, signals).train()


class Run:
    """One run: everything that it is made of, and where it stands (`state.run`, which checkpoints hold)."""

    def __init__(self, config: TrainConfig, signals: Signals):
        torch.manual_seed(config.seed)
        self.config, self.signals = config, signals
        self.stages = resolve_stages(config)
        self.supply = Supply(self.stages, config.loss, config.seed)
        self.validation = Validation(config, self.stages)
        self.tokenizer = tokenizer_files(config.model.base)
        chat, fingerprint = self._check_rows()
        self.model, self.settings = make_model(config, self.stages[0])
        self.base_digest = weights_digest(self.model)
        for dataset, table in [*self.supply.tables(), *self.validation.tables()]:
            check_vocabulary(self.model, dataset.id_range(table), f"{dataset.out}, {table}")
        self.attention = use(self.model, config.attention.path, dtype=getattr(torch, config.model.dtype))
        self.settings |= {
            "prompt_version": PROMPT_VERSION,
            "chat": chat,
            "schema_version": SCHEMA_VERSION,
            "tokenizer_fingerprint": fingerprint,
            "length": self.stages[0].length,
        }
        weights = [p for p in self.model.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(
            weights, lr=config.optim.lr, betas=config.optim.betas, weight_decay=config.optim.weight_decay
        )
        self.guard = Guard(config.guard)
        run: dict[str, Any] = {"step": 0, "stage": 0, "stage_step": 0, "stage_tokens": 0, "partial": None}
        run |= {"validation": None, "due": False, "base": None}
        run |= {"supply": self.supply.state_dict(), "guard": self.guard.state_dict()}
        run |= {"config": config.model_dump(mode="json"), "commit": _commit()}
        run |= {"prompt_version": PROMPT_VERSION, "schema_version": SCHEMA_VERSION}
        self.state = RunState(weights, optimizer, run)
        self.checkpoints = config.out / "checkpoints"

    def _check_rows(self) -> tuple[str, str]:
        """(the chat setting, the fingerprint of the tokenizer) of all rows, which must be the model's own."""
        tables = [*self.supply.tables(), *self.validation.tables()]
        chats = {dataset.manifest["config"]["tokens"]["chat"] for dataset, _ in tables}
        if len(chats) > 1:
            places = ", ".join(sorted({str(dataset.out) for dataset, _ in tables}))
            raise ConfigError(f"{places}: were built with tokens.chat {' and '.join(sorted(chats))}; build them alike")
        (chat,) = chats
        wanted = load_tokenizer(TokensConfig(tokenizer=str(self.tokenizer[0].parent), chat=chat))
        for dataset, table in tables:
            check_tokenizer(dataset, table, wanted, self.config.model.base)
        return chat, tables[0][0].manifest["tokenizer_fingerprint"]

    @property
    def stage(self) -> Stage:
        number: int = self.state.run["stage"]
        return self.stages[number]

    def train(self) -> Path:
        config, out = self.config, self.config.out
        identity = {"config": config.model_dump(mode="json"), "rows": self.supply.digest, "base": self.base_digest}
        with run_directory(out, identity):
            sweep(out)
            place = newest(self.checkpoints)
            if place is not None:
                self._go_on_from(place)
            run = self.state.run
            stages, ended = [stage.name for stage in self.stages], self._ended() and (out / "model").is_dir()
            board = None if ended else out / "tensorboard"
            with Metrics(out / "metrics.jsonl", run["step"], board, stages) as self.metrics:
                if ended:
                    self.metrics.notice(f"step {run['step']} was the last: nothing is left to train")
                    return out / "model"
                rows = self.supply.count(self.stage)
                self.metrics.notice("; ".join([describe(self.model, self.settings, rows), *plan_notes(config)]))
                self._check_head()
                if place is not None:
                    self.metrics.notice(f"going on from {place}")
                try:
                    self._measure_base()
                    self._stages()
                except _EndNow:
                    saved = self._save() if run["step"] or run["partial"] else None
                    raise Interrupted(self.signals.came or signal.SIGTERM, saved) from None
            save_adapter(self.model, self.tokenizer, self.settings, out / "model")
        return out / "model"

    def _ended(self) -> bool:
        run = self.state.run
        done = self.stage.progress(run["stage_step"], run["stage_tokens"]) >= 1
        return done and run["stage"] + 1 == len(self.stages) and not run["due"]

    def _go_on_from(self, place: Path) -> None:
        load_checkpoint(place, self.model, self.state)
        self.supply.load_state_dict(self.state.run["supply"])
        self.guard.load_state_dict(self.state.run["guard"])
        if self.state.run["stage"]:
            move_to(self.model, self.settings, self.config, self.stage)

    def _check_head(self) -> None:
        row = self.supply.peek(self.stage)
        length = min(_PROBE, row.documents[0])
        inputs = row_inputs((length,), self.model.device, self.config.attention.across_documents)
        check_head(self.model, row.ids_T[:length], inputs, self.config.model.base)

    def _measure_base(self) -> None:
        """The base's own loss at native length, under its own positions: what each stage's end is compared with."""
        run = self.state.run
        if run["base"] is None:
            own = base_rope(self.config)
            set_rope(self.model, own.rope_parameters, own.max_position_embeddings)
            run["base"] = self.validation.short_losses(self.model, self._between)  # nothing is trained yet
            set_rope(self.model, self.settings["rope_parameters"], self.settings["max_position_embeddings"])
        if run["step"] == 0 and run["base"]:
            self.metrics.validated({"step": 0, "stage": "base", "validation": run["base"]})

    def _between(self) -> None:
        if self.signals.came:
            raise _EndNow

    def _stages(self) -> None:
        run = self.state.run
        while True:
            if run["due"]:
                self._validate()
            if self.stage.progress(run["stage_step"], run["stage_tokens"]) >= 1:
                if run["stage"] + 1 == len(self.stages):
                    return
                run |= {"stage": run["stage"] + 1, "stage_step": 0, "stage_tokens": 0}
                self.supply.begin()
                move_to(self.model, self.settings, self.config, self.stage)
                rows = self.supply.count(self.stage)
                self.metrics.notice(describe(self.model, self.settings, rows))
            self._step()
            ended = self.stage.progress(run["stage_step"], run["stage_tokens"]) >= 1
            every = self.config.validation.every
            run["validation"] = None
            run["due"] = bool(self.validation.of_stage[run["stage"]]) and (
                ended or (every and run["step"] % every == 0)
            )
            if run["due"]:
                self._validate()
            if run["validation"] is not None or ended or run["step"] % self.config.checkpoint.every == 0:
                self._save()

    def _step(self) -> None:
        run, stage, config = self.state.run, self.stage, self.config
        partial = run["partial"] or {"rows": 0, "loss": 0.0, "seconds": 0.0}
        run["supply"] = self.supply.state_dict()  # of before the step, to draw the same rows again
        rows = self.supply.step(stage)
        weight = sum(row.weight for row in rows)
        start, before = time.monotonic(), stage.progress(run["stage_step"], run["stage_tokens"])
        for row in rows[partial["rows"] :]:
            if self.signals.came:
                run["partial"] = partial if partial["rows"] else None
                raise _EndNow
            loss = self._row(row, weight)
            partial["rows"] += 1
            partial["loss"] += loss
            partial["seconds"] += time.monotonic() - start
            start = time.monotonic()
        norm = torch.nn.utils.clip_grad_norm_(self.state.weights, config.optim.clip_norm).item()
        rate = stage.rate(run["stage_step"], run["stage_tokens"])
        tokens, step = sum(len(row.ids_T) for row in rows), run["step"] + 1
        skipped = self.guard.judge(step, partial["loss"], norm, [row.name for row in rows])
        if skipped is None:
            for group in self.state.optimizer.param_groups:
                group["lr"] = rate
            self.state.optimizer.step()
            if not all(p.isfinite().all() for p in self.state.weights):
                names = ", ".join(row.name for row in rows)
                raise Repo2CtxError(
                    f"step {step}: gave weights that are not finite, on {names}; lower optim.lr; nothing of this step is kept"
                )
        self.state.optimizer.zero_grad()
        run |= {"step": step, "stage_step": run["stage_step"] + 1, "stage_tokens": run["stage_tokens"] + tokens}
        run |= {"partial": None, "supply": self.supply.state_dict(), "guard": self.guard.state_dict()}
        seconds = partial["seconds"] + time.monotonic() - start
        record = {"step": step, "stage": stage.name, "loss": partial["loss"], "grad_norm": norm, "lr": rate}
        record |= {"rows": len(rows), "tokens": tokens, "target_tokens": sum(row.target_tokens for row in rows)}
        record |= {"seconds": round(seconds, 3), "tokens_per_s": round(tokens / seconds, 1)}
        record |= {"memory_gb": round(used_gb(self.model.device), 3)} | ({"skipped": skipped} if skipped else {})
        self.metrics.write(record, before, stage.progress(run["stage_step"], run["stage_tokens"]))

    def _row(self, row: TrainingRow, weight: float) -> float:
        """Add the gradients of one row; its part of the step's loss. weight: of all the step's counted tokens."""
        if not len(row.positions_P):
            return 0.0
        with told_out_of_memory(self.config, row.name, len(row.ids_T)):
            inputs = row_inputs(row.documents, self.model.device, self.config.attention.across_documents)
            loss = loss_sum(self.model, row, inputs, self.config.loss.chunk) / weight
            loss.backward()  # type: ignore[no-untyped-call]
            return loss.item()

    def _validate(self) -> None:
        run = self.state.run
        losses = self.validation.losses(self.model, run["stage"], self._between)
        run |= {"due": False, "validation": next(iter(losses.values()))}
        self.metrics.validated({"step": run["step"], "stage": self.stage.name, "validation": losses}, run["base"])

    def _save(self) -> Path:
        place = save_checkpoint(self.checkpoints, self.model, self.tokenizer, self.settings, self.state)
        prune(self.checkpoints, self.config.checkpoint.keep)
        self.metrics.notice(f"saved {place}")
        return place


def _commit() -> str | None:
    """The commit of this code, with a mark if files have changed since; None outside a git repository."""
    try:
        repository = git.Repo(Path(__file__).resolve().parents[1])
        return repository.head.commit.hexsha + ("-dirty" if repository.is_dirty() else "")
    except (git.InvalidGitRepositoryError, git.NoSuchPathError, ValueError):
        return None
