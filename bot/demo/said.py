"""What a button of the demo brings about: whether a failure fits into a run, and what the page tells about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bot.demo.actions_state import FAILED, Run
from bot.demo.ci_plan import dependents
from bot.demo.failures.catalogue import PackagedFailure


@dataclass(frozen=True)
class Watched:
    """A failure that was chosen, and the attempt in which it is going to happen."""

    title: str
    job_name: str
    run: Run
    attempt: int

    def ended(self) -> str:
        """Say how it went; "" while it has not happened."""
        job = self.run.attempts[self.attempt - 1].jobs.get(self.job_name)
        if job is not None and job.conclusion in FAILED:
            return f"{self.title}: failed in attempt {self.attempt}. The bot answers in its comment."
        if self.run.attempt_number != self.attempt or self.run.status == "completed":
            return f"{self.title}: was not reached, the run ended before."
        return ""


@dataclass(frozen=True)
class Said:
    """What the page tells after a button was pressed."""

    text: str
    tone: Literal["ok", "no"] = "ok"
    watched: Watched | None = None

    def now(self) -> Said:
        """Return what is true by now."""
        ended = self.watched.ended() if self.watched is not None else ""
        return Said(ended) if ended else self


def can_join(run: Run, failure: PackagedFailure, planned: Iterable[PackagedFailure]) -> bool:
    """Whether a failure still happens in a run under way: its job has not ended, and nothing fails before it."""
    specs = run.attempt.specs
    job = run.attempt.jobs.get(failure.job_name)
    if failure.job_name not in specs or (job is not None and job.status == "completed"):
        return False
    failed = [name for name, other in run.attempt.jobs.items() if other.conclusion in FAILED]
    before = {*failed, *(other.job_name for other in planned)} - {failure.job_name}
    return failure.job_name not in dependents(specs, before & specs.keys())


def is_clean(run: Run, failure: PackagedFailure) -> bool:
    """Whether re-running one job of a completed run leaves that job as the only one that fails."""
    return run.conclusion == "success" and failure.job_name in run.attempt.jobs
