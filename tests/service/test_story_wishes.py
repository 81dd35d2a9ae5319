"""A re-run that GitHub refuses now: remembered, done at the end of the run, said in the one answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories import DATA, FAILURE, MODELS, fail_again, red_run, replies
from world import World

from bot.demo.github import SimulatedGitHub

#: A request of the bot that no story could expect fails it.
NOTHING_UNEXPECTED = True


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


def link(world: World, run_id: int, attempt: int) -> str:
    url = f"{world.github.state.web_url}/NVIDIA/Megatron-LM/actions/runs/{run_id}"
    return f"[`CICD Megatron-LM`]({url}), attempt {attempt}"


async def test_a_wish_survives_a_restart_and_is_done_when_the_run_is(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    comment = await github.comment(pull, "ada", "/mlm rerun unit models")
    await world.idle()
    assert github.asked("POST", "/rerun$") == []
    assert replies(world, pull) == [
        (
            f"Wish noted: `/mlm rerun unit models`. {link(world, run.id, 1)} is in progress, and GitHub refuses a "
            "re-run until it is done. I do it then, and say so here. To stop the run and not wait: the same line with "
            "`--now`.\n"
        )
    ]
    assert github.reactions(comment) == ["rocket"]
    await world.stop_bot()
    await world.start_bot()
    await fail_again(world, run, MODELS)
    assert run.attempt_number == 2
    assert replies(world, pull) == [
        (
            f"Started {link(world, run.id, 2)}: `tests/unit_tests/models/**/*.py`, with the gates; the jobs that were "
            "skipped follow if it passes.\n"
        )
    ]
    await fail_again(world, run, MODELS)
    assert run.attempt_number == 2, "a wish is done once"


async def test_now_cancels_waits_for_the_end_and_starts_again(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.finish_job(run, DATA, "failure", log=FAILURE)
    await world.idle(within_s=60)
    await github.comment(pull, "ada", "/mlm rerun all --now")
    await world.idle(within_s=60)
    await github.until(lambda: run.attempt_number == 2, within_s=30)
    await world.idle(within_s=60)
    assert len(github.asked("POST", f"/runs/{run.id}/cancel$")) == 1
    assert len(github.asked("POST", f"/runs/{run.id}/rerun$")) == 1
    (answer,) = replies(world, pull)
    assert answer.startswith(f"Started {link(world, run.id, 2)}: all ")
    assert "jobs; labels are read again, and everything repeats. " in answer
    assert answer.endswith(" of them run on GPUs.\n")


async def test_a_wish_for_another_commit_is_given_up(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.comment(pull, "ada", "/mlm rerun failed")
    await world.idle()
    head = await github.push(pull)
    again = await github.start_run(pull)
    await fail_again(world, again, MODELS)
    assert github.asked("POST", "/rerun") == []
    assert (run.attempt_number, again.attempt_number) == (1, 1)
    assert replies(world, pull) == [
        f"Not started: the head is `{head[:7]}` now, another commit than the one that you asked for.\n"
    ]


async def test_a_slip_of_the_hand_does_not_replace_a_wish(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.finish_job(run, MODELS, "failure", log=FAILURE)
    for line in ("unit models", "unit modles", "uint models", "unit a-job-that-may-come"):
        await github.comment(pull, "ada", f"/mlm rerun {line}")
        await world.idle()
    noted, job, target, unknown = [text for text in replies(world, pull) if "###" not in text]
    assert noted.startswith("Wish noted: `/mlm rerun unit models`. ")
    assert job.startswith("No job of the newest attempt matches `modles`. The nearest: ")
    assert "`/mlm rerun unit 'tests/unit_tests/models/**/*.py'`" in job
    assert target.startswith("No job of the newest attempt matches `uint`. The nearest: `/mlm rerun unit models`")
    assert unknown.endswith("It replaces an earlier wish: `/mlm rerun unit models`.\n")
    assert run.attempt_number == 1


async def test_a_cancel_drops_what_waited(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.comment(pull, "ada", "/mlm rerun failed")
    await world.idle()
    await github.comment(pull, "ada", "/mlm cancel")
    await world.idle(within_s=60)
    assert run.attempt_number == 1
    assert replies(world, pull)[1] == f"Cancelled {link(world, run.id, 1)}. What waited for its end is dropped too.\n"


async def test_the_commit_can_be_named(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    await github.comment(pull, "ada", "/mlm rerun failed --sha 0123456")
    await world.idle()
    assert replies(world, pull) == [
        (
            f"Not started: you named `0123456`, but the head of this pull request is `{pull.head_sha[:7]}`. For that "
            f"one: `--sha {pull.head_sha[:12]}`\n"
        )
    ]
    await github.comment(pull, "ada", f"/mlm rerun failed --sha {pull.head_sha[:10]}")
    await world.idle()
    assert run.attempt_number == 2


async def test_evidence_is_fetched_before_anything_runs_again(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await world.stop_bot()  # nothing is told about the failure
    await github.finish_job(run, MODELS, "failure", log=FAILURE, artifact={"1/none_ab/attempt_0/0/stderr.log": "boom"})
    await github.finish_run(run)
    await world.start_bot()
    github.requests.clear()
    await github.comment(pull, "ada", "/mlm rerun failed")
    await world.idle(within_s=60)
    order = [
        seen.path.rsplit("/", 1)[-1] for seen in github.requests if seen.path.endswith(("/zip", "/rerun-failed-jobs"))
    ]
    assert order[:2] == ["zip", "rerun-failed-jobs"]


async def test_gpu_budgets_end_and_say_whose(tmp_path: Path) -> None:
    world = World(tmp_path / "data")
    world.github.add_repo("NVIDIA/Megatron-LM").files[".github/mlm.yml"] = b"limits: {gpu_jobs_per_user_day: 1}\n"
    async with world:
        world.github.add_user("ada", "write")
        pull, run = await red_run(world, MODELS, DATA)
        await world.github.comment(pull, "ada", "/mlm rerun failed")
        await world.idle(within_s=60)
        assert run.attempt_number == 1
        assert replies(world, pull) == [
            (
                "Not started: it would run 2 GPU jobs, and of the 1 a day that one person may start (ada) there are 1 "
                "left. The count starts again at 00:00 UTC; the limits are in `.github/mlm.yml`, which people with "
                "write access can change.\n"
            )
        ]
        await world.github.comment(pull, "ada", "/mlm rerun unit models")
        await world.idle(within_s=60)
        assert run.attempt_number == 2
