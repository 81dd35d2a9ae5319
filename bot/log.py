"""Log lines: one JSON object (or one readable line) each on stderr, with every known secret taken out.

Libraries that use `logging` go through the same formatter, so a line of the engine or of aiohttp is redacted too.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor

from handlers.render.redaction import redact_text

#: Names of events and outcomes, ids of deliveries, times: most of what is logged, and never a secret.
HARMLESS = re.compile(r"[a-z_. ]{0,40}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9T:.+-]{0,40}Z?")
REDACTED = "[redacted]"
#: A shorter secret would black out ordinary words.
MIN_SECRET = 8


def configure_logging(
    style: Literal["json", "console"], *, secrets: Iterable[str] = (), stream: TextIO | None = None
) -> None:
    """Set up structlog and `logging` for the whole process."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_renderers(style, secrets))
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    _quieten()


def _is_news(record: logging.LogRecord) -> bool:
    """Say whether a line of the engine is not one that we have written ourselves, with more sense."""
    kind = record.exc_info[0] if record.exc_info else None
    # By name: the class is the engine's, which is not loaded before it is needed.
    return (kind is None or kind.__name__ != "TaskFailedError") and "task cancelled" not in record.getMessage()


def _is_ours(record: logging.LogRecord) -> bool:
    """Say whether the server failed at what was a request at all: whoever sends none has no traceback of ours for it.

    Else a stranger fills the disk with some twenty lines for each four bytes that he sends.
    """
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or "HttpProcessingError" not in {base.__name__ for base in kind.__mro__}


def _quieten() -> None:
    logging.getLogger("aiohttp.server").addFilter(_is_ours)
    # One line a delivery is ours; a second one for each HTTP request says nothing more.
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    engine = logging.getLogger("dbos")
    engine.setLevel(logging.WARNING)
    engine.addFilter(_is_news)
    if not engine.handlers:
        # dbos brings its own console handler unless there is one already.
        engine.addHandler(logging.NullHandler())


def _renderers(style: str, secrets: Iterable[str]) -> list[Processor]:
    redact = redactor(secrets)
    meta: Processor = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if style == "console":
        plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
        return [meta, structlog.processors.format_exc_info, redact, plain]
    return [meta, structlog.processors.format_exc_info, redact, structlog.processors.JSONRenderer()]


def redactor(secrets: Iterable[str]) -> Processor:
    """Return a processor that replaces known secrets, and whatever looks like one, in every value of a line."""
    known = sorted({secret for secret in secrets if len(secret) >= MIN_SECRET}, key=len, reverse=True)

    def clean_text(text: str) -> str:
        for secret in known:
            text = text.replace(secret, REDACTED)
        return text if HARMLESS.fullmatch(text) else redact_text(text)

    def processor(_logger: Any, _method: str, line: EventDict) -> EventDict:
        return {key: _clean(value, clean_text) for key, value in line.items()}

    return processor


def _clean(value: Any, clean_text: Callable[[str], str]) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(key): _clean(item, clean_text) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_clean(item, clean_text) for item in value]
    return clean_text(value if isinstance(value, str) else repr(value))
