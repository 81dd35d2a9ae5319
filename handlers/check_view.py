"""What our check run says: made by the handlers, published by `bot/github/checks.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

#: GitHub's limits for a button: label 20 characters, description 40, identifier 20; three buttons at most.
Conclusion = Literal["neutral", "success", "failure"]


@dataclass(frozen=True)
class Annotation:
    """A remark on one line of a file of the head commit."""

    path: str
    line: int  # 1-based
    title: str
    message: str
    level: Literal["notice", "warning", "failure"] = "failure"


@dataclass(frozen=True)
class Button:
    """What a person can press beside the check run."""

    identifier: str
    label: str
    description: str


BUTTONS = (
    Button("rerun-failed", "Re-run failed", "Run the failed jobs again"),
    Button("analyze", "Re-analyze", "Read the logs of the failed jobs again"),
    Button("mute", "Mute", "No automatic comments here any more"),
)


@dataclass(frozen=True)
class CheckView:
    """One check run. `external_id` is `<run>:<attempt>:<signature of what failed>`; `summary` is Markdown."""

    head_sha: str
    title: str
    summary: str
    external_id: str
    conclusion: Conclusion = "neutral"
    annotations: tuple[Annotation, ...] = ()
    buttons: tuple[Button, ...] = BUTTONS


class Checks(Protocol):
    """Our own check run on the commits of one repository."""

    async def publish(self, check: CheckView) -> None:
        """Make our check run of this commit say `check`, whether or not there was one.

        Raises:
            RefusedError: the App may not write checks.
        """
        ...
