"""Kill the bot again and again while deliveries come in, and compare GitHub's end state with what was sent.

The real `mlm serve` as a process of its own, against the simulated GitHub of the demo; failures, labels, commands and
all of them together, out of order, one delivery in ten sent twice, SIGKILL at random moments.

usage: python benchmarks/crash.py [--stories 30] [--kills 50] [--seed 1] [--postgres]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from crash import Outcome, run_and_kill
from postgres import postgres_server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", type=int, default=30)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        more = {"MLM_DATABASE_URL": stack.enter_context(postgres_server())} if options.postgres else {}
        outcome = asyncio.run(
            run_and_kill(folder, stories=options.stories, kills=options.kills, seed=options.seed, **more)
        )
    show(outcome, "PostgreSQL" if options.postgres else "SQLite")
    return 0 if outcome.verdict.clean else 1


def show(outcome: Outcome, database: str) -> None:
    sent, verdict = outcome.carried, outcome.verdict
    print(
        f"{database}: {sent.deliveries} deliveries ({sent.twice} of them repeated), {outcome.kills} kills,"
        f" {outcome.seconds:.0f} s"
    )
    print(f"answered 2xx {sent.accepted}, failed {sent.failed}, asked for again {outcome.redelivered}")
    for name in ("lost", "twice", "reruns", "stale", "order"):
        found = getattr(verdict, name)
        print(f"{name}: {len(found)}", *found[:20], sep="\n  " if found else "")
    worth = ("task.failed_once", "task.gave_up", "engine.rescued", "comment.twin_deleted", "sweep.failed")
    print({event: outcome.said[event] for event in worth})


if __name__ == "__main__":
    sys.exit(main())
