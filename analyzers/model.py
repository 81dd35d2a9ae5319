"""The nouns of the analysis: what goes in (`Bundle`), what comes out (`Diagnosis`).

Everything here is immutable. `Diagnosis.as_json` is the contract of `mlm analyze --format json`, schema version 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from analyzers.comparison import GoldenComparison
from analyzers.records import dataclass
from analyzers.surroundings import JobRecipe, Relation

if TYPE_CHECKING:
    from datetime import datetime

SCHEMA = 1


class Category(StrEnum):
    """The closed list of kinds of failure (docs/design.md, vocabulary)."""

    LINT = "lint"
    CONTAINER_BUILD = "container_build"
    IMAGE_PULL = "image_pull"
    DEPENDENCY = "dependency"
    COLLECTION = "collection"
    TEST_ASSERTION = "test_assertion"
    TEST_ERROR = "test_error"
    CRASH_PYTHON = "crash_python"
    CRASH_NATIVE = "crash_native"
    CUDA_OOM = "cuda_oom"
    HOST_OOM = "host_oom"
    CUDA_ERROR = "cuda_error"
    GPU_HARDWARE = "gpu_hardware"
    COLLECTIVE_TIMEOUT = "collective_timeout"
    NETWORK = "network"
    PORT_COLLISION = "port_collision"
    DISK_FULL = "disk_full"
    NUMERICS_NAN = "numerics_nan"
    GOLDEN_MISMATCH = "golden_mismatch"
    JOB_TIMEOUT = "job_timeout"
    CANCELLED = "cancelled"
    RUNNER_LOST = "runner_lost"
    UNKNOWN = "unknown"


class Role(StrEnum):
    """What part an event plays in a failure."""

    CAUSE = "cause"
    CONSEQUENCE = "consequence"  # peer errors, watchdogs that waited, SIGTERM from the launcher
    TEARDOWN = "teardown"
    NOISE = "noise"


class Confidence(StrEnum):
    """How sure the answer is, in words."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True)
class Source:
    """One named log: a member of the artifact, or the job's log.

    `name` is relative to the artifact's root with "/" between parts; `chunks` starts reading from the beginning each
    time that it is called and yields bounded pieces (at most 1 MiB), so that no log is ever held whole.
    """

    name: str
    chunks: Callable[[], Iterator[bytes]]
    size_bytes: int | None = None


@dataclass(frozen=True)
class Skipped:
    """Something that could not be read, and why, in words a reader of the comment understands."""

    name: str
    why: str


@dataclass(frozen=True)
class Bundle:
    """All that is known about one job: the members of its artifact, its log, its name as the CI service shows it."""

    sources: tuple[Source, ...] = ()
    job_log: Source | None = None
    job_name: str | None = None
    skipped: tuple[Skipped, ...] = ()
    goldens: tuple[Source, ...] = ()  # golden values of this job in a checkout of the tested commit


@dataclass(frozen=True)
class Error:
    """The primary error: exception class or signal name (None if there is neither), and its message."""

    type: str | None
    message: str


@dataclass(frozen=True)
class Evidence:
    """Where the primary error stands: `file` relative to the artifact (or "job.log"), 1-based `line` (ends at LF)."""

    file: str
    line: int
    excerpt: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One event of one log, before anybody is blamed for it.

    `rank` is the global rank, None if the log belongs to none; `at` is UTC, None if the line has none; `offset` counts
    bytes from the start of the source; `retryable` is None where the category alone decides.
    """

    category: Category
    role: Role
    error: Error
    evidence: Evidence
    offset: int = 0
    rank: int | None = None
    at: datetime | None = None
    location: str | None = None
    tests: tuple[str, ...] = ()
    retryable: bool | None = None
    confidence: Confidence = Confidence.HIGH
    rule: str | None = None  # id of the rule that matched, if one did


@dataclass(frozen=True)
class AlsoSeen:
    """Another event worth telling: a consequence, a teardown error, a runner-up."""

    category: Category
    ranks: tuple[int, ...]
    role: Role
    file: str
    line: int


@dataclass(frozen=True)
class Attempt:
    """One start by the launcher within the job, numbered from 1. The last one of a test decides.

    `test` is the test's folder in the artifact, "" if the artifact has none; `ranks` are the culprits.
    """

    attempt: int
    category: Category | None  # None: this attempt passed
    retryable: bool
    test: str = ""
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Command:
    """Something to type next: what it is for, and the exact line, already quoted for a shell."""

    title: str
    command: str


@dataclass(frozen=True)
class Read:
    """How much was read, and what was not."""

    files: int = 0
    bytes: int = 0
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True)
class Diagnosis:
    """The answer for one job. Ranks are global ranks, sorted; culprits, victims and silent ones are disjoint."""

    passed: bool
    category: Category | None
    retryable: bool
    confidence: Confidence
    summary: str
    culprit_ranks: tuple[int, ...] = ()
    victim_ranks: tuple[int, ...] = ()
    silent_ranks: tuple[int, ...] = ()
    error: Error | None = None
    location: str | None = None
    failed_tests: tuple[str, ...] = ()
    evidence: Evidence | None = None
    also_seen: tuple[AlsoSeen, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    commands: tuple[Command, ...] = ()
    fingerprint: str | None = None
    read: Read = Read()
    relation: Relation | None = None  # None: the change is not known, or nothing failed
    owners: tuple[str, ...] = ()  # of the location, after CODEOWNERS
    recipe: JobRecipe | None = None
    golden: GoldenComparison | None = None  # None: no comparison failed, or nothing tells what it compared

    def as_json(self) -> dict[str, Any]:
        """Return the JSON document of schema version 1 (only dicts, lists, strings, numbers, booleans, None)."""
        return {"schema": SCHEMA, **_plain(self)}


def _plain(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    fields = getattr(type(value), "__match_args__", None)
    return value if fields is None else {name: _plain(getattr(value, name)) for name in fields}
