"""A label asks for tests: CI runs them once, and one line says what was done and why."""

from __future__ import annotations

import pytest
from world import World

from bot.demo.github import SimulatedGitHub

RERUNS = r"/actions/runs/\d+/rerun$"
COMMENTS = r"/issues/\d+/comments$"
LOGS = r"/actions/jobs/\d+/logs$"
UNIT = "tests/unit_tests/models/**/*.py - latest"


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


async def test_a_label_after_the_run_starts_all_of_it_again(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.finish_run(run)
    await world.idle()
    await github.label(pull, "Run tests")
    await world.idle()
    assert len(github.asked("POST", RERUNS)) == 1
    assert run.attempt_number == 2
    (answer,) = world.answers(pull)
    assert "full suite (`L1`), n_repeat 1, lightweight" in answer
    assert "`dev` image" in answer
    assert "attempt 2" in answer
    assert "re-run of all jobs" in answer

    await github.finish_run(run)
    await world.idle()
    assert run.attempt_number == 2, "the labels are read now: nothing is started again"
    assert len(github.asked("POST", RERUNS)) == 1
    assert world.answers(pull) == [answer]


async def test_a_label_that_the_run_has_read_starts_nothing(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada", labels=["Run tests"])
    run = await github.start_run(pull)
    await world.idle()
    await github.unlabel(pull, "Run tests")
    await github.label(pull, "Run tests")
    await world.idle()
    assert github.asked("POST", RERUNS) == []
    (answer,) = world.answers(pull)
    assert answer.split("\n")[1].startswith("Labels already read")
    assert run.attempt_number == 1


async def test_a_label_during_a_run_waits_for_its_end(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.label(pull, "Run functional tests")
    await world.idle()
    assert github.asked("POST", RERUNS) == []
    assert "Wish noted" in world.answers(pull)[0]
    await github.finish_run(run)
    await world.idle()
    assert len(github.asked("POST", RERUNS)) == 1
    (answer,) = world.answers(pull)
    assert "n_repeat 5" in answer
    assert "attempt 2" in answer


async def test_a_label_before_the_plan_job_is_read_by_the_run_itself(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull, through=None)
    await github.label(pull, "container::lts")
    await world.idle()
    (answer,) = world.answers(pull)
    assert "has not read the labels yet and will" in answer
    assert "`lts` image" in answer
    await github.finish_run(run)
    await world.idle()
    assert github.asked("POST", RERUNS) == []


async def test_without_a_mirrored_run_the_exact_line_is_given(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="eve", mirror=False)
    await github.label(pull, "Run tests", by="ada")
    await world.idle()
    (answer,) = world.answers(pull)
    assert f"`/ok to test {pull.head_sha}`" in answer
    assert "trusted user" in answer
    assert not [line for line in answer.splitlines() if line.startswith("/")]


async def test_run_tests_outranks_the_functional_label_and_says_so(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada", labels=["Run functional tests"])
    run = await github.start_run(pull)
    await github.finish_run(run)
    await world.idle()
    await github.label(pull, "Run tests")
    await world.idle()
    answer = world.answers(pull)[-1]
    assert "`Run tests` outranks `Run functional tests`" in answer


async def test_flapping_labels_start_at_most_one_run(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.finish_run(run)
    await world.idle()
    for _ in range(15):  # as fast as GitHub sends
        github.talk.add_label(github.repo, pull, "Run tests", pull.author)
        github.talk.remove_label(github.repo, pull, "Run tests", pull.author)
    await github.label(pull, "Run tests")
    await world.idle(within_s=60)
    assert len(github.asked("POST", RERUNS)) == 1
    assert run.attempt_number == 2


async def test_a_label_taken_away_in_time_starts_nothing(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.label(pull, "Run tests")
    await world.idle()
    await github.unlabel(pull, "Run tests")
    await world.idle()
    await github.finish_run(run)
    await world.idle()
    assert github.asked("POST", RERUNS) == []


async def test_a_label_that_is_gone_before_anybody_looked_is_not_talked_about(
    world: World, github: SimulatedGitHub
) -> None:
    pull = await github.open_pull(author="ada")
    await github.finish_run(await github.start_run(pull))
    await world.idle()
    github.talk.add_label(github.repo, pull, "Run tests", pull.author)
    github.talk.remove_label(github.repo, pull, "Run tests", pull.author)
    await world.idle()
    assert world.tasks_done("labels", "done"), "somebody looked"
    assert world.answers(pull) == []
    assert github.asked("POST", RERUNS) == []


async def test_a_label_on_a_stale_mirror_never_tests_unvetted_code(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="eve")
    run = await github.start_run(pull)
    await github.finish_run(run)
    await github.push(pull, mirror=False)
    await github.label(pull, "Run tests", by="ada")
    await world.idle()
    assert github.asked("POST", RERUNS) == []
    (answer,) = world.answers(pull)
    assert f"`/ok to test {pull.head_sha}`" in answer


async def test_other_labels_and_closed_pull_requests_are_ignored(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.finish_run(run)
    await github.label(pull, "documentation")
    await world.idle()
    assert world.answers(pull) == []
    await github.label(pull, "Run tests")
    await github.close_pull(pull)
    await world.idle()
    assert github.asked("POST", RERUNS) == []


async def test_a_label_that_comes_while_another_is_obeyed_is_obeyed_too(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.finish_run(run)
    await world.idle()
    github.fail_next("POST", COMMENTS, "delay", delay_s=1.0)
    await github.label(pull, "Run functional tests")
    await github.until(lambda: github.asked("POST", COMMENTS))
    await github.label(pull, "container::lts")
    await world.idle()
    first, second = world.answers(pull)
    assert "`dev` image" in first
    assert "`lts` image" in second


async def test_a_push_while_the_logs_are_read_stops_the_rerun(world: World, github: SimulatedGitHub) -> None:
    """A full re-run tests what the pull request is then, so the guard has to look last."""
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    url = world.url
    github.set_webhook_url(None)
    await github.finish_job(run, UNIT, "failure", log="ModuleNotFoundError: No module named 'flash_attn'\n")
    await github.finish_run(run)
    github.set_webhook_url(f"{url}/webhook")
    github.fail_next("GET", LOGS, "delay", delay_s=1.0, times=3)
    await github.label(pull, "Run tests")
    await github.until(lambda: github.asked("GET", LOGS))
    await github.push(pull, mirror=False)
    await world.idle()
    assert github.asked("POST", RERUNS) == []
    assert "the head is" in world.answers(pull)[0]


async def test_somebody_who_starts_the_run_first_is_no_refusal(world: World, github: SimulatedGitHub) -> None:
    """Between the look and the call a person presses the button; what they started comes to the labels by itself."""
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.finish_run(run)
    await world.idle()
    github.fail_next("POST", RERUNS, "delay", delay_s=1.0)
    await github.label(pull, "Run tests")
    await github.until(lambda: github.asked("POST", RERUNS))
    await github.rerun(run, by="ada")
    await world.idle()
    assert [seen.status for seen in github.asked("POST", RERUNS)] == [403]
    (answer,) = world.answers(pull)
    assert "attempt 2 has not read the labels yet and will: full suite (`L1`)" in answer
    assert "already running" not in answer
    await github.finish_run(run)
    await world.idle()
    assert run.attempt_number == 2
    assert len(github.asked("POST", RERUNS)) == 1
