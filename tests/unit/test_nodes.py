"""Ranks of several nodes, whose folders number the ranks of each node from 0."""

from __future__ import annotations

import pytest

from analyzers.analyze import analyze
from analyzers.model import Confidence, Diagnosis
from analyzers.rules import RuleSet
from config.rule_files import rule_documents
from tests.logs import bundle, raised, ranks

OWN = raised("ValueError: bad shape", "megatron/core/a.py:7 f")
FOLDERS = ("node_0/1/none_ab12cd34/attempt_0", "node_1/1/none_zz12cd34/attempt_0")
WORLD = "using world size: 4, data-parallel size: 4\n"


def verdict(nodes: dict[str, dict[int, str]], *, said: str = "") -> Diagnosis:
    files: dict[str, str] = {}
    for place, (folder, stderr) in enumerate(nodes.items()):
        files |= ranks(stderr, stdout={0: said} if place == 0 else None, of=2, folder=folder)
    return analyze(bundle(files), RuleSet.from_documents(rule_documents(), prove=False))


@pytest.mark.parametrize(("node", "rank"), [(0, 1), (1, 3)])
def test_numbered_nodes_follow_each_other(node: int, rank: int) -> None:
    found = verdict({folder: {1: OWN} if place == node else {} for place, folder in enumerate(FOLDERS)})
    others = tuple(sorted({0, 1, 2, 3} - {rank}))
    assert (found.culprit_ranks, found.victim_ranks, found.confidence) == ((rank,), others, Confidence.MEDIUM)
    assert len(found.attempts) == 1


def test_folders_with_global_ranks_need_no_order() -> None:
    files = {f"{FOLDERS[rank // 2]}/{rank}/stderr.log": OWN if rank == 3 else "" for rank in range(4)}
    found = analyze(bundle(files), RuleSet.from_documents(rule_documents(), prove=False))
    assert (found.culprit_ranks, found.victim_ranks, found.confidence) == ((3,), (0, 1, 2), Confidence.HIGH)


def test_a_rank_in_the_lines_outranks_the_order_of_the_folders() -> None:
    own = raised("ValueError: bad shape", "megatron/core/a.py:7 f", rank=1)
    zero = raised("ValueError: other", "megatron/core/b.py:7 g", rank=2)
    found = verdict({FOLDERS[0]: {0: zero}, FOLDERS[1]: {1: own}})
    assert (found.culprit_ranks, found.victim_ranks) == ((1,), (0, 2, 3))
    assert found.evidence is not None
    assert found.evidence.file == f"{FOLDERS[1]}/1/stderr.log"


def test_nodes_with_gaps_in_their_numbers_are_a_guess() -> None:
    found = verdict({FOLDERS[0]: {}, FOLDERS[1].replace("node_1", "node_10"): {1: OWN}})
    assert (found.culprit_ranks, found.confidence) == ((3,), Confidence.LOW)


def test_folders_of_hosts_are_nodes_where_only_all_their_ranks_make_up_the_world() -> None:
    found = verdict({"cw-b10/attempt_0": {1: OWN}, "cw-b9/attempt_0": {}}, said=WORLD)
    assert (found.culprit_ranks, found.victim_ranks, found.confidence) == ((3,), (0, 1, 2), Confidence.LOW)
    assert len(found.attempts) == 1


def test_folders_of_tests_are_no_nodes() -> None:
    found = verdict({"gpt_a/attempt_0": {1: OWN}, "gpt_b/attempt_0": {}}, said=WORLD.replace("4", "2"))
    assert (found.culprit_ranks, found.victim_ranks) == ((1,), (0,))
    assert found.attempts[0].test == "gpt_a"
