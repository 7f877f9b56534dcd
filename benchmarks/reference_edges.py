"""Edges that another tool finds in a checkout, as an ORACLE for graph_quality.py.

    python benchmarks/reference_edges.py grimp CHECKOUT --package httpx [--root src] > httpx.python.tsv
    python benchmarks/reference_edges.py madge CHECKOUT --root packages/zod/src [--ts-config tsconfig.json] > zod.js.tsv

CHECKOUT is a clone with its files. grimp has to be installed beside repo2ctx (pip install grimp); madge is run as `npx madge`.
Neither is ours, and neither is needed for anything else.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path


def grimp_edges(checkout: Path, package: str, root: str) -> Iterator[tuple[str, str]]:
    """Imports among the modules of one package."""
    sys.path.insert(0, str(checkout / root))
    graph = importlib.import_module("grimp").build_graph(package, cache_dir=None)

    def path(module: str) -> str:
        base = Path(root, *module.split("."))
        found = next(p for p in (base / "__init__.py", base.with_name(f"{base.name}.py")) if (checkout / p).exists())
        return found.as_posix()

    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            yield path(module), path(other)


def madge_edges(checkout: Path, root: str, ts_config: str | None) -> Iterator[tuple[str, str]]:
    """Imports among the files below a folder."""
    command = ["npx", "--yes", "madge", "--json", "--extensions", "ts,tsx,js,jsx,mjs,cjs"]
    command += ["--ts-config", str(checkout / ts_config)] if ts_config else []
    with tempfile.TemporaryFile() as output:  # npx cuts what it writes to a pipe
        subprocess.run([*command, str(checkout / root)], stdout=output, check=True)
        output.seek(0)
        found = json.load(output)
    base = (checkout / root).resolve()
    for source, targets in found.items():
        for target in targets:
            pair = [(base / name).resolve() for name in (source, target)]
            if all(p.is_file() and p.is_relative_to(checkout.resolve()) for p in pair):
                a, b = (p.relative_to(checkout.resolve()).as_posix() for p in pair)
                yield a, b


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", choices=("grimp", "madge"))
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--package", help="grimp: the package's name")
    parser.add_argument("--root", default="", help="the folder that holds the package (grimp) or the files (madge)")
    parser.add_argument("--ts-config", help="madge: the tsconfig to go by, from the checkout")
    options = parser.parse_args()
    if options.tool == "grimp":
        if not options.package:
            parser.error("grimp needs --package")
        edges = grimp_edges(options.checkout, options.package, options.root)
    else:
        edges = madge_edges(options.checkout, options.root, options.ts_config)
    for a, b in sorted(set(edges)):
        print(f"{a}\t{b}")


if __name__ == "__main__":
    main()
