"""The real `mlm serve`, killed at each single request that it makes: before it has an effect, and right after."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web
from crash import Story, Verdict, Victim, judge, make_story

from bot.demo.github import SimulatedGitHub
from bot.demo.traffic import Fault

WRITES = re.compile("POST|PATCH|PUT|DELETE")
ALL = re.compile(".*")


@dataclass
class KillAt(Fault):
    """Kills the bot as soon as its n-th request arrives; then the request is lost, or carried out all the same."""

    nth: int = 1
    carried: bool = False
    methods: re.Pattern[str] = ALL
    kill: Callable[[], None] = lambda: None
    seen: int = field(default=0, init=False)
    where: str = field(default="", init=False)

    def hits(self, request: web.Request) -> bool:
        if self.where or not self.path.search(request.path) or not self.methods.fullmatch(request.method):
            return False
        self.seen += 1
        if self.seen < self.nth:
            return False
        self.where = f"{request.method} {request.path}"
        self.kill()
        return not self.carried


@dataclass
class Steps:
    """What came of the kills: at which requests, and how GitHub looked in the end."""

    where: list[str] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return all(verdict.clean for verdict in self.verdicts)


async def kill_at_each_request(
    data_dir: Path, kind: str, *, carried: bool, methods: re.Pattern[str] = ALL, most: int = 200, **env: str
) -> Steps:
    """Tell the same story again and again, each time on a new pull request, and kill one request later."""
    steps = Steps()
    async with SimulatedGitHub() as github:
        github.add_repo("NVIDIA/Megatron-LM")
        victim = Victim(github, data_dir, **env)
        await victim.start()
        for nth in range(1, most + 1):
            fault = KillAt("*", re.compile(r"^/repos/"), "reset", nth=nth, carried=carried, methods=methods)
            fault.kill = lambda: victim.signal(signal.SIGKILL)
            github.parts.traffic.faults.append(fault)
            story = await make_story(github, nth, kind)
            await _settled(github, victim, story, fault)
            github.parts.traffic.faults.remove(fault)
            steps.verdicts.append(judge(github, [story], green=False))
            if not fault.where:
                break
            steps.where.append(fault.where)
        await victim.end()
    return steps


async def _settled(github: SimulatedGitHub, victim: Victim, story: Story, fault: KillAt, within_s: float = 60) -> None:
    """Start the bot again once it was killed; return when the story has come to its end, and a little later."""
    loop = asyncio.get_running_loop()
    ends, started_again = loop.time() + within_s, False
    while loop.time() < ends and not judge(github, [story], green=False).clean:
        if fault.where and not started_again:
            await victim.kill()
            await victim.start()
            started_again = True
        await asyncio.sleep(0.1)
    if fault.where and not started_again:
        await victim.kill()
        await victim.start()
    await asyncio.sleep(0.5)
