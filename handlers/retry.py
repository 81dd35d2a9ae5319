"""Start what failed once more without being asked: off by default, only for proven faults of the infrastructure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import structlog

from analyzers.model import Confidence

from . import wishes
from .audit import Deed, of_run, record
from .budgets import Account, accounts, give_back, spend
from .context import Context, JobFinding, Pull, RefusedError, Run, Task
from .dependents import dependents_of, gpu_jobs
from .labels import read_before
from .render import replies
from .render.safe_text import code, count
from .reruns import Order, UnknownStartError, guarded, start
from .runs import failed_leaves, shown_name

log = structlog.get_logger()

BY = "automatic retry"
#: How long a failure that was retried is not retried again.
ONCE_PER = timedelta(days=1)


async def retry(task: Task, ctx: Context) -> list[Task]:
    """Decide about a failed run, and say so in a comment of its own if it is started again."""
    number, settings = task.pull or 0, ctx.config.retry
    run, pull = await ctx.github.run(int(task.data["run_id"])), await ctx.github.pull(number)
    mine = run.name == ctx.config.workflow or ctx.config.workflow is None
    if not settings.enabled or not mine or run.attempt != 1 or run.event == "merge_group":
        return []
    if await wishes.recall(number, ctx) is not None or await guarded(pull, run, ctx) is not None:
        return []
    await read_before(run, pull, ctx)
    jobs = await ctx.github.jobs(run.id)
    leaves = failed_leaves(jobs, ctx.config.jobs)
    names = {shown_name(job, ctx.config.jobs) for job in leaves}
    found = [one for one in await ctx.store.findings(head_sha=pull.head_sha) if one.run_id == run.id]
    findings = [one for one in found if one.attempt == 1 and one.job_name in names]
    if why := await _against(findings, len(leaves), ctx):
        log.info("retry.declined", run_id=run.id, why=why)
        await record(number, Deed(BY, ctx.app_slug, why, done=False, **of_run(run)), ctx)
        return []
    picked = [job.name for job in leaves]
    gpu = gpu_jobs(picked, ctx.config.jobs) + dependents_of(picked, jobs, ctx.config.jobs).gpu_jobs
    return await _start(run, pull, findings, gpu, ctx)


async def _against(findings: Sequence[JobFinding], leaves: int, ctx: Context) -> str:
    """Return why it is not done; "" if nothing speaks against it."""
    settings = ctx.config.retry
    if not leaves or len(findings) < leaves:
        return "not every failed job is explained"
    if leaves > settings.max_leaves:
        return f"{leaves} jobs failed, more than {settings.max_leaves}"
    for finding in findings:
        diagnosis = finding.diagnosis
        category = str(diagnosis.category)
        if category not in settings.categories or not diagnosis.retryable or diagnosis.confidence == Confidence.LOW:
            return f"{finding.job_name} failed by {category}, which is not surely the infrastructure's fault"
    prints = Counter(finding.diagnosis.fingerprint for finding in findings)
    if repeated := [name for name, times in prints.items() if name and times > 1]:
        return f"{prints[repeated[0]]} jobs failed in the same way"
    for name in prints:
        before = await ctx.store.recall(_print_key(name)) if name else None
        if before is not None and ctx.now().timestamp() - float(before["at_s"]) < ONCE_PER.total_seconds():
            return "the same failure was retried within the last day"
    return ""


def _print_key(fingerprint: str | None) -> str:
    return f"retried-{fingerprint}"


async def _start(run: Run, pull: Pull, findings: Sequence[JobFinding], gpu: int, ctx: Context) -> list[Task]:
    key = f"retry-{run.id}"
    daily = Account("automatic", ctx.config.retry.gpu_jobs_per_day, "may be retried automatically")
    charged = (daily, *accounts(pull.number, ctx.app_slug, ctx)[1:])
    if spent := await spend(charged, gpu, spender=key, ctx=ctx):
        why = f"{count(gpu, 'GPU job')} would be more than the {spent.left} left of {spent.account.most} a day"
        await record(pull.number, Deed(BY, ctx.app_slug, why, done=False, **of_run(run)), ctx)
        return []
    categories = sorted({str(finding.diagnosis.category) for finding in findings})
    order = Order(key=key, by=ctx.app_slug, why=BY, extra={})
    try:
        attempt = await start(run, lambda: ctx.github.rerun_failed(run.id), order, ctx)
    except RefusedError as error:
        await give_back(charged, spender=key, ctx=ctx)
        log.warning("retry.refused", run_id=run.id, status=error.status, why=error.message)
        return []
    except UnknownStartError as unknown:
        why = f"GitHub broke off each time; it is not known whether attempt {unknown.attempt} was started"
        await record(pull.number, Deed(BY, ctx.app_slug, why, done=False, **of_run(run)), ctx)
        return []
    for finding in findings:
        await ctx.store.remember(_print_key(finding.diagnosis.fingerprint), {"at_s": ctx.now().timestamp()})
    why = f"all {count(len(findings), 'failed job')} failed by {', '.join(categories)}"
    await record(pull.number, Deed(BY, ctx.app_slug, why, **of_run(run, attempt=attempt)), ctx)
    text = (
        f"Retried automatically: {replies.run_link(run, attempt=attempt)} repeats "
        f"{replies.failed_count(len(findings))}, because {'it' if len(findings) == 1 else 'each'} failed by "
        f"{', '.join(code(name) for name in categories)}, which is the infrastructure's fault and not this change's. "
        "This is done once a run.\n"
    )
    if ctx.config.mute_label not in pull.labels:
        await ctx.comments.upsert(pull.number, key=f"retry-{run.id}", body=text)
    return []
