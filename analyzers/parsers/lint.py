"""Which style check failed the job, and its first complaint.

tools/autoformat.sh runs black, isort, pylint, ruff and mypy one after the other under `set -ex`, and forgives mypy: the
tool that ran last failed, whatever others have complained about before.
"""

from __future__ import annotations

from collections.abc import Sequence

from analyzers.model import Category, Evidence, Finding
from analyzers.parsers.job_lines import JobLine
from analyzers.parsers.runner import JOB_LOG, Step, make_finding
from analyzers.patterns import pattern
from analyzers.records import dataclass, field, replace
from analyzers.rules import RuleMatch

_TOOL = pattern(
    r"^\++ (?:uv run (?:-[\w-]+ )*|\S*python3? -m |\S*/)?"
    r"(?P<tool>black|isort|pylint|ruff|mypy|flake8|pre-commit|python3? \S*copyright\S*)\b"
)
#: What the shell traces when the check before it may fail: `mypy ... || true`.
_FORGIVEN = pattern(r"^\++ (?:true|:)$")
_TRACED = pattern(r"^\++ ")
_PLACE = pattern(r"^(?P<path>\S+\.pyi?):(?P<line>\d+)(?::\d+)?: ")
_ARROW = pattern(r"^(?P<path>\S+\.pyi?):(?P<line>\d+):\d+$")
#: black cannot read the file; its newer versions name the place in another order.
_UNREADABLE = pattern(
    r"cannot (?:format (?P<path>\S+): Cannot parse\b.*?: (?P<line>\d+):\d+: |parse: (?P<file>\S+?):(?P<at>\d+):\d+)"
)
_WORKSPACE = pattern(r"/(?:home/runner/_work|__w)/[^/\s]+/[^/\s]+/|/opt/megatron-lm/|/workspace/")


#: pre-commit's own line says only which hook failed; the hook's words follow it.
_HOOK = "lint-precommit"
#: More complaints than this are counted.
_MOST_TOLD = 20

#: What a rule made of a line, the line, and the text of the line before.
Complaint = tuple[RuleMatch, JobLine, str]


@dataclass
class Section:
    """The run of one check (tool "" before the first is named), its complaints, whether failing was allowed."""

    step: int
    tool: str = ""
    line: JobLine | None = None
    complaints: list[Complaint] = field(default_factory=list)
    forgiven: bool = False


class LintReader:
    """Feed it the lines of the steps in order, with what the rules made of them."""

    def __init__(self) -> None:
        """Begin before the first check."""
        self._sections: list[Section] = []
        self._previous = ""

    def feed(self, line: JobLine, step: Step, match: RuleMatch | None) -> None:
        """Take one line."""
        text = line.text
        section = self._section(step)
        if tool := _TOOL.match(text):
            self._sections.append(Section(step.number, tool["tool"], line))
        elif _FORGIVEN.match(text):
            section.forgiven = True
        elif _TRACED.match(text) and section.tool:
            self._sections.append(Section(step.number))
        elif match is not None and match.rule.category is Category.LINT:
            section.complaints.append((match, line, self._previous))
        self._previous = text

    def finding(self, step: Step | None) -> Finding | None:
        """Return the first complaint of the check that failed this step, None if no check did."""
        if step is None:
            return None
        sections = [section for section in self._sections if section.step == step.number and not section.forgiven]
        for section in reversed(sections):
            if section.complaints:
                told = [complaint for complaint in section.complaints if complaint[0].rule.id != _HOOK]
                return _to_finding(told or section.complaints)
        return None

    def _section(self, step: Step) -> Section:
        if not self._sections or self._sections[-1].step != step.number:
            self._sections.append(Section(step.number))
        return self._sections[-1]


def _to_finding(complaints: Sequence[Complaint]) -> Finding:
    """The first complaint is the error; the others, with their files and codes, stand below it."""
    match, line, _ = complaints[0]
    message, location = _read(complaints[0])
    told = dict.fromkeys(_WORKSPACE.sub("", _read(complaint)[0]) for complaint in complaints)
    excerpt = list(told)[:_MOST_TOLD]
    if len(told) > len(excerpt):
        excerpt.append(f"... and {len(told) - len(excerpt)} more")
    found = make_finding(match, line, message=message)
    return replace(found, evidence=Evidence(JOB_LOG, line.number, tuple(excerpt)), location=location)


def _read(complaint: Complaint) -> tuple[str, str | None]:
    """Return what a complaint says, in one line, and its place if it has a line number."""
    match, line, previous = complaint
    where = _WORKSPACE.sub("", match.message)
    if arrow := _ARROW.match(where):  # the newer layout of ruff: code and message first, the place below
        return f"{previous.strip()} {line.text.strip()}", f"{arrow['path']}:{arrow['line']}"
    if unreadable := _UNREADABLE.search(where):
        path, number = unreadable["path"] or unreadable["file"], unreadable["line"] or unreadable["at"]
        return line.text.strip(), f"{path}:{number}"
    place = _PLACE.match(where)
    return line.text.strip(), f"{place['path']}:{place['line']}" if place else None
