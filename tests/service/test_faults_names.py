"""A name is not known for a while, in the midst of a run: that of GitHub's API, or of the storage of its files."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stories import lines_of
from structlog.typing import EventDict
from world import World

from bot.app import CONTEXTS, GATEWAY, SESSION
from bot.github import storage

JOB = "tests/unit_tests/models/**/*.py - latest"
FAILURE = "ModuleNotFoundError: No module named 'flash_attn'\n##[error]Process completed with exit code 1.\n"
TROUBLES = 'mlm_github_troubles{kind="unreachable"}'


class Names:
    """Whether the names of hosts are known."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.known = True
        real = asyncio.BaseEventLoop.getaddrinfo

        async def look_up(loop: asyncio.BaseEventLoop, host: Any, *rest: Any, **more: Any) -> Any:
            if not self.known:
                raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
            return await real(loop, host, *rest, **more)

        monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", look_up)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


class NamedWorld(World):
    """A world in which the API or the storage has a name, not only an address."""

    def __init__(self, data_dir: Path, named: str) -> None:
        super().__init__(data_dir)
        self.named = named
        self.limits = replace(self.limits, look_every_s=0.3, calm_s=0.5)
        self.github.add_repo("NVIDIA/Megatron-LM")

    async def start_bot(self) -> None:
        if self.named == "api":
            self.api_url = self.github.api_url.replace("127.0.0.1", "localhost")
        else:
            site = self.github.parts.storage._site
            site.url = site.url.replace("127.0.0.1", "localhost")
        await super().start_bot()

    def forget(self) -> None:
        """Let what is known of names be forgotten, and what is connected be cut, as after a while."""
        started = self.app[GATEWAY]._started
        assert started is not None
        for session in (self.app[SESSION], started.storage):
            connector: Any = session.connector
            connector.clear_dns_cache()
            for idle in connector._conns.values():
                for protocol, _ in idle:
                    protocol.close()
            connector._conns.clear()
        self.app[CONTEXTS]._configs.clear()


async def show(world: World) -> tuple[int, dict[str, str], bool]:
    """The status of `/readyz`, what it says slows us down, and whether the figure shows a trouble."""
    status, text = await world.get("/readyz")
    return status, json.loads(text)["degraded"], f"{TROUBLES} 1.0" in (await world.get("/metrics"))[1]


@pytest.mark.parametrize(("named", "who"), [("api", ""), ("storage", "the storage ")])
async def test_a_name_that_is_not_known_for_a_while(
    tmp_path: Path, names: Names, said: list[EventDict], named: str, who: str
) -> None:
    world = NamedWorld(tmp_path, named)
    async with world:
        pull = await world.github.open_pull(author="ada")
        run = await world.github.start_run(pull)
        await world.idle()
        world.forget()
        names.known = False
        await world.github.finish_job(run, JOB, "failure", log=FAILURE)
        await world.github.until(
            lambda: world.tasks_done("delivery", "put_off") or world.tasks_done("diagnose", "put_off"), within_s=60
        )
        status, degraded, shown = await show(world)
        assert (status, list(degraded), shown) == (200, ["github_unreachable"], True)
        assert degraded["github_unreachable"].startswith(f"{who}since 20")
        assert degraded["github_unreachable"].endswith("its name is not known here")
        assert not world.answers(pull)

        names.known = True
        await world.idle(within_s=60)
        await world.github.until(lambda: lines_of(said, "github.trouble_over"), within_s=60)
        await world.idle(within_s=60)
        (answer,) = world.answers(pull)
        assert "flash_attn" in answer
        assert await show(world) == (200, {}, False)
    assert [len(lines_of(said, one)) for one in ("github.trouble", "github.trouble_over", "task.gave_up")] == [1, 1, 0]
    assert "Temporary failure in name resolution" in lines_of(said, "github.trouble")[0]["why"]


async def test_a_storage_whose_name_stays_unknown_costs_its_files_and_not_the_comment(
    tmp_path: Path, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may never be known here: a reader is told what there is without the files, after an hour."""
    monkeypatch.setattr(storage, "PATIENCE_S", 0.0)
    world = NamedWorld(tmp_path, "storage")
    async with world:
        pull = await world.github.open_pull(author="ada")
        run = await world.github.start_run(pull)
        await world.idle()
        world.forget()
        names.known = False
        await world.github.finish_job(run, JOB, "failure", log=FAILURE)
        await world.idle(within_s=60)
        (answer,) = world.answers(pull)
        assert "could not be downloaded" in answer
        assert not world.tasks_done("diagnose", "put_off")
