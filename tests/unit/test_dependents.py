"""How much runs again with a job."""

from __future__ import annotations

import pytest
from fakes import make_job

from config.repo import default_config
from handlers.dependents import Dependents, dependents_of, gpu_jobs

PATTERNS = default_config().jobs
UNIT = "tests/unit_tests/models/**/*.py - latest"
OTHER = "tests/unit_tests/data/**/*.py - latest"
FUNCTIONAL = "gpt/gpt3_mla - latest"
BUILD = "cicd-container-build / Build CI container (aws-h100)"
GREEN = [make_job(name, "success") for name in ("configure", "linting", BUILD, UNIT, OTHER, FUNCTIONAL)]
GATE = make_job("Nemo_CICD_Test", "failure")


@pytest.mark.parametrize(
    ("picked", "expected"),
    [
        (FUNCTIONAL, Dependents(0, 0, gates=True, more=False)),
        (UNIT, Dependents(1, 1, gates=True, more=False)),
        (BUILD, Dependents(3, 3, gates=True, more=False)),
        ("linting", Dependents(4, 3, gates=True, more=False)),
        ("configure", Dependents(4, 3, gates=True, more=False)),
    ],
)
def test_what_stands_behind_a_job_runs_again(picked: str, expected: Dependents) -> None:
    assert dependents_of([picked], [*GREEN, GATE], PATTERNS) == expected


def test_skipped_jobs_come_on_top_once_all_units_pass() -> None:
    skipped = make_job("${{ matrix.model }}/${{ matrix.test_case }} - latest", "skipped")
    found = dependents_of([UNIT], [make_job(UNIT), make_job(OTHER, "success"), skipped], PATTERNS)
    assert found == Dependents(0, 0, gates=True, more=True)


def test_the_earliest_of_several_decides() -> None:
    assert dependents_of([UNIT, FUNCTIONAL, BUILD], GREEN, PATTERNS) == Dependents(1, 1, gates=False, more=False)


def test_what_costs_gpus() -> None:
    assert gpu_jobs([UNIT, FUNCTIONAL, BUILD, "linting", "Nemo_CICD_Test"], PATTERNS) == 2
