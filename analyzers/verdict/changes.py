"""What a pull request changes: a list of paths, or a unified diff that also tells the lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from analyzers.patterns import pattern
from analyzers.records import dataclass, field

#: GitHub lists at most 3,000 files of a pull request, and no diff above 20,000 lines.
MAX_BYTES = 32 * 1024 * 1024

#: A diff says what it is in a line that no list of paths has.
_DIFF = pattern(r"^(?:diff --git \S|--- \S.*\n\+\+\+ \S|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@)", re.MULTILINE)

#: First and last line, 1-based, both included.
Lines = tuple[int, int]


class ChangeError(ValueError):
    """A list of changes that cannot be read; the message says why."""


@dataclass(frozen=True)
class Changed:
    """The files that a pull request adds, changes, renames (both names) or deletes, relative to the repository's root.

    `lines` has a file's added lines as they are numbered after the change; a file is missing from it when its lines are
    not known (a plain list), and has none when it only lost lines.
    """

    files: frozenset[str] = frozenset()
    lines: Mapping[str, tuple[Lines, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def has_line(self, path: str, line: int) -> bool | None:
        """Tell whether the change wrote this line; None when the lines are not known."""
        if path not in self.lines:
            return None
        return any(first <= line <= last for first, last in self.lines[path])


def changed_files(paths: Iterable[str]) -> Changed:
    """Return a change of which only the paths are known."""
    return Changed(frozenset(path for path in map(_clean, paths) if path))


def read_changes(text: str) -> Changed:
    """Read a unified diff, or a list with one path per line; empty text is an empty change.

    Raises:
        ChangeError: too large, or a diff that is cut or broken.
    """
    if len(text) > MAX_BYTES:
        raise ChangeError(f"larger than {MAX_BYTES // 1024**2} MiB")
    if not _DIFF.search(text):
        return changed_files(text.split("\n"))
    try:
        patch = PatchSet(text)
    except UnidiffParseError as why:
        raise ChangeError(f"not a complete unified diff: {why}") from why
    files: set[str] = set()
    lines: dict[str, tuple[Lines, ...]] = {}
    for file in patch:
        files |= _names(file)
        if not file.is_removed_file and not file.is_binary_file:
            lines[_plain(file.target_file)] = _added(file)
    return Changed(frozenset(files), MappingProxyType(lines))


def _names(file: PatchedFile) -> set[str]:
    sides = (file.source_file, file.target_file)
    return {_plain(side) for side in sides if side and side != "/dev/null"} - {""}


def _plain(side: str) -> str:
    """Return a path as the repository has it: without git's quotes and its one-letter prefix."""
    name = side.strip()
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        # git quotes bytes outside ASCII as C does: "\\303\\251.py"
        name = name[1:-1].encode("latin-1", "replace").decode("unicode_escape", "replace")
        name = name.encode("latin-1", "replace").decode("utf-8", "replace")
    return _clean(re.sub(r"^[ab]/", "", name))


def _added(file: PatchedFile) -> tuple[Lines, ...]:
    numbers = sorted(line.target_line_no for hunk in file for line in hunk if line.is_added and line.target_line_no)
    if not numbers:
        return ()
    breaks = [(left, right) for left, right in pairwise(numbers) if right > left + 1]
    firsts = [numbers[0], *(right for _, right in breaks)]
    lasts = [*(left for left, _ in breaks), numbers[-1]]
    return tuple(zip(firsts, lasts, strict=True))


def _clean(path: str) -> str:
    return path.strip().removeprefix("./")
