"""From everything known about one job to one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial

from analyzers.model import (
    Attempt,
    Bundle,
    Category,
    Confidence,
    Diagnosis,
    Evidence,
    Finding,
    Read,
    Role,
    Source,
)
from analyzers.parsers.job_report import Ending, JobReport
from analyzers.parsers.rank_log import RankLogReader
from analyzers.parsers.readings import LogReading
from analyzers.reading.layout import Kind, Place, RunKey, place
from analyzers.records import replace
from analyzers.rules import RuleSet
from analyzers.verdict.accusation import Blame
from analyzers.verdict.candidates import with_candidates
from analyzers.verdict.category import is_retryable
from analyzers.verdict.choice import attempts_of, decisive_run, is_order_known, mended_first
from analyzers.verdict.dumps import decide_by_dumps, read_dumps
from analyzers.verdict.fingerprint import fingerprint
from analyzers.verdict.runs import Outcome, Run, exits_of, gather_runs
from analyzers.verdict.summary import UNORDERED, say_golden, say_passed, summarise

JOB_LOG = "job.log"
#: How a job ends that did not pass, where its log says so.
STOPPED = (Ending.TIMED_OUT, Ending.CANCELLED, Ending.RUNNER_LOST)
RED = (Ending.FAILED, *STOPPED)
#: What befalls the last start alone: an earlier one would have been the end, or was begun anew.
OF_LAST_START = (Category.CANCELLED, Category.GOLDEN_MISMATCH)

Task = Callable[[], LogReading]
#: Runs independent readings and gives their results in the same order; a caller with threads may run them at once.
RunAll = Callable[[Sequence[Task]], Iterable[LogReading]]


def one_by_one(tasks: Sequence[Task]) -> Iterable[LogReading]:
    """Run the readings one after the other."""
    return (task() for task in tasks)


def analyze(bundle: Bundle, rules: RuleSet, *, run_all: RunAll = one_by_one) -> Diagnosis:
    """Diagnose one job. Pure: the same bundle gives the same answer, whatever the order of its sources.

    Never raises for what the logs hold; OSError and the like from reading a source pass through.
    """
    report = _read_job(bundle.job_log, rules)
    readings = _read_logs(bundle, rules, run_all)
    newest = report.run_folder.rpartition("/")[2] if report.run_folder else None
    launch = report.launches[-1] if report.launches else None
    exits = exits_of(JOB_LOG, launch.exits if launch else ())
    runs = mended_first(gather_runs(readings, rules, exits, newest), newest)
    sizes = {reading.place.name: reading.size_bytes for reading in readings}
    if bundle.job_log is not None:
        sizes[JOB_LOG] = report.bytes
    dumps, unreadable = read_dumps(sorted(bundle.sources, key=lambda source: source.name))
    read = Read(len(sizes) + len(dumps), sum(sizes.values()), (*bundle.skipped, *unreadable))
    attempts = attempts_of(runs, newest)
    if report.passed:
        return _passed(attempts, read)
    job_failed = report.ending in RED
    told = report.findings[0] if report.findings else None
    stopped = report.ending in STOPPED or (told is not None and told.category in OF_LAST_START)
    # What the job's log says beside the starts explains a failure after a clean one: no earlier start is asked then.
    run = decisive_run(runs, newest=newest, job_failed=job_failed and told is None, stopped=stopped)
    blame = decide_by_dumps(run.blame if run is not None else None, dumps)
    diagnosis = _decide(report, blame, runs, attempts, read)
    decisive = run if run is not None else runs[-1] if runs else None
    diagnosis = with_candidates(diagnosis, decisive.stories if decisive is not None else {})
    if run is not None and not diagnosis.passed and not job_failed and not is_order_known(runs, run, newest):
        diagnosis = replace(diagnosis, summary=f"{diagnosis.summary}; {UNORDERED}")
    if not job_failed:
        diagnosis = _doubt_cut_logs(diagnosis, report, readings, has_job_log=bundle.job_log is not None)
    return _with_numbers(diagnosis, report, bundle) if diagnosis.category is Category.GOLDEN_MISMATCH else diagnosis


def _doubt_cut_logs(
    found: Diagnosis, report: JobReport, readings: Sequence[LogReading], *, has_job_log: bool
) -> Diagnosis:
    """Where nobody says that the job failed and a log is cut, what followed may have mended what stands last in it."""
    file = found.evidence.file if found.evidence else None
    cut = has_job_log and report.ending is Ending.UNKNOWN
    cut = cut or any(reading.torn and reading.place.name == file for reading in readings)
    if found.passed or not cut or found.confidence is not Confidence.HIGH:
        return found
    return replace(found, confidence=Confidence.MEDIUM)


def _read_job(job_log: Source | None, rules: RuleSet) -> JobReport:
    if job_log is None:
        return JobReport()
    from analyzers.parsers.job_log import read_job_log  # noqa: PLC0415 (a dozen parsers that an artifact does not need)

    return read_job_log(job_log, rules)


def _with_numbers(diagnosis: Diagnosis, report: JobReport, bundle: Bundle) -> Diagnosis:
    """Add which metrics left their golden values, where and by how much."""
    from analyzers.verdict.golden import explain_golden  # noqa: PLC0415 (pydantic, for few jobs only)

    golden, unread = explain_golden(diagnosis, report.golden, bundle.sources, bundle.goldens)
    read = replace(diagnosis.read, skipped=diagnosis.read.skipped + unread)
    summary = f"{diagnosis.summary}; {say_golden(golden)}" if golden else diagnosis.summary
    return replace(diagnosis, golden=golden, read=read, summary=summary)


_reader = lru_cache(maxsize=4)(RankLogReader)  # compiled once for the packaged rules


def _read_logs(bundle: Bundle, rules: RuleSet, run_all: RunAll) -> list[LogReading]:
    reader = _reader(rules)
    logs = [(source, where) for source in bundle.sources if (where := place(source.name)) is not None]
    logs.sort(key=_largest_first)
    readings = list(run_all([partial(reader.read, source, where) for source, where in logs]))
    readings.sort(key=lambda reading: reading.place.name)
    if bundle.job_log is not None and not any(reading.place.kind is Kind.RANK for reading in readings):
        # Without an artifact the job's log is all there is: the launcher tees the output of some ranks into it.
        readings.append(reader.read(bundle.job_log, Place(JOB_LOG, Kind.JOB, RunKey("", 0, "", 0))))
    return readings


def _largest_first(log: tuple[Source, Place]) -> tuple[int, str]:
    """Order the readings so that threads end at about the same time."""
    return -(log[0].size_bytes or 0), log[0].name


def _decide(
    report: JobReport, blame: Blame | None, runs: Sequence[Run], attempts: tuple[Attempt, ...], read: Read
) -> Diagnosis:
    """Weigh what the ranks say against what the runner says."""
    job = report.findings[0] if report.findings else None
    if blame is not None and _stands(blame, report, job):
        return _from_blame(blame, attempts, read)
    if job is not None:
        return _from_finding(_with_running_tests(job, runs), attempts, read)
    if blame is not None:
        return _from_blame(blame, attempts, read)
    if report.ending not in RED and any(run.outcome is Outcome.PASSED for run in runs):
        found = _passed(attempts, read)
        retried = any(attempt.category for attempt in attempts)
        return replace(found, confidence=Confidence.MEDIUM) if retried else found  # nobody says how the job ended
    if report.fallback is not None and not (runs and runs[-1].stopped):
        return _from_finding(report.fallback, attempts, read)
    return _unknown(runs, attempts, read)


def _with_running_tests(finding: Finding, runs: Sequence[Run]) -> Finding:
    """A test that ran when the time was up is the failed test."""
    if finding.category is not Category.JOB_TIMEOUT or finding.tests or not runs:
        return finding
    running = [story.running for story in runs[-1].stories.values() if story.running]
    return replace(finding, tests=tuple(dict.fromkeys(running)))


def _stands(blame: Blame, report: JobReport, job: Finding | None) -> bool:
    """Whether the ranks' own verdict outranks what the runner says about the job."""
    if report.ending is Ending.RUNNER_LOST and job is not None:
        return False
    if blame.finding.role is Role.CAUSE:
        return job is None or blame.finding.confidence is not Confidence.LOW
    proven = blame.finding.category is Category.COLLECTIVE_TIMEOUT and blame.finding.confidence is not Confidence.LOW
    return proven and report.ending not in (Ending.CANCELLED, Ending.RUNNER_LOST)


def _from_finding(finding: Finding, attempts: tuple[Attempt, ...], read: Read) -> Diagnosis:
    culprits = (finding.rank,) if finding.rank is not None else ()
    return _from_blame(Blame(finding, culprits, (), tests=finding.tests), attempts, read)


def _from_blame(blame: Blame, attempts: tuple[Attempt, ...], read: Read) -> Diagnosis:
    finding = blame.finding
    return Diagnosis(
        passed=False,
        category=finding.category,
        retryable=is_retryable(finding.category, finding.retryable),
        confidence=finding.confidence,
        summary=summarise(blame),
        culprit_ranks=blame.culprits,
        victim_ranks=blame.victims,
        silent_ranks=blame.silent,
        error=finding.error,
        location=finding.location,
        failed_tests=blame.tests,
        evidence=finding.evidence,
        also_seen=blame.also,
        attempts=attempts,
        fingerprint=fingerprint(finding.error, finding.location),
        read=read,
    )


def _passed(attempts: tuple[Attempt, ...], read: Read) -> Diagnosis:
    return Diagnosis(
        passed=True,
        category=None,
        retryable=False,
        confidence=Confidence.HIGH,
        summary=say_passed(attempts),
        attempts=attempts,
        read=read,
    )


def _unknown(runs: Sequence[Run], attempts: tuple[Attempt, ...], read: Read) -> Diagnosis:
    """Nothing convincing: say so, and show the last line of the run that looks least finished, if there is one."""
    if runs and runs[-1].stopped is not None:
        return _from_finding(_with_running_tests(runs[-1].stopped, runs), attempts, read)
    last = next((run.last for run in reversed(runs) if run.last), None)
    running = [story.running for run in runs[-1:] for story in run.stories.values() if story.running]
    return Diagnosis(
        passed=False,
        category=Category.UNKNOWN,
        retryable=False,
        confidence=Confidence.LOW,
        summary="no log says what went wrong" + ("; the last line of one is shown" if last else ""),
        failed_tests=tuple(dict.fromkeys(running)),
        evidence=Evidence(last[0], last[1], (last[2][:400],)) if last else None,
        attempts=attempts,
        read=read,
    )
