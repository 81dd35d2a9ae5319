"""A refusal in GitHub's words."""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """What the API answers instead of doing it: `status` and GitHub's `message`; `more` is merged into the body."""

    def __init__(self, status: int, message: str, *, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.message = message
        self.headers = headers or {}
        self.more = more


NOT_FOUND = "Not Found"
NOT_ACCESSIBLE = "Resource not accessible by integration"
