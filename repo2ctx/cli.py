"""The `repo2ctx` command. Results go to stdout, progress and errors to stderr.

Exit codes: 0 done; 1 the work failed, what is finished is kept; 2 wrong usage, list or configuration; 130 interrupted.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from repo2ctx import __version__
from repo2ctx.errors import Repo2CtxError, UsageError
from repo2ctx.progress import printable, printable_json
from repo2ctx.records import OrderMethod

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Turn whole repositories into long-context training rows, dependencies first.",
)


# What typer raises for a wrong command line; it has no public name of its own for it.
_COMMAND_LINE_ERROR: type[BaseException] = typer.BadParameter.__bases__[0]


_INTERRUPTED = 130


class Style(StrEnum):
    """How long a summary is."""

    line = "line"
    paragraph = "paragraph"


class GraphFormat(StrEnum):
    """How `graph` prints edges."""

    tsv = "tsv"
    json = "json"
    dot = "dot"


_ORDER_HELP = "The order of files; any other than dependency is there to be compared with."


def _version(show: bool) -> None:
    if show:
        print(f"repo2ctx {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Turn whole repositories into long-context training rows, dependencies first."""


@app.command()
def build(
    repos: Annotated[Path, typer.Option(help="The list: owner/name, URLs, paths, each with @ref, or JSON lines.")],
    out: Annotated[Path, typer.Option(help="Where the dataset goes; run again to go on.")],
    config: Annotated[Path | None, typer.Option(help="A YAML file with sections such as pack, targets, split.")] = None,
    lengths: Annotated[str | None, typer.Option(help="Row lengths in tokens, such as 8k,32k,1m.")] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="tiktoken:NAME, a vocabulary file, smollm2, or a Hugging Face name or directory.")
    ] = None,
    order: Annotated[OrderMethod | None, typer.Option("--order", help=_ORDER_HELP)] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a processor.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where fetched repositories are kept.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep no fetched repository.")] = False,
    repo_timeout: Annotated[float, typer.Option(min=1, help="Seconds that one repository may take.")] = 7200,
    offline: Annotated[
        bool, typer.Option("--offline", help="Fetch nothing and ask no teacher; use the cache.")
    ] = False,
    teacher_budget: Annotated[
        int | None, typer.Option(min=1, help="Tokens that a teacher model may take, read and written together.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the configuration and the list, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Build a dataset from a list of repositories."""
    from repo2ctx.config import load_config
    from repo2ctx.crawl import CrawlOptions, default_cache
    from repo2ctx.engine import default_workers
    from repo2ctx.pipeline import build as run_build
    from repo2ctx.progress import ProgressReporter
    from repo2ctx.repolist import read_list
    from repo2ctx.tables import print_result
    from repo2ctx.teacher_client import endpoint_from_environment
    from repo2ctx.teaching import TeacherOptions

    _check_named(tokenizer)
    overrides: dict[str, dict[str, Any]] = {
        "pack": {"lengths": lengths} if lengths is not None else {},
        "tokens": {"tokenizer": tokenizer} if tokenizer is not None else {},
        "order": {"method": order} if order else {},
    }
    resolved = load_config(config, overrides)
    if teacher_budget is not None and "teacher" not in resolved.targets.sources:
        raise UsageError(
            "--teacher-budget: targets.sources in --config names no teacher; add it there, or leave this out"
        )
    specs, notices = read_list(repos)
    if dry_run:
        print(yaml.safe_dump(resolved.model_dump(mode="json"), sort_keys=False), end="")
        listed = (s.name + (f"@{s.ref}" if s.ref else "") for s in specs)
        print("repositories:", *(f"- {printable(name)}" for name in listed), sep="\n")
        return
    kept = None if no_cache else cache or default_cache()
    teacher = None
    if "teacher" in resolved.targets.sources:
        endpoint = None if offline else endpoint_from_environment()
        teacher = TeacherOptions(endpoint, teacher_budget, kept and kept / "teacher")
    with ProgressReporter(quiet) as reporter:
        for text in notices:
            reporter.notice(text)
        result = run_build(
            specs,
            resolved,
            out,
            CrawlOptions(kept, offline),
            workers or default_workers(),
            reporter,
            repo_timeout,
            teacher,
        )
    print_result(result, reporter.seconds, as_json)
    if result.failures or result.left_out:
        raise typer.Exit(1)


@app.command()
def pack(
    out: Annotated[Path, typer.Argument(help="The --out of a finished build.")],
    lengths: Annotated[str | None, typer.Option(help="Row lengths to add, in tokens, such as 256k,1m.")] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Another tokenizer than the build's; with --replace its rows take the others' place."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Make rows anew that are there.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a processor.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Where token ids are kept.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Keep no token ids.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Make rows of other lengths, or of another tokenizer, from what a build holds: nothing is fetched or parsed."""
    from repo2ctx.config import TokensConfig, parse_lengths
    from repo2ctx.crawl import default_cache
    from repo2ctx.engine import default_workers
    from repo2ctx.progress import ProgressReporter
    from repo2ctx.repack import repack
    from repo2ctx.tables import print_result

    _check_named(tokenizer)
    if lengths is None and tokenizer is None and not replace:
        raise UsageError("pack: nothing to do; give --lengths, --tokenizer, or --replace to make all rows anew")
    wanted = parse_lengths(lengths) if lengths is not None else ()
    tokens = TokensConfig(tokenizer=tokenizer) if tokenizer is not None else None
    with ProgressReporter(quiet) as reporter:
        kept = None if no_cache else cache or default_cache()
        result = repack(out, wanted, tokens, replace, workers or default_workers(), kept, reporter)
    print_result(result, reporter.seconds, as_json)


_PATH_HELP = "A folder in a git repository (its HEAD commit is read), or the --out of a build."


@app.command()
def graph(
    path: Annotated[Path, typer.Argument(help=_PATH_HELP)],
    identity: Annotated[str | None, typer.Argument(metavar="[ID]", help="Which repository of an OUT.")] = None,
    form: Annotated[GraphFormat, typer.Option("--format", help="How to print the edges.")] = GraphFormat.tsv,
    unresolved: Annotated[
        bool, typer.Option("--unresolved", help="List what looked internal and did not resolve, instead.")
    ] = False,
) -> None:
    """Print which file needs which: from, to, kind, hard or soft."""
    from repo2ctx import inspection

    if unresolved and form is GraphFormat.dot:
        raise UsageError("--unresolved has no dot form; give --format tsv or json")
    found = inspection.graph_of(path, identity, unresolved)
    if unresolved and form is GraphFormat.json:
        print(printable_json([{"from": u.source, "line": u.line, "name": u.name} for u in found.unresolved]))
    elif unresolved:
        for item in found.unresolved:
            print(_field(item.source), item.line, _field(item.name), sep="\t")
    elif form is GraphFormat.tsv:
        for edge in found.edges:
            print(_field(edge.source), _field(edge.target), edge.kind, edge.strength, sep="\t")
    elif form is GraphFormat.json:
        rows = [{"from": e.source, "to": e.target, "kind": e.kind, "strength": e.strength} for e in found.edges]
        print(printable_json(rows))
    else:
        print("digraph {")
        for edge in found.edges:
            style = "solid" if edge.strength == "hard" else "dashed"
            print(f'  {json.dumps(edge.source)} -> {json.dumps(edge.target)} [label="{edge.kind}", style={style}];')
        print("}")


@app.command()
def order(
    path: Annotated[Path, typer.Argument(help=_PATH_HELP)],
    identity: Annotated[str | None, typer.Argument(metavar="[ID]", help="Which repository of an OUT.")] = None,
    method: Annotated[OrderMethod, typer.Option("--order", help=_ORDER_HELP)] = "dependency",
    paths: Annotated[bool, typer.Option("--paths", help="Print one path a line.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Print the files in the order in which a model reads them, with their rank and why."""
    from repo2ctx import inspection

    found = inspection.order_of(path, identity, method)
    if paths and as_json:
        print(printable_json([p.path for p in found]))
    elif paths:
        for placed in found:
            print(_field(placed.path))
    elif as_json:
        rows = [{"position": p.position, "path": p.path, "rank": p.rank, "why": p.why} for p in found]
        print(printable_json(rows))
    else:
        for p in found:
            print(f"{p.position:>6}  {p.rank:.6f}  {_field(p.path)}  ({printable(p.why)})")


@app.command()
def inspect(
    out: Annotated[Path, typer.Argument(help="The --out of a build.")],
    identity: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Which repository; by default the first.")
    ] = None,
    length: Annotated[str | None, typer.Option(help="Which length; by default the longest.")] = None,
    style: Annotated[Style | None, typer.Option(help="Which target: line or paragraph.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Print the whole document, not its head and tail.")] = False,
) -> None:
    """Show one example as a person would read it."""
    from repo2ctx import inspection

    print(inspection.example(out, identity, length, style, full))


@app.command()
def verify(
    out: Annotated[Path, typer.Argument(help="The --out of a build.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Check a build from what it wrote alone: hashes, splits, texts, and what every row holds of its target."""
    from dataclasses import asdict

    from repo2ctx.progress import ProgressReporter
    from repo2ctx.verify import verify as run_verify

    with ProgressReporter(quiet) as reporter:
        found = run_verify(out, reporter)
    if as_json:
        print(printable_json(asdict(found)))
    else:
        for problem in found.problems:
            print(printable(problem))
        print(
            f"{printable(str(out))}: {found.shards:,} shards, {found.documents:,} documents, {found.spans:,} files; of its "
            f"target a row holds at most {found.largest_share:.2%} of the 8-grams and a run of {found.longest_run:,} words; "
            + (f"{len(found.problems):,} problems" if found.problems else "all sound")
        )
    if found.problems:
        raise typer.Exit(1)


class SummaryFormat(StrEnum):
    """How `summarize` prints."""

    md = "md"
    json = "json"


@app.command()
def summarize(
    path: Annotated[Path, typer.Argument(help="A git repository; its HEAD commit is read.")],
    model: Annotated[
        str | None,
        typer.Option(help="A directory of train.run, smollm2, or any model; by default the newest under outputs/."),
    ] = None,
    form: Annotated[SummaryFormat, typer.Option("--format", help="How to print the summary.")] = SummaryFormat.md,
    style: Annotated[Style, typer.Option(help="One sentence or a paragraph.")] = Style.line,
    length: Annotated[str | None, typer.Option(help="Tokens of prompt and answer; by default the model's.")] = None,
    max_new_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of the answer at most; by default 64 for a line, 256 for a paragraph."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Summarize a repository with a tuned model."""
    from dataclasses import asdict

    from repo2ctx.config import parse_length
    from repo2ctx.progress import ProgressReporter
    from repo2ctx.summarize import as_markdown, default_model
    from repo2ctx.summarize import summarize as run_summarize

    chosen = model or default_model(Path("outputs"))
    room = parse_length(length) if length is not None else None
    with ProgressReporter(quiet) as reporter:
        found = run_summarize(path, chosen, style.value, room, max_new_tokens, reporter)
    print(printable_json(asdict(found)) if form is SummaryFormat.json else as_markdown(found))


def _check_named(tokenizer: str | None) -> None:
    if tokenizer is not None and not tokenizer.strip():
        raise UsageError("--tokenizer: names none; give one, or leave it out")


def _field(text: str) -> str:
    """A path as one field of a line: quoted as JSON if a character in it would break the line, or looks like a quote."""
    return text if text.isprintable() and not text.startswith('"') else json.dumps(text)


def _run(command: Callable[[], object]) -> int:
    """Run the command; every error becomes a line that says what to do, and an exit code."""
    try:
        code = command()
        if code == _INTERRUPTED:  # typer's answer to Ctrl-C
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except Repo2CtxError as error:
        for problem in error.args:
            print(f"repo2ctx: {printable(problem)}", file=sys.stderr)
        return error.exit_code
    except _COMMAND_LINE_ERROR as error:
        error.show()  # type: ignore[attr-defined]
        return 2
    except (KeyboardInterrupt, typer.Abort):
        print("repo2ctx: interrupted; run the same command again to go on, what is finished is kept", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has seen enough; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    # Scratch folders are removed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(_run(lambda: app(standalone_mode=False)))


if __name__ == "__main__":
    main()
