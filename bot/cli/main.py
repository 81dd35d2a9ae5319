"""`mlm`: one command line, one file per command. Only what was asked for is imported: start-up is felt."""

from __future__ import annotations

import gc
import os
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
    if words[:1] == ["analyze"]:
        from bot.cli.analyze import answer, read_words  # noqa: PLC0415

        if (options := read_words(words[1:])) is not None:
            return answer(options)
    return _parse_and_run(words)


def _parse_and_run(words: list[str]) -> int:
    import argparse  # noqa: PLC0415 (with what it loads, it takes longer than to read a small artifact)
    import importlib  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        prog="mlm", description="Says what failed first, where and why, when a GPU-training CI goes red."
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    asked = words[0] if words and words[0] in COMMANDS else None
    for command, summary in COMMANDS.items():
        if command != asked:
            subparsers.add_parser(command, help=summary)
    if asked is None:
        from importlib.metadata import version  # noqa: PLC0415

        parser.add_argument("--version", action="version", version=f"mlm-bot {version('mlm-bot')}")
        parser.parse_args(words)  # prints the help, or why the words make no sense, and exits
        return 2
    module = importlib.import_module(f"bot.cli.{asked}")
    module.add_parser(subparsers)
    options, left = parser.parse_known_args(words)
    if left:
        # argparse would say it without the command's own usage, and would blame the words behind the option as well.
        own = subparsers.choices[asked]
        own.error(_unknown(left, own.format_help()))
    return int(module.run(options))


def _unknown(words: list[str], known: str) -> str:
    """Say which word has no meaning, and which option of the help was likely meant."""
    wrong = next((word for word in words if word.startswith("-")), None)
    if wrong is None:
        return f"one word too many: {words[0]}"
    import re  # noqa: PLC0415
    from difflib import get_close_matches  # noqa: PLC0415

    meant = get_close_matches(wrong.partition("=")[0], re.findall(r"--[a-z-]+", known), n=1)
    return f"there is no option {wrong}" + (f"; did you mean {meant[0]}?" if meant else "")


def start() -> None:
    """Run the command of this process, and end it."""
    if sys.argv[1:2] != ["analyze"]:
        sys.exit(main())
    # Usually after each 700 new objects: dozens of times while modules are loaded, and nothing is found.
    gc.set_threshold(20_000)
    try:
        status = main()
    except KeyboardInterrupt:  # before there was anything to clear away
        status = 130
    # All is written, no thread runs and no file is open: to take a hundred modules apart would serve nobody.
    os._exit(status)


if __name__ == "__main__":
    start()
