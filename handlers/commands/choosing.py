"""Which of GitHub's calls does what was asked: one job, all failed ones, or everything. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from handlers.context import Job
from handlers.render import replies
from handlers.render.safe_text import code, count
from handlers.runs import RERUNNABLE
from handlers.selection import Candidate, Unresolved, select

from .corrections import near_target
from .grammar import Rerun, quoted, typed

#: Targets whose jobs are there only once a run has come to them.
STAGED = frozenset({"unit", "functional"})
#: Targets that are narrowed by further words.
WITH_SELECTORS = STAGED | {"job"}


@dataclass(frozen=True)
class Call:
    """The one request that does what was asked. `what` and `tail` frame what else runs again because of it."""

    api: Literal["all", "failed", "job"]
    what: str
    job_id: int = 0
    names: tuple[str, ...] = ()  # of the jobs that are picked; empty: all, or only gates
    tail: str = ""


@dataclass(frozen=True)
class Declined:
    """Nothing is started; `text` says why and what to type instead."""

    text: str


def decide(command: Rerun, pool: Sequence[Candidate], jobs: Sequence[Job]) -> Call | Declined:
    """Choose the call; GitHub has none for a part of the failed jobs."""
    if command.target == "all":
        return Call("all", f"all {count(len(jobs), 'job')}; labels are read again, and everything repeats")
    failed = [item for item in pool if item.failed]
    if command.target == "failed":
        if failed:
            return _all_failed(failed)
        if any(job.conclusion in RERUNNABLE for job in jobs):
            return Call("failed", "the failed gates, no other job failed")
        return Declined(f"No job failed in the newest attempt. To repeat everything: {code('/mlm rerun all')}")
    picked = pick(command, pool)
    if isinstance(picked, Declined):
        return picked
    if green := [item for item in picked if not item.failed]:
        skipped = {job.id for job in jobs if job.conclusion == "skipped"}
        if failed and not command.force and all(item.job_id in skipped for item in picked):
            return Declined(
                f"{replies.names(picked)} did not run: skipped. If a job that failed is why, "
                f"{code('/mlm rerun failed')} starts that one, and what was skipped follows if it passes."
            )
        return _forced(green, picked, command)
    return _call_for(picked, failed)


def _all_failed(failed: Sequence[Candidate]) -> Call:
    what = f"{replies.failed_count(len(failed))}: {replies.names(failed)}"
    return Call("failed", what, names=tuple(item.name.name for item in failed))


def pick(command: Rerun, pool: Sequence[Candidate]) -> Sequence[Candidate] | Declined:
    """Resolve what was typed among the jobs that the target allows."""
    kind = of_kind(command.target, pool)
    if not kind and command.target in STAGED:
        return Declined(
            f"The newest attempt has not come to any {command.target} job: they start when the jobs before them pass. "
            f"How it stands: {code('/mlm status')}"
        )
    picked = select(kind, command.selectors, gb200=command.gb200)
    if isinstance(picked, Unresolved):
        return Declined(_which(picked, command))
    if not picked.jobs:
        what = "job" if command.target in {"any", "job"} else f"{command.target} job"
        others = f" For what failed: {code('/mlm rerun failed')}" if any(item.failed for item in pool) else ""
        return Declined(f"No {what} failed in the newest attempt, so there is nothing to re-run.{others}")
    return picked.jobs


def misspelt(command: Rerun, pool: Sequence[Candidate]) -> Declined | None:
    """Say what a word is nearest to that no job of a run in progress is called.

    None where nothing is near: it may be the name of a job that the run has not come to.
    """
    missed = select(of_kind(command.target, pool), command.selectors, gb200=command.gb200)
    if isinstance(missed, Unresolved) and not missed.ambiguous and (missed.choices or _meant(missed, command)):
        return Declined(_which(missed, command))
    return None


def _meant(miss: Unresolved, command: Rerun) -> Rerun | None:
    """Return the command with the word taken for a target that was mistyped, None if it is none."""
    target = near_target(miss.word) if command.target == "any" and not miss.ambiguous else None
    if target is None:
        return None
    others = tuple(word for word in command.selectors if word != miss.word)
    return replace(command, target=target, selectors=others if target in WITH_SELECTORS else ())


def _which(miss: Unresolved, command: Rerun) -> str:
    meant = _meant(miss, command)
    nearest = [replace(command, selectors=(choice,)) for choice in miss.choices]
    return replies.unresolved(miss, prefix="/mlm", quote=[typed(one) for one in ([meant] if meant else []) + nearest])


def of_kind(target: str, pool: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that a target allows."""
    kinds = {"unit": {"unit"}, "functional": {"functional"}, "lint": {"lint"}, "build": {"build"}}
    allowed = kinds.get(target)
    return [item for item in pool if allowed is None or item.name.kind in allowed]


def unresolved(miss: Unresolved, *, prefix: str) -> str:
    """Say that a selector is not clear, with lines to copy."""
    return replies.unresolved(miss, prefix=prefix, quote=[quoted(choice) for choice in miss.choices])


def _call_for(picked: Sequence[Candidate], failed: Sequence[Candidate]) -> Call | Declined:
    if len(picked) == 1:
        others = len(failed) - 1
        shut = f" ({count(others, 'other failed job')} keeps the gates shut)" if others else ""
        return _one(picked[0], shut)
    if {item.job_id for item in picked} == {item.job_id for item in failed}:
        return _all_failed(failed)
    return Declined(
        f"{count(len(picked), 'job')} of {len(failed)} failed ones were meant ({replies.names(picked)}), but GitHub "
        f"can re-run only one job or all that failed. Type {code('/mlm rerun failed')} for all {len(failed)}, "
        "or name one job."
    )


def _one(item: Candidate, tail: str) -> Call:
    return Call("job", replies.names([item]), item.job_id, (item.name.name,), tail)


def _forced(green: Sequence[Candidate], picked: Sequence[Candidate], command: Rerun) -> Call | Declined:
    """A job that passed runs again only if that is insisted on: its dependents run again with it."""
    if len(picked) == 1 and command.force:
        return _one(picked[0], "; it had passed")
    if len(picked) > 1:
        return Declined(
            f"{replies.names(green)} passed. Leave out what passed, or name one job with {code('--force')}."
        )
    return Declined(
        f"{replies.names(green)} did not fail. With {code('--force')} it runs again, and all that depends on it too."
    )
