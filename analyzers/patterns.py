"""Regular expressions that are compiled when they are first used.

The parsers know some two hundred; a log meets a few dozen of them. Compiling all took a sixth of the start-up.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr

_OFFERED = ("match", "search", "fullmatch", "finditer", "findall", "sub", "subn", "split", "pattern", "flags")


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` returns, but for a mistake in `text`: it is told at the first use, not here."""
    later: Any = _Later(text, flags)
    return later  # type: ignore[no-any-return]


class _Later:
    """Stands in for a pattern. From its first use on, its methods are those of the pattern itself."""

    def __init__(self, text: Any, flags: int) -> None:
        self._asked = text, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._asked)
        self.__dict__.update({each: getattr(compiled, each) for each in _OFFERED})
        return getattr(compiled, name)
