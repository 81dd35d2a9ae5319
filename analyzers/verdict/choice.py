"""Several starts in one artifact: which of them decides. The last one does; a retried failure is told, not blamed.

The folders of the starts have random names, and their logs need not hold a time. What they tell can still order two of
them: the script stops at a start that fails, and the launcher begins again only after a failure. So a start whose
failed tests pass in another one came before it. Source: Megatron-LM, tests/unit_tests/run_ci_test.sh (`set -e`; its two
runs of pytest have no test in common), launch_nemo_run_workload.py (it starts again after a failure).
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzers.model import Attempt, Confidence
from analyzers.records import replace
from analyzers.verdict.category import is_retryable
from analyzers.verdict.fingerprint import fingerprint
from analyzers.verdict.runs import Outcome, Run


def decisive_run(runs: Sequence[Run], *, newest: str | None, job_failed: bool, stopped: bool = False) -> Run | None:
    """Return the run that decides about the job; None if no run failed that still counts.

    Args:
        runs: in order.
        newest: the folder of the newest run, if the job's log names it.
        job_failed: the runner says that the job failed and nothing else does, so an earlier failure counts if the last
            start is clean.
        stopped: the job's log says what became of a last start that neither failed nor finished: the time was up,
            somebody cancelled it, the runner was lost, its results were compared.
    """
    if stopped and len(runs) > 1 and runs[-1].outcome is Outcome.UNCLEAR:
        return None
    failed = [run for run in (_decide_test(runs, test, newest) for test in _tests(runs)) if run is not None]
    if not failed and job_failed:
        failed = [run for run in runs if run.outcome is Outcome.FAILED][-1:]
    return min(failed, key=_first_in_time) if failed else None


def mended_first(runs: Sequence[Run], newest: str | None) -> list[Run]:
    """Put the starts whose tests passed at another try before the others of their place, whose order is not known."""
    places: dict[tuple[str, int], int] = {}
    for place, run in enumerate(runs):
        places.setdefault((run.key.test, run.key.repeat), place)

    def order(run: Run) -> tuple[int, bool]:
        mended = _is_mended(run, runs) and not (newest and run.key.folder == newest)
        return places[run.key.test, run.key.repeat], not mended

    return sorted(runs, key=order)


def attempts_of(runs: Sequence[Run], newest: str | None) -> tuple[Attempt, ...]:
    """Tell every start of the workers that failed or passed, test by test, the oldest first.

    A failed start that nothing orders stands last, as it does in the verdict.
    """
    told: list[Run] = []
    for test in _tests(runs):
        own = [run for run in runs if run.key.test == test and run.outcome is not Outcome.UNCLEAR]
        late = {run.key for run in _unordered(own, newest) if run.outcome is Outcome.FAILED}
        told += sorted(own, key=lambda run: run.key in late)
    return tuple(_told(number, run) for number, run in enumerate(told, start=1))


def is_order_known(runs: Sequence[Run], chosen: Run, newest: str | None) -> bool:
    """Whether it is known that the chosen start came after those of its test that ended the other way."""
    own = [run for run in runs if run.key.test == chosen.key.test and run.outcome is not Outcome.UNCLEAR]
    return len({run.outcome for run in _unordered(own, newest)}) < 2


def _told(number: int, run: Run) -> Attempt:
    if run.blame is None:
        return Attempt(number, None, retryable=False, test=run.key.test)
    category, retryable = run.blame.finding.category, run.blame.finding.retryable
    return Attempt(number, category, is_retryable(category, retryable), run.key.test, run.blame.culprits)


def _tests(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(run.key.test for run in runs))


def _decide_test(runs: Sequence[Run], test: str, newest: str | None) -> Run | None:
    own = [run for run in runs if run.key.test == test and run.outcome is not Outcome.UNCLEAR]
    if not own:
        return None
    named = [run for run in own if newest and run.key.folder == newest]
    last = named[-1] if named else own[-1]
    unordered = _unordered(own, newest)
    failed = [run for run in unordered if run.outcome is Outcome.FAILED]
    if len(failed) < len(unordered) and failed:
        return _less_sure(min(failed, key=_content))  # nothing tells whether the clean start came last
    if last.outcome is not Outcome.FAILED:
        return None
    chosen = min(failed, key=_content, default=last)
    return chosen if len({_content(run)[0] for run in failed}) < 2 else _less_sure(chosen)


def _unordered(own: Sequence[Run], newest: str | None) -> list[Run]:
    """Return the starts of one test among which the last one is; none if the job's log names it."""
    if not own or any(newest and run.key.folder == newest for run in own):
        return []
    ends = {(run.key.repeat, run.key.folder): run for run in own}  # the launcher has numbered those of one folder
    return [run for run in ends.values() if _is_unordered(run, own[-1]) and not _is_mended(run, own)]


def _is_mended(run: Run, runs: Sequence[Run]) -> bool:
    """Whether all tests of a failed start passed in ONE other; where several pass, they are repeated on purpose."""
    if run.outcome is not Outcome.FAILED:
        return False
    bad = {test for story in run.stories.values() for test in (*story.failed, story.running) if test}
    green = [
        other
        for other in runs
        if other.outcome is Outcome.PASSED
        and other.key.test == run.key.test
        and _is_unordered(other, run)
        and bad <= other.green
    ]
    return bool(bad) and len(green) == 1


def _less_sure(run: Run) -> Run:
    if run.blame is None:
        return run
    finding = replace(run.blame.finding, confidence=Confidence.LOW)
    return replace(run, blame=replace(run.blame, finding=finding))


def _is_unordered(one: Run, other: Run) -> bool:
    """Whether nothing tells which of two runs came first: the launcher's folder names are random."""
    if one is other:
        return True
    apart = one.key.folder != other.key.folder
    return apart and one.key.repeat == other.key.repeat and (one.clock is None or other.clock is None)


def _content(run: Run) -> tuple[str, int, str]:
    if run.blame is None:
        return "", 0, run.key.folder
    finding = run.blame.finding
    return fingerprint(finding.error, finding.location), finding.evidence.line, run.key.folder


def _first_in_time(run: Run) -> tuple[bool, float, str]:
    return run.clock is None, run.clock or 0.0, run.key.test
