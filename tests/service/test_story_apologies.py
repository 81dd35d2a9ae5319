"""A piece of work fails for a reason that is the bot's own: whoever waits for it is told what, and what to type."""

from __future__ import annotations

import re

import pytest
import structlog
from stories import DATA, FAILURE, MODELS, red_run, replies, report
from structlog.typing import EventDict
from world import World

from bot.demo.actions_state import Run
from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull

A_JOB = r"/actions/jobs/\d+$"
PARENTS = r"/git/commits/"
#: In which way a task is called where the operator is pointed to the log.
NAME = re.compile(r"operator of this bot `?(?P<task>[a-z-]+) (?P<key>[^`]+?)`?: the log knows it by that name\.")


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


def odd(github: SimulatedGitHub, path: str, *, times: int = 3) -> None:
    """Let GitHub answer what it never would: a task has three tries."""
    github.fail_next("GET", path, status=200, message="odd", times=times)


def copy_of(pull: Pull) -> str:
    """Where the head of the vetted copy is asked for: only who starts something does."""
    return rf"/git/ref/heads/pull-request/{pull.number}$"


def link(world: World, run: Run, attempt: int) -> str:
    url = f"{world.github.state.web_url}/NVIDIA/Megatron-LM/actions/runs/{run.id}"
    return f"[`CICD Megatron-LM`]({url}), attempt {attempt}"


def without_name(text: str, said: list[EventDict]) -> str:
    """The text without the name of the task, which has to be that of one that was given up."""
    found = NAME.search(text)
    assert found, text
    given_up = [line for line in said if line["event"] == "task.gave_up"]
    assert (found["task"], found["key"]) in {(line["task"], line["key"]) for line in given_up}
    return text.replace(f"{found['task']} {found['key']}", "NAME")


async def test_whoever_waits_is_told_what_failed_and_what_to_type(world: World, github: SimulatedGitHub) -> None:
    asked, _ = await red_run(world, MODELS)
    labelled, its_run = await red_run(world, MODELS)
    unread = await github.open_pull(author="ada")
    waiting = await github.open_pull(author="ada")
    in_progress = await github.start_run(waiting)
    pressed, _ = await red_run(world, MODELS)
    started, again = await red_run(world, MODELS)
    await github.comment(waiting, "ada", "/mlm rerun unit models")
    await github.comment(started, "ada", "/mlm rerun failed")
    await world.idle()
    for pull in (asked, labelled, waiting, pressed):
        odd(github, copy_of(pull))
    odd(github, rf"/pulls/{unread.number}$")
    odd(github, PARENTS)
    with structlog.testing.capture_logs() as said:
        comment = await github.comment(asked, "ada", "/mlm ping\n/mlm rerun failed")
        await github.label(labelled, "Run tests")
        await github.comment(unread, "ada", "/mlm cancel")
        await github.press(github.checks(pressed)[0], "rerun-failed", "ada")
        await github.finish_run(in_progress)
        await github.finish_run(again)
        await world.idle(within_s=90)

    (answer,) = replies(world, asked)
    assert without_name(answer, said).split("\n\n")[2:] == [
        "`/mlm rerun failed`",
        (
            "I could not do this because of a fault of mine, and have given it up. Nothing was started or changed. "
            "Comment `/mlm rerun failed` to have it tried again. If that fails too, tell the operator of this bot "
            "`NAME`: the log knows it by that name.\n"
        ),
    ]
    assert github.reactions(comment) == ["confused"]
    (answer,) = replies(world, labelled)
    assert without_name(answer, said) == (
        "I could not do this because of a fault of mine, and have given it up. Nothing was started. To have the labels "
        "read anew, take a label off and put it on again. If that fails too, tell the operator of this bot `NAME`: the "
        "log knows it by that name.\n"
    )
    (answer,) = replies(world, unread)
    assert "Part of it may be done: `/mlm why` lists what I did here. Comment `/mlm cancel` to" in answer
    assert "operator of this bot `delivery " in without_name(answer, said).replace("NAME", "delivery ")
    (answer_to_wish,) = replies(world, waiting)
    assert "Nothing was started or changed. Comment `/mlm rerun unit models` to have it tried again." in answer_to_wish
    assert "`NAME`" in without_name(answer_to_wish, said)
    (answer,) = replies(world, pressed)
    assert answer.startswith("`ada` pressed “Re-run failed”. I could not do this because of a fault of mine")
    assert "Nothing was started or changed. Comment `/mlm rerun failed` to have it tried again." in answer
    assert "`NAME`" in without_name(answer, said)
    _, answer = replies(world, started)
    assert re.sub(r"`vet \S+`", "`NAME`", answer) == (
        f"⚠️ I could not check, because of a fault of mine, whether {link(world, again, 2)} tests the vetted commit "
        f"`{started.head_sha[:7]}`. The log of its job `configure` tells what it tests; if that is something else, "
        "cancel it: `/mlm cancel`. The operator of this bot finds the fault in the log as `NAME`."
    )

    await github.comment(asked, "ada", "/mlm rerun failed")
    await github.unlabel(labelled, "Run tests")
    await github.label(labelled, "Run tests")
    await github.rerun(in_progress, by="ada")
    await github.finish_run(in_progress)
    await world.idle(within_s=90)
    assert "Started " in replies(world, asked)[1]
    assert its_run.attempt_number == 2
    assert "Labels obeyed" in replies(world, labelled)[0]
    assert replies(world, waiting) == [answer_to_wish], "who is told to ask again is not served twice"


async def test_what_was_started_all_the_same_is_said(world: World, github: SimulatedGitHub) -> None:
    """The call came through, and what follows it failed."""
    pull, run = await red_run(world, MODELS)
    comments = rf"/issues/{pull.number}/comments$"
    odd(github, comments)
    await github.comment(pull, "ada", "/mlm rerun unit models")
    await world.idle(within_s=90)
    assert run.attempt_number == 2
    (answer,) = replies(world, pull)
    assert answer.startswith(f"Started {link(world, run, 2)}: ")


async def test_a_report_that_could_not_be_made_says_so_until_it_can(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    other = await github.open_pull(author="ada")
    its_run = await github.start_run(other)
    before = report(world, pull)
    odd(github, A_JOB)
    with structlog.testing.capture_logs() as said:
        await github.finish_job(its_run, DATA, "failure", log=FAILURE)
        await world.github.until(lambda: [line for line in said if line["event"] == "task.failed_once"])
        odd(github, rf"/commits/{pull.head_sha}/check-runs$")
        await github.rerun(run, by="ada")
        await world.idle(within_s=90)

    marker, head, warning, *rest = report(world, pull).split("\n")
    assert (head, without_name(warning, said)) == (
        "> [!WARNING]",
        (
            "> I could not bring this comment up to date because of a fault of mine, and have given it up. Comment "
            "`/mlm analyze` to have it tried again. If that fails too, tell the operator of this bot `NAME`: the log "
            "knows it by that name."
        ),
    )
    assert "\n".join([marker, *rest[1:]]) == before
    unread = without_name(report(world, other), said)
    assert (
        "> [!WARNING]\n> I could not examine the failed job `tests/unit_tests/data/**/*.py - latest` because of a "
        "fault of mine, and have given it up. Comment `/mlm analyze` to have it tried again. If that fails too, tell "
        "the operator of this bot `NAME`: the log knows it by that name."
    ) in unread

    await github.finish_run(run)
    await github.finish_run(its_run)
    await github.comment(other, "ada", "/mlm analyze")
    await world.idle(within_s=90)
    assert "WARNING" not in report(world, pull)
    assert "WARNING" not in report(world, other)
    assert "flash" in report(world, other)
