"""Which deliveries need work, and the few fields of them that are kept. Nine in ten need none.

Pure and cheap: it runs before the delivery is stored and answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from config.repo import default_config

from .commands.lines import command_lines
from .context import Event, Repo
from .job_names import is_consequence
from .payloads import CheckDelivery, CommentDelivery, Envelope, JobDelivery, PullDelivery, RunDelivery

#: A job that ended so failed. `cancelled` is a failure only if one of its steps had failed before.
RED = frozenset({"failure", "timed_out", "startup_failure"})
#: Runs that may belong to a pull request.
OF_PULLS = frozenset({"push", "pull_request", "pull_request_target", "merge_group", "workflow_dispatch"})

Data = dict[str, Any]


class MalformedError(ValueError):
    """A delivery lacks a field that every delivery of its kind has; the message names it."""


def slim(event: str, delivery_id: str, payload: Mapping[str, Any], *, app_slug: str, app_id: int) -> Event | None:
    """Keep what is needed of a delivery.

    Args:
        event: the header X-GitHub-Event.
        delivery_id: the header X-GitHub-Delivery.
        app_slug, app_id: our own App, whose echoes need no work.
    Returns:
        None if there is nothing to do.
    Raises:
        MalformedError: the payload is not what GitHub sends for this event.
    """
    keep = KEEPERS.get((event, str(payload.get("action", ""))))
    if keep is None:
        return None
    try:
        envelope = Envelope.model_validate(payload)
        data = keep(payload, envelope, Own(app_slug, app_id))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise MalformedError(f"{event}: {where}: {first['msg']}") from error
    if data is None:
        return None
    repo = Repo(
        id=envelope.repository.id,
        full_name=envelope.repository.full_name,
        installation_id=envelope.installation.id,
        default_branch=envelope.repository.default_branch,
    )
    return Event(delivery_id, event, envelope.action, repo, data)


def is_relevant(event: str, action: str) -> bool:
    """Say whether deliveries of this kind may need work."""
    return (event, action) in KEEPERS


class Own:
    """Our own App, as it shows in deliveries."""

    def __init__(self, slug: str, app_id: int) -> None:
        self.login = f"{slug}[bot]"
        self.app_id = app_id


def _job(payload: Mapping[str, Any], _envelope: Envelope, _own: Own) -> Data | None:
    job = JobDelivery.model_validate(payload).workflow_job
    patterns = default_config().jobs
    if job.name == patterns.plan and job.conclusion == "success" and job.run_attempt > 1:
        return {"job_id": job.id, "run_id": job.run_id, "attempt": job.run_attempt, "planned": True}
    broke_off = job.conclusion == "cancelled" and any(step.conclusion in RED for step in job.steps)
    if (job.conclusion not in RED and not broke_off) or is_consequence(job.name, patterns):
        return None
    return {"job_id": job.id, "run_id": job.run_id, "attempt": job.run_attempt}


def _run(payload: Mapping[str, Any], _envelope: Envelope, _own: Own) -> Data | None:
    run = RunDelivery.model_validate(payload).workflow_run
    if run.event not in OF_PULLS or run.conclusion in {"skipped", "action_required"}:
        return None
    return {"run_id": run.id, "attempt": run.run_attempt}


def _check(payload: Mapping[str, Any], _envelope: Envelope, _own: Own) -> Data | None:
    """A check run of GitHub Actions is a job, under the same id; other apps' checks have no logs for us."""
    check = CheckDelivery.model_validate(payload).check_run
    of_actions = check.app is not None and check.app.slug == "github-actions"
    if not of_actions or check.conclusion not in RED or is_consequence(check.name, default_config().jobs):
        return None
    return {"job_id": check.id}


def _label(payload: Mapping[str, Any], envelope: Envelope, own: Own) -> Data | None:
    pull = PullDelivery.model_validate(payload)
    if pull.label is None or pull.pull_request.state != "open" or envelope.sender.login == own.login:
        return None
    return {
        "pull": pull.pull_request.number,
        "label": pull.label.name,
        "added": envelope.action == "labeled",
        "by": envelope.sender.login,
    }


def _pull(payload: Mapping[str, Any], _envelope: Envelope, _own: Own) -> Data | None:
    return {"pull": PullDelivery.model_validate(payload).pull_request.number}


def _comment(payload: Mapping[str, Any], envelope: Envelope, own: Own) -> Data | None:
    delivery = CommentDelivery.model_validate(payload)
    comment, changes = delivery.comment, delivery.changes
    via = comment.performed_via_github_app
    if comment.user.is_bot or envelope.sender.is_bot or (via is not None and via.id == own.app_id):
        return None
    old_body = ""
    if envelope.action == "edited":
        if changes is None or changes.body is None:
            return None
        old_body = changes.body.from_
    lines, old = command_lines(comment.body or ""), command_lines(old_body)
    if not lines.texts or lines == old:
        return None
    return {
        "pull": delivery.issue.number,
        "on_pull": delivery.issue.pull_request is not None,
        "comment_id": comment.id,
        "author": comment.user.login,
        "editor": envelope.sender.login,
        "at": (comment.updated_at if envelope.action == "edited" else comment.created_at).isoformat(),
        "lines": list(lines.texts),
        "dropped": lines.dropped,
        "old_lines": list(old.texts),
    }


KEEPERS: Mapping[tuple[str, str], Callable[[Mapping[str, Any], Envelope, Own], Data | None]] = {
    ("workflow_job", "completed"): _job,
    ("workflow_run", "completed"): _run,
    ("check_run", "completed"): _check,
    ("pull_request", "labeled"): _label,
    ("pull_request", "unlabeled"): _label,
    ("pull_request", "synchronize"): _pull,
    ("pull_request", "closed"): _pull,
    ("issue_comment", "created"): _comment,
    ("issue_comment", "edited"): _comment,
}
