"""Crashes below Python: faulthandler's stacks, uncaught C++ exceptions, aborts of the C library."""

from __future__ import annotations

from analyzers.parsers.frames import Frame
from analyzers.patterns import pattern
from analyzers.reading.scan import Line
from analyzers.records import dataclass, field

#: faulthandler; when it crashes inside itself the words stand in the middle of a line.
_FATAL = pattern(r"Fatal Python error: (?P<what>[A-Za-z][^\n]*)")
#: pytest-timeout's thread method: all stacks, oldest frame first, and then the process exits.
_TIMEOUT = pattern(r"(?<!\+)\+{3,} Timeout \+{3,}\s*$")
#: faulthandler.dump_traceback_later and pytest's faulthandler_timeout: all stacks, the main thread's last.
_DUMP = pattern(r"^Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!$")
_STACK_OF = pattern(r"^~+ Stack of (?P<thread>\S+) \(\d+\) ~+$")
_STACK_FRAME = pattern(r'^  File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$')
_THREAD = pattern(r"^(?P<current>Current thread|Thread) 0x[0-9a-f]++.*\(most recent call first\):")
_FRAME = pattern(r'^  File "(?P<path>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$')
_TERMINATE = pattern(
    r"terminate called (?:after throwing an instance of '(?P<type>[^']+)'|without an active exception)"
)
_WHAT = pattern(r"^\s*what\(\):\s+(?P<what>.*)$")
_GLIBC = pattern(
    r"(?P<what>double free or corruption.*|free\(\): invalid (?:pointer|size|next size).*"
    r"|corrupted (?:size|double-linked).*"
    r"|malloc\(\): .*|munmap_chunk\(\): invalid pointer|\*\*\* stack smashing detected \*\*\*.*"
    r"|realloc\(\): invalid .*|malloc_consolidate\(\): .*|free\(\): (?:double free|corrupted).*"
    r"|\*\*\* buffer overflow detected \*\*\*.*|^\S+: \S+:\d+: .+: Assertion `.*' failed\.)"
)
#: It begins with one of these, or tells of an assertion.
_GLIBC_STARTS = ("double", "free", "corrupted", "malloc", "munmap", "realloc", "*** ")
#: A line that holds none of these says nothing to a reader that has met no crash.
WORDS = ("+ Timeout +", "Timeout (", "Fatal Python error", "terminate called", "Assertion `", *_GLIBC_STARTS)

#: "Signal" of a test that pytest-timeout ended.
TIMED_OUT = "Timeout"
#: "Signal" of a process whose stacks faulthandler printed when its time was up; it need not have ended.
STUCK = "stuck"

#: What follows a crash this closely is the same one: the C++ stack stands between its two announcements.
_SAME_CRASH_LINES = 250

#: faulthandler's words for a signal.
_SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Bus error": "SIGBUS",
    "Floating-point exception": "SIGFPE",
    "Floating point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
}
_NUMBERS = {
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    15: "SIGTERM",
    2: "SIGINT",
}


def signal_name(exit_code: int) -> str | None:
    """Return the name of the signal that ended a process, None if it exited by itself."""
    return _NUMBERS.get(-exit_code, f"signal {-exit_code}") if exit_code < 0 else None


@dataclass
class Crash:
    """One crash: the signal (or the C++ exception), what was printed, the Python frames outermost first."""

    line: int
    offset: int
    signal: str
    message: str
    frames: list[Frame] = field(default_factory=list)
    exception: str | None = None  # of C++, uncaught
    end: int = 0  # the last line of its stack


def _may_be_glibc(text: str) -> bool:
    return text.startswith(_GLIBC_STARTS) or "Assertion `" in text


class NativeReader:
    """Feed it the lines of one rank's stream in order."""

    def __init__(self) -> None:
        """Begin before any crash."""
        self.crashes: list[Crash] = []
        self._current = False  # inside the stack of the thread that crashed
        self._terminated: Crash | None = None
        self._timeout: Crash | None = None

    @property
    def is_idle(self) -> bool:
        """Whether only a line with one of `WORDS` means something."""
        return not self.crashes and self._timeout is None and self._terminated is None

    @property
    def timing_out(self) -> bool:
        """Whether the lines at hand are the stacks that pytest-timeout prints before it ends the process."""
        return self._timeout is not None

    def feed(self, line: Line) -> bool:
        """Take one line; say whether it belongs to a crash."""
        text = line.text
        if "+ Timeout +" in text and _TIMEOUT.search(text):
            self._turn_timeout(line)
            return True
        if self._timeout is not None:
            return self._timeout_stack(self._timeout, text)
        if text.startswith("Timeout (") and _DUMP.match(text):
            self.crashes.append(Crash(line.number, line.offset, STUCK, text))
            return True
        if "Fatal Python error" in text and (fatal := _FATAL.search(text)):
            self._fatal(line, fatal["what"].strip())
            return True
        if "terminate called" in text and (terminate := _TERMINATE.search(text)):
            self._terminated = Crash(line.number, line.offset, "SIGABRT", text.strip(), exception=terminate["type"])
            self.crashes.append(self._terminated)
            return True
        if self._terminated is not None and (what := _WHAT.match(text)):
            self._terminated.message = f"{self._terminated.message}\n{what['what']}"
            return True
        if _may_be_glibc(text) and (glibc := _GLIBC.match(text)) is not None:
            self.crashes.append(Crash(line.number, line.offset, "SIGABRT", glibc["what"]))
            return True
        return bool(self.crashes) and self._stack(line.number, text)

    def _turn_timeout(self, line: Line) -> None:
        """The same line stands before and after the stacks."""
        if self._timeout is None:
            self._timeout = Crash(line.number, line.offset, TIMED_OUT, "Timeout: pytest-timeout ended the process")
            self.crashes.append(self._timeout)
            self._current = False
        else:
            self._timeout = None

    def _timeout_stack(self, crash: Crash, text: str) -> bool:
        if stack := _STACK_OF.match(text):
            self._current = stack["thread"] == "MainThread"
        elif self._current and (frame := _STACK_FRAME.match(text)):
            crash.frames.append(Frame(frame["path"], int(frame["line"]), frame["function"]))
        return True

    def _fatal(self, line: Line, what: str) -> None:
        signal = next((name for words, name in _SIGNALS.items() if what.startswith(words)), "")
        previous = self.crashes[-1] if self.crashes else None
        if previous is not None and previous.signal != STUCK and line.number - previous.line < _SAME_CRASH_LINES:
            return  # faulthandler tells of the abort that was told already, or crashes inside itself
        self.crashes.append(Crash(line.number, line.offset, signal or what, f"Fatal Python error: {what}"))
        self._current = False

    def _stack(self, number: int, text: str) -> bool:
        crash = self.crashes[-1]
        if thread := _THREAD.match(text):
            self._current = thread["current"] == "Current thread" or crash.signal == STUCK
            if crash.signal == STUCK:
                crash.frames.clear()  # the main thread comes last
            return True
        frame = _FRAME.match(text)
        if frame is None:
            return False
        crash.end = number
        if self._current:
            crash.frames.insert(0, Frame(frame["path"], int(frame["line"]), frame["function"]))
        return True
