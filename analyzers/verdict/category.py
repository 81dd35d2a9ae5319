"""What kind of failure an exception is, and whether a plain re-run of the same code makes sense."""

from __future__ import annotations

from enum import StrEnum

from analyzers.model import Category, Role
from analyzers.patterns import pattern
from analyzers.records import dataclass
from analyzers.rules import RuleSet, Where
from analyzers.verdict.reason import reason_line

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
#: torch.distributed's store and sockets: whatever they say, another rank was to answer.
_OF_PEERS = frozenset({"DistNetworkError", "DistStoreError"})
#: While tests are collected, these are the collection's failure, not the environment's or a test's.
_COLLECTION = frozenset({Category.DEPENDENCY, Category.CRASH_PYTHON, Category.TEST_ERROR, Category.TEST_ASSERTION})

#: An installed package that is older or newer than the code expects: "module 'x' has no attribute 'y'".
_FOREIGN_MODULE = pattern(r"(?:partially initialized )?module '(?!megatron\b|tests\b|examples\b|tools\b)[\w.]+' has no")


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
    first = message.partition("\n")[0]
    for text in _texts(error_type, message):
        match = rules.match(text, where=Where.RANK)
        if match is not None:
            rule = match.rule
            return Kind(_in_scene(rule.category, scene), rule.blames, rule.id, rule.retryable)
    name = error_type.rpartition(".")[2]
    role = Role.CONSEQUENCE if name in _OF_PEERS else Role.CAUSE
    return Kind(_by_scene(name, first, scene), role)


def _texts(error_type: str, message: str) -> list[str]:
    """Return what is held against the rules, in this order: the first line, the next ones, what these say of why.

    A compiler, a loader or an importer quotes the reason in a later line: it is what the exception means as well.
    """
    first, *rest = message.split("\n")
    texts = [f"{error_type}: {first}" if first else error_type, *rest[: _LINES - 1]]
    if error_type.endswith("AssertionError"):
        return texts[:1]
    if first.startswith("NCCL error in"):  # its lines are one statement, the last one says most
        texts.insert(0, " ".join(texts))
    if why := reason_line([first, *rest]):
        texts.append(f"{error_type}: {rest[why - 1]}")
    return texts


def _in_scene(category: Category, scene: Scene) -> Category:
    if scene is Scene.COLLECTION and category in _COLLECTION:
        return Category.COLLECTION
    if scene in (Scene.TEST, Scene.FIXTURE) and category is Category.CRASH_PYTHON:
        return Category.TEST_ERROR  # pytest caught it: the test failed, not the process
    return category


def _by_scene(name: str, first: str, scene: Scene) -> Category:
    if scene is Scene.COLLECTION:
        return Category.COLLECTION
    if scene is Scene.SCRIPT:
        foreign = (name == "AttributeError" and _FOREIGN_MODULE.match(first)) or (
            name == "ImportError" and "-packages/" in first and first.startswith("cannot import name")
        )
        return Category.DEPENDENCY if foreign else Category.CRASH_PYTHON
    if scene is Scene.TEST and (name == "AssertionError" or (name == "Failed" and not first.startswith("Timeout"))):
        return Category.TEST_ASSERTION
    return Category.TEST_ERROR
