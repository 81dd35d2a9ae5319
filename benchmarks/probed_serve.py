"""`mlm serve`, whose event loop is watched: each callback that kept it for long is told when the process ends.

A line of JSON on standard error per callback of more than 2 ms: when it began (`time.monotonic`, one clock for all
processes of a machine), how long by the clock, how long on the processor. By the clock also counts what other threads
and other programs took meanwhile.

usage: python benchmarks/probed_serve.py   (settings as for `mlm serve`)
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from bot.cli.main import main

WORTH_TELLING_S = 0.002


class Probe:
    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self._run = asyncio.Handle._run  # noqa: SLF001 (there is no other place where every callback passes)

    def watch(self) -> None:
        probe = self

        def run(handle: asyncio.Handle) -> None:
            began, cpu = time.monotonic(), time.thread_time()
            probe._run(handle)
            took_s, cpu_s = time.monotonic() - began, time.thread_time() - cpu
            if took_s > WORTH_TELLING_S:
                probe.told.append({"at": began, "wall_ms": 1e3 * took_s, "cpu_ms": 1e3 * cpu_s, "what": repr(handle)})

        asyncio.Handle._run = run  # type: ignore[method-assign] # noqa: SLF001

    def tell(self) -> None:
        for one in self.told:
            print(json.dumps({"event": "probe", **one}), file=sys.stderr, flush=True)


if __name__ == "__main__":
    probe = Probe()
    probe.watch()
    status = main(["serve"])
    probe.tell()
    sys.exit(status)
