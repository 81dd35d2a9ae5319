"""Fixtures that every folder of tests shares."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import settings
from structlog.typing import EventDict

if TYPE_CHECKING:
    from world import World

# The same examples each time: a red run can be repeated. `HYPOTHESIS_PROFILE=search` looks for new ones.
settings.register_profile("repeat", derandomize=True)
settings.register_profile("search", max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))


@pytest.fixture
def said() -> Iterator[list[EventDict]]:
    """The log lines of this test."""
    with structlog.testing.capture_logs() as lines:
        yield lines


@pytest.fixture
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A simulated GitHub with one repository and the bot installed on it, running."""
    from world import World

    made = World(tmp_path / "data")
    made.github.add_repo("NVIDIA/Megatron-LM")
    async with made:
        yield made
    if getattr(request.module, "NOTHING_UNEXPECTED", False):
        from stories import surprises

        assert surprises(made) == []
