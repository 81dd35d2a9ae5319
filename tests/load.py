"""Sends signed deliveries over a number of connections, keeps how long each answer took, and sees the work through."""

from __future__ import annotations

import asyncio
import hmac
import itertools
import json
import random
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bot.demo.github import SimulatedGitHub

Json = dict[str, Any]
JOB = "tests/unit_tests/models/**/*.py - latest"
ENDED = re.compile(
    r'^mlm_tasks_total\{name="(?P<name>[\w-]+)",outcome="(?P<outcome>\w+)"\} (?P<number>\S+)$', re.MULTILINE
)
WAITING = re.compile(r'^mlm_queue_depth\{state="\w+"\} (?P<number>\S+)$', re.MULTILINE)
#: How a piece of work ends for good; "failed" and "put_off" come again.
FOR_GOOD = ("done", "refused", "gave_up")


@dataclass(frozen=True)
class Parcel:
    """One delivery; the same `guid` again is the same delivery again."""

    event: str
    body: bytes
    guid: str


@dataclass
class Answers:
    """What came back; times in seconds. `turned_away` were told to come again later."""

    took_s: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    turned_away: list[Parcel] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def per_s(self) -> float:
        return len(self.took_s) / self.seconds

    def percentile_ms(self, share: float) -> float:
        ordered = sorted(self.took_s)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True)
class Target:
    """Who is sent to."""

    url: str
    secret: str


async def send(
    target: Target, parcels: Iterator[Parcel], *, connections: int, seconds: float = 600.0, most: int = 10**9
) -> Answers:
    """Send for `seconds`, or until `most` are sent; a connection sends its next delivery when it has its answer."""
    answers = Answers()
    started = time.perf_counter()
    left = itertools.islice(parcels, most)
    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60)) as session:

        async def line() -> None:
            while time.perf_counter() - started < seconds and (parcel := next(left, None)) is not None:
                await _post(session, target, parcel, answers)

        await asyncio.gather(*(line() for _ in range(connections)))
    answers.seconds = time.perf_counter() - started
    return answers


async def _post(session: aiohttp.ClientSession, target: Target, parcel: Parcel, answers: Answers) -> None:
    at = time.perf_counter()
    async with session.post(f"{target.url}/webhook", data=parcel.body, headers=headers(target, parcel)) as got:
        await got.read()
        answers.statuses[got.status] += 1
        if got.status == 503:
            assert int(got.headers["Retry-After"]) > 0
            answers.turned_away.append(parcel)
    answers.took_s.append(time.perf_counter() - at)


async def insist(target: Target, answers: Answers, *, connections: int, pause_s: float, limit_s: float) -> int:
    """Send again what was turned away, as the sweep has GitHub do, until all of it is taken; return how many were."""
    again, number = answers.turned_away, len(answers.turned_away)
    async with asyncio.timeout(limit_s):
        while again:
            await asyncio.sleep(pause_s)
            again = (await send(target, iter(again), connections=connections)).turned_away
    return number


def headers(target: Target, parcel: Parcel) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/load",
        "X-GitHub-Event": parcel.event,
        "X-GitHub-Delivery": parcel.guid,
        "X-Hub-Signature-256": "sha256=" + hmac.digest(target.secret.encode(), parcel.body, "sha256").hex(),
    }


def varied(event: str, payloads: Sequence[Json], change: Callable[[Json, int], object]) -> Iterator[Parcel]:
    """Yield deliveries without end: the payloads in turn, changed a little for each number."""
    for number, payload in enumerate(itertools.cycle(payloads), start=1):
        change(payload, number)
        yield Parcel(event, json.dumps(payload).encode(), str(uuid.uuid4()))


@dataclass(frozen=True)
class Traffic:
    """Deliveries as they come: of queued jobs, which need no work, and of failed ones, in several repositories."""

    queued: Iterator[Parcel]
    failed: Iterator[Parcel]

    def mixed(self, *, seed: int = 1) -> Iterator[Parcel]:
        """Yield nine that need no work, then one that does; one in two of those is a delivery of before."""
        chance = random.Random(seed)
        known: list[Parcel] = []
        while True:
            yield from itertools.islice(self.queued, 9)
            if known and chance.random() < 0.5:
                yield chance.choice(known)
            else:
                known = [*known[-99:], next(self.failed)]
                yield known[-1]


async def traffic(github: SimulatedGitHub, *, repositories: int) -> Traffic:
    """Let a job fail in each of so many repositories, and vary what GitHub says about it.

    The jobs that are made so are not known to GitHub, which the bot is told: their work ends as refused.
    """
    for number in range(repositories):
        repo = github.add_repo(f"busy/repo-{number}")
        run = await github.start_run(await github.open_pull(repo=repo))
        await github.finish_job(run, JOB, "failure")

    def of(action: str, **facts: str) -> list[Json]:
        jobs = [one.payload for one in github.deliveries if (one.event, one.action) == ("workflow_job", action)]
        return [one for one in jobs if facts.items() <= one["workflow_job"].items()]

    def new_job(body: Json, number: int) -> None:
        body["workflow_job"]["id"] = 10**9 + number

    return Traffic(
        varied("workflow_job", of("queued"), new_job),
        varied("workflow_job", of("completed", conclusion="failure"), new_job),
    )


async def ended(url: str) -> Mapping[str, int]:
    """Say how many pieces of work have ended for good, by name."""
    found: Counter[str] = Counter()
    for line in ENDED.finditer(await _metrics(url)):
        if line["outcome"] in FOR_GOOD and (number := int(float(line["number"]))):
            found[line["name"]] += number
    return found


async def drained(url: str, *, limit_s: float) -> float:
    """Wait until no work is left; return the seconds that it took."""
    started = time.perf_counter()
    async with asyncio.timeout(limit_s):
        while True:
            depths = [int(float(line["number"])) for line in WAITING.finditer(await _metrics(url))]
            if depths and not sum(depths):
                return time.perf_counter() - started
            await asyncio.sleep(0.3)


async def _metrics(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url + "/metrics") as answer:
        return await answer.text()
