"""How long a red job waits for its comment: from the webhook of a failed job to the comment on the pull request.

The real bot and the simulated GitHub of the demo, over HTTP, in one process on SQLite; 8 ranks x 1 MB by default.
Beside it, in the same run, the manual way on the same artifact, without the time that a person then reads:
`unzip -q && grep -r -l`.

usage: python benchmarks/webhook_to_comment.py [--ranks 8] [--mb-per-rank 1] [--runs 5]
"""

from __future__ import annotations

import argparse
import asyncio
import io
import logging
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from world import World

from bot.demo.failures.catalogue import CATALOGUE
from bot.demo.failures.scene import Scene
from bot.log import configure_logging

PATTERN = r"ERROR\|Traceback\|FAILED\|fatal"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--mb-per-rank", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    configure_logging("console")
    logging.getLogger().setLevel(logging.WARNING)
    ours_s, manual_s, size = asyncio.run(measure(options))
    ratio = statistics.median(manual / ours for ours, manual in zip(ours_s, manual_s, strict=True))
    print(f"{options.ranks} ranks x {options.mb_per_rank:g} MB, artifact {size / 1e6:.2f} MB, {options.runs} runs")
    print(f"webhook to comment:       median {statistics.median(ours_s):.2f} s, slowest {max(ours_s):.2f} s")
    print(f"unzip && grep, unread:    median {statistics.median(manual_s):.2f} s")
    print(f"manual / ours, median of pairs: {ratio:.2f}")
    return 0


async def measure(options: argparse.Namespace) -> tuple[list[float], list[float], int]:
    ours_s, manual_s, size = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "data")
        world.github.add_repo("NVIDIA/Megatron-LM")
        world.github.add_user("ada", "write")
        async with world:
            await one_run(world, options)  # starts the worker processes; not counted
            for number in range(options.runs):
                took_s, artifact = await one_run(world, options)
                print(f"run {number + 1} of {options.runs}: {took_s:.2f} s", file=sys.stderr, flush=True)
                ours_s.append(took_s)
                manual_s.append(await asyncio.to_thread(by_hand, artifact))
                size = len(artifact)
    return ours_s, manual_s, size


async def one_run(world: World, options: argparse.Namespace) -> tuple[float, bytes]:
    github, failure = world.github, CATALOGUE["cuda-oom"]
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    each = int(options.mb_per_rank * 1e6)
    scene = Scene(failure.job_name, at=github.state.clock(), sha=run.head_sha, ranks=options.ranks, bytes_per_rank=each)
    remains = failure.build(scene)
    await world.idle()
    started = time.perf_counter()
    await github.finish_job(
        run, failure.job_name, "failure", log=remains.log, artifact=remains.artifact, step=remains.step
    )
    await github.until(lambda: world.answers(pull), within_s=120, why="no comment")
    took_s = time.perf_counter() - started
    assert "Out of GPU memory on rank 5" in world.answers(pull)[0]
    await world.idle()
    return took_s, zipped(remains.artifact or {})


def zipped(members: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def by_hand(artifact: bytes) -> float:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "logs.zip").write_bytes(artifact)
        started = time.perf_counter()
        subprocess.run(["unzip", "-q", "logs.zip", "-d", "tree"], cwd=folder, check=True)
        subprocess.run(["grep", "-r", "-l", PATTERN, "tree"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
