"""Lines that nearly match a pattern, many times over: what makes a backtracking search try all ways.

Each is a beginning that the pattern likes, one of its own repeats pumped up, and an end that it does not like.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from re import _constants as op  # type: ignore[attr-defined]  # as `re` itself reads a pattern, since Python 3.11
from re import _parser  # type: ignore[attr-defined]
from typing import Any

#: Tried where a pattern wants anything but something.
_OTHERS = "a1 _-.:/\"'([x\tZ,="
_KINDS = {op.CATEGORY_DIGIT: "1", op.CATEGORY_SPACE: " ", op.CATEGORY_NOT_WORD: " "}
_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
_ENDS = ("", "!\x01", "\n")
#: Pumped up for every pattern.
_PLAIN = ("a", " ", "1", "-", ".", ":", "_", "'", '"', "\\'", "[", "(", "a ", "a.", "a:", "a/", "1.", "a1 ", "\t")


@dataclass(frozen=True)
class NearMatch:
    """One of them, of any length."""

    begin: str
    body: str
    end: str

    def text(self, size: int) -> str:
        return self.begin + self.body * max(1, (size - len(self.begin) - len(self.end)) // len(self.body)) + self.end


def near_matches(text: str | bytes, flags: int) -> Iterator[NearMatch]:
    """Yield such lines of a pattern; the same ones each time."""
    tree = _parser.parse(text, flags)
    chance = random.Random(1)
    seen: set[NearMatch] = set()
    for _ in range(2):
        maker = _Maker(chance)
        whole = maker.text(tree, "")
        found = [NearMatch(begin, body, end) for begin, body in maker.pumps for end in _ENDS]
        found += [NearMatch("", whole[:length], "") for length in range(1, min(len(whole), 60) + 1)]
        found += [NearMatch("", whole, ""), NearMatch(whole, " ", "x"), NearMatch(whole, "a", "!")]
        found += [NearMatch("", plain, "") for plain in _PLAIN]
        new = [one for one in dict.fromkeys(found) if one.body and one not in seen]
        seen.update(new)
        yield from new


class _Maker:
    """Makes one text that a pattern may match; notes for each repeat in it what stood before, and its body."""

    def __init__(self, chance: random.Random) -> None:
        self.pumps: list[tuple[str, str]] = []
        self._chance = chance

    def text(self, tree: Any, before: str) -> str:
        made = ""
        for kind, what in tree:
            made += self._one(kind, what, before + made)
        return made

    def _one(self, kind: Any, what: Any, before: str) -> str:
        if kind is op.LITERAL:
            return chr(what)
        if kind is op.IN:
            return self._of_set(what)
        if kind in (op.ANY, op.NOT_LITERAL):
            return self._chance.choice("a1 .:")
        if kind is op.BRANCH:
            return self.text(self._chance.choice(what[1]), before)
        if kind in (op.SUBPATTERN, op.ATOMIC_GROUP):
            return self.text(what[3] if kind is op.SUBPATTERN else what, before)
        return self._repeat(*what, before) if kind in _REPEATS else ""

    def _repeat(self, least: int, _: int, body: Any, before: str) -> str:
        once, again = self.text(body, before), self.text(body, before)
        self.pumps += [(before, once), (before, once + again)]
        return once * (least or self._chance.randrange(2))

    def _of_set(self, items: Any) -> str:
        if items[0][0] is op.NEGATE:
            return next((other for other in _OTHERS if not any(_holds(item, other) for item in items[1:])), "é")
        kind, what = self._chance.choice(items)
        if kind is op.LITERAL:
            return chr(what)
        return chr(self._chance.choice(what)) if kind is op.RANGE else _KINDS.get(what, "a")


def _holds(item: Any, letter: str) -> bool:
    kind, what = item
    if kind is op.LITERAL:
        return bool(ord(letter) == what)
    if kind is op.RANGE:
        return bool(what[0] <= ord(letter) <= what[1])
    return re.match(_CLASSES[what], letter) is not None


_CLASSES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}
