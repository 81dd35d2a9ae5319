"""How an answer is held against a case's `expect.yaml`: the fields that it states, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FIELDS = ("category", "retryable", "culprit_ranks", "victim_ranks", "error", "location", "failed_tests", "evidence")
LINE_SLACK = 3  # an evidence line may be this many lines off
CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """One failed (or passed) job with the right answer."""

    folder: Path
    expect: dict[str, Any]

    @property
    def artifact(self) -> Path | None:
        return self.folder / "artifact" if (self.folder / "artifact").is_dir() else None

    @property
    def job_log(self) -> Path | None:
        return self.folder / "job.log" if (self.folder / "job.log").is_file() else None

    @property
    def job_name(self) -> str | None:
        return (self.expect.get("job") or {}).get("name")


def all_cases() -> list[Case]:
    folders = sorted(path.parent for path in CASES.glob("*/expect.yaml"))
    return [Case(folder, yaml.safe_load((folder / "expect.yaml").read_text())) for folder in folders]


def wrong_fields(expect: dict[str, Any], got: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Each field that is wrong, with what was wanted and what was given."""
    if expect.get("passed"):
        right = got["passed"] and got["category"] is None
        return {} if right else {"passed": (True, got["category"])}
    wrong = {}
    for field in FIELDS:
        if field in expect and not _same(field, expect[field], got.get(field)):
            wrong[field] = (expect[field], got.get(field))
    return wrong


def _same(field: str, want: Any, have: Any) -> bool:
    if field == "error":
        return _same_error(want or {}, have or {})
    if field == "evidence":
        return not (want and want.get("file")) or _same_evidence(want, have or {})
    if field in {"culprit_ranks", "victim_ranks", "failed_tests"}:
        return sorted(want or []) == sorted(have or [])
    return bool(want == have)


def _same_error(want: dict[str, Any], have: dict[str, Any]) -> bool:
    def last(name: Any) -> str:
        return str(name or "").rsplit(".", 1)[-1]

    same_type = not want.get("type") or last(have.get("type")) == last(want["type"])
    text = f"{have.get('type') or ''}: {have.get('message') or ''}".lower()
    return same_type and str(want.get("message_contains") or "").lower() in text


def _same_evidence(want: dict[str, Any], have: dict[str, Any]) -> bool:
    wanted_file, file = str(want["file"]), str(have.get("file") or "")
    same_file = file == wanted_file or (bool(file) and wanted_file.endswith("/" + file))
    return same_file and abs(int(have.get("line") or -999) - int(want.get("line") or 0)) <= LINE_SLACK
