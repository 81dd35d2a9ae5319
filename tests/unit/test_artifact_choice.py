"""Which artifact belongs to a job: its own log first, then name and time, then all that could be it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fakes import MODELS, NOW, make_artifact, make_job

from handlers.artifact_choice import artifact_stem, choose

UUIDS = [f"{number:08d}-0000-4000-8000-000000000000" for number in range(9)]
BUCKET = "tests/unit_tests/models/**/*.py"
STEM = "logs-tests-unit_tests-models-----.py-7-"


def uploaded(name: str, number: int) -> str:
    return (
        f"2026-09-01T11:30:00Z logs_report={name}\n"
        f"2026-09-01T11:30:01Z Artifact {name}.zip successfully finalized. Artifact ID {number}\n"
        f"2026-09-01T11:30:01Z Artifact {name} has been successfully uploaded! Final size is 1 bytes. "
        f"Artifact ID is {number}\n"
    )


def ids(**given: object) -> list[list[int]]:
    choice = choose(**{"job": make_job(MODELS), "test_case": BUCKET, "log_tail": "", **given})  # type: ignore[arg-type]
    return [[artifact.id for artifact in group] for group in choice.groups]


def test_the_name_is_made_as_ci_makes_it() -> None:
    assert f"logs-{artifact_stem(BUCKET)}-7-" == STEM


def test_the_log_decides_over_name_and_time() -> None:
    mine = make_artifact(STEM + UUIDS[1], id=1, created_at=NOW + timedelta(days=1))
    other = make_artifact(STEM + UUIDS[2], id=2)
    assert ids(artifacts=[other, mine], log_tail=uploaded(mine.name, 1)) == [[1]]


def test_the_scripts_own_text_is_no_statement() -> None:
    text = (
        f"logs_report=logs-{BUCKET}-7-$(cat /proc/sys/kernel/random/uuid)\n" + 'echo "logs_report=$logs_report" | sed\n'
    )
    mine = make_artifact(STEM + UUIDS[1], id=1)
    assert ids(artifacts=[mine], log_tail=text) == [[1]]


def test_a_retried_upload_stands_beside_the_first() -> None:
    first = make_artifact(STEM + UUIDS[1], id=1, digest=None, size_bytes=10)
    again = make_artifact(STEM + UUIDS[1] + "-retry", id=2, size_bytes=5)
    log = f"x logs_report={first.name}\n" + uploaded(again.name, 2).split("\n", 1)[1]
    assert ids(artifacts=[first, again], log_tail=log) == [[2, 1]]
    assert ids(artifacts=[first, again]) == [[2, 1]]


def test_without_a_log_name_and_time_decide() -> None:
    job = make_job(MODELS)
    in_time = make_artifact(STEM + UUIDS[1], id=1, created_at=job.completed_at + timedelta(minutes=4))
    late = make_artifact(STEM + UUIDS[2], id=2, created_at=job.completed_at + timedelta(minutes=6))
    early = make_artifact(STEM + UUIDS[3], id=3, created_at=job.started_at - timedelta(minutes=1))
    stranger = make_artifact(STEM.replace("models", "modelsx") + UUIDS[4], id=4)
    assert ids(artifacts=[late, early, stranger, in_time]) == [[1]]


def test_a_stem_that_ends_alike_is_another_job() -> None:
    nested = make_artifact("logs-tests-unit_tests-dist_checkpointing-models-----.py-7-" + UUIDS[1], id=1)
    assert ids(artifacts=[nested]) == []


def test_what_is_ambiguous_is_all_read_and_said() -> None:
    twins = [make_artifact(STEM + UUIDS[number], id=number) for number in (1, 2)]
    choice = choose(twins, job=make_job(MODELS), test_case=BUCKET, log_tail="")
    assert len(choice.groups) == 2
    assert "2 artifacts could belong" in choice.notes[0]


@pytest.mark.parametrize(
    ("test_case", "log", "words"),
    [
        (BUCKET, "", "No log artifact of this job was found"),
        (BUCKET, f"x logs_report={STEM}{UUIDS[1]}\n", "uploaded no log artifact"),
    ],
)
def test_none_is_said(test_case: str, log: str, words: str) -> None:
    choice = choose([], job=make_job(MODELS), test_case=test_case, log_tail=log)
    assert choice.groups == ()
    assert words in choice.notes[0]


def test_a_job_that_uploads_none_needs_no_note() -> None:
    choice = choose([make_artifact(STEM + UUIDS[1])], job=make_job("linting"), test_case=None, log_tail="")
    assert (choice.groups, choice.notes) == ((), ())


def test_an_artifact_of_another_run_is_never_chosen() -> None:
    foreign = make_artifact(STEM.replace("-7-", "-8-") + UUIDS[1], id=1, run_id=8)
    assert ids(artifacts=[foreign]) == []
