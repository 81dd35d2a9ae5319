"""Which deliveries need work. The payloads are those that the simulated GitHub sends, and cut-down ones."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.events import MalformedError, slim

REPO = {"id": 1, "full_name": "NVIDIA/Megatron-LM", "default_branch": "main", "private": False}
SENDER = {"id": 5, "login": "ada", "type": "User"}
MODELS = "tests/unit_tests/models/**/*.py - latest"


def send(event: str, action: str, /, sender: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any] | None:
    payload = {"action": action, "repository": REPO, "installation": {"id": 3}, "sender": sender or SENDER, **fields}
    found = slim(event, "d-1", payload, app_slug="mlm-bot", app_id=77)
    if found is None:
        return None
    assert (found.delivery_id, found.event, found.action) == ("d-1", event, action)
    assert (found.repo.id, found.repo.full_name, found.repo.installation_id) == (1, "NVIDIA/Megatron-LM", 3)
    return found.data


def job(name: str = MODELS, conclusion: str = "failure", **more: Any) -> dict[str, Any]:
    return {"id": 10, "run_id": 7, "run_attempt": 1, "name": name, "conclusion": conclusion, "steps": [], **more}


@pytest.mark.parametrize(
    ("fields", "needed"),
    [
        (job(), True),
        (job(conclusion="timed_out"), True),
        (job(conclusion="success"), False),
        (job(conclusion="skipped"), False),
        (job(conclusion="cancelled"), False),
        (job(conclusion="cancelled", steps=[{"name": "x", "conclusion": "failure"}]), True),
        (job("Nemo_CICD_Test"), False),
        (job("cicd-integration-gate"), False),
        (job("Coverage (unit-test)"), False),
        (job("${{ matrix.bucket }} - latest"), False),
        (job("configure", "success"), False),
        (job("configure", "success", run_attempt=2), True),
        (job("plan of another repository", "success", run_attempt=2), True),
        (job("tests/unit_tests/models/**/*.py - latest", "success", run_attempt=2), False),
        (job("Nemo_CICD_Test", "success", run_attempt=2), False),
    ],
)
def test_jobs(fields: dict[str, Any], needed: bool) -> None:
    assert (send("workflow_job", "completed", workflow_job=fields) is not None) is needed


@pytest.mark.parametrize(
    ("fields", "needed"),
    [
        ({"event": "push", "conclusion": "failure"}, True),
        ({"event": "push", "conclusion": None}, True),
        ({"event": "push", "conclusion": "success"}, True),
        ({"event": "merge_group", "conclusion": "failure"}, True),
        ({"event": "schedule", "conclusion": "failure"}, False),
        ({"event": "push", "conclusion": "action_required"}, False),
    ],
)
def test_runs(fields: dict[str, Any], needed: bool) -> None:
    assert (send("workflow_run", "completed", workflow_run={"id": 7, "run_attempt": 1, **fields}) is not None) is needed


@pytest.mark.parametrize(("slug", "conclusion", "needed"), [
    ("github-actions", "failure", True),
    ("github-actions", "success", False),
    ("mlm-bot", "failure", False),
    ("other-ci", "failure", False),
])  # fmt: skip
def test_check_runs(slug: str, conclusion: str, needed: bool) -> None:
    check = {"id": 10, "name": MODELS, "conclusion": conclusion, "app": {"id": 1, "slug": slug}}
    assert (send("check_run", "completed", check_run=check) is not None) is needed


def test_labels_and_our_own_echo() -> None:
    pull = {"number": 42, "state": "open"}
    found = send("pull_request", "labeled", pull_request=pull, label={"name": "Run tests"})
    assert found == {"pull": 42, "label": "Run tests", "added": True, "by": "ada"}
    ours = {"id": 77, "login": "mlm-bot[bot]", "type": "Bot"}
    assert send("pull_request", "labeled", sender=ours, pull_request=pull, label={"name": "Run tests"}) is None
    closed = {"number": 42, "state": "closed"}
    assert send("pull_request", "labeled", pull_request=closed, label={"name": "Run tests"}) is None


def comment(body: str | None = "/mlm help", login: str = "ada", kind: str = "User", **more: Any) -> dict[str, Any]:
    times = {"created_at": "2026-09-01T10:00:00Z", "updated_at": "2026-09-01T11:00:00Z"}
    return {"id": 9, "body": body, "user": {"id": 5, "login": login, "type": kind}, **times, **more}


ISSUE = {"number": 42, "pull_request": {"url": "x"}, "user": SENDER}


def test_a_command_keeps_who_when_and_what() -> None:
    found = send("issue_comment", "created", issue=ISSUE, comment=comment("hi\n/mlm rerun unit models"))
    assert found is not None
    assert found["lines"] == ["rerun unit models"]
    assert (found["author"], found["editor"], found["on_pull"]) == ("ada", "ada", True)
    assert found["at"] == "2026-09-01T10:00:00+00:00"


@pytest.mark.parametrize(
    "given",
    [
        comment("nice work"),
        comment(None),
        comment("> /mlm help"),
        comment(login="mlm-bot[bot]", kind="Bot"),
        comment(performed_via_github_app={"id": 77, "slug": "mlm-bot"}),
    ],
)
def test_talk_quotations_and_bots_need_nothing(given: dict[str, Any]) -> None:
    assert send("issue_comment", "created", issue=ISSUE, comment=given) is None


@pytest.mark.parametrize(
    ("old", "new", "needed"),
    [
        ("/mlm help", "/mlm help", False),
        ("/mlm help", "/mlm help\n\nthanks", False),
        ("hello", "hello\n\n/mlm help", True),
        ("/mlm helo", "/mlm help", True),
    ],
)
def test_an_edit_counts_when_it_changes_the_commands(old: str, new: str, needed: bool) -> None:
    changes = {"body": {"from": old}}
    editor = {"id": 6, "login": "bob", "type": "User"}
    found = send("issue_comment", "edited", sender=editor, issue=ISSUE, comment=comment(new), changes=changes)
    assert (found is not None) is needed
    if found:
        assert (found["author"], found["editor"]) == ("ada", "bob")


def test_an_edit_that_leaves_the_text_alone_needs_nothing() -> None:
    assert send("issue_comment", "edited", issue=ISSUE, comment=comment(), changes={}) is None


@pytest.mark.parametrize(
    ("event", "action"),
    [
        ("issue_comment", "deleted"),
        ("star", "created"),
        ("workflow_job", "queued"),
        ("pull_request", "opened"),
        ("push", ""),
    ],
)
def test_other_events_need_nothing_and_are_not_even_read(event: str, action: str) -> None:
    assert slim(event, "d-1", {"action": action}, app_slug="mlm-bot", app_id=77) is None


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"workflow_job": {"id": "x"}}, "workflow_job.id"),
        ({}, "workflow_job"),
        ({"workflow_job": job(), "repository": {"id": 1, "full_name": "../../etc"}}, "repository.full_name"),
        ({"workflow_job": job(), "installation": None}, "installation"),
    ],
)
def test_a_malformed_delivery_names_the_field(fields: dict[str, Any], names: str) -> None:
    payload = {"action": "completed", "repository": REPO, "installation": {"id": 3}, "sender": SENDER, **fields}
    with pytest.raises(MalformedError, match=names):
        slim("workflow_job", "d-1", payload, app_slug="mlm-bot", app_id=77)
