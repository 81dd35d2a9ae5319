"""Who hung the job, by the dumps of all ranks: one fault in, that rank out, whatever waits because of it."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import Any

import pytest
from flight_dumps import Faults, Job, Op, pipeline_job, read_all, run, swapped, written
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.model import Confidence
from analyzers.parsers.flight_recorder_model import HangVerdict, Reason
from analyzers.parsers.flight_recorder_verdict import diagnose_dumps

PIPELINE = pipeline_job()
FOUR_STAGES = pipeline_job(stages=4, tensor=1, data=2)


def verdict_of(job: Job, *, only_open: bool = True, ring: int = 2000, **faults: Any) -> HangVerdict:
    dumps = read_all(run(job, Faults(**faults), only_open=only_open, ring=ring))
    random.Random(len(faults)).shuffle(dumps)
    return diagnose_dumps(dumps, world_size=len(job.programs))


def one_group(ranks: int = 4, length: int = 5) -> Job:
    return Job({"0": tuple(range(ranks))}, {rank: [Op("0")] * length for rank in range(ranks)})


def test_a_job_that_ended_accuses_nobody() -> None:
    verdict = verdict_of(PIPELINE)
    assert (verdict.culprits, verdict.suspects, verdict.waiting) == ((), (), ())
    assert verdict.sentence == "No rank waits in any operation."
    assert diagnose_dumps([], world_size=8).culprits == ()


def test_who_never_entered_is_behind() -> None:
    verdict = verdict_of(one_group(), stopped={2: 3})
    (culprit,) = verdict.culprits
    assert (culprit.rank, culprit.reason, culprit.confidence) == (2, Reason.BEHIND, Confidence.HIGH)
    assert (verdict.group and verdict.group.name, verdict.seq, verdict.operation, verdict.sizes) == (
        "0",
        4,
        "all_reduce",
        ((64,),),
    )
    assert verdict.waiting == (0, 1, 3)
    assert verdict.sentence == (
        "Rank 2 never entered all_reduce #4 of GROUP_0 (0). Ranks 0-1 and 3 wait because of that."
    )


@pytest.mark.parametrize("kind", ["stopped", "broken", "killed"])
@pytest.mark.parametrize("only_open", [True, False])
def test_one_fault_anywhere_in_a_pipeline_is_found_and_nothing_else(kind: str, only_open: bool) -> None:
    for rank in PIPELINE.programs:
        for place in range(1, 22, 3):
            verdict = verdict_of(PIPELINE, only_open=only_open, **{kind: {rank: place}})
            assert verdict.culprit_ranks == (rank,), (rank, place, verdict.sentence)
            assert verdict.confidence is Confidence.HIGH
            assert set(verdict.waiting) == set(PIPELINE.programs) - {rank}


@pytest.mark.parametrize("kind", ["stopped", "killed"])
def test_four_stages_are_followed_to_the_one_that_stopped(kind: str) -> None:
    for rank in FOUR_STAGES.programs:
        verdict = verdict_of(FOUR_STAGES, **{kind: {rank: 6}})
        assert verdict.culprit_ranks == (rank,), verdict.sentence


def test_a_dead_device_of_four_stages_is_never_another_for_sure() -> None:
    for rank in FOUR_STAGES.programs:
        for place in range(1, 22, 2):
            verdict = verdict_of(FOUR_STAGES, broken={rank: place})
            if verdict.confidence is Confidence.LOW:
                assert not verdict.culprits or rank in verdict.culprit_ranks
            else:
                assert verdict.culprit_ranks == (rank,), (rank, place, verdict.sentence)


@pytest.mark.parametrize("kind", ["stopped", "broken", "killed"])
def test_two_faults_at_once_are_both_found(kind: str) -> None:
    verdict = verdict_of(PIPELINE, **{kind: {1: 9, 6: 9}})
    assert verdict.culprit_ranks == (1, 6), verdict.sentence
    assert {culprit.reason for culprit in verdict.culprits} == {
        {"stopped": Reason.BEHIND, "broken": Reason.STALLED, "killed": Reason.ABSENT}[kind]
    }


def test_faults_at_random_never_accuse_the_innocent() -> None:
    chance = random.Random(11)
    found = 0
    for _ in range(60):
        first, second = chance.sample(sorted(PIPELINE.programs), 2)
        kinds = chance.sample(["stopped", "broken", "killed"], 2)
        place = chance.randrange(1, 20)
        verdict = verdict_of(PIPELINE, **{kinds[0]: {first: place}, kinds[1]: {second: place + chance.choice((0, 1))}})
        assert set(verdict.culprit_ranks) <= {first, second}, (first, second, kinds, place, verdict.sentence)
        found += bool(verdict.culprits)
    assert found > 55


def test_losing_the_dump_of_a_victim_moves_nothing() -> None:
    wide = pipeline_job(stages=2, tensor=4, data=1)
    for faults, whole in ((Faults(stopped={5: 7}), (5,)), (Faults(broken={2: 9}), (2,))):
        documents = run(wide, faults)
        for lost in set(documents) - set(whole):
            kept = {rank: document for rank, document in documents.items() if rank != lost}
            verdict = diagnose_dumps(read_all(kept), world_size=8)
            assert verdict.culprit_ranks == whole, (lost, verdict.sentence)
            assert verdict.absent == (lost,)
            assert verdict.sentence.endswith(f"Rank {lost} left no dump.")


def test_beside_a_convicted_rank_one_without_a_dump_is_a_suspect() -> None:
    groups = {"0": (0, 1, 2), "1": (3, 4, 5)}
    job = Job(groups, {rank: [Op("0" if rank < 3 else "1")] * 4 for rank in range(6)})
    verdict = verdict_of(job, stopped={1: 2}, killed={4: 2})
    assert [(each.rank, each.reason) for each in verdict.culprits] == [(1, Reason.BEHIND)]
    assert [(each.rank, each.reason) for each in verdict.suspects] == [(4, Reason.ABSENT)]
    assert "Less certain: rank 4 left no dump, and its peers wait for it in all_reduce #3" in verdict.sentence


def test_a_ring_buffer_that_lost_the_older_half_is_enough() -> None:
    verdict = verdict_of(PIPELINE, only_open=False, ring=6, stopped={3: 13})
    assert verdict.culprit_ranks == (3,)


def test_most_dumps_missing_accuses_nobody() -> None:
    kept = {0: run(one_group(8), Faults(stopped={2: 3}))[0]}
    verdict = diagnose_dumps(read_all(kept), world_size=8)
    assert verdict.culprits == ()
    assert verdict.suspect_ranks == verdict.absent == (1, 2, 3, 4, 5, 6, 7)
    assert verdict.confidence is Confidence.LOW


@pytest.mark.parametrize(
    ("odd", "reason", "expected"),
    [
        (Op("0", "broadcast"), Reason.OPERATION, "all_reduce"),
        (Op("0", size=(65,)), Reason.INPUT_SIZE, "64 elements"),
        (Op("0", output=(128,)), Reason.OUTPUT_SIZE, "64 elements"),
        (Op("0", dtype="Half"), Reason.DTYPE, "Float"),
    ],
)
def test_who_differs_from_the_majority_is_named(odd: Op, reason: Reason, expected: str) -> None:
    job = one_group()
    changed = replace(job, programs={**job.programs, 1: swapped(job.programs[1], 2, odd)})
    verdict = verdict_of(changed)
    (culprit,) = verdict.culprits
    assert (culprit.rank, culprit.reason, culprit.seq, culprit.expected) == (1, reason, 3, expected)
    assert culprit.confidence is Confidence.HIGH
    assert verdict.sentence.startswith("Rank 1 ")
    assert expected in verdict.sentence


def test_another_shape_of_the_same_size_is_no_mismatch() -> None:
    job = one_group()
    changed = replace(job, programs={**job.programs, 1: swapped(job.programs[1], 2, Op("0", size=(8, 8)))})
    documents = run(replace(changed, programs=job.programs), Faults(stopped={3: 2}))
    documents[1]["entries"][0]["input_sizes"] = [[8, 8]]
    verdict = diagnose_dumps(read_all(documents), world_size=4)
    assert [(culprit.rank, culprit.reason) for culprit in verdict.culprits] == [(3, Reason.BEHIND)]


def test_uneven_all_to_all_is_no_mismatch() -> None:
    programs = {rank: [Op("0", "all_to_all", (rank + 1,), output=(4 - rank,))] * 3 for rank in range(4)}
    documents = run(Job({"0": (0, 1, 2, 3)}, programs), Faults(stopped={0: 1}))
    verdict = diagnose_dumps(read_all(documents), world_size=4)
    assert [(culprit.rank, culprit.reason) for culprit in verdict.culprits] == [(0, Reason.BEHIND)]


def test_a_tie_names_both_with_low_confidence() -> None:
    job = Job({"0": (0, 1)}, {0: [Op("0")] * 3, 1: swapped([Op("0")] * 3, 1, Op("0", "barrier"))})
    verdict = verdict_of(job)
    assert [(each.rank, each.reason, each.expected) for each in verdict.culprits] == [
        (0, Reason.OPERATION, "barrier"),
        (1, Reason.OPERATION, "all_reduce"),
    ]
    assert verdict.confidence is Confidence.LOW


def test_a_rank_that_skipped_a_collective_shows_as_a_mismatch() -> None:
    usual = [Op("0"), Op("0", "all_gather"), Op("0"), Op("0", "broadcast"), Op("0")]
    verdict = verdict_of(Job({"0": (0, 1, 2)}, {0: usual, 1: usual, 2: [usual[0], *usual[2:]]}))
    assert [(each.rank, each.reason, each.seq) for each in verdict.culprits] == [(2, Reason.OPERATION, 2)]


def test_a_rank_late_because_of_another_group_is_excused() -> None:
    groups = {"0": (0, 1, 2, 3), "1": (0, 1), "2": (2, 3)}
    programs = {rank: [Op("1" if rank < 2 else "2"), Op("0"), Op("0")] for rank in range(4)}
    verdict = verdict_of(Job(groups, programs, ahead=1), stopped={3: 0})
    assert verdict.culprit_ranks == (3,)
    assert verdict.group is not None
    assert verdict.group.title == "GROUP_2 (2)"
    assert verdict.waiting == (0, 1, 2)


def test_two_ranks_in_another_order_wait_for_each_other() -> None:
    groups = {"1": (0, 1), "2": (0, 1)}
    job = Job(groups, {0: [Op("1"), Op("2")], 1: [Op("2"), Op("1")]}, ahead=1)
    verdict = verdict_of(job)
    assert [(each.rank, each.reason) for each in verdict.culprits] == [(0, Reason.ORDER), (1, Reason.ORDER)]
    assert verdict.confidence is Confidence.LOW


def test_receives_issued_ahead_excuse_nobody() -> None:
    groups = {"1": (0, 1), "2": (2, 3), "3": (0, 2), "4": (1, 3)}
    programs = {
        0: [Op("3", "recv", peer=1)],
        1: [Op("4", "recv", peer=1), Op("1"), Op("1")],
        2: [Op("3", "recv", peer=0), Op("2"), Op("2")],
        3: [Op("4", "recv", peer=0), Op("2"), Op("2")],
    }
    documents = written(Job(groups, programs), {rank: (len(program), 0) for rank, program in programs.items()})
    verdict = diagnose_dumps(read_all(documents), world_size=4)
    assert [(each.rank, each.reason, each.confidence) for each in verdict.culprits] == [
        (0, Reason.BEHIND, Confidence.MEDIUM)
    ]


def test_transfers_of_different_size_name_both_ends() -> None:
    send, receive = Op("0", "send", (4,), peer=1), Op("0", "recv", (4,), peer=0)
    documents = run(Job({"0": (0, 1)}, {0: [send], 1: [receive]}), Faults(frozen={0: 0}))
    documents[1]["entries"][0]["output_sizes"] = [[8]]
    verdict = diagnose_dumps(read_all(documents), world_size=2)
    assert [(each.rank, each.reason, each.expected) for each in verdict.culprits] == [
        (0, Reason.INPUT_SIZE, "8 elements"),
        (1, Reason.OUTPUT_SIZE, "4 elements"),
    ]


def test_all_arrived_and_none_finished_is_said_with_low_confidence() -> None:
    verdict = verdict_of(PIPELINE, frozen={0: 5})
    assert verdict.confidence is Confidence.LOW
    assert 0 in verdict.culprit_ranks
    assert len(verdict.culprit_ranks) == 2
    everybody = verdict_of(one_group(), frozen={2: 2})
    assert (everybody.culprits, everybody.suspect_ranks) == ((), (0, 1, 2, 3))


def test_a_kernel_that_never_started_tells_them_apart() -> None:
    documents = run(one_group(), Faults(frozen={2: 2}))
    for rank in (0, 1, 3):
        documents[rank]["entries"][0]["state"] = "started"
    verdict = diagnose_dumps(read_all(documents), world_size=4)
    assert [(each.rank, each.reason) for each in verdict.culprits] == [(2, Reason.NOT_STARTED)]


def test_who_stopped_while_it_waited_like_its_peers_is_named_too() -> None:
    verdict = verdict_of(one_group(6, 12), stopped={1: 3, 4: 5})
    assert [(each.rank, each.reason) for each in verdict.culprits] == [(1, Reason.BEHIND), (4, Reason.STOPPED)]
    assert verdict.confidence is Confidence.MEDIUM


def test_an_all_to_all_that_only_peers_finished_is_weaker_evidence() -> None:
    job = Job({"0": (0, 1, 2, 3)}, {rank: [Op("0", "all_to_all")] * 6 for rank in range(4)})
    verdict = verdict_of(job, broken={2: 2})
    assert [(each.rank, each.reason, each.confidence) for each in verdict.culprits] == [
        (2, Reason.STALLED, Confidence.MEDIUM)
    ]


def test_only_a_device_can_hold_up_a_group_of_one() -> None:
    groups = {"0": (0, 1), "1": (0,), "2": (1,)}
    programs = {0: [Op("1"), Op("1"), Op("0")], 1: [Op("2"), Op("2"), Op("0")]}
    verdict = verdict_of(Job(groups, programs), frozen={0: 1})
    assert [(each.rank, each.reason) for each in verdict.culprits] == [(0, Reason.STALLED)]


def test_a_root_that_finished_its_broadcast_alone_makes_nobody_stalled() -> None:
    job = Job({"0": (0, 1, 2)}, {rank: [Op("0", "broadcast")] * 3 for rank in range(3)})
    documents = run(job, Faults(stopped={2: 1}))
    documents[0]["pg_status"]["0"]["last_completed_collective"] = 2
    documents[0]["entries"] = documents[0]["entries"][1:]
    verdict = diagnose_dumps(read_all(documents), world_size=3)
    assert [(each.rank, each.reason) for each in verdict.culprits] == [(2, Reason.BEHIND)]


def test_coalesced_transfers_take_their_state_from_the_closing_entry() -> None:
    job = Job({"0": (0, 1)}, {rank: [Op("0", "recv" if rank else "send", peer=1 - rank)] for rank in range(2)})
    documents = run(job, only_open=False)
    for document in documents.values():
        (inner,) = document["entries"]
        closing = {**inner, "profiling_name": "nccl:coalesced", "record_id": 1, "op_id": 2}
        document["entries"] = [{**inner, "state": "scheduled"}, closing]
    assert diagnose_dumps(read_all(documents), world_size=2).waiting == ()
    documents[0]["entries"][1]["state"] = documents[1]["entries"][1]["state"] = "scheduled"
    assert diagnose_dumps(read_all(documents), world_size=2).suspect_ranks == (0, 1)


def test_of_two_dumps_of_a_rank_the_newer_counts() -> None:
    early = run(one_group(), Faults(stopped={0: 3, 2: 2}))
    late = run(one_group(), Faults(stopped={2: 3}))
    for document in late.values():
        for entry in document["entries"]:
            entry["time_created_ns"] += 10**9
    dumps = [*read_all(late), *read_all({0: early[0]})]
    assert diagnose_dumps(dumps, world_size=4).culprit_ranks == (2,)


def test_a_thousand_ranks_are_judged_in_seconds() -> None:
    verdict = verdict_of(one_group(1000, 4), stopped={777: 2})
    assert verdict.culprit_ranks == (777,)


FIELDS = ["record_id", "pg_id", "collective_seq_id", "p2p_seq_id", "op_id"]
OPERATIONS = ["nccl:send 0->0", "nccl:send 1->9", "nccl:recv 0<-1", "nccl:coalesced", "nccl:broadcast", "odd", ""]


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_dumps_that_contradict_each_other_never_raise(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["stopped", "broken", "frozen", "killed"]))
    faults = {kind: {data.draw(st.integers(0, 7)): data.draw(st.integers(0, 20))}}
    documents = copy.deepcopy(run(PIPELINE, Faults(**faults), only_open=data.draw(st.booleans())))
    for _ in range(data.draw(st.integers(1, 12))):
        document = documents[data.draw(st.sampled_from(sorted(documents)))]
        entries = document["entries"]
        if entries:
            entry = entries[data.draw(st.integers(0, len(entries) - 1))]
            entry[data.draw(st.sampled_from(FIELDS))] = data.draw(st.integers(0, 30))
            entry["profiling_name"] = data.draw(st.sampled_from([entry["profiling_name"], *OPERATIONS]))
            entry["is_p2p"] = data.draw(st.booleans())
            entry["process_group"] = (data.draw(st.sampled_from(["0", "1", "9", "unheard of"])), "")
        document["pg_config"].pop(data.draw(st.sampled_from(["0", "1", "5", "9"])), None)
        document["pg_status"].pop(str(data.draw(st.integers(0, 4))), None)
    verdict = diagnose_dumps(read_all(documents), world_size=8)
    named = [*verdict.culprit_ranks, *verdict.suspect_ranks, *verdict.waiting]
    assert len(named) == len(set(named))
    assert verdict.sentence.endswith(".")
