"""Finished rows are deleted after a week and a day; dbos's core keeps them for ever."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from dbos import DBOS

#: A collected delivery id would run again when redelivered; GitHub redelivers for 3 days (7 on Enterprise Server).
KEEP_S = 8 * 24 * 3600.0
#: Rows deleted in one transaction.
BATCH = 500
FINISHED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]


async def collect_finished(*, keep_s: float = KEEP_S) -> None:
    """Delete the rows that finished more than `keep_s` seconds ago."""
    before = datetime.fromtimestamp(time.time() - keep_s, UTC).isoformat()
    while True:
        rows = await DBOS.list_workflows_async(
            status=FINISHED, completed_before=before, limit=BATCH, load_input=False, load_output=False
        )
        if not rows:
            return
        await DBOS.delete_workflows_async([row.workflow_id for row in rows])
