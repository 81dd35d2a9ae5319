"""Hostile artifacts over HTTP: each costs one sentence in the comment, and the job's log is explained all the same."""

from __future__ import annotations

import re

from stories import FAILURE, MODELS, report
from world import World

from tests.hostile_artifacts import HOSTILE

NOTHING_UNEXPECTED = True
#: Downloads, and what was found in them.
OURS = re.compile(r"(?:job|artifact)-[\w.-]+|[0-9a-f]{32}\.json")


async def test_each_is_told_and_does_no_harm(world: World) -> None:
    pulls = {}
    for kind, (build, _) in HOSTILE.items():
        pull = pulls[kind] = await world.github.open_pull()
        run = await world.github.start_run(pull)
        await world.github.finish_job(run, MODELS, "failure", log=FAILURE, artifact=build())
    await world.idle(within_s=100)
    said = {kind: report(world, pull) for kind, pull in pulls.items()}
    assert {kind: body for kind, body in said.items() if HOSTILE[kind][1] not in body} == {}
    assert {kind: body for kind, body in said.items() if "flash_attn" not in body} == {}
    assert world.tasks_done("diagnose") == len(HOSTILE)
    strays = [
        path for path in world.data_dir.parent.rglob("*") if path.is_file() and world.data_dir not in path.parents
    ]
    assert strays == [], "nothing is written but into the data folder"
    written = [path.name for path in (world.data_dir / "files").rglob("*") if path.is_file()]
    assert [name for name in written if not OURS.fullmatch(name)] == [], "nothing is unpacked"
