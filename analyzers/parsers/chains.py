"""Which exception of a chain is the one to tell, and the way to it through the repository."""

from __future__ import annotations

from itertools import pairwise

from analyzers.parsers.frames import innermost
from analyzers.parsers.tracebacks import Link, Trace
from analyzers.records import replace

#: A look-up that misses is the normal way into fallback code; the error of the fallback is the one to tell.
_MISSES = frozenset({"KeyError", "IndexError", "LookupError", "StopIteration", "Empty"})
_LOOKUP_MISSES = _MISSES | {
    "AttributeError",
    "FileNotFoundError",
    "ImportError",
    "ModuleNotFoundError",
    "PackageNotFoundError",
}
#: What a command left behind says nothing; the exception that was raised from it says what the command was for.
_WORDLESS = "CalledProcessError"


def primary(chain: list[Trace], root: str | None = None) -> Trace:
    """Return the exception of a chain that counts, with the way to it through the repository.

    The traceback of an exception that was handled begins where it was handled; one that a child or a group brings,
    where that began. If no frame of it is in the repository, what was raised from it, or brings it, knows the way.
    """
    counts = _that_counts(chain, root)
    if innermost(counts.frames, root) is not None:
        return counts
    place = next(place for place, trace in enumerate(chain) if trace is counts)
    brought = counts.link in (Link.QUOTED, Link.MEMBER)
    others = reversed(chain[:place]) if brought else chain[place + 1 :]
    way = next((trace.frames for trace in others if innermost(trace.frames, root) is not None), None)
    return counts if way is None else replace(counts, frames=[*way, *counts.frames])


def _that_counts(chain: list[Trace], root: str | None) -> Trace:
    """Where the trouble began, in the repository's own code.

    What another exception was raised from is the original, unless its own traceback is missing. One that was merely
    being handled counts if it has a frame of the repository: else it is a library's inner business. A look-up that
    missed is the normal way into code that then fails. A quoted traceback happened before the one that quotes it; of a
    group, the first counts. Where pytest.raises was to see another text, the exception itself was expected.
    """
    quoted = [trace for trace in chain if trace.link is Link.QUOTED and trace.type]
    if quoted:
        return quoted[-1]
    members = [trace for trace in chain if trace.link is Link.MEMBER and trace.type]
    if members:
        return members[0]
    ended = [trace for trace in chain if trace.type] or chain
    if ended[-1].short_type == "AssertionError" and ended[-1].message.startswith("Regex pattern did not match"):
        return ended[-1]
    known_from_the_start = ended[0].link is Link.NONE
    for trace, after in pairwise(ended):
        if after.link is Link.CAUSE and trace.text == after.text and innermost(trace.frames, root) is not None:
            return trace  # the same error, handed on from a worker process
        if trace.short_type in (_MISSES if after.link is Link.CAUSE else _LOOKUP_MISSES):
            continue
        if trace.short_type == _WORDLESS and innermost(trace.frames, root) is None:
            continue
        if after.link is Link.CAUSE and known_from_the_start:
            return trace
        if innermost(trace.frames, root) is not None:
            return trace
    return ended[-1]
