"""Check runs that Apps made, with the rules by which GitHub takes or refuses them (domain 2.3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.demo.errors import ApiError

Json = dict[str, Any]
LONGEST_TEXT = 65_535
MOST_ANNOTATIONS = 50
MOST_ACTIONS = 3
LEVELS = frozenset({"notice", "warning", "failure"})
CONCLUSIONS = frozenset({"success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required"})
#: The longest text of each field of an action.
ACTION_FIELDS = {"label": 20, "description": 40, "identifier": 20}


@dataclass
class CheckRun:
    """One check run of an App. Annotations are added up over updates, as on GitHub."""

    id: int
    app_id: int
    suite_id: int
    name: str
    head_sha: str
    at: datetime
    external_id: str = ""
    status: str = "queued"
    conclusion: str | None = None
    title: str | None = None
    summary: str | None = None
    actions: list[Json] = field(default_factory=list)
    annotations: list[Json] = field(default_factory=list)

    def take(self, body: Json) -> None:
        """Change what a request names.

        Raises:
            ApiError: 422 for what GitHub does not take.
        """
        output, actions = body.get("output") or {}, body.get("actions")
        _check_output(output)
        _check_actions(actions or [])
        if body.get("conclusion") not in {None, *CONCLUSIONS}:
            raise ApiError(422, "Invalid request.\n\nFor 'properties/conclusion', is not a member of the list.")
        self.external_id = str(body.get("external_id", self.external_id))
        self.status = str(body.get("status", self.status))
        if body.get("conclusion"):
            self.status, self.conclusion = "completed", str(body["conclusion"])
        if output:
            self.title, self.summary = output["title"], output["summary"]
            self.annotations += output.get("annotations", [])
        if actions is not None:
            self.actions = list(actions)


def _check_output(output: Json) -> None:
    if output and not (output.get("title") and output.get("summary")):
        raise ApiError(422, 'Invalid request.\n\n"title", "summary" weren\'t supplied.')
    if len(output.get("summary", "")) > LONGEST_TEXT:
        raise ApiError(422, f"Invalid request.\n\nOnly {LONGEST_TEXT} characters are allowed; {len(output['summary'])}")
    annotations = output.get("annotations", [])
    if len(annotations) > MOST_ANNOTATIONS:
        raise ApiError(422, f"Invalid request.\n\nNo more than {MOST_ANNOTATIONS} items are allowed.")
    for one in annotations:
        numbers = all(isinstance(one.get(name), int) for name in ("start_line", "end_line"))
        if not numbers or not one.get("path") or not one.get("message") or one.get("annotation_level") not in LEVELS:
            raise ApiError(422, "Invalid request.\n\nAn annotation lacks a required field.")


def _check_actions(actions: list[Json]) -> None:
    if len(actions) > MOST_ACTIONS:
        raise ApiError(422, f"Invalid request.\n\nNo more than {MOST_ACTIONS} items are allowed; {len(actions)}")
    for action in actions:
        for name, longest in ACTION_FIELDS.items():
            if not action.get(name) or len(action[name]) > longest:
                raise ApiError(422, f"Invalid request.\n\nFor 'properties/{name}', at most {longest} are allowed.")
