"""Recipes are expanded as CI expands them, and a hostile one is refused before it costs anything."""

import pytest

from analyzers.verdict.recipes import MAX_ROWS, CiJob, RecipeError, find_recipe, read_recipe, resolve_scope

UNIT = """\
type: basic
spec:
  name: "{test_case}_{environment}"
  model: unit-tests
  nodes: 1
  gpus: 8
  platforms: dgx_h100
products:
  - test_case: [tests/unit_tests/models/**/*.py]
    products:
      - environment: [lts, dev]
        tag: [latest, legacy]
        scope: [unit-tests]
        n_repeat: [1]
        time_limit: [1800]
  - test_case: [tests/unit_tests/data/**/*.py]
    products:
      - environment: [dev]
        tag: [latest]
        scope: [unit-tests]
        n_repeat: [3]
"""

FUNCTIONAL = """\
spec:
  model: gpt
  gpus: 8
  n_repeat: 5
  platforms: dgx_a100
  script: |-
    ARGUMENTS=(
        "TRAINING_SCRIPT_PATH=./pretrain_gpt.py"
    )
products:
  - test_case: [gpt_small, never_read]
    cadence: [pr]
    products:
      - environment: [dev]
        scope: [mr, mr-github, mr-github-slim]
        platforms: [dgx_h100]
      - environment: [lts]
        scope: [nightly]
        cadence: [weekly]
  - test_case: [gpt_large]
    products:
      - environment: [dev, lts]
        scope: [nightly]
        n_repeat: [1]
  - test_case: [gpt_planned]
"""

UNIT_FILE = "tests/test_utils/recipes/h100/unit-tests.yaml"
GPT_FILE = "tests/test_utils/recipes/h100/gpt.yaml"


def test_lists_multiply_in_the_order_of_the_file() -> None:
    rows = read_recipe(UNIT_FILE, UNIT)
    assert [(row.test_case, row.environment, row.tag) for row in rows] == [
        ("tests/unit_tests/models/**/*.py", "lts", "latest"),
        ("tests/unit_tests/models/**/*.py", "lts", "legacy"),
        ("tests/unit_tests/models/**/*.py", "dev", "latest"),
        ("tests/unit_tests/models/**/*.py", "dev", "legacy"),
        ("tests/unit_tests/data/**/*.py", "dev", "latest"),
    ]
    assert {(row.platform, row.gpus, row.nodes, row.scope) for row in rows} == {("dgx_h100", 8, 1, "unit-tests")}


def test_a_product_overrides_the_spec_and_only_the_first_test_case_counts() -> None:
    rows = read_recipe(GPT_FILE, FUNCTIONAL)
    assert {row.test_case for row in rows} == {"gpt_small", "gpt_large"}
    small = [row for row in rows if row.test_case == "gpt_small"]
    assert [row.platform for row in small] == ["dgx_h100"] * 3 + ["dgx_a100"]
    assert {row.n_repeat for row in small} == {5}
    assert {row.n_repeat for row in rows if row.test_case == "gpt_large"} == {1}
    assert {row.training_script for row in rows} == {"pretrain_gpt.py"}


def test_old_scope_names_are_understood_and_an_explicit_cadence_wins() -> None:
    rows = read_recipe(GPT_FILE, FUNCTIONAL)
    assert [(row.scope, row.cadence) for row in rows] == [
        ("mr", ("pr",)),
        ("L1", ("pr",)),
        ("L0", ("pr",)),
        ("L2", ("weekly",)),
        ("L2", ("nightly",)),
        ("L2", ("nightly",)),
    ]
    assert [resolve_scope(name) for name in ("mr-github", "mr-github-slim", "mr", "L0")] == ["L1", "L0", "mr", "L0"]


def test_a_unit_job_finds_its_bucket() -> None:
    rows = read_recipe(UNIT_FILE, UNIT)
    bucket = "tests/unit_tests/models/**/*.py"
    found = find_recipe(rows, CiJob("unit", bucket, platform="h100", tag="latest"))
    assert found is not None
    assert (found.bucket, found.environments, found.tags, found.n_repeat) == (bucket, ("dev", "lts"), ("latest",), 1)
    assert (found.time_limit_s, found.gpus, found.files) == (1800, 8, (UNIT_FILE,))
    assert find_recipe(rows, CiJob("unit", bucket, platform="gb200")) is None
    assert find_recipe(rows, CiJob("functional", bucket)) is None
    assert find_recipe(rows, CiJob("unit", "tests/unit_tests/models")) is None


def test_the_same_bucket_on_two_platforms_is_told_apart_by_platform() -> None:
    gb200 = UNIT.replace("gpus: 8", "gpus: 4").replace("dgx_h100", "dgx_gb200")
    rows = read_recipe(UNIT_FILE, UNIT) + read_recipe(UNIT_FILE.replace("h100", "gb200"), gb200)
    bucket = "tests/unit_tests/data/**/*.py"
    four, eight = (find_recipe(rows, CiJob("unit", bucket, platform=name)) for name in ("gb200", "h100"))
    both = find_recipe(rows, CiJob("unit", bucket))
    assert four is not None
    assert eight is not None
    assert both is not None
    assert (four.gpus, eight.gpus, both.gpus) == (4, 8, None)
    assert both.platforms == ("dgx_gb200", "dgx_h100")


def test_a_row_without_platform_belongs_to_its_folder() -> None:
    rows = read_recipe(UNIT_FILE, UNIT.replace("  platforms: dgx_h100\n", ""))
    bucket = "tests/unit_tests/data/**/*.py"
    assert find_recipe(rows, CiJob("unit", bucket, platform="h100")) is not None
    assert find_recipe(rows, CiJob("unit", bucket, platform="gb200")) is None


def test_a_functional_job_prefers_the_rows_that_this_ci_runs() -> None:
    rows = read_recipe(GPT_FILE, FUNCTIONAL)
    scopes = frozenset({"L0", "L1"})
    found = find_recipe(rows, CiJob("functional", "gpt_small", model="gpt", scopes=scopes))
    assert found is not None
    assert (found.environments, found.platforms, found.scopes, found.n_repeat) == (
        ("dev",),
        ("dgx_h100",),
        ("L0", "L1"),
        5,
    )
    nightly = find_recipe(rows, CiJob("functional", "gpt_large", model="gpt", scopes=scopes))
    assert nightly is not None
    assert nightly.scopes == ("L2",)
    assert nightly.bucket is None
    assert find_recipe(rows, CiJob("functional", "gpt_small", model="bert")) is None


def test_a_number_that_rows_disagree_on_is_not_told() -> None:
    rows = read_recipe(
        GPT_FILE, FUNCTIONAL.replace("scope: [nightly]\n        cadence", "n_repeat: [2]\n        cadence")
    )
    found = find_recipe(rows, CiJob("functional", "gpt_small", model="gpt"))
    assert found is not None
    assert found.n_repeat is None


def _bomb() -> str:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    return "a0: &a0 [x]\n" + "\n".join(levels) + "\nspec: {model: gpt}\nproducts: []\n"


def _wide() -> str:
    values = "[" + ", ".join("abcdefghij") + "]"
    axes = "\n".join(f"        k{n}: {values}" for n in range(9))
    return f"spec: {{model: gpt}}\nproducts:\n  - test_case: [t]\n    products:\n      - scope: [mr]\n{axes}\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (_bomb(), "aliases"),
        (_wide(), f"more than {MAX_ROWS} rows"),
        ("spec: " + "[" * 500 + "]" * 500, "nested"),
        ("#" * 300_000, "larger"),
        ("spec: {model: gpt", "no readable recipe"),
        ("- a\n- b\n", "no readable recipe"),
        ("", "no readable recipe"),
        ("spec: {model: gpt, day: 2024-99-99}", "no readable recipe"),
        ("spec: {model: [gpt]}\nproducts: [{test_case: [t], products: [{scope: [mr]}]}]", "no readable recipe"),
        ("spec: {model: gpt, x: !!python/object/apply:os.getcwd []}", "no readable recipe"),
        ("spec: {model: gpt}\nproducts: [{test_case: []}]", "no readable recipe"),
        ("spec: {model: \x07}", "no readable recipe"),
    ],
)
def test_what_is_no_recipe_is_refused_in_words(text: str, why: str) -> None:
    with pytest.raises(RecipeError, match=why) as caught:
        read_recipe("x.yaml", text)
    assert str(caught.value).startswith("x.yaml: ")
