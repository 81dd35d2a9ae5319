"""`mlm`: one command line, one file per command. Only the command that was asked for is imported: start-up is felt."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

#: Command and what it does, as `mlm --help` shows it. The module `bot.cli.<command>` has `add_parser` and `run`.
COMMANDS = {
    "analyze": "say what failed first, where and why, from a job's logs",
    "serve": "run the GitHub App",
    "demo": "run the App against an embedded simulated GitHub, with a page to watch it",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status of the process."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="mlm", description="Says what failed first, where and why, when a GPU-training CI goes red."
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    asked = words[0] if words and words[0] in COMMANDS else None
    for command, summary in COMMANDS.items():
        if command != asked:
            subparsers.add_parser(command, help=summary)
    if asked is None:
        parser.parse_args(words)  # prints the help, or why the words make no sense, and exits
        return 2
    module = importlib.import_module(f"bot.cli.{asked}")
    module.add_parser(subparsers)
    return int(module.run(parser.parse_args(words)))


if __name__ == "__main__":
    sys.exit(main())
