"""What kind of failure an exception is, and whether a plain re-run of the same code makes sense."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from analyzers.model import Category, Role
from analyzers.rules import RuleSet, Where

#: Infrastructure: the same code may well pass next time. Everything else fails again, or nobody can tell.
_RETRYABLE = frozenset(
    {
        Category.IMAGE_PULL,
        Category.GPU_HARDWARE,
        Category.NETWORK,
        Category.PORT_COLLISION,
        Category.RUNNER_LOST,
    }
)
#: Lines of an exception's message that are held against the rules; NCCL names its error in the second or fourth.
_LINES = 5
#: While tests are collected, these are the collection's failure, not the environment's or a test's.
_COLLECTION = frozenset({Category.DEPENDENCY, Category.CRASH_PYTHON, Category.TEST_ERROR, Category.TEST_ASSERTION})


class Scene(StrEnum):
    """Where an exception ended what was going on."""

    TEST = "test"  # in a test's own code
    FIXTURE = "fixture"  # in setup or teardown
    COLLECTION = "collection"  # before any test ran
    SCRIPT = "script"  # a script under the launcher


@dataclass(frozen=True)
class Kind:
    """The kind of one failure; `retryable` is None where the category alone decides."""

    category: Category
    role: Role = Role.CAUSE
    rule: str | None = None
    retryable: bool | None = None


def is_retryable(category: Category | None, said: bool | None = None) -> bool:
    """Whether a plain re-run is a sensible next step; `said` is the rule's own word, if it has one."""
    return said if said is not None else category in _RETRYABLE


def classify(rules: RuleSet, error_type: str, message: str, scene: Scene) -> Kind:
    """Say what kind of failure an exception is: by the rules first, then by its class and where it was raised."""
    first, *rest = message.split("\n")
    texts = [f"{error_type}: {first}" if first else error_type, *rest[: _LINES - 1]]
    if error_type.endswith("AssertionError"):
        texts = texts[:1]
    for text in texts:
        match = rules.match(text, where=Where.RANK)
        if match is not None:
            rule = match.rule
            category = rule.category
            if scene is Scene.COLLECTION and category in _COLLECTION:
                category = Category.COLLECTION
            return Kind(category, rule.blames, rule.id, rule.retryable)
    return Kind(_by_scene(error_type.rpartition(".")[2], first, scene))


def _by_scene(name: str, first: str, scene: Scene) -> Category:
    if scene is Scene.COLLECTION:
        return Category.COLLECTION
    if scene is Scene.SCRIPT:
        return Category.CRASH_PYTHON
    if scene is Scene.TEST and (name == "AssertionError" or (name == "Failed" and not first.startswith("Timeout"))):
        return Category.TEST_ASSERTION
    return Category.TEST_ERROR
