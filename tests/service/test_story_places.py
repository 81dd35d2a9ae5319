"""Where a command is said and by whom: reviews, issues, drafts, forks, closed and locked pull requests, other bots."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories import MODELS, fail_again, red_run, replies
from world import World

from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull

CLOSED = "This pull request is closed, so I change nothing here. Reopen it first.\n"


#: A request of the bot that no story could expect fails it.
NOTHING_UNEXPECTED = True


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


async def say(world: World, pull: Pull, line: str, *, by: str = "ada") -> list[str]:
    await world.github.comment(pull, by, f"/mlm {line}")
    await world.idle(within_s=60)
    return replies(world, pull)


async def test_reviews_and_their_comments_command_too(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    remark = await github.review_comment(pull, "ada", "Looks odd.\n\n/mlm ping")
    await world.idle()
    assert (replies(world, pull), github.reactions(remark)) == (["I am here.\n"], ["+1"])
    review = await github.review(pull, "ada", "/mlm ping")
    await world.idle()
    assert replies(world, pull) == ["I am here.\n"] * 2
    assert github.reactions(review) == [], "GitHub takes no reaction to a review"


async def test_on_an_issue_only_what_needs_no_pull_request(world: World, github: SimulatedGitHub) -> None:
    issue = await github.open_issue(github.repo)
    assert await say(world, issue, "ping") == ["I am here.\n"]
    assert (await say(world, issue, "rerun failed"))[1:] == ["`/mlm rerun failed` works on pull requests only.\n"]
    assert "`/mlm rerun failed`" not in (await say(world, issue, "help"))[2]


async def test_a_closed_pull_request_is_left_alone(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    await github.close_pull(pull)
    assert await say(world, pull, "rerun failed") == [CLOSED]
    assert await say(world, pull, "run tests") == [CLOSED] * 2
    assert await say(world, pull, "mute") == [CLOSED] * 3
    assert (run.attempt_number, list(pull.labels)) == (1, [])


async def test_a_locked_conversation_is_tried_once(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    pull.locked = True
    comment = await github.comment(pull, "ada", "/mlm rerun failed")
    await world.idle(within_s=60)
    assert (run.attempt_number, github.reactions(comment)) == (2, ["rocket"])
    refused = [seen for seen in github.asked("POST", r"/issues/\d+/comments$") if seen.status == 403]
    assert len(refused) == 1
    assert replies(world, pull) == []


async def test_a_draft_that_is_not_mirrored_says_what_starts_it(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada", draft=True, mirror=False)
    assert await say(world, pull, "run tests") == [
        (
            f"Added `Run tests`. There is no CI run for the head `{pull.head_sha[:7]}`: the commit is not mirrored. "
            f"This is a draft, which is not mirrored by itself. This comment starts one: "
            f"`/ok to test {pull.head_sha}`. It must come from a trusted user of this repository "
            "(copy-pr-bot obeys people, not apps).\n"
        )
    ]
    assert list(pull.labels) == ["Run tests"]


async def test_the_merge_queues_run_is_never_rerun(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world)
    branch = f"gh-readonly-queue/main/pr-{pull.number}-{pull.head_sha}"
    queued = await github.start_run(pull, branch=branch, event="merge_group", head_sha="c" * 40)
    await fail_again(world, queued, MODELS)
    (answer,) = await say(world, pull, "rerun failed")
    assert answer == "No job failed in the newest attempt. To repeat everything: `/mlm rerun all`\n"
    assert (run.attempt_number, queued.attempt_number) == (1, 1)


async def test_what_is_gone_is_not_asked_for_again(world: World, github: SimulatedGitHub) -> None:
    pull = await github.open_pull(author="ada")
    github.fail_next("GET", rf"/pulls/{pull.number}$", status=404, message="Not Found", times=99)
    assert await say(world, pull, "rerun failed") == []
    assert world.tasks_done("delivery", "refused") == 1


async def test_a_renamed_repository_keeps_its_memory(world: World, github: SimulatedGitHub) -> None:
    pull, _ = await red_run(world, MODELS)
    await say(world, pull, "rerun failed")
    github.repo.name = "Megatron"
    assert "**re-run (failed)**, asked by `ada`" in (await say(world, pull, "why"))[-1]


async def test_bots_are_heard_if_listed_and_teams_count(tmp_path: Path) -> None:
    caps = tmp_path / "caps.yaml"
    caps.write_text("commands: {cancel: ['role:admin']}\nbots: ['helper[bot]']\n")
    world = World(tmp_path / "data", caps_file=caps)
    github = world.github
    github.add_repo("NVIDIA/Megatron-LM").files[".github/mlm.yml"] = (
        b"bots: ['helper[bot]', 'stray[bot]']\ncommands: {rerun: ['team:NVIDIA/mcore']}\n"
    )
    async with world:
        for bot in ("helper[bot]", "stray[bot]", "other[bot]"):
            github.state.user(bot, kind="Bot")
        github.add_user("ada", "write")
        github.add_team("mcore", "eve", repo=github.repo)
        pull, run = await red_run(world, MODELS)
        for bot in ("stray[bot]", "other[bot]"):
            assert await say(world, pull, "ping", by=bot) == []
        assert await say(world, pull, "ping", by="helper[bot]") == ["I am here.\n"]
        assert (await say(world, pull, "rerun failed"))[1:] == [
            ("Not allowed for `ada`: `/mlm rerun` is for members of `NVIDIA/mcore`. One of them can give it for you.\n")
        ]
        await say(world, pull, "rerun failed", by="eve")
        assert run.attempt_number == 2
        await say(world, pull, "cancel", by="ada")
        assert run.status != "completed", "the operator allows it to administrators only"


async def test_another_installation_that_was_quicker_is_not_fought(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    await world.stop_bot()
    await github.comment(pull, "ada", "/mlm rerun failed")
    asked = github.deliveries[-1]
    await github.rerun(run, by="mlm-staging[bot]", failed_only=True)
    await world.start_bot()
    await world.deliver(asked)
    await world.idle(within_s=60)
    assert github.asked("POST", "/rerun") == []
    assert replies(world, pull)[0].startswith("Already under way: [`CICD Megatron-LM`]")
    await fail_again(world, run, MODELS)
    assert run.attempt_number == 2, "no wish is left over"


async def test_where_another_installation_acts_this_one_keeps_still(tmp_path: Path) -> None:
    world = World(tmp_path / "data")
    world.github.add_repo("NVIDIA/Megatron-LM").files[".github/mlm.yml"] = b"app: mlm-staging\n"
    async with world:
        world.github.add_user("ada", "write")
        pull, run = await red_run(world, MODELS)
        await world.github.label(pull, "Run tests", by="ada")
        assert await say(world, pull, "rerun failed") == []
        assert (run.attempt_number, world.answers(pull), world.github.checks(pull)) == (1, [], [])


async def test_one_repository_knows_nothing_of_another(world: World, github: SimulatedGitHub) -> None:
    pull, _ = await red_run(world, MODELS)
    await say(world, pull, "rerun failed")
    other = github.add_repo("NVIDIA/NeMo")
    other.files[".github/mlm.yml"] = b"commands: {ping: ['role:admin']}\n"
    github.add_user("ada", "write", repo=other)
    elsewhere = await github.open_pull(author="ada", number=pull.number, repo=other)
    assert await say(world, elsewhere, "why") == [
        "I have done nothing on this pull request yet, so there is nothing to explain.\n"
    ]
    assert "Not allowed" in (await say(world, elsewhere, "ping"))[1]
    assert (await say(world, pull, "ping"))[-1] == "I am here.\n"
    tokens = [seen.body["repository_ids"] for seen in github.asked("POST", "access_tokens$")]
    assert sorted(tokens) == sorted([[github.repo.id], [other.id]])


async def test_outsiders_cannot_have_logs_read_all_day(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    github.add_user("mallory", "read")
    reading = (
        f"Reading the logs of 1 failed job again. My [comment]({github.state.web_url}/NVIDIA/Megatron-LM/pull/"
        f"{pull.number}#issuecomment-{github.comments(pull, by_app=True)[0].id}) changes if they say something else "
        "now, and stays if not.\n"
    )
    assert await say(world, pull, "analyze", by="mallory") == [reading]
    assert (await say(world, pull, "analyze", by="mallory"))[1] == (
        f"The logs of [`CICD Megatron-LM`]({github.state.web_url}/NVIDIA/Megatron-LM/actions/runs/{run.id}), attempt 1 "
        "were read anew a moment ago. You can ask again in 10 min; people who may start re-runs need not wait.\n"
    )
    assert (await say(world, pull, "analyze"))[2] == reading
