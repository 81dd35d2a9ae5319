"""Who owns a file, after CODEOWNERS: the last line that matches decides, a line without owners takes them away.

Source: GitHub docs, "About code owners": places, order, size, and what of .gitignore's syntax is not understood.
"""

from __future__ import annotations

import re

import re2  # type: ignore[import-untyped]
from codeowners import CodeOwners

from analyzers.records import dataclass

#: GitHub reads the first of these that exists, and ignores one of 3 MB or more.
CODEOWNERS_PATHS = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
MAX_BYTES = 3_000_000
MAX_LINE = 2_000

#: Negation, ranges and an escaped "#" do not work in CODEOWNERS: GitHub skips such a line.
_NOT_UNDERSTOOD = re.compile(r"^(?:!|\\#|\S*\[)")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")


@dataclass(frozen=True)
class Ownership:
    """Owners of one path ("@org/team", "@login" or an e-mail address) in the file's order, and the line it is."""

    owners: tuple[str, ...] = ()
    pattern: str | None = None
    line: int | None = None  # 1-based


def find_owners(path: str, codeowners: str) -> Ownership:
    """Return the owners of a repository path ("a/b.py"); none where no line matches or the matching one names none."""
    if len(codeowners) >= MAX_BYTES:
        return Ownership()
    # Lines are blanked, not dropped: the parser counts them.
    parsed = CodeOwners("\n".join(map(_usable, codeowners.split("\n"))))
    # The parser's expressions backtrack, and the file is a stranger's: RE2 does the same in linear time.
    parsed.paths = [(re2.compile(pattern.pattern.replace(r"\Z", r"\z")), *rest) for pattern, *rest in parsed.paths]
    owners, number, pattern, _ = parsed.matching_line(path)
    return Ownership(tuple(dict.fromkeys(name for _, name in owners)), pattern, number)


def _usable(line: str) -> str:
    plain = _COMMENT.sub("", line).strip()
    return "" if len(line) > MAX_LINE or _NOT_UNDERSTOOD.match(plain) else plain
