"""How many GPU jobs may be started a day: by one person, on one pull request, in one repository."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .context import Context


@dataclass(frozen=True)
class Account:
    """What is charged. `whose` ends the sentence "That would be more than … a day"."""

    name: str
    most: int
    whose: str


@dataclass(frozen=True)
class Spent:
    """Why a budget does not reach; all in GPU jobs."""

    account: Account
    asked: int
    left: int


def accounts(number: int, login: str, ctx: Context) -> tuple[Account, ...]:
    """Return the accounts that a person's command on a pull request is charged to."""
    limits = ctx.config.limits
    return (
        Account(f"user-{login.casefold()}", limits.gpu_jobs_per_user_day, f"one person may start ({login})"),
        Account(f"pull-{number}", limits.gpu_jobs_per_pull_day, "one pull request may start"),
        Account("repository", limits.gpu_jobs_per_day, "may be started in this repository"),
    )


async def spend(charged: Sequence[Account], gpu_jobs: int, *, spender: str, ctx: Context) -> Spent | None:
    """Charge all accounts, or none.

    Args:
        spender: what it is spent on; it pays each account once, however often it is repeated.
    Returns:
        None if it is paid, else the first account that does not reach.
    """
    for place, account in enumerate(charged):
        left = await _charge(account, gpu_jobs, spender, ctx)
        if left is not None:
            await give_back(charged[:place], spender=spender, ctx=ctx)
            return Spent(account, gpu_jobs, left)
    return None


async def give_back(charged: Sequence[Account], *, spender: str, ctx: Context) -> None:
    """Take back what a spender paid, because nothing was started."""

    def without(stored: dict[str, Any] | None) -> dict[str, Any]:
        return {name: jobs for name, jobs in (stored or {}).items() if name != spender}

    for account in charged:
        await ctx.store.change(_key(account, ctx), without)


async def _charge(account: Account, gpu_jobs: int, spender: str, ctx: Context) -> int | None:
    """Return None once it is paid, else how many are left."""

    def pay(stored: dict[str, Any] | None) -> dict[str, Any]:
        paid = dict(stored or {})
        if spender not in paid and sum(paid.values()) + gpu_jobs <= account.most:
            paid[spender] = gpu_jobs
        return paid

    paid = await ctx.store.change(_key(account, ctx), pay)
    return None if spender in paid else max(0, account.most - sum(paid.values()))


def _key(account: Account, ctx: Context) -> str:
    return f"gpu-{ctx.now().date().isoformat()}-{account.name}"
