"""Ranks that came to a collective too late, left without a word, or were in one too many: as NCCL tells of them."""

from __future__ import annotations

import pytest
from job_logs import rules

from analyzers.analyze import analyze
from analyzers.model import Category, Confidence, Diagnosis
from tests.logs import bundle, ranks, torchrun_summary, watchdog

DONE = "[after training is done] datetime: 2026-07-02 01:12:11\n"
LOST = (
    "Process group watchdog thread terminated with exception: NCCL error: remote process exited or there was a network "
    "error, NCCL version 2.28.9\nncclRemoteError: A call failed possibly due to a network error or a remote process "
    "exiting prematurely.\nLast error:\nsocketProgress: Connection closed by remote peer localhost<58372>\n"
)


def status(
    rank: int, enqueued: int, *, says: str = "Received a dump signal due to a collective timeout from  rank 0."
) -> str:
    group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    return (
        f"[rank{rank}]:[E702 01:10:22.558249694 ProcessGroupNCCL.cpp:1914] {group} {says} Last enqueued NCCL work: "
        f"{enqueued}, last completed NCCL work: {enqueued}. This is most likely\n"
    )


def lost_peer(rank: int, enqueued: int) -> str:
    """The watchdog of a rank whose peer's sockets closed."""
    said = status(rank, enqueued, says="failure detected by watchdog at work sequence id: 3 PG status:")
    head = f"[rank{rank}]:[E702 01:11:28.4 ProcessGroupNCCL.cpp:2119] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    thrown = "terminate called after throwing an instance of 'c10::DistBackendError'\n  what(): "
    return f"{said}{head} {LOST}\n{thrown} [PG ID 0 Rank {rank}] {LOST}"


def verdict(
    stderr: dict[int, str], stdout: dict[int, str] | None = None, exits: tuple[tuple[int, int], ...] = ()
) -> Diagnosis:
    files = ranks(stderr, stdout=stdout, of=len(stderr))
    return analyze(bundle(files | {"launcher.log": torchrun_summary(exits)} if exits else files), rules())


@pytest.mark.parametrize("later", ["", DONE])
def test_who_was_behind_when_the_others_time_was_up_is_the_culprit_whatever_it_did_later(later: str) -> None:
    waited = {rank: watchdog(rank, seq=4) for rank in (0, 2)}
    found = verdict({**waited, 1: status(1, 3)}, {1: later})
    assert (found.category, found.culprit_ranks, found.victim_ranks) == (Category.COLLECTIVE_TIMEOUT, (1,), (0, 2))


def test_who_was_in_the_operation_too_when_told_of_the_time_out_is_not_behind() -> None:
    found = verdict({0: watchdog(0, seq=4), 1: status(1, 5), 2: status(2, 4), 3: status(3, 3)})
    assert found.culprit_ranks == (3,)


def test_of_several_late_ranks_one_may_have_waited_for_another() -> None:
    found = verdict({0: watchdog(0, seq=4), 1: watchdog(1, seq=4), 2: status(2, 3), 3: status(3, 3)})
    assert (found.culprit_ranks, found.confidence) == ((2, 3), Confidence.MEDIUM)


def test_who_left_without_a_word_is_missed_by_those_whose_sockets_closed() -> None:
    exits = ((2, -6), (0, -15))
    found = verdict({0: watchdog(0, seq=1), 1: "> initialized\n", 2: lost_peer(2, 1)}, exits=exits)
    assert (found.category, found.culprit_ranks, found.victim_ranks) == (Category.COLLECTIVE_TIMEOUT, (1,), (0, 2))


def test_who_lost_a_peer_that_was_through_did_one_operation_too_many() -> None:
    found = verdict({0: "", 1: lost_peer(1, 8)}, {0: DONE, 1: "> initialized\n"})
    assert not found.passed
    assert (found.category, found.culprit_ranks, found.confidence) == (
        Category.COLLECTIVE_TIMEOUT,
        (1,),
        Confidence.LOW,
    )
