"""A device-side assertion is told with the words that the device printed of it."""

from __future__ import annotations

from job_logs import rules

from analyzers.analyze import analyze
from analyzers.model import Diagnosis
from tests.logs import bundle, failure, failures, pytest_log, raised, ranks

TEST = "tests/unit_tests/a/test_a.py::TestA::test_one"
OTHER = "tests/unit_tests/a/test_a.py::TestA::test_child"
RAISED = "torch.AcceleratorError: CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert' in https://x"
SAID = "/p/ATen/native/cuda/{}.cu:15: f: block: [0,0,0], thread: [1,0,0] Assertion `{}` failed."


def told(stderr: str, stdout: str = "") -> Diagnosis:
    return analyze(bundle(ranks({0: stderr}, stdout={0: stdout}, of=1)), rules())


def test_a_script_is_told_with_the_first_assertion() -> None:
    asserted = "".join(SAID.format("Indexing", word) + "\n" for word in ("i < size", "j < size"))
    found = told(asserted + raised(RAISED, "megatron/core/a.py:7 f", rank=0))
    assert found.error is not None
    assert found.error.message.split("\n")[:2] == [
        "CUDA error: device-side assert triggered",
        SAID.format("Indexing", "i < size"),
    ]
    assert found.evidence is not None
    assert SAID.format("Indexing", "i < size") in found.evidence.excerpt
    assert found.summary.endswith("device-side assert triggered: Assertion `i < size` failed")


def test_the_advice_under_every_cuda_error_is_not_the_error() -> None:
    advice = (
        "Search for `cudaErrorIllegalAddress' in https://x for more information.",
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace is wrong.",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
    )
    said = "CUDA error: an illegal memory access was encountered"
    error = "\n".join([f"torch.AcceleratorError: {said}", "in a kernel of ours", *advice])
    report = failures(failure("TestA.test_one", error, "megatron/core/a.py:7 f"))
    for found in (
        told(raised(error, "megatron/core/a.py:7 f", rank=0)),
        told("", pytest_log({TEST: "FAILED"}, sections=report)),
    ):
        assert found.error is not None
        assert found.error.message == f"{said}\nin a kernel of ours"
        assert found.evidence is not None
        assert not [line for line in found.evidence.excerpt if line.startswith(advice)]


def test_a_test_is_told_with_what_stands_on_the_other_stream() -> None:
    report = failures(failure("TestA.test_one", RAISED, "megatron/core/a.py:7 f"))
    found = told(SAID.format("Loss", "t >= 0") + "\n", pytest_log({TEST: "FAILED"}, sections=report))
    assert found.error is not None
    assert SAID.format("Loss", "t >= 0") in found.error.message


def test_an_assertion_of_a_test_that_passed_is_not_taken() -> None:
    report = failures(failure("TestA.test_one", RAISED, "megatron/core/a.py:7 f"))
    woven = f"{OTHER} \n{SAID.format('Loss', 'child')}\nPASSED\n{TEST} FAILED\n"
    found = told("", pytest_log({}, sections=woven + report))
    assert found.error is not None
    assert "child" not in found.error.message


def test_another_error_stays_as_it_is() -> None:
    asserted = SAID.format("Indexing", "i < size") + "\n"
    found = told(asserted + raised("ValueError: no", "megatron/core/a.py:7 f", rank=0))
    assert found.error is not None
    assert found.error.message == "no"
