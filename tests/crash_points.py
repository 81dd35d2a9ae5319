"""`mlm serve` that kills itself at one durable step: as it is about to be committed, or when it just was. A program.

Each life ends at the next step of a plan, and the one after it begins at once: forked from a process that has imported
everything, so that a hundred lives do not cost a hundred imports.

environment: CRASH_PLAN, a JSON list of [side, step]; CRASH_SEEN, a file that takes down each step once.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.pool import Pool

from bot.cli.main import main

#: linux/prctl.h: the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1
BEFORE, AFTER = "before", "after"
#: How a test starts this.
PROGRAM = (sys.executable, __file__)
#: A step that the other side of the test knows of: a request.
REQUEST = re.compile(r"[A-Z]+ /")
VERB = re.compile(
    r"\s*(?P<verb>INSERT|UPDATE|DELETE)\s+(?:INTO|FROM)?\s*(?:\"?(?:dbos|main)\"?\.)?\"?(?P<table>\w+)", re.IGNORECASE
)
TASK = re.compile(r"(?P<name>[a-z-]+):\d+(?:#\d+)?:")
STATES = frozenset({"ENQUEUED", "PENDING", "DELAYED", "SUCCESS", "ERROR"})


def name_of(statement: str, parameters: dict[str, Any]) -> str:
    """Name what a statement writes, the same for every pull request: the table, the task, what it is about."""
    found = VERB.match(statement)
    if found is None:
        return ""
    words = [found["verb"].upper(), found["table"]]
    for column, value in sorted(parameters.items()):
        if isinstance(value, str):
            if task := TASK.match(value):
                words.append(task["name"])
            elif value in STATES or column.startswith("function_name"):
                words.append(value)
            elif found["table"].startswith("mlm_") and re.fullmatch(r"key(_\d+)?", column):
                words.append(re.split(r"[-_]?\d", value)[0].split("-")[0])
    return " ".join(dict.fromkeys(words))


def listen(reach: Callable[[str, str], None]) -> None:
    """Call `reach` with (side, step) at both sides of every commit that changes something."""

    @event.listens_for(Engine, "after_cursor_execute")
    def written(connection: Any, cursor: Any, statement: str, _p: Any, context: Any, _many: bool) -> None:
        parameters = (getattr(context, "compiled_parameters", None) or [{}])[0]
        # SQLite does not count what it is yet to return; whether anything has changed shows at the end.
        changed = cursor.rowcount > 0 or (connection.dialect.name == "sqlite" and "RETURNING" in statement)
        if changed and (name := name_of(statement, parameters)):
            connection.info.setdefault("writes", []).append(name)

    @event.listens_for(Engine, "commit")
    def about_to_commit(connection: Any) -> None:
        changes = getattr(connection.connection.dbapi_connection, "total_changes", None)
        before, connection.info["changes"] = connection.info.get("changes"), changes
        writes = connection.info.pop("writes", None)
        if writes and (changes is None or changes != before):
            connection.info["committed"] = step = " + ".join(dict.fromkeys(writes))
            reach(BEFORE, step)

    @event.listens_for(Engine, "rollback")
    def rolled_back(connection: Any) -> None:
        connection.info.pop("writes", None)

    @event.listens_for(Pool, "checkin")
    def handed_back(_connection: Any, record: Any) -> None:
        if step := record.info.pop("committed", None):
            reach(AFTER, step)


def live(armed: list[str] | None) -> int:
    """Serve until told to stop, or until the armed step."""
    seen: set[str] = set()
    notes = os.environ.get("CRASH_SEEN")

    def reach(side: str, step: str) -> None:
        if [side, step] == armed:
            os.kill(os.getpid(), signal.SIGKILL)
        if notes and step not in seen:
            seen.add(step)
            with Path(notes).open("a") as file:
                file.write(step + "\n")

    listen(reach)
    return main(["serve"])


def say(what: str, **more: object) -> None:
    """Write a line as the bot's log has them."""
    sys.stderr.write(json.dumps({"event": what, "level": "info", **more}) + "\n")
    sys.stderr.flush()


def lives(plan: list[list[str]]) -> int:
    """One life for each step of the plan, then one that lasts; return its exit status."""
    for armed in [*plan, None]:
        child = os.fork()
        if child == 0:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os._exit(live(armed if armed and not REQUEST.match(armed[1]) else None))
        say("crash.born", pid=child, armed=armed)
        signal.signal(signal.SIGTERM, lambda number, _frame, child=child: os.kill(child, number))  # type: ignore[misc]
        _, status = os.waitpid(child, 0)
        say("crash.died", armed=armed)
        if not os.WIFSIGNALED(status):
            return os.waitstatus_to_exitcode(status)
    return 1


if __name__ == "__main__":
    import bot.app
    import bot.engine.collector
    import bot.engine.rescue
    import bot.engine.workflows  # noqa: F401 (what a life would import)

    sys.exit(lives(json.loads(Path(os.environ["CRASH_PLAN"]).read_text())))
