"""Why a step failed that builds, installs or pulls something: its first real error, not the wrapper's last line.

BuildKit prints several of a Dockerfile's steps at once, each line with the number of its step ("#21 388.2 text");
only lines of the step that failed are evidence. uv prints a chain of causes, one line or box each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from analyzers.model import Category, Finding, Role
from analyzers.parsers.job_lines import JobLine
from analyzers.parsers.runner import Step, make_finding
from analyzers.rules import RuleMatch

#: The first hits of a step are kept; a build that floods has said by then what is wrong.
MOST_HITS = 400
#: A wrapper belongs to the error that follows within this many lines: uv quotes a whole traceback in between.
_NEAR = 60
_MOST_DETAILS = 12

_VERTEX = re.compile(r"^#(?P<number>\d+) (?:(?P<at>\d+\.\d+) )?(?P<text>.*)$")
_VERTEX_FAILED = re.compile(r"^#(?P<number>\d+) ERROR: ")
#: How uv, pip and git go on with an error: drawn boxes, "cause:", "hint:", indentation.
_GOES_ON = re.compile(r"^\s*(?:[│├╰×▶─]+[─▶]*\s*|cause: |hint: |\s{2,})(?P<text>\S.*)$")
_BOX = re.compile(r"^[\s│├╰×▶─]+(?:cause: )?")
#: Rules so general that they mean something only in the step of an image build that is known to have failed.
_ONLY_IN_BUILDS = frozenset({"build-error-line", "build-error-shout", "build-not-found"})
_SAID_LATE = (Category.HOST_OOM, Category.DISK_FULL)


@dataclass
class Hit:
    """A line that a rule knows, the BuildKit step it stands in, and how the message goes on."""

    match: RuleMatch
    line: JobLine
    text: str  # of the line, without BuildKit's prefix
    place: int
    vertex: int | None
    order: int  # of the rule: a specific one is earlier
    details: list[str] = field(default_factory=list)


class StepReader:
    """Keeps what the rules say about the lines of each step until it is known which step failed."""

    def __init__(self) -> None:
        """Begin before the first step."""
        self._hits: dict[int, list[Hit]] = {}
        self._failed_vertices: dict[int, int] = {}  # step -> BuildKit step
        self._open: Hit | None = None

    def vertex_text(self, text: str) -> tuple[int | None, str]:
        """Take BuildKit's prefix off a line: the number of its step (None if it has none) and the rest."""
        found = _VERTEX.match(text)
        return (int(found["number"]), found["text"]) if found else (None, text)

    def feed(self, line: JobLine, step: Step, match: RuleMatch | None, order: int) -> None:
        """Take a line of a step and what the rules made of it."""
        if failed := _VERTEX_FAILED.match(line.text):
            self._failed_vertices.setdefault(step.number, int(failed["number"]))
        vertex, text = self.vertex_text(line.text)
        if match is None:
            self._continue(text, vertex)
            return
        hits = self._hits.setdefault(step.number, [])
        chained = self._open is not None and self._continue(text, vertex)
        if len(hits) < MOST_HITS:
            hits.append(Hit(match, line, _BOX.sub("", text).strip(), len(hits), vertex, order))
            self._open = self._open if chained and not _is_wrapped(hits[-1]) else hits[-1]

    def finding(self, step: Step | None) -> Finding | None:
        """Return what made this step fail, None if no rule knows any of its lines."""
        if step is None:
            return None
        hits = self._hits.get(step.number, [])
        vertex = self._failed_vertices.get(step.number)
        inside = [hit for hit in hits if hit.vertex == vertex] or hits
        causes = [hit for hit in inside if hit.match.rule.blames is Role.CAUSE]
        causes = [hit for hit in causes if hit.vertex is not None or hit.match.rule.id not in _ONLY_IN_BUILDS]
        if causes:
            # A tool that was killed, or found the disk full, fails in many words before it says so.
            hit = next((hit for hit in causes if hit.match.rule.category in _SAID_LATE), causes[0])
        elif wrappers := [hit for hit in inside if hit.match.rule.blames is Role.CONSEQUENCE]:
            hit = min(wrappers, key=lambda hit: (hit.order, hit.place))
        else:
            return None
        return _to_finding(hit, inside)

    def _continue(self, text: str, vertex: int | None) -> bool:
        """Add to the error at hand a line in which it goes on; say whether it does."""
        hit = self._open
        if hit is None or hit.vertex != vertex:
            return False
        found = _GOES_ON.match(text)
        if found is None or len(hit.details) >= _MOST_DETAILS or (_is_wrapped(hit) and found["text"].startswith("[")):
            self._open = None
            return False
        hit.details.append(found["text"].strip())
        return True


def _is_wrapped(hit: Hit) -> bool:
    """Whether this is an exception in a box of uv's, which wraps at 80 columns."""
    return hit.match.rule.id == "build-exception"


def _to_finding(hit: Hit, inside: list[Hit]) -> Finding:
    wrappers = [
        other.text
        for other in inside
        if other.match.rule.blames is Role.CONSEQUENCE
        and other.vertex == hit.vertex
        and other.place < hit.place
        and hit.line.number - other.line.number <= _NEAR
    ]
    names_type = hit.match.type is not None and hit.match.type != hit.match.rule.type
    message = hit.match.message if names_type else hit.text
    if hit.details and (hit.match.rule.id.startswith("uv-") or _is_wrapped(hit)):
        message = " ".join([message, *hit.details])
    message = ": ".join(dict.fromkeys([*wrappers, message]))
    return make_finding(hit.match, hit.line, message=message, excerpt=(hit.line.text, *hit.details))
