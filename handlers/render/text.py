"""A diagnosis for a terminal: the answer first, on one screen."""

from __future__ import annotations

import textwrap

from analyzers.model import Diagnosis, Role
from analyzers.records import dataclass

from .blocks import ALTERNATIVES, has_candidates, headline, on_ranks, without_message
from .clean_text import clean, clean_line, shorten
from .redaction import redact_diagnosis
from .safe_text import count
from .starts import say_ranks, say_starts, say_tests
from .surroundings import text_rows
from .view import Cause
from .words import CONFIDENCE, doubt, is_unrecognised, rerun_advice

WIDTH = 100
#: Narrower than this the labels leave no room for what they name.
NARROWEST = 40
RED, GREEN, YELLOW, DIM, BOLD, RESET = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[2m", "\x1b[1m", "\x1b[0m"
EXCERPT_LINES = 12
#: A line of a log that is longer is cut: somebody printed a whole tensor.
LINE_CHARS = 1200
TESTS = 5
STARTS = 6
CANDIDATES = 3
LABEL_WIDTH = 8


def render_text(diagnosis: Diagnosis, *, color: bool, width: int = WIDTH) -> str:
    """Render for a terminal; log text in it is cleaned, so it cannot move the cursor.

    Args:
        color: ANSI colours around our own words; never in a pipe or under NO_COLOR.
        width: columns; longer text is wrapped between words, not cut.
    Returns:
        Lines with a final LF.
    """
    found = redact_diagnosis(diagnosis)
    page = _Page(color=color, width=max(width, NARROWEST))
    lines = [*_verdict(found, page), *_warning(found, page)]
    if not found.passed:
        facts = _facts(found, page)
        lines += [
            *(["", *facts] if facts else []),
            *_excerpt(found, page),
            *_candidates(found, page),
            *_commands(found, page),
            "",
        ]
    return "\n".join([*lines, _read(found)]) + "\n"


@dataclass(frozen=True)
class _Page:
    """How the terminal shows: `width` columns, in colour or not."""

    color: bool
    width: int

    def paint(self, text: str, codes: str) -> str:
        return f"{codes}{text}{RESET}" if self.color else text

    def wrap(self, text: str, *, indent: int = 0) -> list[str]:
        """A test or a path that is wider stays whole: broken in two, it cannot be copied."""
        return textwrap.wrap(clean_line(text), self.width - indent, break_on_hyphens=False, break_long_words=False)


def _verdict(found: Diagnosis, page: _Page) -> list[str]:
    if found.passed:
        retried = any(attempt.category for attempt in found.attempts)
        lines = [page.paint("PASSED  nothing failed in the end" if retried else "PASSED  nothing failed", GREEN + BOLD)]
        return [*lines, *page.wrap(found.summary), *page.wrap(CONFIDENCE[found.confidence])] if retried else lines
    if is_unrecognised(found):
        return [page.paint("UNKNOWN  no failure recognised", YELLOW + BOLD), *page.wrap(found.summary)]
    lines = [page.paint(f"FAILED  {headline(Cause(found, jobs=()))}", RED + BOLD)]
    return [*lines, *page.wrap(without_message(found)), *page.wrap(doubt(found))]


def _warning(found: Diagnosis, page: _Page) -> list[str]:
    """Say on top that something was not read: the answer may be in it."""
    if not found.read.skipped:
        return []
    first, *rest = found.read.skipped
    more = f", and {len(rest)} more" if rest else ""
    told = page.wrap(f"! Not everything could be read: {first.name}: {first.why}{more}")
    return [page.paint(line, YELLOW) for line in told]


def _facts(found: Diagnosis, page: _Page) -> list[str]:
    rows: list[tuple[str, str]] = []
    if found.error is not None:
        rows.append(("error", shorten(_error(found), LINE_CHARS)))
    if found.location:
        rows.append(("where", found.location))
    if told := say_ranks(found):
        rows.append(("ranks", told))
    rows += [("test" if place == 0 else "", test) for place, test in enumerate(found.failed_tests[:TESTS])]
    if len(found.failed_tests) > TESTS:
        rows.append(("", f"and {len(found.failed_tests) - TESTS} more tests"))
    rows += text_rows(found)
    if not is_unrecognised(found):
        rows.append(("re-run", rerun_advice(found)))
    if tests := say_tests(found.attempts):
        rows.append(("tests", tests))
    rows += _starts(found)
    lines = []
    for name, value in rows:
        label = page.paint(f"{name:<{LABEL_WIDTH - 1}} ", DIM)
        first, *rest = page.wrap(value, indent=LABEL_WIDTH) or [""]
        lines += [label + first, *(" " * LABEL_WIDTH + line for line in rest)]
    return lines


def _starts(found: Diagnosis) -> list[tuple[str, str]]:
    told = [f"{which}: {how}" for which, how in say_starts(found.attempts)]
    left = len(told) - STARTS
    told = told[:STARTS] + ([f"and {left} more"] if left > 0 else [])
    return [("starts" if place == 0 else "", line) for place, line in enumerate(told)]


def _error(found: Diagnosis) -> str:
    if found.error is None:
        return ""
    return clean_line((f"{found.error.type}: " if found.error.type else "") + found.error.message)


def _excerpt(found: Diagnosis, page: _Page) -> list[str]:
    """The lines of the log, but for those that the error above has told in full."""
    if found.evidence is None:
        return []
    head = page.paint(f"{clean_line(found.evidence.file)}:{found.evidence.line}", DIM)
    told = _error(found)[: LINE_CHARS - 1]
    if all(clean_line(line) in told for line in found.evidence.excerpt):
        return ["", head]
    shown = found.evidence.excerpt[:EXCERPT_LINES]
    left = len(found.evidence.excerpt) - len(shown)
    body = [piece for line in shown for piece in _log_line(line, page)]
    return ["", head, *body, *([f"  … {left} more lines"] if left else [])]


def _candidates(found: Diagnosis, page: _Page) -> list[str]:
    """Where the cause is not known: the places to look at next, the best guess first."""
    if not has_candidates(found):
        return []
    guesses = [seen for seen in found.also_seen if seen.role is Role.CAUSE][:CANDIDATES]
    told = [f"{seen.category}{on_ranks(seen)}, {clean_line(seen.file)}:{seen.line}" for seen in guesses]
    return ["", page.paint(ALTERNATIVES, DIM), *(f"  {piece}" for line in told for piece in page.wrap(line, indent=2))]


def _log_line(line: str, page: _Page) -> list[str]:
    text = shorten(clean(line).expandtabs(4).rstrip(), LINE_CHARS)
    first, *rest = textwrap.wrap(
        text, page.width - 2, subsequent_indent="  ", drop_whitespace=False, break_on_hyphens=False
    ) or [""]
    return [f"  {first.rstrip()}", *(f"    {piece.strip()}" for piece in rest)]


def _commands(found: Diagnosis, page: _Page) -> list[str]:
    lines = []
    for command in found.commands[:3]:
        lines += ["", page.paint(clean_line(command.title), DIM), f"  {command.command}"]
    return lines


def _read(found: Diagnosis) -> str:
    text = f"read {count(found.read.files, 'file')}, {_size(found.read.bytes)}"
    if len(found.read.skipped) > 1:
        names = "; ".join(f"{clean_line(item.name)}: {clean_line(item.why)}" for item in found.read.skipped[:3])
        text += f"; not read: {names}"
    return text


def _size(size_bytes: int) -> str:
    if size_bytes < 1024:
        return count(size_bytes, "byte")
    return f"{size_bytes / 2**10:.0f} KiB" if size_bytes < 2**20 else f"{size_bytes / 2**20:.1f} MiB"
