"""Unpacking in bounded pieces, in native code where it is installed."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Protocol, cast

from bot.archives.budget import PIECE

#: How a gzip file begins (RFC 1952, 2.3): its mark, and the one method of packing that there is.
GZIP = b"\x1f\x8b\x08"


def inflated(packed: Iterator[bytes], complain: Callable[[str], object]) -> Iterator[bytes]:
    """Unpack a deflate stream in pieces; what is wrong with it is complained about once, and ends it."""
    inflater, damage = _new_inflater(gzip=False)
    try:
        if not (yield from _pieces(inflater, b"", packed)):
            complain("it is cut short")
    except damage:
        complain("it is damaged: it cannot be unpacked to its end")


def gunzipped(packed: Iterator[bytes], complain: Callable[[str], object]) -> Iterator[bytes]:
    """Unpack a gzip file, which may be several one after the other; what stands behind is complained about."""
    given = next(packed, b"")
    while given:
        inflater, damage = _new_inflater(gzip=True)
        try:
            if not (yield from _pieces(inflater, given, packed)):
                complain("it is cut short")
                return
        except damage:
            complain("it is damaged: it cannot be unpacked to its end")
            return
        given = _behind(inflater.unused_data, packed)
        if not given.startswith(GZIP[: len(given)]):  # asked here, as inflaters give it different names
            complain("what stands behind its end is not packed, and was left out")
            return


def _behind(given: bytes, packed: Iterator[bytes]) -> bytes:
    """Return how it goes on behind the end of a gzip file; zeros that fill it up are passed over."""
    given = given.lstrip(b"\0")
    while len(given) < len(GZIP) and (more := next(packed, b"")):
        given = (given + more).lstrip(b"\0")
    return given


def _pieces(inflater: _Inflater, given: bytes, packed: Iterator[bytes]) -> Generator[bytes, None, bool]:
    """Yield what comes out; return whether the stream came to its end."""
    while not inflater.eof:
        if inflater.needs_input and not given:
            given = next(packed, b"")
            if not given:
                return False
        piece = inflater.decompress(given, PIECE)
        given = b""
        if piece:
            yield piece
        del piece
    return True


def _fast_crc32() -> Callable[[bytes, int], int]:
    try:
        from isal import isal_zlib  # noqa: PLC0415  (a wheel that not every platform has)
    except ImportError:
        return zlib.crc32
    return isal_zlib.crc32


crc32 = _fast_crc32()


class _Inflater(Protocol):
    """An inflater that says when it wants input and never gives more than it is asked for."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _ZlibInflater:
    """The standard library's inflater, with the manners of `IgzipDecompressor`."""

    def __init__(self, *, gzip: bool) -> None:
        self._inner = zlib.decompressobj(16 + zlib.MAX_WBITS if gzip else -zlib.MAX_WBITS)
        self._full = False  # the last piece was as long as allowed: there may be more without new input

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._full and not self._inner.unconsumed_tail and not self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        piece = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self._full = len(piece) == max_length
        return piece


def _new_inflater(*, gzip: bool) -> tuple[_Inflater, type[Exception]]:
    """Take Intel's inflater, three times as fast, where it is to be had; return what it raises on damaged data too."""
    try:
        from isal import igzip_lib  # noqa: PLC0415  (a wheel that not every platform has)
    except ImportError:
        return _ZlibInflater(gzip=gzip), zlib.error
    damage = cast("type[Exception]", igzip_lib.IsalError)  # its type stub calls the class an instance
    return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP if gzip else igzip_lib.DECOMP_DEFLATE), damage
