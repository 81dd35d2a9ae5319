"""Which exceptions of a stream ended the process, and which it survived."""

from __future__ import annotations

from collections.abc import Sequence

from analyzers.model import Role
from analyzers.parsers.chains import primary
from analyzers.parsers.readings import StreamReading
from analyzers.parsers.tracebacks import Trace
from analyzers.reading.layout import Kind as LogKind
from analyzers.rules import RuleSet
from analyzers.verdict.category import Scene, classify

#: Exceptions printed this close to each other are one event: the process went straight from one into the next.
_CLUSTER_LINES = 6
#: A process that prints more than this after a traceback on stderr has survived it.
_LAST_WORDS = 80
_LAST_WORDS_ON_STDOUT = 10


def fatal_cluster(stream: StreamReading, passed: set[str], *, finished: bool) -> list[list[Trace]]:
    """Return the last run of exceptions in a stream, unless the process went on after it."""
    chains = [
        chain
        for chain, test in zip(stream.chains, stream.during, strict=True)
        if test not in passed and any(trace.type for trace in chain) and not chain[0].harmless
    ]
    if not chains or (finished and not chains[-1][-1].uncaught) or _went_on(stream, chains[-1][-1]):
        return []
    ranked = stream.kind is LogKind.RANK
    first = len(chains) - 1
    while first > 0:
        here, before = chains[first][0], chains[first - 1][-1]
        if (here.start - before.end if ranked else here.first - before.last) > _CLUSTER_LINES:
            break
        first -= 1
    return chains[first:]


def _went_on(stream: StreamReading, last: Trace) -> bool:
    """Whether what was printed after a traceback shows that the process survived it."""
    closed = any(session.finished for session in stream.sessions) and not last.uncaught
    if stream.progress_line > last.end or closed:
        return True
    ranked = stream.kind is LogKind.RANK
    after = stream.lines - last.end if ranked else stream.seen - last.last
    last_words = _LAST_WORDS_ON_STDOUT if ranked and stream.stream == "stdout" else _LAST_WORDS
    return after > last_words and not last.uncaught


def is_logged(stream: StreamReading, cluster: list[list[Trace]], *, in_tests: bool, run_done: bool) -> bool:
    """Whether somebody logged this exception and went on: the interpreter's own last word goes to stderr.

    torch.distributed puts "[rankN]: " before what nobody caught, once a process group exists, and before nothing else.
    """
    if any(trace.uncaught for chain in cluster for trace in chain):
        return False
    on_stdout = stream.kind is LogKind.RANK and stream.stream == "stdout"
    return on_stdout or in_tests or run_done or stream.hooked


def was_survived(cluster: Sequence[Sequence[Trace]], rules: RuleSet) -> bool:
    """Whether somebody printed the first of these exceptions and went on until a peer was lost."""
    if any(trace.uncaught for trace in cluster[0]) or not cluster[-1][-1].uncaught:
        return False
    end = primary(list(cluster[-1]))
    return classify(rules, end.type, end.message, Scene.SCRIPT).role is Role.CONSEQUENCE


def uncaught_line(stream: StreamReading, passed: set[str], *, finished: bool) -> int:
    """Return where the exception ends that ended the program, 0 if none: a crash after it is only a bad exit."""
    cluster = fatal_cluster(stream, passed, finished=finished)
    return max((trace.end for chain in cluster for trace in chain if trace.uncaught), default=0)
