"""Why a step failed that builds, installs or pulls something: its first real error, not the wrapper's last line.

BuildKit prints several of a Dockerfile's steps at once, each line with the number of its step ("#21 388.2 text");
only lines of the step that failed are evidence. uv prints a chain of causes, one line or box each.
"""

from __future__ import annotations

from itertools import takewhile

from analyzers.model import Category, Finding, Role
from analyzers.parsers.job_lines import JobLine
from analyzers.parsers.runner import Step, make_finding
from analyzers.patterns import pattern
from analyzers.records import dataclass, field
from analyzers.rules import RuleMatch

#: The first hits of a step are kept; a build that floods has said by then what is wrong.
MOST_HITS = 400
#: A wrapper belongs to the error that follows within this many lines: uv quotes a whole traceback in between.
_NEAR = 60
_MOST_DETAILS = 12

#: An image has come after all, at a second try.
_PULLED = pattern(r"^Status: (?:Downloaded newer image|Image is up to date) for ")
_VERTEX = pattern(r"^#(?P<number>\d+) (?:(?P<at>\d+\.\d+) )?(?P<text>.*)$")
_VERTEX_FAILED = pattern(r"^#(?P<number>\d+) ERROR: ")
#: How uv, pip and git go on with an error: drawn boxes, "cause:", "hint:", indentation.
_GOES_ON = pattern(r"^(?:\s*(?:[│├╰×▶─]+\s*|cause: |Caused by: |hint: )|\s{2,})(?P<text>\S.*)$")
#: What follows an error inside of uv's box and is not its text wrapped at 80 columns: code, marks, the end, advice.
_NO_PROSE = pattern(r"^(?:\d+ \||[|^~\[\"']|hint: |compilation terminated|error: |During handling|The above )")
_BOX = pattern(r"^[\s│├╰×▶─]+(?:(?:cause|Caused by): )?")
#: Rules so general that they mean something only where something is known to have been built, and to have failed.
_ONLY_IN_BUILDS = frozenset({"build-error-line", "build-error-shout", "build-not-found", "build-exception"})
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
        self._open: list[Hit] = []

    def vertex_text(self, text: str) -> tuple[int | None, str]:
        """Take BuildKit's prefix off a line: the number of its step (None if it has none) and the rest."""
        found = _VERTEX.match(text)
        return (int(found["number"]), found["text"]) if found else (None, text)

    def feed(self, line: JobLine, step: Step, match: RuleMatch | None, order: int) -> None:
        """Take a line of a step and what the rules made of it."""
        if failed := _VERTEX_FAILED.match(line.text):
            self._failed_vertices.setdefault(step.number, int(failed["number"]))
        vertex, text = self.vertex_text(line.text)
        goes_on = self._continue(text, vertex)
        if _PULLED.match(text):
            hits = self._hits.get(step.number, [])
            hits[:] = [hit for hit in hits if hit.match.rule.category is not Category.IMAGE_PULL]
        if match is None:
            return
        hits = self._hits.setdefault(step.number, [])
        hit = Hit(match, line, _BOX.sub("", text).strip(), hits[-1].place + 1 if hits else 0, vertex, order)
        # The first line of a chain of causes goes on while each cause begins anew.
        self._open = [*self._open[:1], hit] if goes_on else [hit]
        if len(hits) < MOST_HITS:
            hits.append(hit)

    def forget(self, step: Step) -> None:
        """A launched task has begun to print: what this step had complained about before was overcome."""
        self._hits.pop(step.number, None)
        self._open = []

    def finding(self, step: Step | None) -> Finding | None:
        """Return what made this step fail, None if no rule knows any of its lines."""
        if step is None:
            return None
        hits = self._hits.get(step.number, [])
        vertex = self._failed_vertices.get(step.number)
        inside = [hit for hit in hits if hit.vertex == vertex] or hits
        causes = [hit for hit in inside if hit.match.rule.blames is Role.CAUSE]
        wrappers = [hit for hit in inside if hit.match.rule.blames is Role.CONSEQUENCE]
        if vertex is None and not wrappers:
            causes = [hit for hit in causes if hit.match.rule.id not in _ONLY_IN_BUILDS]
        if causes:
            # A tool that was killed, or found the disk full, fails in many words before it says so.
            late = next((hit for hit in causes if hit.match.rule.category in _SAID_LATE), None)
            hit = late or _named_cause(causes)
        elif wrappers:
            hit = min(wrappers, key=lambda hit: (hit.order, hit.place))
        else:
            return None
        return _to_finding(hit, inside)

    def _continue(self, text: str, vertex: int | None) -> bool:
        """Add to the errors at hand a line in which they go on; say whether it does."""
        found = _GOES_ON.match(text)
        if found is None or not self._open or self._open[-1].vertex != vertex:
            self._open = []
            return False
        for hit in self._open:
            if len(hit.details) < _MOST_DETAILS:
                hit.details.append(found["text"].strip())
        return True


def _named_cause(causes: list[Hit]) -> Hit:
    """The first cause; where that is only "error: ...", the one in its own chain that a rule knows by name."""
    first = causes[0]
    if first.match.rule.id not in _ONLY_IN_BUILDS:
        return first
    known = (hit for hit in causes[1:] if hit.match.rule.id not in _ONLY_IN_BUILDS and hit.text in first.details)
    return next(known, first)


def _quoted_whole(hit: Hit) -> str:
    """Return the text with what it quotes in backticks to the end: uv 0.7 wraps inside of a name."""
    text = hit.text
    for detail in hit.details:
        if text.count("`") % 2 == 0:
            break
        text = f"{text} {detail}"
    return text


def _to_finding(hit: Hit, inside: list[Hit]) -> Finding:
    wrappers = [
        _quoted_whole(other)
        for other in inside
        if other.match.rule.blames is Role.CONSEQUENCE
        and other.vertex == hit.vertex
        and other.place < hit.place
        and hit.line.number - other.line.number <= _NEAR
    ]
    names_type = hit.match.type is not None and hit.match.type != hit.match.rule.type
    message = hit.match.message if names_type else hit.text
    if hit.match.rule.id.startswith(("uv-", "cmake-")):
        message = " ".join([message, *hit.details])
    elif wrappers:
        message = " ".join([message, *takewhile(lambda detail: not _NO_PROSE.match(detail), hit.details)])
    message = ": ".join(dict.fromkeys([*wrappers, message]))
    return make_finding(hit.match, hit.line, message=message, excerpt=(hit.line.text, *hit.details))
