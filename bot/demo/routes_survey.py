"""Endpoints by which an App looks around: where it is installed, and what is open there."""

from __future__ import annotations

from bot.demo.endpoint import Answer, Call, Endpoint
from bot.demo.errors import ApiError
from bot.demo.routes_app import installation_json
from bot.demo.shapes_pull import pull_simple_json
from bot.demo.shapes_repo import repo_json
from bot.demo.state import Pull


async def list_installations(call: Call) -> Answer:
    own = [found for found in call.state.installations.values() if found.app_id == call.calling_app.id]
    return Answer(items=[installation_json(call, found) for found in own])


async def list_installation_repos(call: Call) -> Answer:
    """What the token reaches, whatever its permissions are."""
    if call.token is None:
        raise ApiError(401, "Bad credentials")
    repos = [call.state.repos[repo_id] for repo_id in sorted(call.token.repo_ids)]
    return Answer(items=[repo_json(call.state, repo) for repo in repos], wrapped_as="repositories")


async def list_pulls(call: Call) -> Answer:
    """Open ones unless asked otherwise; by creation unless asked for `sort=updated`; newest first."""
    wanted = call.query("state") or "open"
    found = [pull for pull in call.repo.pulls.values() if wanted in {"all", pull.state}]
    by_change = call.query("sort") == "updated"

    def age(pull: Pull) -> tuple[float, int]:
        return (pull.updated_at if by_change else pull.created_at).timestamp(), pull.number

    found.sort(key=age, reverse=call.query("direction") != "asc")
    return Answer(items=[pull_simple_json(call.state, call.repo, pull) for pull in found])


ENDPOINTS = (
    Endpoint("GET", "/app/installations", list_installations, auth="jwt"),
    Endpoint("GET", "/installation/repositories", list_installation_repos),
    Endpoint("GET", "/repos/{owner}/{repo}/pulls", list_pulls, ("pull_requests:read",)),
)
