"""An artifact in a storage behind a line of 50 MB/s and 30 ms: how long until it is explained, and who waits meanwhile.

The storage is the simulated GitHub's; downloads and analysis are those of the service, and for the last rows the
service itself runs as a process of its own. The peer downloads with curl. `bars.py` runs this; alone it prints rows.

usage: python benchmarks/remote.py ARTIFACT.zip [--runs 3]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from bench import Bench, Row
from measure import WORDS

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from served import Served, environment

from bot.analysis import AnalysisPool
from bot.demo.failures.catalogue import CATALOGUE
from bot.demo.github import SimulatedGitHub
from bot.demo.link import Link
from bot.github.artifacts import is_needed
from bot.github.downloads import Downloader, Wanted
from bot.github.hosts import DownloadHosts
from bot.github.storage import Storage
from handlers.context import Fetched

LINE = Link(bytes_s=50e6, latency_s=0.03)
MANUAL = f'curl -s -o got.zip "$URL" && unzip -q got.zip -d tree && grep -r -l "{WORDS}" tree'
PROBED = (sys.executable, str(Path(__file__).with_name("probed_serve.py")))


@dataclass(frozen=True)
class Figures:
    """Medians over the runs, each of pairs measured one right after the other; seconds."""

    full_by_bare: float
    manual_by_first: float
    bare_by_mixed: float
    beyond_s: float
    stall_ms: float
    stall_by_clock_ms: float


@dataclass
class Remote:
    """One artifact in the storage, and what fetches and reads it."""

    github: SimulatedGitHub
    pool: AnalysisPool
    downloader: Downloader
    data: bytes
    folder: Path

    async def url(self) -> str:
        return self.github.parts.storage.put(self.data, name="logs.zip", content_type="application/zip")

    async def bare(self) -> None:
        """Download, and nothing else."""
        await shell('curl -s -o got.zip "$URL"', await self.url(), self.folder)

    async def by_hand(self) -> None:
        await shell(MANUAL, await self.url(), self.folder)

    async def explained(self, needs: Callable[[str], bool]) -> None:
        """Fetch the members that are needed, and diagnose."""
        path = self.folder / "ours.zip"
        wanted = Wanted(
            path,
            self.url,
            2**40,
            size_bytes=len(self.data),
            partial_path=path.with_name("part.zip"),
            needs=needs,
            read_ahead=self.pool.read_ahead,
        )
        got = await self.downloader.fetch(wanted)
        digest = str(time.monotonic_ns())  # another one each time: nothing is known from the last run
        self.pool.keep_ahead(1, digest, got.said)
        files = [Fetched("logs", str(got.path), digest=digest)]
        found = await self.pool.for_repo(1).diagnose(job_name="a", job_log=None, artifacts=files)
        assert not found.passed
        got.path.unlink()


async def shell(line: str, url: str, folder: Path) -> None:
    process = await asyncio.create_subprocess_shell(
        f"rm -rf got.zip tree && {line}", cwd=folder, env=os.environ | {"URL": url}, stdout=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0


async def took_s(work: Awaitable[None]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


async def ratio(above: Callable[[], Awaitable[None]], below: Callable[[], Awaitable[None]], runs: int) -> float:
    return statistics.median([await took_s(above()) / await took_s(below()) for _ in range(runs)])


@asynccontextmanager
async def remote(data: bytes) -> AsyncIterator[Remote]:
    pool = AnalysisPool(workers=2, limit_s=300.0)
    with tempfile.TemporaryDirectory(prefix="mlm-bench-") as folder:
        async with SimulatedGitHub() as github, aiohttp.ClientSession() as session:
            github.parts.storage.link = LINE
            downloader = Downloader(Storage(session, DownloadHosts(github.api_url), retry_pause_s=1.0))
            try:
                await pool.warm()
                yield Remote(github, pool, downloader, data, Path(folder))
            finally:
                await pool.close()


def with_checkpoint(artifact: Path, folder: Path) -> bytes:
    """Return the artifact with three times its size of something that no one needs to read."""
    path = folder / "mixed.zip"
    shutil.copy(artifact, path)
    with zipfile.ZipFile(path, "a") as archive:
        for number in range(3):
            archive.writestr(f"checkpoints/{number}.bin", os.urandom(artifact.stat().st_size))
    return path.read_bytes()


async def measure(artifact: Path, *, runs: int) -> Figures:
    """Measure all on one artifact of rank logs."""
    data = await asyncio.to_thread(artifact.read_bytes)
    async with remote(data) as there:
        await there.explained(is_needed)  # warms the worker; not counted
        full = await ratio(lambda: there.explained(is_needed), there.bare, runs)
        first = await ratio(there.by_hand, lambda: there.explained(lambda name: name.endswith("stderr.log")), runs)
        there.data = await asyncio.to_thread(with_checkpoint, artifact, there.folder)
        mixed = await ratio(there.bare, lambda: there.explained(is_needed), runs)
        there.data = data
        bare_s = statistics.median([await took_s(there.bare()) for _ in range(runs)])
    comments_s, told = await serve(data, runs)
    slowest = max(told, key=lambda one: one["cpu_ms"])
    by_clock = max(one["wall_ms"] for one in told)
    return Figures(full, first, mixed, statistics.median(comments_s) - bare_s, slowest["cpu_ms"], by_clock)


async def serve(data: bytes, runs: int) -> tuple[list[float], list[dict[str, Any]]]:
    """Return how long each comment took from the job's end, and what kept the service's event loop since the first."""
    with tempfile.TemporaryDirectory(prefix="mlm-bench-") as folder:
        async with SimulatedGitHub() as github:
            github.add_repo("NVIDIA/Megatron-LM")
            github.add_user("ada", "write")
            env = environment(github, Path(folder), MLM_SWEEP_EVERY_S="0", MLM_ANALYSIS_WORKERS="2")
            async with Served(env, command=PROBED) as bot:
                github.set_webhook_url(f"{bot.url}/webhook")
                await comment_s(github, bot, data)  # warms the workers; not counted
                began = time.monotonic()
                spent = [await comment_s(github, bot, data + bytes(number)) for number in range(1, runs + 1)]
                await bot.end(signal.SIGTERM)
    return spent, [one for one in bot.said("probe") if one["at"] > began] or [{"cpu_ms": 0.0, "wall_ms": 0.0}]


async def comment_s(github: SimulatedGitHub, bot: Served, data: bytes) -> float:
    """Let one job of a new pull request fail with this artifact, and wait for its comment."""
    github.parts.storage.link = None
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    while await bot.queued():
        await asyncio.sleep(0.1)
    github.parts.storage.link = LINE
    started = time.perf_counter()
    job = CATALOGUE["cuda-oom"].job_name
    await github.finish_job(run, job, "failure", log="Process completed with exit code 1.\n", artifact=data)
    await github.until(lambda: bool(github.comments(pull, by_app=True)), within_s=120, why="no comment")
    return time.perf_counter() - started


def rows(figures: Figures, *, mb: float) -> list[Row]:
    line = f"{mb:.0f} MB behind 50 MB/s and 30 ms"
    service = "`mlm serve` as a process of its own; by the clock"
    return [
        Row(f"remote, {line}: explained, in bare downloads: wall", 2, 1.4, figures.full_by_bare, "x", "less"),
        Row("the same: first answer (all stderr.log) against curl, unzip, grep: wall", 8, 14, figures.manual_by_first),
        Row(
            "the same beside three times its size of checkpoints, against a bare download",
            1.5,
            3,
            figures.bare_by_mixed,
        ),
        Row(
            "the same: from the job's end to the posted comment, beyond a bare download",
            1,
            0.3,
            figures.beyond_s,
            "s",
            "less",
        ),
        Row(
            "meanwhile: longest stretch of the service's event loop: CPU",
            20,
            10,
            figures.stall_ms,
            "ms",
            "less",
            f"{service} {figures.stall_by_clock_ms:.0f} ms",
        ),
    ]


def remote_archive(bench: Bench) -> list[Row]:
    path = bench.artifact(8, 60)
    figures = asyncio.run(measure(path, runs=bench.runs))
    return rows(figures, mb=path.stat().st_size / 1e6)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    figures = asyncio.run(measure(options.artifact, runs=options.runs))
    for row in rows(figures, mb=options.artifact.stat().st_size / 1e6):
        print(f"{row.goal}: {row.ours:.3g} {row.unit} (floor {row.floor:g}, target {row.target:g}) {row.remark}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
