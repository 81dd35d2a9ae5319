"""What every step of the benchmark shares: the artifacts that it measures on, and a line of its table."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rank_logs import Planted, write_zip


@dataclass(frozen=True)
class Row:
    """A line of the table. `better` says on which side of the bars a figure should be: "more" or "less"."""

    goal: str
    floor: float
    target: float
    ours: float
    unit: str = "x"
    better: str = "more"
    remark: str = ""

    @property
    def verdict(self) -> str:
        def reached(bar: float) -> bool:
            return self.ours >= bar if self.better == "more" else self.ours <= bar

        return "target" if reached(self.target) else "floor" if reached(self.floor) else "missed"


class Bench:
    """The artifacts to measure on, made when first asked for."""

    def __init__(self, folder: Path, *, runs: int, shrink: int) -> None:
        self.folder, self.runs, self.shrink = folder, runs, shrink
        self.planted: dict[Path, list[Planted]] = {}

    def artifact(self, ranks: int, mb: float) -> Path:
        """Return an artifact of `ranks` ranks with `mb` / shrink megabytes each."""
        path = self.folder / f"{ranks}x{mb / self.shrink:g}.zip"
        kept = path.with_suffix(".planted")
        if path not in self.planted:
            if not kept.exists():
                planted = write_zip(path, ranks=ranks, mb_per_rank=mb / self.shrink)
                kept.write_text(json.dumps([[one.member, one.line, one.text] for one in planted]))
            self.planted[path] = [Planted(*one) for one in json.loads(kept.read_text())]
        return path

    def tree(self, archive: Path) -> Path:
        """Return the artifact unpacked."""
        tree = archive.with_suffix(".tree")
        if not tree.exists():
            subprocess.run(["unzip", "-q", archive, "-d", tree], check=True)
        return tree
