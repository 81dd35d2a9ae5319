"""The words that commands are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Target = Literal["failed", "all", "unit", "functional", "lint", "build", "job", "any"]

#: Another word for the same verb.
ALIASES: Mapping[str, str] = {
    "retry": "rerun",
    "retest": "rerun",
    "re-run": "rerun",
    "stop": "cancel",
    "diagnose": "analyze",
    "explain": "analyze",
    "?": "help",
}
PLAIN = (
    "run",
    "cancel",
    "analyze",
    "status",
    "queue",
    "logs",
    "labels",
    "label",
    "unlabel",
    "mute",
    "unmute",
    "flaky",
    "feedback",
    "why",
    "ping",
    "version",
)
VERBS = ("rerun", *PLAIN, "help")
TARGETS: tuple[Target, ...] = ("failed", "all", "unit", "functional", "lint", "build", "job")
POLITE = frozenset({"please", "pls", "plz", "thanks", "thank", "you", "thx"})
#: Said around what is meant: `rerun the failed tests` is `rerun failed`.
ARTICLES = frozenset({"the", "a", "my", "these", "those"})
#: What `cancel` stops anyway; any other word names something that it would not have stopped alone.
THE_RUN = frozenset({"run", "ci", "it", "this", "all", "everything", "now", "tests", "jobs"})
NOUNS = frozenset({"test", "tests", "job", "jobs", "ones", "one", "leg", "legs", "bucket", "buckets"})
#: How a command may be addressed; more than one on a line are several commands.
NAMES = frozenset({"/mlm", "/mlm-bot", "@mlm-bot", "@mlm-bot[bot]"})
RERUN_OPTIONS = ("--dry-run", "--force", "--gb200", "--h100", "--now", "--sha")
#: What an option promises is kept, or it is refused: only these can say what they would do without doing it.
#: `analyze` reads everything afresh anyway; its option is accepted because people know it from elsewhere.
PLAIN_OPTIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("run", "cancel", "label", "unlabel"), ("--dry-run",)),
    "analyze": ("--fresh",),
}
