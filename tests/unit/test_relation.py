"""What is said about a failure and the change: typed evidence, and no excuse without it."""

from dataclasses import replace

import pytest

from analyzers.model import Category, Confidence, Diagnosis
from analyzers.surroundings import ClueKind, RelationName
from analyzers.verdict.changes import Changed, changed_files, read_changes
from analyzers.verdict.import_graph import ImportSearch
from analyzers.verdict.relation import MOST_TOLD, functional_folder, relate_to_change, start_files

TEST = "tests/unit_tests/models/test_gpt.py"
FAILED = Diagnosis(
    passed=False,
    category=Category.TEST_ASSERTION,
    retryable=False,
    confidence=Confidence.HIGH,
    summary="",
    location="pkg/core.py:12",
    failed_tests=(f"{TEST}::TestGpt::test_a[x::y]", f"{TEST}::TestGpt::test_b"),
)
DIFF = "--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -11,0 +12,1 @@\n+new\n"
ELSEWHERE = changed_files(["docs/index.md"])


def told(
    diagnosis: Diagnosis, changed: Changed, *, imports: ImportSearch | None = None, folder: str | None = None
) -> tuple[RelationName, list[ClueKind]]:
    relation = relate_to_change(diagnosis, changed, imports=imports, folder=folder)
    assert relation is not None
    return relation.name, [clue.kind for clue in relation.evidence]


def test_a_failing_line_that_the_change_wrote_is_new() -> None:
    relation = relate_to_change(FAILED, read_changes(DIFF))
    assert relation is not None
    assert relation.name is RelationName.NEW
    assert [clue.text for clue in relation.evidence] == ["pkg/core.py:12 is a line that this pull request changes."]
    assert relation.evidence[0].paths == ("pkg/core.py",)


def test_another_line_of_a_changed_file_says_so() -> None:
    relation = relate_to_change(replace(FAILED, location="pkg/core.py:13"), read_changes(DIFF))
    assert relation is not None
    assert relation.name is RelationName.NEW
    assert relation.evidence[0].kind is ClueKind.CHANGED_FILE
    assert relation.evidence[0].text.endswith("though not this very line.")


def test_a_list_of_files_tells_no_lines() -> None:
    relation = relate_to_change(FAILED, changed_files(["pkg/core.py"]))
    assert relation is not None
    assert [clue.text for clue in relation.evidence] == ["pkg/core.py is a file that this pull request changes."]


def test_a_changed_test_is_new_even_if_it_failed_elsewhere() -> None:
    assert told(FAILED, changed_files([TEST])) == (RelationName.NEW, [ClueKind.CHANGED_TEST])


def test_a_changed_functional_test_case_is_new() -> None:
    golden = replace(FAILED, category=Category.GOLDEN_MISMATCH, location=None, failed_tests=())
    folder = functional_folder("gpt", "gpt_small")
    changed = changed_files([folder + "golden_values_dev_dgx_h100.json", folder + "model_config.yaml"])
    assert told(golden, changed, folder=folder) == (RelationName.NEW, [ClueKind.CHANGED_TEST])
    assert told(golden, changed, folder=functional_folder("gpt", "gpt_small_2")) == (RelationName.UNKNOWN, [])


def test_importing_a_changed_file_is_told_but_proves_nothing() -> None:
    chains = tuple((TEST, "pkg/core.py", f"pkg/{n}.py") for n in range(5))
    imports = ImportSearch((TEST,), chains, 9, complete=True)
    relation = relate_to_change(FAILED, ELSEWHERE, imports=imports)
    assert relation is not None
    assert relation.name is RelationName.UNKNOWN
    assert {clue.kind for clue in relation.evidence} == {ClueKind.IMPORTS_CHANGED}
    assert len(relation.evidence) == MOST_TOLD + 1
    assert relation.evidence[0].text == (
        f"{TEST} imports pkg/0.py, which this pull request changes, through pkg/core.py."
    )
    assert relation.evidence[-1].paths == ("pkg/3.py", "pkg/4.py")


def test_what_was_looked_for_in_vain_is_told() -> None:
    imports = ImportSearch((TEST,), (), 40, complete=False)
    relation = relate_to_change(FAILED, ELSEWHERE, imports=imports)
    assert relation is not None
    assert relation.name is RelationName.UNKNOWN
    assert [clue.text for clue in relation.evidence] == [
        "No changed file (1 in all) holds the failing line or a failed test.",
        f"No import leads from {TEST} to a changed file (40 files read).",
        "Not every import could be followed.",
    ]


@pytest.mark.parametrize(
    ("category", "retryable", "name"),
    [
        (Category.NETWORK, True, RelationName.INFRASTRUCTURE),
        (Category.GPU_HARDWARE, True, RelationName.INFRASTRUCTURE),
        (Category.RUNNER_LOST, True, RelationName.INFRASTRUCTURE),
        (Category.IMAGE_PULL, True, RelationName.INFRASTRUCTURE),
        (Category.IMAGE_PULL, False, RelationName.UNKNOWN),  # a tag that does not exist
        (Category.NETWORK, False, RelationName.UNKNOWN),
        (Category.COLLECTIVE_TIMEOUT, True, RelationName.UNKNOWN),
        (Category.CUDA_OOM, False, RelationName.UNKNOWN),
        (Category.UNKNOWN, True, RelationName.UNKNOWN),
    ],
)
def test_only_infrastructure_that_a_rerun_would_help_is_an_excuse(
    category: Category, retryable: bool, name: RelationName
) -> None:
    assert told(replace(FAILED, category=category, retryable=retryable), ELSEWHERE)[0] is name


def test_infrastructure_excuses_no_line_that_the_change_wrote() -> None:
    lost = replace(FAILED, category=Category.NETWORK, retryable=True)
    kinds = [ClueKind.INFRASTRUCTURE, ClueKind.CHANGED_LINE]
    assert told(lost, read_changes(DIFF)) == (RelationName.UNKNOWN, kinds)
    assert told(lost, changed_files(["pkg/core.py"]))[0] is RelationName.INFRASTRUCTURE
    assert told(lost, changed_files([TEST]))[0] is RelationName.UNKNOWN


@pytest.mark.parametrize(
    "path", ["uv.lock", "docker/common/install.sh", "docker/Dockerfile.ci.dev", "a/pyproject.toml"]
)
def test_a_failed_build_and_what_it_is_made_of(path: str) -> None:
    build = replace(FAILED, category=Category.CONTAINER_BUILD, location=None, failed_tests=())
    assert told(build, changed_files([path])) == (RelationName.NEW, [ClueKind.CHANGED_BUILD])
    assert told(build, changed_files(["pkg/docker/x.py", "myuv.lock"])) == (RelationName.UNKNOWN, [])
    assert told(FAILED, changed_files([path]))[0] is RelationName.UNKNOWN


def test_a_passed_job_relates_to_nothing() -> None:
    passed = Diagnosis(passed=True, category=None, retryable=False, confidence=Confidence.HIGH, summary="")
    assert relate_to_change(passed, ELSEWHERE) is None


@pytest.mark.parametrize("location", [None, "", "pkg/core.py", "pkg/core.py:x", ":3", "pkg/core.py:²"])
def test_an_odd_location_is_no_mistake(location: str | None) -> None:
    assert told(replace(FAILED, location=location), read_changes(DIFF))[0] in RelationName


def test_imports_start_at_tests_then_at_the_script_then_at_the_failing_file() -> None:
    assert start_files(FAILED, "pretrain.py") == (TEST,)
    assert start_files(replace(FAILED, failed_tests=()), "pretrain.py") == ("pretrain.py",)
    assert start_files(replace(FAILED, failed_tests=())) == ("pkg/core.py",)
    assert start_files(replace(FAILED, failed_tests=(), location=None)) == ()


def test_the_answer_is_plain_json() -> None:
    related = replace(FAILED, relation=relate_to_change(FAILED, read_changes(DIFF)), owners=("@org/core",))
    document = related.as_json()
    assert document["relation"]["name"] == "new"
    assert type(document["relation"]["name"]) is str
    assert document["relation"]["evidence"][0]["kind"] == "changed_line"
    assert document["owners"] == ["@org/core"]
    assert FAILED.as_json()["relation"] is None
