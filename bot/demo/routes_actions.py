"""Endpoints of GitHub Actions: runs, jobs, logs, artifacts, re-runs."""

from __future__ import annotations

from collections.abc import Callable

from bot.demo.actions_state import Job, Run
from bot.demo.endpoint import Answer, Call, Endpoint
from bot.demo.errors import NOT_FOUND, ApiError
from bot.demo.shapes_actions import artifact_json, job_json, run_json


def _run(call: Call) -> Run:
    found = call.repo.runs.get(call.number("run"))
    if found is None:
        raise ApiError(404, NOT_FOUND)
    return found


def _job(call: Call) -> Job:
    found = call.repo.jobs.get(call.number("job"))
    if found is None or found.hidden:
        raise ApiError(404, NOT_FOUND)
    return found


async def list_runs(call: Call) -> Answer:
    """Newest first; `status` matches a status or a conclusion, as GitHub's filter does."""
    found = sorted(call.repo.runs.values(), key=lambda run: (run.created_at, run.id), reverse=True)
    filters: dict[str, Callable[[Run], set[str | None]]] = {
        "head_sha": lambda run: {run.head_sha},
        "branch": lambda run: {run.head_branch},
        "event": lambda run: {run.event},
        "status": lambda run: {run.status, run.conclusion},
        "actor": lambda run: {run.actor},
    }
    for name, values in filters.items():
        wanted = call.query(name)
        if wanted:
            found = [run for run in found if wanted in values(run)]
    return Answer(items=[run_json(call.state, call.repo, run) for run in found], wrapped_as="workflow_runs")


async def get_run(call: Call) -> Answer:
    return Answer(run_json(call.state, call.repo, _run(call)))


def _jobs_answer(call: Call, run: Run, jobs: list[Job]) -> Answer:
    return Answer(items=[job_json(call.state, call.repo, run, job) for job in jobs], wrapped_as="jobs")


async def list_jobs(call: Call) -> Answer:
    run = _run(call)
    attempts = run.attempts if call.query("filter") == "all" else run.attempts[-1:]
    return _jobs_answer(call, run, [job for one in attempts for job in one.jobs.values() if not job.hidden])


async def list_attempt_jobs(call: Call) -> Answer:
    run, wanted = _run(call), call.number("attempt")
    for attempt in run.attempts:
        if attempt.number == wanted:
            return _jobs_answer(call, run, [job for job in attempt.jobs.values() if not job.hidden])
    raise ApiError(404, NOT_FOUND)


async def get_job(call: Call) -> Answer:
    job = _job(call)
    return Answer(job_json(call.state, call.repo, call.repo.runs[job.run_id], job))


async def get_job_log(call: Call) -> Answer:
    """302 to a signed URL; 404 while nothing is written (domain 2.5)."""
    job = _job(call)
    if job.log is None or job.status != "completed":
        raise ApiError(404, NOT_FOUND)
    url = call.parts.storage.put(job.log, name=f"job-{job.id}.txt", content_type="text/plain; charset=utf-8")
    return Answer(status=302, headers={"Location": url})


async def list_artifacts(call: Call) -> Answer:
    run, wanted = _run(call), call.query("name")
    found = [artifact for artifact in call.repo.artifacts.values() if artifact.run_id == run.id]
    if wanted:
        found = [artifact for artifact in found if artifact.name == wanted]
    shown = [artifact_json(call.state, call.repo, run, artifact) for artifact in reversed(found)]
    return Answer(items=shown, wrapped_as="artifacts")


async def get_artifact(call: Call) -> Answer:
    artifact = call.repo.artifacts.get(call.number("artifact"))
    if artifact is None:
        raise ApiError(404, NOT_FOUND)
    return Answer(artifact_json(call.state, call.repo, call.repo.runs[artifact.run_id], artifact))


async def download_artifact(call: Call) -> Answer:
    """302 to a signed URL valid one minute; 410 once expired (domain 2.5)."""
    artifact = call.repo.artifacts.get(call.number("artifact"))
    if artifact is None:
        raise ApiError(404, NOT_FOUND)
    if artifact.expired:
        raise ApiError(410, "Artifact has expired")
    url = call.parts.storage.put(artifact.data, name=f"artifact-{artifact.id}.zip", content_type="application/zip")
    return Answer(status=302, headers={"Location": url})


async def rerun(call: Call) -> Answer:
    call.parts.reruns.rerun(call.repo, _run(call), call.bot.login)
    return Answer({}, 201)


async def rerun_failed(call: Call) -> Answer:
    call.parts.reruns.rerun_failed(call.repo, _run(call), call.bot.login)
    return Answer({}, 201)


async def rerun_job(call: Call) -> Answer:
    call.parts.reruns.rerun_job(call.repo, _job(call), call.bot.login)
    return Answer({}, 201)


async def cancel(call: Call) -> Answer:
    call.parts.reruns.cancel(call.repo, _run(call))
    return Answer({}, 202)


_REPO = "/repos/{owner}/{repo}"
_RUN, _JOB = _REPO + "/actions/runs/{run}", _REPO + "/actions/jobs/{job}"
_ARTIFACT = _REPO + "/actions/artifacts/{artifact}"
_READ, _WRITE = ("actions:read",), ("actions:write",)
ENDPOINTS = (
    Endpoint("GET", _REPO + "/actions/runs", list_runs, _READ),
    Endpoint("GET", _RUN, get_run, _READ),
    Endpoint("GET", _RUN + "/jobs", list_jobs, _READ),
    Endpoint("GET", _RUN + "/attempts/{attempt}/jobs", list_attempt_jobs, _READ),
    Endpoint("GET", _RUN + "/artifacts", list_artifacts, _READ),
    Endpoint("POST", _RUN + "/rerun", rerun, _WRITE),
    Endpoint("POST", _RUN + "/rerun-failed-jobs", rerun_failed, _WRITE),
    Endpoint("POST", _RUN + "/cancel", cancel, _WRITE),
    Endpoint("GET", _JOB, get_job, _READ),
    Endpoint("GET", _JOB + "/logs", get_job_log, _READ),
    Endpoint("POST", _JOB + "/rerun", rerun_job, _WRITE),
    Endpoint("GET", _ARTIFACT, get_artifact, _READ),
    Endpoint("GET", _ARTIFACT + "/zip", download_artifact, _READ),
)
