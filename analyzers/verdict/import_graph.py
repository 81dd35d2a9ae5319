"""Which changed file does a test reach by importing? Follows import statements through the sources; runs nothing.

Imports are read as Python would carry them out: a dotted name runs the `__init__.py` of each package on its way,
relative names start at the importing file's package, pytest loads the `conftest.py` files above a test. Imports inside
functions and `try` blocks count, those under `if TYPE_CHECKING:` do not.

Limits: names made at run time (other than a literal `import_module("...")`) are not seen; an entry point, a subprocess
or a data file is no import.
"""

from __future__ import annotations

import ast
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator
from collections.abc import Set as AbstractSet

from analyzers.records import dataclass

#: All of Megatron-LM has 1,400 Python files, the largest of 300 KB.
MAX_FILES = 3_000
MAX_FILE_BYTES = 1024 * 1024
MAX_TOTAL_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 40
#: A change of many files is reached in many ways; the nearest tell enough.
MAX_CHAINS = 10

#: Folders that are import roots by convention, besides the one that pytest puts on the path for a test.
ROOTS = ("", "src/")

Read = Callable[[str], str | None]


@dataclass(frozen=True)
class ImportSearch:
    """What was found. A chain starts at the test and ends at a changed file, each file importing the next.

    Chains are shortest, nearest first, one per changed file, at most `MAX_CHAINS`. Not `complete`: a bound was met, or
    a file on the way could not be read or parsed, so a missing chain means nothing.
    """

    starts: tuple[str, ...]
    chains: tuple[tuple[str, ...], ...]
    files_read: int
    complete: bool


def find_imports(
    starts: Collection[str], changed: Collection[str], paths: AbstractSet[str], read: Read
) -> ImportSearch:
    """Search the shortest ways of imports from test files to changed ones.

    Args:
        starts: the tests' files, relative to the repository's root; never targets themselves.
        changed: changed files; a deleted one counts too, for importing it fails.
        paths: all Python files of the checkout.
        read: returns a file's text, None if it cannot be read; called at most once for each file.
    """
    targets = {path for path in changed if path.endswith(".py")} - set(starts)
    walk = _Walk(starts, frozenset(paths) | targets, read)
    found: list[tuple[str, ...]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tested sources' own: an invalid escape is none of our business
        for path in walk.visits() if targets else ():
            if path in targets:
                found.append(walk.way_to(path))
                if len(found) == min(len(targets), MAX_CHAINS):
                    break
    return ImportSearch(tuple(sorted(starts)), tuple(found), walk.files_read, walk.complete)


class _Walk:
    """A breadth-first walk over imports, from all tests at once."""

    def __init__(self, starts: Collection[str], paths: AbstractSet[str], read: Read) -> None:
        self._paths = paths
        self._read = read
        self._starts = tuple(sorted(starts))
        self._roots = tuple(dict.fromkeys((*(_pytest_root(start, paths) for start in self._starts), *ROOTS)))
        self._parent: dict[str, str | None] = dict.fromkeys(self._starts)
        self._depth = dict.fromkeys(self._starts, 0)
        self._bytes_left = MAX_TOTAL_BYTES
        self.files_read = 0
        self.complete = True

    def visits(self) -> Iterator[str]:
        """Yield each file when it is first reached, nearest first."""
        queue = deque(self._starts)
        while queue:
            path = queue.popleft()
            if self.files_read >= MAX_FILES or self._bytes_left <= 0 or self._depth[path] >= MAX_DEPTH:
                self.complete = False
                continue
            for reached in self._reached_from(path):
                if reached not in self._parent:
                    self._parent[reached] = path
                    self._depth[reached] = self._depth[path] + 1
                    queue.append(reached)
                    yield reached

    def way_to(self, path: str) -> tuple[str, ...]:
        way = [path]
        while (parent := self._parent[way[-1]]) is not None:
            way.append(parent)
        return tuple(reversed(way))

    def _reached_from(self, path: str) -> Iterator[str]:
        if path in self._starts:
            yield from self._loaded_with(path)
        tree = self._parse(path)
        if tree is None:
            return
        for name in imported_names(tree, path):
            yield from self._resolve(name)

    def _loaded_with(self, path: str) -> Iterator[str]:
        """Yield what runs before a test's own file: the packages that it is in, and pytest's conftest files."""
        for folder in _folders(path):
            for name in ("conftest.py", "__init__.py"):
                if folder + name in self._paths and folder + name != path:
                    yield folder + name

    def _resolve(self, dotted: str) -> Iterator[str]:
        """Yield the files that importing a dotted name runs; the first root that has its first part wins."""
        parts = dotted.split(".")
        for root in self._roots:
            found = [file for count in range(1, len(parts) + 1) if (file := self._module(root, parts[:count]))]
            if found:
                yield from found
                return

    def _module(self, root: str, parts: list[str]) -> str | None:
        base = root + "/".join(parts)
        return next((file for file in (f"{base}/__init__.py", f"{base}.py") if file in self._paths), None)

    def _parse(self, path: str) -> ast.Module | None:
        text = self._read(path)
        if text is None or len(text) > MAX_FILE_BYTES:
            self.complete = False
            return None
        self.files_read += 1
        self._bytes_left -= len(text)
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.complete = False
            return None


def imported_names(tree: ast.Module, path: str) -> Iterator[str]:
    """Yield the absolute dotted names that a module may import, outer statements first; `from a import b` gives a.b."""
    package = path.split("/")[:-1]
    pending: deque[ast.AST] = deque([tree])
    while pending:
        node = pending.popleft()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _from_names(node, package)
        elif isinstance(node, ast.Call) and (name := _literal_import(node)):
            yield name
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            pending += node.orelse
        else:
            pending += ast.iter_child_nodes(node)


def _from_names(node: ast.ImportFrom, package: list[str]) -> Iterator[str]:
    if node.level > len(package):
        return  # beyond the top of the repository: Python refuses it as well
    base = package[: len(package) - node.level + 1] if node.level else []
    if node.module:
        base = [*base, *node.module.split(".")]
    for alias in node.names:
        yield ".".join(base if alias.name == "*" else [*base, alias.name])


def _literal_import(node: ast.Call) -> str | None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
    if name not in ("import_module", "__import__") or not node.args:
        return None
    first = node.args[0]
    given = first.value if isinstance(first, ast.Constant) else None
    return given if isinstance(given, str) and given and not given.startswith(".") else None


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


def _folders(path: str) -> Iterator[str]:
    """Yield the folders above a file, outermost first, each with its slash; the root is ""."""
    parts = path.split("/")[:-1]
    for count in range(len(parts) + 1):
        yield "".join(f"{part}/" for part in parts[:count])


def _pytest_root(test: str, paths: AbstractSet[str]) -> str:
    """Return the folder that pytest's default import mode puts on the path: the first above that is no package."""
    folder = test.rpartition("/")[0]
    while folder and f"{folder}/__init__.py" in paths:
        folder = folder.rpartition("/")[0]
    return f"{folder}/" if folder else ""
