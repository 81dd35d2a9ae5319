"""Who is to blame: stories of one start of the workers, rank against rank."""

from __future__ import annotations

import pytest

from analyzers.analyze import analyze
from analyzers.model import Category, Confidence, Diagnosis
from analyzers.rules import RuleSet
from config.rule_files import rule_documents
from tests.logs import (
    SITE,
    bundle,
    failure,
    failures,
    peer_died,
    pytest_log,
    raised,
    ranks,
    torchrun_summary,
    watchdog,
)

TEST = "tests/unit_tests/models/test_x.py::TestX::test_step"


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return RuleSet.from_documents(rule_documents(), prove=False)


def verdict(rules: RuleSet, files: dict[str, str], job_log: str | None = None) -> Diagnosis:
    return analyze(bundle(files, job_log=job_log), rules)


def test_a_local_exception_outranks_peer_errors(rules: RuleSet) -> None:
    own = raised("ValueError: bad shape", "pretrain_gpt.py:3 main", "megatron/core/a.py:7 f", rank=2)
    found = verdict(rules, ranks({0: peer_died(0), 1: peer_died(1), 2: own}, of=4))
    assert (found.category, found.culprit_ranks, found.victim_ranks) == (Category.CRASH_PYTHON, (2,), (0, 1, 3))
    assert (found.location, found.error.type if found.error else None) == ("megatron/core/a.py:7", "ValueError")


def test_the_rank_in_an_earlier_operation_is_behind(rules: RuleSet) -> None:
    stderr = {rank: watchdog(rank, seq=211 if rank == 1 else 212, second=10 + rank) for rank in range(4)}
    found = verdict(rules, ranks(stderr))
    assert (found.category, found.culprit_ranks) == (Category.COLLECTIVE_TIMEOUT, (1,))
    assert found.evidence is not None
    assert found.evidence.file.endswith("/1/stderr.log")


def test_the_rank_in_another_operation_is_odd(rules: RuleSet) -> None:
    stderr = {rank: watchdog(rank, op="BROADCAST" if rank == 3 else "ALLREDUCE") for rank in range(4)}
    assert verdict(rules, ranks(stderr)).culprit_ranks == (3,)


def test_the_rank_that_never_came_is_the_culprit_and_the_earliest_line_the_evidence(rules: RuleSet) -> None:
    running = pytest_log({TEST: ""}, closing=None)
    stderr = {rank: watchdog(rank, second=20 - rank) for rank in (0, 1, 3)}
    found = verdict(rules, ranks(stderr, stdout=dict.fromkeys(range(4), running)))
    assert (found.culprit_ranks, found.victim_ranks, found.failed_tests) == ((2,), (0, 1, 3), (TEST,))
    assert found.evidence is not None
    assert (found.evidence.file[-12:], found.evidence.line) == ("3/stderr.log", 1)


def test_all_ranks_waiting_alike_accuse_nobody(rules: RuleSet) -> None:
    found = verdict(rules, ranks({rank: watchdog(rank) for rank in range(4)}))
    assert (found.category, found.culprit_ranks) == (Category.COLLECTIVE_TIMEOUT, ())
    assert found.confidence is Confidence.LOW


def test_a_failed_test_outranks_the_watchdogs_of_those_who_waited(rules: RuleSet) -> None:
    stdout = {rank: pytest_log({TEST: "FAILED" if rank == 1 else ""}, closing=None) for rank in range(4)}
    stderr = {rank: watchdog(rank) for rank in (0, 2, 3)}
    found = verdict(rules, ranks(stderr, stdout=stdout))
    assert (found.category, found.culprit_ranks, found.failed_tests) == (Category.TEST_ERROR, (1,), (TEST,))


def test_the_same_assertion_on_every_rank_makes_all_culprits(rules: RuleSet) -> None:
    report = failures(failure("TestX.test_step", "assert 3 == 4", "tests/unit_tests/models/test_x.py:9 test_step"))
    stdout = dict.fromkeys(range(4), pytest_log({TEST: "FAILED"}, sections=report))
    found = verdict(rules, ranks({}, stdout=stdout))
    assert (found.category, found.culprit_ranks, found.victim_ranks) == (Category.TEST_ASSERTION, (0, 1, 2, 3), ())


def test_a_killed_process_without_a_word_ran_out_of_host_memory(rules: RuleSet) -> None:
    files = ranks({0: peer_died(0)}) | {"1/launcher.log": torchrun_summary([(2, -9), (0, 1), (1, -15), (3, -15)])}
    found = verdict(rules, files)
    assert (found.category, found.culprit_ranks) == (Category.HOST_OOM, (2,))
    assert found.confidence is Confidence.MEDIUM


def test_the_kernel_names_the_process_that_it_killed(rules: RuleSet) -> None:
    kernel = "[Mon Mar 30 23:11:32 2026] Memory cgroup out of memory: Killed process 4003 (python) total-vm:3kB\n"
    files = ranks({0: peer_died(0)}) | {"1/launcher.log": torchrun_summary([(0, 1), (3, -9)]) + kernel}
    found = verdict(rules, files)
    assert (found.category, found.culprit_ranks, found.confidence) == (Category.HOST_OOM, (3,), Confidence.HIGH)


def test_a_device_that_fell_off_the_bus_explains_the_cuda_error(rules: RuleSet) -> None:
    stderr = {
        1: raised("torch.AcceleratorError: CUDA error: unspecified launch failure", "megatron/core/a.py:7 f", rank=1)
    }
    kernel = "NVRM: Xid (PCI:0000:9b:00): 79, pid=4001, name=python, GPU has fallen off the bus.\n"
    found = verdict(rules, ranks(stderr) | {"1/launcher.log": kernel + torchrun_summary([(1, 1)])})
    assert (found.category, found.culprit_ranks, found.retryable) == (Category.GPU_HARDWARE, (1,), True)


def test_a_crash_after_success_hurt_nobody(rules: RuleSet) -> None:
    crash = (
        "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00 (most recent call first):\n  <no Python frame>\n"
    )
    stdout = dict.fromkeys(range(4), pytest_log({TEST: "PASSED"}))
    found = verdict(rules, ranks({2: crash}, stdout=stdout))
    assert (found.category, found.culprit_ranks, found.victim_ranks) == (Category.CRASH_NATIVE, (2,), ())
    assert found.failed_tests == ()


def test_what_fails_on_every_rank_in_its_own_way_is_explained_by_the_full_disk(rules: RuleSet) -> None:
    place = f"{SITE}/torch/serialization.py:834 save"
    stderr = {
        rank: raised("RuntimeError: failed finding central directory", "megatron/training/checkpointing.py:1 load")
        for rank in range(3)
    }
    stderr[3] = raised(
        "OSError: [Errno 28] No space left on device: '/ckpt'", "megatron/training/checkpointing.py:9 save", place
    )
    found = verdict(rules, ranks(stderr))
    assert (found.category, found.culprit_ranks) == (Category.DISK_FULL, (3,))


def test_a_checkpoint_exception_accuses_the_ranks_that_it_names(rules: RuleSet) -> None:
    gathered = (
        "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([2])\n"
        "Traceback (most recent call last): (RANK 2)\n"
        "OSError: [Errno 28] No space left on device: '/ckpt/__2_0.distcp'"
    )
    stderr = {rank: raised(gathered, "megatron/training/checkpointing.py:702 save", rank=rank) for rank in range(4)}
    found = verdict(rules, ranks(stderr))
    assert (found.category, found.culprit_ranks, found.victim_ranks) == (Category.DISK_FULL, (2,), (0, 1, 3))


def test_a_barrier_names_who_did_not_come(rules: RuleSet) -> None:
    stderr = {
        0: raised(
            "RuntimeError: Rank 2 failed to pass monitoredBarrier in 600000 ms",
            "megatron/training/checkpointing.py:7 save",
            rank=0,
        )
    }
    found = verdict(rules, ranks(stderr))
    assert (found.category, found.culprit_ranks) == (Category.COLLECTIVE_TIMEOUT, (2,))


def test_an_exit_code_without_a_word_is_unknown_but_not_without_a_suspect(rules: RuleSet) -> None:
    found = verdict(rules, ranks({}) | {"1/launcher.log": torchrun_summary([(1, 1), (0, -15)])})
    assert (found.category, found.culprit_ranks, found.confidence) == (Category.UNKNOWN, (1,), Confidence.LOW)


def test_a_rank_without_any_log_is_missed(rules: RuleSet) -> None:
    files = {
        path: text
        for path, text in ranks({0: watchdog(0), 1: watchdog(1), 3: watchdog(3)}).items()
        if "/2/" not in path
    }
    assert verdict(rules, files).culprit_ranks == (2,)


def test_only_peers_complaining_is_no_verdict(rules: RuleSet) -> None:
    found = verdict(rules, ranks({0: peer_died(0), 1: peer_died(1)}))
    assert (found.category, found.culprit_ranks, found.confidence) == (Category.UNKNOWN, (), Confidence.LOW)


def test_two_nodes_with_a_folder_each_are_one_start(rules: RuleSet) -> None:
    first = ranks({rank: peer_died(rank) for rank in range(2)}, of=2, folder="1/none_zzzzzzzz/attempt_0")
    own = raised("ValueError: bad", "megatron/core/a.py:7 f", rank=3)
    second = ranks({0: peer_died(2), 1: own}, of=2, folder="1/none_aaaaaaaa/attempt_0")
    found = verdict(rules, first | second)
    assert (found.culprit_ranks, found.victim_ranks) == ((3,), (0, 1, 2))


def test_a_shell_tells_a_signal_by_128_and_its_number(rules: RuleSet) -> None:
    found = verdict(rules, ranks({0: peer_died(0)}) | {"1/launcher.log": torchrun_summary([(2, 137), (0, 1)])})
    assert (found.category, found.culprit_ranks) == (Category.HOST_OOM, (2,))


def test_what_was_logged_and_survived_accuses_nobody(rules: RuleSet) -> None:
    logged = "[rank1]:[W702 01:00:02.1 socket.cpp:1] warning\nERROR:root:read failed, retrying\n"
    logged += raised("ConnectionResetError: [Errno 104] Connection reset by peer", "megatron/core/a.py:7 f")
    own = raised("ValueError: bad", "megatron/core/b.py:9 g", rank=3)
    found = verdict(rules, ranks({0: peer_died(0), 1: logged, 3: own}))
    assert (found.category, found.culprit_ranks) == (Category.CRASH_PYTHON, (3,))


def test_training_that_goes_on_after_an_error_has_survived_it(rules: RuleSet) -> None:
    """However many iterations stood before it: of a flood of them some are told after each error."""
    steps = [f" iteration {step:8d}/ 500 | consumed samples: {step * 8:12d} | lm loss: 2.1 |\n" for step in range(400)]
    logged = raised("ValueError: a sample was skipped", "megatron/core/a.py:7 f")
    survived = "".join([*steps, logged, *steps[:5], *["a line of the end\n"] * 45])
    own = raised("KeyError: 'b'", "megatron/core/b.py:9 g")
    found = verdict(rules, ranks({1: survived, 3: own}))
    assert (found.category, found.culprit_ranks) == (Category.CRASH_PYTHON, (3,))


def test_a_run_that_came_to_its_end_passed_whatever_was_logged(rules: RuleSet) -> None:
    logged = raised("ConnectionResetError: [Errno 104] Connection reset by peer", "megatron/core/a.py:7 f")
    done = "[after training is done] datetime: 2026-08-03 03:00:34 \n"
    assert verdict(rules, ranks({1: logged}, stdout={0: done, 2: logged})).passed


def test_one_log_of_one_process_is_rank_zeros(rules: RuleSet) -> None:
    own = raised("ValueError: bad", "megatron/core/b.py:9 g")
    found = verdict(rules, {"inference/1/run.log": "starting\n" + own})
    assert (found.category, found.culprit_ranks, found.location) == (
        Category.CRASH_PYTHON,
        (0,),
        "megatron/core/b.py:9",
    )


def test_ranks_woven_into_one_file_by_srun(rules: RuleSet) -> None:
    own = raised("ValueError: bad", "megatron/core/b.py:9 g").splitlines()
    peer = peer_died(1).replace("[rank1]: ", "").splitlines()
    woven = [
        f"{rank}: {line}" for pair in zip(own, peer, strict=False) for rank, line in zip((2, 1), pair, strict=True)
    ]
    found = verdict(rules, {"gpt3/1/log_task.out": "\n".join(woven) + "\n"})
    assert (found.category, found.culprit_ranks) == (Category.CRASH_PYTHON, (2,))


def test_time_limits_of_tests_that_waited_lead_to_the_one_that_did_not(rules: RuleSet) -> None:
    wait = f"{SITE}/torch/distributed/distributed_c10d.py:2934 all_reduce"
    places = dict.fromkeys((0, 1, 3), ("tests/unit_tests/models/test_x.py:9 test_step", wait))
    places[2] = ("tests/unit_tests/models/test_x.py:12 test_step", "megatron/core/data.py:4 wait_for_file")
    stdout = {
        rank: pytest_log(
            {TEST: "FAILED"},
            sections=failures(failure("TestX.test_step", "Failed: Timeout (>60.0s) from pytest-timeout.", *where)),
        )
        for rank, where in places.items()
    }
    found = verdict(rules, ranks({}, stdout=stdout))
    assert (found.culprit_ranks, found.location) == ((2,), "megatron/core/data.py:4")


def test_a_job_without_artifact_is_told_from_what_its_log_holds(rules: RuleSet) -> None:
    own = raised("ValueError: bad", "megatron/core/b.py:9 g").splitlines()
    lines = [f"task-1-0/0 [default0]:{line}" for line in own] + ["##[error]Process completed with exit code 1."]
    job_log = "".join(f"2026-12-01T17:16:29.7722265Z {line}\n" for line in lines)
    found = verdict(rules, {}, job_log)
    assert (found.culprit_ranks, found.location) == ((0,), "megatron/core/b.py:9")
    assert found.evidence is not None
    assert (found.evidence.file, found.evidence.line) == ("job.log", 4)


def test_counters_of_different_groups_are_not_compared(rules: RuleSet) -> None:
    told = {0: watchdog(0, seq=500, op="ALLGATHER"), 1: watchdog(1, seq=500, op="ALLGATHER"), 3: watchdog(3, seq=20)}
    nameless = {rank: text.replace("[PG ID 0 PG GUID 0(default_pg) Rank", "[Rank") for rank, text in told.items()}
    running = dict.fromkeys(range(4), pytest_log({TEST: ""}, closing=None))
    assert verdict(rules, ranks(nameless, stdout=running)).culprit_ranks == (2,)


def test_the_one_that_ran_ahead_is_odd_too(rules: RuleSet) -> None:
    stderr = {rank: watchdog(rank, seq=8 if rank == 2 else 7) for rank in range(4)}
    assert verdict(rules, ranks(stderr)).culprit_ranks == (2,)


def test_a_script_that_does_not_know_its_argument(rules: RuleSet) -> None:
    usage = "usage: pretrain_gpt.py [-h]\npretrain_gpt.py: error: argument --seed: invalid int value: 'x'\n"
    assert verdict(rules, ranks(dict.fromkeys(range(2), usage), of=2)).category is Category.CRASH_PYTHON


def test_the_rank_that_failed_the_earlier_test_made_the_others_run_into_false_errors(rules: RuleSet) -> None:
    later = TEST.replace("test_step", "test_later")
    first = failures(failure("TestX.test_step", "assert 3 == 4", "tests/unit_tests/models/test_x.py:9 test_step"))
    false = failures(
        failure("TestX.test_later", "RuntimeError: sizes differ", "tests/unit_tests/models/test_x.py:20 f")
    )
    stdout = dict.fromkeys(range(4), pytest_log({TEST: "PASSED", later: "FAILED"}, sections=false))
    stdout[2] = pytest_log({TEST: "FAILED", later: "PASSED"}, sections=first)
    found = verdict(rules, ranks({}, stdout=stdout))
    assert (found.category, found.culprit_ranks, found.failed_tests) == (Category.TEST_ASSERTION, (2,), (TEST,))


def test_an_abort_after_the_last_exception_is_only_a_bad_exit(rules: RuleSet) -> None:
    own = {
        rank: raised(f"RuntimeError: Unexpected result nan (rank {rank})", "megatron/core/r.py:4 check", rank=rank)
        for rank in (1, 2)
    }
    own[1] += "".join(f"closing handle {n}\n" for n in range(120)) + "terminate called without an active exception\n"
    found = verdict(rules, ranks({0: peer_died(0), **own}, of=3))
    assert (found.culprit_ranks, found.victim_ranks) == ((1, 2), (0,))


@pytest.mark.parametrize(
    "end",
    [
        "ConnectionResetError: [Errno 104] Connection reset by peer",
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "EOFError",
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='localhost', port=81): Read timed out.",
        "RuntimeError: DataLoader worker (pid(s) 4711, 4712) exited unexpectedly",
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, internal error, NCCL version 2.28.9",
        "RuntimeError: NET/IB: Got completion from peer 10.0.3.7<4711> with status=12 opcode=0 len=0 vendor err 129",
    ],
)
def test_what_may_be_the_end_of_another_process_yields_to_a_cause(rules: RuleSet, end: str) -> None:
    place = "pretrain_gpt.py:3 main", "megatron/core/a.py:7 f"
    gone = {rank: raised(end, *place, rank=rank) for rank in (0, 1)}
    found = verdict(rules, ranks({**gone, 2: raised("ValueError: bad shard", *place, rank=2)}))
    assert (found.category, found.culprit_ranks, found.confidence) == (Category.CRASH_PYTHON, (2,), Confidence.HIGH)
    alone = verdict(rules, ranks({**gone, 2: ""}))
    assert alone.culprit_ranks == (0, 1)
    killed = {**ranks({**gone, 2: ""}), "launcher.log": torchrun_summary([(2, -9), (0, 1), (1, 1)])}
    assert (verdict(rules, killed).category, verdict(rules, killed).culprit_ranks) == (Category.HOST_OOM, (2,))
