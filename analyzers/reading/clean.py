"""From the bytes of one line to the text that a parser can match: no colours, no stamps, no rank prefixes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from analyzers.patterns import pattern

if TYPE_CHECKING:
    from datetime import datetime

#: CSI sequences (colours, erase to end of line: g++ adds `ESC [ K`), OSC strings (titles, links), and two-byte escapes.
_ESCAPES = pattern(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
#: A lone ESC [ may be what is left of a sequence cut in half at the end of a file.
_CONTROLS = pattern(r"\x1b\[?[0-9;]*|[\x00-\x08\x0b-\x1f\x7f\ufeff]")

#: The stamp that GitHub puts before each line of a job's log; the fraction has seven digits.
_STAMP = pattern(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z ?")
#: torchx writes "<role>-<replica>/<number> " before each line that it streams.
_REPLICA = pattern(r"[A-Za-z][\w.-]*-\d+/\d+ ")
#: torch logs "[rank3]: text" and "[rank3]:[E505 ..."; torchrun's tee "[default3]:text"; mpirun "[1,3]<stderr>:text".
_RANK = pattern(r"\[(rank|default|1,)(\d{1,6})\](?:<std(?:err|out)>)?:")
_RANK_STARTS = ("[rank", "[default", "[1,")
#: srun -l: "3: text", padded to the width of the largest number.
_SRUN = pattern(r" {0,5}(\d{1,6}): ?")

#: Python refuses to read a number of more than 4,300 digits, and nothing that is counted has so many as these.
_ENDLESS = pattern(r"(\d{20})\d{20,}")
_LONG_CHARS = 4_000


class Prefixes(NamedTuple):
    """What stood before the text of a line: GitHub's stamp (UTC) and the rank; `by_torch`: as "[rankN]:"."""

    at: datetime | None
    rank: int | None
    text: str
    by_torch: bool = False


def clean(raw: bytes) -> str:
    """Decode (bytes that are no UTF-8 become U+FFFD); drop escape sequences, control characters and the line's end."""
    text = raw.decode("utf-8", "replace").rstrip("\r\n")
    return text if text.isprintable() and len(text) <= _LONG_CHARS else without_controls(text)


def without_controls(text: str) -> str:
    """Drop escape sequences and control characters, and all but the beginning of a number that has no end."""
    if not text.isprintable():
        if "\x1b" in text:
            text = _ESCAPES.sub("", text)
        text = text if text.isprintable() else _CONTROLS.sub("", text)
    return _ENDLESS.sub(r"\1…", text) if len(text) > _LONG_CHARS else text


def may_have_prefixes(text: str, *, woven: bool = False) -> bool:
    """Tell quickly whether `split_prefixes` could take anything off."""
    if text.startswith("["):
        return text.startswith(_RANK_STARTS)
    if text[:1] in "0123456789 ":
        return woven or text[10:11] == "T"
    return _REPLICA.match(text) is not None


def split_prefixes(text: str, *, woven: bool = False) -> Prefixes:
    """Take the prefixes off a clean line.

    Args:
        woven: the file holds the lines of several ranks, so a bare "3: " in front is a rank. It is not elsewhere.
    Returns:
        The global rank of `[rankN]` where both it and the local rank of `[defaultN]` are there.
    """
    at, rank, by_torch = None, None, False
    if text[:1].isdigit() and (stamp := _STAMP.match(text)):
        at, text = _to_datetime(stamp), text[stamp.end() :]
    if replica := _REPLICA.match(text):
        text = text[replica.end() :]
    if woven and (srun := _SRUN.match(text)):
        rank, text = int(srun[1]), text[srun.end() :]
    while text.startswith("[") and (prefix := _RANK.match(text)):
        rank, text = int(prefix[2]), text[prefix.end() :]
        if prefix[1] == "rank":
            by_torch, text = True, text.removeprefix(" ")
    return Prefixes(at, rank, text, by_torch)


def _to_datetime(stamp: re.Match[str]) -> datetime | None:
    from datetime import UTC, datetime  # noqa: PLC0415 (few logs need it)

    micros = (stamp[2] or "0")[:6].ljust(6, "0")
    try:
        return datetime.fromisoformat(f"{stamp[1]}.{micros}").replace(tzinfo=UTC)
    except ValueError:
        return None
