"""Flight Recorder dumps: known by name or by their first bytes, and read into `Dump`.

PyTorch writes one file per rank, `<prefix><rank>`, when a collective times out. The prefix is TORCH_FR_DUMP_TEMP_FILE,
by default ".../nccl_trace_rank_" in older and ".../comm_lib_trace_rank_" in newer releases; Megatron-LM sets
"<dir>/_dump_". The content is a pickle, or JSON where somebody asked the control plane for that. What the dumps mean is
said by `flight_recorder_verdict`.

Source: torch/csrc/distributed/c10d/FlightRecorder.cpp, DebugInfoWriter::getWriter; Megatron-LM,
megatron/training/initialize.py.
"""

from __future__ import annotations

import re

from pydantic import ValidationError

from analyzers.model import Source
from analyzers.parsers.flight_recorder_bytes import MalformedError, parse
from analyzers.parsers.flight_recorder_document import Document
from analyzers.parsers.flight_recorder_model import Dump, Unreadable
from analyzers.patterns import pattern
from analyzers.reading.layout import FLIGHT_DUMP

MAX_BYTES = 256 * 1024 * 1024
_JSON_START = pattern(
    rb'\s*\{\s*"(?:entries|version|pg_config|pg_status|nccl_comm_state|nccl_version|comm_lib_version)"\s*:'
)
#: A pickle of protocol 2 or later whose outermost dict has "version" or "pg_config" among its first keys.
_PICKLE_START = pattern(rb"\x80[\x02-\x05].{0,64}?(?:version|pg_config|entries)", re.DOTALL)


def is_flight_dump(name: str) -> bool:
    """Tell by its name whether a file is one rank's dump."""
    return FLIGHT_DUMP.search(name) is not None


def looks_like_dump(head: bytes) -> bool:
    """Tell by its first bytes (128 are enough) whether a file of any name is worth reading as a dump."""
    return _PICKLE_START.match(head) is not None or _JSON_START.match(head) is not None


def read_dump(source: Source) -> Dump | Unreadable:
    """Read one rank's dump, pickled or JSON. Whatever the file holds, nothing is raised: a clear reason is returned."""
    held = bytearray()
    for chunk in source.chunks():
        held += chunk
        if len(held) > MAX_BYTES:
            return Unreadable(source.name, f"is larger than {MAX_BYTES // 1024**2} MiB")
    if not held:
        return Unreadable(source.name, "is empty")
    try:
        document = Document.model_validate(parse(bytes(held)))
        return document.as_dump(source.name, _rank_in(source.name))
    except MalformedError as error:
        return Unreadable(source.name, str(error))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        return Unreadable(source.name, f"is no Flight Recorder dump ({where}: {first['msg']})")


def _rank_in(name: str) -> int | None:
    found = FLIGHT_DUMP.search(name)
    return int(found["rank"]) if found else None
