"""What the launcher says: which process failed with which exit code, which were ended, which process was which rank.

torchrun prints one line at once and a summary at its end, which is missing when it was killed itself; ft_launcher
prints a ProcessFailure. torch 2.11 to 2.13: torch/distributed/elastic/multiprocessing/{api.py,errors/__init__.py}.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyzers.parsers.job_report import ProcessExit
from analyzers.parsers.tracebacks import Trace, TracebackReader
from analyzers.patterns import pattern
from analyzers.reading.scan import Line
from analyzers.records import dataclass, field

if TYPE_CHECKING:
    from datetime import datetime

_TIME = pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}_[0-9]{2}:[0-9]{2}:[0-9]{2}")
_FAILED = pattern(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: (?P<pid>\d+)\) of binary")
_CLOSING = pattern(r"Sending process (?P<pid>\d+) closing signal (?P<signal>SIG\w+)")
_PROCESS_FAILURE = pattern(r"ProcessFailure\(local_rank=(?P<rank>\d+), pid=(?P<pid>\d+), exitcode=(?P<code>-?\d+)")
_FIELD = pattern(r"^\s*(?P<key>time|host|rank|exitcode)\s*: (?P<value>.*)$")
_ENTRY = pattern(r"^\s*\[\d+\]:")
_ROOT_CAUSE = pattern(r"^\s*Root Cause \(first observed failure\)")
#: launch_nemo_run_workload.py, before it starts the whole test anew.
_ANEW = "attempt restart"
#: The traceback from the error file that torch's `@record` wrote, indented by two.
_TRACEBACK = pattern(r"^\s*traceback\s*: (?P<rest>Traceback \(most recent call last\):.*)$")
_END = pattern(r"^[-=]{20,}")
#: Where no torchrun stands between, Slurm's task is the global rank.
_TASKS = pattern(r"srun: error: \S+: tasks? (?P<tasks>\d[\d,-]{0,2000}): (?P<how>.+)$")
_EXITED = pattern(r"Exited with exit code (?P<code>\d{1,3})")
_SIGNALS = {
    "Out Of Memory": -9,
    "Killed": -9,
    "Segmentation fault": -11,
    "Aborted": -6,
    "Bus error": -7,
    "Floating point exception": -8,
    "Illegal instruction": -4,
    "Terminated": -15,
}
_PART = pattern(r"(?P<first>\d{1,6})(?:-(?P<last>\d{1,6}))?")
#: More tasks than this are a number misread.
_MOST_TASKS = 4096
_PAIR = pattern(r"(?P<value>-?\d+) \((?:local_rank|pid): (?P<inner>\d+)\)")


@dataclass
class LauncherReport:
    """The exits that the launcher tells, by global rank if it names one, and the processes that it ended itself."""

    exits: tuple[ProcessExit, ...] = ()
    early: tuple[ProcessExit, ...] = ()  # of the line printed at once: local ranks
    rank_of_pid: dict[int, int] | None = None
    ended_pids: tuple[int, ...] = ()
    chains: dict[int, list[list[Trace]]] = field(default_factory=dict)  # from error files, by rank
    tasks: tuple[ProcessExit, ...] = ()  # told by srun
    restarted: bool = False  # another start followed, of which no failure is told

    @property
    def failures(self) -> tuple[ProcessExit, ...]:
        """The summary's exits, or the early line's where there is no summary, or those that srun tells."""
        return self.of_torchrun or (() if self.ended_pids else self.tasks)

    @property
    def of_torchrun(self) -> tuple[ProcessExit, ...]:
        """The exits that torchrun tells: in a job's log the tasks of srun may be its nodes."""
        return self.exits or self.early


class LauncherReader:
    """Feed it the launcher's lines in order."""

    def __init__(self) -> None:
        """Begin before any summary."""
        self._exits: list[ProcessExit] = []
        self._early: list[ProcessExit] = []
        self._pids: dict[int, int] = {}
        self._ended: list[int] = []
        self._tasks: list[ProcessExit] = []
        self._fields: dict[str, str] = {}
        self._line = 0
        self._root = False
        self._restarted = False
        self._traces: TracebackReader | None = None
        self._chains: dict[int, list[list[Trace]]] = {}

    def feed(self, line: Line) -> bool:
        """Take one line; say whether it is the launcher's."""
        text = line.text
        if self._traces is not None and not _ENTRY.match(text) and not _END.match(text):
            self._traces.feed(line._replace(text=text.removeprefix("  ")))
            return True
        if told := _TRACEBACK.match(text):
            self._traces = TracebackReader()
            self._traces.feed(line._replace(text=told["rest"]))
            return True
        if _END.match(text):
            self._settle()
            return False
        if failed := _FAILED.search(text) or _PROCESS_FAILURE.search(text):
            rank, code, pid = int(failed["rank"]), int(failed["code"]), int(failed["pid"])
            if self._exits:  # the launcher began anew: what it says of the last start counts
                self._exits, self._early, self._ended, self._root = [], [], [], False
            self._early.append(ProcessExit(rank, code, None, root_cause=True, line=line.number))
            self._restarted = False
            self._pids.setdefault(pid, rank)
            return True
        if closing := _CLOSING.search(text):
            self._ended.append(int(closing["pid"]))
            return True
        if tasks := _TASKS.search(text):
            self._note_tasks(line, tasks["tasks"], tasks["how"])
            return True
        return self._feed_summary(line, text)

    def _feed_summary(self, line: Line, text: str) -> bool:
        if _ANEW in text:
            self._settle()
            self._restarted = True
            return False
        if (root := _ROOT_CAUSE.match(text)) or _ENTRY.match(text):
            self._settle()
            self._root = self._root or root is not None
            return True
        if found := _FIELD.match(text):
            self._fields.setdefault(found["key"], found["value"])
            self._line = line.number if found["key"] == "exitcode" else self._line
            return True
        return False

    def report(self) -> LauncherReport:
        """Settle what is open and return everything."""
        self._settle()
        return LauncherReport(
            tuple(self._exits),
            tuple(self._early),
            dict(self._pids),
            tuple(self._ended),
            self._chains,
            tuple(self._tasks),
            restarted=self._restarted,
        )

    def _note_tasks(self, line: Line, tasks: str, how: str) -> None:
        exited = _EXITED.match(how)
        code = next((code for words, code in _SIGNALS.items() if how.startswith(words)), 1)
        code = int(exited["code"]) if exited else code
        known = {one.rank for one in self._tasks}
        first = not self._tasks
        self._tasks += [
            ProcessExit(rank, code, None, root_cause=first, line=line.number)
            for rank in _ranks_of(tasks)
            if rank not in known
        ]

    def _settle(self) -> None:
        fields, self._fields = self._fields, {}
        traces, self._traces = self._traces, None
        rank, code = _PAIR.match(fields.get("rank", "")), _PAIR.match(fields.get("exitcode", ""))
        if rank is None or code is None:
            return
        self._pids[int(code["inner"])] = int(rank["value"])
        if traces is not None and traces.chains:
            self._chains[int(rank["value"])] = traces.chains
        self._exits.append(
            ProcessExit(
                int(rank["value"]),
                int(code["value"]),
                _time(fields.get("time", "")),
                root_cause=self._root,
                line=self._line,
                host=fields.get("host"),
            )
        )


def _ranks_of(tasks: str) -> list[int]:
    """Return the tasks of a list like `0,2-5`."""
    parts = filter(None, map(_PART.fullmatch, tasks.split(",")))
    spans = [(int(part["first"]), int(part["last"] or part["first"])) for part in parts]
    return [rank for first, last in spans if last < _MOST_TASKS for rank in range(first, last + 1)]


def _time(text: str) -> datetime | None:
    from datetime import UTC, datetime  # noqa: PLC0415 (few logs need it)

    given = text.strip()
    if not _TIME.fullmatch(given):
        return None
    try:  # not strptime: it loads the locale's names of days and months, which takes longer than the whole summary
        return datetime.fromisoformat(given.replace("_", "T")).replace(tzinfo=UTC)
    except ValueError:
        return None
