"""The failure cases, each held against its right answer."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from scoring import Case, all_cases, wrong_fields

from bot.diagnose import diagnose_path

CASES = {case.folder.name: case for case in all_cases()}
#: The share that must be solved on every field. Raise it when the analysis gets better, never lower it.
SOLVED_SHARE = 1.0
#: A wrong answer with high confidence costs more trust than "unknown".
CONFIDENT_AND_WRONG_SHARE = 0.0


@cache
def answer(name: str) -> dict[str, Any]:
    case: Case = CASES[name]
    diagnosis = diagnose_path(
        str(case.artifact) if case.artifact else None,
        job_log=str(case.job_log) if case.job_log else None,
        job_name=case.job_name,
    )
    return diagnosis.as_json()


def test_most_cases_are_solved_on_every_field() -> None:
    wrong = {name: fields for name, case in CASES.items() if (fields := wrong_fields(case.expect, answer(name)))}
    assert len(wrong) <= (1 - SOLVED_SHARE) * len(CASES), wrong


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.expect.get("passed")])
def test_a_passed_job_is_not_accused(name: str) -> None:
    assert wrong_fields(CASES[name].expect, answer(name)) == {}


def test_wrong_answers_are_not_confident() -> None:
    confident = [
        name
        for name, case in CASES.items()
        if answer(name)["confidence"] == "high"
        and wrong_fields(case.expect, answer(name)).keys() & {"passed", "category", "culprit_ranks"}
    ]
    assert len(confident) <= CONFIDENT_AND_WRONG_SHARE * len(CASES), confident


@pytest.mark.parametrize("name", CASES)
def test_an_answer_keeps_its_contract(name: str) -> None:
    got = answer(name)
    ranks = [*got["culprit_ranks"], *got["victim_ranks"], *got["silent_ranks"]]
    assert len(ranks) == len(set(ranks))
    assert got["culprit_ranks"] == sorted(got["culprit_ranks"])
    assert got["victim_ranks"] == sorted(got["victim_ranks"])
    assert len(got["failed_tests"]) == len(set(got["failed_tests"]))
    assert got["passed"] == (got["category"] is None)
    if got["passed"]:
        assert ranks == got["failed_tests"] == []
