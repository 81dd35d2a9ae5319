"""A person types `/mlm …`: it is done once, by those who may, and answered once."""

from __future__ import annotations

import pytest
from stories import DATA, MODELS, MOE, fail_again, red_run, replies
from world import World

from bot.demo.github import SimulatedGitHub


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


async def test_rerun_of_one_unit_bucket(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    job_id = github.job(run, MODELS).id
    comment = await github.comment(pull, "ada", "Flaky, I think.\n\n/mlm rerun unit models")
    await world.idle()
    assert [seen.path.rsplit("/repos/")[-1] for seen in github.asked("POST", "/rerun")] == [
        f"NVIDIA/Megatron-LM/actions/jobs/{job_id}/rerun"
    ]
    assert run.attempt_number == 2
    assert github.reactions(comment) == ["rocket"]
    (answer,) = replies(world, pull)
    assert "attempt 2" in answer
    assert "`tests/unit_tests/models/**/*.py`" in answer


async def test_all_failed_jobs_take_one_call(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS, DATA)
    await github.comment(pull, "ada", "/mlm rerun unit")
    await world.idle()
    assert len(github.asked("POST", "/rerun-failed-jobs$")) == 1
    assert run.attempt_number == 2


async def test_a_part_of_the_failed_jobs_is_explained_not_serialized(world: World, github: SimulatedGitHub) -> None:
    pull, _ = await red_run(world, MODELS, DATA, MOE)
    comment = await github.comment(pull, "ada", "/mlm rerun unit models,data")
    await world.idle()
    assert github.asked("POST", "/rerun") == []
    assert github.reactions(comment) == ["confused"]
    assert "`/mlm rerun failed`" in replies(world, pull)[0]


async def test_a_dry_run_starts_nothing(world: World, github: SimulatedGitHub) -> None:
    pull, _ = await red_run(world, MODELS)
    await github.comment(pull, "ada", "/mlm rerun failed --dry-run")
    await world.idle()
    assert github.asked("POST", "/rerun") == []
    assert "Dry run" in replies(world, pull)[0]


async def test_a_stranger_may_not_and_is_told_once_a_day(world: World, github: SimulatedGitHub) -> None:
    pull, _ = await red_run(world, MODELS)
    github.add_user("mallory", "read")
    first = await github.comment(pull, "mallory", "/mlm rerun failed")
    second = await github.comment(pull, "mallory", "/mlm rerun unit models")
    await world.idle()
    assert github.asked("POST", "/rerun") == []
    assert [github.reactions(first), github.reactions(second)] == [["-1"], ["-1"]]
    assert len(replies(world, pull)) == 1
    assert "Not allowed for `mallory`" in replies(world, pull)[0]


async def test_the_author_without_rights_has_three_a_day(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS, author="eve")
    for _ in range(3):
        await github.comment(pull, "eve", "/mlm rerun failed")
        await world.idle()
        await fail_again(world, run, MODELS)
    assert run.attempt_number == 4
    comment = await github.comment(pull, "eve", "/mlm rerun failed")
    await world.idle()
    assert run.attempt_number == 4
    assert github.reactions(comment) == ["-1"]


async def test_a_head_that_was_not_vetted_is_not_run(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    run_sha = pull.head_sha
    await github.push(pull, mirror=False)
    comment = await github.comment(pull, "ada", "/mlm rerun all")
    await world.idle()
    assert github.asked("POST", "/rerun") == []
    assert run.head_sha == run_sha
    assert github.reactions(comment) == ["confused"]
    assert f"`/ok to test {pull.head_sha}`" in replies(world, pull)[0]


async def test_a_rerun_that_would_test_another_commit_is_cancelled(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    await github.comment(pull, "ada", "/mlm rerun all")
    await world.idle()
    assert run.attempt_number == 2
    old_head = pull.head_sha
    await github.push(pull, mirror=False)  # between the check and the moment when CI resolves the merge commit
    await github.finish_job(run, "configure")
    await world.idle()
    assert len(github.asked("POST", f"/runs/{run.id}/cancel$")) == 1
    warning = replies(world, pull)[-1]
    assert "not made from the vetted commit" in warning
    assert old_head[:7] in warning


async def test_while_a_rerun_of_ours_is_going_no_other_is_started(world: World, github: SimulatedGitHub) -> None:
    pull, _ = await red_run(world, MODELS)
    await github.comment(pull, "ada", "/mlm rerun unit models")
    await world.idle()
    await github.comment(pull, "ada", "/mlm rerun failed")
    await world.idle()
    assert len(github.asked("POST", "/rerun$")) == 1
    assert "Already under way" in replies(world, pull)[1]


async def test_unknown_words_get_the_nearest_known_and_are_never_run(world: World, github: SimulatedGitHub) -> None:
    pull, _ = await red_run(world, MODELS)
    comment = await github.comment(pull, "ada", "/mlm rerunn unit models")
    await world.idle()
    other = await github.comment(pull, "ada", "/mlm rerun unit modells")
    await world.idle()
    assert github.asked("POST", "/rerun") == []
    assert github.reactions(comment) == github.reactions(other) == ["confused"]
    first, second = replies(world, pull)
    assert "Did you mean `/mlm rerun unit models`?" in first
    assert "`/mlm rerun unit 'tests/unit_tests/models/**/*.py'`" in second


async def test_an_edited_comment_runs_only_what_is_new_and_edits_the_answer(
    world: World, github: SimulatedGitHub
) -> None:
    pull, run = await red_run(world, MODELS)
    comment = await github.comment(pull, "ada", "/mlm rerun unt models")
    await world.idle()
    await github.edit(comment, "/mlm rerun unit models")
    await world.idle()
    assert run.attempt_number == 2
    (answer,) = replies(world, pull)
    assert "attempt 2" in answer
    await github.finish_run(run)
    await github.edit(comment, "/mlm rerun unit models\n\nThanks!")
    await world.idle()
    assert run.attempt_number == 2
    assert github.reactions(comment) == ["rocket"]


async def test_help_lists_what_this_person_may_do(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    github.add_user("mallory", "none")
    await github.comment(pull, "ada", "/mlm help")
    await world.idle()
    await github.comment(pull, "mallory", "/mlm help")
    await world.idle()
    writer, stranger = replies(world, pull)
    assert "`/mlm rerun failed`" in writer
    assert "`/mlm rerun failed`" not in stranger
    assert "`/mlm help`" in stranger
    assert not [line for line in writer.splitlines() if line.lstrip().startswith("/mlm")]


async def test_the_author_may_not_repeat_everything_and_is_told_just_that(
    world: World, github: SimulatedGitHub
) -> None:
    pull, _ = await red_run(world, MODELS, author="eve")
    for line in ("/mlm help", "/mlm rerun all"):
        await github.comment(pull, "eve", line)
        await world.idle()
    listed, denied = replies(world, pull)
    assert "`/mlm rerun failed`" in listed
    assert "`/mlm rerun all`" not in listed
    assert denied == (
        "Not allowed for `eve`: `/mlm rerun all` is for people with the write role or trusted users. "
        "One of them can give it for you.\n"
    )


async def test_quotations_and_bots_are_not_obeyed(world: World, github: SimulatedGitHub) -> None:
    pull, _ = await red_run(world, MODELS)
    github.state.user("other[bot]", kind="Bot")
    quoted = await github.comment(pull, "ada", "> /mlm rerun all\n\n```\n/mlm rerun all\n```\nSee `/mlm rerun all`")
    await github.comment(pull, "other[bot]", "/mlm rerun all")
    await world.idle()
    assert github.asked("POST", "/rerun") == []
    assert replies(world, pull) == []
    assert github.reactions(quoted) == []


@pytest.mark.parametrize(("line", "words"), [("status", "failed"), ("labels", "labels ask for"), ("ping", "here")])
async def test_questions_are_answered(world: World, github: SimulatedGitHub, line: str, words: str) -> None:
    pull, _ = await red_run(world, MODELS)
    comment = await github.comment(pull, "ada", f"/mlm {line}")
    await world.idle()
    assert words in replies(world, pull)[0]
    assert github.reactions(comment) == ["+1"]


async def test_a_push_while_the_logs_are_read_stops_the_rerun(world: World, github: SimulatedGitHub) -> None:
    """`rerun all` tests what the pull request is then, so the guard has to look once more before the call."""
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    url = world.url
    github.set_webhook_url(None)
    await github.finish_job(run, MODELS, "failure", log="ModuleNotFoundError: No module named 'flash_attn'\n")
    await github.finish_run(run)
    github.set_webhook_url(f"{url}/webhook")
    logs = r"/actions/jobs/\d+/logs$"
    github.fail_next("GET", logs, "delay", delay_s=1.0, times=3)
    await github.comment(pull, "ada", "/mlm rerun all")
    await github.until(lambda: github.asked("GET", logs))
    await github.push(pull, mirror=False)
    await world.idle()
    assert github.asked("POST", r"/rerun") == []
    (answer,) = replies(world, pull)
    assert "the head is" in answer
