"""Where a packaged failure plays: which job, when, on how many ranks; and what is left behind."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from bot.demo.actions_state import Conclusion
from bot.demo.job_log import test_case_of


@dataclass(frozen=True)
class Scene:
    """The same scene makes the same bytes. `bytes_per_rank`: pad each rank's log with passed tests up to this size."""

    job_name: str
    at: datetime
    sha: str
    ranks: int = 8
    bytes_per_rank: int = 0

    @property
    def test_case(self) -> str:
        return test_case_of(self.job_name)

    @property
    def run_folder(self) -> str:
        """The launcher's folder for one start, "none_" and eight characters."""
        return "none_" + hashlib.sha256(f"{self.job_name}{self.at:%f}".encode()).hexdigest()[:8]

    def pid(self, rank: int) -> int:
        return 3433 + rank


@dataclass(frozen=True)
class Remains:
    """What a failed job leaves: its log (before the upload's lines), the members of its artifact, the failed step."""

    log: bytes
    artifact: dict[str, str] | None
    step: str
    conclusion: Conclusion = "failure"


@dataclass
class RankOutput:
    """The two streams of one rank."""

    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)


def rank_tree(scene: Scene, outputs: dict[int, RankOutput]) -> dict[str, str]:
    """The members of a unit test job's artifact: <repeat>/none_<8>/attempt_0/<rank>/<stream>.log."""
    members = {}
    for rank, output in outputs.items():
        folder = f"1/{scene.run_folder}/attempt_0/{rank}"
        members[f"{folder}/stdout.log"] = _text(output.stdout)
        members[f"{folder}/stderr.log"] = _text(output.stderr)
    return members


def _text(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)
