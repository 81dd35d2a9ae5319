"""Who may do what. Asked live, of the person who wrote the command, and of the one who edited it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from config.repo import ROLES, RepoConfig

from .context import Context, Pull, RefusedError

log = structlog.get_logger()


@dataclass(frozen=True)
class Verdict:
    """Whether it is allowed, and by which line of the settings. `login` is who was refused."""

    allowed: bool
    grant: str = ""
    login: str = ""


async def may(right: str, people: Iterable[str], pull: Pull | None, ctx: Context) -> Verdict:
    """Check a right for everybody who had a hand in a comment; one without it is enough to refuse.

    Whatever cannot be asked is refused.
    """
    verdict = Verdict(allowed=False)
    for login in dict.fromkeys(people):
        verdict = await _may(right, login, pull, ctx)
        if not verdict.allowed:
            log.info("command.denied", right=right, login=login)
            return verdict
    return verdict


async def _may(right: str, login: str, pull: Pull | None, ctx: Context) -> Verdict:
    if login.endswith("[bot]"):
        return Verdict(allowed=False, login=login)
    grants = ctx.config.commands.get(right, ())
    if grant := _without_asking(grants, login, ctx.config):
        return Verdict(allowed=True, grant=grant, login=login)
    wanted = [grant for grant in grants if grant.startswith("role:")]
    if wanted:
        has = await _role(login, ctx)
        for grant in wanted:
            if at_least(has, grant.removeprefix("role:")):
                return Verdict(allowed=True, grant=grant, login=login)
    # Last, because it has a budget that nobody should spend who needs not.
    if "author" in grants and pull is not None and pull.author == login:
        return Verdict(allowed=True, grant="author", login=login)
    return Verdict(allowed=False, login=login)


def _without_asking(grants: Iterable[str], login: str, config: RepoConfig) -> str:
    listed = {name.casefold() for name in config.trustees}
    for grant in grants:
        if grant == "anyone" or grant.casefold() == f"user:{login.casefold()}":
            return grant
        if grant == "trustees" and login.casefold() in listed:
            return grant
    return ""


async def _role(login: str, ctx: Context) -> str:
    """Return the exact role; 404 is somebody who is no collaborator, any other refusal counts as no role too."""
    try:
        return await ctx.github.role(login)
    except RefusedError as error:
        log.info("role.unknown", login=login, status=error.status)
        return "none"


def at_least(has: str, wanted: str) -> bool:
    """Compare two roles; a role that GitHub does not define is worth nothing."""
    return has in ROLES and ROLES.index(has) >= ROLES.index(wanted)


async def spend_author_budget(pull: Pull, login: str, *, spender: str, ctx: Context) -> str | None:
    """Take one of today's re-runs of a pull request's author.

    Args:
        spender: what it is spent on; the same spender never pays twice.
    Returns:
        The key to give it back by (`store.forget`), None if the day's budget is spent.
    """
    day = ctx.now().date().isoformat()
    for slot in range(ctx.config.limits.author_reruns_per_day):
        key = f"budget-{pull.number}-{login}-{day}-{slot}"
        if (await ctx.store.once(key, {"spender": spender}))["spender"] == spender:
            return key
    return None
