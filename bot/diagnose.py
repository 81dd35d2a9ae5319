"""From paths to a diagnosis: the analyzers on what lies on disk. Blocking; call it off the event loop."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from analyzers.analyze import analyze
from analyzers.model import Diagnosis, Source
from analyzers.rules import RuleSet
from analyzers.surroundings import JobRecipe
from analyzers.verdict.commands import Fix, read_fixes, suggest_commands
from bot.archives import Budget, Opened, open_bundle
from config.rule_files import fix_document, rule_documents

#: More threads than this wait for each other's Python code; fewer bytes than that are read before threads have started.
MOST_THREADS = 4
THREADS_FROM_BYTES = 16 * 1024**2


@dataclass(frozen=True)
class JobFiles:
    """What a checkout of the tested commit knows about one job: how CI runs it, and its golden values."""

    recipe: JobRecipe | None = None
    goldens: tuple[Source, ...] = ()


@cache
def packaged_rules() -> RuleSet:
    """Return the rules of config/rules; their proofs are run by the tests and at the start of the service."""
    return RuleSet.from_documents(rule_documents(), prove=False)


@cache
def packaged_fixes() -> tuple[Fix, ...]:
    """Return what config/fixes.yaml offers to type next."""
    return read_fixes(fix_document())


def _analyze(opened: Opened, goldens: tuple[Source, ...]) -> Diagnosis:
    """Analyse, in threads where there is enough to read: inflating and searching release the interpreter's lock."""
    bundle = replace(opened.bundle, goldens=goldens)
    size_bytes = sum(source.size_bytes or 0 for source in bundle.sources)
    threads = min(len(os.sched_getaffinity(0)), MOST_THREADS)
    if threads < 2 or size_bytes < THREADS_FROM_BYTES:
        return analyze(bundle, packaged_rules())
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (a small artifact is done before it is loaded)

    with ThreadPoolExecutor(threads) as pool:
        try:
            return analyze(bundle, packaged_rules(), run_all=lambda tasks: pool.map(lambda task: task(), tasks))
        except BaseException:
            opened.budget.cancel()  # Ctrl-C, mostly: the other threads are in the middle of their logs
            raise


def diagnose_path(
    path: str | None,
    *,
    job_log: str | None = None,
    job_name: str | None = None,
    watch: Callable[[Budget], None] | None = None,
    checked_out: JobFiles | None = None,
) -> Diagnosis:
    """Diagnose one job from its artifact (folder, zip file or "-") and its log.

    Args:
        watch: is told now and then, in any thread, how far the reading has come.
        checked_out: what a checkout of the tested commit knows about the job.
    Raises:
        UnreadableError: a path cannot be read at all.
    """
    opened = open_bundle(path, job_log=job_log, job_name=job_name, budget=Budget(watch=watch))
    known = checked_out or JobFiles()
    diagnosis = _analyze(opened, known.goldens)
    if not diagnosis.passed:
        diagnosis = replace(diagnosis, recipe=known.recipe)
    commands = diagnosis.commands or suggest_commands(diagnosis, packaged_fixes(), job_name=job_name)
    told = {skipped.name for skipped in diagnosis.read.skipped}
    trouble = tuple(skipped for skipped in opened.trouble() if skipped.name not in told)
    read = replace(diagnosis.read, skipped=diagnosis.read.skipped + trouble)
    return replace(diagnosis, commands=commands, read=read)
