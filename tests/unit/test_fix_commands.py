"""What to type next is exact, quoted, and never made of anything that a shell could act upon."""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.model import Category, Confidence, Diagnosis, Error
from analyzers.surroundings import Relation, RelationName
from analyzers.verdict.commands import FixError, job_kind, read_fixes, suggest_commands
from config.rule_files import fix_document

UNIT = "tests/unit_tests/models/**/*.py - latest"
FUNCTIONAL = "gpt/gpt3_mcore_te_tp1_pp1 - latest"
BUILD = "cicd-container-build / Build CI container (aws-h100)"
NODE = "tests/unit_tests/models/test_gpt_model.py::TestGPT::test_forward[1-True]"


def diagnosis(category: Category, message: str = "", **fields: Any) -> Diagnosis:
    values: dict[str, Any] = {"passed": False, "retryable": False, "confidence": Confidence.HIGH, "summary": ""}
    return Diagnosis(category=category, error=Error(None, message), **(values | fields))


def commands(found: Diagnosis, job_name: str | None) -> list[str]:
    return [command.command for command in suggest_commands(found, read_fixes(fix_document()), job_name=job_name)]


def test_a_flake_is_taken_out_only_once_it_is_proven(tmp_path: Path) -> None:
    proven = Relation(RelationName.KNOWN_FLAKY)
    found = diagnosis(Category.TEST_ASSERTION, failed_tests=(NODE,), relation=proven)
    marked = next(line for line in commands(found, UNIT) if line.startswith("sed "))
    assert "flaky" not in " ".join(commands(replace(found, relation=Relation(RelationName.UNKNOWN)), UNIT))
    test = tmp_path / "tests/unit_tests/models/test_gpt_model.py"
    test.parent.mkdir(parents=True)
    test.write_text(
        "class TestGPT:\n    def test_forward(self):\n        pass\n    def test_forward_2(self):\n        pass\n"
    )
    subprocess.run(shlex.split(marked), cwd=tmp_path, check=True)
    assert test.read_text().splitlines()[1:3] == ["    @pytest.mark.flaky_in_dev", "    def test_forward(self):"]
    assert test.read_text().count("flaky") == 1


def test_one_failing_test_with_the_right_number_of_processes() -> None:
    found = diagnosis(Category.TEST_ASSERTION, failed_tests=(NODE,), culprit_ranks=(2,), victim_ranks=(0, 1, 3))
    one, bucket = commands(found, UNIT)
    assert shlex.split(one)[-2:] == ["-vs", NODE]
    assert "--nproc-per-node 4 " in one
    assert shlex.split(bucket)[-4:-2] == ["--bucket", "tests/unit_tests/models/**/*.py"]
    lone = diagnosis(Category.TEST_ASSERTION, failed_tests=(NODE,), culprit_ranks=(5,))
    assert "--nproc-per-node 8 " in commands(lone, UNIT)[0]
    assert "--platform gb200 " in commands(lone, "tests/unit_tests/models/**/*.py - gb200 latest")[1]


@pytest.mark.parametrize(
    ("category", "message", "job", "start"),
    [
        (Category.LINT, "would reformat a.py", "linting", "BASE_REF=main CHECK_ONLY=false"),
        (Category.LINT, "✗ Header missing: megatron/core/a.py", "linting", "python tools/check_copyright.py megatron/"),
        (Category.DEPENDENCY, "The lockfile at `uv.lock` needs to be updated", BUILD, "uv lock && git add"),
        (
            Category.DEPENDENCY,
            "Failed to build `x @ git+https://github.com/a/b.git@9f3c`: not our ref",
            BUILD,
            "git ls-remote https://github.com/a/b.git",
        ),
        (Category.CONTAINER_BUILD, "error: x", BUILD, "docker build --target main"),
        (
            Category.GOLDEN_MISMATCH,
            "The following metrics failed: lm loss",
            FUNCTIONAL,
            "uv run python tests/test_utils/",
        ),
        (Category.CUDA_OOM, "CUDA out of memory.", FUNCTIONAL, "uv run python tests/test_utils/python_scripts/launch"),
    ],
)
def test_each_kind_has_its_command(category: Category, message: str, job: str, start: str) -> None:
    assert commands(diagnosis(category, message), job)[0].startswith(start)


def test_locking_anew_is_not_offered_where_nothing_fits_together() -> None:
    found = diagnosis(Category.DEPENDENCY, "No solution found when resolving dependencies for split (markers: x)")
    assert not [line for line in commands(found, None) if "uv lock" in line]


def test_a_rerun_is_offered_where_it_makes_sense() -> None:
    lost = diagnosis(Category.RUNNER_LOST, retryable=True)
    assert commands(lost, UNIT) == ["/mlm rerun unit 'tests/unit_tests/models/**/*.py'"]
    assert commands(lost, FUNCTIONAL) == ["/mlm rerun functional gpt/gpt3_mcore_te_tp1_pp1"]
    assert commands(lost, None) == ["/mlm rerun failed"]
    assert not [line for line in commands(diagnosis(Category.CUDA_OOM), UNIT) if "rerun" in line]


def test_a_passed_job_needs_nothing() -> None:
    assert commands(diagnosis(Category.UNKNOWN, passed=True), UNIT) == []


@pytest.mark.parametrize(
    "evil",
    [
        "tests/a.py::t[$(reboot)]",
        "tests/a.py::t; reboot",
        "tests/a.py::t\nreboot",
        "tests/a.py::t[`id`]",
        "tests/a.py::t['x']",
        "-p no:x",
        "tests/a.py::t[\x1b]0;x\x07]",
        "tests/a.py::t[\u202e]",
        "!/ok to test",
    ],
)
def test_words_that_a_shell_could_act_upon_are_left_out(evil: str) -> None:
    assert not [line for line in commands(diagnosis(Category.TEST_ERROR, failed_tests=(evil,)), UNIT) if "-vs" in line]


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_nothing_from_a_log_escapes_its_quotes(node: str, message: str, job: str) -> None:
    found = diagnosis(Category.LINT, "git+https://" + message, failed_tests=(node,), retryable=True)
    for name in (job, f"tests/unit_tests/{job} - latest", f"gpt/{job} - latest"):
        for line in commands(found, name):
            words = shlex.split(line)
            assert not any(character in word for word in words for character in ";`\n\x1b" if "ngc" not in word)


def test_jobs_are_told_by_their_names() -> None:
    names = [UNIT, FUNCTIONAL, "linting", BUILD, "Nemo_CICD_Test", None]
    assert [job_kind(name) for name in names] == ["unit", "functional", "lint", "build", "other", "other"]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"title": "x"}, "title and a command"),
        ({"title": "x", "command": "y", "wen": "z"}, "title and a command"),
        ({"title": "x", "command": "rm {everything}"}, "nobody fills"),
        ("x", "title and a command"),
    ],
)
def test_a_fix_that_cannot_be_used_stops_the_load(entry: Any, why: str) -> None:
    with pytest.raises(FixError, match=why):
        read_fixes([entry])


@pytest.mark.parametrize(
    ("message", "offered"),
    [
        ("would reformat megatron/core/utils.py", True),
        ("megatron/core/utils.py:13:36: F401 [*] `os` imported but unused", True),
        ("error: cannot format megatron/core/utils.py: Cannot parse: 14:7: def f(:", False),
        ("megatron/core/utils.py:14:7: SyntaxError: Expected an expression", False),
    ],
)
def test_no_formatter_is_offered_for_what_is_no_python(message: str, offered: bool) -> None:
    assert any("autoformat" in line for line in commands(diagnosis(Category.LINT, message), "linting")) is offered
