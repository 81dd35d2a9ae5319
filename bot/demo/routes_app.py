"""Endpoints of the App itself: tokens, deliveries, limits."""

from __future__ import annotations

from datetime import timedelta

from bot.demo.endpoint import Answer, Call, Endpoint
from bot.demo.errors import NOT_FOUND, ApiError
from bot.demo.shapes_app import delivery_item_json, delivery_json, rate_limit_json, token_json
from bot.demo.shapes_repo import app_json, user_json
from bot.demo.state import Delivery, Installation, stamp


async def get_app(call: Call) -> Answer:
    app = call.calling_app
    return Answer({**app_json(call.state, app), "installations_count": len(call.state.installations)})


async def create_token(call: Call) -> Answer:
    installation = call.state.installations.get(call.number("installation"))
    if installation is None or installation.app_id != call.calling_app.id:
        raise ApiError(404, NOT_FOUND)
    token = call.parts.access.issue(call.calling_app, installation, call.body)
    return Answer(token_json(call.state, token, selected="repository_ids" in call.body), 201)


async def get_repo_installation(call: Call) -> Answer:
    repo = call.state.repo("{owner}/{repo}".format(**call.request.match_info))
    for installation in call.state.installations_on(repo) if repo else ():
        if installation.app_id == call.calling_app.id:
            return Answer(installation_json(call, installation))
    raise ApiError(404, NOT_FOUND)


def installation_json(call: Call, installation: Installation) -> dict[str, object]:
    state, app = call.state, call.calling_app
    api = f"{state.api_url}/app/installations/{installation.id}"
    return {
        "id": installation.id,
        "account": user_json(state, installation.account),
        "repository_selection": "selected",
        "access_tokens_url": f"{api}/access_tokens",
        "repositories_url": f"{state.api_url}/installation/repositories",
        "html_url": f"{state.web_url}/settings/installations/{installation.id}",
        "app_id": app.id,
        "app_slug": app.slug,
        "target_id": installation.account.id,
        "target_type": installation.account.type,
        "permissions": app.permissions,
        "events": list(app.events),
        "created_at": stamp(app.created_at),
        "updated_at": stamp(app.created_at),
        "single_file_name": None,
        "suspended_by": None,
        "suspended_at": None,
    }


def _own_deliveries(call: Call) -> list[Delivery]:
    """Newest first, as far back as GitHub keeps them: 3 days, 7 on an Enterprise Server."""
    oldest = call.state.clock() - timedelta(days=7 if call.state.enterprise else 3)
    own = (found for found in reversed(call.state.deliveries) if found.app_id == call.calling_app.id)
    return [found for found in own if found.delivered_at >= oldest]


async def list_deliveries(call: Call) -> Answer:
    """Newest first, by cursor instead of page; `status` is success or failure (domain 2.1)."""
    found = [delivery for delivery in _own_deliveries(call) if delivery.status != "pending"]
    wanted = call.query("status")
    if wanted:
        found = [delivery for delivery in found if delivery.ok == (wanted == "success")]
    cursor = call.query("cursor")
    if cursor and cursor.isdecimal():
        found = [delivery for delivery in found if delivery.id < int(cursor)]
    size = min(int(call.query("per_page") or 30), 100)
    shown = found[:size]
    headers = {}
    if len(found) > size:
        target = call.request.url.update_query(cursor=shown[-1].id, per_page=size)
        headers["Link"] = f'<{target}>; rel="next"'
    return Answer([delivery_item_json(delivery) for delivery in shown], headers=headers)


def _delivery(call: Call) -> Delivery:
    wanted = call.number("delivery")
    for delivery in _own_deliveries(call):
        if delivery.id == wanted:
            return delivery
    raise ApiError(404, NOT_FOUND)


async def get_delivery(call: Call) -> Answer:
    return Answer(delivery_json(_delivery(call), call.calling_app.webhook_url or ""))


async def redeliver(call: Call) -> Answer:
    call.parts.hooks.queue_again(_delivery(call))
    return Answer({}, 202)


async def get_rate_limit(call: Call) -> Answer:
    if call.state.enterprise:
        raise ApiError(404, "Rate limiting is not enabled.")
    budget = call.parts.access.budget
    budget.used -= 1  # asking for the limit is free
    return Answer(rate_limit_json(budget.limit, budget.used, budget.reset))


ENDPOINTS = (
    Endpoint("GET", "/app", get_app, auth="jwt"),
    Endpoint("POST", "/app/installations/{installation}/access_tokens", create_token, auth="jwt"),
    Endpoint("GET", "/repos/{owner}/{repo}/installation", get_repo_installation, auth="jwt"),
    Endpoint("GET", "/app/hook/deliveries", list_deliveries, auth="jwt"),
    Endpoint("GET", "/app/hook/deliveries/{delivery}", get_delivery, auth="jwt"),
    Endpoint("POST", "/app/hook/deliveries/{delivery}/attempts", redeliver, auth="jwt"),
    Endpoint("GET", "/rate_limit", get_rate_limit),
)
