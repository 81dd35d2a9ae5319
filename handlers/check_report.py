"""The report on a pull request as a check run: the same words, and a remark on each changed file that it points to."""

from __future__ import annotations

import asyncio
import hashlib

import structlog

from .check_view import Annotation, CheckView, Conclusion
from .context import Context, RefusedError
from .render.clean_text import clean_line, shorten
from .render.redaction import redact
from .render.report import render_report
from .render.view import Cause, Report

log = structlog.get_logger()


async def publish(view: Report, ctx: Context) -> None:
    """Bring the check run up to date; an App that may not write checks does without."""
    if not ctx.config.check.enabled or not view.runs:
        return
    try:
        await ctx.checks.publish(await asyncio.to_thread(check_of, view, required=ctx.config.check.required))
    except RefusedError as error:
        log.info("check.refused", pull=view.number, status=error.status, why=error.message)


def check_of(view: Report, *, required: bool) -> CheckView:
    """Turn a report into a check run.

    Args:
        required: red and green instead of neutral, for a branch rule that asks for this check.
    """
    summary = render_report(view)
    standing = [cause for cause in view.causes if cause.now != "passed"]
    remarks = tuple(remark for cause in standing if (remark := _remark(cause)) is not None)
    run = max(view.runs, key=lambda one: one.attempt)
    return CheckView(
        head_sha=view.head_sha,
        title=_plain(summary.split("\n", 1)[0].removeprefix("### ")),
        summary=summary,
        external_id=f"{run.id}:{run.attempt}:{_signature(standing, remarks)}",
        conclusion=_conclusion(view, standing) if required else "neutral",
        annotations=remarks,
    )


def _plain(text: str) -> str:
    """GitHub shows titles and remarks as they are, without Markdown."""
    return shorten(redact(clean_line(text.replace("`", ""))), 250)


def _conclusion(view: Report, standing: list[Cause]) -> Conclusion:
    """Nothing is green before every run is done."""
    if standing or view.unexplained or any(run.gates for run in view.runs):
        return "failure"
    done = all(run.completed and run.conclusion in {"success", "skipped", "neutral"} for run in view.runs)
    return "success" if done and not view.trouble else "failure"


def _signature(standing: list[Cause], remarks: tuple[Annotation, ...]) -> str:
    known = sorted(cause.diagnosis.fingerprint or cause.diagnosis.summary for cause in standing)
    return hashlib.sha256(repr((known, remarks)).encode()).hexdigest()[:12]


def _remark(cause: Cause) -> Annotation | None:
    """A remark where the failure is, if the pull request changes that file: GitHub shows it beside the change."""
    location = cause.diagnosis.location
    if location is None or not cause.changed:
        return None
    path, _, line = location.rpartition(":")
    if not path or not line.isdecimal() or int(line) < 1:
        return None
    error = cause.diagnosis.error
    message = _plain(error.message if error is not None and error.message else cause.diagnosis.summary)
    return Annotation(path, int(line), title=_plain(cause.diagnosis.summary)[:200], message=message or "failed here")
