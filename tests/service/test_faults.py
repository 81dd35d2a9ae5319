"""What goes wrong around the bot: each ends in the right state, and shows in `/readyz`, a figure and one log line."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
from postgres import PostgresProcess
from structlog.typing import EventDict
from world import World

from bot.demo.actions_state import Run
from bot.demo.state import Pull
from bot.engine.sweep import Rounds
from handlers.context import Repo

JOB = "tests/unit_tests/models/**/*.py - latest"
DATA_JOB = "tests/unit_tests/data/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n##[error]Process completed with exit code 1.\n"
REPOS = r"^/repos/"
TOKENS = r"/access_tokens$"
ARTIFACT = {"1/none_ab/attempt_0/0/stderr.log": FAILURE * 2000}


@pytest.fixture
def said() -> list[EventDict]:
    """The log lines of this test."""
    with structlog.testing.capture_logs() as lines:
        yield lines


def lines_of(said: list[EventDict], event: str) -> list[EventDict]:
    return [line for line in said if line["event"] == event]


async def a_run(world: World) -> tuple[Pull, Run]:
    pull = await world.github.open_pull(author="ada")
    return pull, await world.github.start_run(pull)


async def fail(world: World, run: Run, **more: object) -> None:
    await world.github.finish_job(run, JOB, "failure", log=FAILURE, **more)  # type: ignore[arg-type]


def explained(world: World, pull: Pull) -> bool:
    answers = world.answers(pull)
    return len(answers) == 1 and "flash_attn" in answers[0]


async def figure(world: World, name: str) -> float:
    """A line of the metrics page; 0 if it is not there yet."""
    _, text = await world.get("/metrics")
    return next((float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name + " ")), 0.0)


async def ready(world: World) -> tuple[int, dict[str, object]]:
    status, text = await world.get("/readyz")
    return status, json.loads(text)


@pytest.mark.parametrize("kind", ["status", "reset"])
async def test_github_is_unwell_for_a_moment(world: World, said: list[EventDict], kind: str) -> None:
    pull, run = await a_run(world)
    await world.idle()
    world.github.fail_next("GET", REPOS, kind, status=502, times=3)  # type: ignore[arg-type]
    await fail(world, run)
    await world.idle()
    assert explained(world, pull)
    assert lines_of(said, "github.retry")
    assert await figure(world, 'mlm_github_answers_total{outcome="unreachable"}') >= 1


async def test_github_is_away_for_longer(world: World, said: list[EventDict]) -> None:
    """The work is put off, which shows; deliveries are still taken, and all is done once GitHub is back."""
    pull, run = await a_run(world)
    await world.idle()
    world.github.fail_next("*", REPOS, status=503, times=10_000)
    await fail(world, run)
    await world.github.until(lambda: world.tasks_done("delivery", "put_off") or world.tasks_done("diagnose", "put_off"))
    status, told = await ready(world)
    assert status == 200
    assert str(told["github"]).startswith("unreachable since")
    assert not world.answers(pull)
    world.github.parts.traffic.faults.clear()
    await world.idle(within_s=80)
    assert explained(world, pull)
    assert "github" not in (await ready(world))[1]
    assert not lines_of(said, "task.gave_up")


async def test_an_answer_that_never_ends(tmp_path: Path) -> None:
    world = World(tmp_path, answer_within_s=0.5)
    world.github.add_repo("NVIDIA/Megatron-LM")
    async with world:
        pull, run = await a_run(world)
        await world.idle()
        world.github.fail_next("GET", r"/actions/jobs/\d+$", "delay", delay_s=5, times=1)
        await fail(world, run)
        await world.idle()
        assert explained(world, pull)


async def test_a_download_that_breaks_off(world: World) -> None:
    pull, run = await a_run(world)
    await world.idle()
    world.github.fail_next("GET", r"^/(?!repos|app)", "truncate", times=2)
    await fail(world, run, artifact=ARTIFACT)
    await world.idle()
    assert explained(world, pull)


async def test_a_limit_that_names_its_end_is_waited_for(world: World, said: list[EventDict]) -> None:
    pull, run = await a_run(world)
    await world.idle()
    world.github.limit_next("GET", r"/actions/jobs/\d+$", retry_after_s=1)
    await fail(world, run)
    await world.idle()
    assert explained(world, pull)
    assert len(lines_of(said, "github.rate_limited")) == 1
    assert await figure(world, 'mlm_github_answers_total{outcome="rate_limited"}') == 1


async def test_a_limit_without_an_end_puts_the_work_off_by_a_minute(world: World, said: list[EventDict]) -> None:
    pull, run = await a_run(world)
    await world.idle()
    world.github.limit_next("GET", r"/actions/jobs/\d+$", retry_after_s=None)
    await fail(world, run)
    await world.github.until(lambda: world.tasks_done("diagnose", "put_off"))
    assert str((await ready(world))[1]["github"]).startswith("rate_limited since")
    asked = len(world.github.asked("GET", REPOS))
    await asyncio.sleep(1)
    assert len(world.github.asked("GET", REPOS)) == asked, "nothing is asked meanwhile"
    assert not world.answers(pull)
    await world.stop_bot()
    await world.start_bot()
    await world.hurry()
    await world.idle()
    assert explained(world, pull)


async def test_the_hourly_limit_is_used_up(world: World) -> None:
    pull, run = await a_run(world)
    await world.idle()
    world.github.use_up_rate_limit(resets_in_s=3)
    await fail(world, run)
    await world.idle(within_s=60)
    assert explained(world, pull)
    assert await figure(world, 'mlm_tasks_total{name="delivery",outcome="done"}') >= 1


async def test_every_token_is_revoked(world: World) -> None:
    pull, run = await a_run(world)
    await world.idle()
    world.github.expire_tokens()
    await fail(world, run)
    await world.idle()
    assert explained(world, pull)


async def test_githubs_clock_jumps(world: World) -> None:
    pull, run = await a_run(world)
    await world.idle()
    world.github.advance_clock(timedelta(hours=3))
    await fail(world, run)
    await world.idle()
    assert explained(world, pull)


async def test_the_installation_is_suspended(world: World, said: list[EventDict]) -> None:
    pull, run = await a_run(world)
    await world.idle()
    world.github.expire_tokens()
    world.github.fail_next("POST", TOKENS, status=403, message="This installation has been suspended", times=1000)
    await fail(world, run)
    await world.idle()
    assert not world.answers(pull)
    assert lines_of(said, "task.refused")[0]["status"] == 403
    assert await figure(world, 'mlm_github_answers_total{outcome="refused"}') >= 1
    world.github.parts.traffic.faults.clear()
    await world.github.finish_run(run)
    await world.idle(within_s=60)
    assert explained(world, pull), "the end of the run makes up for it"


async def test_the_repository_is_deleted_while_we_work(world: World, said: list[EventDict]) -> None:
    _, run = await a_run(world)
    await world.idle()
    world.github.fail_next("GET", REPOS, status=404, message="Not Found", times=1000)
    await fail(world, run)
    await world.idle()
    assert lines_of(said, "task.refused")[0]["status"] == 404
    assert not lines_of(said, "task.gave_up")
    assert (await ready(world))[0] == 200


async def test_the_repository_is_renamed_while_we_work(world: World) -> None:
    pull, run = await a_run(world)
    await world.idle()
    await fail(world, run)
    await world.idle()
    world.github.repo.name = "Megatron-Core"
    await world.github.finish_job(run, DATA_JOB, "failure", log=FAILURE)
    await world.idle()
    assert len(world.answers(pull)) == 1, "known by its id, not by its name"
    assert "data" in world.answers(pull)[0]


async def test_a_database_server_that_is_gone_for_a_while(tmp_path: Path, said: list[EventDict]) -> None:
    with PostgresProcess.started() as server:
        world = World(tmp_path, database_url=server.url, rounds=Rounds(every_s=1.0, first_s=0.5, pause_s=0.0))
        world.github.add_repo("NVIDIA/Megatron-LM")
        async with world:
            pull, run = await a_run(world)
            await world.idle()
            await asyncio.to_thread(server.stop)
            await fail(world, run)
            refused = [one for one in world.github.deliveries if one.status_code == 503]
            assert refused
            assert lines_of(said, "delivery")[-1]["outcome"] in {"busy", "not_stored"}
            status, told = await ready(world)
            assert status == 503
            assert "database" in told["problems"]  # type: ignore[operator]
            await asyncio.to_thread(server.start)
            await world.github.until(lambda: explained(world, pull), within_s=60)
            await world.idle(within_s=60)
            assert (await ready(world))[0] == 200


async def test_a_host_that_has_no_address(tmp_path: Path, said: list[EventDict]) -> None:
    world = World(tmp_path, api_url="https://github.invalid/api/v3")
    world.github.add_repo("NVIDIA/Megatron-LM")
    async with world:
        status, told = await ready(world)
        assert status == 503
        assert list(told["problems"]) == ["github"]  # type: ignore[call-overload]
        assert await world.github.deliver("workflow_job", {"action": "completed"}) == 503
        assert lines_of(said, "github.unreachable")


async def test_a_repository_of_another_id_under_a_known_name_is_another_one(world: World) -> None:
    store = world.database.for_repo(world.github.repo.id)
    await store.remember("report-1", {"head_sha": "x"})
    other = Repo(id=world.github.repo.id + 1, full_name=world.github.repo.full_name, installation_id=1)
    assert await world.database.for_repo(other.id).recall("report-1") is None
