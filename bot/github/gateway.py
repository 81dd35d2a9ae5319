"""GitHub as the rest of the bot gets it: one object, built once, that hands out what handlers see of a repository."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
from cachetools import LRUCache

from bot.github.app import AppIdentity, identify
from bot.github.artifacts import FilesDesk, Reader, RepoFiles
from bot.github.cache import AnswerCache
from bot.github.calls import Api, Calls
from bot.github.checks import RepoChecks
from bot.github.client import Installation
from bot.github.clock import WRONG_S
from bot.github.comments import Desk, Marker, RepoComments
from bot.github.downloads import Downloader
from bot.github.hosts import DownloadHosts, PublicResolver
from bot.github.limits import Gate, WriteTurns
from bot.github.repository import RepoGitHub
from bot.github.shelf import Room, Shelf, files_folder
from bot.github.storage import Storage
from bot.github.survey import Survey
from bot.github.tokens import THE_APP, UNAUTHORIZED, SignedCalls, Tokens, installation_name
from bot.github.weather import Said, Trouble, Weather
from handlers.check_view import Checks
from handlers.context import Comments, Files, GitHub, RefusedError, Repo

USER_AGENT = "mlm-bot"
OF_REPO = re.compile(r"/repos/(?P<name>[^/]+/[^/]+)")


@dataclass(frozen=True)
class Limits:
    """What may be set differently in a demo or a test than with the real GitHub. Pauses in seconds."""

    write_pause_s: float = 1.0
    retry_pause_s: float = 1.0
    log_pause_s: float = 3.0
    answer_within_s: float = 60.0  # a page of a hundred jobs takes GitHub many seconds
    longest_stay_s: float = 5.0  # a rate limit that ends sooner is waited out in place
    look_every_s: float = 20.0  # while GitHub is unwell, it is asked how it is
    calm_s: float = 30.0  # a trouble that comes back within this time is the same one
    max_artifact_bytes: int = 2 * 1024**3
    max_log_bytes: int = 512 * 1024**2
    room: Room = field(default_factory=Room)


@dataclass(frozen=True)
class Connection:
    """Which GitHub, and who we are there; of the webhook secrets the current one comes first.

    `extra_download_hosts` are names (or, with a leading dot, suffixes) of an Enterprise Server's own storage.
    """

    api_url: str
    app_id: int
    private_key: str = field(repr=False)
    webhook_secrets: Sequence[str] = field(repr=False)
    extra_download_hosts: Sequence[str] = ()


class Gateway:
    """The way to GitHub. `start` before anything else, `close` at the end; the session stays the caller's."""

    def __init__(  # noqa: PLR0913 (what it is given by the process, each once)
        self,
        session: aiohttp.ClientSession,
        connection: Connection,
        *,
        data_dir: Path,
        clock: Callable[[], datetime],
        limits: Limits | None = None,
        observe: Callable[[Said], None] = lambda _said: None,
        show_trouble: Callable[[Trouble, int], None] = lambda _kind, _number: None,
        dated: Callable[[str | None], None] = lambda _date: None,
        reader: Reader | None = None,
    ) -> None:
        """With a `reader` archives are read while they arrive; `dated` hears the `Date` of each answer."""
        self._dated = dated
        self._reader = reader
        self._session = session
        self._api_url = connection.api_url
        self._clock = clock
        self._limits = limits or Limits()
        self.weather = Weather(clock, observe=observe, show=show_trouble, calm_s=self._limits.calm_s)
        self._marker = Marker(connection.webhook_secrets)
        self._hosts = DownloadHosts(connection.api_url, connection.extra_download_hosts)
        self._shelf = Shelf(files_folder(data_dir), self._limits.room)
        self._app_calls = self._calls(THE_APP)
        # gidgethub wants the id as text: PyJWT refuses a number as issuer.
        self._app_api = self._api(
            app_id=str(connection.app_id),
            private_key=connection.private_key,
        )
        self._signed = SignedCalls(self._app_calls, self.weather)
        self._tokens = Tokens(self._app_api, self._signed, self.weather, clock=clock)
        self._installations: LRUCache[int, Installation] = LRUCache(maxsize=1_000)
        self._started: _Started | None = None

    async def start(self) -> None:
        """Learn who we are, which also proves that key, App id and API URL belong together.

        Raises:
            RefusedError: 401 if they do not.
            RateLimitedError: GitHub cannot be reached.
        """
        app = await self._identify()
        # A session of its own: no default header and no cookie of the other one may reach the storage.
        storage = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=PublicResolver(self._hosts)),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": USER_AGENT},
            trust_env=self._session.trust_env,
        )
        limits = self._limits
        files = FilesDesk(
            shelf=self._shelf,
            downloader=Downloader(
                Storage(storage, self._hosts, retry_pause_s=limits.retry_pause_s, weather=self.weather)
            ),
            clock=self._clock,
            max_artifact_bytes=limits.max_artifact_bytes,
            max_log_bytes=limits.max_log_bytes,
            log_pause_s=limits.log_pause_s,
            reader=self._reader,
        )
        desk = Desk(app=app, marker=self._marker, look_again_s=limits.retry_pause_s)
        self._started = _Started(app=app, comments=desk, files=files, storage=storage)
        await self._shelf.collect()  # also what an earlier process left when it died

    async def _identify(self) -> AppIdentity:
        asked_at = self._clock()
        try:
            return await identify(self._app_api, self._app_calls)
        except RefusedError as exc:
            # Signed by the host's clock; if that is wrong, the answer has told us the time.
            if exc.status != UNAUTHORIZED or abs((self._clock() - asked_at).total_seconds()) < WRONG_S:
                raise
        return await identify(self._app_api, self._app_calls)

    async def ask(self) -> None:
        """Ask GitHub something that costs nothing, for `weather` to hear of the answer.

        Raises:
            RateLimitedError: there was none, or the App's key is refused.
            RefusedError: it was another no.
        """
        await identify(self._app_api, self._signed)

    async def close(self) -> None:
        """End what is running."""
        self.weather.close()
        await self._shelf.close()
        if self._started is not None:
            await self._started.storage.close()

    @property
    def app(self) -> AppIdentity:
        return self._ready().app

    def survey(self) -> Survey:
        """Return what the App itself can ask GitHub about."""
        return Survey(self._app_api, self._signed, self._app_calls)

    def for_repo(self, repo: Repo) -> tuple[GitHub, Comments, Files, Checks]:
        """Return what handlers see of this repository.

        Raises:
            ValueError: its name is none that GitHub gives.
        """
        started = self._ready()
        installation = self._installation(repo.installation_id)
        return (
            RepoGitHub(installation, repo, started.app),
            RepoComments(installation, repo, started.comments),
            RepoFiles(installation, repo, started.files),
            RepoChecks(installation, repo, started.app, look_again_s=started.comments.look_again_s),
        )

    def _ready(self) -> _Started:
        if self._started is None:
            raise RuntimeError("the gateway is not started")
        return self._started

    def _installation(self, installation_id: int) -> Installation:
        """Return the one object per installation: its limits, its cache and its turns to write are its own."""
        known = self._installations.get(installation_id)
        if known is None:
            api = self._api(cache=AnswerCache())
            calls = self._calls(installation_name(installation_id))
            known = Installation(api, calls, self._tokens, WriteTurns(self._limits.write_pause_s))
            self._installations[installation_id] = known
        return known

    def _api(self, **options: Any) -> Api:
        within_s = self._limits.answer_within_s
        told = {"clock": self._clock, "moved": self._note_move, "dated": self._dated}
        options |= {"answer_within_s": within_s, "base_url": self._api_url, **told}
        return Api(self._session, USER_AGENT, **options)

    def _note_move(self, path: str) -> None:
        """Note that a repository has another name now; a path of its id is what GitHub sends on to."""
        found = OF_REPO.search(path)
        self.weather.moved(found["name"] if found else path)

    def _calls(self, who: str) -> Calls:
        gate = Gate(clock=self._clock, longest_stay_s=self._limits.longest_stay_s)
        return Calls(gate, self.weather, who=who, retry_pause_s=self._limits.retry_pause_s)


@dataclass(frozen=True)
class _Started:
    """What there is once GitHub has told who we are."""

    app: AppIdentity
    comments: Desk
    files: FilesDesk
    storage: aiohttp.ClientSession
