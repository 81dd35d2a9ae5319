"""What the comment of a pull request says, before it is put into words. Made by `handlers/reporting.py`."""

from __future__ import annotations

from typing import Literal, get_args

from analyzers.model import Diagnosis
from analyzers.records import dataclass

#: Where a job that once failed stands in the newest attempt of its run.
#: "unreached": the attempt ended without it, so nothing new is known.
Now = Literal["failed", "running", "unreached", "passed"]


WORST_FIRST: tuple[Now, ...] = get_args(Now)


@dataclass(frozen=True)
class JobView:
    """One job that failed in `attempt`; `now` is how it stands in `now_attempt`."""

    name: str
    url: str
    attempt: int
    now: Now = "failed"
    now_attempt: int = 1


@dataclass(frozen=True)
class Cause:
    """One root cause: the jobs that share its fingerprint.

    `changed`: whether the pull request touches the file; None: unknown. `rerun`: the command that re-runs the jobs.
    """

    diagnosis: Diagnosis
    jobs: tuple[JobView, ...]
    notes: tuple[str, ...] = ()
    changed: bool | None = None
    rerun: str = "/mlm rerun failed"

    @property
    def now(self) -> Now:
        """A cause stands as its worst job does."""
        return min((job.now for job in self.jobs), key=WORST_FIRST.index, default="passed")

    @property
    def rank_total(self) -> int:
        """How many ranks are known to have taken part."""
        found = self.diagnosis
        return len({*found.culprit_ranks, *found.victim_ranks, *found.silent_ranks})


@dataclass(frozen=True)
class RunView:
    """One workflow run in its newest attempt, with its jobs counted as GitHub counts them.

    `failed` counts jobs that failed by themselves, `followers` red ones that only say so. `gates` are named where no
    job failed by itself.
    """

    name: str
    url: str
    attempt: int
    completed: bool
    conclusion: str | None
    failed: int = 0
    followers: int = 0
    passed: int = 0
    skipped: int = 0
    cancelled: int = 0
    unfinished: int = 0
    gates: tuple[str, ...] = ()
    merge_queue: bool = False
    id: int = 0


@dataclass(frozen=True)
class Report:
    """The whole comment. `outdated_sha`: an older head, whose results are what the comment said before."""

    number: int
    head_sha: str
    runs: tuple[RunView, ...] = ()
    causes: tuple[Cause, ...] = ()
    unexplained: tuple[JobView, ...] = ()  # red, and nothing could be found out about them yet
    outdated_sha: str | None = None
    trouble: tuple[str, ...] = ()  # where the bot itself could not do its work, each one line of Markdown
    report_url: str | None = None
    no_run: str = ""  # why there is no run of this commit, as Markdown
