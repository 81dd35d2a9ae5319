"""May this run be re-run? Its plan job builds what the pull request is NOW, so a stale run may test unvetted code."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from config.repo import RepoConfig

from .context import Pull, Run
from .runs import mirrored_pull


@dataclass(frozen=True)
class Refusal:
    """Why a run is not re-run. `reason` is a stable word for logs and tests."""

    reason: str
    run: Run
    sha: str | None = None  # the commit that stands in the way


@dataclass(frozen=True)
class Scene:
    """All that the decision rests on, read right before the call."""

    pull: Pull
    run: Run
    newest: Run  # the newest run of the same branch and workflow
    mirror_sha: str | None  # head of the mirror branch; None: it does not exist
    now: datetime
    asked_at: datetime | None = None  # when the person asked; None: not a person's request


def check(scene: Scene, config: RepoConfig) -> Refusal | None:
    """Refuse unless the pull request is open and run, head and vetted copy are all the same commit.

    Source: Megatron-LM's cicd-main.yml resolves `merge_commit_sha` in `configure` at run time, without comparing it
    with the commit that was vetted.
    """
    pull, run = scene.pull, scene.run
    if pull.state != "open":
        return Refusal("closed", run)
    if run.id != scene.newest.id:
        return Refusal("not_newest", scene.newest)
    if run.head_sha != pull.head_sha:
        return Refusal("head_moved", run, pull.head_sha)
    if mirrored_pull(run, config) == pull.number and scene.mirror_sha != pull.head_sha:
        return Refusal("mirror_stale", run, pull.head_sha)
    if scene.asked_at is not None and run.created_at > scene.asked_at:
        # The person saw another commit than the one that would be tested.
        return Refusal("newer_than_request", run, pull.head_sha)
    if run.status != "completed":
        return Refusal("running", run)
    if scene.now - run.created_at >= timedelta(days=config.limits.rerun_days):
        return Refusal("too_old", run)
    if run.attempt > config.limits.reruns_per_run:
        return Refusal("too_many", run)
    return None
