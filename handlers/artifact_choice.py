"""Which artifact holds the logs of a job: its name holds neither job nor attempt, so the job's own log is asked first.

Source: Megatron-LM's .github/actions/action.yml, steps `Check result` and `Upload logs`; actions/upload-artifact v6.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from .context import Artifact, Job

#: Printed by the job once the name is final; the same text with a slash, star or `$(` is only the script being shown.
LOGS_REPORT = re.compile(r"(?:^|\s)logs_report=(logs-[^\s/*$]+)[ \t\r]*$", re.MULTILINE)
UPLOADED = re.compile(
    r"Artifact (logs-\S+?)(?:\.zip)? (?:has been successfully uploaded|successfully finalized)"
    # Bounded: a log may repeat the beginning without an end, thousands of times in one line.
    r"[^\n]{0,100}?Artifact ID(?: is)? (\d+)"
)
NAME = re.compile(
    r"logs-(?P<stem>.+)-(?P<run_id>\d+)-(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?P<retry>-retry)?"
)
#: How long after the job an upload may still be stamped.
LATE = timedelta(minutes=5)


@dataclass(frozen=True)
class Choice:
    """The artifacts to analyse, most likely first, and what a reader should know about the choice.

    Each group holds uploads of the same logs: the first that can be read is enough.
    """

    groups: tuple[tuple[Artifact, ...], ...] = ()
    notes: tuple[str, ...] = ()


def artifact_stem(test_case: str) -> str:
    """Return a test case as it stands in an artifact's name: `/` and `*` become `-`, nothing else changes."""
    return test_case.replace("/", "-").replace("*", "-")


def choose(artifacts: Sequence[Artifact], *, job: Job, test_case: str | None, log_tail: str) -> Choice:
    """Find a job's log artifact: by what its log says, else by name and time, else all that could be it.

    Args:
        artifacts: all artifacts of the run, of all attempts.
        test_case: as read from the job's name; None if this kind of job uploads none.
        log_tail: the end of the job's log, "" if there is none.
    """
    logs = [artifact for artifact in artifacts if NAME.fullmatch(artifact.name)]
    if told := _told_by_log(logs, log_tail):
        return Choice((_best_first(told),))
    if test_case is None:
        return Choice()
    if LOGS_REPORT.search(log_tail) and not UPLOADED.search(log_tail):
        return Choice(notes=("The job uploaded no log artifact, so only its own log was read.",))
    stem = artifact_stem(test_case)
    same = [
        item for item in logs if (name := NAME.fullmatch(item.name)) and name["stem"] == stem and _of_run(item, job)
    ]
    timely = [item for item in same if _in_time(item, job)]
    groups = _by_upload(timely)
    if not groups:
        return Choice(notes=("No log artifact of this job was found, so only its own log was read.",))
    if len(groups) == 1:
        return Choice(groups)
    note = f"{len(groups)} artifacts could belong to this job; all were read, so ranks may be mixed with another job's."
    return Choice(groups, (note,))


def _told_by_log(logs: list[Artifact], log_tail: str) -> list[Artifact]:
    """The last upload counts: a failed one is followed by `<name>-retry`."""
    uploads = UPLOADED.findall(log_tail)
    names = LOGS_REPORT.findall(log_tail)
    ids = {int(number) for _, number in uploads}
    wanted = {name for name, _ in uploads[-1:]} | set(names[-1:])
    wanted |= {f"{name}-retry" for name in wanted}
    by_id = [item for item in logs if item.id in ids]
    twins = [item for item in logs if item.name in wanted and item not in by_id]
    return by_id + twins


def _of_run(artifact: Artifact, job: Job) -> bool:
    name = NAME.fullmatch(artifact.name)
    return artifact.run_id == job.run_id and name is not None and int(name["run_id"]) == job.run_id


def _in_time(artifact: Artifact, job: Job) -> bool:
    if job.started_at is None or job.completed_at is None:
        return True
    return job.started_at <= artifact.created_at <= job.completed_at + LATE


def _by_upload(artifacts: list[Artifact]) -> tuple[tuple[Artifact, ...], ...]:
    groups: dict[str, list[Artifact]] = {}
    for artifact in sorted(artifacts, key=lambda item: (item.created_at, item.id), reverse=True):
        groups.setdefault(artifact.name.removesuffix("-retry"), []).append(artifact)
    return tuple(_best_first(group) for group in groups.values())


def _best_first(group: list[Artifact]) -> tuple[Artifact, ...]:
    """Of two uploads of the same logs the readable comes first, then one with a digest to verify, then the larger."""
    return tuple(sorted(group, key=lambda item: (item.expired, item.digest is None, -item.size_bytes)))
