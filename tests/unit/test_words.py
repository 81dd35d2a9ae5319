"""What is said of a failure in our own words claims no more than its logs show."""

from __future__ import annotations

import re

import pytest
from fakes import make_diagnosis

from analyzers.model import Category, Confidence, Error, Evidence, Finding, Role
from analyzers.verdict.accusation import Blame
from analyzers.verdict.findings import excerpt
from analyzers.verdict.summary import summarise
from handlers.render.report import render_diagnosis
from handlers.render.words import rerun_advice, title

STALE = "error: The lockfile at `uv.lock` needs to be updated, but `--locked` was provided."
GAVE_WAY = "Canceling since a higher priority waiting request for 'CICD Megatron-LM-refs/heads/main' exists"


def test_a_cancel_is_put_down_to_a_newer_run_only_if_the_log_says_so() -> None:
    stopped = make_diagnosis(category=Category.CANCELLED, error=Error("SignalException", "Process 1 got signal: 15"))
    assert rerun_advice(stopped) == "helps only if nobody stopped it on purpose: the logs do not say who did."
    replaced = make_diagnosis(category=Category.CANCELLED, error=Error(None, GAVE_WAY))
    assert rerun_advice(replaced) == "will not help: a newer run replaced it."
    told_later = make_diagnosis(category=Category.CANCELLED, evidence=Evidence("job.log", 1, ("signal 15", GAVE_WAY)))
    assert rerun_advice(told_later) == "will not help: a newer run replaced it."


@pytest.mark.parametrize("category", [Category.COLLECTIVE_TIMEOUT, Category.CRASH_NATIVE, Category.JOB_TIMEOUT])
def test_what_depends_on_timing_is_not_promised_to_fail_again(category: Category) -> None:
    assert rerun_advice(make_diagnosis(category=category)).startswith("is unlikely to help: ")


def test_what_does_not_depend_on_timing_is() -> None:
    assert rerun_advice(make_diagnosis(category=Category.TEST_ASSERTION)).startswith("will not help: ")


def test_what_is_said_against_a_rerun_fits_all_of_its_kind() -> None:
    refused = rerun_advice(make_diagnosis(category=Category.IMAGE_PULL, error=Error(None, "no basic auth credentials")))
    assert "is not there" not in refused
    usage = make_diagnosis(category=Category.COLLECTION, error=Error(None, "argument --timeout: invalid float value"))
    assert "option" in rerun_advice(usage)


def test_a_stale_lock_file_is_named() -> None:
    found = make_diagnosis(category=Category.DEPENDENCY, error=Error(None, STALE), culprit_ranks=(), victim_ranks=())
    assert title(found) == "uv.lock is out of date"
    assert render_diagnosis(found).startswith("### 🔴 uv.lock is out of date\n")
    assert title(make_diagnosis(category=Category.DEPENDENCY)) == "A dependency is missing or does not fit"


@pytest.mark.parametrize(
    ("category", "fate"), [(Category.COLLECTIVE_TIMEOUT, "waited"), (Category.CUDA_OOM, "died of it")]
)
def test_the_others_of_a_hang_waited(category: Category, fate: str) -> None:
    finding = Finding(category, Role.CAUSE, Error(None, "m"), Evidence("a", 1), confidence=Confidence.HIGH)
    assert summarise(Blame(finding, (3,), (0, 1, 2))).endswith(f"; 3 other ranks {fate}")


NCCL = (
    "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93, unhandled cuda error\n"
    "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 'an illegal memory access'"
)
NVCC = (
    "Error building extension 'norm': [1/3] nvcc -c cuda.cu\nFAILED: cuda.cuda.o\nnvcc -c cuda.cu\n"
    '/tmp/norm/cuda.cu(4): error: identifier "scale" is undefined\n  x[0] = scale;\nninja: build stopped.'
)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (NCCL, "NCCL error: Cuda failure 'an illegal memory access'"),
        (NVCC, "Error building extension 'norm': /tmp/norm/cuda.cu(4): error: identifier \"scale\" is undefined"),
        ("at 4:3:\ndef kernel(x):\n   ^\nNameError('s is not defined')", "NameError('s is not defined')"),
        (
            "terminate called after throwing an instance of 'E'\n[PG ID 0 Rank 1] watchdog ended: CUDA error: trap",
            "watchdog ended: CUDA error: trap",
        ),
        ("Error(s) in loading it for Linear:\nsize mismatch", "Error(s) in loading it for Linear: size mismatch"),
        (
            "CUDA error: device-side assert triggered\nIndexing.cu:15: f: Assertion `index < size` failed.\nSearch",
            "CUDA error: device-side assert triggered: Assertion `index < size` failed",
        ),
        ("the first line\nand another", "the first line"),
    ],
)
def test_the_line_that_says_why_is_told(message: str, said: str) -> None:
    finding = Finding(Category.CUDA_ERROR, Role.CAUSE, Error("a.b.Trouble", message), Evidence("a", 1))
    assert summarise(Blame(finding, (3,), ())) == f"rank 3 hit a CUDA error: Trouble: {said}"
    shown = excerpt(message)
    assert any(said.rpartition(": ")[2] in line for line in shown)
    assert len(shown) <= 5


@pytest.mark.parametrize("category", Category)
def test_the_words_fit_one_rank_and_several(category: Category) -> None:
    finding = Finding(category, Role.CAUSE, Error(None, "m"), Evidence("a", 1))
    one, two = (summarise(Blame(finding, ranks, ())) for ranks in ((3,), (3, 4)))
    assert two == one.replace("rank 3", "ranks 3 and 4")
    assert not re.search(r"\b(?:its|was|has|misses)\b", one)


def test_of_very_many_ranks_the_first_are_named() -> None:
    finding = Finding(Category.COLLECTIVE_TIMEOUT, Role.CAUSE, Error(None, "m"), Evidence("a", 1))
    said = summarise(Blame(finding, tuple(range(1, 512, 2)), ()))
    assert said.startswith("ranks 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23 and 244 more ")
    assert summarise(Blame(finding, tuple(range(512)), ())).startswith("ranks 0 to 511 ")
