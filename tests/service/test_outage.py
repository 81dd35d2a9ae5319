"""The bot was away for hours: what it missed is asked for again, once, and what GitHub forgot is read from what is."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from world import World

from bot.demo.actions_state import Run
from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull
from bot.engine.sweep import Rounds

JOB = "tests/unit_tests/models/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n##[error]Process completed with exit code 1.\n"
IMPATIENT = Rounds(every_s=0.5, first_s=0.3, rescan_every_s=3.0, window_s=0.2, pause_s=0.0)
PULLS = 6
REDELIVERIES = r"^/app/hook/deliveries/\d+/attempts$"
RERUNS = r"/actions/runs/\d+/rerun"


def new_world(path: Path, rounds: Rounds = IMPATIENT) -> World:
    world = World(path, rounds=rounds)
    world.github.add_repo("NVIDIA/Megatron-LM")
    world.github.add_user("ada", "write")
    return world


async def open_pulls(world: World) -> list[tuple[Pull, Run]]:
    found = []
    for _ in range(PULLS):
        pull = await world.github.open_pull(author="ada")
        found.append((pull, await world.github.start_run(pull)))
    return found


async def happen(world: World, pairs: list[tuple[Pull, Run]]) -> None:
    """A job fails on each, then half of the pull requests get a label, the others a question."""
    for number, (pull, run) in enumerate(pairs):
        await world.github.finish_job(run, JOB, "failure", log=FAILURE)
        await world.github.finish_run(run)
        if number % 2:
            await world.github.label(pull, "Run tests")
        else:
            await world.github.comment(pull, "ada", "/mlm help")


async def quiet(world: World, *, rounds: int = 3) -> None:
    """Return when sweeps find nothing more to do."""
    looked = -1
    while rounds:
        await asyncio.sleep(0.8)
        await world.idle(within_s=90)
        before, looked = looked, len(world.github.asked("GET", r"^/app/hook/deliveries/\d+$"))
        rounds -= before == looked


def answered(world: World, pairs: list[tuple[Pull, Run]]) -> None:
    for number, (pull, run) in enumerate(pairs):
        report, other = sorted(world.answers(pull), key=lambda body: "mlm-bot:report" not in body)
        assert "flash_attn" in report
        assert ("attempt 2" in other) if number % 2 else ("/mlm rerun" in other)
        assert run.attempt_number == (2 if number % 2 else 1)


async def test_hours_of_missed_deliveries_are_asked_for_once_each(tmp_path: Path) -> None:
    world = new_world(tmp_path)
    async with world:
        pairs = await open_pulls(world)
        await quiet(world, rounds=1)
        world.github.set_webhook_url(None)
        before = len(world.github.deliveries)
        await happen(world, pairs)
        missed = world.github.deliveries[before:]
        assert len(missed) > 200
        assert not any(one.ok for one in missed)
        assert not any(world.answers(pull) for pull, _ in pairs)
        world.github.advance_clock(timedelta(hours=5))

        world.github.set_webhook_url(f"{world.url}/webhook")
        await quiet(world)
        answered(world, pairs)

        asked = Counter(again.guid for again in world.github.deliveries if again.redelivery)
        assert set(asked.values()) == {1}
        events = {(again.event, again.action) for again in world.github.deliveries if again.redelivery}
        assert ("workflow_job", "queued") not in events
        assert set(asked) <= {one.guid for one in missed}
        assert f'mlm_sweep_total{{what="redelivered"}} {len(asked)}.0' in (await world.get("/metrics"))[1]

        requests = len(world.github.asked("POST", REDELIVERIES))
        await quiet(world, rounds=1)
        assert len(world.github.asked("POST", REDELIVERIES)) == requests, "what was asked for is left alone"


async def test_what_arrived_at_the_second_try_is_not_asked_for(tmp_path: Path) -> None:
    world = new_world(tmp_path, Rounds(every_s=0))
    async with world:
        pull = await world.github.open_pull(author="ada")
        run = await world.github.start_run(pull)
        world.github.set_webhook_url(None)
        failed = await world.github.finish_job(run, JOB, "failure", log=FAILURE)
        world.github.set_webhook_url(f"{world.url}/webhook")
        assert await world.deliver(failed) == 202
        await world.idle()
        assert len(world.answers(pull)) == 1
        world.rounds = IMPATIENT
        await world.stop_bot()
        await world.start_bot()
        await quiet(world, rounds=2)
        assert not [one for one in world.github.deliveries if one.redelivery and one.guid == failed.guid][1:]
        assert len(world.answers(pull)) == 1


async def test_a_delivery_that_fails_each_time_is_given_up(tmp_path: Path) -> None:
    world = new_world(tmp_path)
    async with world:
        pull = await world.github.open_pull(author="ada")
        world.github.set_webhook_url(None)
        await world.github.comment(pull, "ada", "/mlm help")
        world.github.advance_clock(timedelta(seconds=-10))  # each try is old enough to be looked at
        await world.github.until(lambda: len(world.github.asked("POST", REDELIVERIES)) >= 5, within_s=30)
        await asyncio.sleep(2)
        assert len(world.github.asked("POST", REDELIVERIES)) == 5


@pytest.mark.parametrize("first_look", [True, False])
async def test_what_github_forgot_is_read_from_what_there_is(tmp_path: Path, first_look: bool) -> None:
    """Days without the bot: no delivery is left. A repository that it never saw before is left in peace."""
    world = new_world(tmp_path, IMPATIENT if first_look else Rounds(every_s=0))
    async with world:
        if first_look:
            await world.github.until(lambda: world.tasks_done("rescan") >= 1, within_s=30)
        await asyncio.sleep(1.1)  # GitHub stamps in whole seconds
        await world.stop_bot()
        pairs = await open_pulls(world)
        await happen(world, pairs)
        world.github.deliveries.clear()
        world.rounds = IMPATIENT
        await world.start_bot()
        await quiet(world)
        for number, (pull, run) in enumerate(pairs):
            reports = [body for body in world.answers(pull) if "mlm-bot:report" in body]
            assert len(reports) == first_look
            assert run.attempt_number == (2 if number % 2 and first_look else 1)
        assert len(world.github.asked("POST", RERUNS)) == (PULLS // 2 if first_look else 0)


@pytest.mark.parametrize(("enterprise", "days", "kept"), [(False, 3.1, False), (True, 6.9, True)])
async def test_github_keeps_what_failed_for_days(tmp_path: Path, enterprise: bool, days: float, kept: bool) -> None:
    """What it has forgotten shows in the runs and the labels; a question is then lost."""
    world = World(tmp_path, github=SimulatedGitHub(enterprise=enterprise), rounds=IMPATIENT)
    world.github.add_repo("NVIDIA/Megatron-LM")
    world.github.add_user("ada", "write")
    async with world:
        await world.github.until(lambda: world.tasks_done("rescan") >= 1, within_s=30)
        await asyncio.sleep(1.1)  # GitHub stamps in whole seconds
        url = world.url
        world.github.set_webhook_url(None)
        pull = await world.github.open_pull(author="ada")
        run = await world.github.start_run(pull)
        await world.github.finish_job(run, JOB, "failure", log=FAILURE)
        await world.github.finish_run(run)
        await world.github.comment(pull, "ada", "/mlm help")
        world.github.advance_clock(timedelta(days=days))
        world.github.set_webhook_url(f"{url}/webhook")
        await quiet(world)
        answers = world.answers(pull)
        assert len([body for body in answers if "mlm-bot:report" in body]) == 1
        assert len([body for body in answers if "mlm-bot:reply" in body]) == kept
        asked = Counter(again.guid for again in world.github.deliveries if again.redelivery)
        assert set(asked.values()) == ({1} if kept else set())


async def test_a_push_that_nobody_told_us_of_is_seen(tmp_path: Path) -> None:
    """A comment on failures of a commit that is the head no more has to say so."""
    world = new_world(tmp_path)
    async with world:
        await world.github.until(lambda: world.tasks_done("rescan") >= 1, within_s=30)
        pull = await world.github.open_pull(author="ada")
        run = await world.github.start_run(pull)
        await world.github.finish_job(run, JOB, "failure", log=FAILURE)
        await world.idle(within_s=90)
        assert "flash_attn" in world.answers(pull)[0]
        url = world.url
        world.github.set_webhook_url(None)
        await world.github.push(pull, mirror=False)
        world.github.deliveries.clear()
        world.github.set_webhook_url(f"{url}/webhook")
        await world.github.until(lambda: "CI has not run for this commit" in world.answers(pull)[0], within_s=60)
