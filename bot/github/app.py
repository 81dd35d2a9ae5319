"""Who we are on GitHub."""

from __future__ import annotations

from dataclasses import dataclass

from bot.github.calls import ACCEPT, VERSION_HEADER, Api, Calls
from bot.github.payloads import AppData, CommentData
from bot.github.tokens import SignedCalls


@dataclass(frozen=True)
class AppIdentity:
    """Our App as GitHub knows it."""

    id: int
    slug: str

    @property
    def login(self) -> str:
        """The name of the App's own account; no person can have one with brackets."""
        return f"{self.slug}[bot]"

    def wrote(self, comment: CommentData) -> bool:
        """Say whether the comment is ours: by the App's id, or by its account where GitHub names no App.

        An App's id alone would not do: it is also named when a person acts through the App.
        """
        if comment.user is None or comment.user.type != "Bot":
            return False
        app = comment.performed_via_github_app
        return comment.user.login == self.login if app is None else app.id == self.id


async def identify(api: Api, calls: Calls | SignedCalls) -> AppIdentity:
    """Ask GitHub once which App our key belongs to.

    Raises:
        RefusedError: 401 if the key or the App id is wrong.
    """
    answer = await calls.carry_out(
        lambda: api.getitem("/app", accept=ACCEPT, extra_headers=VERSION_HEADER), repeatable=True
    )
    found = AppData.model_validate(answer)
    return AppIdentity(found.id, found.slug)
