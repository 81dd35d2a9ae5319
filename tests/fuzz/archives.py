"""An artifact as it was downloaded, opened and read within small limits. First byte: its name."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bot.archives import PIECE, Budget, Limits, UnreadableError, open_bundle

NAMES = ("logs.zip", "logs.tar", "logs.tgz", "logs.gz", "logs", "rank0.log.gz")
LIMITS = Limits(entries=40, file_bytes=1 << 20, total_bytes=2 << 20, ratio_from_bytes=1 << 16, ratio=100)
#: Each member may go over its limit by the piece that shows it, and an archive inside is read as one member before.
MOST_BYTES = LIMITS.total_bytes + LIMITS.entries * PIECE


def run(data: bytes) -> None:
    if not data:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, NAMES[data[0] % len(NAMES)])
        path.write_bytes(data[1:])
        budget = Budget(limits=LIMITS)
        try:
            opened = open_bundle(str(path), budget=budget)
        except UnreadableError:
            return  # and its sentence is told
        log = opened.bundle.job_log
        for source in (*opened.bundle.sources, *((log,) if log else ())):
            assert ".." not in source.name.split("/")
            assert not source.name.startswith("/")
            assert source.name.isprintable(), ascii(source.name)
            for piece in source.chunks():
                assert 0 < len(piece) <= 1 << 20
        assert budget.total <= MOST_BYTES, budget.total
        for told in (*opened.bundle.skipped, *opened.trouble()):
            assert told.why
            assert told.name.isprintable(), ascii(told.name)
        assert [one.name for one in Path(folder).iterdir()] == [path.name], "nothing is unpacked to the disk"
