"""The bars of speed and memory, measured here, with the manual way in the same run; writes docs/performance.md.

usage: python benchmarks/bars.py [--runs 5] [--small] [--docs] [--keep DIR]

`--small` takes an eighth of the sizes (a minute in all); `--docs` writes the page and its plots; `--keep` keeps the
generated artifacts for the next time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import page
import steps
from bench import Bench


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mlm-bench-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(folder, runs=options.runs, shrink=8 if options.small else 1)
        rows = []
        for step in steps.STEPS:
            print(f"... {step.__name__.replace('_', ' ')}", file=sys.stderr, flush=True)
            made = step(bench)
            rows += made
            print(
                *(f"    {row.goal}: {row.ours:.3g} {row.unit}" for row in made), sep="\n", file=sys.stderr, flush=True
            )
        growth = {name: measured(bench) for name, measured in steps.GROWTH.items()}
    print(page.table(rows))
    if options.docs:
        page.write(Path(__file__).parent.parent / "docs", rows, growth, bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
