"""The real `mlm serve`, killed again and again while work comes in, and what GitHub looks like in the end."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crash_points import PROGRAM
from postman import Carried, Postman
from served import START_LIMIT_S, Served, environment

from bot.demo.actions_state import Run
from bot.demo.github import SimulatedGitHub
from bot.demo.state import Pull

MODELS = "tests/unit_tests/models/**/*.py - latest"
BUCKET = "tests/unit_tests/models/**/*.py"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n##[error]Process completed with exit code 1.\n"
MARKER = re.compile(r"<!-- mlm-bot:(?P<key>[A-Za-z0-9._-]+):[0-9a-f]+ -->")
WRITTEN = re.compile(r"/issues/(?:\d+/comments|comments/\d+)$")
ATTEMPT = re.compile(r", attempt (?P<number>\d+)")
#: A step that no life comes to.
NEVER = ["never", ""]
KINDS = ("failure", "label", "help", "rerun", "mixed", "taken_back")


@dataclass
class Story:
    """What happened on one pull request, and what must have come of it."""

    kind: str
    pull: Pull
    run: Run

    @property
    def keys(self) -> Counter[str]:
        """The bot's comments by kind, each of which must be there once."""
        wanted = {
            "failure": ["report"],
            "label": ["labels"],
            "help": ["reply"],
            "rerun": ["report", "reply"],
            "mixed": ["report", "labels", "reply"],
            "taken_back": [],  # the label was gone again before anybody was told of it
        }
        return Counter(wanted[self.kind])

    @property
    def attempts(self) -> int:
        return 2 if self.kind in {"label", "rerun", "mixed"} else 1


async def make_story(github: SimulatedGitHub, number: int, kind: str) -> Story:
    """Let all of it happen on a pull request of its own; each has an author of its own, whose budget it uses."""
    author = f"dev{number}"
    github.add_user(author, "write")
    pull = await github.open_pull(author=author)
    run = await github.start_run(pull, buckets=[BUCKET])
    if kind in {"failure", "rerun", "mixed"}:
        await github.finish_job(run, MODELS, "failure", log=FAILURE)
    await github.finish_run(run)
    if kind in {"label", "mixed", "taken_back"}:
        await github.label(pull, "Run tests")
    if kind == "taken_back":
        await github.unlabel(pull, "Run tests")
    if kind in {"help", "mixed"}:
        await github.comment(pull, author, "/mlm help")
    if kind == "rerun":
        await github.comment(pull, author, "/mlm rerun unit models")
    return Story(kind, pull, run)


@dataclass
class Verdict:
    """How the end differs from what was sent; `order`: a report that went back to an older attempt."""

    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    reruns: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not any(vars(self).values())

    def joined(self, other: Verdict) -> Verdict:
        """Return what is in either."""
        return Verdict(**{name: [*found, *vars(other)[name]] for name, found in vars(self).items()})


def judge(github: SimulatedGitHub, stories: list[Story], *, green: bool) -> Verdict:
    """Compare GitHub with the stories; `green`: each second attempt has passed, and every report must say so."""
    verdict = Verdict()
    for story in stories:
        where = f"{story.kind} #{story.pull.number}"
        bodies = [comment.body for comment in github.comments(story.pull, by_app=True)]
        markers = Counter(found["key"] for body in bodies if (found := MARKER.match(body)))
        verdict.twice += [f"{where}: {key} x {times}" for key, times in markers.items() if times > 1]
        kinds = Counter(key.split("-")[0] for key in markers)
        verdict.lost += [f"{where}: {key}" for key in (story.keys - kinds)]
        verdict.twice += [f"{where}: unexpected {key}" for key in (kinds - story.keys)]
        attempts = story.run.attempt_number
        if attempts < story.attempts:
            verdict.lost.append(f"{where}: re-run")
        if attempts > story.attempts:
            verdict.reruns.append(f"{where}: attempt {attempts}")
        verdict.lost += [f"{where}: reaction" for left in _unanswered(github, story) if left]
        if green and story.attempts == 2:
            verdict.stale += [f"{where}: {body[:200]}" for body in bodies if "mlm-bot:report" in body and red(body)]
    attempts_told = _attempts_told(github).items()
    verdict.order += [f"{where}: about attempts {told}" for where, told in attempts_told if told != sorted(told)]
    return verdict


def _attempts_told(github: SimulatedGitHub) -> dict[str, list[int]]:
    """The newest attempt in each version of each report, as written; by where it was written: a pull, a comment."""
    told: dict[str, list[int]] = {}
    for seen in github.requests:
        where = WRITTEN.search(seen.path)
        if where and seen.method in {"POST", "PATCH"} and "mlm-bot:report" in (seen.body or {}).get("body", ""):
            shown = ATTEMPT.findall(seen.body["body"].split("<details>", 1)[0])
            told.setdefault(where[0], []).append(max((int(number) for number in shown), default=0))
    return told


def red(report: str) -> bool:
    return "flash_attn" in report.split("<details>", maxsplit=1)[0]


def _unanswered(github: SimulatedGitHub, story: Story) -> Iterator[bool]:
    for comment in github.comments(story.pull, by_app=False):
        marks = github.reactions(comment)
        yield marks not in (["+1"], ["rocket"])


class Victim:
    """A bot that lives again as soon as it was killed (tests/crash_points.py)."""

    def __init__(self, github: SimulatedGitHub, data_dir: Path, *, lives: int, **env: str) -> None:
        self._github = github
        plan = data_dir / "plan"
        plan.write_text(json.dumps([NEVER] * lives))
        more = {"MLM_SWEEP_EVERY_S": "1", "CRASH_PLAN": str(plan), **env}
        self.bot = Served(environment(github, data_dir, **more), command=PROGRAM)
        self.kills = 0

    async def start(self) -> None:
        await self.bot.__aenter__()
        await self._up()

    async def kill(self) -> None:
        """SIGKILL; to GitHub the address is dead until the next life listens."""
        os.kill(int(self.bot.said("crash.born")[-1]["pid"]), signal.SIGKILL)
        self._github.set_webhook_url(None)
        self.kills += 1
        await self._up()

    async def _up(self) -> None:
        """Return once as many lives as there were have listened and met GitHub."""
        await self._github.until(lambda: len(self.bot.said("github.connected")) > self.kills, within_s=START_LIMIT_S)
        self._github.set_webhook_url(f"{self.bot.url}/webhook")

    async def end(self) -> None:
        await self.bot.end(signal.SIGTERM)


Harm = Callable[[int], Awaitable[None]]


@dataclass(frozen=True)
class Outcome:
    """The figures of one run of the harness."""

    verdict: Verdict
    carried: Carried
    kills: int
    redelivered: int
    seconds: float
    said: Counter[str]


async def run_and_kill(  # noqa: PLR0913 (each is a size of the run)
    data_dir: Path,
    *,
    stories: int,
    kills: int,
    seed: int = 1,
    life_s: tuple[float, float] = (0.1, 3.0),
    empty: bool = True,
    harm: Harm | None = None,
    **env: str,
) -> Outcome:
    """Tell the stories, kill at random moments while they are worked on, and judge what is left in the end.

    Args:
        harm: does something else than to kill; told how often.
        empty: wait also for what the bot does half a minute later; without it the run is shorter.
    """
    chance = random.Random(seed)
    started = time.monotonic()
    async with SimulatedGitHub() as github:
        github.add_repo("NVIDIA/Megatron-LM")
        async with Postman(github, chance) as post:
            told = [await make_story(github, number, KINDS[number % len(KINDS)]) for number in range(stories)]
            victim = Victim(github, data_dir, lives=kills, **env)
            run = CrashRun(github, post, victim, told, chance, life_s, empty)
            await victim.start()
            post.open()
            harm = harm or run.kill
            await harm(kills - kills // 3)
            await run.calm(green=False)
            for story in told:
                if story.attempts == 2 and story.run.status != "completed":
                    await github.finish_run(story.run)
            await harm(kills // 3)
            await run.calm(green=True)
            await victim.end()
            verdict = judge(github, told, green=True)
            said = Counter(line["event"] for line in victim.bot.lines)
            again = len(github.asked("POST", r"^/app/hook/deliveries/\d+/attempts$"))
            return Outcome(verdict, post.carried, victim.kills, again, time.monotonic() - started, said)


@dataclass(frozen=True)
class CrashRun:
    """One run of the harness, between its start and its end."""

    github: SimulatedGitHub
    post: Postman
    victim: Victim
    told: list[Story]
    chance: random.Random
    life_s: tuple[float, float]
    empty: bool

    async def kill(self, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(self.chance.uniform(*self.life_s))
            await self.victim.kill()

    async def calm(self, *, green: bool, within_s: float = 300.0) -> None:
        """Return when all is as it must be and nothing waits any more; then see whether more comes than should."""
        ends = time.monotonic() + within_s
        while time.monotonic() < ends and not judge(self.github, self.told, green=green).clean:
            await asyncio.sleep(0.3)
        while (
            self.empty and time.monotonic() < ends and not (self.post.at_rest and await self.victim.bot.queued() == 0)
        ):
            await asyncio.sleep(0.3)
        await asyncio.sleep(1.0)
