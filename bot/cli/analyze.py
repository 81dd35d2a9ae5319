"""`mlm analyze`: the analysis of one job, offline, from its artifact and its log.

Half of what a small artifact takes is loading modules: what not every run needs is imported where it is needed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from analyzers.records import dataclass

if TYPE_CHECKING:
    import argparse

    from analyzers.model import Diagnosis
    from bot.archives import Budget

ANALYSED, BAD_USAGE, NOTHING = 0, 2, 3
INTERRUPTED, UNREAD = 130, 141  # as a shell tells Ctrl-C, and a reader that has gone

#: Progress is for long work: nothing is shown before this many seconds, and then this often.
PROGRESS_AFTER_S = 0.5
PROGRESS_EVERY_S = 0.2

EPILOG = """\
exit status: 0 analysed (failed, passed or unknown), 2 bad usage or unreadable input, 3 nothing to analyse
example:     mlm analyze logs.zip --job-log job.log --job-name 'tests/unit_tests/models/**/*.py - latest'
"""


FORMATS = ("text", "json", "markdown")
#: The options, each with one value, and what `Options` calls it.
VALUES = {
    "--job-log": "job_log",
    "--job-name": "job_name",
    "--repo": "repo",
    "--changed-files": "changed_files",
    "--format": "format",
    "--output": "output",
    "-o": "output",
}


@dataclass(frozen=True)
class Options:
    """What was asked for; None for what was not said."""

    path: str | None = None
    job_log: str | None = None
    job_name: str | None = None
    repo: str | None = None
    changed_files: str | None = None
    format: str = FORMATS[0]
    output: str | None = None


def read_words(words: Sequence[str]) -> Options | None:
    """Read the words after `mlm analyze` if they are as plain as they mostly are.

    Returns:
        What argparse would say; None for anything that it should look at: mistakes, `--help`, short forms, `--x=y`.
    """
    given: dict[str, str] = {}
    left = iter(words)
    for word in left:
        name = VALUES.get(word, "path")
        value = word if name == "path" else next(left, "-")
        if (name == "path" and name in given) or (value.startswith("-") and (name, value) != ("path", "-")):
            return None
        given[name] = value
    options = Options(**given)
    return options if options.format in FORMATS and (options.path, options.job_log) != (None, None) else None


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    import argparse  # noqa: PLC0415

    parser = subparsers.add_parser(
        "analyze",
        help="say what failed first, where and why, from a job's logs",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="?",
        help="the log artifact: a folder, a zip, tar or tar.gz file, one log, or - for stdin",
    )
    parser.add_argument("--job-log", metavar="FILE", help="the job's own log, as the CI service serves it")
    parser.add_argument("--job-name", metavar="NAME", help="the job's name, as the CI service shows it")
    parser.add_argument(
        "--repo", metavar="DIR", help="a checkout of the tested commit, for owners, recipes and imports"
    )
    parser.add_argument(
        "--changed-files", metavar="FILE", help="what the pull request changes: one path per line, or a unified diff"
    )
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="how to answer (default: text)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the answer to FILE instead of the terminal")
    parser.set_defaults(parser=parser)


def run(asked: argparse.Namespace) -> int:
    """Carry out what argparse has read."""
    given = vars(asked)
    if asked.path is None and asked.job_log is None:
        asked.parser.error("give a PATH, a --job-log, or both")
    return answer(Options(**{name: given[name] for name in ("path", *VALUES.values())}))


def answer(options: Options) -> int:
    """Analyse, answer on standard output or in a file, and return the exit status."""
    from bot.archives import UnreadableError  # noqa: PLC0415  (`mlm --help` needs none of it)

    progress = _Progress(shown=sys.stderr is not None and sys.stderr.isatty())
    try:
        diagnosis = _diagnose(options, progress)
    except UnreadableError as why:
        _complain(str(why))
        return BAD_USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        progress.clear()
    if diagnosis.read.files == 0:
        for skipped in diagnosis.read.skipped:
            _complain(f"{skipped.name}: {skipped.why}")
        _complain(f"{_where(options)}: there is no log here to analyse")
        return NOTHING
    return _write(diagnosis, options)


def _complain(words: str) -> None:
    """Say it on standard error; if that is closed or full, the exit status says it alone."""
    try:
        if sys.stderr is not None:  # else it would go to standard output
            print(f"mlm analyze: {words}", file=sys.stderr)
    except OSError:
        pass


def _where(options: Options) -> str:
    path = options.path or options.job_log or ""
    return "standard input" if path == "-" else path


def _diagnose(options: Options, progress: _Progress) -> Diagnosis:
    from bot.diagnose import JobFiles, diagnose_path  # noqa: PLC0415

    path, log, name = options.path, options.job_log, options.job_name
    if not options.repo and not options.changed_files:
        return diagnose_path(path, job_log=log, job_name=name, watch=progress.update)
    from pathlib import Path  # noqa: PLC0415

    from bot.checkout import Checkout, read_changed, relate  # noqa: PLC0415

    # What is mistyped is said before an hour of logs is read.
    checkout = Checkout(Path(options.repo)) if options.repo else None
    changed = read_changed(Path(options.changed_files)) if options.changed_files else None
    known = JobFiles(checkout.recipe(name), checkout.goldens(name)) if checkout and name else None
    diagnosis = diagnose_path(path, job_log=log, job_name=name, watch=progress.update, checked_out=known)
    return relate(diagnosis, checkout, changed, job_name=name)


def _write(diagnosis: Diagnosis, options: Options) -> int:
    if options.output is None and sys.stdout is None:
        _complain("standard output: it is closed")
        return BAD_USAGE
    to_terminal = options.output is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    text = render(diagnosis, options.format, color=to_terminal).rstrip("\n") + "\n"
    try:
        if options.output is None:
            sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            with open(options.output, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
    except BrokenPipeError:
        return UNREAD
    except OSError as why:
        _complain(f"{'standard output' if options.output is None else options.output or repr('')}: {why.strerror}")
        return BAD_USAGE
    return ANALYSED


def render(diagnosis: Diagnosis, form: str, *, color: bool) -> str:
    """Put a diagnosis into words of the wanted form."""
    if form == "json":
        import json  # noqa: PLC0415

        return json.dumps(diagnosis.as_json(), ensure_ascii=False, indent=2)
    if form == "markdown":
        from handlers.render.report import render_diagnosis  # noqa: PLC0415

        return render_diagnosis(diagnosis)
    from handlers.render.text import WIDTH, render_text  # noqa: PLC0415

    return render_text(diagnosis, color=color, width=_columns() or WIDTH)


def _columns() -> int:
    """Return the width of the terminal, or COLUMNS in its place; 0 in a pipe."""
    if not (sys.stdout is not None and sys.stdout.isatty()) and "COLUMNS" not in os.environ:
        return 0
    import shutil  # noqa: PLC0415 (it loads every packer that there is)

    return shutil.get_terminal_size((0, 0)).columns


def _width(terminal: TextIO) -> int:
    """Return how many columns a terminal has; one that does not say has enough."""
    try:
        return os.get_terminal_size(terminal.fileno()).columns or sys.maxsize
    except (OSError, ValueError):
        return sys.maxsize


class _Progress:
    """A line on the terminal that says how much has been read, once reading takes long."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._next = time.monotonic() + PROGRESS_AFTER_S
        self._drawn = False
        self._looked_at = 0  # of the names of what was read
        self._ranks: set[object] = set()

    def update(self, budget: Budget) -> None:
        """Take how far the reading has come; called in any thread."""
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next = now + PROGRESS_EVERY_S
        self._drawn = True
        told = f"read {budget.total / 1024**2:.0f} MB{self._count_ranks(budget)} ..."
        # A line that breaks would stay above the next one.
        print(f"\r{told[: _width(sys.stderr) - 1]}", end="", file=sys.stderr, flush=True)

    def _count_ranks(self, budget: Budget) -> str:
        """Say of how many ranks something has been read: ", 12 ranks"; nothing if no log belongs to one."""
        from analyzers.reading.layout import place  # noqa: PLC0415 (loaded long before there is progress to show)

        names = tuple(budget.read)
        new, self._looked_at = names[self._looked_at :], len(names)
        places = [one for one in map(place, new) if one is not None and one.local_rank is not None]
        self._ranks.update((one.run, one.local_rank) for one in places)
        count = len(self._ranks)
        return f", {count} rank{'s' if count > 1 else ''}" if count else ""

    def clear(self) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
