"""Builds the log of a CI job as GitHub serves it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from logs import source

from analyzers.model import Source
from analyzers.parsers.job_log import read_job_log
from analyzers.parsers.job_report import JobReport
from analyzers.rules import RuleSet
from config.rule_files import rule_documents

#: What every job prints before its first own step; a step's text starts after these lines.
_HEAD = ("Current runner version: '2.331.0'", "##[group]Run actions/checkout@v6", "with:", "##[endgroup]")


@cache
def rules() -> RuleSet:
    return RuleSet.from_documents(rule_documents())


def step(command: str, *output: str) -> list[str]:
    """A step: the header with the script's own text, then what it prints."""
    return [f"##[group]Run {command}", f"\x1b[36;1m{command}\x1b[0m", "shell: bash -e {0}", "##[endgroup]", *output]


def failed(code: int = 1) -> str:
    return f"##[error]Process completed with exit code {code}."


def job_log(*steps: Sequence[str], bom: bool = True) -> Source:
    """A whole log, stamped; the line with number n is `(*_HEAD, *steps)[n - 1]`."""
    lines = [*_HEAD, *(line for lines in steps for line in lines), "Cleaning up orphan processes"]
    stamped = [f"2026-12-01T10:{n // 60 % 60:02}:{n % 60:02}.{n:07}Z {line}" for n, line in enumerate(lines)]
    return source(("\ufeff" if bom else "") + "\n".join(stamped) + "\n", "job.log")


def read(*steps: Sequence[str]) -> JobReport:
    return read_job_log(job_log(*steps), rules())


def line_of(text: str, *steps: Sequence[str]) -> int:
    """The 1-based number of the first line of the log that holds `text` outside of a step's header."""
    lines = [*_HEAD, *(line for lines in steps for line in lines)]
    return next(
        n for n, line in enumerate(lines, 1) if text in line and "\x1b[36;1m" not in line and "##[group]" not in line
    )
