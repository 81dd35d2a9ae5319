"""Check runs and check suites of Apps in the JSON shapes of GitHub's REST API and webhooks."""

from __future__ import annotations

from typing import Any

from bot.demo.check_state import CheckRun
from bot.demo.shapes_repo import app_json, node_id
from bot.demo.state import Repo, State, stamp

Json = dict[str, Any]


def own_suite_json(state: State, repo: Repo, check: CheckRun) -> Json:
    """The suite of one App on one commit. A commit of a fork or of a copied branch shows no branch (domain 2.6)."""
    api = f"{state.api_url}/repos/{repo.full_name}/check-suites/{check.suite_id}"
    return {
        "id": check.suite_id,
        "node_id": node_id("CS", check.suite_id),
        "head_branch": None,
        "head_sha": check.head_sha,
        "status": "completed",
        "conclusion": check.conclusion,
        "url": api,
        "before": "0" * 40,
        "after": check.head_sha,
        "pull_requests": [],
        "app": app_json(state, state.apps[check.app_id]),
        "created_at": stamp(check.at),
        "updated_at": stamp(check.at),
    }


def suite_event_json(state: State, repo: Repo, check: CheckRun) -> Json:
    """The suite as `check_suite` events carry it, with the commit and the number of its runs."""
    url = f"{state.api_url}/repos/{repo.full_name}/check-suites/{check.suite_id}"
    commit = repo.commits[check.head_sha]
    author = {"name": "A. Author", "email": "author@example.com"}
    return {
        **own_suite_json(state, repo, check),
        "latest_check_runs_count": 1,
        "check_runs_url": f"{url}/check-runs",
        "head_commit": {
            "id": check.head_sha,
            "tree_id": check.head_sha[::-1],
            "message": commit.message,
            "timestamp": stamp(commit.at),
            "author": author,
            "committer": author,
        },
    }


def own_check_json(state: State, repo: Repo, check: CheckRun) -> Json:
    api = f"{state.api_url}/repos/{repo.full_name}/check-runs/{check.id}"
    web = f"{state.web_url}/{repo.full_name}/runs/{check.id}"
    return {
        "id": check.id,
        "name": check.name,
        "node_id": node_id("CR", check.id),
        "head_sha": check.head_sha,
        "external_id": check.external_id,
        "url": api,
        "html_url": web,
        "details_url": web,
        "status": check.status,
        "conclusion": check.conclusion,
        "started_at": stamp(check.at),
        "completed_at": stamp(check.at) if check.conclusion else None,
        "output": {
            "title": check.title,
            "summary": check.summary,
            "text": None,
            "annotations_count": len(check.annotations),
            "annotations_url": f"{api}/annotations",
        },
        "check_suite": own_suite_json(state, repo, check),
        "app": app_json(state, state.apps[check.app_id]),
        "pull_requests": [],
    }
