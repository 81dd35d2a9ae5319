"""What the name of a job says: its kind, and which tests it runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import re2  # type: ignore[import-untyped]

from config.repo import JobNames

Kind = Literal["unit", "functional", "lint", "build", "other"]
#: GitHub may show a skipped matrix with its name unexpanded.
UNEXPANDED = "${{"
#: RE2's own cache takes longer to look something up in than most names to match.
_compiled = lru_cache(maxsize=256)(re2.compile)


@dataclass(frozen=True)
class JobName:
    """A job's name, read. `test_case` is what its artifact is named after; `bucket` what a person calls it."""

    name: str
    kind: Kind
    bucket: str  # the name without what all jobs of its kind share
    test_case: str | None  # None: this kind uploads no log artifact
    gb200: bool = False


def read_name(name: str, patterns: JobNames, *, runner_labels: tuple[str, ...] = ()) -> JobName:
    """Tell the kind of a job by the repository's patterns; the runner tells apart twins of one name."""
    on_gb200 = any(_compiled(patterns.gb200_runner).fullmatch(label) for label in runner_labels)
    if unit := _compiled(patterns.unit).fullmatch(name):
        groups = unit.groupdict()
        bucket = groups.get("bucket") or name
        return JobName(name, "unit", bucket, bucket, bool(groups.get("gb200")) or on_gb200)
    if functional := _compiled(patterns.functional).fullmatch(name):
        groups = functional.groupdict()
        test = groups.get("test") or name
        bucket = f"{groups['model']}/{test}" if groups.get("model") else test
        return JobName(name, "functional", bucket, test, on_gb200)
    if _compiled(patterns.lint).fullmatch(name):
        return JobName(name, "lint", name, None)
    if _compiled(patterns.build).fullmatch(name):
        return JobName(name, "build", name, None)
    return JobName(name, "other", name, None)


def is_consequence(name: str, patterns: JobNames) -> bool:
    """A gate or collector: red because something else is, never the cause."""
    return UNEXPANDED in name or any(_compiled(pattern).fullmatch(name) for pattern in patterns.consequences)
