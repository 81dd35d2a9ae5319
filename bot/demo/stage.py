"""The whole demo in one process: the simulated GitHub, the page, and the bot as `mlm serve` runs it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from bot.app import build_app
from bot.demo.director import Director
from bot.demo.loopback import Site
from bot.demo.page import Page
from bot.github.gateway import Limits
from config.settings import Settings

#: Shorter than in production, where somebody may still be choosing labels.
LABEL_DEBOUNCE_S = 2.0
WRITE_PAUSE_S = 0.2
LOG_PAUSE_S = 0.3


async def raise_curtain(parts: contextlib.AsyncExitStack, director: Director, data_dir: Path, *, port: int) -> str:
    """Start everything, in the order in which one needs the other; `parts` stops it again in reverse.

    Args:
        port: of the page; 0 for any free one. The other parts take free ports.
    Returns:
        The address of the page.
    Raises:
        OSError: the port is taken.
    """
    github = director.github
    page = Page(director, port=port)
    parts.push_async_callback(page.close)
    url = await page.start()
    github.state.web_url = url
    await parts.enter_async_context(github)
    limits = Limits(write_pause_s=WRITE_PAUSE_S, log_pause_s=LOG_PAUSE_S)
    bot = Site(build_app(_settings(director, data_dir), limits=limits))
    parts.push_async_callback(bot.close)
    github.set_webhook_url(await bot.start() + "/webhook")
    await director.set_stage()
    return url


def _settings(director: Director, data_dir: Path) -> Settings:
    """What an operator would have put into the environment."""
    github = director.github
    return Settings.model_validate(
        {
            "github_api_url": github.api_url,
            "github_app_id": github.app_id,
            "github_private_key": github.private_key_pem,
            "github_webhook_secret": github.webhook_secret,
            "data_dir": data_dir,
            "executor_id": "demo",
            "label_debounce_s": LABEL_DEBOUNCE_S,
            "write_pause_s": WRITE_PAUSE_S,
            "shutdown_grace_s": 1.0,
            "analysis_workers": 1,
        }
    )
