"""The real `mlm serve`, killed once at each step that it takes: durable writes and requests, before and after."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

from aiohttp import web
from crash import KINDS, Story, Verdict, judge, make_story
from crash_points import AFTER, BEFORE, PROGRAM, REQUEST
from served import Served, environment

from bot.demo.github import SimulatedGitHub
from bot.demo.traffic import Fault

#: A step that has not come by then does not come in this story.
REACHED_WITHIN_S = 25.0


class Step(NamedTuple):
    """A side of something that the bot does, and the kind of story in which it does it."""

    side: str
    what: str
    kind: str

    @property
    def armed(self) -> list[str]:
        return [self.side, self.what]


def request_name(method: str, path: str) -> str:
    """Name a request the same for every repository, pull request and run."""
    path = re.sub(r"^/repos/[^/]+/[^/]+", "/repos/#/#", path)
    path = re.sub(r"/(contents|git/ref|compare|labels|collaborators)/.+", r"/\1/#", path)
    return f"{method} {re.sub(r'[0-9a-f]{40}|[0-9]+', '#', path)}"


@dataclass
class KillAt(Fault):
    """Kills the bot when a request of this name arrives; then it is lost, or carried out all the same."""

    name: str = ""
    carried: bool = False
    kill: Callable[[], None] = lambda: None
    done: bool = False

    def hits(self, request: web.Request) -> bool:
        if self.done or request_name(request.method, request.path) != self.name:
            return False
        self.done = True
        self.kill()
        return not self.carried


@dataclass
class Sweep:
    """What came of the kills: at which steps, which of them did not come, and how GitHub looked in the end."""

    killed: list[Step] = field(default_factory=list)
    missed: list[Step] = field(default_factory=list)
    verdict: Verdict = field(default_factory=Verdict)


async def list_steps(folder: Path, kinds: Sequence[str] = KINDS, **env: str) -> list[Step]:
    """Tell one story of each kind, and return all steps that the bot took, in the order of the kinds."""
    steps: list[Step] = []
    async with Lives(folder, [], **env) as lives:
        for number, kind in enumerate(kinds):
            lives.stories.append(await make_story(lives.github, number, kind))
            await lives.settled()
            requests = {request_name(seen.method, seen.path) for seen in lives.github.requests if seen.server == "api"}
            for what in [*lives.seen.read_text().splitlines(), *sorted(requests)]:
                if what not in {step.what for step in steps}:
                    steps += [Step(side, what, kind) for side in (BEFORE, AFTER)]
    return steps


async def kill_at_each(folder: Path, steps: Sequence[Step], database: Callable[[], dict[str, str]]) -> Sweep:
    """Kill once at each of the steps; at those that came only once, with a database of their own.

    Args:
        database: returns the settings of an empty database.
    """
    swept = await kill_at_steps(_new(folder), steps, **database())
    rare, swept.missed = swept.missed, []
    for step in rare:
        alone = await kill_at_steps(_new(folder), [step], to_the_end=False, **database())
        swept.killed += alone.killed
        swept.missed += alone.missed
        swept.verdict = swept.verdict.joined(alone.verdict)
    return swept


def _new(folder: Path) -> Path:
    made = folder / str(len(list(folder.iterdir())))
    made.mkdir()
    return made


async def kill_at_steps(folder: Path, steps: Sequence[Step], *, to_the_end: bool = True, **env: str) -> Sweep:
    """Kill once at each of the steps, then let the bot live until all stories have come to their ends.

    Args:
        to_the_end: also let the started runs end, and wait for what the bot says of it.
    """
    swept = Sweep()
    async with Lives(folder, steps, **env) as lives:
        for number, step in enumerate(steps):
            killed = await lives.live_until(step, number)
            (swept.killed if killed else swept.missed).append(step)
        await lives.bot_listens(len(steps))
        await lives.settled()
        for story in lives.stories:
            if to_the_end and story.attempts == 2 and story.run.status != "completed":
                await lives.github.finish_run(story.run)
        if to_the_end:
            await lives.settled(green=True)
        swept.verdict = judge(lives.github, lives.stories, green=to_the_end)
    return swept


class Lives:
    """Many lives of one bot, each of which ends at a step of the plan, and the stories told meanwhile."""

    def __init__(self, folder: Path, steps: Sequence[Step], **env: str) -> None:
        self.github = SimulatedGitHub()
        self.stories: list[Story] = []
        self.seen = folder / "seen"
        self.seen.touch()
        plan = folder / "plan"
        plan.write_text(json.dumps([step.armed for step in steps]))
        notes = {} if steps else {"CRASH_SEEN": str(self.seen)}
        self._env = {"CRASH_PLAN": str(plan), **notes, "MLM_SWEEP_EVERY_S": "1", **env}
        self._folder = folder

    async def __aenter__(self) -> Self:
        await self.github.start()
        self.github.add_repo("NVIDIA/Megatron-LM")
        env = environment(self.github, self._folder / "data", **self._env)
        self.bot = Served(env, met=False, command=PROGRAM)
        started = asyncio.create_task(self.bot.__aenter__())
        await self.github.until(lambda: self.bot.said("crash.born"), within_s=60)
        if not self._env.get("CRASH_SEEN"):
            started.add_done_callback(lambda done: done.exception())
        else:
            await self.bot_listens(0)
            assert self.bot.url, self.bot.noise[-5:]
        self._started = started
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.bot.end(signal.SIGTERM)
        await asyncio.gather(self._started, return_exceptions=True)
        await self.github.close()

    async def bot_listens(self, life: int) -> None:
        """Return once life number `life` listens, or has ended already; GitHub knows its address then."""
        lines = self.bot.said
        await self.github.until(lambda: len(lines("crash.born")) > life, within_s=60)
        await self.github.until(lambda: self._address(life) or len(lines("crash.died")) > life, within_s=60)
        address = self._address(life)
        self.github.set_webhook_url(f"{address}/webhook" if address else None)

    def _address(self, life: int) -> str:
        births = [number for number, line in enumerate(self.bot.lines) if line["event"] == "crash.born"]
        own = self.bot.lines[births[life] :]
        return next((str(line["url"]) for line in own if line["event"] == "serve.listening"), "")

    async def live_until(self, step: Step, life: int) -> bool:
        """Tell a story until the life ends at its step; end it if the step does not come."""
        github, lines = self.github, self.bot.said
        await github.until(lambda: len(lines("crash.born")) > life, within_s=60)
        pid = int(lines("crash.born")[life]["pid"])
        fault = KillAt("*", re.compile(""), "reset", name=step.what, carried=step.side == AFTER)
        fault.kill = lambda: os.kill(pid, signal.SIGKILL)
        if REQUEST.match(step.what):
            github.parts.traffic.faults.append(fault)
        await self.bot_listens(life)
        self.stories.append(await make_story(github, len(self.stories), step.kind))
        reached = await self._reached(life)
        if not reached:
            os.kill(pid, signal.SIGKILL)
            await github.until(lambda: len(lines("crash.died")) > life, within_s=60)
        github.set_webhook_url(None)
        if fault in github.parts.traffic.faults:
            github.parts.traffic.faults.remove(fault)
        return reached

    async def _reached(self, life: int) -> bool:
        """Wait for the end of a life; False if it has nothing left to do but to live on."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + REACHED_WITHIN_S
        while len(self.bot.said("crash.died")) <= life:
            done = judge(self.github, self.stories, green=False).clean and await self.bot.queued() == 0
            if loop.time() > ends or (done and len(self.bot.said("crash.died")) <= life):
                return False
            await asyncio.sleep(0.1)
        return True

    async def settled(self, *, green: bool = False, within_s: float = 120.0) -> None:
        """Return when all stories have come to their ends and nothing waits, or it takes too long."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + within_s
        while loop.time() < ends and not judge(self.github, self.stories, green=green).clean:
            await asyncio.sleep(0.2)
        await asyncio.sleep(1.0)
