from __future__ import annotations

import pytest

from analyzers.analyze import analyze
from analyzers.model import Category, Confidence, Diagnosis
from analyzers.parsers.torchrun import LauncherReader, LauncherReport
from analyzers.reading.scan import Line
from analyzers.rules import RuleSet
from config.rule_files import rule_documents
from tests.logs import SITE, bundle, peer_died, pytest_log, raised, ranks, torchrun_summary

EARLY = (
    "W0505 08:08:52.005000 1100 torch/distributed/elastic/multiprocessing/api.py:908] Sending process 4001 closing "
    "signal SIGTERM\nE0505 08:08:52.211000 1100 torch/distributed/elastic/multiprocessing/api.py:882] failed "
    "(exitcode: -11) local_rank: 2 (pid: 4002) of binary: /opt/venv/bin/python\n"
)


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return RuleSet.from_documents(rule_documents(), prove=False)


def read(text: str) -> LauncherReport:
    reader = LauncherReader()
    for number, line in enumerate(text.splitlines(), start=1):
        reader.feed(Line(number, 0, line))
    return reader.report()


def launched(rules: RuleSet, launcher: str, files: dict[str, str]) -> Diagnosis:
    return analyze(bundle(files | {"1/launcher.log": launcher}), rules)


def test_the_summary_names_ranks_codes_and_processes() -> None:
    report = read(EARLY + torchrun_summary([(2, -11), (0, 1)]))
    assert [(e.rank, e.exit_code, e.root_cause) for e in report.failures] == [(0, 1, False), (2, -11, True)]
    assert report.rank_of_pid == {4000: 0, 4002: 2}
    assert report.ended_pids == (4001,)


def test_the_line_printed_at_once_stands_in_for_a_missing_summary() -> None:
    assert [(e.rank, e.exit_code) for e in read(EARLY).failures] == [(2, -11)]


def test_a_colour_or_a_suffix_after_the_code_does_not_matter() -> None:
    summary = torchrun_summary([(1, -15)]).replace("(pid: 4001)", "(pid: 4001)  (SIGTERM)")
    assert [e.exit_code for e in read(summary).failures] == [-15]


def test_ft_launchers_failure_is_read() -> None:
    assert [(e.rank, e.exit_code) for e in read("ProcessFailure(local_rank=2, pid=77, exitcode=1, x)").failures] == [
        (2, 1)
    ]


def test_of_several_starts_in_one_log_the_last_counts() -> None:
    again = EARLY.replace("local_rank: 2 (pid: 4002)", "local_rank: 3 (pid: 5003)").replace("-11", "-6")
    report = read(EARLY + torchrun_summary([(2, -11)]) + again + torchrun_summary([(3, -6)]))
    assert [(e.rank, e.exit_code) for e in report.failures] == [(3, -6)]


def test_an_error_files_traceback_in_the_summary_is_its_ranks(rules: RuleSet) -> None:
    quoted = raised("ZeroDivisionError: integer modulo by zero", "megatron/core/vocab.py:2 pad").splitlines()
    told = "Traceback" + "\n".join(f"  {line}" for line in quoted).strip().removeprefix("Traceback")
    others, mine = torchrun_summary([(1, 1), (0, -15)]).rsplit("Signal or not", 1)  # the root cause comes last
    found = launched(rules, others + told + mine, ranks({0: peer_died(0)}, of=2))
    assert (found.category, found.culprit_ranks, found.victim_ranks) == (Category.CRASH_PYTHON, (1,), (0,))
    assert found.location == "megatron/core/vocab.py:2"


def test_no_test_to_run_is_a_failure_of_the_collection(rules: RuleSet) -> None:
    nothing = pytest_log({}, closing=None) + "============ 1 deselected in 0.05s ============\n"
    files = ranks({}, stdout=dict.fromkeys(range(2), nothing), of=2)
    found = launched(rules, torchrun_summary([(0, 5), (1, 5)]), files)
    assert (found.category, found.confidence) == (Category.COLLECTION, Confidence.MEDIUM)


ANEW = "WARNING:__main__:Detected flaky failure, attempt restart.\n"


def test_a_start_after_the_last_failure_is_known_of() -> None:
    assert not read(EARLY).restarted
    assert read(EARLY + torchrun_summary([(2, -11)]) + ANEW).restarted
    assert not read(EARLY + ANEW + EARLY).restarted


def test_a_failure_before_a_restart_is_not_that_of_the_start_after_it(rules: RuleSet) -> None:
    crashed = ranks({2: "Fatal Python error: Segmentation fault\n"}, folder="1/none_first001/attempt_0")
    green = dict.fromkeys(range(4), pytest_log({"tests/unit_tests/a/test_a.py::test_b": "PASSED"}))
    files = crashed | ranks({}, stdout=green, folder="2/none_second01/attempt_0")
    launcher = EARLY + torchrun_summary([(2, -11)])
    mended = analyze(bundle(files | {"launcher.log": launcher + ANEW}), rules)
    assert mended.passed
    assert [attempt.category for attempt in mended.attempts] == [Category.CRASH_NATIVE, None]
    assert not analyze(bundle(files | {"launcher.log": launcher}), rules).passed


def test_what_ended_the_launcher_itself_is_told_where_no_rank_began(rules: RuleSet) -> None:
    lost = raised(
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the store has failed.",
        f"{SITE}/torch/distributed/launcher/api.py:268 launch_agent",
    )
    found = analyze(bundle({"1/launcher.log": lost}), rules)
    assert (found.category, found.retryable, found.culprit_ranks) == (Category.NETWORK, True, ())
    of_a_process = lost.replace(
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError", "ChildFailedError"
    )
    assert analyze(bundle({"1/launcher.log": of_a_process}), rules).category is Category.UNKNOWN


@pytest.mark.parametrize(
    ("tasks", "how", "told"),
    [
        ("tasks 0,2-3", "Out Of Memory", [(0, -9), (2, -9), (3, -9)]),
        ("task 7", "Segmentation fault (core dumped)", [(7, -11)]),
        ("task 1", "Exited with exit code 3", [(1, 3)]),
        ("tasks 0-99999999", "Killed", []),
        (f"task {'9' * 5000}", "Killed", []),
    ],
)
def test_srun_tells_how_its_tasks_ended(tasks: str, how: str, told: list[tuple[int, int]]) -> None:
    line = f"srun: error: pool0-0117: {tasks}: {how}"
    later = "srun: error: pool0-0117: tasks 0-7: Terminated"
    assert [(e.rank, e.exit_code) for e in read(line).failures] == told
    ranks_told = {e.rank: e.exit_code for e in read(f"{line}\n{later}").failures}
    assert {rank: ranks_told[rank] for rank, _ in told} == dict(told)


def test_torchruns_own_word_beats_sruns_whose_tasks_are_nodes_then() -> None:
    told = "srun: error: pool0-0117: task 1: Exited with exit code 1\n"
    assert [(e.rank, e.exit_code) for e in read(told + torchrun_summary([(5, -11)])).failures] == [(5, -11)]
    assert read(told + EARLY.splitlines()[0]).failures == ()
