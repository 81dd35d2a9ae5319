"""A write that GitHub breaks off, before it was carried out or after: it is done once, and whoever asked is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import structlog
from stories import MODELS, fail_again, red_run, replies
from world import World

from bot.demo.actions_state import Run
from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull
from bot.demo.traffic import FaultKind

#: Every kind of change that the bot makes; two tries of each go wrong.
WRITES = (
    ("POST", r"/issues/\d+/comments$"),
    ("PATCH", r"/issues/comments/\d+$"),
    ("POST", r"/issues/\d+/labels$"),
    ("DELETE", r"/issues/\d+/labels/"),
    ("POST", r"/issues/comments/\d+/reactions$"),
    ("DELETE", r"/issues/comments/\d+/reactions/\d+$"),
    ("POST", r"/actions/jobs/\d+/rerun$"),
    ("POST", r"/actions/runs/\d+/rerun-failed-jobs$"),
    ("POST", r"/actions/runs/\d+/rerun$"),
    ("POST", r"/actions/runs/\d+/cancel$"),
    ("POST", r"/check-runs$"),
    ("PATCH", r"/check-runs/\d+$"),
)
RERUN = r"/actions/jobs/\d+/rerun$"
LABELS_RERUN = r"/actions/runs/\d+/rerun$"


async def say(world: World, pull: Pull, line: str) -> str:
    """Comment, and return the bot's reactions when it is done."""
    comment = await world.github.comment(pull, "ada", f"/mlm {line}")
    await world.idle(within_s=60)
    return f"{line}: {world.github.reactions(comment)}"


async def told(path: Path, kind: FaultKind | None) -> list[str]:
    """Make the bot write in every way that it can; return what there is in the end."""
    world = World(path)
    world.github.add_repo("NVIDIA/Megatron-LM")
    world.github.add_user("ada", "write")
    async with world:
        for method, pattern in WRITES if kind else ():
            world.github.fail_next(method, pattern, kind or "reset", status=502, times=2)
        pull, run = await red_run(world, MODELS)
        marks = [await say(world, pull, "rerun unit models")]
        await fail_again(world, run, MODELS)
        marks += [await say(world, pull, line) for line in ("rerun failed", "cancel", "label Run tests")]
        await world.github.finish_run(run)
        await world.idle(within_s=60)
        marks.append(await say(world, pull, "unlabel Run tests"))
        if kind:
            assert [fault.path.pattern for fault in world.github.parts.traffic.faults if fault.times == 2] == []
        assert not world.tasks_done("command", "put_off"), "nobody waits for half a minute"
        checks = [f"{check.name}: {check.title}" for check in world.github.repo.checks.values()]
        return [
            *(re.sub(r"[0-9a-f]{7,}|\d{6}|:\d{5}\b", "0", text) for text in (*world.answers(pull), *checks)),
            *marks,
            f"labels {sorted(pull.labels)}",
            f"attempts {run.attempt_number}, {run.conclusion}",
        ]


async def test_what_is_there_in_the_end_is_the_same(tmp_path: Path) -> None:
    calm = await told(tmp_path / "calm", None)
    assert len(calm) == 14, "a report, five answers, their reactions, a check run, labels, attempts"
    assert calm[-2:] == ["labels []", "attempts 4, success"]
    for kind in ("reset", "reset_after"):
        assert await told(tmp_path / kind, kind) == calm, kind


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


def link(world: World, run: Run, attempt: int) -> str:
    url = f"{world.github.state.web_url}/NVIDIA/Megatron-LM/actions/runs/{run.id}"
    return f"[`CICD Megatron-LM`]({url}), attempt {attempt}"


async def test_a_rerun_that_never_comes_through_is_told_and_not_tried_for_ever(
    world: World, github: SimulatedGitHub
) -> None:
    pull, run = await red_run(world, MODELS)
    github.fail_next("POST", RERUN, "reset", times=1000)
    with structlog.testing.capture_logs() as said:
        marks = await say(world, pull, "rerun unit models")
    (answer,) = replies(world, pull)
    assert answer == (
        f"I do not know whether {link(world, run, 2)} was started: GitHub broke off each time that I asked for it, and "
        "shows attempt 1 as the newest. I do not ask again by myself, so that nothing runs twice. If attempt 2 has not "
        "appeared in a minute: comment `/mlm rerun unit models` again.\n"
    )
    assert marks == "rerun unit models: ['confused']"
    assert len(github.asked("POST", RERUN)) == 3
    assert [line["attempt"] for line in said if line["event"] == "rerun.unknown"] == [2]
    github.parts.traffic.faults.clear()
    assert await say(world, pull, "rerun unit models") == "rerun unit models: ['rocket']"
    assert run.attempt_number == 2


async def test_a_rerun_that_is_never_answered_is_done_once(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    github.fail_next("POST", RERUN, "reset_after", times=1000)
    await say(world, pull, "rerun unit models")
    (answer,) = replies(world, pull)
    assert answer.startswith(f"Started {link(world, run, 2)}: ")
    assert (run.attempt_number, len(github.asked("POST", RERUN))) == (2, 1)


async def test_a_rerun_for_labels_that_never_comes_through_is_told(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.finish_run(run)
    await world.idle()
    github.fail_next("POST", LABELS_RERUN, "reset", times=1000)
    await github.label(pull, "Run tests")
    await world.idle()
    (answer,) = replies(world, pull)
    assert answer.startswith(f"I do not know whether {link(world, run, 2)} was started: ")
    assert answer.endswith("in a minute: take a label off and put it on again.\n")
    github.parts.traffic.faults.clear()
    await github.unlabel(pull, "Run tests")
    await github.label(pull, "Run tests")
    await world.idle()
    assert run.attempt_number == 2
    assert replies(world, pull)[0].startswith("Labels obeyed: ")


async def test_a_part_of_github_that_is_away_is_said_until_it_is_back(world: World, github: SimulatedGitHub) -> None:
    """Comments can be written while runs cannot be read."""
    pull, run = await red_run(world, MODELS)
    github.fail_next("GET", r"/actions/runs$", status=503, times=1000)
    comment = await github.comment(pull, "ada", "/mlm ping\n/mlm rerun unit models")
    await github.until(lambda: len(replies(world, pull)) == 1 and world.tasks_done("command", "put_off"), within_s=30)
    (answer,) = replies(world, pull)
    assert answer.split("\n\n")[2:] == [
        "`/mlm rerun unit models`",
        (
            "GitHub does not let me do this now: it does not answer, or asks me to wait. I go on trying by myself for "
            "a day, and say here what came of it.\n"
        ),
    ]
    assert github.reactions(comment) == ["eyes"]
    github.parts.traffic.faults.clear()
    await world.idle(within_s=60)
    (answer,) = replies(world, pull)
    assert answer.split("\n\n")[3].startswith(f"Started {link(world, run, 2)}: ")
    assert github.reactions(comment) == ["rocket"]
    assert run.attempt_number == 2
