"""Several starts in one artifact: which of them decides. The last one does; a retried failure is told, not blamed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analyzers.model import Attempt, Category, Confidence
from analyzers.verdict.category import is_retryable
from analyzers.verdict.fingerprint import fingerprint
from analyzers.verdict.runs import Outcome, Run


def decisive_run(runs: Sequence[Run], *, newest: str | None, job_failed: bool, timed_out: bool = False) -> Run | None:
    """Return the run that decides about the job; None if no run failed that still counts.

    Args:
        runs: in order.
        newest: the folder of the newest run, if the job's log names it.
        job_failed: the runner says that the job failed, so an earlier failure counts if the last start is clean.
        timed_out: the job's time was up, so a last start that neither failed nor finished is what used it up.
    """
    if timed_out and len(runs) > 1 and runs[-1].outcome is Outcome.UNCLEAR:
        return None
    failed = [run for run in (_decide_test(runs, test, newest) for test in _tests(runs)) if run is not None]
    if not failed and job_failed:
        failed = [run for run in runs if run.outcome is Outcome.FAILED][-1:]
    return min(failed, key=_first_in_time) if failed else None


def attempts_of(runs: Sequence[Run]) -> tuple[Attempt, ...]:
    """Tell every start of the workers, the oldest first."""
    return tuple(
        Attempt(number, *_told(run))
        for number, run in enumerate((run for run in runs if run.outcome is not Outcome.UNCLEAR), start=1)
    )


def _told(run: Run) -> tuple[Category | None, bool]:
    if run.blame is None:
        return None, False
    return run.blame.finding.category, is_retryable(run.blame.finding.category, run.blame.finding.retryable)


def _tests(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.key.test for run in runs))


def _decide_test(runs: Sequence[Run], test: str, newest: str | None) -> Run | None:
    own = [run for run in runs if run.key.test == test and run.outcome is not Outcome.UNCLEAR]
    if not own:
        return None
    named = [run for run in own if newest and run.key.folder == newest]
    last = named[-1] if named else own[-1]
    unordered = [run for run in own if not named and _same_place(run, last)]
    failed = [run for run in unordered if run.outcome is Outcome.FAILED]
    if len(failed) < len(unordered) and failed:
        return _less_sure(min(failed, key=_content))  # nothing tells whether the clean start came last
    if last.outcome is not Outcome.FAILED:
        return None
    chosen = min(failed, key=_content, default=last)
    return chosen if len({_content(run)[0] for run in failed}) < 2 else _less_sure(chosen)


def _less_sure(run: Run) -> Run:
    if run.blame is None:
        return run
    finding = replace(run.blame.finding, confidence=Confidence.LOW)
    return replace(run, blame=replace(run.blame, finding=finding))


def _same_place(one: Run, other: Run) -> bool:
    """Whether nothing tells which of two runs came first: the launcher's folder names are random."""
    return (one.key.repeat, one.key.attempt) == (other.key.repeat, other.key.attempt) and (
        one is other or one.clock is None or other.clock is None
    )


def _content(run: Run) -> tuple[str, int, str]:
    if run.blame is None:
        return "", 0, run.key.folder
    finding = run.blame.finding
    return fingerprint(finding.error, finding.location), finding.evidence.line, run.key.folder


def _first_in_time(run: Run) -> tuple[bool, float, str]:
    return run.clock is None, run.clock or 0.0, run.key.test
