"""Signed bodies that are not what GitHub sends: each is work, no work, or a malformed delivery; never a crash."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.demo.check_state import CheckRun
from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull
from handlers.context import Event
from handlers.events import KEEPERS, slim

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just("2026-01-01T00:00:00Z"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
KINDS = sorted(KEEPERS)


@pytest.fixture(scope="module")
def payloads() -> dict[tuple[str, str], dict[str, Any]]:
    return asyncio.run(real_payloads())


async def real_payloads() -> dict[tuple[str, str], dict[str, Any]]:
    async with SimulatedGitHub() as github:
        github.add_repo("NVIDIA/Megatron-LM")
        pull = await github.open_pull(labels=["bug"])
        await github.finish_run(await github.start_run(pull))
        await github.unlabel(pull, "bug")
        comment = await github.comment(pull, "ada", "/mlm help")
        await github.edit(comment, "/mlm rerun failed")
        await github.review(pull, "ada", "/mlm help")
        await github.review_comment(pull, "ada", "/mlm help")
        check = own_check(github, pull)
        await github.press(check, "mute", "ada")
        await github.rerequest(check, "ada")
        await github.rerequest_suite(check, "ada")
        await github.push(pull)
        await github.close_pull(pull)
        found = {(one.event, one.action or ""): one.payload for one in github.deliveries}
    # GitHub's edits of a review differ in these two fields only.
    for event, first in (("pull_request_review", "submitted"), ("pull_request_review_comment", "created")):
        found[event, "edited"] = {**found[event, first], "action": "edited", "changes": {"body": {"from": "hello"}}}
    return found


def own_check(github: SimulatedGitHub, pull: Pull) -> CheckRun:
    state = github.state
    check = CheckRun(state.next_id("job"), github.app_id, 1, "mlm-bot / diagnosis", pull.head_sha, state.clock())
    check.actions = [{"label": "Mute", "identifier": "mute", "description": "No more comments"}]
    github.repo_of(pull).checks[check.id] = check
    return check


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a document, outer ones first."""
    if at:
        yield at
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*at, key))


def tried(event: str, payload: Any) -> Event | None:
    try:
        return slim(event, "guid-12345678", payload, app_slug="mlm-bot", app_id=1)
    except ValueError:
        return None


@pytest.mark.parametrize("kind", KINDS, ids=[".".join(kind) for kind in KINDS])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_real_payload_with_one_thing_changed(
    kind: tuple[str, str], data: Any, payloads: dict[tuple[str, str], dict[str, Any]]
) -> None:
    payload = copy.deepcopy(payloads[kind])
    where = data.draw(st.sampled_from(list(places(payload))))
    inner = payload
    for key in where[:-1]:
        inner = inner[key]
    if data.draw(st.booleans()):
        inner[where[-1]] = data.draw(JSON)
    else:
        del inner[where[-1]]
    found = tried(kind[0], payload)
    assert found is None or json.dumps(found.data)


@given(st.sampled_from(KINDS), st.dictionaries(st.text(max_size=10), JSON, max_size=5))
@settings(max_examples=200, deadline=None)
def test_any_json_at_all(kind: tuple[str, str], payload: dict[str, Any]) -> None:
    assert tried(kind[0], {**payload, "action": kind[1]}) is None
