"""Only the commit that was vetted, and only as GitHub allows it, is ever run again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from fakes import HEAD, NOW, OTHER, make_pull, make_run

from config.repo import default_config
from handlers.guard import Scene, check
from handlers.render import replies
from handlers.runs import main_run, mirrored_pull

CONFIG = default_config()
GOOD = Scene(pull=make_pull(), run=make_run(), newest=make_run(), mirror_sha=HEAD, now=NOW, asked_at=NOW)


def test_all_the_same_commit_is_allowed() -> None:
    assert check(GOOD, CONFIG) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pull": make_pull(state="closed")}, "closed"),
        ({"newest": make_run(id=8)}, "not_newest"),
        ({"pull": make_pull(head_sha=OTHER), "mirror_sha": OTHER}, "head_moved"),
        ({"pull": make_pull(head_sha=OTHER)}, "head_moved"),
        ({"mirror_sha": OTHER}, "mirror_stale"),
        ({"mirror_sha": None}, "mirror_stale"),
        ({"asked_at": NOW - timedelta(hours=3)}, "newer_than_request"),
        ({"run": make_run(status="in_progress")}, "running"),
        ({"run": make_run(status="waiting")}, "running"),
        ({"run": make_run(created_at=NOW - timedelta(days=30))}, "too_old"),
        ({"run": make_run(attempt=51)}, "too_many"),
    ],
)
def test_each_difference_refuses_and_is_said(changes: dict[str, object], reason: str) -> None:
    refusal = check(replace(GOOD, **changes), CONFIG)  # type: ignore[arg-type]
    assert refusal is not None
    assert refusal.reason == reason
    said = replies.refused(refusal, config=CONFIG)
    assert said
    assert not said.startswith("/")


def test_a_stale_mirror_names_the_exact_line() -> None:
    refusal = check(replace(GOOD, mirror_sha=OTHER), CONFIG)
    assert refusal is not None
    assert f"`/ok to test {HEAD}`" in replies.refused(refusal, config=CONFIG)


def test_a_draft_that_was_vetted_is_no_obstacle() -> None:
    assert check(replace(GOOD, pull=make_pull(draft=True)), CONFIG) is None


def test_a_branch_of_the_repository_itself_needs_no_mirror() -> None:
    run = make_run(head_branch="fuse", event="pull_request")
    assert check(replace(GOOD, run=run, newest=run, mirror_sha=None), CONFIG) is None


def test_a_label_has_no_moment_of_asking() -> None:
    assert check(replace(GOOD, asked_at=None), CONFIG) is None


@pytest.mark.parametrize("event", ["pull_request", "pull_request_target"])
def test_a_forks_branch_named_like_a_vetted_copy_is_none(event: str) -> None:
    """Anybody may name the branch of his fork so, with the very commit of another's pull request."""
    copy, newer = make_run(), make_run(id=8, event=event, created_at=NOW - timedelta(minutes=1))
    assert newer.head_branch == copy.head_branch
    assert mirrored_pull(copy, CONFIG) == make_pull().number
    assert mirrored_pull(newer, CONFIG) is None
    assert main_run([newer, copy], number=make_pull().number, config=CONFIG) == copy
