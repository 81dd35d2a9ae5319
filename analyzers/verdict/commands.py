"""What to type next: entries of config/fixes.yaml, filled in from the diagnosis.

A command is meant to be copied into a shell, and its words come from logs that anybody can write. Each word is taken
only if all its characters are harmless, and is quoted all the same; an entry that cannot be filled is not offered.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import re2  # type: ignore[import-untyped]

from analyzers.model import Command, Diagnosis
from analyzers.patterns import pattern
from analyzers.records import dataclass
from analyzers.surroundings import JobRecipe

_UNIT_JOB = pattern(r"^(?P<bucket>tests/unit_tests/\S+) - (?P<gb200>gb200 )?\S+$")
_FUNCTIONAL_JOB = pattern(r"^(?P<model>[^/\s]+)/(?P<test_case>\S+) - (?:gb200 )?\S+$")
_GIT_URL = pattern(r"git\+(?P<url>https://[\w.-]+/[\w./-]+?)(?:@[\w./-]*)?(?:[`'\"\s]|$)")
_FILE = pattern(r"(?<![\w./-])[./-]*(?P<path>\w[\w./-]*\.(?:py|sh|cu|cpp|h|yaml|toml))\b")

#: What each word may be made of. A test's id may hold blanks, but nothing that a shell or a terminal could act upon.
_ALLOWED = {
    "test": pattern(r"^[A-Za-z0-9_][\w./:\[\]=,+@~ -]*$", re.ASCII),
    "test_file": pattern(r"^\w[\w./-]*\.py$", re.ASCII),
    "test_function": pattern(r"^test\w*$", re.ASCII),
    "marker": pattern(r"^flaky(?:_in_dev)?$"),
    "bucket": pattern(r"^tests/[\w./*-]+$", re.ASCII),
    "model": pattern(r"^\w[\w.-]*$", re.ASCII),
    "test_case": pattern(r"^\w[\w./-]*$", re.ASCII),
    "model_test": pattern(r"^\w[\w.-]*/\w[\w./-]*$", re.ASCII),
    "file": pattern(r"^\w[\w./-]*$", re.ASCII),
    "git_url": pattern(r"^https://[\w.-]+/[\w./-]+$", re.ASCII),
    "processes": pattern(r"^[1-9]\d{0,3}$", re.ASCII),
    "hardware": pattern(r"^(?:h100|gb200)$"),
    "platform": pattern(r"^dgx_(?:h100|gb200)$"),
    "environment": pattern(r"^(?:dev|lts)$"),
    "tag": pattern(r"^(?:latest|legacy)$"),
    "scope": pattern(r"^\w[\w-]*$", re.ASCII),
}
_KEYS = frozenset({"title", "command", "categories", "jobs", "when", "unless", "retryable", "golden", "relation"})
_WORD = pattern(r"\{(\w+)\}")
#: GPUs of one node of CI's machines: H100 nodes have eight, GB200 nodes four.
_GPUS = {"h100": 8, "gb200": 4}


class FixError(ValueError):
    """config/fixes.yaml has an entry that cannot be used; the message says which and why."""


@dataclass(frozen=True)
class Fix:
    """One entry: what to type, and when it is a good idea. None means that it does not matter."""

    title: str
    command: str
    categories: frozenset[str] | None = None
    jobs: frozenset[str] | None = None
    when: str | None = None
    retryable: bool | None = None
    golden: str | None = None  # what the comparison with golden values looks like: drift, regression, missing
    relation: str | None = None  # to the change
    unless: str | None = None

    def fits(self, diagnosis: Diagnosis, job: str) -> bool:
        """Tell whether everything that the entry asks for is so."""
        if self.categories is not None and str(diagnosis.category) not in self.categories:
            return False
        if self.jobs is not None and job not in self.jobs:
            return False
        if self.retryable is not None and diagnosis.retryable is not self.retryable:
            return False
        if self.golden is not None and (diagnosis.golden is None or diagnosis.golden.kind != self.golden):
            return False
        if self.relation is not None and (diagnosis.relation is None or diagnosis.relation.name != self.relation):
            return False
        message = diagnosis.error.message if diagnosis.error else ""
        if self.unless is not None and re2.search(self.unless, message) is not None:
            return False
        return self.when is None or re2.search(self.when, message) is not None


def read_fixes(document: Any) -> tuple[Fix, ...]:
    """Check the document of config/fixes.yaml and return its entries in order.

    Raises:
        FixError: an unknown key, no title or command, or a word in braces that nobody can fill.
    """
    fixes = []
    for entry in document:
        if not isinstance(entry, Mapping) or set(entry) - _KEYS or not {"title", "command"} <= set(entry):
            raise FixError(f"an entry needs a title and a command, and may have {sorted(_KEYS)}: {entry!r}")
        unknown = set(_WORD.findall(entry["command"])) - set(_ALLOWED)
        if unknown:
            raise FixError(f"{entry['title']}: nobody fills {sorted(unknown)}")
        fixes.append(
            Fix(
                entry["title"],
                entry["command"],
                frozenset(entry["categories"]) if "categories" in entry else None,
                frozenset(entry["jobs"]) if "jobs" in entry else None,
                entry.get("when"),
                entry.get("retryable"),
                entry.get("golden"),
                entry.get("relation"),
                entry.get("unless"),
            )
        )
    return tuple(fixes)


def suggest_commands(diagnosis: Diagnosis, fixes: Iterable[Fix], *, job_name: str | None) -> tuple[Command, ...]:
    """Return the commands that fix, reproduce or repeat this failure, the most useful first; none for a passed job."""
    if diagnosis.passed:
        return ()
    job = job_kind(job_name)
    words = _words(diagnosis, job_name or "")
    found: dict[str, Command] = {}
    for fix in fixes:
        if fix.fits(diagnosis, job) and (line := _fill(fix.command, words)) is not None:
            found.setdefault(line, Command(fix.title, line))
    return tuple(found.values())


def job_kind(job_name: str | None) -> str:
    """Tell what a job does from the name that the CI service shows: unit, functional, lint, build or other."""
    name = job_name or ""
    if _UNIT_JOB.match(name):
        return "unit"
    if _FUNCTIONAL_JOB.match(name):
        return "functional"
    if re.search(r"\b(?:lint(?:ing)?|format|copyright|pre-commit)\b", name, re.IGNORECASE):
        return "lint"
    return "build" if re.search(r"container|image|\bbuild\b", name, re.IGNORECASE) else "other"


def _fill(command: str, words: Mapping[str, str]) -> str | None:
    filled = command
    for name in _WORD.findall(command):
        value = words.get(name)
        if value is None or not _ALLOWED[name].fullmatch(value):
            return None
        filled = filled.replace("{" + name + "}", shlex.quote(value))
    return filled


def _words(diagnosis: Diagnosis, job_name: str) -> dict[str, str]:
    words = _ci_words(diagnosis.recipe, job_name)
    if seen := _processes(diagnosis):
        words["processes"] = str(seen)
    if unit := _UNIT_JOB.match(job_name):
        words["bucket"] = unit["bucket"]
    elif functional := _FUNCTIONAL_JOB.match(job_name):
        words |= {"model": functional["model"], "test_case": functional["test_case"]}
        words["model_test"] = f"{functional['model']}/{functional['test_case']}"
    if diagnosis.failed_tests:
        words["test"] = diagnosis.failed_tests[0]
        words["test_file"], _, inner = diagnosis.failed_tests[0].partition("[")[0].partition("::")
        words["test_function"] = inner.rpartition("::")[2]
        words["marker"] = "flaky" if words["environment"] == "lts" else "flaky_in_dev"
    message = diagnosis.error.message if diagnosis.error else ""
    if url := _GIT_URL.search(message):
        words["git_url"] = url["url"]
    if path := _FILE.search(message):
        words["file"] = path["path"]
    return words


def _ci_words(recipe: JobRecipe | None, job_name: str) -> dict[str, str]:
    """Return how CI runs the job: what its recipe says, else what CI does by default."""
    platforms = recipe.platforms if recipe else ()
    on_gb200 = " - gb200 " in job_name or platforms == ("dgx_gb200",)
    hardware = "gb200" if on_gb200 else "h100"
    words = {"hardware": hardware, "platform": f"dgx_{hardware}", "processes": str(_GPUS[hardware])}
    words |= {"environment": "dev", "tag": "latest", "scope": "L1"}
    if recipe is None:
        return words
    for name, values in (("environment", recipe.environments), ("tag", recipe.tags), ("scope", recipe.scopes)):
        if values and words[name] not in values:
            words[name] = values[0]
    if recipe.gpus is not None:
        words["processes"] = str(recipe.gpus)
    return words


def _processes(diagnosis: Diagnosis) -> int | None:
    """Return how many processes ran on one node, if the ranks tell it; a part of a node's ranks tells nothing."""
    ranks = (*diagnosis.culprit_ranks, *diagnosis.victim_ranks, *diagnosis.silent_ranks)
    return (
        len(ranks)
        if len(ranks) > 1 and sorted(ranks) == list(range(len(ranks))) and len(ranks) <= max(_GPUS.values())
        else None
    )
