"""A run is started again without being asked only where the infrastructure is proven to be at fault, and once."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from stories import DATA, FAILURE, MODELS, MOE, fail_again, red_run, replies, surprises
from world import World

#: What the runner writes when it lost its machine.
LOST = "##[error]The self-hosted runner lost communication with the server. Verify the machine is running.\n"
#: A download that broke off: the infrastructure's fault, too, but another one.
UNREACHABLE = (
    "fatal: unable to access 'https://github.com/x/y/': Could not resolve host: github.com\n"
    "##[error]Process completed with exit code 128.\n"
)
AT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")


@pytest.fixture
async def eager(tmp_path: Path) -> AsyncIterator[World]:
    """A world whose repository wants automatic retries."""
    world = World(tmp_path / "data")
    world.github.add_repo("NVIDIA/Megatron-LM").files[".github/mlm.yml"] = b"retry: {enabled: true, max_leaves: 2}\n"
    async with world:
        world.github.add_user("ada", "write")
        yield world
    assert surprises(world) == []


def reruns(world: World) -> int:
    return len(world.github.asked("POST", "/rerun"))


async def why(world: World, pull: object) -> str:
    await world.github.comment(pull, "ada", "/mlm why")  # type: ignore[arg-type]
    await world.idle(within_s=60)
    return replies(world, pull)[-1]  # type: ignore[arg-type]


async def test_a_lost_runner_is_retried_once_and_announced(eager: World) -> None:
    pull, run = await red_run(eager, MODELS, log=LOST)
    assert run.attempt_number == 2
    where = f"{eager.github.state.web_url}/NVIDIA/Megatron-LM/actions/runs/{run.id}"
    assert replies(eager, pull) == [
        (
            f"Retried automatically: [`CICD Megatron-LM`]({where}), attempt 2 repeats the failed job, because it "
            "failed by `runner_lost`, which is the infrastructure's fault and not this change's. This is done once a "
            "run.\n"
        )
    ]
    await fail_again(eager, run, MODELS, log=LOST)
    assert run.attempt_number == 2, "only a first attempt is retried"
    other, again = await red_run(eager, MODELS, log=LOST, author="bob")
    assert again.attempt_number == 1
    assert "the same failure was retried within the last day" in await why(eager, other)


async def test_the_codes_own_faults_are_not_retried(eager: World) -> None:
    pull, _ = await red_run(eager, MODELS, log=FAILURE)
    assert reruns(eager) == 0
    assert "not surely the infrastructure's fault" in await why(eager, pull)


async def test_many_failures_are_no_accident(eager: World) -> None:
    pull, _ = await red_run(eager, MODELS, DATA, MOE, log=LOST)
    assert reruns(eager) == 0
    assert "3 jobs failed, more than 2" in await why(eager, pull)


async def test_one_failure_in_two_jobs_is_no_accident(eager: World) -> None:
    pull, _ = await red_run(eager, MODELS, DATA, log=LOST)
    assert reruns(eager) == 0
    assert "2 jobs failed in the same way" in await why(eager, pull)


async def test_nothing_is_retried_unless_the_repository_wants_it(world: World) -> None:
    await red_run(world, MODELS, log=LOST)
    assert reruns(world) == 0


async def test_the_merge_queue_is_left_alone(eager: World) -> None:
    pull = await eager.github.open_pull(author="ada")
    branch = f"gh-readonly-queue/main/pr-{pull.number}-{pull.head_sha}"
    run = await eager.github.start_run(pull, branch=branch, event="merge_group", head_sha="c" * 40)
    await fail_again(eager, run, MODELS, log=LOST)
    assert reruns(eager) == 0
    assert "in the merge queue" in eager.answers(pull)[0]


async def test_no_more_gpu_jobs_a_day_than_the_repository_allows(tmp_path: Path) -> None:
    """One job with what depends on it fits; the next, which failed in another way, would be too much."""
    world = World(tmp_path / "data")
    world.github.add_repo("NVIDIA/Megatron-LM").files[".github/mlm.yml"] = (
        b"retry: {enabled: true, gpu_jobs_per_day: 1}\n"
    )
    async with world:
        world.github.add_user("ada", "write")
        _, first = await red_run(world, MODELS, log=LOST)
        assert first.attempt_number == 2
        pull, second = await red_run(world, MODELS, log=UNREACHABLE, author="bob")
        assert (second.attempt_number, reruns(world)) == (1, 1)
        assert AT.sub("(then)", await why(world, pull)) == (
            f"(then), not done: **automatic retry**, asked by `mlm-bot`, run {second.id}, attempt 1, head "
            f"`{pull.head_sha[:7]}`. Why: 1 GPU job would be more than the 0 left of 1 a day\n"
        )
        assert surprises(world) == []


async def test_a_retry_that_never_comes_through_is_not_announced(eager: World) -> None:
    eager.github.fail_next("POST", "/rerun-failed-jobs$", "reset", times=1000)
    pull, run = await red_run(eager, MODELS, log=LOST)
    assert (run.attempt_number, reruns(eager), replies(eager, pull)) == (1, 3, [])
    assert "it is not known whether attempt 2 was started" in await why(eager, pull)
