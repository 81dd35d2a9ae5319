"""`mlm analyze`: the analysis of one job, offline, from its artifact and its log."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyzers.model import Diagnosis
    from bot.archives import Budget

ANALYSED, BAD_USAGE, NOTHING = 0, 2, 3
INTERRUPTED = 130  # as a shell tells Ctrl-C

#: Progress is for long work: nothing is shown before this many seconds, and then this often.
PROGRESS_AFTER_S = 0.5
PROGRESS_EVERY_S = 0.2

EPILOG = """\
exit status: 0 analysed (the job failed or passed), 2 bad usage or unreadable input, 3 nothing to analyse
example:     mlm analyze logs.zip --job-log job.log --job-name 'tests/unit_tests/models/**/*.py - latest'
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser(
        "analyze",
        help="say what failed first, where and why, from a job's logs",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "path", metavar="PATH", nargs="?", help="the log artifact: a folder, a zip file, or - for stdin"
    )
    parser.add_argument("--job-log", metavar="FILE", help="the job's own log, as the CI service serves it")
    parser.add_argument("--job-name", metavar="NAME", help="the job's name, as the CI service shows it")
    parser.add_argument(
        "--repo", metavar="DIR", help="a checkout of the tested commit, for owners, recipes and imports"
    )
    parser.add_argument(
        "--changed-files", metavar="FILE", help="what the pull request changes: one path per line, or a unified diff"
    )
    parser.add_argument(
        "--format", choices=("text", "json", "markdown"), default="text", help="how to answer (default: text)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the answer to FILE instead of the terminal")
    parser.set_defaults(parser=parser)


def run(options: argparse.Namespace) -> int:
    """Analyse, answer on standard output or in a file, and return the exit status."""
    if options.path is None and options.job_log is None:
        options.parser.error("give a PATH, a --job-log, or both")
    from bot.archives import UnreadableError  # noqa: PLC0415  (`mlm --help` needs none of it)

    progress = _Progress(shown=sys.stderr.isatty())
    try:
        diagnosis = _diagnose(options, progress)
    except UnreadableError as why:
        print(f"mlm analyze: {why}", file=sys.stderr)
        return BAD_USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        progress.clear()
    if diagnosis.read.files == 0:
        for skipped in diagnosis.read.skipped:
            print(f"mlm analyze: {skipped.name}: {skipped.why}", file=sys.stderr)
        print("mlm analyze: there is no log here to analyse", file=sys.stderr)
        return NOTHING
    return _answer(diagnosis, options)


def _diagnose(options: argparse.Namespace, progress: _Progress) -> Diagnosis:
    from bot.diagnose import JobFiles, diagnose_path  # noqa: PLC0415

    path, log, name = options.path, options.job_log, options.job_name
    if not options.repo and not options.changed_files:
        return diagnose_path(path, job_log=log, job_name=name, watch=progress.update)
    from bot.checkout import Checkout, read_changed, relate  # noqa: PLC0415

    # What is mistyped is said before an hour of logs is read.
    checkout = Checkout(Path(options.repo)) if options.repo else None
    changed = read_changed(Path(options.changed_files)) if options.changed_files else None
    known = JobFiles(checkout.recipe(name), checkout.goldens(name)) if checkout and name else None
    diagnosis = diagnose_path(path, job_log=log, job_name=name, watch=progress.update, checked_out=known)
    return relate(diagnosis, checkout, changed, job_name=name)


def _answer(diagnosis: Diagnosis, options: argparse.Namespace) -> int:
    to_terminal = options.output is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    text = render(diagnosis, options.format, color=to_terminal).rstrip("\n") + "\n"
    if options.output is None:
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
        sys.stdout.write(text)
        return ANALYSED
    try:
        Path(options.output).write_text(text, encoding="utf-8", errors="replace")
    except OSError as why:
        print(f"mlm analyze: {options.output}: {why.strerror}", file=sys.stderr)
        return BAD_USAGE
    return ANALYSED


def render(diagnosis: Diagnosis, form: str, *, color: bool) -> str:
    """Put a diagnosis into words of the wanted form."""
    if form == "json":
        return json.dumps(diagnosis.as_json(), ensure_ascii=False, indent=2)
    if form == "markdown":
        from handlers.render.report import render_diagnosis  # noqa: PLC0415

        return render_diagnosis(diagnosis)
    from handlers.render.text import WIDTH, render_text  # noqa: PLC0415

    # COLUMNS, or the terminal's own width; there is none in a pipe.
    width = shutil.get_terminal_size((0, 0)).columns
    return render_text(diagnosis, color=color, width=width or WIDTH)


def _ranks(budget: Budget) -> str:
    """Say of how many ranks something has been read: ", 12 ranks"; nothing if no log belongs to one."""
    from analyzers.reading.layout import place  # noqa: PLC0415 (loaded long before there is progress to show)

    places = [place(name) for name in tuple(budget.read)]
    ranks = {(one.run, one.local_rank) for one in places if one is not None and one.local_rank is not None}
    return f", {len(ranks)} rank{'s' if len(ranks) > 1 else ''}" if ranks else ""


class _Progress:
    """A line on the terminal that says how much has been read, once reading takes long."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._next = time.monotonic() + PROGRESS_AFTER_S
        self._drawn = False

    def update(self, budget: Budget) -> None:
        """Take how far the reading has come; called in any thread."""
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next = now + PROGRESS_EVERY_S
        self._drawn = True
        print(f"\rread {budget.total / 1024**2:.0f} MB{_ranks(budget)} ...", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
