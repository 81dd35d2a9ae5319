"""How a failure relates to the pull request's change. What is said is evidence, never a proof; unknown excuses nothing.

`also_on_base` and `known_flaky` need a history of other commits and are not told from one failure.
"""

from __future__ import annotations

from analyzers.model import Category, Diagnosis
from analyzers.patterns import pattern
from analyzers.surroundings import Clue, ClueKind, Relation, RelationName
from analyzers.verdict.changes import Changed
from analyzers.verdict.import_graph import ImportSearch

#: Kinds of failure that come from machines, networks and registries, if a plain re-run would be sensible.
INFRASTRUCTURE = frozenset(
    {Category.NETWORK, Category.GPU_HARDWARE, Category.RUNNER_LOST, Category.IMAGE_PULL, Category.DISK_FULL}
)

#: Evidence is read by people: no more than this many tests, chains and paths are told.
MOST_TOLD = 3
#: Tests of one bucket import the same things; a few tell what all do.
MOST_TESTS = 20

#: Failures of these kinds come from what is built and installed, and these files say what that is.
_BUILDS = frozenset({Category.CONTAINER_BUILD, Category.DEPENDENCY})
_BUILD_FILE = pattern(
    r"(?:^|/)(?:Dockerfile[^/]*|[^/]+\.Dockerfile|uv\.lock|pyproject\.toml|setup\.(?:py|cfg)|requirements[^/]*\.txt)$"
    r"|^docker/"
)

_STRONG = frozenset({ClueKind.CHANGED_LINE, ClueKind.CHANGED_FILE, ClueKind.CHANGED_TEST, ClueKind.CHANGED_BUILD})


def relate_to_change(
    diagnosis: Diagnosis,
    changed: Changed,
    *,
    imports: ImportSearch | None = None,
    folder: str | None = None,
) -> Relation | None:
    """Say how a failure relates to a change; None if nothing failed.

    `new` needs a changed file that holds the failing line, is the failed test, or that the failed build is made of. A
    test that merely imports a changed file is told and stays `unknown`: most tests of a framework import most of it.
    `infrastructure` excuses neither a line nor a test that the change wrote, for these may be what overloads the
    machine: that is `unknown`.

    Args:
        imports: from `find_imports` on `start_files`; None without a checkout.
        folder: of the failing test case, if it has one (`functional_folder`).
    """
    if diagnosis.passed:
        return None
    clues = [*_infrastructure(diagnosis), *_location(diagnosis, changed), *_tests(diagnosis, changed, folder)]
    clues += [*_build(diagnosis, changed), *_imports(imports)]
    kinds = {clue.kind for clue in clues}
    if not kinds & {*_STRONG, ClueKind.IMPORTS_CHANGED}:
        clues += _not_touched(diagnosis, changed, imports)
    return Relation(_name(kinds), tuple(clues))


def failed_test_files(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the files of the failed tests, each once, in order of the tests; at most `MOST_TESTS`."""
    files = dict.fromkeys(test.partition("::")[0] for test in diagnosis.failed_tests)
    return tuple(files)[:MOST_TESTS]


def start_files(diagnosis: Diagnosis, training_script: str | None = None) -> tuple[str, ...]:
    """Return the files whose imports matter: the failed tests', else the job's script, else where it failed."""
    place, _ = split_location(diagnosis.location)
    return failed_test_files(diagnosis) or tuple(path for path in (training_script or place,) if path.endswith(".py"))


def split_location(location: str | None) -> tuple[str, str]:
    """Split `a/b.py:12` into path and line; a linter may name a file alone, then the line is ""."""
    path, colon, number = (location or "").rpartition(":")
    return (path, number) if colon else (number, "")


def functional_folder(model: str, test_case: str) -> str:
    """Return the folder of a functional test case: its configuration and its golden values."""
    return f"tests/functional_tests/test_cases/{model}/{test_case}/"


def _name(kinds: set[ClueKind]) -> RelationName:
    if ClueKind.INFRASTRUCTURE in kinds:
        own_doing = kinds & {ClueKind.CHANGED_LINE, ClueKind.CHANGED_TEST}
        return RelationName.UNKNOWN if own_doing else RelationName.INFRASTRUCTURE
    return RelationName.NEW if kinds & _STRONG else RelationName.UNKNOWN


def _infrastructure(diagnosis: Diagnosis) -> list[Clue]:
    if diagnosis.category not in INFRASTRUCTURE or not diagnosis.retryable:
        return []
    kind = diagnosis.category.replace("_", " ")
    return [Clue(ClueKind.INFRASTRUCTURE, f"This is a {kind} failure, which usually has nothing to do with the code.")]


def _location(diagnosis: Diagnosis, changed: Changed) -> list[Clue]:
    path, number = split_location(diagnosis.location)
    if path not in changed.files:
        return []
    known = changed.has_line(path, int(number)) if number.isdecimal() else None
    if known:
        return [Clue(ClueKind.CHANGED_LINE, f"{path}:{number} is a line that this pull request changes.", (path,))]
    detail = ", though not this very line" if known is False else ""
    return [Clue(ClueKind.CHANGED_FILE, f"{path} is a file that this pull request changes{detail}.", (path,))]


def _tests(diagnosis: Diagnosis, changed: Changed, folder: str | None) -> list[Clue]:
    own = tuple(path for path in failed_test_files(diagnosis) if path in changed.files)
    clues = []
    if own:
        clues.append(
            Clue(ClueKind.CHANGED_TEST, f"This pull request changes the failed test's file {_list(own)}.", own)
        )
    files = tuple(sorted(path for path in changed.files if folder and path.startswith(folder)))
    if files:
        text = f"This pull request changes the test case's own files: {_list(files)}."
        clues.append(Clue(ClueKind.CHANGED_TEST, text, files))
    return clues


def _build(diagnosis: Diagnosis, changed: Changed) -> list[Clue]:
    if diagnosis.category not in _BUILDS:
        return []
    files = tuple(sorted(path for path in changed.files if _BUILD_FILE.search(path)))
    if not files:
        return []
    return [
        Clue(ClueKind.CHANGED_BUILD, f"This pull request changes what is built or installed: {_list(files)}.", files)
    ]


def _imports(imports: ImportSearch | None) -> list[Clue]:
    if imports is None:
        return []
    told = imports.chains[:MOST_TOLD]
    clues = [Clue(ClueKind.IMPORTS_CHANGED, _chain(chain), chain) for chain in told]
    if rest := tuple(chain[-1] for chain in imports.chains[MOST_TOLD:]):
        clues.append(Clue(ClueKind.IMPORTS_CHANGED, f"More changed files are imported: {_list(rest)}.", rest))
    return clues


def _chain(chain: tuple[str, ...]) -> str:
    start, *through, end = chain
    way = f", through {_list(tuple(through))}" if through else ""
    return f"{start} imports {end}, which this pull request changes{way}."


def _not_touched(diagnosis: Diagnosis, changed: Changed, imports: ImportSearch | None) -> list[Clue]:
    """Say what was looked for in vain; nothing where there was nothing to look for."""
    sought = ["the failing line"] * bool(diagnosis.location) + ["a failed test"] * bool(diagnosis.failed_tests)
    clues = []
    if sought:
        text = f"No changed file ({len(changed.files)} in all) holds {' or '.join(sought)}."
        clues.append(Clue(ClueKind.NOT_TOUCHED, text))
    if imports is not None and imports.files_read:
        text = f"No import leads from {_list(imports.starts)} to a changed file ({imports.files_read} files read)."
        clues.append(Clue(ClueKind.NOT_TOUCHED, text))
    if imports is not None and not imports.complete:
        clues.append(Clue(ClueKind.INCOMPLETE, "Not every import could be followed."))
    return clues


def _list(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - MOST_TOLD} more" if len(paths) > MOST_TOLD else ""
    return ", ".join(paths[:MOST_TOLD]) + more
