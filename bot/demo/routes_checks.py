"""Endpoints of check runs: those of Actions jobs, read only, and those that Apps make."""

from __future__ import annotations

from bot.demo.check_state import CheckRun
from bot.demo.endpoint import Answer, Call, Endpoint
from bot.demo.errors import NOT_FOUND, ApiError
from bot.demo.shapes_actions import check_run_json
from bot.demo.shapes_checks import own_check_json
from bot.demo.state import Repo

FOREIGN = "Invalid app_id `{}` - check run can only be modified by the GitHub App that created it."


def _tell(call: Call, check: CheckRun, action: str) -> None:
    fields = {"check_run": own_check_json(call.state, call.repo, check)}
    call.parts.hooks.emit(call.repo, "check_run", action, call.bot, fields)


async def create_check(call: Call) -> Answer:
    name, sha = str(call.body.get("name", "")), str(call.body.get("head_sha", ""))
    if not name or sha not in call.repo.commits:
        raise ApiError(422, f"No commit found for SHA: {sha}" if name else "Invalid request.\n\nname wasn't supplied.")
    state, app = call.state, call.calling_app
    check = CheckRun(state.next_id("job"), app.id, _suite(call, sha), name, sha, state.clock())
    check.take(call.body)
    call.repo.checks[check.id] = check
    _tell(call, check, "completed" if check.conclusion else "created")
    return Answer(own_check_json(state, call.repo, check), 201)


def _suite(call: Call, sha: str) -> int:
    """One suite per App and commit."""
    same = (one for one in call.repo.checks.values() if (one.head_sha, one.app_id) == (sha, call.calling_app.id))
    found = next(same, None)
    return found.suite_id if found else call.state.next_id("suite")


async def update_check(call: Call) -> Answer:
    check = call.repo.checks.get(call.number("check"))
    if check is None:
        raise ApiError(404, NOT_FOUND)
    if check.app_id != call.calling_app.id:
        raise ApiError(403, FOREIGN.format(call.calling_app.id))
    check.take(call.body)
    return Answer(own_check_json(call.state, call.repo, check))


async def get_check(call: Call) -> Answer:
    wanted = call.number("check")
    if check := call.repo.checks.get(wanted):
        return Answer(own_check_json(call.state, call.repo, check))
    job = call.repo.jobs.get(wanted)
    if job is None or job.hidden:
        raise ApiError(404, NOT_FOUND)
    return Answer(check_run_json(call.state, call.repo, call.repo.runs[job.run_id], job))


async def list_checks(call: Call) -> Answer:
    """The Apps' check runs of a commit, newest first; `filter=latest` (the default) keeps one per App and name."""
    sha = call.request.match_info["sha"]
    found = [check for check in reversed(call.repo.checks.values()) if check.head_sha == sha]
    if wanted := call.query("check_name"):
        found = [check for check in found if check.name == wanted]
    if app_id := call.query("app_id"):
        found = [check for check in found if str(check.app_id) == app_id]
    if call.query("filter") != "all":
        found = list({(check.app_id, check.name): check for check in reversed(found)}.values())
    return Answer(items=[own_check_json(call.state, call.repo, check) for check in found], wrapped_as="check_runs")


async def list_annotations(call: Call) -> Answer:
    check = call.repo.checks.get(call.number("check"))
    if check is None:
        raise ApiError(404, NOT_FOUND)
    return Answer(items=[_annotation(call.state.web_url, call.repo, check, one) for one in check.annotations])


def _annotation(web: str, repo: Repo, check: CheckRun, one: dict[str, object]) -> dict[str, object]:
    more = {"start_column": None, "end_column": None, "title": None, "raw_details": None}
    return {**more, **one, "blob_href": f"{web}/{repo.full_name}/blob/{check.head_sha}/{one['path']}"}


_REPO = "/repos/{owner}/{repo}"
_READ, _WRITE = ("checks:read",), ("checks:write",)
ENDPOINTS = (
    Endpoint("POST", _REPO + "/check-runs", create_check, _WRITE),
    Endpoint("PATCH", _REPO + "/check-runs/{check}", update_check, _WRITE),
    Endpoint("GET", _REPO + "/check-runs/{check}", get_check, _READ),
    Endpoint("GET", _REPO + "/check-runs/{check}/annotations", list_annotations, _READ),
    Endpoint("GET", _REPO + "/commits/{sha}/check-runs", list_checks, _READ),
)
