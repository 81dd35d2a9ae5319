"""What somebody with a fork and a comment box would try, from end to end: nothing of it gets him anything."""

from __future__ import annotations

import re

import pytest
from stories import DATA, FAILURE, MODELS, fail_again, red_run, replies, report
from world import World

from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull
from handlers.commands.lines import MAX_COMMANDS, command_lines
from handlers.commands.registry import VERBS

NOTHING_UNEXPECTED = True
LOGS = r"/actions/jobs/\d+/logs$"


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


async def test_our_marker_in_a_strangers_comment_is_his_own(world: World, github: SimulatedGitHub) -> None:
    """He keeps our comment's text, waits until it is deleted, and posts it: we write a new one beside his."""
    pull, run = await red_run(world, MODELS)
    (ours,) = github.comments(pull, by_app=True)
    stolen = ours.body
    github.talk.delete_comment(github.repo, ours, pull.author)
    theirs = await github.comment(pull, "mallory", stolen)
    elsewhere = await github.open_pull(author="mallory")
    await github.comment(elsewhere, "mallory", stolen)
    await github.rerun(run, by="ada", failed_only=True)
    await fail_again(world, run, MODELS)
    (new,) = github.comments(pull, by_app=True)
    assert new.body.split("\n")[0] == stolen.split("\n")[0]
    assert "attempt 2" in new.body
    assert (theirs.body, new.id != theirs.id) == (stolen, True)
    assert github.comments(elsewhere, by_app=True) == []
    assert not [seen for seen in github.requests if seen.method == "PATCH" and str(theirs.id) in seen.path]


async def test_a_marker_of_one_repository_means_nothing_in_another(world: World, github: SimulatedGitHub) -> None:
    """The same numbers everywhere, one log private: neither text, nor memory, nor files come across."""
    secret = "ModuleNotFoundError: No module named 'project_x'\n##[error]Process completed with exit code 1.\n"
    pull, run = await red_run(world, MODELS, log=secret)
    other = github.add_repo("NVIDIA/NeMo")
    github.add_user("ada", "write", repo=other)
    twin = await github.open_pull(author="ada", number=pull.number, repo=other)
    await github.comment(twin, "mallory", github.comments(pull, by_app=True)[0].body.replace("project_x", "x"))
    theirs = await github.start_run(twin)
    await github.finish_job(theirs, MODELS, "failure", log=FAILURE)
    await world.idle()
    await github.finish_run(theirs)
    await world.idle(within_s=60)
    (first,) = [one.body for one in github.comments(pull, by_app=True)]
    (second,) = [one.body for one in github.comments(twin, by_app=True)]
    assert "project_x" in first
    assert ("project_x" in second, "flash_attn" in second, "flash_attn" in first) == (False, True, False)
    assert first.split("\n")[0] != second.split("\n")[0], "a marker is bound to its repository"
    assert "also fails" not in second
    folders = {path.relative_to(world.data_dir).parts[1] for path in world.data_dir.rglob("job-*.log")}
    assert folders == {str(github.repo.id), str(other.id)}
    tokens = {tuple(seen.body["repository_ids"]) for seen in github.asked("POST", "access_tokens$")}
    assert tokens == {(github.repo.id,), (other.id,)}
    await github.comment(twin, "ada", "/mlm mute")
    await world.idle()
    await github.rerun(run, by="ada", failed_only=True)
    await fail_again(world, run, MODELS, log=secret)
    assert "attempt 2" in report(world, pull), "muting there mutes nothing here"


async def test_the_settings_of_a_pull_requests_own_branch_are_never_asked_for(
    world: World, github: SimulatedGitHub
) -> None:
    """The file stands in the head's tree and on the branch that CI runs on; only the default branch's is read."""
    pull = await github.open_pull(author="mallory", files=[".github/mlm.yml"])
    run = await github.start_run(pull)
    await fail_again(world, run, MODELS)
    await github.comment(pull, "mallory", "/mlm rerun all")
    await world.idle()
    asked = github.asked("GET", r"/contents/\.github")
    assert asked
    assert {seen.query.get("ref", "main") for seen in asked} == {"main"}
    assert github.asked("POST", "/rerun") == []


@pytest.mark.parametrize("becomes", ["closed", "locked", "draft"])
async def test_what_becomes_of_it_while_we_work(world: World, github: SimulatedGitHub, becomes: str) -> None:
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    github.fail_next("GET", LOGS, "delay", delay_s=0.5)
    await github.finish_job(run, MODELS, "failure", log=FAILURE)
    await github.until(lambda: github.asked("GET", LOGS))
    match becomes:
        case "closed":
            await github.close_pull(pull)
        case "locked":
            pull.locked = True
        case "draft":
            pull.draft = True
    await github.comment(pull, "ada", "/mlm rerun failed")
    await world.idle(within_s=60)
    assert bool(report(world, pull)) == (becomes == "draft")
    assert len(github.asked("POST", r"/issues/\d+/comments$")) <= 4, "no storm of tries"
    assert world.tasks_done("report", "gave_up") + world.tasks_done("command", "gave_up") == 0
    assert github.asked("POST", "/rerun") == [], "the run is not over, and the command is told so"


async def force_push(github: SimulatedGitHub, pull: Pull, sha: str, *, mirror: bool = True) -> None:
    """Put the branch of a pull request on a commit that it had before."""
    before, pull.head_sha = pull.head_sha, sha
    if mirror:
        github.repo.branches[pull.mirror_branch] = sha
    github.talk._tell_pull(github.repo, pull, "synchronize", pull.author, before=before, after=sha)
    await github.settle()


async def test_a_force_push_back_is_believed_for_what_it_is(world: World, github: SimulatedGitHub) -> None:
    """First a commit that nobody has vetted, then back to the vetted one: its results count again, and it may run."""
    pull, run = await red_run(world, MODELS)
    vetted = pull.head_sha
    await github.push(pull, mirror=False)
    unvetted = pull.head_sha
    await world.idle()
    assert f"`{vetted[:7]}`, an older commit" in report(world, pull)
    await github.comment(pull, "ada", "/mlm rerun failed")
    await world.idle()
    assert (run.attempt_number, f"`/ok to test {unvetted}`" in replies(world, pull)[-1]) == (1, True)
    await force_push(github, pull, vetted)
    await world.idle()
    assert "flash_attn" in report(world, pull)
    assert "an older commit" not in report(world, pull)
    await github.comment(pull, "ada", "/mlm rerun failed")
    await world.idle()
    assert run.attempt_number == 2
    assert {seen.path.split("/")[-2] for seen in github.asked("POST", "rerun")} == {str(run.id)}


async def test_a_head_that_comes_back_after_the_question_is_not_run_for_it(
    world: World, github: SimulatedGitHub
) -> None:
    """Asked while the head was another one: what is vetted now is not what the person looked at."""
    pull, run = await red_run(world, MODELS)
    vetted = pull.head_sha
    await github.push(pull, mirror=False)
    github.fail_next("GET", r"/pulls/\d+$", "delay", delay_s=0.3, times=3)
    await github.comment(pull, "ada", "/mlm rerun all")
    await force_push(github, pull, vetted)
    await world.idle(within_s=60)
    tested = {github.repo.pulls[pull.number].head_sha} if run.attempt_number == 2 else set()
    assert tested <= {vetted}, "never the commit that nobody has vetted"


async def test_names_of_others_never_reach_the_shell_or_the_page_raw(world: World, github: SimulatedGitHub) -> None:
    """A branch, a label and a test named as an order to another bot stay words."""
    pull = await github.open_pull(author="mallory", labels=["/ok to test", "@NVIDIA/core"])
    pull.title = pull.head_ref = "x\n/ok to test `$(id)` <!-- mlm-bot:report -->"
    run = await github.start_run(pull)
    log = "FAILED tests/unit_tests/a.py::test_x[$(touch /tmp/x);`id`] - AssertionError: /ok to test\n" + FAILURE
    await fail_again(world, run, DATA, log=log)
    body = report(world, pull)
    assert body
    assert not re.search(r"(?m)^\s*(/ok|@)", body)
    assert "$(touch" not in "".join(re.findall(r"```(?:bash|sh|shell)\n(.*?)```", body, re.DOTALL))


async def test_nothing_that_we_say_is_a_command(world: World, github: SimulatedGitHub) -> None:
    """Help quotes commands, reports suggest them: read as anybody's comment, they ask for nothing."""
    pull, _ = await red_run(world, MODELS)
    said = [
        "help",
        *(f"help {verb}" for verb in VERBS),
        "rerunn unit models",
        "status",
        "why",
        "rerun failed --dry-run",
    ]
    for at in range(0, len(said), MAX_COMMANDS):
        await github.comment(pull, "ada", "\n".join(f"/mlm {line}" for line in said[at : at + MAX_COMMANDS]))
    await world.idle(within_s=60)
    bodies = world.answers(pull)
    assert len(bodies) == 1 + -(-len(said) // MAX_COMMANDS)
    assert [body for body in bodies if command_lines(body).texts] == []
    commands = world.tasks_done("command")
    await github.comment(pull, "mlm-helper[bot]", bodies[1])
    for body in bodies:
        await github.comment(pull, "ada", body)
    await world.idle(within_s=60)
    assert world.tasks_done("command") == commands
