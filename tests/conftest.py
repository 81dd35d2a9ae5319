"""Fixtures that every folder of tests shares."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from world import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A simulated GitHub with one repository and the bot installed on it, running."""
    from world import World

    made = World(tmp_path / "data")
    made.github.add_repo("NVIDIA/Megatron-LM")
    async with made:
        yield made


@pytest.fixture
async def nothing_unexpected(world: World) -> AsyncIterator[None]:
    """Fail a story whose bot asked for what GitHub does not have, or changed anything but what a bot may change."""
    yield
    from stories import surprises

    assert surprises(world) == []
