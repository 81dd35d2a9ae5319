"""Artifacts that somebody made to hurt whoever opens them, each with a word of what the comment must say of it."""

from __future__ import annotations

import io
import stat
import struct
import zipfile

LOG = "1/none_ab12cd34/attempt_0/0/stderr.log"
#: More than are read of one archive.
MANY = 50_001


def zipped(files: dict[str, bytes], *, mode: int = 0, system: int = 3) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, system, mode << 16
            archive.writestr(entry, content)
    return stream.getvalue()


def bomb() -> bytes:
    """260 MB of zeros in as many kilobytes: nothing that a program logs packs so well."""
    return zipped({LOG: bytes(260 * 1024**2)})


def nested() -> bytes:
    inner = zipped({LOG: b"deep\n"})
    for _ in range(10):
        inner = zipped({"logs.zip": inner})
    return inner


def encrypted() -> bytes:
    data = bytearray(zipped({LOG: b"secret\n"}))
    data[6] |= 1
    data[data.find(b"PK\1\2") + 8] |= 1
    return bytes(data)


def lying() -> bytes:
    """The directory says 2 GiB; there are a few bytes."""
    data = bytearray(zipped({LOG: b"x" * 100}))
    at = data.find(b"PK\1\2")
    data[at + 20 : at + 28] = struct.pack("<2L", 2**31, 2**31)
    return bytes(data)


def crowded() -> bytes:
    """Tens of thousands of empty members: a list of them would be all that anybody gets to do."""
    local, central = bytearray(), bytearray()
    for number in range(MANY):
        name = f"{number}.bin".encode()
        central += struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, *[0] * 7, len(name), *[0] * 5, len(local)) + name
        local += struct.pack("<4s5H3L2H", b"PK\3\4", 20, *[0] * 7, len(name), 0) + name
    count = min(MANY, 65535)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(central), len(local), 0)
    return bytes(local + central + end)


#: name -> what it is made of, and what the reader of the comment is told.
HOSTILE = {
    "bomb": (bomb, "it grows more than 400 times, as no log does"),
    "traversal": (
        lambda: zipped({"../../../etc/cron.d/x": b"x", "/abs.log": b"x"}),
        "its name leads out of the archive",
    ),
    "crowded": (crowded, "only the first 50000 of 50001 entries are read"),
    "link": (lambda: zipped({LOG: b"/etc/passwd"}, mode=stat.S_IFLNK | 0o777), "it is a link or a device, not a file"),
    "nested": (nested, "it is an archive too deep inside of others"),
    "encrypted": (encrypted, "it is encrypted"),
    "lying": (lying, "the archive ends inside it"),
}
