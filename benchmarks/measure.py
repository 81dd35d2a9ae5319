"""Measuring other processes: time on the clock and on the processors; and pairs of them.

Ratios are medians over pairs measured one right after the other, so that a machine that slows down does so for both.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

#: The manual way: what a person searches the unpacked logs for.
WORDS = r"ERROR\|Traceback\|FAILED\|fatal"
WORDS_E = WORDS.replace("\\", "")


@dataclass(frozen=True)
class Cost:
    """One run of a command: seconds on the clock, processor seconds with its children's."""

    wall_s: float
    cpu_s: float


def cost_of(command: Sequence[str], *, cwd: Path | None = None) -> Cost:
    """Run a command to its end; its output is thrown away.

    Raises:
        CalledProcessError: it did not end with 0, or with 1 as grep does that finds nothing.
    """
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - started
    if process.returncode not in (0, 1):
        raise subprocess.CalledProcessError(process.returncode, list(command))
    return Cost(wall_s, usage.ru_utime + usage.ru_stime)


def shell(script: str, *, cwd: Path) -> Cost:
    """Run a line of shell."""
    return cost_of(["sh", "-c", script], cwd=cwd)


def mlm(*words: str) -> list[str]:
    """Return the command line of the installed `mlm`."""
    return [str(Path(sys.executable).with_name("mlm")), *words]


def unzip_and(search: str, archive: Path) -> Callable[[], Cost]:
    """Return the manual way on an archive: unpack it, search the tree, throw the tree away."""

    def run() -> Cost:
        cost = shell(f"unzip -q {archive.name} -d tree.tmp && {search} tree.tmp", cwd=archive.parent)
        subprocess.run(["rm", "-rf", "tree.tmp"], cwd=archive.parent, check=True)
        return cost

    return run


@dataclass(frozen=True)
class Pairs:
    """Peer and ours, measured in turns."""

    peer: tuple[Cost, ...]
    ours: tuple[Cost, ...]

    @property
    def cpu(self) -> float:
        """How many times the peer's processor time is ours: above 1 we are faster."""
        return statistics.median(
            peer.cpu_s / max(our.cpu_s, 1e-4) for peer, our in zip(self.peer, self.ours, strict=True)
        )

    @property
    def wall(self) -> float:
        """The same by the clock; means something on a machine without other work only."""
        return statistics.median(peer.wall_s / our.wall_s for peer, our in zip(self.peer, self.ours, strict=True))

    def middle(self, which: str) -> tuple[Cost, Cost]:
        """Return the median runs of both sides by "cpu_s" or "wall_s"."""
        sides = [sorted(side, key=lambda cost: getattr(cost, which)) for side in (self.peer, self.ours)]
        return sides[0][len(sides[0]) // 2], sides[1][len(sides[1]) // 2]


def in_turns(peer: Callable[[], Cost], ours: Callable[[], Cost], *, runs: int) -> Pairs:
    """Measure both `runs` times, in turns; a first run of ours warms the caches for both and is not counted."""
    ours()
    costs = [(at_rest(peer), at_rest(ours)) for _ in range(runs)]
    return Pairs(tuple(one for one, _ in costs), tuple(one for _, one in costs))


def at_rest(run: Callable[[], Cost]) -> Cost:
    """Run once the disk has what was written before: a tree that was unpacked a moment ago keeps a processor busy."""
    os.sync()
    return run()
