"""Our own check run on a commit: one of a name, found again by that name and our App, edited in place."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import structlog
from cachetools import LRUCache

from bot.github.app import AppIdentity
from bot.github.client import Installation, Method, until_sure
from bot.github.payloads import CheckRunData
from bot.github.repository import REPO, checked_sha, split_name
from handlers.check_view import Annotation, CheckView
from handlers.context import Repo

log = structlog.get_logger()

#: Branch rules name a check by it, so it never changes.
NAME = "mlm-bot / diagnosis"
LONGEST_SUMMARY = 65_535
LONGEST_TITLE = 255
#: GitHub takes so many annotations in one request, and adds those of later ones.
BATCH = 50


class RepoChecks:
    """`handlers.context.Checks` for one repository."""

    def __init__(self, installation: Installation, repo: Repo, app: AppIdentity, *, look_again_s: float) -> None:
        self._installation = installation
        self._repo = repo
        self._app = app
        self._look_again_s = look_again_s
        self._turns: LRUCache[str, asyncio.Lock] = LRUCache(maxsize=1_000)
        owner, name = split_name(repo.full_name)
        self._names: dict[str, Any] = {"owner": owner, "repo": name}

    async def publish(self, check: CheckView) -> None:
        """Create or edit the check run.

        Annotations can only be added, so a check run whose annotations would change is replaced by a new one of the
        same name, which hides it.

        Raises:
            RefusedError: the App lacks `checks: write`, or GitHub does not know the commit.
            UnsureError: GitHub failed again and again; nothing is lost by calling once more later.
        """
        async with self._turns.setdefault(check.head_sha, asyncio.Lock()):
            check_id = await until_sure(lambda: self._look_and_write(check), pause_s=self._look_again_s)
        log.info("check.published", check_run=check_id, head_sha=check.head_sha, annotations=len(check.annotations))

    async def _look_and_write(self, check: CheckView) -> int:
        there = await self._find(check.head_sha)
        kept = there is not None and there.external_id == check.external_id
        # Those that an earlier try has added already would be shown twice.
        added = there.output.annotations_count if there is not None and kept else 0
        first, *batches = _batches(check.annotations[added:])
        if there is not None and (kept or not there.output.annotations_count):
            check_id = there.id
            await self._update(check_id, _body(check, first))
        else:
            body = {"name": NAME, "head_sha": check.head_sha, **_body(check, first)}
            made = await self._write("POST", "/check-runs", data=body)
            check_id = CheckRunData.model_validate(made).id
        for batch in batches:
            await self._update(check_id, {"output": _output(check, batch)})
        return check_id

    async def _find(self, head_sha: str) -> CheckRunData | None:
        found = await self._installation.pages(
            self._repo,
            REPO + "/commits/{sha}/check-runs{?check_name,app_id,per_page}",
            items_in="check_runs",
            **self._names,
            sha=checked_sha(head_sha),
            check_name=NAME,
            app_id=self._app.id,
        )
        runs = [CheckRunData.model_validate(item) for item in found]
        mine = [run for run in runs if run.name == NAME and run.app is not None and run.app.id == self._app.id]
        return max(mine, key=lambda run: run.id, default=None)

    async def _update(self, check_id: int, body: dict[str, Any]) -> None:
        await self._write("PATCH", "/check-runs/{check_run_id}", data=body, check_run_id=check_id)

    async def _write(self, method: Method, path: str, /, **values: Any) -> Any:
        return await self._installation.write(self._repo, method, REPO + path, **self._names, **values)


def _body(check: CheckView, annotations: Sequence[Annotation]) -> dict[str, Any]:
    """A completed check: GitHub shows the buttons of no other."""
    return {
        "status": "completed",
        "conclusion": check.conclusion,
        "external_id": check.external_id,
        "output": _output(check, annotations),
        "actions": [
            {"label": one.label, "description": one.description, "identifier": one.identifier} for one in check.buttons
        ],
    }


def _output(check: CheckView, annotations: Sequence[Annotation]) -> dict[str, Any]:
    output: dict[str, Any] = {"title": check.title[:LONGEST_TITLE], "summary": check.summary[:LONGEST_SUMMARY]}
    if annotations:
        output["annotations"] = [
            {
                "path": one.path,
                "start_line": one.line,
                "end_line": one.line,
                "annotation_level": one.level,
                "title": one.title[:LONGEST_TITLE],
                "message": one.message[:LONGEST_SUMMARY],
            }
            for one in annotations
        ]
    return output


def _batches(annotations: Sequence[Annotation]) -> list[Sequence[Annotation]]:
    """At least one, which may be empty."""
    return [annotations[start : start + BATCH] for start in range(0, max(1, len(annotations)), BATCH)]
