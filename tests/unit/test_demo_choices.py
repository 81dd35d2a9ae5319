"""Each failure that the demo offers happens when it is chosen, alone or beside those that were chosen for the run."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.demo.actions_state import FAILED, Run
from bot.demo.ci_plan import CONSEQUENCES
from bot.demo.director import Director
from bot.demo.failures.catalogue import CATALOGUE


@pytest.fixture
async def director() -> AsyncIterator[Director]:
    made = Director(pace_s=0.01)
    async with made.github:
        await made.set_stage()
        yield made


def causes(run: Run) -> set[str]:
    return {job.spec.name for job in run.jobs if job.conclusion in FAILED} - CONSEQUENCES


async def choose(director: Director, *failures: str) -> Run:
    """Press the button, and wait for the end of the run in which it happens."""
    for failure in failures:
        director.said = await director.fail(failure)
        assert director.said.tone == "ok", director.said.text
    run = director.newest_run()
    await director.github.until(lambda: run.status == "completed")
    return run


async def wait_at_the_tests(director: Director) -> None:
    run = director.newest_run()
    await director.github.until(lambda: any(job.spec.kind == "unit" for job in run.jobs))


@pytest.mark.parametrize("failure", CATALOGUE)
async def test_a_choice_while_the_unit_tests_wait(director: Director, failure: str) -> None:
    await wait_at_the_tests(director)
    assert causes(await choose(director, failure)) == {CATALOGUE[failure].job_name}
    assert (
        director.said.now().text == f"{CATALOGUE[failure].title}: failed in attempt 1. The bot answers in its comment."
    )


@pytest.mark.parametrize("failure", CATALOGUE)
@pytest.mark.parametrize("before", ["cuda-oom", "lint", "hang"])
async def test_a_choice_after_another_failure_is_the_only_one(director: Director, before: str, failure: str) -> None:
    await choose(director, before)
    assert causes(await choose(director, failure)) == {CATALOGUE[failure].job_name}


@pytest.mark.parametrize("failure", CATALOGUE)
async def test_a_choice_after_a_green_run(director: Director, failure: str) -> None:
    await director.let_pass()
    await director.github.until(lambda: director.newest_run().conclusion == "success")
    run = await choose(director, failure)
    assert (causes(run), run.attempt_number) == ({CATALOGUE[failure].job_name}, 2)


async def test_two_unit_tests_fail_in_one_run(director: Director) -> None:
    await wait_at_the_tests(director)
    run = await choose(director, "cuda-oom", "assertion")
    assert causes(run) == {CATALOGUE[name].job_name for name in ("cuda-oom", "assertion")}


async def test_what_another_failure_is_in_the_way_of_gets_a_run_of_its_own(director: Director) -> None:
    await wait_at_the_tests(director)
    waiting = director.newest_run()
    await director.fail("cuda-oom")
    run = await choose(director, "golden")
    assert (run is waiting, causes(run)) == (False, {CATALOGUE["golden"].job_name})


async def test_golden_values_are_not_compared_under_run_tests(director: Director) -> None:
    await director.let_pass()
    await director.github.until(lambda: director.newest_run().conclusion == "success")
    await director.toggle_label("Run tests")
    said = await director.fail("golden")
    assert (said.tone, director.newest_run().attempt_number) == ("no", 1)
    assert "take it off" in said.text


async def test_a_choice_that_another_run_overtakes_is_not_on_its_way_for_ever(director: Director) -> None:
    await wait_at_the_tests(director)
    said = await director.fail("golden")
    assert said.now().text.endswith("on its way.")
    await director.push()
    await director.github.until(lambda: "was not reached" in said.now().text)
