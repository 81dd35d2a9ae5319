"""A checkout is read inside its folder only, and a failure learns from it what it can."""

import os
from pathlib import Path

import pytest

from analyzers.model import Category, Confidence, Diagnosis
from analyzers.surroundings import ClueKind, RelationName
from analyzers.verdict.changes import changed_files
from bot.archives import UnreadableError
from bot.checkout import Checkout, read_changed, relate

TEST = "tests/unit_tests/models/test_gpt.py"
UNIT_JOB = "tests/unit_tests/models/**/*.py - latest"
RECIPE = """\
spec: {model: unit-tests, gpus: 8, nodes: 1, platforms: dgx_h100}
products:
  - test_case: [tests/unit_tests/models/**/*.py]
    products:
      - {environment: [dev], tag: [latest, legacy], scope: [unit-tests], n_repeat: [1], time_limit: [1800]}
"""
FUNCTIONAL = """\
spec: {model: gpt, gpus: 8, nodes: 1, n_repeat: 5, platforms: dgx_a100, script: "TRAINING_SCRIPT_PATH=train.py"}
products:
  - test_case: [gpt_small]
    products:
      - {environment: [dev], scope: [mr-github], platforms: [dgx_h100]}
      - {environment: [lts], scope: [nightly]}
"""
FAILED = Diagnosis(
    passed=False,
    category=Category.TEST_ASSERTION,
    retryable=False,
    confidence=Confidence.HIGH,
    summary="",
    location="pkg/core.py:12",
    failed_tests=(f"{TEST}::test_a",),
)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(
        tmp_path / "repo",
        {
            ".github/CODEOWNERS": "* @org/all\n/pkg/ @org/pkg @login\n",
            "CODEOWNERS": "* @not/read\n",
            "tests/test_utils/recipes/h100/unit-tests.yaml": RECIPE,
            "tests/test_utils/recipes/h100/gpt.yaml": FUNCTIONAL,
            TEST: "from pkg import core\n",
            "pkg/__init__.py": "",
            "pkg/core.py": "from .deep import x\n",
            "pkg/deep.py": "",
            "train.py": "import pkg.deep\n",
            ".venv/lib/far.py": "",
        },
    )


def test_a_failure_learns_owners_recipe_and_relation(root: Path) -> None:
    found = relate(FAILED, Checkout(root), changed_files(["pkg/deep.py"]), job_name=UNIT_JOB)
    assert found.owners == ("@org/pkg", "@login")
    assert found.recipe is not None
    assert (found.recipe.bucket, found.recipe.tags, found.recipe.n_repeat) == (UNIT_JOB[:-9], ("latest",), 1)
    assert found.relation is not None
    assert found.relation.name is RelationName.UNKNOWN
    assert [clue.paths for clue in found.relation.evidence] == [(TEST, "pkg/core.py", "pkg/deep.py")]
    assert found.read.skipped == ()


def test_a_functional_job_starts_at_its_training_script(root: Path) -> None:
    golden = Diagnosis(False, Category.GOLDEN_MISMATCH, False, Confidence.HIGH, "")
    found = relate(golden, Checkout(root), changed_files(["pkg/deep.py"]), job_name="gpt/gpt_small - latest")
    assert found.recipe is not None
    assert (found.recipe.environments, found.recipe.scopes) == (("dev",), ("L1",))
    assert found.relation is not None
    assert [clue.paths for clue in found.relation.evidence] == [("train.py", "pkg/deep.py")]


def test_without_a_checkout_the_change_alone_speaks() -> None:
    found = relate(FAILED, None, changed_files(["pkg/core.py"]), job_name=UNIT_JOB)
    assert found.relation is not None
    assert [clue.kind for clue in found.relation.evidence] == [ClueKind.CHANGED_FILE]
    assert (found.owners, found.recipe) == ((), None)


def test_without_a_change_there_is_no_relation(root: Path) -> None:
    found = relate(FAILED, Checkout(root), None)
    assert (found.relation, found.recipe, found.owners) == (None, None, ("@org/pkg", "@login"))
    passed = Diagnosis(True, None, False, Confidence.HIGH, "")
    assert relate(passed, Checkout(root), changed_files(["pkg/core.py"]), job_name=UNIT_JOB) is passed


@pytest.mark.parametrize("job", ["linting", "tests/unit_tests/none/**/*.py - latest", "gpt/none - latest", ""])
def test_a_job_that_no_recipe_has(root: Path, job: str) -> None:
    assert relate(FAILED, Checkout(root), None, job_name=job).recipe is None


def test_a_bucket_of_the_other_platform_has_its_own_recipe(root: Path) -> None:
    assert Checkout(root).recipe(UNIT_JOB.replace("- latest", "- gb200 latest")) is None


def test_a_broken_recipe_is_told_and_the_others_still_speak(root: Path) -> None:
    write(root, {"tests/test_utils/recipes/bad.yaml": "spec: [", "tests/test_utils/recipes/huge.yaml": "#" * 300_000})
    found = relate(FAILED, Checkout(root), None, job_name=UNIT_JOB)
    assert found.recipe is not None
    assert [item.name.rpartition("/")[2] for item in found.read.skipped] == ["bad.yaml", "huge.yaml"]


def test_nothing_outside_the_folder_is_read(root: Path, tmp_path: Path) -> None:
    write(tmp_path, {"secret.py": "secret", "away/recipes/x.yaml": RECIPE, "away/owners": "* @evil\n"})
    (root / "link.py").symlink_to(tmp_path / "secret.py")
    (root / "dir").symlink_to(tmp_path / "away")
    (root / "loop.py").symlink_to(root / "loop.py")
    (root / "inside.py").symlink_to(root / "pkg" / "core.py")
    os.mkfifo(root / "pipe.py")
    checkout = Checkout(root)
    for path in (
        "link.py",
        "dir/owners",
        "../secret.py",
        str(tmp_path / "secret.py"),
        "loop.py",
        "pipe.py",
        "pkg",
        "a\0b",
    ):
        assert checkout.read(path, max_bytes=1_000) is None, path
    assert checkout.read("inside.py", max_bytes=1_000) == "from .deep import x\n"
    assert not any(path.startswith("dir/") for path in checkout.python_files)


def test_recipes_behind_a_link_that_leaves_are_not_read(tmp_path: Path) -> None:
    write(tmp_path, {"away/recipes/h100/unit-tests.yaml": RECIPE, "repo/pkg/core.py": ""})
    (tmp_path / "repo/tests").mkdir()
    (tmp_path / "repo/tests/test_utils").symlink_to(tmp_path / "away")
    assert Checkout(tmp_path / "repo").recipe(UNIT_JOB) is None


def test_a_file_above_the_bound_is_not_read(root: Path) -> None:
    assert Checkout(root).read("pkg/core.py", max_bytes=20) == "from .deep import x\n"
    assert Checkout(root).read("pkg/core.py", max_bytes=19) is None


def test_installed_packages_are_no_source_of_the_repository(root: Path) -> None:
    assert Checkout(root).python_files == {TEST, "pkg/__init__.py", "pkg/core.py", "pkg/deep.py", "train.py"}


def test_what_is_no_folder_is_refused(root: Path) -> None:
    for path in (root / "train.py", root / "absent"):
        with pytest.raises(UnreadableError, match="not a folder"):
            Checkout(path)


def test_changed_files_are_read_from_a_file(tmp_path: Path) -> None:
    write(tmp_path, {"list": "a.py\nb.py\n", "cut.diff": "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-a\n"})
    assert read_changed(tmp_path / "list").files == {"a.py", "b.py"}
    for name in ("cut.diff", "absent", "."):
        with pytest.raises(UnreadableError, match=str(tmp_path)):
            read_changed(tmp_path / name)
