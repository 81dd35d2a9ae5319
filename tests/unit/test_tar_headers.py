"""Headers of tar files: read as the standard library reads them, and within limits where it is not."""

from __future__ import annotations

import io
import random
import tarfile
import time

import pytest

from bot.tar_headers import BLOCK, LONGEST_EXTENSION, DamagedTarError, TarEntry, read_headers

NAMES = ("a.log", "1/none_ab12cd34/attempt_0/0/stderr.log", "d" * 90 + "/" + "e" * 90, "é/ü.log", "x" * 300 + "/y")
KINDS = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE)
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def header(name: str, kind: bytes, size: int = 0, body: bytes = b"") -> bytes:
    entry = tarfile.TarInfo(name)
    entry.type, entry.size = kind, size or len(body)
    return entry.tobuf(tarfile.GNU_FORMAT) + body + bytes(-len(body) % BLOCK)


def pax(**said: str) -> bytes:
    body = b""
    for key, value in said.items():
        rest = f" {key.replace('_', '.')}={value}\n".encode()
        length = next(n for n in range(len(rest), len(rest) + 9) if len(str(n)) + len(rest) == n)
        body += str(length).encode() + rest
    return header("pax", tarfile.XHDTYPE, body=body)


def packed(chance: random.Random, form: int) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
        for _ in range(chance.randrange(8)):
            entry = tarfile.TarInfo(chance.choice(NAMES[:3] if form == tarfile.USTAR_FORMAT else NAMES))
            entry.type, entry.linkname = chance.choice(KINDS), chance.choice(("", "elsewhere", "z" * 99))
            entry.mtime = chance.choice((0, 1.5, 2**31))
            body = chance.randbytes(chance.choice((0, 1, 511, 512, 5000))) if entry.isreg() else b""
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    return stream.getvalue()


@pytest.mark.parametrize("form", FORMATS)
def test_a_tar_file_is_read_as_the_standard_library_reads_it(form: str) -> None:
    chance = random.Random(7)
    files = 0
    for _ in range(150):
        data = packed(chance, FORMATS[form])
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            known = [(one.name, one.offset_data, one.size, one.isreg(), one.isdir()) for one in archive]
        found = list(read_headers(data))
        assert [(e.name.rstrip("/"), e.begin, e.size, e.is_file, e.is_folder) for e in found] == known
        files += sum(entry.is_file for entry in found)
    assert files > 100


def test_sizes_that_need_more_than_octal_digits() -> None:
    large = tarfile.TarInfo("a.log")
    large.size = 9 * 1024**3
    (entry,) = read_headers(large.tobuf(tarfile.GNU_FORMAT))
    assert entry == TarEntry("a.log", BLOCK, large.size, is_file=True, is_folder=False)
    (entry,) = read_headers(pax(size=str(2**40), path="é.log") + header("a.log", b"0"))
    assert (entry.name, entry.size) == ("é.log", 2**40)


def test_a_file_with_holes_is_told_and_passed_over() -> None:
    last = header("b.log", b"0", body=b"text")
    sparse = bytearray(header("a.log", b"S"))
    sparse[482] = 1
    sparse[148:156] = b"%06o\0 " % (sum(sparse[:148]) + sum(sparse[156:BLOCK]) + 8 * 32)
    more = bytearray(BLOCK)
    more[504] = 1
    for data in (
        bytes(sparse) + bytes(more) * 3 + bytes(BLOCK) + last,
        pax(GNU_sparse_major="1", GNU_sparse_minor="0") + header("a.log", b"0", body=b"9" * 3000) + last,
    ):
        assert [(entry.name, entry.is_file) for entry in read_headers(data)] == [("a.log", False), ("b.log", True)]
    cut = pax(GNU_sparse_major="1", GNU_sparse_minor="0") + header("a.log", b"0", body=b"9" * 3000)[:1024]
    assert [entry.is_file for entry in read_headers(cut)] == [False]  # the standard library never comes back


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_extensions_have_a_limit_and_may_follow_each_other(kind: bytes) -> None:
    many = header("extension", kind) * 20_000 + header("a.log", b"0")
    begun = time.process_time()
    assert len(list(read_headers(many))) == 1
    assert time.process_time() - begun < 10
    with pytest.raises(DamagedTarError):
        list(read_headers(header("extension", kind, body=b"1" * (LONGEST_EXTENSION + 1)) + header("a.log", b"0")))


def test_damage_ends_the_list_and_is_told() -> None:
    good = header("a.log", b"0", body=b"text")
    scribbled = bytearray(good)
    scribbled[100] ^= 1
    lying = bytearray(header("b.log", b"0"))
    lying[124:136] = b"zzzzzzzzzzz\0"
    lying[148:156] = b"%06o\0 " % (sum(lying[:148]) + sum(lying[156:]) + 8 * 32)
    for damaged in (bytes(scribbled), bytes(lying), good[:300], b"text that is no header" * 40):
        entries = read_headers(good + damaged)
        assert next(entries).name == "a.log"
        with pytest.raises(DamagedTarError):
            next(entries)
    assert len(list(read_headers(good + bytes(BLOCK) + b"whatever stands behind the end"))) == 1


def test_any_bytes_end_in_entries_or_damage() -> None:
    chance = random.Random(3)
    for _ in range(400):
        data = bytearray(packed(chance, chance.choice(list(FORMATS.values()))))
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        del data[chance.randrange(len(data)) :]
        try:
            assert all(entry.size >= 0 for entry in read_headers(bytes(data)))
        except DamagedTarError:
            continue
