"""How GitHub treats us, told by episodes and not by calls.

A trouble is one line in the log when it begins and one when it is over; meanwhile `/readyz` and a figure show it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import aiohttp
import structlog
from cachetools import LRUCache

log = structlog.get_logger()

#: What became of one call; "moved": GitHub sent it on to the new name of its repository.
Said = Literal["ok", "refused", "rate_limited", "unreachable", "moved"]
#: "locked_out": the App, an installation or a repository gets no token.
Trouble = Literal["unreachable", "rate_limited", "locked_out"]
TROUBLES: tuple[Trouble, ...] = ("unreachable", "rate_limited", "locked_out")
#: Whom a trouble concerns that every call meets.
EVERYBODY = "everybody"
#: Where artifacts and logs lie: another host, which may be away while GitHub's API is there.
THE_STORAGE = "the storage"
#: Put-off work asks again more often than this; who has not been asked for longer is not known to be unwell, seconds.
STALE_S = 900.0
#: So many are named by `/readyz`; the others are counted.
NAMED = 3
MOST_NAMES = 1000


@dataclass
class _Episode:
    why: str
    since: datetime
    until: datetime
    calls: int
    end: asyncio.TimerHandle
    answered: bool = False


class Weather:
    """Told about every answer of GitHub's, by all installations of this process.

    An episode ends once there was no more of it for `calm_s` (seconds) after a better answer, so that a GitHub that
    fails now and then is one episode and not a hundred.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        *,
        observe: Callable[[Said], None],
        show: Callable[[Trouble, int], None],
        calm_s: float,
    ) -> None:
        """Take `observe`, called for each answer, and `show`, called with the number of episodes of a kind."""
        self._clock = clock
        self._observe = observe
        self._show = show
        self._calm_s = calm_s
        self._open: dict[tuple[Trouble, str], _Episode] = {}
        self._listeners: list[Callable[[Trouble, str], None]] = []
        self._moved: LRUCache[str, bool] = LRUCache(maxsize=MOST_NAMES)
        for kind in TROUBLES:
            show(kind, 0)

    def answered(self, who: str, *, ok: bool) -> None:
        """Note an answer that is no trouble; a refusal is an answer, too: GitHub is there."""
        self._observe("ok" if ok else "refused")
        self._better("unreachable", EVERYBODY)
        self._better("rate_limited", who)

    def limited(self, who: str, *, why: str, for_s: float) -> None:
        """Note that GitHub wants nothing from `who` for that many seconds."""
        self._observe("rate_limited")
        self._better("unreachable", EVERYBODY)
        self._worse("rate_limited", who, why, why, over_after_s=for_s + self._calm_s)

    def unreachable(self, error: BaseException, *, who: str = EVERYBODY) -> None:
        """Note that there was no answer, or one of a server that is broken."""
        self._observe("unreachable")
        self._worse("unreachable", who, reason(error), str(error) or type(error).__name__, over_after_s=STALE_S)

    def reached(self, who: str) -> None:
        """Note that there is a way to `who` again."""
        self._better("unreachable", who)

    def locked_out(self, who: str, *, why: str) -> None:
        """Note that `who` gets no token; the refusal itself has been noted already."""
        self._worse("locked_out", who, why, why, over_after_s=STALE_S)

    def let_in(self, *who: str) -> None:
        """Note that there is a token again."""
        for one in who:
            self._better("locked_out", one)

    def moved(self, name: str) -> None:
        """Note that a repository has another name now; told once."""
        self._observe("moved")
        if name not in self._moved:
            self._moved[name] = True
            log.info("github.moved", path=name)

    def tell_when_over(self, listener: Callable[[Trouble, str], None]) -> None:
        """Call the listener whenever a trouble is over, with its kind and whom it concerned."""
        self._listeners.append(listener)

    def lasts(self, kind: Trouble, who: str) -> bool:
        """Say whether there is such a trouble, and no better answer since."""
        episode = self._open.get((kind, who))
        return episode is not None and not episode.answered

    def lasted_s(self, kind: Trouble, who: str) -> float | None:
        """Return for how long there has been such a trouble, in seconds; None: there is none."""
        episode = self._open.get((kind, who))
        return None if episode is None else (self._clock() - episode.since).total_seconds()

    def troubles(self) -> dict[str, str]:
        """Return what is wrong now and since when (UTC), by kind: no addresses, and nothing if all is well."""
        found: dict[str, str] = {}
        for kind in TROUBLES:
            episodes = [(who, one) for (of_kind, who), one in self._open.items() if of_kind == kind]
            if episodes:
                found[f"github_{kind}"] = "; ".join(_in_words(who, one) for who, one in episodes[:NAMED])
            if len(episodes) > NAMED:
                found[f"github_{kind}"] += f"; and {len(episodes) - NAMED} more"
        return found

    def close(self) -> None:
        """Forget what is open, without a word."""
        for episode in self._open.values():
            episode.end.cancel()
        self._open.clear()

    def _worse(self, kind: Trouble, who: str, why: str, details: str, *, over_after_s: float) -> None:
        """Begin an episode or go on with it; `why` may be shown to anybody, `details` belong into the log."""
        now = self._clock()
        end = self._end_after(over_after_s, kind, who)
        episode = self._open.get((kind, who))
        if episode is not None:
            episode.end.cancel()
            episode.end, episode.until, episode.answered, episode.why = end, now, False, why
            episode.calls += 1
            return
        self._open[kind, who] = _Episode(why, now, now, 1, end)
        log.warning("github.trouble", kind=kind, who=who, why=details)
        self._show_count(kind)

    def _better(self, kind: Trouble, who: str) -> None:
        episode = self._open.get((kind, who))
        if episode is None or episode.answered:
            return
        episode.answered, episode.until = True, self._clock()
        episode.end.cancel()
        episode.end = self._end_after(self._calm_s, kind, who)

    def _end_after(self, after_s: float, kind: Trouble, who: str) -> asyncio.TimerHandle:
        # The end is nobody's task: a context of its own keeps the names of the present one out of that line.
        fresh = contextvars.Context()
        return asyncio.get_running_loop().call_later(after_s, self._finish, kind, who, context=fresh)

    def _finish(self, kind: Trouble, who: str) -> None:
        episode = self._open.pop((kind, who))
        log.info(
            "github.trouble_over",
            kind=kind,
            who=who,
            lasted_s=round((episode.until - episode.since).total_seconds(), 1),
            calls=episode.calls,
            how="it answers again" if episode.answered else "it was not asked again",
        )
        self._show_count(kind)
        if episode.answered or kind == "rate_limited":
            for listener in self._listeners:
                listener(kind, who)

    def _show_count(self, kind: Trouble) -> None:
        self._show(kind, Counter(of_kind for of_kind, _ in self._open)[kind])


def _in_words(who: str, episode: _Episode) -> str:
    whom = "" if who == EVERYBODY else f"{who} "
    return f"{whom}since {episode.since.isoformat(timespec='seconds')}: {episode.why}"


def reason(cause: BaseException | None) -> str:
    """Say without an address what keeps us from GitHub; the log has all of it."""
    match cause:
        case None:
            return "it asked us to wait"
        case aiohttp.ClientConnectorDNSError():
            return "its name is not known here"
        case aiohttp.ClientConnectorError():
            return "no connection"
        case TimeoutError():
            return "no answer in time"
        case aiohttp.ClientError() | ConnectionError():
            return "the connection broke"
        case _:
            return "it answers with an error"
