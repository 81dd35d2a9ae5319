"""The verdict over each case stands, or is given with less confidence, when what cannot matter is changed."""

from __future__ import annotations

import random

import mutations
import pytest
from mutations import Job, Mutation
from scoring import Case, all_cases

from analyzers.analyze import analyze
from analyzers.model import Confidence, Diagnosis
from bot.diagnose import packaged_rules

CASES = {case.folder.name: case for case in all_cases()}
HARMLESS: tuple[Mutation, ...] = (
    mutations.shuffle_members,
    mutations.rename_starts,
    mutations.skew_a_clock,
    mutations.add_harmless_lines,
    mutations.drop_a_victim,
    mutations.write_crlf,
    mutations.weave_in_blank_lines,
)
SURE = [Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH]
CUTS = 3


def diagnose(job: Job) -> Diagnosis:
    return analyze(job.bundle(), packaged_rules())


def chance_of(case: Case, mutation: Mutation) -> random.Random:
    return random.Random(f"{case.folder.name} {mutation.__name__}")


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_matter_moves_no_verdict(name: str) -> None:
    job = mutations.load(CASES[name])
    first = diagnose(job)
    for mutation in HARMLESS:
        changed = mutation(job, first, chance_of(CASES[name], mutation))
        found = diagnose(changed) if changed is not job else first
        same = (found.category, found.culprit_ranks) == (first.category, first.culprit_ranks)
        less_sure = SURE.index(found.confidence) < SURE.index(first.confidence)
        assert same or (less_sure and not first.passed), (mutation.__name__, found.summary, first.summary)


@pytest.mark.parametrize("name", CASES)
def test_no_rank_is_special(name: str) -> None:
    """Ranks that change places, in paths and wherever they are named, take the blame with them."""
    job = mutations.load(CASES[name])
    first = diagnose(job)
    order = mutations.new_ranks(job, chance_of(CASES[name], mutations.permute_ranks))
    if len(order) < 2 or not {*first.culprit_ranks, *first.victim_ranks} <= order.keys():
        return  # one process, or ranks of several nodes, whose folders name the rank on the node
    found = diagnose(mutations.permute_ranks(job, first, chance_of(CASES[name], mutations.permute_ranks)))
    moved = tuple(sorted(order[rank] for rank in first.culprit_ranks))
    assert (found.category, found.culprit_ranks) == (first.category, moved), found.summary


@pytest.mark.parametrize("name", CASES)
def test_logs_cut_at_any_byte_are_read(name: str) -> None:
    job = mutations.load(CASES[name])
    chance = random.Random(name)
    for _ in range(CUTS):
        cut = mutations.cut(job, chance)
        found = diagnose(cut)
        ranks = [*found.culprit_ranks, *found.victim_ranks, *found.silent_ranks]
        assert len(ranks) == len(set(ranks))
        assert found.passed == (found.category is None)
        if CASES[name].expect.get("passed") and found.evidence is not None:
            whole = cut.files.get(found.evidence.file, b"").endswith(b"\n")  # cut between two lines: nothing shows it
            assert whole or found.confidence is not Confidence.HIGH, found.summary
