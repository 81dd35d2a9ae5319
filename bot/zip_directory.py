"""The directory of a zip file, read from its end, with nothing trusted.

The standard library's `zipfile` builds its whole list before anybody can object to its length, takes sizes at their
word and costs 20 ms to import; here the list stops at a limit and every doubt about an entry becomes a sentence.

Source: PKWARE APPNOTE 6.3.10, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16, 4.5.3.
"""

from __future__ import annotations

import mmap
import stat
import struct
from collections.abc import Iterator

from analyzers.model import Skipped
from analyzers.records import dataclass

STORED, DEFLATED = 0, 8
_END = struct.Struct("<4s4H2LH")
_END64_PLACE = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_LONGEST_COMMENT = 0xFFFF
#: Of one folder or file, as file systems have it.
LONGEST_NAME = 255
#: A zip64 record that is not where its locator says is looked for so far before it: in a file with something in front.
_LONGEST_END64 = 0xFFFF
_IN_EXTRA, _IN_END64 = 0xFFFFFFFF, 0xFFFF
_ENCRYPTED, _DESCRIBED_LATER, _UTF8 = 0x1, 0x8, 0x800
_DESCRIPTOR = struct.Struct("<4s3L")


class NotZipError(Exception):
    """The bytes are no whole zip file; the message says what is missing."""


@dataclass(frozen=True)
class ZipEntry:
    """One member: where its local header stands and how it is packed. `size` is what the directory claims."""

    name: str
    method: int
    packed: int
    size: int
    crc: int
    offset: int


def read_directory(data: mmap.mmap | bytes, *, label: str, max_entries: int) -> tuple[list[ZipEntry], list[Skipped]]:
    """List the members that may be read, in the order of the directory, and the ones that may not, with the reason.

    A file whose end is missing (a broken download) is read from its beginning, member by member, as far as it goes.

    Raises:
        NotZipError: no end record, or it points outside of the file; and no member at its beginning either.
    """
    entries: list[ZipEntry] = []
    skipped: list[Skipped] = []
    seen: set[str] = set()
    try:
        count, size, start, shift = _find_directory(data)
        walk = _walk(data, start, min(start + size, len(data)), shift)
    except NotZipError as why:
        count, walk = 0, _walk_members(data)
        if next(_walk_members(data), None) is None:
            raise
        skipped.append(Skipped(label, f"{why}; it was read from its beginning as far as it goes"))
    for number, (entry, doubt) in enumerate(walk):
        if number >= max_entries:
            skipped.append(Skipped(label, f"only the first {max_entries} of {max(count, number + 1)} entries are read"))
            break
        twice = "its name is there twice" if entry.name.casefold() in seen else ""
        why_not = doubt or why_bad_name(entry.name) or twice
        if why_not:
            skipped.append(Skipped(printable(entry.name), why_not))
        elif not entry.name.endswith("/"):
            seen.add(entry.name.casefold())
            entries.append(entry)
    return _without_overlaps(entries, skipped), skipped


def directory_place(data: mmap.mmap | bytes) -> tuple[int, int]:
    """Return where the directory begins and ends, by the record at the file's end; nothing before them is looked at.

    Raises:
        NotZipError: there is no such record, or it points outside of the file.
    """
    _, size, start, _ = _find_directory(data)
    return start, start + size


def ends_in_directory(data: mmap.mmap | bytes) -> bool:
    """Whether these bytes end as a zip file does, whatever they begin with: an archive that unpacks itself is one."""
    try:
        start, end = directory_place(data)
    except NotZipError:
        return False
    place = data.find(b"PK\5\6", end)
    comment = int.from_bytes(data[place + _END.size - 2 : place + _END.size], "little")
    return data[start : start + 4] == b"PK\1\2" and place + _END.size + comment == len(data)


def data_range(data: mmap.mmap | bytes, entry: ZipEntry) -> tuple[int, int] | None:
    """Return where the packed bytes of a member begin and should end; None if its local header is not there."""
    end = entry.offset + _LOCAL.size
    if entry.offset < 0 or end > len(data):
        return None
    fields = _LOCAL.unpack(data[entry.offset : end])
    if fields[0] != b"PK\3\4":
        return None
    begin = end + fields[9] + fields[10]
    return begin, begin + entry.packed


def _find_directory(data: mmap.mmap | bytes) -> tuple[int, int, int, int]:
    """Return the number of entries, the directory's size and start, and how far all offsets are shifted."""
    place = data.rfind(b"PK\5\6", max(0, len(data) - _END.size - _LONGEST_COMMENT))
    if place < 0 or place + _END.size > len(data):
        raise NotZipError("it has no zip directory at its end: it is cut short, or no zip file")
    _, _, _, _, count, size, offset, _ = _END.unpack(data[place : place + _END.size])
    end = place
    if _IN_EXTRA in (size, offset) or count == _IN_END64:
        count, size, offset, end = _find_zip64(data, place, count=count, size=size, offset=offset)
    start = end - size
    if start < 0 or start < offset:
        raise NotZipError("its zip directory points outside of the file")
    return count, size, start, start - offset


def _find_zip64(
    data: mmap.mmap | bytes, place: int, *, count: int, size: int, offset: int
) -> tuple[int, int, int, int]:
    locator = place - _END64_PLACE.size
    if locator < 0 or data[locator : locator + 4] != b"PK\6\7":
        return count, size, offset, place
    end = _END64_PLACE.unpack(data[locator : locator + _END64_PLACE.size])[2]
    if end > locator or data[end : end + 4] != b"PK\6\6":
        end = data.rfind(b"PK\6\6", max(0, locator - _LONGEST_END64), locator)
    if end < 0 or end + _END64.size > locator:
        raise NotZipError("its zip64 directory is missing")
    fields = _END64.unpack(data[end : end + _END64.size])
    return fields[7], fields[8], fields[9], end


def _walk(data: mmap.mmap | bytes, place: int, end: int, shift: int) -> Iterator[tuple[ZipEntry, str]]:
    while place + _ENTRY.size <= end and data[place : place + 4] == b"PK\1\2":
        fields = _ENTRY.unpack(data[place : place + _ENTRY.size])
        flags, method, crc = fields[3], fields[4], fields[7]
        name_end = place + _ENTRY.size + fields[10]
        raw_name, extra = data[place + _ENTRY.size : name_end], data[name_end : name_end + fields[11]]
        size, packed, offset = _real_sizes(extra, size=fields[9], packed=fields[8], offset=fields[16])
        entry = ZipEntry(_decode(raw_name, flags), method, packed, size, crc, offset + shift)
        yield entry, _why_unreadable(flags, method, fields[15] >> 16)
        place = name_end + fields[11] + fields[12]


def _walk_members(data: mmap.mmap | bytes) -> Iterator[tuple[ZipEntry, str]]:
    """Go from local header to local header, for a file that has lost its directory."""
    place = 0
    while place + _LOCAL.size <= len(data) and data[place : place + 4] == b"PK\3\4":
        fields = _LOCAL.unpack(data[place : place + _LOCAL.size])
        flags, method, crc, packed, size, name_size = *fields[2:4], *fields[6:10]
        begin = place + _LOCAL.size + name_size + fields[10]
        if begin > len(data):
            return
        if flags & _DESCRIBED_LATER:
            crc, packed, size = _find_descriptor(data, begin)
        name = _decode(data[place + _LOCAL.size : place + _LOCAL.size + name_size], flags)
        yield ZipEntry(name, method, packed, size, crc, place), _why_unreadable(flags, method, 0)
        place = begin + packed
        if data[place : place + 4] == b"PK\7\x08":
            place += _DESCRIPTOR.size


def _find_descriptor(data: mmap.mmap | bytes, begin: int) -> tuple[int, int, int]:
    """Find the record behind a member that was written as a stream: it repeats how long the member is."""
    place = data.find(b"PK\7\x08", begin)
    while 0 <= place <= len(data) - _DESCRIPTOR.size:
        _, crc, packed, size = _DESCRIPTOR.unpack(data[place : place + _DESCRIPTOR.size])
        if packed == place - begin:
            return crc, packed, size
        place = data.find(b"PK\7\x08", place + 1)
    return 0, len(data) - begin, 0


def _real_sizes(extra: bytes, *, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """Take from the zip64 extra field the sizes that did not fit into 32 bits; it holds only those, in this order."""
    values = [size, packed, offset]
    place = 0
    while _IN_EXTRA in values and place + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, place)
        body = extra[place + 4 : place + 4 + length]
        if kind == 1:
            for at, value in enumerate(values):
                if value == _IN_EXTRA and len(body) >= 8:
                    values[at], body = struct.unpack_from("<Q", body)[0], body[8:]
            break
        place += 4 + length
    return values[0], values[1], values[2]


def _decode(raw_name: bytes, flags: int) -> str:
    try:
        return raw_name.decode("utf-8").replace("\\", "/")
    except UnicodeDecodeError:
        return raw_name.decode("utf-8" if flags & _UTF8 else "cp437", "replace").replace("\\", "/")


def _why_unreadable(flags: int, method: int, mode: int) -> str:
    kind = stat.S_IFMT(mode)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "it is a link or a device, not a file"
    if flags & _ENCRYPTED:
        return "it is encrypted"
    if method not in (STORED, DEFLATED):
        return f"it is packed by method {method}, which we do not read"
    return ""


def why_bad_name(name: str) -> str:
    """Refuse names that could leave a folder or deceive a reader's eye (control and direction marks)."""
    parts = name.rstrip("/").split("/")
    if not name.strip() or name.startswith("/") or name[1:2] == ":" or ".." in parts:
        return "its name leads out of the archive"
    if max(map(len, parts)) > LONGEST_NAME:
        return "its name is longer than any file's"
    if not name.isprintable():  # nor blanks and breaks of line that only look like something else
        return "its name holds invisible characters"
    return ""


def printable(name: str) -> str:
    return ascii(name[:200])[1:-1]


def _without_overlaps(entries: list[ZipEntry], skipped: list[Skipped]) -> list[ZipEntry]:
    """Drop members that share bytes with an earlier one: no archiver writes that, small bombs live by it."""
    end = -1
    good: set[str] = set()
    for entry in sorted(entries, key=lambda entry: entry.offset):
        if entry.offset < end:
            skipped.append(Skipped(printable(entry.name), "it overlaps another entry"))
            continue
        good.add(entry.name)
        end = entry.offset + _LOCAL.size + entry.packed
    return [entry for entry in entries if entry.name in good]
