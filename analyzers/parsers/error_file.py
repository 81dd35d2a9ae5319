"""The file that torch's `@record` leaves of an uncaught exception: one JSON document in the rank's log folder.

    {"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": "Traceback ...", "timestamp": "1719882614"}}}

Source: torch 2.13, torch/distributed/elastic/multiprocessing/errors/error_handler.py; TORCHELASTIC_ERROR_FILE.
"""

from __future__ import annotations

import json

from analyzers.model import Source
from analyzers.parsers.readings import StreamReading
from analyzers.parsers.tracebacks import TracebackReader
from analyzers.reading.clean import without_controls
from analyzers.reading.layout import Place
from analyzers.reading.scan import Line
from analyzers.reading.whole_text import whole

MAX_BYTES = 4 * 1024**2


def read_error_file(source: Source, place: Place) -> tuple[StreamReading, int]:
    """Return what the file tells, and its size in bytes; nothing where it is no such file. All of it is line 1."""
    held = bytearray()
    for chunk in source.chunks():
        held += chunk
        if len(held) > MAX_BYTES:
            break
    reading = StreamReading(place.name, place.kind, place.stream, place.local_rank)
    traces = TracebackReader()
    for text in _callstack(bytes(held)).split("\n"):
        traces.feed(Line(1, 0, without_controls(text), by_torch=True))
    reading.chains = [chain for chain in traces.chains if chain[-1].type]
    reading.during = [None] * len(reading.chains)
    reading.lines = 1
    reading.seen = traces.seen
    if reading.chains:
        reading.tail = [(1, reading.chains[-1][-1].text)]
    return reading, len(held)


def _callstack(data: bytes) -> str:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):  # cut, empty, or something else under this name
        return ""
    message = document.get("message") if isinstance(document, dict) else None
    extra = message.get("extraInfo") if isinstance(message, dict) else None
    stack = extra.get("py_callstack") if isinstance(extra, dict) else None
    return whole(stack) if isinstance(stack, str) else ""
