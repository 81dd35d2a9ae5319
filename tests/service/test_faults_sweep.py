"""The App's own key is refused while nothing but the sweep asks GitHub anything: it shows, and is over, once."""

from __future__ import annotations

import json
from pathlib import Path

from stories import lines_of
from structlog.typing import EventDict
from world import World

from bot.engine.sweep import Rounds


async def test_a_refused_key_is_one_trouble_and_no_traceback_each_round(tmp_path: Path, said: list[EventDict]) -> None:
    world = World(tmp_path, rounds=Rounds(every_s=0.1, first_s=0.1, pause_s=0.0))
    world.github.add_repo("NVIDIA/Megatron-LM")
    async with world:
        refused = "A JSON web token could not be decoded"
        world.github.fail_next("*", r"^/app", status=401, message=refused, times=1000)
        await world.github.until(lambda: len(world.github.asked("GET", r"^/app/hook/deliveries")) >= 6, within_s=60)
        (begun,) = lines_of(said, "github.trouble")
        assert (begun["kind"], begun["who"]) == ("locked_out", "the App")
        status, text = await world.get("/readyz")
        assert status == 200
        assert "the App since 20" in json.loads(text)["degraded"]["github_locked_out"]
        assert refused in json.loads(text)["degraded"]["github_locked_out"]
        assert 'mlm_github_troubles{kind="locked_out"} 1.0' in (await world.get("/metrics"))[1]

        world.github.parts.traffic.faults.clear()
        await world.github.until(lambda: lines_of(said, "github.trouble_over"), within_s=60)
        await world.github.until(lambda: lines_of(said, "sweep.goes_on"), within_s=60)
        assert 'mlm_sweep_total{what="put_off"} 0.0' not in (await world.get("/metrics"))[1]
    assert [len(lines_of(said, one)) for one in ("github.trouble", "sweep.put_off", "sweep.failed")] == [1, 1, 0]
