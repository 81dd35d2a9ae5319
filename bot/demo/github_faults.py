"""What goes wrong for the App, as a test orders it, and what the App asked for."""

from __future__ import annotations

import re
from datetime import timedelta

from bot.demo.endpoint import Parts
from bot.demo.state import Repo
from bot.demo.traffic import Fault, FaultKind, RecordedRequest


class FaultVerbs:
    """The part of `SimulatedGitHub` that deals with requests and their faults."""

    parts: Parts

    @property
    def requests(self) -> list[RecordedRequest]:
        """Every request to the API and the storage, oldest first; clear it as you like."""
        return self.parts.traffic.requests

    def asked(self, method: str, path_regex: str) -> list[RecordedRequest]:
        """The recorded requests of this method whose path matches."""
        pattern = re.compile(path_regex)
        return [seen for seen in self.requests if seen.method == method and pattern.search(seen.path)]

    def fail_next(  # noqa: PLR0913 - the ways in which a request can fail
        self,
        method: str,
        path_regex: str,
        kind: FaultKind = "status",
        *,
        status: int = 500,
        message: str = "Server Error",
        headers: dict[str, str] | None = None,
        delay_s: float = 0.0,
        times: int = 1,
    ) -> None:
        """Spoil the next `times` matching requests to the API or the storage ("*" matches every method).

        Args:
            kind: "status": answer `status` without doing it; "reset": cut the connection without doing it (aiohttp's
                client tries a cut GET once more by itself: mind `times`); "delay": do it after `delay_s`; "truncate":
                do it but cut the answer in half; "drip": do it but send a byte of the answer each `delay_s`;
                "lost_answer": do it but answer `status`; "reset_after": do it but cut the connection.
        """
        pattern = re.compile(path_regex)
        self.parts.traffic.faults.append(Fault(method, pattern, kind, times, status, message, headers or {}, delay_s))

    def limit_next(self, method: str, path_regex: str, *, retry_after_s: int | None = 1, status: int = 403) -> None:
        """Answer the next matching request with a secondary rate limit."""
        message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
        headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
        self.fail_next(method, path_regex, status=status, message=message, headers=headers)

    def use_up_rate_limit(self, *, resets_in_s: int = 2) -> None:
        """Leave nothing of the primary rate limit."""
        budget = self.parts.access.budget
        budget.used, budget.reset = budget.limit, int(self.parts.state.clock().timestamp()) + resets_in_s

    def expire_tokens(self) -> None:
        """Every installation token issued so far answers 401 from now on."""
        for token in self.parts.state.tokens.values():
            token.expires_at = self.parts.state.clock()

    def rename_repo(self, repo: Repo, name: str) -> None:
        """Give the repository another name; requests under the old one are sent on."""
        self.parts.access.renamed[repo.full_name] = repo
        repo.name = name

    def advance_clock(self, by: timedelta) -> None:
        """Let time pass for tokens, signed URLs and time stamps."""
        self.parts.state.clock.advance(by)
