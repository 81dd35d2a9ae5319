"""A job fails: one comment says why, follows what happens next, and never speaks out of turn."""

from __future__ import annotations

import pytest
from world import World

from bot.demo.actions_state import Job, Run
from bot.demo.failures.catalogue import CATALOGUE
from bot.demo.failures.scene import Scene
from bot.demo.github import SimulatedGitHub

MODELS = "tests/unit_tests/models/**/*.py - latest"
DATA = "tests/unit_tests/data/**/*.py - latest"
OOM = "megatron/core/transformer/attention.py"


async def fail(world: World, run: Run, kind: str, *, job: str | None = None) -> Job:
    """Make a job fail with one of the packaged failures."""
    failure = CATALOGUE[kind]
    name = job or failure.job_name
    remains = failure.build(Scene(name, at=world.github.state.clock(), sha=run.head_sha))
    await world.github.finish_job(run, name, "failure", log=remains.log, artifact=remains.artifact, step=remains.step)
    return world.github.job(run, name)


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


async def test_a_failed_job_gets_one_comment_that_says_what_failed_first(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await fail(world, run, "cuda-oom")
    await world.idle()
    (comment,) = world.answers(pull)
    assert "### 🔴 Out of GPU memory on rank 5 of 8" in comment
    assert pull.head_sha[:7] in comment
    assert "attempt 1" in comment
    assert "`tests/unit_tests/models/**/*.py - latest`" in comment
    assert "still running" in comment

    await github.finish_run(run)
    await world.idle(within_s=60)
    (comment,) = world.answers(pull)
    assert "Out of GPU memory on rank 5 of 8" in comment
    assert "still running" not in comment
    assert "Nemo_CICD_Test" not in comment


async def test_two_jobs_of_one_cause_are_one_block_and_two_causes_are_two(
    world: World, github: SimulatedGitHub
) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await fail(world, run, "cuda-oom")
    await fail(world, run, "cuda-oom", job=DATA)
    await fail(world, run, "port")
    await github.finish_run(run)
    await world.idle(within_s=60)
    (comment,) = world.answers(pull)
    assert "2 root causes in 3 failed jobs" in comment
    assert comment.count("**First error:**") == 2


async def test_the_comment_turns_green_when_a_rerun_passes(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await fail(world, run, "port")
    await github.finish_run(run)
    await world.idle(within_s=60)
    await github.rerun(run, by="ada", failed_only=True)
    await github.finish_run(run)
    await world.idle(within_s=60)
    (comment,) = world.answers(pull)
    assert "### 🟢 The failed job passes in attempt 2\n" in comment


async def test_a_failure_of_an_older_head_is_not_told_as_one_of_the_new(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.push(pull, mirror=False)
    await fail(world, run, "cuda-oom")
    await world.idle()
    assert world.answers(pull) == []


async def test_a_push_makes_the_comment_say_that_its_results_are_old(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    old = pull.head_sha
    await fail(world, run, "cuda-oom")
    await github.finish_run(run)
    await world.idle(within_s=60)
    await github.push(pull)
    await world.idle()
    (comment,) = world.answers(pull)
    assert "Out of GPU memory" not in comment
    assert f"`{old[:7]}`, an older commit" in comment


async def test_a_closed_pull_request_is_left_in_peace(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.close_pull(pull)
    await fail(world, run, "cuda-oom")
    await world.idle()
    assert world.answers(pull) == []


async def test_a_green_run_says_nothing(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.finish_run(run)
    await world.idle()
    assert world.answers(pull) == []


async def test_only_a_gate_red(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.finish_job(run, "Nemo_CICD_Test", "failure")
    await github.finish_run(run)
    await world.idle()
    (comment,) = world.answers(pull)
    assert "### 🔴 Only gates failed" in comment
    assert "`Nemo_CICD_Test`" in comment


async def test_a_missed_delivery_is_made_up_for_at_the_end_of_the_run(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    url = world.url
    github.set_webhook_url(None)
    await fail(world, run, "cuda-oom")
    github.set_webhook_url(f"{url}/webhook")
    await github.finish_run(run)
    await github.until(lambda: world.answers(pull), within_s=30)
    assert "Out of GPU memory" in world.answers(pull)[0]


@pytest.mark.parametrize(
    ("artifact", "words"),
    [
        (b"this is no zip file", "**Not read:**"),
        ("expired", "expired"),
        ("missing", "log artifact"),
    ],
)
async def test_what_cannot_be_read_is_said_and_the_log_still_answers(
    world: World, github: SimulatedGitHub, artifact: bytes | str, words: str
) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    remains = CATALOGUE["cuda-oom"].build(Scene(MODELS, at=github.state.clock(), sha=run.head_sha))
    content = remains.artifact if artifact in {"expired", "missing"} else artifact
    url = world.url
    github.set_webhook_url(None)
    await github.finish_job(run, MODELS, "failure", log=remains.log, artifact=content)
    for found in github.artifacts(run):
        found.expired = artifact == "expired"
        if artifact == "missing":
            github.repo.artifacts.pop(found.id)
    github.set_webhook_url(f"{url}/webhook")
    for delivery in [d for d in github.deliveries if d.event == "workflow_job" and d.action == "completed"][-1:]:
        assert await world.deliver(delivery) == 202
    await world.idle()
    (comment,) = world.answers(pull)
    assert words in comment
    assert "🔴" in comment


async def test_a_locked_conversation_is_no_reason_to_try_for_ever(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    pull.locked = True
    run = await github.start_run(pull)
    await fail(world, run, "cuda-oom")
    await world.idle()
    assert world.answers(pull) == []
    assert len(github.asked("POST", r"/comments$")) <= 2


async def test_a_failure_in_the_merge_queue_is_told_on_its_pull_request(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    branch = f"gh-readonly-queue/main/pr-{pull.number}-{'c' * 40}"
    run = await github.start_run(pull, branch=branch, head_sha=pull.merge_commit_sha, event="merge_group")
    await fail(world, run, "cuda-oom")
    await github.finish_run(run)
    await world.idle(within_s=60)
    (comment,) = world.answers(pull)
    assert "in the merge queue" in comment
    assert "Out of GPU memory on rank 5 of 8" in comment


async def test_a_cancelled_run_is_no_failure(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.start_job(run, MODELS)
    await github.cancel_run(run)
    await world.idle()
    assert world.answers(pull) == []
