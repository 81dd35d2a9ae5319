"""Runs begin, are repeated and replaced: the one comment follows, and revives nothing that passed since."""

from __future__ import annotations

from typing import Any

import pytest
from stories import MODELS, red_run, replies
from test_story_failure import fail
from world import World

from bot.app import DATABASE
from bot.demo.github import SimulatedGitHub
from handlers.commands import rerun as command


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


async def test_a_failure_that_passed_since_is_not_told_again_when_a_later_attempt_skips_its_job(
    world: World, github: SimulatedGitHub
) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await fail(world, run, "port")
    await github.finish_run(run)
    await world.idle(within_s=60)
    await github.rerun(run, by="ada")
    await github.finish_run(run)
    await world.idle(within_s=60)
    assert "### 🟢 The failed job passes in attempt 2\n" in world.answers(pull)[0]

    await github.rerun(run, by="ada")
    await fail(world, run, "lint")
    await github.finish_run(run)
    await world.idle(within_s=60)
    (comment,) = world.answers(pull)
    assert "### 🔴 Lint failed\n" in comment
    assert "attempt 3: 1 failed" in comment
    assert "- **Where:** `megatron/core/transformer/attention.py`" in comment
    assert comment.index("<summary>What had failed and passes now") < comment.index("A port was taken")


async def test_a_commit_that_nobody_vetted_says_so_until_its_run_begins(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await fail(world, run, "cuda-oom")
    await github.finish_run(run)
    await world.idle(within_s=60)
    await github.push(pull, mirror=False)
    await world.idle(within_s=60)
    (comment,) = world.answers(pull)
    assert "### ⚪ CI has not run for this commit\n" in comment
    assert "the commit is not mirrored" in comment
    assert f"`/ok to test {pull.head_sha}`" in comment

    run = await github.vet(pull)
    await world.idle(within_s=60)
    (comment,) = world.answers(pull)
    assert "### 🟡 No failed job so far\n" in comment
    assert "/ok to test" not in comment
    assert "an older commit" in comment

    await github.finish_run(run)
    await world.idle(within_s=60)
    (comment,) = world.answers(pull)
    assert "### 🟢 All jobs pass\n" in comment
    assert "an older commit" not in comment


async def test_two_pull_requests_on_one_commit_are_told_their_own_failures(
    world: World, github: SimulatedGitHub
) -> None:
    one, two = await github.open_pull(author="ada"), await github.open_pull(author="bob")
    two.head_sha = one.head_sha
    github.repo.branches[two.mirror_branch] = one.head_sha
    ones, twos = await github.start_run(one), await github.start_run(two)
    assert ones.head_sha == twos.head_sha
    await fail(world, ones, "cuda-oom")
    await fail(world, twos, "port")
    await fail(world, twos, "segfault")
    await github.finish_run(ones)
    await github.finish_run(twos)
    await world.idle(within_s=60)
    (of_one,), (of_two,) = world.answers(one), world.answers(two)
    assert "### 🔴 Out of GPU memory on rank 5 of 8\n" in of_one
    assert "### 🔴 2 root causes in 2 failed jobs\n" in of_two
    assert "Out of GPU memory" not in of_two


async def test_answers_tell_what_is_there_and_where_to_look(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await fail(world, run, "lint")
    await github.finish_run(run)
    await world.idle(within_s=60)
    lines = ("status", "analyze", "rerun functional gpt3", "rerun all --dryrun", "version; /mlm ping")
    await github.comment(pull, "ada", "\n".join(f"/mlm {line}" for line in lines))
    await world.idle(within_s=60)
    report, answer = world.answers(pull)
    (counts,) = [line for line in report.split("\n") if "attempt 1" in line]
    assert "1 failed (+2 jobs that only follow it), " in counts
    assert counts.split("attempt 1: ")[1] in answer, "the same numbers in the comment and in /mlm status"
    (first, _) = github.comments(pull, by_app=True)
    assert f"My [comment]({first_url(world, pull.number, first.id)}) changes if they say something else now" in answer
    assert "The newest attempt has not come to any functional job" in answer
    assert "Did you mean `/mlm rerun all --dry-run`?" in answer
    assert "Did you mean `/mlm version`, `/mlm ping`?" in answer


def first_url(world: World, number: int, comment_id: int) -> str:
    return f"{world.github.state.web_url}/NVIDIA/Megatron-LM/pull/{number}#issuecomment-{comment_id}"


@pytest.mark.parametrize(
    ("message", "told", "noted"),
    [
        ("The workflow run containing this job is already running", "Already under way: ", True),
        ("Resource not accessible by integration", "GitHub refused (403): ", False),
    ],
)
async def test_a_refused_rerun_says_why_and_is_taken_for_ours_only_if_it_may_be(
    world: World, github: SimulatedGitHub, message: str, told: str, noted: bool
) -> None:
    """Somebody may be quicker: what runs then is not told as GitHub's refusal."""
    pull, run = await red_run(world, "tests/unit_tests/models/**/*.py - latest")
    github.fail_next("POST", r"/actions/jobs/\d+/rerun$", status=403, message=message)
    await github.comment(pull, "ada", "/mlm rerun unit models")
    await world.idle(within_s=60)
    (answer,) = replies(world, pull)
    assert answer.startswith(told)
    store = world.app[DATABASE].for_repo(github.repo.id)
    assert (await store.recall(f"started-{run.id}-2") is not None) == noted


async def test_who_was_quicker_is_seen_after_the_last_look_at_the_run(
    world: World, github: SimulatedGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    pull, run = await red_run(world, MODELS)
    look = command.guarded

    async def and_then_somebody_presses_the_button(*asked: Any, **more: Any) -> Any:
        found = await look(*asked, **more)
        monkeypatch.undo()
        await github.rerun_job(run, MODELS, by="bob")
        return found

    monkeypatch.setattr(command, "guarded", and_then_somebody_presses_the_button)
    await github.comment(pull, "ada", "/mlm rerun unit models")
    await world.idle()
    assert run.attempt_number == 2
    (answer,) = replies(world, pull)
    assert answer.startswith("Already under way: ")
