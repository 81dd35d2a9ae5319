"""The literals that are looked for before a secret's pattern: no text that has the secret is without them."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handlers.render.redaction import KINDS, _plain


@pytest.mark.parametrize("number", range(len(KINDS)), ids=[f"{n}-{kind}" for n, (kind, _, _) in enumerate(KINDS)])
@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_a_kinds_pattern_finds_holds_a_hint(number: int, data: st.DataObject) -> None:
    _, hints, secret = KINDS[number]
    text = data.draw(st.from_regex(re.compile(secret.pattern.replace("16384", "64").replace("4096", "64"))))
    assert any(hint in _plain(text) for hint in hints)
