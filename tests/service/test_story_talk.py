"""A person sets labels, asks and tells by command; every answer is held word by word."""

from __future__ import annotations

import re

import pytest
import structlog
from stories import DATA, MODELS, red_run, replies, report
from world import World

from analyzers.model import Category
from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull

TEST = "tests/unit_tests/models/test_gpt_model.py::TestGPTModel::test_forward"
FAILED_TEST = (
    f"{'=' * 27} short test summary info {'=' * 28}\nFAILED {TEST} - AssertionError: 1 != 2\n"
    f"{'=' * 30} 1 failed in 3.21s {'=' * 30}\n##[error]Process completed with exit code 1.\n"
)


#: A request of the bot that no story could expect fails it.
NOTHING_UNEXPECTED = True
AT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")


@pytest.fixture
def github(world: World) -> SimulatedGitHub:
    world.github.add_user("ada", "write")
    return world.github


async def say(world: World, pull: Pull, line: str, *, by: str = "ada") -> tuple[str, list[str]]:
    """Comment one command; return the answer and the reactions in the end."""
    before = replies(world, pull)
    comment = await world.github.comment(pull, by, f"/mlm {line}")
    await world.idle(within_s=60)
    new = replies(world, pull)[len(before) :]
    assert len(new) <= 1, new
    return (new[0].rstrip("\n") if new else ""), world.github.reactions(comment)


def link(world: World, run_id: int, attempt: int) -> str:
    url = f"{world.github.state.web_url}/NVIDIA/Megatron-LM/actions/runs/{run_id}"
    return f"[`CICD Megatron-LM`]({url}), attempt {attempt}"


async def test_run_sets_the_label_and_makes_ci_read_it(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world)
    plan = "full suite (`L1`), n_repeat 1, lightweight (4 steps, no golden values), `dev` image"
    answer, marks = await say(world, pull, "run tests --dry-run")
    assert answer == (
        f"Dry run: I would add `Run tests`. The labels would ask for: {plan}; I would re-run all jobs now."
    )
    assert (marks, list(pull.labels), run.attempt_number) == (["+1"], [], 1)
    answer, marks = await say(world, pull, "run tests")
    assert answer == (
        f"Added `Run tests`. Labels obeyed: {plan}. Started {link(world, run.id, 2)} as a re-run of all jobs, because "
        "only that makes `configure` read the labels again."
    )
    assert (marks, list(pull.labels), run.attempt_number) == (["rocket"], ["Run tests"], 2)
    assert len(replies(world, pull)) == 2, "our own label does not come back as a label of somebody"
    await github.finish_job(run, "configure")
    answer, marks = await say(world, pull, "run lts,functional")
    assert answer == (
        "Added `container::lts`, `Run functional tests`. Wish noted: full suite (`L1`), n_repeat 1, lightweight (4 "
        f"steps, no golden values), `lts` image. {link(world, run.id, 2)} is in progress and read the labels before; "
        "GitHub refuses a re-run until it is done. I re-run all its jobs then. Note: `Run tests` outranks "
        "`Run functional tests`; remove it if you want the other."
    )
    assert marks == ["rocket"]
    answer, marks = await say(world, pull, "unlabel run tests")
    assert answer == (
        "Taken off: `Run tests`. The labels now ask for: full suite (`L1`), n_repeat 5, full length with golden "
        "values, `lts` image."
    )
    answer, marks = await say(world, pull, "run tets")
    assert (answer, marks) == ("CI here knows no `tets`. Did you mean `/mlm run tests`, `/mlm run lts`?", ["confused"])


async def test_questions_about_queue_logs_and_deeds(world: World, github: SimulatedGitHub) -> None:
    other = await github.open_pull(author="bob")
    ahead = await github.start_run(other)
    await github.hold_in_queue(ahead)
    pull, run = await red_run(world, MODELS)
    answer, _ = await say(world, pull, "why")
    assert answer == "I have done nothing on this pull request yet, so there is nothing to explain."
    answer, _ = await say(world, pull, "queue")
    assert answer == f"{link(world, run.id, 1)} is done. 1 run of others wait there."
    job = github.job(run, MODELS)
    answer, marks = await say(world, pull, "logs models")
    where = f"{github.state.web_url}/NVIDIA/Megatron-LM/actions/runs/{run.id}/job/{job.id}"
    assert answer == f"{link(world, run.id, 1)}:\n\n- `{MODELS}`: [log]({where}), no log artifact"
    answer, marks = await say(world, pull, "logs modles")
    near = ("models", "dist_checkpointing/models", "transformer/moe")
    forms = ", ".join(f"`/mlm logs 'tests/unit_tests/{bucket}/**/*.py'`" for bucket in near)
    assert answer == f"No job of the newest attempt matches `modles`. The nearest: {forms}"
    assert marks == ["confused"]
    answer, _ = await say(world, pull, "rerun all -- to see the queue")
    asked = github.comments(pull, by_app=False)[-1].id
    await github.hold_in_queue(run)
    answer, _ = await say(world, pull, "queue")
    assert answer == (
        f"{link(world, run.id, 2)} waits for the environment `test`: position 2 of 2, for 0 min.\n\nBefore it:\n\n"
        f"- [`pull-request/1`]({github.state.web_url}/NVIDIA/Megatron-LM/actions/runs/{ahead.id})"
    )
    answer, _ = await say(world, pull, "why")
    assert AT.sub("(then)", answer) == (
        f"(then), **re-run (all)**, asked by `ada`, run {run.id}, attempt 2, head `{pull.head_sha[:7]}`, comment "
        f"{asked}. Why: all 23 jobs; labels are read again, and everything repeats. 10 of them run on GPUs"
    )


async def test_mute_and_unmute(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS, DATA)
    answer, marks = await say(world, pull, "mute job models")
    assert (answer, marks) == (f"Muted here: `{MODELS}`.", ["+1"])
    assert MODELS not in report(world, pull)
    assert DATA in report(world, pull)
    answer, _ = await say(world, pull, "mute")
    assert answer == (
        "Muted: my report stays as it is, and I comment here only when asked, as the label `mlm-silenced` says. "
        "To undo it: `/mlm unmute`"
    )
    assert list(pull.labels) == ["mlm-silenced"]
    answer, _ = await say(world, pull, "analyze")
    assert answer.endswith(" does not change while it is muted: `/mlm unmute`")
    before = report(world, pull)
    await github.rerun(run, by="ada")
    await github.finish_run(run)
    await world.idle(within_s=60)
    assert report(world, pull) == before
    answer, _ = await say(world, pull, "unmute")
    assert (answer, list(pull.labels)) == ("Unmuted: I comment on failures again.", [])
    assert MODELS in report(world, pull)


async def test_a_recorded_flake_is_named_with_its_issue(world: World, github: SimulatedGitHub) -> None:
    pull, _ = await red_run(world, MODELS, log=FAILED_TEST)
    answer, marks = await say(world, pull, f"flaky {TEST}")
    assert marks == ["confused"]
    assert answer == (
        "I need one test and the number of the issue about it: `/mlm flaky tests/unit_tests/a/test_b.py::test_c #123`"
    )
    assert "recorded" not in report(world, pull)
    answer, marks = await say(world, pull, f"flaky {TEST} #123")
    assert answer == (
        f"Recorded: `{TEST}` is known to fail now and then (issue `#123`). Reports say so from now on; a failure of it "
        "still counts as red."
    )
    (told,) = [line for line in report(world, pull).splitlines() if "recorded" in line]
    assert re.sub(r"on \d{4}-\d\d-\d\d\.$", "on (that day).", told) == (
        f"- **This change:** known to fail now and then. `{TEST}` is recorded as failing now and then: issue 123, by "
        "ada on (that day)."
    )
    answer, marks = await say(world, pull, "feedback right")
    assert (answer, marks) == ("", ["+1"])
    with structlog.testing.capture_logs() as said:
        answer, marks = await say(world, pull, "feedback wrong cuda_oom")
    (given,) = [line for line in said if line["event"] == "feedback.given"]
    assert (given["opinion"], given["category"], given["found"]) == ("wrong", "cuda_oom", ["test_error"])
    assert (answer, marks) == ("", ["+1"])
    answer, marks = await say(world, pull, "feedback wrong cuda_omm")
    assert marks == ["confused"]
    names = ", ".join(f"`{name}`" for name in sorted(Category))
    assert answer == f"Type `/mlm feedback right` or `/mlm feedback wrong cuda_oom`; the categories are {names}."


async def test_a_typo_in_verb_and_selector_is_mended_in_one_line(world: World, github: SimulatedGitHub) -> None:
    pull, _ = await red_run(world, MODELS)
    answer, marks = await say(world, pull, "rerum unit modles")
    assert (answer, marks) == ("There is no command rerum. Did you mean `/mlm rerun unit models`?", ["confused"])
    assert github.asked("POST", "/rerun") == []


async def test_labels_are_set_and_taken_off_by_command(world: World, github: SimulatedGitHub) -> None:
    pull, run = await red_run(world, MODELS)
    ci = ("Run MBridge tests", "Run NeMoRL tests", "Run functional tests", "Run tests", "container::lts")
    forms = ", ".join(f"`/mlm label {name}`" for name in ci)
    assert await say(world, pull, "label") == (f"Which label? {forms}", ["confused"])
    assert await say(world, pull, "label run tets") == (
        (
            "CI here knows no `run tets`. Did you mean `/mlm label Run tests`, `/mlm label Run NeMoRL tests`, "
            "`/mlm label Run MBridge tests`?"
        ),
        ["confused"],
    )
    assert (list(pull.labels), run.attempt_number) == ([], 1)
    assert await say(world, pull, "label run tests") == (
        (
            "Added `Run tests`. Labels obeyed: full suite (`L1`), n_repeat 1, lightweight (4 steps, no golden values), "
            f"`dev` image. Started {link(world, run.id, 2)} as a re-run of all jobs, because only that makes "
            "`configure` read the labels again."
        ),
        ["rocket"],
    )
    assert (list(pull.labels), run.attempt_number) == (["Run tests"], 2)
    slim = "slim suite (`L0`), n_repeat 5, full length with golden values, `dev` image"
    assert await say(world, pull, "unlabel run tests") == (
        f"Taken off: `Run tests`. The labels now ask for: {slim}.",
        ["+1"],
    )
    assert list(pull.labels) == []
