"""A label changed: make CI run what the labels ask for, once, and say in one line what was done.

Acts on the labels as they are once they have been quiet for a while, never on single events.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Literal

import structlog

from .audit import Deed, of_run, record
from .budgets import accounts, give_back, spend
from .context import Context, Job, Pull, RefusedError, Run, Task
from .dependents import gpu_jobs
from .failures import keep, unexplained
from .plans import Plan, plan_for, read_plan
from .render import replies, told
from .reruns import Order, UnknownStartError, already_started, guarded, is_running, start
from .runs import main_run, mirror_sha, runs_of_head

log = structlog.get_logger()

#: Who added a label that no delivery told us about.
MISSED = "unknown: the delivery was missed"
#: How to ask once more.
PUT_ON_AGAIN = "take a label off and put it on again"


async def on_label(task: Task, data: dict[str, Any], ctx: Context) -> list[Task]:
    """Wait until the labels are quiet: each event moves the deadline, and the last one acts."""
    if data["label"] not in ctx.config.ci_labels:
        return []
    number = int(data["pull"])

    def join(burst: dict[str, Any] | None) -> dict[str, Any]:
        added = {*(burst or {}).get("added", []), *([data["label"]] if data["added"] else [])}
        return {"id": task.key, "added": sorted(added)}

    await ctx.store.change(_burst_key(number), join)
    note = {"id": task.key, "by": data["by"]}
    return [Task("labels", task.repo, key=task.key, data=note, pull=number, delay_s=ctx.label_debounce_s)]


def _burst_key(number: int) -> str:
    return f"labels-{number}"


async def obey(task: Task, ctx: Context) -> list[Task]:
    """Act on the labels, unless a newer event will do so."""
    number = task.pull or 0
    burst = await ctx.store.recall(_burst_key(number))
    if not burst or burst["id"] != task.data["id"]:
        return []
    await fulfil(number, by=str(task.data["by"]), added=frozenset(burst["added"]), ctx=ctx)
    # A label that came meanwhile has begun a burst of its own, which stays.
    await ctx.store.change(_burst_key(number), lambda now: now if now and now["id"] != burst["id"] else {})
    return []


async def grant(task: Task, ctx: Context) -> list[Task]:
    """A run ended: carry out the wish that waited for it, if there still is one."""
    number = task.pull or 0
    wish = await ctx.store.recall(wish_key(number))
    if wish is not None:
        await fulfil(number, by=str(wish["by"]), added=ctx.config.ci_labels, ctx=ctx)
    return []


async def note_labels(pull: Pull, ctx: Context) -> None:
    """Remember which labels for CI we have seen on the pull request."""
    present = sorted(set(pull.labels) & ctx.config.ci_labels)
    await ctx.store.remember(_seen_key(pull.number), {"labels": present})


async def catch_up(pull: Pull, task: Task, ctx: Context) -> list[Task]:
    """Return the work for labels that were added without our being told; none if there are none."""
    seen = await ctx.store.recall(_seen_key(pull.number)) or {"labels": []}
    missed = set(pull.labels) & ctx.config.ci_labels - set(seen["labels"])
    if not missed or await ctx.store.recall(_burst_key(pull.number)):
        return []
    key = f"rescan-{task.key}-{pull.number}"
    await ctx.store.remember(_burst_key(pull.number), {"id": key, "added": sorted(missed)})
    log.info("labels.missed", pull=pull.number, labels=sorted(missed))
    return [Task("labels", task.repo, key=key, data={"id": key, "by": MISSED}, pull=pull.number)]


def _seen_key(number: int) -> str:
    return f"labels-seen-{number}"


def wish_key(number: int) -> str:
    """Under which key it is remembered that labels wait for the end of a run."""
    return f"wish-{number}"


@dataclass(frozen=True)
class Scene:
    """What the decision rests on. `has` is the plan that the run follows; None if it has not read the labels yet."""

    pull: Pull
    run: Run
    wanted: Plan
    has: Plan | None
    by: str


@dataclass(frozen=True)
class Done:
    """What became of the labels, in words."""

    text: str
    step: Literal["started", "noted", "nothing", "refused"]


async def fulfil(number: int, *, by: str, added: Collection[str], ctx: Context) -> None:
    """Act on the labels as they are, and say in a comment of its own what was done.

    Args:
        added: labels that were added since the last time. One that is gone again counts as never added, and
            taking labels away alone starts nothing.
    """
    pull = await ctx.github.pull(number)
    if pull.state != "open":
        await ctx.store.forget(wish_key(number))
        return
    await note_labels(pull, ctx)
    wanted = plan_for(pull.labels, ctx.config)
    found = await look(pull, wanted, by=by, ctx=ctx)
    stays = not set(added).isdisjoint(pull.labels)
    if isinstance(found, Done):
        if stays:
            await _say(pull, wanted, found.text, ctx)
        return
    own = await already_started(found.run.id, found.run.attempt, ctx)
    done = await act(found, added=stays, ctx=ctx)
    if done is not None and (stays or done.step != "nothing") and not (done.step == "nothing" and own):
        await _say(pull, wanted, done.text, ctx)


async def look(pull: Pull, wanted: Plan, *, by: str, ctx: Context) -> Scene | Done:
    """Find the run that the labels are about; without one, say why there is none."""
    run = main_run(await runs_of_head(pull, ctx), number=pull.number, config=ctx.config)
    if run is None:
        mirrored = await mirror_sha(pull.number, ctx) == pull.head_sha
        vetting = ctx.config.vetting
        return Done(replies.no_run(pull.head_sha, mirrored=mirrored, draft=pull.draft, vetting=vetting), "refused")
    return Scene(pull, run, wanted, await _plan_of(run, ctx), by)


async def act(scene: Scene, *, added: bool, ctx: Context, dry_run: bool = False) -> Done | None:
    """Compare what the labels ask for with what the newest run really does, and act on the difference."""
    pull, run, wanted = scene.pull, scene.run, scene.wanted
    if scene.has is not None and scene.has.effect == wanted.effect:
        await ctx.store.forget(wish_key(pull.number))
        return Done(replies.label_already_read(wanted, run, config=ctx.config), "nothing")
    if not added:
        if not set(pull.labels) & ctx.config.ci_labels:
            await ctx.store.forget(wish_key(pull.number))
        return None
    if dry_run:
        when = "now" if run.status == "completed" else "when the run in progress is done"
        return Done(f"{replies.plan(wanted, ctx.config)}; I would re-run all jobs {when}", "nothing")
    if run.status != "completed":
        return await _wait(scene, ctx)
    return await _rerun(scene, ctx)


async def _wait(scene: Scene, ctx: Context) -> Done:
    """A run in progress cannot be re-run; remember the wish until it is done."""
    run, wanted = scene.run, scene.wanted
    started = await already_started(run.id, run.attempt, ctx)
    if started is not None and started.get("effect") == list(wanted.effect):
        # Our own re-run, whose plan job has not come to the labels yet.
        return Done(replies.label_rerun(wanted, run, attempt=run.attempt, config=ctx.config), "started")
    return await _note_wish(scene, ctx)


async def _note_wish(scene: Scene, ctx: Context) -> Done:
    await ctx.store.remember(wish_key(scene.pull.number), {"by": scene.by, "head_sha": scene.pull.head_sha})
    reply = replies.label_will_be_read if scene.has is None else replies.label_waits
    return Done(reply(scene.wanted, scene.run, config=ctx.config), "noted")


async def _rerun(scene: Scene, ctx: Context) -> Done:
    pull, run, wanted = scene.pull, scene.run, scene.wanted
    count_key = f"label-reruns-{run.id}"
    so_far = int((await ctx.store.recall(count_key) or {}).get("count", 0))
    if so_far >= ctx.config.limits.label_reruns_per_run:
        return await _refuse(scene, replies.label_too_often(wanted, run, config=ctx.config), ctx)
    # Before the guard, which must not be old when the call is made: reading takes its time.
    await read_before(run, pull, ctx)
    if refusal := await guarded(pull, run, ctx):
        return await _refuse(scene, replies.refused(refusal, config=ctx.config), ctx)
    order = Order(
        key=f"labels-rerun-{run.id}-{run.attempt}",
        by=scene.by,
        why="labels",
        extra={"effect": list(wanted.effect)},
    )
    gpu = gpu_jobs([job.name for job in await ctx.github.jobs(run.id)], ctx.config.jobs)
    if spent := await spend(accounts(pull.number, scene.by, ctx), gpu, spender=order.key, ctx=ctx):
        return await _refuse(scene, told.budget(spent), ctx)
    try:
        attempt = await start(run, lambda: ctx.github.rerun(run.id), order, ctx)
    except RefusedError as error:
        await give_back(accounts(pull.number, scene.by, ctx), spender=order.key, ctx=ctx)
        if is_running(error):  # somebody was quicker; what they started may come to the labels by itself
            return await _note_wish(replace(scene, run=await ctx.github.run(run.id), has=None), ctx)
        return Done(replies.github_said(error.status, error.message), "refused")
    except UnknownStartError as unknown:
        return await _refuse(scene, told.start_unknown(unknown.run, unknown.attempt, how=PUT_ON_AGAIN), ctx)
    await ctx.store.remember(count_key, {"count": so_far + 1})
    await ctx.store.forget(wish_key(pull.number))
    why = f"only a re-run of all jobs makes {ctx.config.jobs.plan} read the labels again"
    await record(pull.number, Deed("re-run of all jobs", scene.by, why, **of_run(run, attempt=attempt)), ctx)
    return Done(replies.label_rerun(wanted, run, attempt=attempt, config=ctx.config), "started")


async def _refuse(scene: Scene, text: str, ctx: Context) -> Done:
    await ctx.store.forget(wish_key(scene.pull.number))
    deed = Deed("re-run of all jobs", scene.by, text, done=False, **of_run(scene.run))
    await record(scene.pull.number, deed, ctx)
    return Done(text, "refused")


async def read_before(run: Run, pull: Pull, ctx: Context) -> None:
    """Explain what is not explained yet: a full re-run can make the artifacts of earlier attempts vanish."""
    for job in await unexplained(run, await ctx.github.jobs(run.id), ctx):
        await keep(job, run, [pull], ctx)


async def _plan_of(run: Run, ctx: Context) -> Plan | None:
    """Read from the plan job's own log what the run tests; None if it has not finished or does not say."""
    jobs = await ctx.github.jobs(run.id)
    job = next((job for job in jobs if job.name == ctx.config.jobs.plan), None)
    if job is None or job.conclusion != "success":
        return None
    return await _plan_in_log(job, ctx)


async def _plan_in_log(job: Job, ctx: Context) -> Plan | None:
    found = read_plan(await ctx.files.tail(await ctx.files.job_log(job)), ctx.config)
    if found is None:
        log.warning("labels.plan_unread", job_id=job.id)
    return found


async def _say(pull: Pull, wanted: Plan, text: str, ctx: Context) -> None:
    """One answer per head and plan, edited as things move on."""
    effect = hashlib.sha256(repr(wanted.effect).encode()).hexdigest()[:8]
    try:
        await ctx.comments.upsert(pull.number, key=f"labels-{pull.head_sha[:12]}-{effect}", body=text + "\n")
    except RefusedError as error:
        log.warning("labels.unsaid", pull=pull.number, status=error.status, why=error.message)


async def apologize_for(task: Task, ctx: Context) -> None:
    """Say that the labels were not obeyed for a reason that lies with the bot; they can be put on anew."""
    number = task.pull or 0
    burst = await ctx.store.recall(_burst_key(number)) or {}
    await ctx.store.forget(_burst_key(number))
    if task.name != "wish" and not burst.get("added"):
        return
    pull = await ctx.github.pull(number)
    run = main_run(await runs_of_head(pull, ctx), number=number, config=ctx.config)
    started = run is not None and await already_started(run.id, run.attempt, ctx)
    ours = run is not None and started and started.get("why") == "labels"
    done = f"{replies.run_link(run)} was started, though." if run is not None and ours else "Nothing was started."
    text = told.sorry(task, done=done, again=f"To have the labels read anew, {PUT_ON_AGAIN}.")
    await _say(pull, plan_for(pull.labels, ctx.config), text, ctx)
