"""Documents beside the logs: torch's error files and pytest's results as JUnit XML. The logs come first."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_logs import rules
from logs import FOLDER, bundle, failure, failures, peer_died, pytest_log, raised, ranks

from analyzers.analyze import analyze
from analyzers.model import Category, Diagnosis
from analyzers.reading.layout import ERROR_FILE, JUNIT, Kind, place

OWN = raised("ValueError: bad shape", "pretrain_gpt.py:3 main", "megatron/core/a.py:7 f")
TEST = "tests/unit_tests/a/test_a.py::TestA::test_one[x y-[1]]"
PEERS = {rank: peer_died(rank) for rank in (0, 1, 3)}


def answer(files: dict[str, str]) -> Diagnosis:
    return analyze(bundle(files), rules())


def error_file(stack: str) -> str:
    return json.dumps({"message": {"message": "x", "extraInfo": {"py_callstack": stack, "timestamp": "1719882614"}}})


def junit(*cases: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="0" '
        f'failures="1" skipped="0" tests="2">{"".join(cases)}</testsuite></testsuites>'
    )


CLASS = 'classname="tests.unit_tests.a.test_a.TestA"'
FAILED = (
    f'<testcase {CLASS} name="test_one[x y-[1]]" time="0.1"><failure message="ValueError: x &amp; y">self = 1\n\n'
    "&gt;       f()\n\ntests/unit_tests/a/test_a.py:9: \n_ _ _ _ _\n\nmegatron/core/b.py:44: in f\n    raise\n"
    "E   ValueError: x &amp; y\n\nmegatron/core/b.py:45: ValueError</failure></testcase>"
)
PASSED = f'<testcase {CLASS} name="test_two" time="0.1" />'


def test_an_error_file_tells_what_the_log_lost() -> None:
    found = answer(ranks(PEERS) | {f"{FOLDER}/2/error.json": error_file(OWN)})
    assert (found.category, found.culprit_ranks, found.victim_ranks) == (Category.CRASH_PYTHON, (2,), (0, 1, 3))
    assert found.location == "megatron/core/a.py:7"
    assert found.evidence is not None
    assert (found.evidence.file, found.evidence.line) == (f"{FOLDER}/2/error.json", 1)


def test_the_log_is_the_evidence_where_it_has_the_same() -> None:
    found = answer(ranks({**PEERS, 2: OWN}) | {f"{FOLDER}/2/error.json": error_file(OWN)})
    assert found.evidence is not None
    assert (found.evidence.file, found.evidence.line) == (f"{FOLDER}/2/stderr.log", 6)


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"message": "x"}', '{"message": {"extraInfo": {"py_callstack": 3}}}']
)
def test_another_document_of_that_name_tells_nothing(text: str) -> None:
    assert answer({f"{FOLDER}/2/error.json": text}).category is Category.UNKNOWN


def test_results_alone_are_an_answer() -> None:
    found = answer({"results/junit.xml": junit(FAILED, PASSED)})
    assert (found.category, found.failed_tests) == (Category.TEST_ERROR, (TEST,))
    assert found.error is not None
    assert (found.error.type, found.error.message) == ("ValueError", "x & y")
    assert found.location == "megatron/core/b.py:45"
    assert found.evidence is not None
    assert (found.evidence.file, found.evidence.line) == ("results/junit.xml", 10)


def test_results_in_a_ranks_folder_are_the_ranks() -> None:
    found = answer(ranks(PEERS) | {f"{FOLDER}/2/junit.xml": junit(FAILED)})
    assert (found.culprit_ranks, found.failed_tests) == ((2,), (TEST,))


def test_the_terminals_words_come_before_the_results() -> None:
    report = failures(failure("TestA.test_one[x y-[1]]", "ValueError: x & y", "megatron/core/b.py:45 f"))
    logs = ranks({}, stdout={0: pytest_log({TEST: "FAILED"}, sections=report)}, of=1)
    found = answer(logs | {f"{FOLDER}/0/junit.xml": junit(FAILED)})
    assert found.evidence is not None
    assert found.evidence.file.endswith("stdout.log")
    assert found.failed_tests == (TEST,)


def test_passed_results_pass() -> None:
    assert answer({"junit.xml": junit(PASSED)}).passed


def test_setup_errors_collection_errors_and_the_older_family() -> None:
    setup = f'<testcase {CLASS} name="t"><error message="failed on setup with">E   OSError: no</error></testcase>'
    assert answer({"junit.xml": junit(setup)}).category is Category.TEST_ERROR
    broken = '<testcase classname="" name="tests.unit_tests.b.test_b"><error message="collection failure">'
    broken += "tests/unit_tests/b/test_b.py:1: in &lt;module&gt;\nE   NameError: no</error></testcase>"
    assert answer({"junit.xml": junit(broken)}).category is Category.COLLECTION
    older = FAILED.replace("classname", 'file="tests/unit_tests/a/test_a.py" line="3" classname')
    assert answer({"junit.xml": junit(older)}).failed_tests == (TEST,)


def test_a_document_with_entities_is_refused() -> None:
    bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><testsuites>' + FAILED + "</testsuites>"
    assert answer({"junit.xml": bomb}).category is Category.UNKNOWN


def test_what_stands_before_a_cut_is_read() -> None:
    text = junit(FAILED, PASSED)
    assert answer({"junit.xml": text[: text.index("test_two")]}).failed_tests == (TEST,)


@pytest.mark.parametrize(
    ("name", "kind", "stream"),
    [
        (f"{FOLDER}/3/error.json", Kind.RANK, ERROR_FILE),
        (f"{FOLDER}/3/junit.xml", Kind.RANK, JUNIT),
        ("a_test/test-results.xml", Kind.RESULTS, JUNIT),
        ("pytest_unit.xml", Kind.RESULTS, JUNIT),
    ],
)
def test_names_of_documents(name: str, kind: Kind, stream: str) -> None:
    found = place(name)
    assert found is not None
    assert (found.kind, found.stream) == (kind, stream)


def test_other_documents_are_none() -> None:
    assert place("coverage.xml") is place("a/config.xml") is place("error.json") is None


@given(st.binary(max_size=300), st.integers(0, 700))
def test_no_document_upsets_the_reading(data: bytes, cut: int) -> None:
    for name in (f"{FOLDER}/0/error.json", f"{FOLDER}/0/junit.xml"):
        for content in (data, (junit(FAILED) + error_file(OWN)).encode()[:cut] + data):
            found = analyze(bundle({name: content}), rules())
            assert found.passed == (found.category is None)
