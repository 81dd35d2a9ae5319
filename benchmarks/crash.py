"""Kill the bot again and again while deliveries come in, and compare GitHub's end state with what was sent.

The real `mlm serve` as a process of its own, against the simulated GitHub of the demo; failures, labels, commands and
all of them together, out of order, one delivery in ten sent twice, SIGKILL at random moments.

With --outage nothing is killed: its PostgreSQL is gone for so many seconds while deliveries come in.
With --steps it is not killed at random moments, but once at each step that it takes in any of the stories: just before
each durable write is committed and just after, as each request of GitHub arrives and just after it was carried out.

usage: python benchmarks/crash.py [--stories 30] [--kills 50] [--seed 1] [--postgres]
       python benchmarks/crash.py --steps [--part 1/3] [--postgres]
       python benchmarks/crash.py --outage 30 [--stories 30]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from crash import Outcome, run_and_kill
from crash_steps import kill_at_each, list_steps
from postgres import PostgresProcess, postgres_server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", type=int, default=30)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--steps", action="store_true", help="kill at each step")
    parser.add_argument("--outage", type=float, default=0.0, metavar="SECONDS", help="take the database away instead")
    parser.add_argument("--part", default="1/1", help="only the first, second, ... part of the steps")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def database() -> dict[str, str]:
            return {"MLM_DATABASE_URL": stack.enter_context(postgres_server())} if options.postgres else {}

        if options.steps:
            return sweep(folder, options.part, database)
        if options.outage:
            server = stack.enter_context(PostgresProcess.started())
            outcome = asyncio.run(through_outage(folder, server, options.outage, options.stories))
            show(outcome, f"PostgreSQL, gone for {options.outage:.0f} s")
            return 0 if outcome.verdict.clean else 1
        more = database()
        outcome = asyncio.run(
            run_and_kill(folder, stories=options.stories, kills=options.kills, seed=options.seed, **more)
        )
    show(outcome, "PostgreSQL" if options.postgres else "SQLite")
    return 0 if outcome.verdict.clean else 1


async def through_outage(folder: Path, server: PostgresProcess, outage_s: float, stories: int) -> Outcome:
    """Take the server away once, soon after the first deliveries have come."""

    async def take_away(times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(3.0)
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(outage_s)
            await asyncio.to_thread(server.start)

    return await run_and_kill(folder, stories=stories, kills=1, harm=take_away, MLM_DATABASE_URL=server.url)


def sweep(folder: Path, part: str, database: Callable[[], dict[str, str]]) -> int:
    """Print what came of a kill at each step; 1 if GitHub does not look as it must in the end."""
    number, parts = (int(word) for word in part.split("/"))
    (folder / "listed").mkdir()
    steps = asyncio.run(list_steps(folder / "listed", **database()))
    own = steps[len(steps) * (number - 1) // parts : len(steps) * number // parts]
    started = time.monotonic()
    (folder / "killed").mkdir()
    swept = asyncio.run(kill_at_each(folder / "killed", own, database))
    print(f"{len(own)} of {len(steps)} steps, killed at {len(swept.killed)}, {time.monotonic() - started:.0f} s")
    print(f"did not come: {len(swept.missed)}", *swept.missed, sep="\n  ")
    for name, found in vars(swept.verdict).items():
        print(f"{name}: {len(found)}", *found[:20], sep="\n  " if found else "")
    return 0 if swept.verdict.clean else 1


def show(outcome: Outcome, database: str) -> None:
    sent, verdict = outcome.carried, outcome.verdict
    print(
        f"{database}: {sent.deliveries} deliveries ({sent.twice} of them repeated), {outcome.kills} kills,"
        f" {outcome.seconds:.0f} s"
    )
    print(f"answered 2xx {sent.accepted}, failed {sent.failed}, asked for again {outcome.redelivered}")
    for name, found in vars(verdict).items():
        print(f"{name}: {len(found)}", *found[:20], sep="\n  " if found else "")
    worth = (
        "database.away",
        "database.back",
        "task.failed_once",
        "task.gave_up",
        "engine.rescued",
        "comment.twin_deleted",
        "sweep.failed",
    )
    print({event: outcome.said[event] for event in worth})


if __name__ == "__main__":
    sys.exit(main())
