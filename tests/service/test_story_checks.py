"""Our check run says what the comment says; its buttons ask for the same rights as a command."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories import FAILURE, MODELS, fail_again, red_run, replies
from world import World

from bot.demo.check_state import CheckRun
from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull

#: A request of the bot that no story could expect fails it.
NOTHING_UNEXPECTED = True


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


def only_check(github: SimulatedGitHub, pull: Pull) -> CheckRun:
    (check,) = github.checks(pull)
    return check


def link(github: SimulatedGitHub, run_id: int, attempt: int) -> str:
    return f"[`CICD Megatron-LM`]({github.state.web_url}/NVIDIA/Megatron-LM/actions/runs/{run_id}), attempt {attempt}"


async def test_the_check_is_neutral_and_its_button_reruns(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    check = only_check(github, pull)
    assert (check.name, check.status, check.conclusion) == ("mlm-bot / diagnosis", "completed", "neutral")
    assert check.external_id.startswith(f"{run.id}:1:")
    assert check.title is not None
    assert check.title.startswith("🔴")
    assert "flash_attn" in (check.summary or "")
    assert [action["identifier"] for action in check.actions] == ["rerun-failed", "analyze", "mute"]
    github.add_user("mallory", "read")
    await github.press(check, "rerun-failed", by="mallory")
    await world.idle(within_s=60)
    assert run.attempt_number == 1
    assert replies(world, pull) == [
        (
            "`mallory` pressed “Re-run failed”. Not allowed for `mallory`: `/mlm rerun` is for people with the write "
            "role, trusted users or the author of the pull request. One of them can give it for you.\n"
        )
    ]
    await github.press(check, "rerun-failed", by="ada")
    await world.idle(within_s=60)
    assert run.attempt_number == 2
    (answer,) = replies(world, pull)
    assert answer.startswith(
        f"`ada` pressed “Re-run failed”. Started {link(github, run.id, 2)}: the failed job: `tests/"
    )


async def test_rerequests_read_the_logs_again(world: World, github: SimulatedGitHub) -> None:
    pull, _ = await red_run(world, MODELS)
    check = only_check(github, pull)
    done = world.tasks_done("diagnose")
    await github.rerequest(check, by="ada")
    await world.idle(within_s=60)
    assert world.tasks_done("diagnose") == done + 1
    await github.rerequest_suite(check, by="ada")
    await world.idle(within_s=60)
    assert world.tasks_done("diagnose") == done + 2
    (answer,) = replies(world, pull)
    assert answer.startswith("`ada` pressed “Re-analyze”. Reading the logs of 1 failed job again. My [comment](")


async def test_the_mute_button_sets_the_label(world: World, github: SimulatedGitHub) -> None:
    pull, _ = await red_run(world, MODELS)
    await github.press(only_check(github, pull), "mute", by="ada")
    await world.idle(within_s=60)
    assert list(pull.labels) == ["mlm-silenced"]


async def test_a_required_check_is_red_and_green(tmp_path: Path) -> None:
    world = World(tmp_path / "data")
    world.github.add_repo("NVIDIA/Megatron-LM").files[".github/mlm.yml"] = b"check: {required: true}\n"
    async with world:
        pull, run = await red_run(world, MODELS)
        assert only_check(world.github, pull).conclusion == "failure"
        await world.github.rerun(run, by="ada")
        await fail_again(world, run)
        assert only_check(world.github, pull).conclusion == "success"
        green = await world.github.open_pull(author="bob")
        await world.github.finish_run(await world.github.start_run(green))
        await world.idle(within_s=60)
        assert only_check(world.github, green).conclusion == "success"
        assert world.answers(green) == [], "a green pull request gets no comment"


async def test_without_the_permission_the_comment_is_enough(world: World, github: SimulatedGitHub) -> None:
    github.fail_next("POST", "/check-runs$", status=403, message="Resource not accessible by integration", times=9)
    pull, _ = await red_run(world, MODELS)
    assert github.checks(pull) == []
    assert "flash_attn" in world.answers(pull)[0]


async def test_a_failure_in_a_changed_file_is_remarked_there(world: World, github: SimulatedGitHub) -> None:
    path = "megatron/core/transformer/attention.py"
    trace = (
        f'Traceback (most recent call last):\n  File "/opt/megatron-lm/{path}", line 412, in forward\n    return x\n'
        "TypeError: unsupported operand\n##[error]Process completed with exit code 1.\n"
    )
    pull = await github.open_pull(author="ada", files=[path])
    run = await github.start_run(pull)
    await fail_again(world, run, MODELS, log=trace)
    check = only_check(github, pull)
    assert [(one["path"], one["start_line"], one["annotation_level"]) for one in check.annotations] == [
        (path, 412, "failure")
    ]
    assert FAILURE not in (check.summary or "")
