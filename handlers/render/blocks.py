"""One root cause as Markdown: the answer first, the proof folded."""

from __future__ import annotations

from collections.abc import Sequence

from analyzers.model import AlsoSeen, Category, Command, Diagnosis, Role
from analyzers.records import dataclass, replace

from .clean_text import clean_line
from .safe_text import code, count, fence, link, prose, ranks
from .starts import say_ranks, say_starts, say_tests
from .surroundings import markdown_lines
from .view import Cause, JobView
from .words import doubt, rerun_advice, title

#: Above the guesses where the cause is not known.
ALTERNATIVES = "Or one of these"


@dataclass(frozen=True)
class Detail:
    """How much is shown; a comment that is too long is rendered again with less."""

    excerpt_lines: int = 25
    tests: int = 50
    jobs: int = 8
    causes: int = 20
    also_seen: int = 5
    commands: int = 3


#: A list of ranks of more letters than this is left to the lines below.
HEADLINE_RANKS = 40


def headline(cause: Cause) -> str:
    """`Out of GPU memory on rank 5 of 8`."""
    found = cause.diagnosis
    where = ""
    if found.culprit_ranks:
        total, named = cause.rank_total, ranks(found.culprit_ranks)
        if len(found.culprit_ranks) == total and total > 1:
            where = f" on all {total} ranks"
        elif len(named) > HEADLINE_RANKS:
            where = f" on {len(found.culprit_ranks)} of {total} ranks"
        else:
            noun = "rank" if len(found.culprit_ranks) == 1 else "ranks"
            where = f" on {noun} {named}" + (f" of {total}" if total > 1 else "")
    return title(found) + where


def cause_block(cause: Cause, detail: Detail) -> str:
    """Render a cause: summary, facts, what to type, and the folded proof."""
    found = cause.diagnosis
    facts = [
        *_error(found),
        *_where(cause),
        *markdown_lines(found, place_told=cause.changed is not None),
        *_ranks(cause),
        *_jobs(cause.jobs, detail),
        *_tests(found, shown=min(detail.tests, 3)),
        f"- **Re-run:** {rerun_advice(found)}{_type_rerun(cause)}",
        *(f"- **Note:** {prose(note)}" for note in cause.notes),
        *_not_read(found),
        *_attempts(found),
    ]
    if cause.jobs:
        # On a pull request the line on re-running knows all failed jobs; the analysis of one job cannot.
        found = replace(found, commands=tuple(one for one in found.commands if not one.command.startswith("/mlm ")))
    shown = found.commands[: min(detail.commands, 1)]
    guesses = _also_seen(found, detail) if has_candidates(found) else []
    blocks = [_lead(found), "\n".join(facts), *guesses, *_commands(shown), *_proof(found, detail)]
    return "\n\n".join(block for block in blocks if block)


def _lead(found: Diagnosis) -> str:
    """The summary in bold, and how sure it is. The error's own words are left to the line below."""
    summary = without_message(found)
    lead = f"**{prose(summary[:1].upper() + summary[1:])}**" if summary else ""
    return f"{lead} {doubt(found)}".strip()


def without_message(found: Diagnosis) -> str:
    """Cut the quoted error out of the summary; "" if little more than the headline is left."""
    summary = clean_line(found.summary)
    quoted = clean_line(found.error.message)[:30] if found.error else ""
    at = summary.find(quoted) if quoted else -1
    if at < 0:
        return summary
    kind = found.error.type.rsplit(".", 1)[-1] if found.error and found.error.type else ""
    head = summary[:at].rstrip(" :").removesuffix(kind).rstrip(" :")
    _, semicolon, tail = summary[at:].rpartition("; ")
    return f"{head}{semicolon}{tail if semicolon else ''}" if len(head.split()) > 2 else ""


def _error(found: Diagnosis) -> list[str]:
    if found.error is None:
        return []
    text = f"{found.error.type}: {found.error.message}" if found.error.type else found.error.message
    return [f"- **First error:** {code(text, limit=300)}"]


def _where(cause: Cause) -> list[str]:
    if cause.diagnosis.location is None:
        return []
    touched = {True: ", a file that this pull request changes", False: ", not changed by this pull request", None: ""}
    return [f"- **Where:** {code(cause.diagnosis.location)}{touched[cause.changed]}"]


def _ranks(cause: Cause) -> list[str]:
    told = say_ranks(cause.diagnosis)
    return [f"- **Ranks:** {told}"] if told and cause.rank_total > 1 else []


def _jobs(jobs: Sequence[JobView], detail: Detail) -> list[str]:
    if not jobs:
        return []
    shown = [link(code(job.name), job.url) + _now(job) for job in jobs[: detail.jobs]]
    more = f" and {len(jobs) - detail.jobs} more" if len(jobs) > detail.jobs else ""
    return [f"- **{'Job' if len(jobs) == 1 else 'Jobs'}:** {', '.join(shown)}{more}"]


def _now(job: JobView) -> str:
    if job.now == "passed":
        return f" (passed in attempt {job.now_attempt})"
    if job.now == "unreached":
        return f" (not run in attempt {job.now_attempt})"
    if job.now == "running":
        return f" (running again, attempt {job.now_attempt})"
    return ""


def _tests(found: Diagnosis, *, shown: int) -> list[str]:
    if not found.failed_tests or shown == 0:
        return []
    tests = [code(test, limit=300) for test in found.failed_tests[:shown]]
    more = len(found.failed_tests) - len(tests)
    label = "Failed test" if len(found.failed_tests) == 1 else "Failed tests"
    return [f"- **{label}:** {', '.join(tests)}" + (f" and {more} more" if more else "")]


def _type_rerun(cause: Cause) -> str:
    if not cause.diagnosis.retryable or cause.now != "failed":
        return ""
    return f" Comment {code(cause.rerun, limit=300)}"


def _not_read(found: Diagnosis) -> list[str]:
    if not found.read.skipped:
        return []
    first = found.read.skipped[0]
    more = len(found.read.skipped) - 1
    return [f"- **Not read:** {code(first.name)}: {prose(first.why)}" + (f", and {more} more" if more else "")]


def _attempts(found: Diagnosis) -> list[str]:
    lines = []
    if tests := say_tests(found.attempts):
        lines.append(f"- **Tests of this job:** {prose(tests)}")
    earlier = [f"{prose(which)}: {code(how)}" for which, how in say_starts(found.attempts) if how != "passed"]
    if earlier:
        lines.append(f"- **Earlier starts inside the job:** {'; '.join(earlier[:5])}")
    return lines


def _commands(commands: Sequence[Command]) -> list[str]:
    return [_command(command) for command in commands]


def _command(command: Command) -> str:
    """A shell line is shown as a block to copy; a comment for a bot stays inline, where no bot reads it as one."""
    if command.command.startswith("/"):
        return f"{prose(command.title)}: {code(command.command, limit=300)}"
    return f"{prose(command.title)}:\n{fence(command.command.splitlines(), language='sh', max_width=2000)}"


def _proof(found: Diagnosis, detail: Detail) -> list[str]:
    parts: list[str] = _commands(found.commands[1 : detail.commands])
    if found.evidence is not None:
        parts.append(f"{code(found.evidence.file)}, line {found.evidence.line}")
        if found.evidence.excerpt and detail.excerpt_lines:
            parts.append(fence(found.evidence.excerpt, max_lines=detail.excerpt_lines))
    if len(found.failed_tests) > 3 and detail.tests > 3:
        tests = found.failed_tests[: detail.tests]
        more = len(found.failed_tests) - len(tests)
        listed = "\n".join(f"- {code(test, limit=300)}" for test in tests)
        parts.append(f"All failed tests:\n\n{listed}" + (f"\n- and {more} more" if more else ""))
    if found.also_seen and detail.also_seen and not has_candidates(found):
        parts.append("\n\n".join(_also_seen(found, detail)))
    if len(found.read.skipped) > 1:
        skipped = "\n".join(f"- {code(item.name)}: {prose(item.why)}" for item in found.read.skipped[:10])
        more = len(found.read.skipped) - 10
        parts.append(f"Not read:\n\n{skipped}" + (f"\n- and {more} more" if more > 0 else ""))
    return [fold("Log and details", "\n\n".join(parts))] if parts else []


def _also_seen(found: Diagnosis, detail: Detail) -> list[str]:
    role = {Role.CAUSE: "another candidate", Role.CONSEQUENCE: "a consequence", Role.TEARDOWN: "while ending"}
    lines = []
    for seen in found.also_seen[: detail.also_seen]:
        where = f"{code(seen.file)}, line {seen.line}"
        lines.append(f"- {code(str(seen.category))}{on_ranks(seen)}, {role.get(seen.role, 'harmless')}: {where}")
    return [f"{ALTERNATIVES if has_candidates(found) else 'Also seen'}:", "\n".join(lines)] if lines else []


def has_candidates(found: Diagnosis) -> bool:
    """Whether the cause is not known and there are guesses at it."""
    return found.category is Category.UNKNOWN and any(seen.role is Role.CAUSE for seen in found.also_seen)


def on_ranks(seen: AlsoSeen) -> str:
    """` on ranks 0, 2-3`; "" if the log belongs to no rank."""
    return f" on {'rank' if len(seen.ranks) == 1 else 'ranks'} {ranks(seen.ranks)}" if seen.ranks else ""


def fold(summary: str, body: str) -> str:
    """Hide a second screen. `summary` is our own words; GitHub renders Markdown inside after a blank line."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def job_count(number: int) -> str:
    """`1 failed job`, `3 failed jobs`."""
    return count(number, "failed job")
