"""The nouns for where a failure stands: in the change under test, and in the repository's own recipes."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from analyzers.records import dataclass


class RelationName(StrEnum):
    """How a failure relates to a pull request (docs/design.md, vocabulary). `unknown` is red: it excuses nothing."""

    NEW = "new"
    ALSO_ON_BASE = "also_on_base"
    KNOWN_FLAKY = "known_flaky"
    INFRASTRUCTURE = "infrastructure"
    UNKNOWN = "unknown"


class ClueKind(StrEnum):
    """What a piece of evidence is about."""

    CHANGED_LINE = "changed_line"  # the failing line is one that the change wrote
    CHANGED_FILE = "changed_file"  # the failing line is in a changed file
    CHANGED_TEST = "changed_test"  # the failed test's own file, or its test case's folder, is changed
    CHANGED_BUILD = "changed_build"  # a failed build or installation, and a changed recipe or lock of it
    IMPORTS_CHANGED = "imports_changed"  # the failed test imports a changed file, perhaps through others
    KNOWN_FLAKE = "known_flake"  # a person recorded the test, with an issue, as failing now and then
    NOT_TOUCHED = "not_touched"  # looked for, and not found
    INFRASTRUCTURE = "infrastructure"  # machines, network or registry: the code under test had no part in it
    INCOMPLETE = "incomplete"  # what could not be looked at


@dataclass(frozen=True)
class Clue:
    """One piece of evidence, never a proof. `text` is a plain sentence; `paths` are the files that it is about."""

    kind: ClueKind
    text: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Relation:
    """How a failure relates to the change, with the evidence, the strongest first."""

    name: RelationName
    evidence: tuple[Clue, ...] = ()


@dataclass(frozen=True)
class JobRecipe:
    """What the recipes say about one job; sorted, each value once.

    A number is None where rows disagree or say nothing. CI may override `n_repeat` of a functional job (labels do).
    """

    kind: Literal["unit", "functional"]
    model: str
    test_case: str
    bucket: str | None  # the glob that a unit job runs
    environments: tuple[str, ...]
    platforms: tuple[str, ...]  # "dgx_h100"
    tags: tuple[str, ...]
    scopes: tuple[str, ...]  # by their names of today: "L1", never "mr-github"
    n_repeat: int | None
    time_limit_s: int | None
    gpus: int | None  # per node
    nodes: int | None
    training_script: str | None
    files: tuple[str, ...]
