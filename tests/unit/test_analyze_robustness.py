"""The answer does not depend on what cannot matter, and no input makes the analysis raise."""

from __future__ import annotations

import functools
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.analyze import analyze
from analyzers.model import Diagnosis
from analyzers.rules import RuleSet
from config.rule_files import rule_documents
from tests.logs import (
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

TEST = "tests/unit_tests/a/test_a.py::TestA::test_one"
REPORT = failures(failure("TestA.test_one", "ValueError: x\nmore", "tests/unit_tests/a/test_a.py:9 test_one"))
OWN = raised("ValueError: bad shape", "pretrain_gpt.py:3 main", "megatron/core/a.py:7 f", rank=2)
SCENES: list[dict[str, str]] = [
    ranks({0: peer_died(0), 1: peer_died(1), 2: OWN}) | {"1/launcher.log": torchrun_summary([(2, 1), (0, 1)])},
    ranks({rank: watchdog(rank, second=10 + rank) for rank in (0, 1, 3)}),
    ranks({}, stdout=dict.fromkeys(range(4), pytest_log({TEST: "FAILED"}, sections=REPORT))),
    ranks({3: "Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n"}),
]
NOISE = "INFO:megatron.core.optimizer:step done\nERROR: transient Error while probing, ignoring it\n"


@functools.cache
def packaged() -> RuleSet:
    return RuleSet.from_documents(rule_documents(), prove=False)


def answer(files: dict[str, str | bytes], chunk_bytes: int = 1 << 20) -> Diagnosis:
    return analyze(bundle(files, chunk_bytes=chunk_bytes), packaged())


def gist(found: Diagnosis) -> tuple[object, ...]:
    return found.category, found.culprit_ranks, found.victim_ranks, found.error, found.failed_tests, found.fingerprint


@given(st.sampled_from(SCENES), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_order_and_folder_names_do_not_matter(scene: dict[str, str], chance: random.Random) -> None:
    names = list(scene)
    chance.shuffle(names)
    word = f"none_{chance.randrange(10**8):08d}"
    renamed: dict[str, str | bytes] = {name.replace("none_ab12cd34", word): scene[name] for name in names}
    assert gist(answer(renamed)) == gist(answer(dict(scene)))


@given(st.sampled_from(SCENES), st.integers(1, 5_000))
@settings(max_examples=25, deadline=None)
def test_chunk_borders_do_not_matter(scene: dict[str, str], chunk_bytes: int) -> None:
    assert answer(dict(scene), chunk_bytes) == answer(dict(scene))


@given(st.sampled_from(SCENES))
@settings(max_examples=10, deadline=None)
def test_harmless_lines_before_do_not_matter(scene: dict[str, str]) -> None:
    noisy: dict[str, str | bytes] = {name: NOISE * 200 + text if text else text for name, text in scene.items()}
    assert gist(answer(noisy)) == gist(answer(dict(scene)))


@given(st.sampled_from(SCENES), st.data())
@settings(max_examples=60, deadline=None)
def test_logs_cut_anywhere_never_raise(scene: dict[str, str], data: st.DataObject) -> None:
    cut: dict[str, str | bytes] = {}
    for name, text in scene.items():
        raw = text.encode()
        start = data.draw(st.integers(0, len(raw)))
        cut[name] = raw[start : data.draw(st.integers(start, len(raw)))]
    found = answer(cut)
    assert found.passed or found.category is not None


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_read(pieces: list[bytes], lines: bool) -> None:
    words = [
        b"Traceback (most recent call last):",
        b"E   x",
        b"=== FAILURES ===",
        b"Fatal Python error: x",
        b"[rank1]: ",
    ]
    raw = (b"\n" if lines else b"\r").join(part for pair in zip(words, pieces, strict=False) for part in pair)
    found = answer({"1/none_a/attempt_0/0/stderr.log": raw, "1/none_a/attempt_0/0/stdout.log": raw})
    assert found.passed or found.category is not None


def test_disjoint_and_sorted_ranks() -> None:
    for scene in SCENES:
        found = answer(dict(scene))
        everyone = [*found.culprit_ranks, *found.victim_ranks, *found.silent_ranks]
        assert len(everyone) == len(set(everyone))
        assert list(found.culprit_ranks) == sorted(found.culprit_ranks)
        assert list(found.victim_ranks) == sorted(found.victim_ranks)
