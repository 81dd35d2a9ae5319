"""Where a root cause stands: in this pull request's change, in somebody's part of the repository."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import structlog

from analyzers.model import Category, Diagnosis
from analyzers.verdict.changes import changed_files
from analyzers.verdict.owners import CODEOWNERS_PATHS, find_owners
from analyzers.verdict.relation import functional_folder, relate_to_change, split_location
from config.repo import RepoConfig

from .context import Context, JobFinding, RefusedError
from .job_names import read_name

log = structlog.get_logger()

#: A file as a formatter names it in its message: relative, or in the checkout of a runner of GitHub Actions.
NAMED_FILE = re.compile(
    r"(?<![\w./-])(?:(?:/home/runner/_?work|/__w)/(?P<repo>[\w.-]+)/(?P=repo)/)?"
    r"(?P<path>(?:[\w.-]+/)*[\w-][\w.-]*\.(?:pyi?|toml|cfg|ya?ml|json|md|rst|txt|sh|c|cc|cpp|cu|cuh|h|hpp))(?![\w/-])"
)
#: uv says it in these words.
LOCK_FILE = re.compile(r"[Ll]ockfile at `(?P<path>[\w./-]+)`")


async def read_codeowners(findings: Sequence[JobFinding], ctx: Context) -> str | None:
    """Return the CODEOWNERS that GitHub goes by, the default branch's; None if there is none, or nothing to look up."""
    if not any(finding.diagnosis.location or named_file(finding.diagnosis) for finding in findings):
        return None
    for path in CODEOWNERS_PATHS:
        try:
            content = await ctx.github.file(path)
        except RefusedError as error:
            log.info("report.no_codeowners", path=path, status=error.status)
            return None
        if content is not None:
            return content.decode("utf-8", "replace")
    return None


def place_cause(
    finding: JobFinding, changed: frozenset[str] | None, codeowners: str | None, config: RepoConfig
) -> Diagnosis:
    """Return the finding's diagnosis with its place, its relation to the change and the place's owners, if known.

    Args:
        changed: the files of the pull request; of its lines and of imports nothing is known without a checkout.
        codeowners: the text of the CODEOWNERS file.
    """
    found = _with_run(finding)
    found = replace(found, location=found.location or named_file(found))
    path, _ = split_location(found.location)
    if changed is not None and found.relation is None:
        folder = _folder(finding.job_name, config)
        found = replace(found, relation=relate_to_change(found, changed_files(changed), folder=folder))
    if path and codeowners and not found.owners:
        found = replace(found, owners=find_owners(path, codeowners).owners)
    return found


def named_file(found: Diagnosis) -> str | None:
    """Return the file that a formatter or uv complains about without a line; None for other failures."""
    pattern = {Category.LINT: NAMED_FILE, Category.DEPENDENCY: LOCK_FILE}.get(found.category or Category.UNKNOWN)
    named = pattern.search(found.error.message) if pattern is not None and found.error is not None else None
    return named["path"] if named else None


def _with_run(finding: JobFinding) -> Diagnosis:
    """A log does not know the number of its run; we do."""
    run = str(finding.run_id)
    commands = (replace(one, command=one.command.replace('"$RUN_ID"', run)) for one in finding.diagnosis.commands)
    return replace(finding.diagnosis, commands=tuple(commands))


def _folder(job_name: str, config: RepoConfig) -> str | None:
    job = read_name(job_name, config.jobs)
    model, _, test_case = job.bucket.partition("/")
    return functional_folder(model, test_case) if job.kind == "functional" else None
