"""The nearest lines to one that was mistyped: every word is kept, and each that is near a known one is corrected."""

from __future__ import annotations

import difflib

from .vocabulary import ALIASES, PLAIN_OPTIONS, RERUN_OPTIONS, TARGETS, VERBS, Target

#: A selector may look a little like a target; it is taken for one only if it is hardly anything else. Two letters of
#: `unit` that changed places are as far from it as that.
LIKE_A_TARGET = 0.75


def corrected(words: list[str]) -> list[list[str]]:
    """Return the candidates, best first; whether one is a command is for the grammar to say."""
    if not words:
        return []
    verb = ALIASES.get(words[0].casefold(), words[0].casefold())
    near = difflib.get_close_matches(verb, [*VERBS, *ALIASES], n=2, cutoff=0.6)
    verbs = [verb] if verb in VERBS else [ALIASES.get(name, name) for name in near]
    return [[name, *_arguments(name, words[1:])] for name in dict.fromkeys(verbs)]


def near_target(word: str) -> Target | None:
    """Return the target that a word is a typo of."""
    near = difflib.get_close_matches(word.casefold(), TARGETS, n=1, cutoff=LIKE_A_TARGET)
    return next((target for target in TARGETS if target in near), None)


def _arguments(verb: str, words: list[str]) -> list[str]:
    options = RERUN_OPTIONS if verb == "rerun" else PLAIN_OPTIONS.get(verb, ())
    better = [_option(word, options) if word.startswith("--") else word for word in words]
    first = next((place for place, word in enumerate(better) if not word.startswith("--")), None)
    if verb == "rerun" and first is not None:
        better[first] = near_target(better[first]) or better[first]
    return better


def _option(word: str, known: tuple[str, ...]) -> str:
    name, equals, value = word.partition("=")
    near = difflib.get_close_matches(name.casefold(), known, n=1)
    return f"{near[0]}{equals}{value}" if near else word
