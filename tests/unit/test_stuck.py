"""faulthandler's stacks: printed when a time is up, whether or not that ends the process."""

from __future__ import annotations

from analyzers.analyze import analyze
from analyzers.model import Category, Diagnosis
from analyzers.rules import RuleSet
from config.rule_files import rule_documents
from tests.logs import ROOT, SITE, bundle, pytest_log, ranks

SLOW, NEXT = "tests/unit_tests/a/test_a.py::TestA::test_slow[x]", "tests/unit_tests/a/test_a.py::test_next"
LOADER = (
    f"{SITE}/torch/utils/data/dataloader.py:1288 _try_get_data",
    f"{ROOT}/megatron/core/datasets/rows.py:40 next_row",
)
REDUCE = (f"{SITE}/torch/distributed/distributed_c10d.py:3068 all_reduce", f"{ROOT}/megatron/core/utils.py:9 mean")
HELPER = (f"{SITE}/tqdm/_monitor.py:60 run",)


def dump(*places: str, test: str = "test_slow") -> str:
    """All stacks, the innermost frame first; the main thread's comes last."""

    def stack(frames: tuple[str, ...]) -> str:
        lines = ["Thread 0x00007f2a4c9ff740 (most recent call first):"]
        for frame in frames:
            place, _, function = frame.partition(" ")
            path, _, line = place.rpartition(":")
            lines.append(f'  File "{path}", line {line} in {function}')
        return "\n".join(lines) + "\n"

    return f"Timeout (0:05:00)!\n{stack(HELPER)}\n{stack((*places, f'{ROOT}/tests/unit_tests/a/test_a.py:7 {test}'))}"


def verdict(stderr: dict[int, str], results: dict[str, str], *, closing: str | None = None) -> Diagnosis:
    stdout = dict.fromkeys(stderr, pytest_log(results, closing=closing))
    files = ranks(stderr, stdout=stdout, of=len(stderr))
    return analyze(bundle(files), RuleSet.from_documents(rule_documents(), prove=False))


def test_the_rank_that_stands_elsewhere_kept_the_others_waiting() -> None:
    found = verdict({0: dump(*REDUCE), 1: dump(*REDUCE), 2: dump(*LOADER)}, {SLOW: ""})
    assert (found.category, found.culprit_ranks) == (Category.COLLECTIVE_TIMEOUT, (2,))
    assert (found.location, found.failed_tests) == ("megatron/core/datasets/rows.py:40", (SLOW,))
    assert found.evidence is not None
    assert (found.evidence.file, found.evidence.line) == ("1/none_ab12cd34/attempt_0/2/stderr.log", 1)


def test_where_all_wait_nobody_is_accused() -> None:
    found = verdict({0: dump(*REDUCE), 1: dump(*REDUCE)}, {SLOW: ""})
    assert (found.category, found.culprit_ranks) == (Category.COLLECTIVE_TIMEOUT, ())


def test_the_stack_of_a_test_that_ended_later_says_nothing() -> None:
    """The test went on and passed; the next one was running when the logs stop."""
    found = verdict({0: dump(*LOADER), 1: dump(*LOADER)}, {SLOW: "PASSED", NEXT: ""})
    assert (found.category, found.culprit_ranks) == (Category.UNKNOWN, ())


def test_a_slow_test_that_passed_is_green() -> None:
    assert verdict({0: dump(*LOADER), 1: ""}, {SLOW: "PASSED"}, closing="").passed


def test_a_process_that_prints_on_was_not_stuck() -> None:
    found = verdict({0: dump(*LOADER) + "still reading\n" * 60, 1: ""}, {SLOW: ""})
    assert (found.category, found.culprit_ranks) == (Category.UNKNOWN, ())


def test_a_crash_after_the_stacks_is_no_part_of_them() -> None:
    crash = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f2a4c9ff740 (most recent call first):\n"
        f'  File "{ROOT}/megatron/core/fast.py", line 3 in copy\n'
    )
    found = verdict({0: dump(*LOADER) + crash, 1: ""}, {SLOW: ""})
    assert (found.category, found.culprit_ranks, found.location) == (
        Category.CRASH_NATIVE,
        (0,),
        "megatron/core/fast.py:3",
    )
