"""The log of one CI job, read once: how it ended, at which step and why, and what the launcher said on the way."""

from __future__ import annotations

from analyzers.model import Category, Confidence, Finding, Role, Source
from analyzers.parsers.build import StepReader
from analyzers.parsers.golden import ScriptReader
from analyzers.parsers.job_lines import JobLine, JobLines
from analyzers.parsers.job_report import Ending, JobReport, Launch
from analyzers.parsers.lint import LintReader
from analyzers.parsers.runner import RunnerReader, make_finding
from analyzers.parsers.torchrun import LauncherReader
from analyzers.patterns import pattern
from analyzers.records import replace
from analyzers.rules import RuleSet, Where

#: launch_nemo_run_workload.py starts the whole test anew when it takes a failure for a passing one.
_LAUNCH = pattern(r"\bLaunching job \S+ for experiment ")
_LAUNCH_ENDED = pattern(r"\bJob (?P<how>failed|succeeded) with status: ")
#: What the two hold: looking for it first takes a tenth of the time, and nearly no line has it.
_LAUNCHING, _ENDED = "Launching job ", " with status: "


class _Launches:
    """The starts within the job; each begins with a launcher and a script that know nothing of the one before."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._ended: list[Launch] = []
        self._line = 0
        self._failed: bool | None = None
        self._begin(0)

    def _begin(self, line: int) -> None:
        self._line, self._failed = line, None
        self._launcher = LauncherReader()
        self.script = ScriptReader(self._rules)
        self.signal: Finding | None = None

    def feed(self, line: JobLine) -> None:
        says = "" if line.task else line.text
        if _LAUNCHING in says and _LAUNCH.search(says):
            if self._line:
                self._ended.append(self._launch())
            self._begin(line.number)
        elif _ENDED in says and (ended := _LAUNCH_ENDED.search(says)):
            self._failed = ended["how"] == "failed"
        elif not self._launcher.feed(line.plain()):
            self.script.feed(line)
            self._note_signal(line)

    def all(self) -> tuple[Launch, ...]:
        return (*self._ended, self._launch())

    def _launch(self) -> Launch:
        exits = self._launcher.report().of_torchrun
        return Launch(len(self._ended) + 1, self._line or 1, self._failed, exits)

    def _note_signal(self, line: JobLine) -> None:
        """Notice that somebody outside ended the launcher: a reason only where nothing failed before."""
        if self.signal is None and "SignalException" in line.text:
            match = self._rules.match(line.text, where=Where.RANK)
            if match is not None and match.rule.category is Category.CANCELLED:
                self.signal = replace(make_finding(match, line), role=Role.CAUSE, confidence=Confidence.MEDIUM)


def read_job_log(source: Source, rules: RuleSet) -> JobReport:
    """Read a job's log as the CI service serves it.

    Args:
        source: its bytes; time stamps, colours and the byte order mark may be there or not.
        rules: those for the job (`Where.JOB`) tell why a step failed, those for ranks why a script did.
    Returns:
        A report without findings if the log does not say more than that a step failed.
    """
    orders = {rule.id: place for place, rule in enumerate(rules)}
    runner, steps, lint, launches = RunnerReader(), StepReader(), LintReader(), _Launches(rules)
    lines = JobLines(source)
    for line in lines:
        if not runner.feed(line):
            continue
        launches.feed(line)
        if line.task:
            steps.forget(runner.step)
            continue
        match = rules.match(steps.vertex_text(line.text)[1], where=Where.JOB)
        if match is not None and runner.decide(match, line):
            continue
        steps.feed(line, runner.step, match, orders[match.rule.id] if match else 0)
        lint.feed(line, runner.step, match)
    return JobReport(
        ending=runner.ending,
        exit_code=runner.exit_code,
        failed_step=runner.failed_step.name if runner.failed_step else None,
        findings=() if runner.ending is Ending.PASSED else _findings(runner, steps, lint, launches),
        fallback=runner.fallback(),
        launches=launches.all(),
        run_folder=runner.run_folder,
        artifact_name=runner.artifact_name,
        artifact_id=runner.artifact_id,
        golden=launches.script.comparison(),
        lines=lines.lines,
        bytes=lines.size_bytes,
    )


def _findings(runner: RunnerReader, steps: StepReader, lint: LintReader, launches: _Launches) -> tuple[Finding, ...]:
    """Order what may have ended the job: the runner's own reason, failed checks, then what the step printed."""
    candidates = (
        runner.finding(),
        lint.finding(runner.failed_step),
        launches.script.finding(),
        steps.finding(runner.failed_step),
        launches.signal,
        launches.script.exception(),
    )
    by_line: dict[int, Finding] = {}
    for finding in candidates:
        if finding is not None:
            by_line.setdefault(finding.evidence.line, finding)
    return tuple(by_line.values())
