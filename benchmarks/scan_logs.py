"""Only the scan: every line of interest of every log, numbered, in threads; no parser, no verdict. Prints JSON.

usage: python benchmarks/scan_logs.py ZIP_OR_FOLDER [--only stderr.log] [--threads 2] [--rules N] [--bare]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from analyzers.model import Source
from analyzers.parsers.rank_log import RankLogReader
from analyzers.reading.anchors import Anchors, KeySearch
from analyzers.reading.scan import LogScan
from analyzers.rules import Rule, RuleSet
from bot.archives import open_bundle
from bot.diagnose import packaged_rules


def rules_of(count: int) -> RuleSet:
    """The packaged rules cut or multiplied to `count`: copies have hints of their own."""
    rules = list(packaged_rules())
    made: list[Rule] = rules[:count]
    while len(made) < count:
        base, number = rules[len(made) % len(rules)], len(made)
        made.append(replace(base, id=f"{base.id}-{number}", hint=f"{base.hint}{number:03d}"))
    return RuleSet(made)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rules", type=int, default=0)
    parser.add_argument("--bare", action="store_true", help="unpack and search, but cut and number no line")
    options = parser.parse_args()
    anchors = RankLogReader(rules_of(options.rules) if options.rules else packaged_rules()).anchors
    anchors.search(frozenset(), frozenset())
    base_bytes = peak_bytes()
    started, started_cpu = time.perf_counter(), time.process_time()
    sources = [one for one in open_bundle(options.path).bundle.sources if one.name.endswith(options.only)]
    work = bare if options.bare else scan
    with ThreadPoolExecutor(options.threads) as pool:
        found = list(pool.map(lambda source: work(source, anchors), sources))
    print(
        json.dumps(
            {
                "wall_s": time.perf_counter() - started,
                "cpu_s": time.process_time() - started_cpu,
                "bytes": sum(size for size, _ in found),
                "memory_bytes": peak_bytes() - base_bytes,
                "lines": [
                    [source.name, *line] for source, (_, lines) in zip(sources, found, strict=True) for line in lines
                ],
            }
        )
    )
    return 0


def peak_bytes() -> int:
    """Return the most memory that was resident; `ru_maxrss` would count that of the process that started us."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def scan(source: Source, anchors: Anchors) -> tuple[int, list[tuple[int, str]]]:
    log = LogScan(source, anchors)
    lines = [(line.number, line.text[:60]) for line in log if "Error" in line.text]
    return log.size_bytes, lines


def keys_that_last(anchors: Anchors) -> KeySearch:
    """The search without the anchors that the scan gives up as soon as they flood a log."""
    flooding = frozenset(index for index, anchor in enumerate(anchors.anchors) if anchor.most <= 50)
    return anchors.search(flooding, frozenset())


def bare(source: Source, anchors: Anchors) -> tuple[int, list[tuple[int, str]]]:
    search = keys_that_last(anchors)
    size = 0
    for piece in source.chunks():
        search.find(piece)
        size += len(piece)
    return size, []


if __name__ == "__main__":
    sys.exit(main())
