"""From what a person typed to jobs of the newest attempt. Never guesses: what is not clear is listed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from .job_names import JobName

UNIT_ROOT = "tests/unit_tests/"


@dataclass(frozen=True)
class Candidate:
    """A job of the newest attempt, and whether it is red."""

    job_id: int
    name: JobName
    failed: bool


@dataclass(frozen=True)
class Selected:
    """The jobs that were meant; `how` says by which rule."""

    jobs: tuple[Candidate, ...]
    how: str = ""


@dataclass(frozen=True)
class Unresolved:
    """Nothing, or more than one thing, could be meant. `choices` are names to copy, best first."""

    word: str
    ambiguous: bool
    choices: tuple[str, ...]


def select(
    candidates: Sequence[Candidate], words: Sequence[str], *, gb200: bool | None = None
) -> Selected | Unresolved:
    """Resolve each word by the first rule that finds something, and join the results.

    Args:
        candidates: the jobs that the target allows (all unit jobs, say), of the newest attempt.
        words: selectors; none means every failed candidate.
        gb200: only jobs on this platform; None: both.
    """
    pool = [item for item in candidates if gb200 is None or item.name.gb200 == gb200]
    if not words:
        return Selected(tuple(item for item in pool if item.failed), "all that failed")
    found: dict[int, Candidate] = {}
    for word in words:
        match = _resolve(pool, word)
        if isinstance(match, Unresolved):
            return match
        found.update({item.job_id: item for item in match})
    return Selected(tuple(found.values()))


def _resolve(pool: Sequence[Candidate], word: str) -> Sequence[Candidate] | Unresolved:
    for rule in (_by_id, _by_name, _by_bucket, _by_directory, _by_path_end, _by_glob):
        if hits := rule(pool, word):
            return hits
    hits = [item for item in pool if word in item.name.bucket]
    if len({item.name.bucket for item in hits}) == 1:
        return hits
    if hits:
        return Unresolved(word, ambiguous=True, choices=_names(hits))
    return Unresolved(
        word, ambiguous=False, choices=tuple(dict.fromkeys(bucket for _, bucket in _nearest(pool, word)))[:10]
    )


def _where(pool: Sequence[Candidate], meets: Callable[[Candidate], bool]) -> list[Candidate]:
    return [item for item in pool if meets(item)]


def _by_id(pool: Sequence[Candidate], word: str) -> list[Candidate]:
    return _where(pool, lambda item: str(item.job_id) == word)


def _by_name(pool: Sequence[Candidate], word: str) -> list[Candidate]:
    return _where(pool, lambda item: item.name.name == word)


def _by_bucket(pool: Sequence[Candidate], word: str) -> list[Candidate]:
    return _where(pool, lambda item: word in {item.name.bucket, item.name.test_case})


def _by_directory(pool: Sequence[Candidate], word: str) -> list[Candidate]:
    """`models` is tests/unit_tests/models/**, not dist_checkpointing/models; `transformer` is not transformer/moe."""
    wanted = UNIT_ROOT + word.strip("/")
    return _where(pool, lambda item: _directory(item) == wanted)


def _by_path_end(pool: Sequence[Candidate], word: str) -> list[Candidate]:
    end = "/" + word.strip("/")
    return _where(pool, lambda item: _directory(item).endswith(end) or item.name.bucket.endswith(end))


def _by_glob(pool: Sequence[Candidate], word: str) -> list[Candidate]:
    if not any(mark in word for mark in "*?["):
        return []
    return _where(pool, lambda item: fnmatchcase(item.name.bucket, word) or fnmatchcase(_tail(item), word))


def _directory(item: Candidate) -> str:
    """The folder that a unit bucket covers; the bucket itself when it names one file."""
    return item.name.bucket.split("/*")[0]


def _tail(item: Candidate) -> str:
    return item.name.bucket.removeprefix(UNIT_ROOT)


def _names(items: Iterable[Candidate]) -> tuple[str, ...]:
    return tuple(sorted({item.name.bucket for item in items}))


def nearest(pool: Sequence[Candidate], word: str) -> tuple[str, ...]:
    """Return the nearest words that a person could type and that mean exactly one thing, best first."""
    typed = [short for short, _ in _nearest(pool, word)]
    return tuple(dict.fromkeys(short for short in typed if isinstance(select(pool, [short]), Selected)))


def _nearest(pool: Sequence[Candidate], word: str) -> list[tuple[str, str]]:
    """Compare with what a person would type and with whole names; the shorter of equals comes first.

    Returns:
        What is near with the bucket that it stands for.
    """
    typed: dict[str, list[str]] = {}
    for item in sorted(pool, key=lambda item: len(item.name.bucket)):
        for name in (_short(item), item.name.bucket):
            typed.setdefault(name, []).append(item.name.bucket)
    near = difflib.get_close_matches(word, list(typed), n=10, cutoff=0.5)
    return [(name, bucket) for name in near for bucket in typed[name]]


def _short(item: Candidate) -> str:
    """What a person would type: the last folder of a unit bucket, the test of a functional job."""
    return _directory(item).rsplit("/", 1)[-1]
