"""Reports of pytest that have no frames of their own: `--tb=line`, and errors sent back by worker processes."""

from __future__ import annotations

import pytest

from analyzers.analyze import analyze
from analyzers.model import Diagnosis
from analyzers.rules import RuleSet
from config.rule_files import rule_documents
from tests.logs import bundle, failures, pytest_log, ranks

TEST = "tests/unit_tests/test_plan.py::test_plan"
OTHER = "tests/unit_tests/test_plan.py::test_other"
CRASH_LINE = "/opt/megatron-lm/megatron/core/plan.py:4: ValueError: a plan needs stages\n"
#: What pytest 8 prints for an exception that came through `multiprocessing.Pool.map`.
FROM_WORKER = '''\
________ test_plan ________
multiprocessing.pool.RemoteTraceback:
"""
Traceback (most recent call last):
  File "/usr/lib/python3.12/multiprocessing/pool.py", line 125, in worker
    result = (True, func(*args, **kwds))
  File "/opt/megatron-lm/megatron/core/plan.py", line 4, in plan
    raise ValueError("a plan needs stages")
ValueError: a plan needs stages
"""

The above exception was the direct cause of the following exception:

    def test_plan():
>       pool.map(plan, [1, 2])

tests/unit_tests/test_plan.py:9:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _
E   ValueError: a plan needs stages

/usr/lib/python3.12/multiprocessing/pool.py:774: ValueError
'''


def verdict(section: str, *failed: str) -> Diagnosis:
    stdout = pytest_log(dict.fromkeys(failed, "FAILED"), sections=failures(section))
    rules = RuleSet.from_documents(rule_documents(), prove=False)
    return analyze(bundle(ranks({}, stdout={0: stdout}, of=1)), rules)


@pytest.mark.parametrize(
    "before",
    ["", "E   ValueError: a plan needs stages\n--- Captured stdout call ---\nmegatron/core/a.py:1: Warning: old\n"],
)
def test_the_one_line_of_a_failure_has_its_place(before: str) -> None:
    found = verdict(before + CRASH_LINE, TEST)
    assert (found.location, found.failed_tests) == ("megatron/core/plan.py:4", (TEST,))
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("ValueError", "a plan needs stages")


def test_lines_without_titles_belong_to_the_failures_in_their_order() -> None:
    found = verdict("/opt/megatron-lm/tests/unit_tests/test_plan.py:3: assert 1 == 2\n" + CRASH_LINE, TEST, OTHER)
    assert (found.location, found.failed_tests) == ("tests/unit_tests/test_plan.py:3", (TEST, OTHER))
    assert found.error is not None
    assert found.error.type == "AssertionError"


def test_the_frame_of_the_worker_outranks_that_of_its_caller() -> None:
    found = verdict(FROM_WORKER, TEST)
    assert (found.location, found.failed_tests) == ("megatron/core/plan.py:4", (TEST,))
