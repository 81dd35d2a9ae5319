"""Ways to pack that are not read: each is told by name, or the logs in it would pass for absent or without an error."""

from __future__ import annotations

from analyzers.reading.layout import is_read
from analyzers.records import dataclass


@dataclass(frozen=True)
class Packer:
    """One way to pack: how such a file begins, and how it is named. `bundles`: names that stand for many files."""

    name: str
    magic: bytes
    suffixes: tuple[str, ...]
    bundles: tuple[str, ...] = ()


PACKERS = (
    Packer("xz", b"\xfd7zXZ\0", (".xz",), (".txz",)),
    Packer("bzip2", b"BZh", (".bz2",), (".tbz2", ".tbz")),
    Packer("zstd", b"\x28\xb5\x2f\xfd", (".zst", ".zstd"), (".tzst",)),
    Packer("lz4", b"\x04\x22\x4d\x18", (".lz4",)),
    Packer("compress", b"\x1f\x9d", (".z",)),
    Packer("7z", b"7z\xbc\xaf\x27\x1c", (), (".7z",)),
    Packer("rar", b"Rar!\x1a\7", (), (".rar",)),
)


def packed_by(data: bytes) -> str | None:
    """Return what a file is packed with, by its first bytes; None if by nothing of these."""
    return next((packer.name for packer in PACKERS if data[: len(packer.magic)] == packer.magic), None)


def hidden_by(name: str) -> str | None:
    """Return what keeps a member from being read that is a log, or may hold logs, by its name."""
    lower = name.lower()
    for packer in PACKERS:
        inner = next((name[: -len(suffix)] for suffix in packer.suffixes if lower.endswith(suffix)), "")
        if lower.endswith(packer.bundles) or inner.lower().endswith(".tar") or (inner and is_read(inner)):
            return packer.name
    return None
