"""A diagnosis for a terminal: the answer first, on one screen."""

from __future__ import annotations

import textwrap

from analyzers.model import Diagnosis

from .blocks import headline
from .clean_text import clean_line, shorten
from .redaction import redact_diagnosis
from .safe_text import count, ranks
from .surroundings import text_rows
from .view import Cause
from .words import doubt, rerun_advice

WIDTH = 100
RED, GREEN, DIM, BOLD, RESET = "\x1b[31m", "\x1b[32m", "\x1b[2m", "\x1b[1m", "\x1b[0m"
EXCERPT_LINES = 12
TESTS = 5


def render_text(diagnosis: Diagnosis, *, color: bool) -> str:
    """Render for a terminal of `WIDTH` columns; log text in it is cleaned, so it cannot move the cursor.

    Args:
        color: ANSI colours around our own words; never in a pipe or under NO_COLOR.
    Returns:
        Lines with a final LF.
    """
    found = redact_diagnosis(diagnosis)
    if found.passed:
        lines = [_paint("PASSED  nothing failed", GREEN + BOLD, color=color), *_wrapped(found.summary), _read(found)]
        return "\n".join(line for line in lines if line) + "\n"
    lines = [_paint(f"FAILED  {headline(Cause(found, jobs=()))}", RED + BOLD, color=color), *_wrapped(found.summary)]
    lines += _wrapped(doubt(found))
    lines += [
        "",
        *_facts(found, color=color),
        *_excerpt(found, color=color),
        *_commands(found, color=color),
        "",
        _read(found),
    ]
    return "\n".join(lines) + "\n"


def _paint(text: str, codes: str, *, color: bool) -> str:
    return f"{codes}{text}{RESET}" if color else text


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(clean_line(text), WIDTH, break_on_hyphens=False) or []


def _facts(found: Diagnosis, *, color: bool) -> list[str]:
    rows: list[tuple[str, str]] = []
    if found.error is not None:
        name = f"{found.error.type}: " if found.error.type else ""
        rows.append(("error", shorten(clean_line(name + found.error.message), 300)))
    if found.location:
        rows.append(("where", found.location))
    if found.culprit_ranks or found.victim_ranks or found.silent_ranks:
        rows.append(("ranks", _ranks(found)))
    rows += [("test" if place == 0 else "", test) for place, test in enumerate(found.failed_tests[:TESTS])]
    if len(found.failed_tests) > TESTS:
        rows.append(("", f"and {len(found.failed_tests) - TESTS} more tests"))
    rows += text_rows(found)
    rows.append(("re-run", rerun_advice(found)))
    rows += [(f"start {attempt.attempt}", str(attempt.category or "passed")) for attempt in found.attempts[:-1]]
    lines = []
    for name, value in rows:
        label = _paint(f"{name:<8}", DIM, color=color)
        first, *rest = textwrap.wrap(clean_line(value), WIDTH - 8, break_on_hyphens=False) or [""]
        lines += [label + first, *(" " * 8 + line for line in rest)]
    return lines


def _ranks(found: Diagnosis) -> str:
    parts = []
    if found.culprit_ranks:
        parts.append(f"{ranks(found.culprit_ranks)} failed first")
    if found.victim_ranks:
        parts.append(f"{ranks(found.victim_ranks)} only followed")
    if found.silent_ranks:
        parts.append(f"{ranks(found.silent_ranks)} left no log")
    return "; ".join(parts)


def _excerpt(found: Diagnosis, *, color: bool) -> list[str]:
    if found.evidence is None:
        return []
    head = _paint(f"{clean_line(found.evidence.file)}:{found.evidence.line}", DIM, color=color)
    shown = found.evidence.excerpt[:EXCERPT_LINES]
    left = len(found.evidence.excerpt) - len(shown)
    body = [f"  {shorten(line.expandtabs(4).rstrip(), WIDTH - 2)}" for line in shown]
    return ["", head, *body, *([f"  … {left} more lines"] if left else [])]


def _commands(found: Diagnosis, *, color: bool) -> list[str]:
    lines = []
    for command in found.commands[:3]:
        lines += ["", _paint(clean_line(command.title), DIM, color=color), f"  {command.command}"]
    return lines


def _read(found: Diagnosis) -> str:
    mib = found.read.bytes / 2**20
    text = f"read {count(found.read.files, 'file')}, {mib:.1f} MiB"
    if found.read.skipped:
        names = "; ".join(f"{clean_line(item.name)}: {clean_line(item.why)}" for item in found.read.skipped[:3])
        text += f"; not read: {names}"
    return text
