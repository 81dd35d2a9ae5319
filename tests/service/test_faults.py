"""What goes wrong between GitHub and us: each ends in the right state, and shows in `/readyz`, a figure, one log line.

`CASES` is the table of docs/operating.md; what concerns the database is in test_faults_database.py.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from stories import lines_of
from structlog.typing import EventDict
from world import World

from bot.app import CONTEXTS
from bot.demo.actions_state import Run
from bot.demo.state import Pull
from handlers.context import Repo

JOB = "tests/unit_tests/models/**/*.py - latest"
DATA_JOB = "tests/unit_tests/data/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n##[error]Process completed with exit code 1.\n"
REPOS = r"^/repos/"
A_JOB = r"/actions/jobs/\d+$"
TOKENS = r"/access_tokens$"
ARTIFACT = {"1/none_ab/attempt_0/0/stderr.log": FAILURE * 2000}


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


@dataclass(frozen=True)
class Case:
    """One fault. What lasts is looked at before `cure` ends it; the rest is over by itself.

    `kind`: of the episode in the log, in `/readyz` and in the figure; "": it is none. `says`: what `/readyz` tells.
    """

    begin: Callable[[World], object]
    kind: str = ""
    says: str = ""
    outcome: str = "unreachable"
    line: str = "github.trouble"
    lasts: bool = False
    answer_within_s: float = 60.0
    refused: int = 0  # with this status: the work is given up, and the end of the run makes up for it


def cure(world: World) -> None:
    world.github.parts.traffic.faults.clear()


def spoil(*args: object, **more: object) -> Callable[[World], object]:
    return lambda world: world.github.fail_next(*args, **more)  # type: ignore[arg-type]


def lock_out(status: int, message: str) -> Callable[[World], object]:
    """Take the tokens away, and give no new ones."""

    def begin(world: World) -> None:
        world.github.expire_tokens()
        world.github.fail_next("POST", TOKENS, status=status, message=message, times=1000)

    return begin


def rename(world: World) -> None:
    """Give it another name in the middle of a piece of work that knows the old one."""
    world.github.fail_next("GET", A_JOB, "delay", delay_s=0.5)
    asyncio.get_running_loop().call_later(0.3, world.github.rename_repo, world.github.repo, "Megatron-Core")


CASES = {
    "5xx": Case(spoil("GET", REPOS, status=502, times=3), "unreachable", "it answers with an error"),
    "reset": Case(spoil("GET", REPOS, "reset", times=3), "unreachable", "the connection broke"),
    "cut-answer": Case(spoil("GET", REPOS, "truncate", times=3), "unreachable", "the connection broke"),
    "slow-loris": Case(
        spoil("GET", A_JOB, "drip", delay_s=0.2), "unreachable", "no answer in time", answer_within_s=3.0
    ),
    "outage": Case(
        spoil("*", REPOS, status=503, times=10_000), "unreachable", "since 20.*: it answers with an error", lasts=True
    ),
    "secondary-limit": Case(
        lambda world: world.github.limit_next("GET", A_JOB, retry_after_s=1), "rate_limited", outcome="rate_limited"
    ),
    "primary-limit": Case(
        lambda world: world.github.use_up_rate_limit(resets_in_s=3), "rate_limited", outcome="rate_limited"
    ),
    "token-revoked": Case(lambda world: world.github.expire_tokens(), outcome="refused", line="github.token_refused"),
    "key-revoked": Case(
        lock_out(401, "A JSON web token could not be decoded"),
        "locked_out",
        "the App since 20.*: 401 A JSON web token",
        outcome="refused",
        lasts=True,
    ),
    "suspended": Case(
        lock_out(403, "This installation has been suspended"),
        "locked_out",
        r"installation \d+ since 20.*: 403 This installation has been suspended",
        outcome="refused",
        lasts=True,
        refused=403,
    ),
    "gone": Case(
        lock_out(422, "There is at least one repository that does not exist"),
        "locked_out",
        "NVIDIA/Megatron-LM since 20.*: 422 There is at least one repository that does not exist",
        outcome="refused",
        lasts=True,
        refused=422,
    ),
    "renamed": Case(rename, outcome="moved", line="github.moved"),
}


@pytest.mark.parametrize("name", CASES)
async def test_each_fault_ends_well_and_shows_once(tmp_path: Path, said: list[EventDict], name: str) -> None:
    case = CASES[name]
    world = World(tmp_path, answer_within_s=case.answer_within_s)
    world.github.add_repo("NVIDIA/Megatron-LM")
    async with world:
        pull, run = await a_run(world)
        await world.idle()
        await asked_nothing_lately(world)
        case.begin(world)
        await fail(world, run)
        if case.kind:
            await world.github.until(lambda: lines_of(said, "github.trouble"), within_s=30)
            if case.lasts:
                await it_shows(world, case)
                assert not world.answers(pull)
                cure(world)
        if case.refused:
            await world.idle(within_s=60)
            assert [line["status"] for line in lines_of(said, "task.refused")] == [case.refused]
            await world.github.finish_run(run)
        if not case.lasts:  # to hurry would only be put off again
            await world.github.until(lambda: explained(world, pull), within_s=100)
        await world.idle(within_s=100)
        assert explained(world, pull)
        assert not lines_of(said, "task.gave_up")
        await it_is_over(world, case, said)


async def asked_nothing_lately(world: World) -> None:
    """Forget the settings of the repository, so that the fault is met at the start of the work, too."""
    world.app[CONTEXTS]._configs.clear()


async def it_shows(world: World, case: Case) -> None:
    """It slows us down, and does not make us unready: a delivery that is taken now is worked on later."""
    status, told = await ready(world)
    assert (status, told["problems"]) == (200, {})
    assert list(told["degraded"]) == [f"github_{case.kind}"]  # type: ignore[call-overload]
    assert re.search(case.says, told["degraded"][f"github_{case.kind}"])  # type: ignore[index]
    assert await figure(world, f'mlm_github_troubles{{kind="{case.kind}"}}') == 1
    outcome = "refused" if case.refused else "put_off"
    await world.github.until(lambda: world.tasks_done("delivery", outcome) or world.tasks_done("diagnose", outcome))


async def it_is_over(world: World, case: Case, said: list[EventDict]) -> None:
    assert await figure(world, f'mlm_github_answers_total{{outcome="{case.outcome}"}}') >= 1
    if case.kind:
        await world.github.until(lambda: lines_of(said, "github.trouble_over"), within_s=30)
        (over,) = lines_of(said, "github.trouble_over")
        assert over["kind"] == case.kind
        assert await figure(world, f'mlm_github_troubles{{kind="{case.kind}"}}') == 0
    (line,) = lines_of(said, case.line)
    assert line.get("kind", "") == case.kind
    assert (await ready(world)) == (200, {"ready": True, "problems": {}, "degraded": {}})


async def test_a_download_that_breaks_off(world: World) -> None:
    pull, run = await a_run(world)
    await world.idle()
    world.github.fail_next("GET", r"^/(?!repos|app)", "truncate", times=2)
    await fail(world, run, artifact=ARTIFACT)
    await world.idle()
    assert explained(world, pull)


async def test_a_limit_without_an_end_puts_the_work_off_by_a_minute(world: World, said: list[EventDict]) -> None:
    pull, run = await a_run(world)
    await world.idle()
    world.github.limit_next("GET", A_JOB, retry_after_s=None)
    await fail(world, run)
    await world.github.until(lambda: world.tasks_done("diagnose", "put_off"))
    _, told = await ready(world)
    assert re.fullmatch(
        r"installation \d+ since 20\S+: 403 You have exceeded a secondary rate limit.*",
        told["degraded"]["github_rate_limited"],  # type: ignore[index]
    )
    asked = len(world.github.asked("GET", REPOS))
    await asyncio.sleep(1)
    assert len(world.github.asked("GET", REPOS)) == asked, "nothing is asked meanwhile"
    assert not world.answers(pull)
    await world.stop_bot()
    await world.start_bot()
    await world.hurry()
    await world.idle()
    assert explained(world, pull)
    assert len(lines_of(said, "github.trouble")) == 1


async def test_githubs_clock_jumps(world: World) -> None:
    pull, run = await a_run(world)
    await world.idle()
    world.github.advance_clock(timedelta(hours=3))
    await fail(world, run)
    await world.idle()
    assert explained(world, pull)


async def test_the_repository_is_deleted_while_we_work(world: World, said: list[EventDict]) -> None:
    pull, run = await a_run(world)
    await world.idle()
    world.github.fail_next("*", REPOS, status=404, message="Not Found", times=1000)
    await fail(world, run)
    await world.idle()
    assert [line["status"] for line in lines_of(said, "task.refused")] == [404], "once, and not tried again"
    assert not lines_of(said, "task.gave_up")
    assert not lines_of(said, "github.trouble")
    assert not world.answers(pull)
    assert await figure(world, 'mlm_github_answers_total{outcome="refused"}') >= 1
    assert await ready(world) == (200, {"ready": True, "problems": {}, "degraded": {}})


async def test_a_renamed_repository_is_known_by_its_id(world: World) -> None:
    pull, run = await a_run(world)
    await world.idle()
    await fail(world, run)
    await world.idle()
    world.github.rename_repo(world.github.repo, "Megatron-Core")
    await world.github.finish_job(run, DATA_JOB, "failure", log=FAILURE)
    await world.idle()
    assert len(world.answers(pull)) == 1
    assert "data" in world.answers(pull)[0]


async def test_a_host_that_has_no_address(tmp_path: Path, said: list[EventDict]) -> None:
    world = World(tmp_path, api_url="https://github.invalid/api/v3")
    world.github.add_repo("NVIDIA/Megatron-LM")
    async with world:
        status, told = await ready(world)
        assert status == 503
        assert list(told["problems"]) == ["github"]  # type: ignore[call-overload]
        assert await world.github.deliver("workflow_job", {"action": "completed"}) == 503
        async with asyncio.timeout(60):
            while await figure(world, 'mlm_github_answers_total{outcome="unreachable"}') < 8:  # twice four tries
                await asyncio.sleep(0.1)
        (line,) = lines_of(said, "github.trouble")
        assert line["kind"] == "unreachable"
        assert len(lines_of(said, "github.not_connected")) == 1
        assert "github.invalid" in line["why"]
        assert told["degraded"]["github_unreachable"].endswith("its name is not known here")  # type: ignore[index]


async def test_a_repository_of_another_id_under_a_known_name_is_another_one(world: World) -> None:
    store = world.database.for_repo(world.github.repo.id)
    await store.remember("report-1", {"head_sha": "x"})
    other = Repo(id=world.github.repo.id + 1, full_name=world.github.repo.full_name, installation_id=1)
    assert await world.database.for_repo(other.id).recall("report-1") is None
