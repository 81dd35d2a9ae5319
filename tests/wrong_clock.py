"""`mlm serve` on a host whose clock is wrong by as many seconds as the file CLOCK_OFF says. A program."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import bot.app
from bot.cli.main import main

OFF = Path(os.environ["CLOCK_OFF"])
right = time.time


def wrong_time() -> float:
    """Return the seconds since 1970, as wrong as they are now."""
    return right() + float(OFF.read_text())


if __name__ == "__main__":
    time.time = wrong_time
    bot.app._now = lambda: datetime.fromtimestamp(wrong_time(), UTC)
    sys.exit(main(["serve"]))
