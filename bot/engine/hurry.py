"""Work that was put off need not wait for its time when what kept it is over: it starts now, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog
from dbos import DBOS

from bot.engine.documents import PUT_OFF, stored_task
from bot.engine.workflows import LONGEST_PAUSE_S
from handlers.context import Task

log = structlog.get_logger()

#: Between two that start, in seconds: whoever has just recovered is not to be overrun.
APART_S = 0.2
#: Rows that are read at once.
PAGE = 500


async def hurry(concerns: Callable[[Task], bool]) -> int:
    """Start soon what was put off and concerns what is over; return how many pieces of work that are.

    Those that were put off first come first. None is moved to a later time, so that several processes may do the same;
    what finds no place within the longest pause comes by itself.
    """
    moved = start = 0
    while moved * APART_S < LONGEST_PAUSE_S:
        rows = await DBOS.list_workflows_async(status="DELAYED", limit=PAGE, offset=start, load_output=False)
        for row in rows:
            task = stored_task(row.input)
            if task is None or PUT_OFF not in row.workflow_id or not concerns(task):
                continue
            soon_s = (moved + 1) * APART_S
            if (row.delay_until_epoch_ms or 0) / 1000 - time.time() > soon_s:
                await DBOS.set_workflow_delay_async(row.workflow_id, delay_seconds=soon_s)
                moved += 1
        start += PAGE
        if len(rows) < PAGE:
            break
    if moved:
        log.info("engine.hurried", tasks=moved)
    return moved
