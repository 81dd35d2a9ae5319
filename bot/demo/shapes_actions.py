"""Workflow runs, jobs, check runs and artifacts in the JSON shapes of GitHub's REST API and webhooks."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any

from bot.demo.actions_state import Artifact, Job, JobSpec, Run
from bot.demo.shapes_repo import app_json, minimal_repo_json, node_id, user_json
from bot.demo.state import App, Repo, State, stamp

Json = dict[str, Any]
#: The App that owns the check runs of GitHub Actions, on github.com as here.
ACTIONS_APP_ID = 15368


def _maybe(at: datetime | None) -> str | None:
    return stamp(at) if at else None


def run_json(state: State, repo: Repo, run: Run) -> Json:
    url = f"{state.api_url}/repos/{repo.full_name}/actions/runs/{run.id}"
    web = f"{state.web_url}/{repo.full_name}/actions/runs/{run.id}"
    previous = f"{url}/attempts/{run.attempt_number - 1}" if run.attempt_number > 1 else None
    return {
        "id": run.id,
        "name": run.name,
        "node_id": node_id("WFR", run.id),
        "check_suite_id": run.check_suite_id,
        "check_suite_node_id": node_id("CS", run.check_suite_id),
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "path": run.path,
        "run_number": run.number,
        "run_attempt": run.attempt_number,
        "referenced_workflows": [],
        "event": run.event,
        "display_title": run.display_title,
        "status": run.status,
        "conclusion": run.conclusion,
        "workflow_id": run.workflow_id,
        "url": url,
        "html_url": web,
        "pull_requests": _pull_requests(state, repo, run),
        "created_at": stamp(run.created_at),
        "updated_at": stamp(run.updated_at),
        "run_started_at": stamp(run.attempt.started_at),
        "actor": user_json(state, state.user(run.actor)),
        "triggering_actor": user_json(state, state.user(run.triggering_actor or run.actor)),
        "jobs_url": f"{url}/jobs",
        "logs_url": f"{url}/logs",
        "check_suite_url": f"{state.api_url}/repos/{repo.full_name}/check-suites/{run.check_suite_id}",
        "artifacts_url": f"{url}/artifacts",
        "cancel_url": f"{url}/cancel",
        "rerun_url": f"{url}/rerun",
        "previous_attempt_url": previous,
        "workflow_url": f"{state.api_url}/repos/{repo.full_name}/actions/workflows/{run.workflow_id}",
        "head_commit": _head_commit(repo, run),
        "repository": minimal_repo_json(state, repo),
        "head_repository": minimal_repo_json(state, repo),
    }


def _pull_requests(state: State, repo: Repo, run: Run) -> list[Json]:
    """Empty for mirror branches and forks, as in life (domain 0.9); filled for a head branch of this repository."""
    api = f"{state.api_url}/repos/{repo.full_name}"
    short = {"id": repo.id, "url": api, "name": repo.name}
    return [
        {
            "id": pull.id,
            "number": pull.number,
            "url": f"{api}/pulls/{pull.number}",
            "head": {"ref": pull.head_ref, "sha": pull.head_sha, "repo": short},
            "base": {"ref": pull.base_ref, "sha": repo.branches[pull.base_ref], "repo": short},
        }
        for pull in repo.pulls.values()
        if pull.head_ref == run.head_branch and not pull.fork and pull.state == "open"
    ]


def _head_commit(repo: Repo, run: Run) -> Json:
    commit = repo.commits[run.head_sha]
    author = {"name": "A. Author", "email": "author@example.com"}
    tree = hashlib.sha1(run.head_sha.encode(), usedforsecurity=False).hexdigest()
    return {
        "id": run.head_sha,
        "tree_id": tree,
        "message": commit.message,
        "timestamp": stamp(commit.at),
        "author": author,
        "committer": author,
    }


def workflow_json(state: State, repo: Repo, run: Run) -> Json:
    api = f"{state.api_url}/repos/{repo.full_name}/actions/workflows/{run.workflow_id}"
    web = f"{state.web_url}/{repo.full_name}"
    return {
        "id": run.workflow_id,
        "node_id": node_id("W", run.workflow_id),
        "name": run.name,
        "path": run.path,
        "state": "active",
        "created_at": stamp(repo.created_at),
        "updated_at": stamp(repo.created_at),
        "url": api,
        "html_url": f"{web}/blob/{repo.default_branch}/{run.path}",
        "badge_url": f"{web}/workflows/badge.svg",
    }


def _steps(job: Job) -> list[Json]:
    """The steps; after the failed one only those that always run were not skipped."""
    if job.started_at is None or job.conclusion == "skipped":
        return []
    failed = failed_step_index(job.spec, job.failed_step) if job.conclusion in {"failure", "timed_out"} else None
    return [
        {
            "name": name,
            "status": "completed" if job.status == "completed" else "in_progress" if index == 0 else "queued",
            "conclusion": _step_conclusion(job, index, failed),
            "number": index + 1,
            "started_at": _maybe(job.started_at),
            "completed_at": _maybe(job.completed_at),
        }
        for index, name in enumerate(job.spec.steps)
    ]


def failed_step_index(spec: JobSpec, name: str | None) -> int:
    """Where the job failed: the named step, else the middle one (the first and last only set up and clean up)."""
    return spec.steps.index(name) if name in spec.steps else len(spec.steps) // 2


def _step_conclusion(job: Job, index: int, failed: int | None) -> str | None:
    if job.status != "completed":
        return None
    if job.conclusion == "cancelled":
        return "cancelled" if index else "success"
    if failed is None or index < failed or index == len(job.spec.steps) - 1:
        return "success"
    if index == failed:
        return "failure"
    always = job.spec.steps[index].startswith(("Check result", "Upload", "Post"))
    return "success" if always else "skipped"


def job_json(state: State, repo: Repo, run: Run, job: Job) -> Json:
    api = f"{state.api_url}/repos/{repo.full_name}"
    has_runner = job.started_at is not None and job.conclusion != "skipped"
    return {
        "id": job.id,
        "run_id": run.id,
        "run_url": f"{api}/actions/runs/{run.id}",
        "run_attempt": job.attempt,
        "node_id": node_id("CR", job.id),
        "head_sha": job.head_sha,
        "url": f"{api}/actions/jobs/{job.id}",
        "html_url": f"{state.web_url}/{repo.full_name}/actions/runs/{run.id}/job/{job.id}",
        "status": job.status,
        "conclusion": job.conclusion,
        "created_at": stamp(job.created_at),
        "started_at": stamp(job.started_at or job.created_at),
        "completed_at": _maybe(job.completed_at),
        "name": job.name,
        "steps": _steps(job),
        "check_run_url": f"{api}/check-runs/{job.id}",
        "labels": [job.spec.runner_label],
        "runner_id": job.id % 1000 if has_runner else None,
        "runner_name": f"{job.spec.runner_label}-runner" if has_runner else None,
        "runner_group_id": 1 if has_runner else None,
        "runner_group_name": "Default" if has_runner else None,
        "workflow_name": run.name,
        "head_branch": run.head_branch,
    }


def check_run_json(state: State, repo: Repo, run: Run, job: Job) -> Json:
    """The check run of an Actions job; its id is the job's id (oracles: "Check run id = job id for Actions")."""
    api = f"{state.api_url}/repos/{repo.full_name}"
    job_url = f"{state.web_url}/{repo.full_name}/actions/runs/{run.id}/job/{job.id}"
    owner = state.user("github", kind="Organization")
    actions = App(
        ACTIONS_APP_ID, "github-actions", owner, owner, "", [], "", repo.created_at, None, {"actions": "write"}, ()
    )
    app = app_json(state, actions)
    suite = {
        "id": run.check_suite_id,
        "node_id": node_id("CS", run.check_suite_id),
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "status": run.status if run.status in {"queued", "in_progress", "completed"} else "queued",
        "conclusion": run.conclusion,
        "url": f"{api}/check-suites/{run.check_suite_id}",
        "before": "0" * 40,
        "after": run.head_sha,
        "pull_requests": _pull_requests(state, repo, run),
        "app": app,
        "created_at": stamp(run.created_at),
        "updated_at": stamp(run.updated_at),
    }
    return {
        "id": job.id,
        "name": job.name,
        "node_id": node_id("CR", job.id),
        "head_sha": job.head_sha,
        "external_id": f"job-{job.id}",
        "url": f"{api}/check-runs/{job.id}",
        "html_url": job_url,
        "details_url": job_url,
        "status": job.status,
        "conclusion": job.conclusion,
        "started_at": stamp(job.started_at or job.created_at),
        "completed_at": _maybe(job.completed_at),
        "output": {
            "title": None,
            "summary": None,
            "text": None,
            "annotations_count": 0,
            "annotations_url": f"{api}/check-runs/{job.id}/annotations",
        },
        "check_suite": suite,
        "app": app,
        "pull_requests": _pull_requests(state, repo, run),
    }


def artifact_json(state: State, repo: Repo, run: Run, artifact: Artifact) -> Json:
    """An artifact: its run and head, but neither job nor attempt (domain 2.5)."""
    url = f"{state.api_url}/repos/{repo.full_name}/actions/artifacts/{artifact.id}"
    return {
        "id": artifact.id,
        "node_id": node_id("AR", artifact.id),
        "name": artifact.name,
        "size_in_bytes": len(artifact.data),
        "url": url,
        "archive_download_url": f"{url}/zip",
        "expired": artifact.expired,
        "digest": f"sha256:{hashlib.sha256(artifact.data).hexdigest()}",
        "created_at": stamp(artifact.created_at),
        "expires_at": stamp(artifact.created_at + timedelta(days=90)),
        "updated_at": stamp(artifact.created_at),
        "workflow_run": {
            "id": run.id,
            "repository_id": repo.id,
            "head_repository_id": repo.id,
            "head_branch": run.head_branch,
            "head_sha": run.head_sha,
        },
    }
