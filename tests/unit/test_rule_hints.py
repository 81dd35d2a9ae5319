"""A rule is tried only on lines that hold its hint: a branch of its pattern without the hint finds nothing, ever."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from job_logs import rules

from analyzers.rules import Rule

_ESCAPED = re.compile(r"\\([()|\[\]{}?.*+^$])")
_GROUP = re.compile(r"\((?:\?:|\?P<\w+>)?(?P<inside>[^()]*)\)(?P<often>[?*])?")
#: Escaped characters are kept out of the way, in the private use area, while groups are taken apart.
_AWAY = 0xE000


def literals(pattern: str) -> str:
    """What stands in everything that a pattern finds; what may or may not stand there is a NUL."""
    text = _ESCAPED.sub(lambda found: chr(_AWAY + ord(found[1])), pattern)
    text = re.sub(r"\[[^\]]*\]", "\0", text)
    while (
        flat := _GROUP.sub(lambda found: "\0" if "|" in found["inside"] or found["often"] else found["inside"], text)
    ) != text:
        text = flat
    return "" if "|" in text else "".join(chr(ord(c) - _AWAY) if ord(c) >= _AWAY else c for c in text)


BRANCHED = [rule for rule in rules() if rule.hint not in literals(rule.pattern)]


@pytest.mark.parametrize("rule", BRANCHED, ids=lambda rule: rule.id)
def test_the_hint_stands_in_every_branch_of_the_pattern(rule: Rule) -> None:
    @settings(
        max_examples=40,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.from_regex(rule.pattern, fullmatch=True))
    def check(text: str) -> None:
        assert rule.hint in text

    check()


def test_what_always_stands_there_is_told_from_what_may() -> None:
    assert literals(r"^(?P<message>fatal: (?:early|late)) \(code\)") == "^fatal: \0 (code)"
    assert literals(r"one|other") == ""
    assert len(BRANCHED) < len(rules()) / 4  # else the check above takes long, and this one is of no use
