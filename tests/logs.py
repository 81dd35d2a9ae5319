"""Builds logs and artifacts for the tests of the analyzers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analyzers.model import Bundle, Source


def source(content: bytes | str, name: str = "1/attempt_0/0/stderr.log", *, chunk_bytes: int = 1 << 20) -> Source:
    """A log held in memory, read in chunks of the size asked for."""
    data = content.encode() if isinstance(content, str) else content

    def chunks() -> Iterator[bytes]:
        for at in range(0, len(data), chunk_bytes):
            yield data[at : at + chunk_bytes]

    return Source(name, chunks, len(data))


def bundle(files: Mapping[str, str | bytes], *, job_log: str | None = None, job_name: str | None = None) -> Bundle:
    """An artifact held in memory: path inside it -> content."""
    sources = tuple(source(content, name) for name, content in files.items())
    return Bundle(sources, source(job_log, "job.log") if job_log is not None else None, job_name)
