"""From words to jobs, by the rules of the house; and from jobs to the one call that does it."""

from __future__ import annotations

import pytest
from fakes import make_job

from config.repo import default_config
from handlers.commands.choosing import Call, Declined, decide
from handlers.commands.grammar import Rerun
from handlers.job_names import is_consequence, read_name
from handlers.selection import Candidate, Selected, Unresolved, select

PATTERNS = default_config().jobs
NAMES = [
    "tests/unit_tests/models/**/*.py - latest",
    "tests/unit_tests/dist_checkpointing/**/*.py - latest",
    "tests/unit_tests/dist_checkpointing/models/**/*.py - latest",
    "tests/unit_tests/dist_checkpointing/models/test_moe_experts.py - latest",
    "tests/unit_tests/test_model_configs.py - latest",
    "tests/unit_tests/transformer/*.py - latest",
    "tests/unit_tests/transformer/moe/**/*.py - latest",
    "tests/unit_tests/**/*.py - latest",
    "tests/unit_tests/**/*.py - gb200 latest",
    "gpt/gpt3_mcore_te_tp2_pp2_mla - latest",
    "gpt/gpt3_mcore_te_tp2_pp2 - latest",
    "moe/gpt3_mcore_te_tp2_pp2 - latest",
    "linting",
    "cicd-container-build / Build CI container (aws-h100)",
]


def pool(*failed: str) -> list[Candidate]:
    return [
        Candidate(place, read_name(name, PATTERNS), any(part in name for part in failed))
        for place, name in enumerate(NAMES, start=1)
    ]


@pytest.mark.parametrize(
    ("word", "ids"),
    [
        ("models", [1]),
        ("transformer", [6]),
        ("moe", [7]),
        ("transformer/moe", [7]),
        ("dist_checkpointing/models", [3]),
        ("dist_checkpointing", [2]),
        ("test_model_configs", [5]),
        ("tests/unit_tests/models/**/*.py", [1]),
        ("tests/unit_tests/models/**/*.py - latest", [1]),
        ("test_moe_experts.py", [4]),
        ("gpt3_mcore_te_tp2_pp2_mla", [10]),
        ("gpt/gpt3_mcore_te_tp2_pp2", [11]),
        ("gpt3_mcore_te_tp2_pp2", [11, 12]),
        ("dist_checkpointing/*", [2, 3, 4]),
        ("13", [13]),
        ("linting", [13]),
    ],
)
def test_the_first_rule_that_finds_something_wins(word: str, ids: list[int]) -> None:
    found = select(pool(), [word])
    assert isinstance(found, Selected)
    assert [item.job_id for item in found.jobs] == ids


@pytest.mark.parametrize(("word", "ambiguous"), [("model", True), ("modells", False), ("nothing-like-it", False)])
def test_what_is_unclear_is_listed(word: str, ambiguous: bool) -> None:
    found = select(pool(), [word])
    assert isinstance(found, Unresolved)
    assert found.ambiguous is ambiguous
    assert ("tests/unit_tests/models/**/*.py" in found.choices) is (word != "nothing-like-it")


def test_platforms_of_one_bucket() -> None:
    both = select(pool(), ["tests/unit_tests/**/*.py"])
    one = select(pool(), ["tests/unit_tests/**/*.py"], gb200=True)
    assert isinstance(both, Selected)
    assert isinstance(one, Selected)
    assert [item.job_id for item in both.jobs] == [8, 9]
    assert [item.job_id for item in one.jobs] == [9]


def test_a_functional_twin_is_told_by_its_runner() -> None:
    labels = ("nvidia-ci-aws-use2-gpu-x4",)
    assert read_name("moe/x - latest", PATTERNS, runner_labels=labels).gb200
    assert not read_name("moe/x - latest", PATTERNS).gb200


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Nemo_CICD_Test", True),
        ("cicd-integration-gate", True),
        ("Coverage (unit-test)", True),
        ("cicd-parse-unit-tests", True),
        ("${{ matrix.bucket }} - latest", True),
        ("linting", False),
        ("configure", False),
        ("tests/unit_tests/models/**/*.py - latest", False),
    ],
)
def test_consequences(name: str, expected: bool) -> None:
    assert is_consequence(name, PATTERNS) is expected


@pytest.mark.parametrize(
    ("command", "failed", "api"),
    [
        (Rerun("all"), (), "all"),
        (Rerun(), ("models/**",), "failed"),
        (Rerun("unit", ("models",)), ("tests/unit_tests/models/",), "job"),
        (Rerun("unit", ("models",)), ("tests/unit_tests/models/", "moe/**"), "job"),
        (Rerun("unit"), ("tests/unit_tests/models/", "moe/**"), "failed"),
        (Rerun("lint"), ("linting",), "job"),
        (Rerun("build"), ("container-build",), "job"),
        (Rerun("unit", ("models",), force=True), (), "job"),
    ],
)
def test_the_call_that_does_it(command: Rerun, failed: tuple[str, ...], api: str) -> None:
    found = decide(command, pool(*failed), ())
    assert isinstance(found, Call)
    assert found.api == api


@pytest.mark.parametrize(
    ("command", "failed", "words"),
    [
        (Rerun(), (), "No job failed"),
        (Rerun("unit"), ("linting",), "nothing to re-run. For what failed: `/mlm rerun failed`"),
        (Rerun("unit"), (), "so there is nothing to re-run."),
        (Rerun("unit", ("models",)), (), "--force"),
        (Rerun("unit", ("models", "moe")), ("tests/unit_tests/models/", "moe/**", "linting"), "/mlm rerun failed"),
        (Rerun("unit", ("models", "moe")), ("moe/**",), "passed"),
        (Rerun("unit", ("modells",)), (), "nearest"),
        (Rerun("unit", ("model",)), (), "Which?"),
        (Rerun("functional", ("models",)), (), "No job of the newest attempt matches"),
    ],
)
def test_what_github_cannot_do_is_explained(command: Rerun, failed: tuple[str, ...], words: str) -> None:
    found = decide(command, pool(*failed), ())
    assert isinstance(found, Declined)
    assert words in found.text


def test_what_was_skipped_did_not_pass() -> None:
    jobs = [make_job(id=item.job_id, conclusion="failure" if item.failed else "skipped") for item in pool("linting")]
    declined = decide(Rerun("unit", ("models",)), pool("linting"), jobs)
    assert isinstance(declined, Declined)
    assert "did not run: skipped" in declined.text
    assert "`/mlm rerun failed`" in declined.text
    forced = decide(Rerun("unit", ("models",), force=True), pool("linting"), jobs)
    assert isinstance(forced, Call)


@pytest.mark.parametrize("target", ["unit", "functional"])
def test_a_stage_that_was_not_reached_is_said_to_be_so(target: str) -> None:
    early = [item for item in pool("linting") if item.name.kind == "lint"]
    declined = decide(Rerun(target, ("gpt3",)), early, [])  # type: ignore[arg-type]
    assert isinstance(declined, Declined)
    assert declined.text.startswith(f"The newest attempt has not come to any {target} job")


def test_a_mistyped_target_is_named_first_among_what_is_near() -> None:
    declined = decide(Rerun("any", ("faild",)), pool("models"), [])
    assert isinstance(declined, Declined)
    assert "No job of the newest attempt matches `faild`. The nearest: `/mlm rerun failed`" in declined.text
