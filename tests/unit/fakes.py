"""In-memory stand-ins for what handlers see, for tables of decisions; the stories run over HTTP in tests/service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from analyzers.model import Category, Confidence, Diagnosis, Error, Evidence
from handlers.context import Artifact, Job, JobFinding, Pull, Run

NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
HEAD = "a" * 40
OTHER = "b" * 40
MODELS = "tests/unit_tests/models/**/*.py - latest"


def make_pull(**changes: Any) -> Pull:
    fields: dict[str, Any] = {
        "number": 42,
        "state": "open",
        "draft": False,
        "locked": False,
        "title": "Fuse",
        "author": "eve",
        "head_sha": HEAD,
        "head_ref": "fuse",
        "head_repo": "eve/Megatron-LM",
        "base_ref": "main",
        "labels": (),
    }
    return Pull(**{**fields, **changes})


def make_run(**changes: Any) -> Run:
    fields: dict[str, Any] = {
        "id": 7,
        "name": "CICD Megatron-LM",
        "workflow_id": 1,
        "event": "push",
        "status": "completed",
        "conclusion": "failure",
        "head_sha": HEAD,
        "head_branch": "pull-request/42",
        "attempt": 1,
        "created_at": NOW - timedelta(hours=2),
        "html_url": "https://github.com/o/r/actions/runs/7",
    }
    return Run(**{**fields, **changes})


def make_job(name: str = MODELS, conclusion: str | None = "failure", **changes: Any) -> Job:
    fields: dict[str, Any] = {
        "id": 100,
        "run_id": 7,
        "attempt": 1,
        "name": name,
        "status": "completed" if conclusion else "in_progress",
        "conclusion": conclusion,
        "head_sha": HEAD,
        "runner_labels": (),
        "started_at": NOW - timedelta(hours=1),
        "completed_at": NOW - timedelta(minutes=30),
        "html_url": "https://github.com/o/r/actions/runs/7/job/100",
    }
    return Job(**{**fields, **changes})


def make_artifact(name: str, **changes: Any) -> Artifact:
    fields: dict[str, Any] = {
        "id": 500,
        "run_id": 7,
        "name": name,
        "size_bytes": 1000,
        "created_at": NOW - timedelta(minutes=30),
        "expired": False,
        "digest": "sha256:" + "0" * 64,
    }
    return Artifact(**{**fields, **changes})


def make_diagnosis(**changes: Any) -> Diagnosis:
    fields: dict[str, Any] = {
        "passed": False,
        "category": Category.CUDA_OOM,
        "retryable": False,
        "confidence": Confidence.HIGH,
        "summary": "rank 5 ran out of GPU memory; 7 ranks died of it",
        "culprit_ranks": (5,),
        "victim_ranks": (0, 1, 2, 3, 4, 6, 7),
        "error": Error("torch.OutOfMemoryError", "CUDA out of memory."),
        "location": "megatron/core/attention.py:412",
        "failed_tests": ("tests/unit_tests/models/test_a.py::test_b",),
        "evidence": Evidence("1/none_ab/attempt_0/5/stderr.log", 12, ("Traceback", "CUDA out of memory.")),
        "fingerprint": "0123456789abcdef",
    }
    return Diagnosis(**{**fields, **changes})


def make_finding(job: Job | None = None, **changes: Any) -> JobFinding:
    job = job or make_job()
    fields: dict[str, Any] = {
        "pull": 42,
        "head_sha": HEAD,
        "run_id": job.run_id,
        "run_name": "CICD Megatron-LM",
        "run_url": "https://github.com/o/r/actions/runs/7",
        "attempt": job.attempt,
        "job_id": job.id,
        "job_name": job.name,
        "job_url": job.html_url,
        "diagnosis": make_diagnosis(),
    }
    return JobFinding(**{**fields, **changes})
