"""Job logs as GitHub serves them: a BOM, then a time stamp of seven decimals before each line."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta

from bot.demo.actions_state import Artifact, Job, Plan
from bot.demo.ci_plan import CONFIGURE

BOM = "\ufeff"
_STEP = timedelta(milliseconds=7)


class JobLog:
    """Collects lines; the clock runs on by a few milliseconds a line."""

    def __init__(self, at: datetime) -> None:
        self._at = at
        self._lines: list[str] = []

    def add(self, lines: Iterable[str], *, pause: timedelta = timedelta()) -> JobLog:
        """Append lines after a pause."""
        self._at += pause
        for line in lines:
            self._lines.append(f"{self._at:%Y-%m-%dT%H:%M:%S.%f}0Z {line}")
            self._at += _STEP
        return self

    def group(self, title: str, lines: Iterable[str]) -> JobLog:
        return self.add([f"##[group]{title}", *lines, "##[endgroup]"])

    def render(self) -> bytes:
        return (BOM + "\n".join(self._lines) + "\n").encode()


def head_lines(job: Job) -> list[str]:
    """What every job's log begins with."""
    return [
        "Current runner version: '2.328.0'",
        f"Runner name: '{job.spec.runner_label}-runner-{job.id % 9973:05d}'",
        "Runner group name: 'Default'",
        "Machine name: 'runner'",
        "##[group]GITHUB_TOKEN Permissions",
        "Contents: read",
        "Metadata: read",
        "##[endgroup]",
        "Secret source: Actions",
        "Prepare workflow directory",
        "Prepare all required actions",
        "Getting action download info",
        f"Complete job name: {job.name}",
    ]


def configure_lines(plan: Plan, *, sha: str, labels: tuple[str, ...]) -> list[str]:
    """The outputs of `configure`; `sha=` is the commit that all later jobs check out (domain 3.2, 3.5)."""
    listed = "[" + ",".join(f'"{label}"' for label in labels) + "]"
    return [
        f"+ SHA={sha}",
        f"sha={sha}",
        f"+ LABELS='{listed}'",
        f"scope={plan.scope}",
        f"n_repeat={plan.n_repeat}",
        f"lightweight={str(plan.lightweight).lower()}",
        f"lts={str(plan.lts).lower()}",
    ]


def test_case_of(job_name: str) -> str:
    """The test case in a job's name: the bucket of a unit job, the part after the model of a functional one."""
    name = re.sub(r" - (?:gb200 )?latest$", "", job_name)
    return name if name.startswith("tests/") else name.partition("/")[2] or name


def artifact_name(job_name: str, run_id: int) -> str:
    """The name under which the job's logs are uploaded: neither job nor attempt is in it (domain 3.7)."""
    stem = re.sub(r"[/*]", "-", test_case_of(job_name))
    return f"logs-{stem}-{run_id}-{uuid.uuid4()}"


def upload_lines(artifact: Artifact, *, files: int) -> list[str]:
    """What upload-artifact prints."""
    digest = hashlib.sha256(artifact.data).hexdigest()
    name, size = artifact.name, len(artifact.data)
    return [
        "##[group]Run actions/upload-artifact@v6",
        "with:",
        f"  name: {artifact.name}",
        "  path: assets_dir/logs",
        "  include-hidden-files: true",
        "##[endgroup]",
        f"With the provided path, there will be {files} files uploaded",
        "Artifact name is valid!",
        "Root directory input is valid!",
        "Beginning upload of artifact content to blob storage",
        f"Uploaded bytes {size}",
        "Finished uploading artifact content to blob storage!",
        f"SHA256 digest of uploaded artifact zip is {digest}",
        "Finalizing artifact upload",
        f"Artifact {artifact.name}.zip successfully finalized. Artifact ID {artifact.id}",
        f"Artifact {name} has been successfully uploaded! Final size is {size} bytes. Artifact ID is {artifact.id}",
    ]


def plain_log(job: Job, *, sha: str, plan: Plan | None, labels: tuple[str, ...], at: datetime) -> bytes:
    """The log of a job for which nobody wrote one."""
    log = JobLog(at).add(head_lines(job))
    if job.spec.name == CONFIGURE and plan is not None:
        log.add(configure_lines(plan, sha=sha, labels=labels))
    if job.conclusion == "failure":
        log.add(["##[error]Process completed with exit code 1."])
    return log.add(["Post job cleanup.", "Cleaning up orphan processes"]).render()


def with_upload(log: bytes, artifact: Artifact, *, files: int, at: datetime) -> bytes:
    """`log` with the upload's lines at its end, unless it names an artifact already."""
    if b"logs_report=" in log:
        return log
    lines = [f"logs_report={artifact.name}", *upload_lines(artifact, files=files)]
    return log.rstrip(b"\n") + b"\n" + JobLog(at).add(lines).render().removeprefix(BOM.encode())
