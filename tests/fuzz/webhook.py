"""The body of a signed delivery: work, no work, or malformed; never anything else. First byte: which event."""

from __future__ import annotations

from bot.engine.documents import dump_task, load_task, task_id
from bot.foreign_json import load_foreign
from bot.web.webhook import delivery_task
from handlers.events import KEEPERS, slim

KINDS = sorted(KEEPERS)


def run(data: bytes) -> None:
    if not data:
        return
    event, action = KINDS[data[0] % len(KINDS)]
    try:
        payload = load_foreign(data[1:])
    except (ValueError, RecursionError):
        return  # 400
    if not isinstance(payload, dict):
        return
    payload["action"] = action
    try:
        found = slim(event, "guid-12345678", payload, app_slug="mlm-bot", app_id=1)
    except ValueError:
        return  # malformed, and said so
    if found is not None:
        task = delivery_task(found)
        assert load_task(dump_task(task)) == task
        assert task_id(task)
        str(task.data).encode()  # nothing in it that a database would refuse
