"""Who may do what. Asked live, of the person who wrote the command, and of the one who edited it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import structlog

from config.repo import ROLES

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
    """Ask the repository's settings and then the operator's, who may allow less."""
    config = ctx.config
    if is_bot(login) and login.casefold() not in {bot.casefold() for bot in config.bots}:
        return Verdict(allowed=False, login=login)
    grant = await _granted(config.commands.get(right, ()), config.trustees, login, pull, ctx)
    capped = right in config.cap
    if grant and capped and not await _granted(config.cap[right], config.cap_trustees, login, pull, ctx):
        log.info("command.capped", right=right, login=login, grant=grant)
        return Verdict(allowed=False, login=login)
    return Verdict(allowed=bool(grant), grant=grant, login=login)


def is_bot(login: str) -> bool:
    """An App's account; no person can have a name with brackets."""
    return login.endswith("[bot]")


async def _granted(grants: Sequence[str], trustees: Sequence[str], login: str, pull: Pull | None, ctx: Context) -> str:
    """Return the first grant that the account has, "" if none; what costs no request is looked at first."""
    if grant := _without_asking(grants, trustees, login):
        return grant
    roles = [grant for grant in grants if grant.startswith("role:")]
    if roles:
        has = await _role(login, ctx)
        for grant in roles:
            if at_least(has, grant.removeprefix("role:")):
                return grant
    for grant in grants:
        if grant.startswith("team:") and await _in_team(grant.removeprefix("team:"), login, ctx):
            return grant
    # Last, because it has a budget that nobody should spend who needs not.
    return "author" if "author" in grants and pull is not None and pull.author == login else ""


async def _in_team(team: str, login: str, ctx: Context) -> bool:
    """A team whose members the App may not read has none for us."""
    try:
        return await ctx.github.in_team(team, login)
    except RefusedError as error:
        log.warning("team.unknown", team=team, status=error.status, why=error.message)
        return False


def _without_asking(grants: Iterable[str], trustees: Iterable[str], login: str) -> str:
    listed = {name.casefold() for name in trustees}
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
