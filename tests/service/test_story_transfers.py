"""A repository or an issue that moves elsewhere: what was known moves with the repository, nothing is said twice."""

from __future__ import annotations

import pytest
from stories import MODELS, fail_again, red_run, replies, report
from world import World

from bot.demo.github import SimulatedGitHub


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


async def test_a_transferred_repository_keeps_its_memory_and_its_comment(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    await github.comment(pull, "ada", "/mlm rerun failed")
    await world.idle(within_s=60)
    before = [comment.id for comment in github.comments(pull, by_app=True)]
    github.transfer_repo(github.repo, to=github.installation("megatron-lab"))
    seen = len(github.requests)
    await fail_again(world, run, MODELS)
    assert [comment.id for comment in github.comments(pull, by_app=True)] == before, "the comment is found and edited"
    assert "attempt 2" in report(world, pull)
    await github.comment(pull, "ada", "/mlm why")
    await world.idle(within_s=60)
    assert "**re-run (failed)**, asked by `ada`" in replies(world, pull)[-1]
    paths = [one.path for one in github.requests[seen:] if "/repos/" in one.path]
    assert {path.startswith("/repos/megatron-lab/Megatron-LM/") for path in paths} == {True}


async def test_what_was_asked_under_the_old_owner_is_given_up_quietly(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    await world.stop_bot()
    await github.comment(pull, "ada", "/mlm rerun failed")
    asked = github.deliveries[-1]
    github.transfer_repo(github.repo, to=github.installation("megatron-lab"))
    await world.start_bot()
    seen = len(github.requests)
    await world.deliver(asked)
    await world.idle(within_s=60)
    assert (run.attempt_number, replies(world, pull)) == (1, [])
    assert {f"{one.method} {one.path.rsplit('/', 1)[1]} {one.status}" for one in github.requests[seen:]} == {
        "POST access_tokens 422"
    }, "the old owner's installation reaches it no more, and nothing else is tried"
    assert world.tasks_done("delivery", "refused") == 1


async def test_a_transferred_issue_is_answered_where_it_is_now(world: World, github: SimulatedGitHub) -> None:
    other = github.add_repo("NVIDIA/NeMo")
    issue = await github.open_issue(github.repo)
    await world.stop_bot()
    await github.comment(issue, "ada", "/mlm ping")
    asked = github.deliveries[-1]
    github.transfer_issue(issue, to=other)
    await world.start_bot()
    seen = len(github.requests)
    await world.deliver(asked)
    await world.idle(within_s=60)
    assert replies(world, issue) == []
    assert {(one.method, one.status) for one in github.requests[seen:] if "/issues/" in one.path} == {
        ("GET", 404),
        ("POST", 404),
    }, "the issue is gone from there, and nothing is written elsewhere in its stead"
    await github.comment(issue, "ada", "/mlm ping")
    await world.idle(within_s=60)
    assert replies(world, issue) == ["I am here.\n"]
