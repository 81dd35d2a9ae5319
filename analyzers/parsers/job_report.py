"""What the log of one CI job says about the job as a whole."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from analyzers.comparison import GoldenComparison
from analyzers.model import Finding
from analyzers.records import dataclass

if TYPE_CHECKING:
    from datetime import datetime


class JobKind(StrEnum):
    """What a job does, as far as its name tells."""

    UNIT = "unit"
    FUNCTIONAL = "functional"
    LINT = "lint"
    BUILD = "build"
    OTHER = "other"


class Ending(StrEnum):
    """How the runner says that the job ended."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    RUNNER_LOST = "runner_lost"
    UNKNOWN = "unknown"  # the log stops without saying


@dataclass(frozen=True)
class ProcessExit:
    """One process in the launcher's summary (torchrun's ChildFailedError, ft_launcher's ProcessFailure).

    `exit_code` is negative for a signal; `at` has whole seconds and is UTC only if the node's clock is; `root_cause` is
    the launcher's own choice, arbitrary among equals. `line` is the 1-based line of the rank in the job's log.
    """

    rank: int
    exit_code: int
    at: datetime | None
    root_cause: bool
    line: int
    host: str | None = None


@dataclass(frozen=True)
class Launch:
    """One start by the launcher within the job, numbered from 1; `failed` is None while nobody said how it ended."""

    number: int
    line: int  # 1-based, where it began
    failed: bool | None = None
    exits: tuple[ProcessExit, ...] = ()


@dataclass(frozen=True)
class JobReport:
    """All that the job's log tells beyond the ranks' own output.

    `findings` hold causes of the job level (evidence file "job.log"), the best first; empty where the log only says
    that a test step failed. `run_folder` is the folder of the newest run inside the artifact ("1/none_ab12"), None if
    the log does not name it. `fallback` is the plain "the step failed" finding for when nobody knows better.
    """

    ending: Ending = Ending.UNKNOWN
    exit_code: int | None = None
    failed_step: str | None = None
    findings: tuple[Finding, ...] = ()
    fallback: Finding | None = None
    launches: tuple[Launch, ...] = ()
    run_folder: str | None = None
    artifact_name: str | None = None
    artifact_id: int | None = None
    golden: GoldenComparison | None = None  # what the check of the newest start found different
    lines: int = 0
    bytes: int = 0

    @property
    def passed(self) -> bool:
        """Whether the runner says that nothing failed."""
        return self.ending is Ending.PASSED
