"""Command line: find notes, or list the commonest terms."""

import argparse
import sys
from pathlib import Path

from inkwell import storage
from inkwell.query import QueryError


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="inkwell", description="Search a folder of notes.")
    parser.add_argument("--root", type=Path, default=Path("."))
    commands = parser.add_subparsers(dest="command", required=True)
    find = commands.add_parser("find", help="notes that match a query, best first")
    find.add_argument("query")
    terms = commands.add_parser("terms", help="the terms found in most notes")
    for command in (find, terms):
        command.add_argument("--limit", type=int, default=10)
    args = parser.parse_args(argv)
    return (_find if args.command == "find" else _terms)(args)


def _find(args: argparse.Namespace) -> int:
    from inkwell.search import search  # only this command ranks anything

    try:
        hits = search(storage.load(args.root), args.query, args.limit)
    except QueryError as error:
        print(f"inkwell: {error}", file=sys.stderr)
        return 2
    for hit in hits:
        print(f"{hit.score:7.3f}  {hit.key}")
    return 0 if hits else 1


def _terms(args: argparse.Namespace) -> int:
    postings = storage.load(args.root).postings
    for term in sorted(postings, key=lambda term: (-len(postings[term]), term))[: args.limit]:
        print(f"{len(postings[term]):5}  {term}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
