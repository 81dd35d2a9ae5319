"""Endpoints of a repository: itself, its refs, commits and files, who may do what."""

from __future__ import annotations

from aiohttp import web

from bot.demo.endpoint import Answer, Call, Endpoint
from bot.demo.errors import NOT_FOUND, ApiError
from bot.demo.shapes_pull import pull_simple_json
from bot.demo.shapes_repo import content_json, full_repo_json, git_commit_json, permission_json, ref_json
from bot.demo.state import Role


async def get_repo(call: Call) -> Answer:
    return Answer(full_repo_json(call.state, call.repo))


async def get_ref(call: Call) -> Answer:
    # Clients may encode the slashes of a ref or not; GitHub takes both.
    kind, _, branch = call.request.match_info["ref"].partition("/")
    sha = call.repo.branches.get(branch)
    if sha is None or kind != "heads":
        raise ApiError(404, NOT_FOUND)
    return Answer(ref_json(call.state, call.repo, branch, sha))


async def get_commit(call: Call) -> Answer:
    commit = call.repo.commits.get(call.request.match_info["sha"])
    if commit is None:
        raise ApiError(404, NOT_FOUND)
    return Answer(git_commit_json(call.state, call.repo, commit))


async def list_commit_pulls(call: Call) -> Answer:
    """Knows only pull requests whose head branch lives in this repository (domain 2.6)."""
    sha = call.request.match_info["sha"]
    if sha not in call.repo.commits:
        raise ApiError(422, f"No commit found for SHA: {sha}")
    found = [pull for pull in call.repo.pulls.values() if pull.head_sha == sha and not pull.fork]
    return Answer(items=[pull_simple_json(call.state, call.repo, pull) for pull in found])


async def get_permission(call: Call) -> Answer:
    login = call.request.match_info["user"]
    user = call.state.users.get(login)
    if user is None:
        raise ApiError(404, f"{login} is not a user")
    # Everybody may read a public repository, so an outsider gets "read", not 404 (domain 2.6).
    outsider: Role = "none" if call.repo.private else "read"
    return Answer(permission_json(call.state, user, call.repo.roles.get(login, outsider)))


async def get_membership(call: Call) -> Answer:
    """Only organizations that the token reaches a repository of are known."""
    org, team, login = (call.request.match_info[name] for name in ("org", "team", "user"))
    for repo in call.state.repos.values():
        reached = call.token is not None and repo.id in call.token.repo_ids
        if reached and repo.owner.login == org and login in repo.teams.get(team, set()):
            url = f"{call.state.api_url}/organizations/{repo.owner.id}/team/1/memberships/{login}"
            return Answer({"url": url, "role": "member", "state": "active"})
    raise ApiError(404, NOT_FOUND)


async def get_content(call: Call) -> Answer:
    path = call.request.match_info["path"]
    ref = call.query("ref")
    if ref not in {None, call.repo.default_branch, f"refs/heads/{call.repo.default_branch}"}:
        raise ApiError(404, f"No commit found for the ref {ref}")
    data = call.repo.files.get(path)
    if data is None:
        raise ApiError(404, NOT_FOUND)
    return Answer(content_json(call.state, call.repo, path, data))


async def no_such_endpoint(_: web.Request) -> web.Response:
    """GitHub answers JSON for paths that it does not know, too."""
    return web.json_response({"message": NOT_FOUND, "documentation_url": "https://docs.github.com/rest"}, status=404)


_REPO = "/repos/{owner}/{repo}"
ENDPOINTS = (
    Endpoint("GET", _REPO, get_repo, ("metadata:read",)),
    Endpoint("GET", _REPO + "/git/ref/{ref:.+}", get_ref, ("contents:read",)),
    Endpoint("GET", _REPO + "/git/commits/{sha}", get_commit, ("contents:read",)),
    Endpoint("GET", _REPO + "/commits/{sha}/pulls", list_commit_pulls, ("pull_requests:read", "contents:read")),
    Endpoint("GET", _REPO + "/collaborators/{user}/permission", get_permission, ("metadata:read",)),
    Endpoint("GET", "/orgs/{org}/teams/{team}/memberships/{user}", get_membership, ("members:read",)),
    Endpoint("GET", _REPO + "/contents/{path:.+}", get_content, ("contents:read",)),
)
