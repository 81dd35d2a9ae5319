"""What only the App itself sees: installation tokens, deliveries, rate limits."""

from __future__ import annotations

from typing import Any

from bot.demo.shapes_repo import repo_json
from bot.demo.state import Delivery, State, Token, stamp

Json = dict[str, Any]


def token_json(state: State, token: Token, *, selected: bool) -> Json:
    shown: Json = {
        "token": token.value,
        "expires_at": stamp(token.expires_at),
        "permissions": token.permissions,
        "repository_selection": "selected",
    }
    if selected:
        shown["repositories"] = [repo_json(state, state.repos[repo_id]) for repo_id in sorted(token.repo_ids)]
    return shown


def delivery_item_json(delivery: Delivery) -> Json:
    return {
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": stamp(delivery.delivered_at),
        "redelivery": delivery.redelivery,
        "duration": round(delivery.duration_s, 2),
        "status": delivery.status,
        "status_code": delivery.status_code,
        "event": delivery.event,
        "action": delivery.action,
        "installation_id": delivery.installation_id,
        "repository_id": delivery.repo_id,
        "throttled_at": None,
    }


def delivery_json(delivery: Delivery, url: str) -> Json:
    return {
        **delivery_item_json(delivery),
        "url": url,
        "request": {"headers": delivery.request_headers, "payload": delivery.payload},
        "response": {"headers": {}, "payload": delivery.response},
    }


def rate_limit_json(limit: int, used: int, reset: int) -> Json:
    core = {"limit": limit, "remaining": max(limit - used, 0), "reset": reset, "used": used}
    search = {"limit": 30, "remaining": 30, "reset": reset, "used": 0}
    return {"resources": {"core": core, "search": search}, "rate": core}
