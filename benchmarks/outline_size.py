"""How long outlines are, by language, and what they cost.

    python benchmarks/outline_size.py PATH [PATH …] [--tokenizer tiktoken:o200k_base] [--show LANGUAGE --every N]

PATH is a git repository, whose HEAD commit is read. Over all kept files that have a grammar: files, tokens of their texts,
tokens of their outlines, the share; files that have no outline, and those whose outline is over a quarter; and CPU seconds of
making outlines, next to those of parsing. --show prints every Nth outline of a language instead, with its share, to be read.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tree_sitter
from machine import machine

from repo2ctx.config import BuildConfig, TokensConfig
from repo2ctx.crawl import CrawlOptions, open_snapshot
from repo2ctx.languages import languages
from repo2ctx.outline import outline
from repo2ctx.records import KEPT, RepoSpec
from repo2ctx.selection import fate_by_entry, read_text
from repo2ctx.tokens import load_tokenizer


@dataclass(slots=True)
class Figures:
    """Of one language."""

    files: int = 0
    without: int = 0
    over: int = 0
    tokens: int = 0
    outlined: int = 0
    parse_s: float = 0.0
    outline_s: float = 0.0
    slowest_s: float = 0.0


def kept_texts(repository: Path) -> Iterator[tuple[str, str, bytes]]:
    """(path, language, UTF-8 text) of the kept files that have a grammar."""
    limits = BuildConfig().selection
    spec = RepoSpec(str(repository), str(repository), repository.parent.name)
    with open_snapshot(spec, CrawlOptions(None)) as snapshot:
        kept = [e for e, size in snapshot.sized if fate_by_entry(e, size, limits.max_file_bytes) == KEPT]
        for entry, data in zip(kept, snapshot.read([e.blob for e in kept]), strict=True):
            selected = read_text(entry.path, data, limits.max_data_bytes) if data is not None else None
            if selected is not None and selected.fate == KEPT and selected.text and selected.language in languages():
                yield entry.path, selected.language, selected.text.encode()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("paths", nargs="+", type=Path)
    arguments.add_argument("--tokenizer", default="tiktoken:o200k_base")
    arguments.add_argument("--show", metavar="LANGUAGE", help="print outlines of this language")
    arguments.add_argument("--every", type=int, default=20, metavar="N")
    options = arguments.parse_args()
    tokenizer = load_tokenizer(TokensConfig(tokenizer=options.tokenizer))
    found: dict[str, Figures] = {}
    parsers: dict[str, tree_sitter.Parser] = {}
    for repository in options.paths:
        for path, language, source in kept_texts(repository):
            if options.show not in (None, language):
                continue
            if language not in parsers:
                parsers[language] = tree_sitter.Parser(tree_sitter.Language(languages()[language].GRAMMARS[language]()))
            figures = found.setdefault(language, Figures())
            start = time.process_time()
            root = parsers[language].parse(source).root_node
            middle = time.process_time()
            said = outline(root, source, language)
            spent = time.process_time() - middle
            tokens, outlined = (len(tokenizer.encode(text)) for text in (source.decode(), said or ""))
            figures.files += 1
            figures.without += said is None
            figures.over += outlined > tokens / 4
            figures.tokens += tokens
            figures.outlined += outlined
            figures.parse_s += middle - start
            figures.outline_s += spent
            figures.slowest_s = max(figures.slowest_s, spent)
            if options.show and figures.files % options.every == 0:
                print(f"=== {repository.parent.name}/{path}: {outlined} of {tokens} tokens\n{said}")
    if not options.show:
        print(f"{machine()}; {options.tokenizer}; {len(options.paths)} repositories")
        print(table(found))


def table(found: dict[str, Figures]) -> str:
    """Figures as a Markdown table, with a row for all languages."""
    heads = "language | files | tokens | of outlines | share | without outline | over 25% | parse s | outline s | outline/parse"
    heads += " | slowest s"
    rows = [f"| {heads} |", "|---|" + "---:|" * heads.count("|")]
    total = Figures()
    for name, f in [*sorted(found.items()), ("all", total)]:
        rows.append(
            f"| {name} | {f.files:,} | {f.tokens:,} | {f.outlined:,} | {f.outlined / max(1, f.tokens):.1%} | {f.without:,} "
            f"| {f.over:,} | {f.parse_s:.1f} | {f.outline_s:.2f} | {f.outline_s / max(1e-9, f.parse_s):.0%} | {f.slowest_s:.2f} |"
        )
        for field in ("files", "without", "over", "tokens", "outlined", "parse_s", "outline_s"):
            setattr(total, field, getattr(total, field) + getattr(f, field))
        total.slowest_s = max(total.slowest_s, f.slowest_s)
    return "\n".join(rows)


if __name__ == "__main__":
    main()
