"""Which deliveries need work, and the few fields of them that are kept. Nine in ten need none.

Pure and cheap: it runs before the delivery is stored and answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from config.repo import default_config

from .commands.lines import command_lines
from .context import Event, Place, Repo
from .job_names import is_consequence, read_name
from .payloads import (
    Changes,
    CheckDelivery,
    CommentDelivery,
    Envelope,
    JobDelivery,
    PullDelivery,
    ReviewCommentDelivery,
    ReviewDelivery,
    RunDelivery,
    SuiteDelivery,
    TextField,
)

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
    if job.conclusion == "success" and job.run_attempt > 1 and _may_plan(job.name):
        return {"job_id": job.id, "run_id": job.run_id, "attempt": job.run_attempt, "planned": job.name}
    broke_off = job.conclusion == "cancelled" and any(step.conclusion in RED for step in job.steps)
    if (job.conclusion not in RED and not broke_off) or is_consequence(job.name, patterns):
        return None
    return {"job_id": job.id, "run_id": job.run_id, "attempt": job.run_attempt}


def _may_plan(name: str) -> bool:
    """Which job of a new attempt plans it is the repository's to say; its settings are not at hand here."""
    return read_name(name, default_config().jobs).kind == "other" and not is_consequence(name, default_config().jobs)


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
    found = CommentDelivery.model_validate(payload)
    comment = found.comment
    at = comment.updated_at if envelope.action == "edited" else comment.created_at
    spoken = _spoken("comment", comment, at, found.changes, envelope, own)
    on_pull = found.issue.pull_request is not None
    return spoken and {"pull": found.issue.number, "on_pull": on_pull, **spoken}


def _review_comment(payload: Mapping[str, Any], envelope: Envelope, own: Own) -> Data | None:
    found = ReviewCommentDelivery.model_validate(payload)
    comment = found.comment
    at = comment.updated_at if envelope.action == "edited" else comment.created_at
    spoken = _spoken("review_comment", comment, at, found.changes, envelope, own)
    return spoken and {"pull": found.pull_request.number, "on_pull": True, **spoken}


def _review(payload: Mapping[str, Any], envelope: Envelope, own: Own) -> Data | None:
    found = ReviewDelivery.model_validate(payload)
    review = found.review
    at = (review.updated_at if envelope.action == "edited" else None) or review.submitted_at
    if at is None:  # not submitted yet: nobody but its author can see it
        return None
    spoken = _spoken("review", review, at, found.changes, envelope, own)
    return spoken and {"pull": found.pull_request.number, "on_pull": True, **spoken}


def _spoken(  # noqa: PLR0913, PLR0917 - the parts of one delivery
    place: Place, text: TextField, at: datetime, changes: Changes | None, envelope: Envelope, own: Own
) -> Data | None:
    """Keep the command lines of a text, with what stood there before an edit; None if nothing new is said."""
    via = text.performed_via_github_app
    if own.login in {text.user.login, envelope.sender.login} or (via is not None and via.id == own.app_id):
        return None
    old_body = ""
    if envelope.action == "edited":
        if changes is None or changes.body is None:
            return None
        old_body = changes.body.from_
    lines, old = command_lines(text.body or ""), command_lines(old_body)
    if not lines.texts or lines == old:
        return None
    people = (text.user, envelope.sender)
    return {
        "place": place,
        "comment_id": text.id,
        "author": text.user.login,
        "editor": envelope.sender.login,
        "bots": sorted({person.login for person in people if person.is_bot}),
        "at": at.isoformat(),
        "lines": list(lines.texts),
        "dropped": lines.dropped,
        "old_lines": list(old.texts),
    }


def _button(payload: Mapping[str, Any], envelope: Envelope, own: Own) -> Data | None:
    """A button of our own check run was pressed; GitHub tells nobody else."""
    found = CheckDelivery.model_validate(payload)
    check, pressed = found.check_run, found.requested_action
    if check.app is None or check.app.id != own.app_id or envelope.sender.is_bot:
        return None
    identifier = pressed.identifier if pressed is not None else "analyze"
    return {"head_sha": check.head_sha, "button": identifier, "about": check.external_id, "by": envelope.sender.login}


def _suite(payload: Mapping[str, Any], envelope: Envelope, own: Own) -> Data | None:
    """GitHub's own "Re-run" may ask for all our checks of a commit instead of for the one."""
    suite = SuiteDelivery.model_validate(payload).check_suite
    if suite.app is None or suite.app.id != own.app_id or envelope.sender.is_bot:
        return None
    return {"head_sha": suite.head_sha, "button": "analyze", "about": "", "by": envelope.sender.login}


KEEPERS: Mapping[tuple[str, str], Callable[[Mapping[str, Any], Envelope, Own], Data | None]] = {
    ("workflow_job", "completed"): _job,
    ("workflow_run", "completed"): _run,
    ("workflow_run", "requested"): _run,
    ("check_run", "completed"): _check,
    ("pull_request", "labeled"): _label,
    ("pull_request", "unlabeled"): _label,
    ("pull_request", "synchronize"): _pull,
    ("pull_request", "closed"): _pull,
    ("issue_comment", "created"): _comment,
    ("issue_comment", "edited"): _comment,
    ("pull_request_review", "submitted"): _review,
    ("pull_request_review", "edited"): _review,
    ("pull_request_review_comment", "created"): _review_comment,
    ("pull_request_review_comment", "edited"): _review_comment,
    ("check_run", "requested_action"): _button,
    ("check_run", "rerequested"): _button,
    ("check_suite", "rerequested"): _suite,
}
