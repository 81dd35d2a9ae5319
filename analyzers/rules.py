"""Rules: what one line of a log means. The rules are data (config/rules/*.yaml); each carries the proof that it works.

A rule names a literal `hint` that stands in every line it can match. A line is looked at by the few rules whose hint it
holds, so the cost of a line does not grow with the number of rules. Patterns are RE2: linear in the line's length,
whatever the log says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any

import re2  # type: ignore[import-untyped]

from analyzers.model import Category, Role
from analyzers.reading.anchors import Remember
from analyzers.reading.literals import complete_search
from analyzers.records import dataclass

#: Keys that a rule must have; the rest is optional. Anything else is a typing mistake and stops the start.
REQUIRED = ("id", "category", "blames", "hint", "pattern", "hit", "miss", "source")
OPTIONAL = ("where", "type", "retryable")

#: A hint shorter than this stands in too many lines to be worth an index.
MIN_HINT = 3


class RuleError(ValueError):
    """A rule that must not be used; the message names it and says why."""


class Where(StrEnum):
    """In which logs a rule is looked for."""

    RANK = "rank"  # output of a launched process
    JOB = "job"  # the CI job's own log: runner, image pull, build, lint
    ANY = "any"


@dataclass(frozen=True)
class Rule:
    """One line that means something.

    `blames` is the role of the event: a `consequence` never makes a culprit. `type` is the error's type if the line
    does not name it itself (group `type` of the pattern). `retryable` is None where the category alone decides.
    `source` is the program, and the file in it, that prints the line.
    """

    id: str
    category: Category
    blames: Role
    hint: str
    pattern: str
    hit: str
    miss: str
    source: str
    where: Where = Where.ANY
    type: str | None = None
    retryable: bool | None = None

    @cached_property
    def regex(self) -> Any:
        """Compile on first use: most rules are never met by the log at hand, and start-up is felt on a command line."""
        options = re2.Options()
        options.log_errors = False
        try:
            return re2.compile(self.pattern, options)
        except re2.error as why:
            raise RuleError(f"rule {self.id}: the pattern does not compile: {why}") from None

    def read(self, text: str) -> RuleMatch | None:
        """Match one clean line; None if it is not what this rule means."""
        found = self.regex.search(text)
        if found is None:
            return None
        groups = found.groupdict()
        said = groups.get("message") or ("" if groups.get("type") else text)
        return RuleMatch(self, groups.get("type") or self.type, said.strip(), found.start())

    def prove(self) -> None:
        """Raise RuleError unless the pattern finds `hit`, by way of the hint, and does not find `miss`."""
        found = self.regex.search(self.hit)
        if found is None:
            raise RuleError(f"rule {self.id}: the pattern does not find its own `hit`")
        if self.hint not in self.hit:
            raise RuleError(f"rule {self.id}: the hint {self.hint!r} is not in `hit`")
        if self.regex.search(self.miss) is not None:
            raise RuleError(f"rule {self.id}: the pattern finds its own `miss`")


@dataclass(frozen=True)
class RuleMatch:
    """A line that a rule recognised: the error's type (None if it has none), its message, where it began."""

    rule: Rule
    type: str | None
    message: str
    start: int


class RuleSet:
    """Rules in order: the specific ones stand above the general ones, and the first that matches a line wins."""

    def __init__(self, rules: Iterable[Rule], *, remember: Remember | None = None) -> None:
        """Index the rules; `remember`: whoever keeps from process to process what is worked out of them."""
        self.remember = remember
        self._rules = tuple(rules)
        self._by_id = {rule.id: rule for rule in self._rules}
        if len(self._by_id) != len(self._rules):
            twice = sorted({rule.id for rule in self._rules if self._by_id[rule.id] is not rule})
            raise RuleError(f"rule ids are used twice: {', '.join(twice)}")
        #: Every literal that some rule needs, each once.
        self.hints: tuple[str, ...] = tuple(dict.fromkeys(rule.hint for rule in self._rules))
        places: dict[str, list[int]] = {}
        for place, rule in enumerate(self._rules):
            places.setdefault(rule.hint, []).append(place)
        self._places = tuple(tuple(places[hint]) for hint in self.hints)
        #: (index of the hint, start, end) of all of them in a text.
        self.find_hints = complete_search(tuple(hint.encode() for hint in self.hints))

    @classmethod
    def from_documents(
        cls, documents: Iterable[Any], *, prove: bool = True, remember: Remember | None = None
    ) -> RuleSet:
        """Build the rules from parsed YAML documents, each a list of mappings; order is kept.

        Args:
            documents: as read from config/rules/*.yaml.
            prove: check the keys and run each rule's proof now. Off only for the packaged rules, which the test suite
                has proven: start-up is felt on a command line.
            remember: as for the constructor.
        Raises:
            RuleError: an unknown or missing key, no usable hint, a bad pattern, a failed proof.
        """
        entries = [entry for document in documents for entry in document]
        if not prove:
            return cls(map(_make_rule, entries), remember=remember)
        rules = cls(map(_read_rule, entries), remember=remember)
        for rule in rules:
            rule.prove()
        return rules

    def __len__(self) -> int:
        return len(self._rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def __getitem__(self, rule_id: str) -> Rule:
        return self._by_id[rule_id]

    def match(self, text: str, *, where: Where = Where.ANY) -> RuleMatch | None:
        """Return what the first matching rule makes of one clean line, None if no rule knows it.

        Args:
            text: a line without colours, time stamp and rank prefix.
            where: the kind of log; `ANY` tries every rule.
        """
        found = self.find_hints(text.encode(errors="replace"))
        if not found:
            return None
        for place in sorted({place for hint, _, _ in found for place in self._places[hint]}):
            rule = self._rules[place]
            if Where.ANY not in (where, rule.where) and rule.where is not where:
                continue
            if (match := rule.read(text)) is not None:
                return match
        return None


def _read_rule(entry: Any) -> Rule:
    if not isinstance(entry, Mapping):
        raise RuleError(f"a rule is a mapping of keys, not {entry!r}")
    name = entry.get("id") or "without id"
    missing = [key for key in REQUIRED if not entry.get(key)]
    unknown = [str(key) for key in entry if key not in REQUIRED and key not in OPTIONAL]
    if missing or unknown:
        raise RuleError(f"rule {name}: missing {missing or 'nothing'}, unknown {unknown or 'nothing'}")
    if len(str(entry["hint"])) < MIN_HINT or len(str(entry["hint"]).strip()) < MIN_HINT - 1:
        raise RuleError(f"rule {name}: the hint needs {MIN_HINT} characters, at most one of them a blank")
    texts = {key: str(entry[key]) for key in ("id", "hint", "pattern", "hit", "miss", "source")}
    try:
        return _make_rule({**entry, **texts})
    except ValueError as why:
        raise RuleError(f"rule {name}: {why}") from None


def _make_rule(entry: Mapping[str, Any]) -> Rule:
    return Rule(
        **{
            **entry,
            "category": Category(entry["category"]),
            "blames": Role(entry["blames"]),
            "where": Where(entry.get("where", "any")),
        }
    )
