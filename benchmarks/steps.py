"""One function per bar: each measures, and returns rows of the table."""

from __future__ import annotations

import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import native_limit
from bench import Bench, Row
from measure import WORDS, WORDS_E, Cost, cost_of, in_turns, mlm, shell, unzip_and
from rank_logs import write_zip
from remote import remote_archive

from bot.diagnose import diagnose_path

GREP = f'grep -r -l "{WORDS}"'
GREP_NUMBERED = f'grep -rnE "{WORDS_E}"'
SCAN = [sys.executable, str(Path(__file__).with_name("scan_logs.py"))]


def scan(path: Path, *words: str) -> dict[str, Any]:
    """Run only the scan in a process of its own; its times begin when it is loaded."""
    done = subprocess.run([*SCAN, str(path), *words], check=True, capture_output=True)
    return dict(json.loads(done.stdout))


def scanned(path: Path, *words: str) -> Callable[[], Cost]:
    def run() -> Cost:
        told = scan(path, *words)
        return Cost(told["wall_s"], told["cpu_s"])

    return run


def analyses(path: Path) -> Callable[[], Cost]:
    return lambda: cost_of(mlm("analyze", str(path), "--format", "json"))


def whole_process(bench: Bench) -> list[Row]:
    return against_the_manual_way(bench, 8, 60, runs=bench.runs)


def whole_process_of_many_ranks(bench: Bench) -> list[Row]:
    """The largest artifact: unpacking it takes minutes, so it is done twice only."""
    return against_the_manual_way(bench, 64, 64, runs=min(bench.runs, 2))


def whole_process_of_small_logs(bench: Bench) -> list[Row]:
    """As many ranks as there may be, with little to say each: what a log costs, not what its bytes cost."""
    return against_the_manual_way(bench, 512, 1, runs=bench.runs, bars=(2, 3))


def against_the_manual_way(
    bench: Bench, ranks: int, mb: float, *, runs: int, bars: tuple[float, float] = (3.3, 4.5)
) -> list[Row]:
    path = bench.artifact(ranks, mb)
    pairs = in_turns(unzip_and(GREP, path), analyses(path), runs=runs)
    peer, ours = pairs.middle("cpu_s")
    goal = f"`mlm analyze ZIP`, {ranks} x {mb / bench.shrink:g} MB, whole process, against `unzip -q && grep -r -l`"
    return [
        Row(f"{goal}: CPU", *bars, pairs.cpu, remark=f"{peer.cpu_s:.2f} s against {ours.cpu_s:.2f} s"),
        Row(f"{goal}: wall", *bars, pairs.wall),
    ]


def scan_against_peers(bench: Bench) -> list[Row]:
    path = bench.artifact(8, 60)
    tree = bench.tree(path)
    listed = in_turns(unzip_and(GREP, path), scanned(path), runs=bench.runs)
    numbered = in_turns(unzip_and(GREP_NUMBERED, path), scanned(path), runs=bench.runs)
    alone = in_turns(lambda: shell(f"{GREP} {tree.name}", cwd=tree.parent), scanned(path), runs=bench.runs)
    plain = in_turns(lambda: shell(f"{GREP_NUMBERED} {tree.name}", cwd=tree.parent), scanned(tree), runs=bench.runs)
    rows = [
        Row("full scan with line numbers against `unzip && grep -r -l`: CPU", 4, 5.5, listed.cpu),
        Row("the same: wall", 6, 10, listed.wall),
        Row("full scan against `unzip && grep -rnE`: wall", 6, 10, numbered.wall),
        Row("wall against `grep -r -l` alone on the unpacked tree", 1, 0.75, 1 / alone.wall, better="less"),
        Row("plain tree against `grep -rnE`: wall", 2, 3, plain.wall),
    ]
    if shutil.which("rg"):
        rg = f'rg -n "{WORDS_E}"'
        packed = in_turns(unzip_and(rg, path), scanned(path), runs=bench.runs)
        rows.append(Row("full scan against `unzip && rg -n`: wall", 5, 8.5, packed.wall))
        unpacked = in_turns(lambda: shell(f"{rg} {tree.name}", cwd=tree.parent), scanned(tree), runs=bench.runs)
        rows.append(Row("plain tree against `rg -n`: wall", 0.35, 0.5, unpacked.wall))
    return rows


def first_answer(bench: Bench) -> list[Row]:
    path = bench.artifact(8, 60)
    pairs = in_turns(unzip_and(GREP, path), scanned(path, "--only", "stderr.log"), runs=bench.runs)
    return [Row("first answer (all stderr.log) against the manual way: wall", 20, 45, pairs.wall)]


def share_of_the_native_limit(bench: Bench) -> list[Row]:
    path = bench.artifact(8, 60)
    if native_limit.build():
        goal, remark = "share of the native limit: CPU", "of unpacking and searching alone, in C (ISA-L) and Rust"
        plan = native_limit.plan_of(path)
        pairs = in_turns(lambda: native_limit.run(path, plan), scanned(path), runs=bench.runs)
    else:
        goal, remark = "share of the blocks' own speed: CPU", "of unpacking and searching alone, called from Python"
        pairs = in_turns(scanned(path, "--bare"), scanned(path), runs=bench.runs)
    return [Row(goal, 60, 80, 100 * pairs.cpu, "%", remark=remark)]


def number_of_rules(bench: Bench) -> list[Row]:
    path = bench.artifact(8, 60)
    pairs = in_turns(scanned(path, "--rules", "300"), scanned(path, "--rules", "60"), runs=bench.runs)
    return [Row("300 rules against 60: CPU", 1.3, 1.05, pairs.cpu, better="less")]


def growth(bench: Bench) -> list[Row]:
    small, many, large = bench.artifact(8, 8), bench.artifact(64, 8), bench.artifact(8, 256)

    def per_byte(path: Path) -> float:
        told = [scan(path) for _ in range(bench.runs)]
        return statistics.median(one["cpu_s"] / one["bytes"] for one in told)

    base = per_byte(small)
    sizes = f"{2048 / bench.shrink:g} MB against {64 / bench.shrink:g} MB"
    return [
        Row(f"CPU per byte, {sizes}", 1.3, 1.1, per_byte(large) / base, better="less"),
        Row("CPU per byte, 64 ranks against 8", 1.3, 1.1, per_byte(many) / base, better="less"),
    ]


def memory(bench: Bench) -> list[Row]:
    told = scan(bench.artifact(8, 256))
    return [Row("peak memory over the loaded program, 2 threads", 32, 8, told["memory_bytes"] / 2**20, "MB", "less")]


def planted_lines(bench: Bench) -> list[Row]:
    wanted = found = 0
    for path, planted in bench.planted.items():
        lines = {(name, number) for name, number, _ in scan(path)["lines"]}
        wanted += len(planted)
        found += sum((one.member, one.line) in lines for one in planted)
    return [Row("planted lines found with their exact numbers", 100, 100, 100 * found / wanted, "%")]


def small_artifact(bench: Bench) -> list[Row]:
    path = bench.folder / "small.zip"
    write_zip(path, ranks=8, mb_per_rank=0.1)
    pairs = in_turns(analyses(path), lambda: cost_of([sys.executable, "-c", "pass"]), runs=max(bench.runs, 7))
    libraries = "import argparse, dataclasses, json, re, pathlib"
    imports = in_turns(
        lambda: cost_of([sys.executable, "-c", libraries]), lambda: cost_of([sys.executable, "-c", "pass"]), runs=7
    )
    warm: list[float] = []
    for _ in range(12):
        started = time.process_time()
        diagnose_path(str(path))
        warm.append(time.process_time() - started)
    remark = f"`python -c '{libraries}'` alone takes {imports.cpu:.1f} x"
    return [
        Row(
            "a small artifact (8 x 100 KB), whole process, in `python -c pass`: CPU",
            3,
            2,
            pairs.cpu,
            "x",
            "less",
            remark,
        ),
        Row("the same, warm: CPU", 50, 20, statistics.median(warm[2:]) * 1e3, "ms", "less"),
    ]


def event_loop(bench: Bench) -> list[Row]:
    path = bench.artifact(8, 60)

    async def longest_stall() -> float:
        work = asyncio.create_task(asyncio.to_thread(diagnose_path, str(path)))
        longest, last = 0.0, time.perf_counter()
        while not work.done():
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            longest, last = max(longest, now - last - 0.001), now
        return longest

    stalls = [asyncio.run(longest_stall()) for _ in range(bench.runs)]
    remark = "the analysis in threads of the same process; the service takes processes of their own"
    return [
        Row("longest stall of an event loop beside it", 50, 10, statistics.median(stalls) * 1e3, "ms", "less", remark)
    ]


STEPS: tuple[Callable[[Bench], list[Row]], ...] = (
    whole_process,
    scan_against_peers,
    first_answer,
    share_of_the_native_limit,
    number_of_rules,
    growth,
    memory,
    small_artifact,
    event_loop,
    remote_archive,
    whole_process_of_many_ranks,
    whole_process_of_small_logs,
    planted_lines,
)


def by_size(bench: Bench) -> list[tuple[float, float]]:
    """Processor seconds of the scan by megabytes of text."""
    paths = [bench.artifact(8, mb) for mb in (8, 60, 256)]
    return [(told["bytes"] / 1e6, told["cpu_s"]) for told in map(scan, paths)]


def by_ranks(bench: Bench) -> list[tuple[float, float]]:
    """Processor nanoseconds per byte by ranks, 8 MB each."""
    told = [(ranks, scan(bench.artifact(ranks, 8))) for ranks in (8, 16, 32, 64)]
    return [(ranks, 1e9 * one["cpu_s"] / one["bytes"]) for ranks, one in told]


def by_rules(bench: Bench) -> list[tuple[float, float]]:
    """Processor seconds by rules on 8 x 60 MB."""
    path = bench.artifact(8, 60)
    return [(count, scan(path, "--rules", str(count))["cpu_s"]) for count in (20, 60, 120, 200, 300)]


GROWTH: dict[str, Callable[[Bench], list[tuple[float, float]]]] = {
    "size": by_size,
    "ranks": by_ranks,
    "rules": by_rules,
}
