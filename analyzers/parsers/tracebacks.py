"""Python tracebacks as the interpreter prints them: chains, groups, and those quoted inside another one's message.

Fed with the lines of ONE rank: the lines of other ranks between them are taken out before.
"""

from __future__ import annotations

import re
from enum import StrEnum

from analyzers.parsers.frames import Frame
from analyzers.patterns import pattern
from analyzers.reading.scan import Line
from analyzers.records import dataclass, field

#: Of Megatron's line per iteration (megatron/training/training.py): no message goes on with it.
_STEP = "| consumed samples"
#: Looking for these words first spares nearly every line the patterns that hold them.
_WORDS = "Traceback (most recent call last):"
_HEADER = pattern(r"^(?P<before>.*?)(?P<what>Original |Exception Group )?Traceback \(most recent call last\):")
_FRAME = pattern(r'^\s*File "(?P<path>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')
#: The line that ends a traceback: a dotted name, then ": message" or nothing. Log levels look alike but shout.
_FINAL = pattern(r"^(?P<type>[A-Za-z_][\w.]*(?:\[\w+\])?)(?:: ?(?P<message>.*))?$")
_SYNTAX = pattern(r"^(?P<type>SyntaxError|IndentationError|TabError): (?P<message>.*)$")
#: Its place, the code, the marks below it.
_SYNTAX_LINES = 5
_SHOUTS = pattern(r"^[A-Z]+$")
#: The bars that draw an ExceptionGroup's tree, and pytest's mark before a crash of its own.
_TREE = pattern(r"^(?:INTERNALERROR> |(?:\s*[|+])+(?:-\+-+ \d+ -+| )?)")
_BARS = ("|", "+")
#: pytest's mark before an exception that its hooks or itself raised: the run ends there.
_INTERNAL = "INTERNALERROR> "
_CAUSE = "The above exception was the direct cause"
_CONTEXT = "During handling of the above exception"
#: multiprocessing repeats a child's traceback inside its own exception.
_CHILD = pattern(r"^-- Process \d+ terminated with the following error:")
#: Tracebacks of what nobody could catch and nobody died of: finalizers, broken log calls, other threads.
_HARMLESS = ("Exception ignored in", "Exception ignored on", "--- Logging error ---", "Exception in thread ")
_PROCESS, _FILE = "-- Process ", '  File "'
#: A line that holds none of these says nothing to a reader that is in no traceback.
WORDS = (_WORDS, *_HARMLESS, _PROCESS, _CAUSE, _CONTEXT, _FILE)
#: What the lines above begin with: every line is asked, and nearly none is one of them.
_DRAWN, _BESIDE = "|+I", "TD-E"
#: A traceback that was formatted and then printed as a list of strings.
_LISTED = pattern(r"""['"]Traceback \(most recent call last\):\\n['"], """)
#: The last one may be cut: it takes the rest of the line, so that no mark in it is tried anew.
_STRINGS = pattern(r"""'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|['"].*""")
#: Lines that may follow the last one and belong to the message: NCCL and gloo write several.
_MESSAGE_LINES = 6
#: The message of Triton's compiler begins so, then comes the kernel's code up to the mark under the place, then why.
_PLACE_IN_KERNEL = pattern(r"^at \d+:\d+:$")
#: Inductor's message begins so, then come the command and, below this word, what the compiler printed.
#: Source: torch 2.13, torch/_inductor/exc.py.
_COMPILER, _COMPILER_SAYS = "C++ compile error", "Output:"
#: The scan passes lines over that nobody asked for: what is this far away is not the same traceback's.
_FAR = 300
#: Foreign lines in the middle of a traceback (another thread's warning) that are passed over before giving up.
_PATIENCE = 12


class Link(StrEnum):
    """How an exception hangs together with the one printed before it."""

    NONE = ""
    CAUSE = "cause"  # raise ... from
    CONTEXT = "context"  # raised while the other was handled
    QUOTED = "quoted"  # "Original Traceback": printed later, happened earlier
    MEMBER = "member"  # of the ExceptionGroup printed before


@dataclass
class Trace:
    """One exception with its stack, outermost frame first; `start`, `end`, `at_line` (of its text) are line numbers.

    `first` and `last` count the lines of its own rank that were seen: in a woven file line numbers say nothing of
    nearness. `uncaught`: torch's own hook printed it, so nobody caught it.
    """

    start: int
    frames: list[Frame] = field(default_factory=list)
    type: str = ""
    message: str = ""
    at_line: int = 0
    end: int = 0
    offset: int = 0
    link: Link = Link.NONE
    indent: int = 0
    first: int = 0
    last: int = 0
    uncaught: bool = False
    harmless: bool = False  # raised where nobody could catch it, and survived

    @property
    def text(self) -> str:
        """The exception as one text, the way its last line has it."""
        return f"{self.type}: {self.message}" if self.message else self.type

    @property
    def short_type(self) -> str:
        """The class without its module."""
        return self.type.rpartition(".")[2]


class TracebackReader:
    """Collects the chains of one rank's stream. Feed it the lines in order; `chains` grows as they end."""

    def __init__(self) -> None:
        """Begin outside of any traceback."""
        self.chains: list[list[Trace]] = []
        self._open: Trace | None = None
        self._tail: Trace | None = None  # ended; its message may go on
        self._link = Link.NONE
        self._harmless = 0  # the line seen last that says so
        self._skipped = 0
        self._hooked = False  # torch's hook prints the open one, "[rankN]: " before each line
        self._previous = 0  # line number
        self._unparsed: tuple[Line, int, Frame] | None = None  # a place without a traceback around it
        self.seen = 0  # lines

    def feed(self, line: Line) -> bool:
        """Take one line; say whether it belongs to a traceback."""
        text = line.text
        first = text[:1]
        if (first in _DRAWN or first.isspace()) and (text.lstrip().startswith(_BARS) or text.startswith(_INTERNAL)):
            text = _TREE.sub("", text)
        self.seen += 1
        if line.number - self._previous > _FAR:
            self._open = self._tail = None
        self._previous = line.number
        if _WORDS in text and (listed := _LISTED.search(text)):
            self._read_list(line, _STRINGS.findall(text, listed.start()))
            return True
        return self._read(line, text)

    def _read_list(self, line: Line, strings: list[tuple[str, str]]) -> None:
        """Read the strings of one list, which are one chain: nobody prints two exceptions in one list."""
        begun = len(self.chains)
        parts = [one or other for one, other in strings]
        texts = "".join(parts).replace("\\n", "\n").replace("\\'", "'").split("\n")
        for part in filter(None, texts):
            self._read(line._replace(text=part), part)
        if len(self.chains) > begun + 1:
            self.chains[begun:] = [[trace for chain in self.chains[begun:] for trace in chain]]

    @property
    def is_idle(self) -> bool:
        """Whether only a line with one of `WORDS` means something."""
        return self._open is None and self._tail is None and self._unparsed is None

    def pass_over(self, line: Line) -> None:
        """Take a line that means nothing."""
        self.seen += 1
        self._previous = line.number

    def end_message(self) -> None:
        """Take the message of the last exception for complete."""
        self._tail = None

    def _read(self, line: Line, text: str) -> bool:
        if _WORDS in text and (header := _HEADER.match(text)):
            self._begin(line, header)
            if self._open is not None and (frame := _FRAME.match(text[header.end() :])):  # numpy breaks no line there
                self._open.frames.append(Frame(frame["path"], int(frame["line"]), frame["function"] or ""))
            return True
        if text[:1] in _BESIDE and self._read_beside(text):
            return True
        if self._open is not None:
            return self._go_on(self._open, line, text)
        if self._read_syntax(line, text):
            return True
        return self._tail is not None and self._continue_message(self._tail, line, text)

    def _read_beside(self, text: str) -> bool:
        """A line between tracebacks that says how the next one is meant."""
        if text.startswith(_HARMLESS):
            self._harmless, self._open, self._tail = self.seen, None, None
            return True
        if text.startswith(_PROCESS) and _CHILD.match(text):
            self._link, self._open, self._tail = Link.QUOTED, None, None
            return True
        if text.startswith((_CAUSE, _CONTEXT)):
            self._link = Link.CAUSE if text.startswith(_CAUSE) else Link.CONTEXT
            self._open = self._tail = None
            return True
        return False

    def _begin(self, line: Line, header: re.Match[str]) -> None:
        """Open a new traceback; one that was open and never ended is kept as it is."""
        before = header["before"]
        quoted = header["what"] == "Original " or "(RANK" in line.text
        grouped = line.text != header.string and self.chains and "ExceptionGroup" in self.chains[-1][-1].type
        link = Link.QUOTED if quoted else Link.MEMBER if grouped or self._in_group() else self._link
        self._link = Link.NONE
        trace = Trace(line.number, end=line.number, offset=line.offset, link=link, first=self.seen, last=self.seen)
        self._hooked = line.by_torch
        trace.uncaught = line.by_torch or line.text.startswith(_INTERNAL)
        trace.harmless = bool(self._harmless) and self.seen - self._harmless <= 2
        trace.indent = len(before) - len(before.lstrip()) if not before.strip() else 0
        if link is not Link.NONE and self.chains:
            self.chains[-1].append(trace)
        else:
            self.chains.append([trace])
        self._open, self._tail, self._skipped = trace, None, 0

    def _read_syntax(self, line: Line, text: str) -> bool:
        """A script that cannot be parsed never ran: its SyntaxError has a place and no traceback."""
        if text.startswith(_FILE) and (frame := _FRAME.match(text)) and not frame["function"]:
            self._unparsed, self._tail = (line, self.seen, Frame(frame["path"], int(frame["line"]))), None
            return True
        if self._unparsed is None or (final := _SYNTAX.match(text)) is None:
            return False
        (begun, seen, place), self._unparsed = self._unparsed, None
        if self.seen - seen > _SYNTAX_LINES:
            return False
        trace = Trace(begun.number, [place], final["type"], final["message"].strip(), line.number, line.number)
        trace.offset, trace.first, trace.last, trace.uncaught = line.offset, seen, self.seen, True
        self.chains.append([trace])
        return True

    def _in_group(self) -> bool:
        last = self.chains[-1][-1] if self.chains else None
        return last is not None and last.link is Link.MEMBER and self.seen - last.last <= 2

    def _go_on(self, trace: Trace, line: Line, text: str) -> bool:
        if self._hooked and not line.by_torch:
            return self._pass_over()
        if frame := _FRAME.match(text):
            trace.frames.append(Frame(frame["path"], int(frame["line"]), frame["function"] or ""))
            trace.end, trace.last = line.number, self.seen
            return True
        body = text[trace.indent :] if not text[: trace.indent].strip() else text
        if body[:1] in (" ", "\t") or not body:
            if body.strip():
                trace.end, trace.last = line.number, self.seen
            return True
        final = _FINAL.match(body)
        if final is not None and _is_class(final["type"]) and (trace.frames or final["message"]):
            trace.type, trace.message = final["type"], (final["message"] or "").strip()
            trace.at_line = trace.end = line.number
            trace.offset, trace.last = line.offset, self.seen
            self._open, self._tail, self._skipped = None, trace, 0
            return True
        return self._pass_over()

    def _pass_over(self) -> bool:
        self._skipped += 1
        if self._skipped > _PATIENCE:
            self._open = None
        return False

    def _continue_message(self, trace: Trace, line: Line, text: str) -> bool:
        if _PLACE_IN_KERNEL.match(trace.message.partition("\n")[0]):
            return self._continue_kernel(trace, line, text)
        if trace.message.endswith(_COMPILER) and line.number - trace.at_line < _FAR:
            if text.strip() == _COMPILER_SAYS:
                trace.message = f"{trace.message}\n{_COMPILER_SAYS}"
            return True
        if (
            not text.strip()
            or trace.message.count("\n") >= _MESSAGE_LINES
            or line.text.startswith("+ ")  # a shell that tells its commands
            or _STEP in text
            or text.startswith(("[", "----", '"""', "INFO", "WARNING", "ERROR", "DEBUG", "wandb", "srun"))
        ):
            self._tail = None
            return False
        trace.message = f"{trace.message}\n{text.strip()}"
        trace.end, trace.last = line.number, self.seen
        return True

    def _continue_kernel(self, trace: Trace, line: Line, text: str) -> bool:
        """Of the code as many lines as of any message; the reason below the mark in any case."""
        last = trace.message.rpartition("\n")[2]
        if line.number - trace.at_line > _FAR:
            self._tail = None
            return False
        if last == "^" or trace.message.count("\n") < _MESSAGE_LINES:
            trace.message = f"{trace.message}\n{text.strip()}"
        elif text.strip() == "^":
            trace.message = f"{trace.message.removesuffix(last)}^"
        trace.end, trace.last = line.number, self.seen
        if last == "^":
            self._tail = None
        return True


def _is_class(name: str) -> bool:
    """Whether a name may be that of an exception: not a log level, nor the tag of a program's own line."""
    return not _SHOUTS.match(name) and (name[0].isupper() or "." in name or name[0] == "_")
