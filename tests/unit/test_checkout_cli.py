"""`mlm analyze --repo DIR --changed-files FILE`: the answer says how the failure relates to the change."""

import json
from pathlib import Path

import pytest

from bot.cli.main import main

CASE = Path(__file__).parents[1] / "cases" / "attention-unit-a" / "artifact"
JOB = "tests/unit_tests/transformer/**/*.py - latest"
FAILING = "megatron/core/extensions/transformer_engine.py"
RECIPE = """\
spec: {model: unit-tests, gpus: 8, platforms: dgx_h100}
products:
  - test_case: [tests/unit_tests/transformer/**/*.py]
    products:
      - {environment: [dev], tag: [latest], scope: [unit-tests], n_repeat: [1], time_limit: [1800]}
"""


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    files = {
        "CODEOWNERS": "megatron/core/ @org/core\n",
        "tests/test_utils/recipes/h100/unit-tests.yaml": RECIPE,
        "tests/unit_tests/transformer/test_attention.py": f"import {FAILING[:-3].replace('/', '.')}\n",
        FAILING: "",
    }
    for name, text in files.items():
        path = tmp_path / "repo" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "repo"


def analyze(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["analyze", str(CASE), "--job-name", JOB, *words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_json_has_relation_owners_and_recipe(capsys: pytest.CaptureFixture[str], repo: Path, tmp_path: Path) -> None:
    changed = tmp_path / "change.diff"
    changed.write_text(f"--- a/{FAILING}\n+++ b/{FAILING}\n@@ -2176,0 +2177,1 @@\n+boom\n")
    status, out, _ = analyze(capsys, "--repo", str(repo), "--changed-files", str(changed), "--format", "json")
    document = json.loads(out)
    assert status == 0
    assert document["relation"]["name"] == "new"
    assert [clue["kind"] for clue in document["relation"]["evidence"]] == ["changed_line", "imports_changed"]
    assert document["owners"] == ["@org/core"]
    assert document["recipe"]["bucket"] == "tests/unit_tests/transformer/**/*.py"


@pytest.mark.parametrize(("form", "owner"), [("text", "owners  @org/core"), ("markdown", "**Owners:** `@org/core`")])
def test_a_person_is_told_too(
    capsys: pytest.CaptureFixture[str], repo: Path, tmp_path: Path, form: str, owner: str
) -> None:
    changed = tmp_path / "changed"
    changed.write_text(f"{FAILING}\n")
    _, out, _ = analyze(capsys, "--repo", str(repo), "--changed-files", str(changed), "--format", form)
    assert "points to this change" in out
    assert "is a file that this pull request changes" in out.replace("`", "")
    assert owner in out


def test_the_recipe_is_one_line(capsys: pytest.CaptureFixture[str], repo: Path) -> None:
    _, out, _ = analyze(capsys, "--repo", str(repo))
    (line,) = (line for line in out.splitlines() if line.startswith("recipe"))
    assert line.split(None, 1)[1].startswith(
        "environment dev, tag latest, platform dgx_h100, scope unit-tests, n_repeat 1"
    )
    assert "change  " not in out


def test_the_commands_follow_the_recipe(capsys: pytest.CaptureFixture[str], repo: Path) -> None:
    recipe = repo / "tests/test_utils/recipes/h100/unit-tests.yaml"
    recipe.write_text(RECIPE.replace("[dev]", "[lts]").replace("[latest]", "[legacy]").replace("gpus: 8", "gpus: 4"))
    _, out, _ = analyze(capsys, "--repo", str(repo), "--format", "json")
    commands = "\n".join(command["command"] for command in json.loads(out)["commands"])
    assert "run_ci_test.sh --tag legacy --environment lts --platform h100" in commands
    _, out, _ = analyze(capsys, "--format", "json")
    commands = "\n".join(command["command"] for command in json.loads(out)["commands"])
    assert "run_ci_test.sh --tag latest --environment dev --platform h100" in commands


def test_without_them_nothing_is_claimed(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(analyze(capsys, "--format", "json")[1])
    assert (document["relation"], document["owners"], document["recipe"]) == (None, [], None)


@pytest.mark.parametrize("option", ["--repo", "--changed-files"])
def test_a_wrong_path_is_bad_usage(capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str) -> None:
    status, out, err = analyze(capsys, option, str(tmp_path / "absent"))
    assert (status, out) == (2, "")
    assert err.startswith("mlm analyze: ")
    assert "absent" in err
