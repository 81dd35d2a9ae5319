"""Deliveries over HTTP to the running app: duplicates, forgeries, a GitHub that is away."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from uuid import uuid4

import pytest
from aiohttp import ClientSession
from world import World

from bot.app import ENGINE

JOB = "tests/unit_tests/models/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n##[error]Process completed with exit code 1.\n"


def writes_of(world: World) -> int:
    """How many requests of the bot could have changed something; a new token changes nothing."""
    return len([one for one in world.github.requests if one.method != "GET" and "access_tokens" not in one.path])


async def test_the_same_delivery_many_times_at_once_has_one_effect(world: World) -> None:
    world.github.add_user("ada", "write")
    pull = await world.github.open_pull(author="ada")
    run = await world.github.start_run(pull)
    failed = await world.github.finish_job(run, JOB, "failure", log=FAILURE)
    await world.idle()
    (before,) = world.answers(pull)
    done = world.tasks_done("delivery")
    writes = writes_of(world)

    assert await asyncio.gather(*(world.deliver(failed) for _ in range(8))) == [202] * 8
    await world.idle()
    assert world.answers(pull) == [before]
    assert world.tasks_done("delivery") == done
    assert writes_of(world) == writes


@pytest.mark.parametrize("forgery", ["unsigned", "sha1", "wrong"])
async def test_a_forged_delivery_leaves_no_trace(world: World, forgery: str) -> None:
    body = {"action": "completed", "workflow_job": {"id": 1}}
    headers = {
        "unsigned": {"X-Hub-Signature-256": ""},
        "sha1": {"X-Hub-Signature-256": "", "X-Hub-Signature": "sha1=" + "0" * 40},
        "wrong": {"X-Hub-Signature-256": "sha256=" + "0" * 64},
    }[forgery]
    assert await world.github.deliver("workflow_job", body, headers=headers) == 401
    assert sum((await world.app[ENGINE].depths()).values()) == 0


async def test_real_events_that_need_no_work_do_not_touch_the_engine(world: World) -> None:
    assert await world.github.deliver("ping", {"zen": "Keep it logically awesome.", "hook_id": 1}) == 200
    assert await world.github.deliver("star", {"action": "created"}) == 202
    assert await world.github.deliver("workflow_job", {"action": "queued"}) == 202
    assert await world.github.deliver("workflow_job", {"action": "completed"}) == 202, (
        "malformed, and said so in the log"
    )
    status, text = await world.get("/metrics")
    assert status == 200
    assert 'mlm_deliveries_total{event="star",outcome="ignored"} 1.0' in text
    assert 'mlm_deliveries_total{event="workflow_job",outcome="malformed"} 1.0' in text
    work = [line for line in text.splitlines() if line.startswith("mlm_tasks_total{")]
    assert 'mlm_tasks_total{name="diagnose",outcome="gave_up"} 0.0' in work, "an alarm has to see it grow from 0"
    assert [line for line in work if not line.endswith(" 0.0")] == []


async def test_the_probes(world: World) -> None:
    assert (await world.get("/healthz"))[0] == 200
    status, text = await world.get("/readyz")
    assert (status, json.loads(text)) == (200, {"ready": True, "problems": {}, "degraded": {}})
    assert (await world.get("/"))[0] == 404


async def test_a_github_that_is_away_at_the_start_is_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.github.add_repo("NVIDIA/Megatron-LM")
    await world.github.start()
    try:
        world.github.fail_next("GET", "/app$", status=502, times=1000)
        await world.start_bot()
        status, text = await world.get("/readyz")
        assert (status, list(json.loads(text)["problems"])) == (503, ["github"])
        assert await world.github.deliver("workflow_job", {"action": "completed"}) == 503
        world.github.parts.traffic.faults.clear()
        async with asyncio.timeout(20):
            while (await world.get("/readyz"))[0] != 200:
                await asyncio.sleep(0.2)
    finally:
        await world.stop_bot()
        await world.github.close()


async def test_a_body_that_is_no_json_is_refused_before_it_is_read(world: World) -> None:
    headers = {"X-GitHub-Event": "ping", "X-GitHub-Delivery": str(uuid4())}
    async with (
        ClientSession() as session,
        session.post(f"{world.url}/webhook", data={"payload": "{}"}, headers=headers) as answer,
    ):
        assert answer.status == 415
