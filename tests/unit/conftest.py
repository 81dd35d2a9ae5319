"""Fixtures of the tests that talk to a GitHub of their own: a double of it, or the simulated one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from demo_client import Client
    from github_double import Double

    from bot.demo.state import Pull
    from bot.github.gateway import Gateway
    from handlers.context import Files

# What the fixtures need is loaded by those tests that ask for one: most of the folder are pure functions.


@pytest.fixture
async def github() -> AsyncIterator[Double]:
    from github_double import double

    async with double() as running:
        yield running


@pytest.fixture
async def made(github: Double, tmp_path: Path) -> AsyncIterator[Gateway]:
    """The gateway that the service would build for this GitHub."""
    from github_double import gateway

    async with gateway(github, tmp_path) as built:
        yield built


@pytest.fixture
def files(made: Gateway) -> Files:
    """The downloads of one repository."""
    from github_double import REPO

    return made.for_repo(REPO)[2]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A caller of the simulated GitHub's API over HTTP."""
    from demo_client import listening_client

    async with listening_client() as caller:
        yield caller


@pytest.fixture
async def pull(client: Client) -> Pull:
    return await client.github.open_pull()
