"""Rules are data that proves itself, and a hundred more of them cost nothing."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from job_logs import rules

from analyzers.model import Category
from analyzers.rules import Rule, RuleError, RuleSet, Where
from config.rule_files import rule_documents

GOOD: dict[str, Any] = {
    "id": "teapot",
    "category": "cuda_error",
    "blames": "cause",
    "hint": "teapot",
    "pattern": r"(?P<type>TeaError): (?P<message>I am a teapot.*)",
    "hit": "TeaError: I am a teapot, short and stout",
    "miss": "no teapot here",
    "source": "kettle 1.0, tea.c",
}


def load(**changes: Any) -> RuleSet:
    entry = {key: value for key, value in (GOOD | changes).items() if value is not None}
    return RuleSet.from_documents([[entry]])


def test_a_line_becomes_type_and_message() -> None:
    match = load().match("E   TeaError: I am a teapot, hot  ")
    assert match is not None
    assert (match.type, match.message, match.start) == ("TeaError", "I am a teapot, hot", 4)
    assert match.rule.category is Category.CUDA_ERROR


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"hint": None}, "missing"),
        ({"hint": "ab"}, "hint"),
        ({"hint": "coffee"}, "not in `hit`"),
        ({"pattern": "coffee"}, "does not find its own `hit`"),
        ({"pattern": "teapot"}, "finds its own `miss`"),
        ({"pattern": "(tea"}, "does not compile"),
        ({"pattern": r"(?=tea)teapot"}, "does not compile"),
        ({"category": "tea"}, "tea"),
        ({"blames": "nobody"}, "nobody"),
        ({"where": "kitchen"}, "kitchen"),
        ({"source": ""}, "missing"),
        ({"patern": "x"}, "unknown"),
    ],
)
def test_a_rule_without_proof_stops_the_load(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(RuleError, match=f"teapot.*{why}"):
        load(**changes)


def test_an_id_is_used_once() -> None:
    with pytest.raises(RuleError, match="twice: teapot"):
        RuleSet.from_documents([[GOOD], [GOOD]])


def test_the_first_rule_wins_and_knows_its_place() -> None:
    general = GOOD | {"id": "general", "pattern": "TeaError: .*", "category": "unknown"}
    job_only = GOOD | {"id": "job", "where": "job"}
    ordered = RuleSet.from_documents([[job_only, general, GOOD]])
    line = "TeaError: I am a teapot"
    assert [m.rule.id if (m := ordered.match(line, where=where)) else None for where in Where] == [
        "general",
        "job",
        "job",
    ]
    assert ordered.match("nothing of the kind") is None


def test_packaged_rules_prove_themselves_and_none_shadows_another() -> None:
    loaded = rules()
    assert len(loaded) >= 100
    for rule in loaded:
        found = loaded.match(rule.hit, where=rule.where)
        assert found is not None, rule.id
        assert found.rule.id == rule.id


def test_every_category_that_a_line_can_prove_has_a_rule() -> None:
    by_stack_alone = {Category.COLLECTION, Category.TEST_ASSERTION, Category.TEST_ERROR}
    assert {rule.category for rule in rules()} >= set(Category) - by_stack_alone


@pytest.mark.parametrize("count", [60, 300])
def test_a_line_is_held_against_the_rules_of_its_hints_only(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rules there are; `make bench` measures what that gives."""
    names = [f"teapot number {number:04}" for number in range(count)]
    extra = [
        GOOD | {"id": f"tea-{number}", "hint": name, "pattern": rf"{name}\b.*", "hit": f"{name} whistles"}
        for number, name in enumerate(names)
    ]
    many = RuleSet.from_documents([extra])
    tried: list[str] = []
    read = Rule.read
    monkeypatch.setattr(Rule, "read", lambda rule, text: tried.append(rule.id) or read(rule, text))
    many.match("iteration 12/50 | lm loss: 9.9E+00 | teapot number 0012 whistles | grad norm: 1.2" * 4)
    assert tried == ["tea-12"]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_no_line_upsets_the_rules(text: str) -> None:
    match = rules().match(text)
    assert match is None or match.rule.hint in text


def test_a_hostile_line_takes_no_time() -> None:
    start = time.perf_counter()
    for hint in rules().hints[:60]:
        rules().match((hint + " " + "a" * 30 + ": ") * 200)
    assert time.perf_counter() - start < 10


def test_documents_come_in_the_order_of_their_names() -> None:
    ids = [entry["id"] for document in rule_documents() for entry in document]
    assert ids == [rule.id for rule in rules()]
