"""What the CI service says about the job: how it ended, at which step, and what was uploaded.

actions/runner writes the header of a step as a group that holds the script's own text; the text is no output.
"""

from __future__ import annotations

from analyzers.model import Category, Confidence, Error, Evidence, Finding, Role
from analyzers.parsers.job_lines import JobLine
from analyzers.parsers.job_report import Ending
from analyzers.patterns import pattern
from analyzers.records import dataclass
from analyzers.rules import RuleMatch

JOB_LOG = "job.log"

_EXIT = pattern(r"Process completed with exit code (?P<code>\d+)")
_REPORT = pattern(r"^logs_report=(?P<name>[\w.+-]+)$")
_ARTIFACT_ID = pattern(r"Artifact (?P<name>\S+?)(?:\.zip)? .*Artifact ID(?: is)? (?P<id>\d+)")
_EXCERPT = pattern(r"^\s*assets_dir/(?P<path>\S+) — last \d+ lines")
_RULER = pattern(r"^─{20,}$")
#: A run's folder inside the artifact: "<repeat>/<run id>" or, by an older launcher, "<repeat>" alone.
_RUN_FOLDER = pattern(r"^(?P<folder>(?:\S+?/)?\d+/[^/]+)/attempt_\d+/")
_PASSED = pattern(r"^(?:║ +)?✅ .*PASSED\b|^║ +✅ +PASSED")
_RESULT = pattern(r"^❌ .*FAILED \(exit (?P<code>\S+)\)")

#: Exit codes of a script that the runner itself has ended: SIGINT, SIGKILL, SIGTERM.
_KILLED = (130, 137, 143)

_UPLOAD = "actions/upload-artifact"

_ENDINGS = {
    Category.RUNNER_LOST: Ending.RUNNER_LOST,
    Category.JOB_TIMEOUT: Ending.TIMED_OUT,
    Category.CANCELLED: Ending.CANCELLED,
}


@dataclass(frozen=True)
class Step:
    """A step that has begun: its number in the log, from 0, and the first line of what it runs."""

    number: int = 0
    name: str = ""


class RunnerReader:
    """Feed it every line in order; it says which ones are text that no program printed."""

    def __init__(self) -> None:
        """Begin before the first step."""
        self.step = Step()
        self.failed_step: Step | None = None
        self.exit_code: int | None = None
        self.run_folder: str | None = None
        self.artifact_name: str | None = None
        self.artifact_id: int | None = None
        self._first_error: JobLine | None = None
        self._decisive: tuple[RuleMatch, JobLine] | None = None
        self._in_script = False
        self._rulers = 0  # still to come around the excerpt of another log
        self._passed = False
        self._cleaned_up = False

    def feed(self, line: JobLine) -> bool:
        """Take one line; say whether it is output of the job (and no script text, no copy of another log)."""
        text = line.text
        if line.mark == "group" and text.startswith("Run "):
            self.step, self._in_script = Step(self.step.number + 1, text[4:]), True
            self._rulers = 0
            return False
        if line.mark == "endgroup":
            self._in_script = False
            return False
        if line.mark == "error":
            self._note_error(line)
            return True
        if self._in_script:
            return False
        if line.task:
            return True
        if self._rulers:
            self._rulers -= _RULER.match(text) is not None
            return False
        return self._note_end(text)

    def decide(self, match: RuleMatch, line: JobLine) -> bool:
        """Take a rule's word on an annotation; say whether it tells how the job ended.

        The first to speak decides, but a reason ("a newer push") beats the bare "The operation was canceled."
        """
        if line.mark != "error" or match.rule.category not in _ENDINGS:
            return False
        if self._decisive is None:
            # A job that had failed by then was only tidied away afterwards.
            first = self._first_error
            if first is None or first.number >= line.number or self.exit_code in _KILLED:
                self._decisive = (match, line)
        elif self._decisive[0].rule.id == "cancelled" and match.rule.id != "cancelled":
            self._decisive = (match, line)
        return True

    @property
    def ending(self) -> Ending:
        """How the job ended, as far as the log says."""
        if self._decisive is not None:
            return _ENDINGS[self._decisive[0].rule.category]
        if self._passed:
            return Ending.PASSED
        if self._first_error is not None:
            # An action that is tried again complains first: in a log that stops there nobody knows how it went on.
            return Ending.FAILED if self.exit_code is not None or self._cleaned_up else Ending.UNKNOWN
        return Ending.PASSED if self._cleaned_up else Ending.UNKNOWN

    def finding(self) -> Finding | None:
        """Return the runner's own reason, if it gave one: time limit, cancelled, lost."""
        return None if self._decisive is None else make_finding(*self._decisive)

    def fallback(self) -> Finding | None:
        """Return the bare fact that a step failed, for when nothing says why."""
        if self._first_error is None:
            return None
        line = self._first_error
        return Finding(
            Category.UNKNOWN,
            Role.CAUSE,
            Error(None, line.text.strip()),
            Evidence(JOB_LOG, line.number, (line.text,)),
            offset=line.offset,
            at=line.at,
            confidence=Confidence.LOW,
        )

    def _note_error(self, line: JobLine) -> None:
        if self._passed and self.step.name.startswith(_UPLOAD):
            return  # a green job's logs may fail to be kept: the step is allowed to fail, and is tried again
        if (found := _EXIT.search(line.text)) and self.exit_code is None:
            self.exit_code = int(found["code"])
        self._passed = False
        if self._first_error is None:
            self._first_error, self.failed_step = line, self.step

    def _note_end(self, text: str) -> bool:
        if text.startswith(("Post job cleanup", "Cleaning up orphan processes")):
            self._cleaned_up = True
        elif _PASSED.match(text):
            self._passed = True
        elif found := _REPORT.match(text):
            self.artifact_name = found["name"]
        elif (found := _ARTIFACT_ID.match(text)) and self.artifact_name in (None, found["name"]):
            self.artifact_name, self.artifact_id = found["name"], int(found["id"])
        elif found := _EXCERPT.match(text):
            self._rulers = 2
            folder = _RUN_FOLDER.match(found["path"])
            self.run_folder = folder["folder"].removeprefix("logs/") if folder else None
        return True


def make_finding(
    match: RuleMatch, line: JobLine, *, message: str | None = None, excerpt: tuple[str, ...] = ()
) -> Finding:
    """Make of a rule's match in the job's log an event of no rank."""
    rule = match.rule
    return Finding(
        rule.category,
        rule.blames,
        Error(match.type, message or match.message),
        Evidence(JOB_LOG, line.number, excerpt or (line.text,)),
        offset=line.offset,
        at=line.at,
        retryable=rule.retryable,
        rule=rule.id,
    )
