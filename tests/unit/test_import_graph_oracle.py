"""The files that an import reaches are those that the standard library's own finder of modules loads."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from modulefinder import ModuleFinder
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from analyzers.verdict import import_graph
from analyzers.verdict.import_graph import find_imports

FILES = ("pkg/__init__.py", "pkg/a.py", "pkg/b.py", "pkg/sub/__init__.py", "pkg/sub/c.py", "pkg/sub/d.py", "top.py")
ABSOLUTE = (
    "import pkg",
    "import pkg.a",
    "import pkg.sub.c",
    "import pkg.absent",
    "import top",
    "import absent",
    "from pkg import b",
    "from pkg import sub",
    "from pkg.sub import d, c",
    "from pkg.sub.c import name",
    "def f():\n    import pkg.b",
    "try:\n    import pkg.sub\nexcept ImportError:\n    import top",
    "x = 1",
)
IN_PACKAGE = ("from . import a, c", "from .sub import d", "from .b import name", "from .absent import name")
IN_SUBPACKAGE = ("from .. import b", "from ..sub import c", "from ..a import name")


def statements(name: str) -> tuple[str, ...]:
    """What can stand in a file: the finder refuses what leaves the top package, so that is tested elsewhere."""
    return ABSOLUTE + IN_PACKAGE * name.startswith("pkg/") + IN_SUBPACKAGE * name.startswith("pkg/sub/")


SOURCES = st.fixed_dictionaries(
    {name: st.lists(st.sampled_from(statements(name)), max_size=2).map("\n".join) for name in (*FILES, "start.py")}
)


@contextmanager
def on_disk(sources: dict[str, str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name, text in sources.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text + "\n")
        yield root


@given(SOURCES)
@settings(max_examples=60, deadline=None)
def test_reached_files_are_those_that_python_would_load(sources: dict[str, str]) -> None:
    assert len(FILES) <= import_graph.MAX_CHAINS
    found = find_imports(["start.py"], FILES, frozenset(sources), sources.get)
    with on_disk(sources) as root:
        finder = ModuleFinder(path=[str(root)])
        finder.run_script(str(root / "start.py"))
        files = (Path(module.__file__) for module in finder.modules.values() if module.__file__)
        loaded = {file.relative_to(root).as_posix() for file in files} - {"start.py"}
    assert {chain[-1] for chain in found.chains} == loaded
    assert found.complete
