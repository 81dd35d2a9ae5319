"""Golden values: which metrics differ, from which step on, by how much; drift told from regression."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_logs import failed, job_log, rules, step
from logs import source
from test_golden import LONG, pytest_run

from analyzers.analyze import analyze
from analyzers.comparison import Drift, GoldenComparison
from analyzers.model import Bundle, Diagnosis
from analyzers.parsers.golden_files import read_series
from analyzers.parsers.golden_lines import ComparisonReader
from analyzers.parsers.golden_series import Series, compare, judge
from analyzers.verdict.commands import suggest_commands
from bot.diagnose import packaged_fixes

AT = "INFO    tests.functional_tests.python_test_utils.common:common.py:341 "
KEPT = "tests/functional_tests/test_cases/gpt/a_test/golden_values_dev_dgx_h100.json"


def told(*lines: str) -> GoldenComparison | None:
    reader = ComparisonReader()
    for line in lines:
        reader.feed(line)
    return reader.comparison()


def golden_file(values: Mapping[int, object], metric: str = "lm loss") -> str:
    steps = sorted(values)
    entry = {"start_step": steps[0], "end_step": steps[-1], "step_interval": 5, "values": values}
    return json.dumps({metric: entry})


def diagnose(*said: str, files: Mapping[str, str] | None = None, kept: str | None = None) -> Diagnosis:
    job = step('echo "::group::Logs"', "##[group]Logs", *pytest_run(LONG, log=said), failed())
    sources = tuple(source(text, name) for name, text in (files or {}).items())
    goldens = (source(kept, KEPT),) if kept else ()
    return analyze(Bundle(sources, job_log(job), "gpt/a_test - latest", goldens=goldens), rules())


DRIFT = (
    AT + "Actual values: 10.83870, 9.56201, 8.73122",
    AT + "Golden values: 10.83870, 9.56188, 8.73004",
    AT + "Exact comparison of lm loss: FAILED",
    AT + "APPROXIMATE test for metric lm loss: PASSED",
)


def test_drift_is_read_off_what_the_check_printed() -> None:
    found = told(*DRIFT)
    assert found is not None
    assert (found.kind, found.read_from) == (Drift.DRIFT, "log")
    one = found.metrics[0]
    assert (one.metric, one.exact, one.approximate, one.compared, one.differing) == ("lm loss", False, True, 3, 2)
    assert (one.first_step, one.steps_known, one.actual, one.golden) == (2, False, 9.56201, 9.56188)
    assert one.largest_relative == pytest.approx(0.00118 / 8.73004)


def test_a_file_with_as_many_values_knows_their_steps() -> None:
    actual = golden_file({1: 10.8387, 50: 9.56201, 100: 8.73122})
    found = diagnose(*DRIFT, files={"golden_values_dev_dgx_h100.json": actual}).golden
    assert found is not None
    assert (found.metrics[0].first_step, found.metrics[0].steps_known) == (50, True)


@pytest.mark.parametrize(
    ("actual", "golden", "approximate", "kind"),
    [
        ("8.42, 8.40", "8.42, 8.41", "PASSED", Drift.REGRESSION),  # the third digit
        ("8.413, 8.411", "8.412, 8.411", "PASSED", Drift.DRIFT),
        ("8.413, 8.411", "8.412, 8.411", "FAILED", Drift.REGRESSION),
        ("nan, 8.41", "8.42, 8.41", "PASSED", Drift.REGRESSION),
    ],
)
def test_drift_begins_at_the_fourth_digit(actual: str, golden: str, approximate: str, kind: Drift) -> None:
    approximately = (
        "Approximate comparison of lm loss" if approximate == "FAILED" else "APPROXIMATE test for metric lm loss"
    )
    found = told(
        AT + f"Actual values: {actual}",
        AT + f"Golden values: {golden}",
        AT + "Exact comparison of lm loss: FAILED",
        AT + f"{approximately}: {approximate}",
    )
    assert found is not None
    assert found.kind is kind


def test_both_files_tell_what_the_log_does_not() -> None:
    """Steps that only the run has are not compared; a metric that nobody named is left out."""
    actual = golden_file({1: 10.0, 5: 9.0, 10: 8.0, 15: 7.0})
    found = diagnose(files={"golden_values_dev_dgx_h100.json": actual}, kept=golden_file({1: 10.0, 5: 9.0, 10: 4.0}))
    assert found.golden is not None
    assert (found.golden.kind, found.golden.read_from) == (Drift.REGRESSION, "files")
    one = found.golden.metrics[0]
    assert (one.metric, one.first_step, one.compared, one.differing) == ("lm loss", 10, 3, 1)
    assert (one.exact, one.approximate, one.largest_relative) == (False, True, 1.0)  # one step in a hundred may be off
    assert "lm loss differs from step 10 on, by up to 1 times" in found.summary


def test_golden_values_of_another_commit_are_not_believed() -> None:
    """The check says that it was close; the files say that it was not: they are not what was compared."""
    said = (DRIFT[2], DRIFT[3])
    actual, kept = golden_file({1: 8.0, 5: 8.0, 9: 8.0}), golden_file({1: 11.0, 5: 10.0, 9: 9.0})
    found = diagnose(*said, files={"golden_values_dev_dgx_h100.json": actual}, kept=kept).golden
    assert found is not None
    assert (found.metrics[0].compared, found.metrics[0].first_step) == (0, None)
    assert found.kind is Drift.UNCLEAR


def test_values_that_were_never_there_are_missing() -> None:
    found = told(AT + "Metric mtp_1 loss has no values in the golden file.")
    assert found is not None
    assert (found.kind, found.metrics[0].metric) == (Drift.MISSING, "mtp_1 loss")


def test_steps_come_from_the_run_where_the_golden_file_has_others() -> None:
    actual, kept = golden_file({1: 10.8387, 50: 9.56201, 100: 8.73122}), golden_file(dict.fromkeys(range(1, 9), 9.0))
    found = diagnose(*DRIFT, files={"golden_values_dev_dgx_h100.json": actual}, kept=kept).golden
    assert found is not None
    assert found.metrics[0].first_step == 50


def test_without_the_golden_file_nothing_is_made_up() -> None:
    found = diagnose(files={"golden_values_dev_dgx_h100.json": golden_file({1: 10.0})})
    assert found.golden is None
    assert diagnose(files={"golden_values_a.json": "{", "b/golden_values_a.json": "{}"}, kept="{}").golden is None


def test_a_file_that_cannot_be_read_is_told() -> None:
    found = diagnose(files={"golden_values_dev_dgx_h100.json": '{"lm loss": '}, kept=golden_file({1: 1.0}))
    assert [(one.name, one.why) for one in found.read.skipped] == [("golden_values_dev_dgx_h100.json", "is no JSON")]


def test_a_resumed_run_is_held_against_its_first_half() -> None:
    """After the checkpoint was loaded only the second half is compared, with the run's own first results."""
    first, second = golden_file({1: 9.0, 50: 8.0, 75: 7.0, 100: 6.0}), golden_file({75: 7.0, 100: 6.5})
    said = [line.replace("regular_pipeline", "resume_checkpoint_pipeline") for line in pytest_run(LONG)]
    job = step('echo "::group::Logs"', "##[group]Logs", *said, failed())
    files = (source(first, "golden_values_dev.json"), source(second, "golden_values_dev_2nd.json"))
    found = analyze(Bundle(files, job_log(job), "gpt/a_test - latest"), rules()).golden
    assert found is not None
    assert (found.metrics[0].first_step, found.metrics[0].compared) == (100, 2)


def test_times_are_compared_by_the_median_of_steady_steps() -> None:
    golden = Series(dict.fromkeys(range(1, 51), 100.0))
    slow_start = Series({step: 900.0 if step < 30 else 103.0 for step in range(1, 51)})
    one = compare("iteration-time", slow_start, golden)
    assert (one.exact, one.approximate, one.compared) == (None, True, 1)
    assert compare("iteration-time", Series(dict.fromkeys(golden.values, 106.0)), golden).approximate is False


def test_zeros_may_differ_more_than_losses() -> None:
    actual, golden = Series({1: 3298.0, 5: 2600.0, 9: 2600.0}), Series({1: 3298.0, 5: 3000.0, 9: 3000.0})
    assert judge([compare("num-zeros", actual, golden)]) is Drift.DRIFT
    assert judge([compare("lm loss", actual, golden)]) is Drift.REGRESSION


def test_a_step_that_the_run_did_not_reach_differs() -> None:
    one = compare("lm loss", Series({1: 9.0}), Series({1: 9.0, 5: 8.0, 9: 7.0}))
    assert (one.first_step, one.differing, one.approximate, one.largest_relative) == (5, 2, False, None)


def test_words_are_equal_to_words_as_the_check_has_it() -> None:
    assert compare("lm loss", Series({1: math.inf}), Series({1: math.inf})).differing == 0


def test_older_files_hold_a_list() -> None:
    text = '{"lm loss": {"start_step": 0, "end_step": 50, "step_interval": 5, "values": [9.1, "nan", 9]}, "x": 3}'
    found = read_series(source(text, "golden_values.json"))
    assert isinstance(found, dict)
    assert found == {"lm loss": Series({0: 9.1, 5: math.inf, 10: 9.0})}


def test_source_lines_in_a_report_are_not_the_check() -> None:
    assert (
        told('   "Exact comparison of {metric_name}: FAILED"', '  f"Metric {name} has no values in the golden file."')
        is None
    )


def test_the_refresh_stands_first_only_for_drift() -> None:
    drift = suggest_commands(diagnose(*DRIFT), packaged_fixes(), job_name="gpt/a_test - latest")
    assert "download_golden_values.py --source github" in drift[0].command
    worse = [line.replace("9.56201", "4.2") for line in DRIFT]
    other = suggest_commands(diagnose(*worse), packaged_fixes(), job_name="gpt/a_test - latest")
    assert "launch_nemo_run_workload.py" in other[0].command
    assert "download_golden_values.py" in other[1].command


@given(st.binary(max_size=400))
def test_no_file_upsets_the_reading(data: bytes) -> None:
    read_series(replace(source("", "golden_values.json"), chunks=lambda: iter((data,))))


@given(
    st.lists(
        st.sampled_from([*DRIFT, "x", AT + "Actual values: e, -, 1e999,,", AT + "Golden values: nan"]), max_size=12
    )
)
def test_no_line_upsets_the_reading(lines: list[str]) -> None:
    told(*lines)


@given(
    st.dictionaries(st.integers(1, 50), st.floats(), max_size=8),
    st.dictionaries(st.integers(1, 50), st.floats(), max_size=8),
)
def test_what_is_the_same_never_differs(actual: dict[int, float], golden: dict[int, float]) -> None:
    one = compare("lm loss", Series(actual), Series(golden))
    assert one.differing <= one.compared == len(golden)
    assert (one.first_step is None) == (one.differing == 0) == bool(one.exact)
    judge([one, compare("iteration-time", Series(actual), Series(golden))])
