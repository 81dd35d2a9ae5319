"""The headers of a tar file, one after the other, with nothing trusted.

The standard library's `tarfile` reads the extension of a header whole, whatever size it claims, calls itself for each
one that follows another, searches it in quadratic time, and never comes to an end in a sparse file that is cut.

Source: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Header Block"; GNU tar manual, "Basic Tar Format".
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator

from analyzers.records import dataclass

BLOCK = 512
#: A name takes some hundred bytes; what else stands there is not needed.
LONGEST_EXTENSION = 64 * 1024
_FILES, _FOLDER, _SPARSE = (b"0", b"\0", b"7"), b"5", b"S"
#: Links, devices, folders, pipes: they have no bytes, whatever their size says.
_WITHOUT_BYTES = (b"1", b"2", b"3", b"4", b"5", b"6")
_LONG_NAME, _PAX = b"L", (b"x", b"X")
#: They say something of the entry behind them; the last two nothing that is needed here.
_EXTENSIONS = (_LONG_NAME, *_PAX, b"K", b"g")
_SPARSE_KEYS = b"GNU.sparse."


class DamagedTarError(Exception):
    """From here on nobody can tell where the next header stands."""


@dataclass(frozen=True)
class TarEntry:
    """One entry: its bytes begin at `begin` and should be `size`.

    What is neither file nor folder is a link, a device, or a file with holes.
    """

    name: str
    begin: int
    size: int
    is_file: bool
    is_folder: bool


def read_headers(data: mmap.mmap | bytes) -> Iterator[TarEntry]:
    """Yield the entries in their order up to the empty block behind the last one, or to the end of the bytes.

    Raises:
        DamagedTarError: a header is cut, does not fit its checksum, or has an extension that is longer than any.
    """
    place = 0
    said: dict[bytes, bytes] = {}
    while place < len(data):
        block = data[place : place + BLOCK]
        if block == bytes(BLOCK):
            return
        kind, size = _read_block(block)
        place += BLOCK
        if kind in _EXTENSIONS:
            said.update(_read_extension(kind, data[place : place + min(size, LONGEST_EXTENSION + 1)]))
            place = _behind(place, size)
            continue
        if kind == _SPARSE:
            place = _behind_map(data, place, more=block[482])
        size = _number(said[b"size"], base=10) if b"size" in said else size
        name = _decode(said[b"path"] if b"path" in said else _name(block))
        whole = not any(key.startswith(_SPARSE_KEYS) for key in said)
        folder = kind == _FOLDER or (kind == b"\0" and name.endswith("/"))
        yield TarEntry(name, place, size, kind in _FILES and whole and not folder, folder)
        place, said = place if kind in _WITHOUT_BYTES else _behind(place, size), {}


def _read_block(block: bytes) -> tuple[bytes, int]:
    """Return an entry's kind and size. The checksum is made with blanks in its own place, by some with signed bytes."""
    if len(block) < BLOCK:
        raise DamagedTarError
    total = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    signed = total - 256 * sum(byte > 127 for byte in block[:148] + block[156:])
    if _number(block[148:156], base=8) not in (total, signed):
        raise DamagedTarError
    return block[156:157], _number(block[124:136], base=8)


def _number(field: bytes, *, base: int) -> int:
    """Read a number in digits, or in bytes where the first one says so, as sizes above 8 GiB are."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    digits = field.partition(b"\0")[0].strip()
    if len(digits) > 20 or not (digits.isdigit() or not digits):
        raise DamagedTarError
    try:
        return int(digits or b"0", base)
    except ValueError:  # an 8 or a 9 where they are octal
        raise DamagedTarError from None


def _read_extension(kind: bytes, body: bytes) -> dict[bytes, bytes]:
    """Return what an extension says of the entry behind it: its path, its size, whether it has holes."""
    if len(body) > LONGEST_EXTENSION:
        raise DamagedTarError
    if kind == _LONG_NAME:
        return {b"path": body.partition(b"\0")[0]}
    said: dict[bytes, bytes] = {}
    place = 0
    while kind in _PAX and place < len(body):
        digits = body[place : place + 8].partition(b" ")[0]
        length = int(digits) if digits.isdigit() else 0
        if length <= len(digits) + 1:  # what fills it up
            break
        key, _, value = body[place + len(digits) + 1 : place + length - 1].partition(b"=")
        if key in (b"path", b"size") or key.startswith(_SPARSE_KEYS):
            said[key] = value
        place += length
    return said


def _behind(place: int, size: int) -> int:
    return place + (size + BLOCK - 1) // BLOCK * BLOCK


def _behind_map(data: mmap.mmap | bytes, place: int, *, more: int) -> int:
    """Return where the bytes of a file with holes begin: behind their list, whose blocks say if another one follows."""
    while more and place < len(data):
        block = data[place : place + BLOCK]
        place, more = place + BLOCK, block[504] if len(block) == BLOCK else 0
    return place


def _name(block: bytes) -> bytes:
    """Return the name, with what stands before it where it did not fit into its field."""
    name, before = block[:100].partition(b"\0")[0], block[345:500].partition(b"\0")[0]
    return before + b"/" + name if before and block[257:263] == b"ustar\0" else name


def _decode(name: bytes) -> str:
    """Return a name as that of a file in a folder is told."""
    return name.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode()
