"""Imports are followed as Python would carry them out, and no source can make the search endless."""

import ast
import textwrap
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.verdict import import_graph
from analyzers.verdict.import_graph import ImportSearch, find_imports, imported_names

TEST = "tests/unit/test_a.py"


def search(files: dict[str, str], *changed: str, starts: tuple[str, ...] = (TEST,)) -> ImportSearch:
    return find_imports(starts, changed, frozenset(files), files.get)


def names(source: str, path: str = "pkg/sub/mod.py") -> set[str]:
    return set(imported_names(ast.parse(textwrap.dedent(source)), path))


def test_the_shortest_chain_is_told_through_other_modules() -> None:
    files = {
        TEST: "from pkg.long import x\nfrom pkg.short import y",
        "pkg/__init__.py": "",
        "pkg/long.py": "import pkg.longer",
        "pkg/longer.py": "import pkg.target",
        "pkg/short.py": "from .target import z",
        "pkg/target.py": "",
    }
    found = search(files, "pkg/target.py", "docs/index.md")
    assert found == ImportSearch((TEST,), ((TEST, "pkg/short.py", "pkg/target.py"),), 4, complete=True)


def test_importing_a_module_runs_the_packages_on_its_way() -> None:
    files = {
        TEST: "import pkg.sub.leaf",
        "pkg/__init__.py": "from . import setup",
        "pkg/setup.py": "",
        "pkg/sub/__init__.py": "",
        "pkg/sub/leaf.py": "",
        "pkg/sub/other.py": "",
    }
    found = search(files, "pkg/setup.py", "pkg/sub/__init__.py", "pkg/sub/other.py")
    assert set(found.chains) == {(TEST, "pkg/sub/__init__.py"), (TEST, "pkg/__init__.py", "pkg/setup.py")}
    assert found.complete


def test_pytest_loads_what_stands_above_a_test() -> None:
    files = {
        TEST: "",
        "conftest.py": "import fixtures_module",
        "fixtures_module.py": "",
        "tests/__init__.py": "",
        "tests/unit/__init__.py": "import tests.unit.world",
        "tests/unit/world.py": "",
        "tests/other/conftest.py": "",
    }
    found = search(files, "fixtures_module.py", "tests/unit/world.py", "tests/other/conftest.py", "tests/__init__.py")
    assert set(found.chains) == {
        (TEST, "tests/__init__.py"),
        (TEST, "conftest.py", "fixtures_module.py"),
        (TEST, "tests/unit/__init__.py", "tests/unit/world.py"),
    }


@pytest.mark.parametrize("place", ["beside.py", "src/beside.py", "tests/unit/beside.py"])
def test_a_module_is_found_where_pytest_would_find_it(place: str) -> None:
    assert search({TEST: "import beside", place: ""}, place).chains == ((TEST, place),)


def test_a_circle_of_imports_ends() -> None:
    files = {TEST: "import a", "a.py": "import b", "b.py": "import a, c", "c.py": "import a"}
    assert search(files, "c.py").chains == ((TEST, "a.py", "b.py", "c.py"),)
    assert search(files, "d.py") == ImportSearch((TEST,), (), 4, complete=True)


def test_importing_a_deleted_module_reaches_it() -> None:
    assert search({TEST: "from pkg import gone", "pkg/__init__.py": ""}, "pkg/gone.py").chains == (
        (TEST, "pkg/gone.py"),
    )


def test_several_tests_are_searched_at_once() -> None:
    files = {TEST: "import a", "tests/test_b.py": "import b", "a.py": "", "b.py": ""}
    found = search(files, "a.py", "b.py", TEST, starts=("tests/test_b.py", TEST))
    assert set(found.chains) == {(TEST, "a.py"), ("tests/test_b.py", "b.py")}


def test_relative_imports_of_packages_and_modules() -> None:
    source = "from . import a\nfrom .b import c\nfrom .. import d\nfrom ..e.f import *\nfrom ... import too_far"
    assert names(source) == {"pkg.sub.a", "pkg.sub.b.c", "pkg.d", "pkg.e.f"}
    assert names("from . import a\nfrom .. import b", "pkg/__init__.py") == {"pkg.a"}
    assert names("from . import a", "top.py") == set()


def test_only_imports_that_can_run_count() -> None:
    source = """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            import for_types
        else:
            import for_real
        try:
            import optional.part
        except ImportError:
            import fallback as other
        def late():
            import inside
            importlib.import_module("by.name")
            __import__("plain")
            importlib.import_module(name)
            importlib.import_module(".relative", "pkg")
        # import comment
        "import text"
    """
    assert names(source) == {
        "typing.TYPE_CHECKING", "for_real", "optional.part", "fallback", "inside", "by.name", "plain",
    }  # fmt: skip


def test_what_cannot_be_read_or_parsed_is_owned_up_to() -> None:
    assert not search({TEST: "import a", "a.py": "def ("}, "b.py").complete
    assert not search({TEST: "\x00"}, "b.py").complete
    assert not search({TEST: "(" * 5_000 + ")" * 5_000}, "b.py").complete
    assert not search({TEST: "-" * 200_000 + "1"}, "b.py").complete
    unreadable = find_imports([TEST], ["b.py"], {TEST, "a.py"}, {TEST: "import a"}.get)
    assert unreadable == ImportSearch((TEST,), (), 1, complete=False)


def test_no_more_is_read_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {TEST: "import m0"} | {f"m{n}.py": f"import m{n + 1}" for n in range(100)}
    assert search(files, "m100.py").complete is False  # deeper than MAX_DEPTH
    monkeypatch.setattr(import_graph, "MAX_DEPTH", 1_000)
    assert search(files, "m100.py").complete is True
    monkeypatch.setattr(import_graph, "MAX_FILES", 10)
    assert search(files, "nowhere.py") == ImportSearch((TEST,), (), 10, complete=False)
    monkeypatch.setattr(import_graph, "MAX_FILES", 3_000)
    monkeypatch.setattr(import_graph, "MAX_TOTAL_BYTES", 50)
    assert search(files, "nowhere.py").complete is False


def test_a_wide_change_is_told_by_its_nearest_files() -> None:
    changed = [f"m{n}.py" for n in range(50)]
    files = {TEST: "\n".join(f"import m{n}" for n in range(50))} | dict.fromkeys(changed, "")
    assert len(search(files, *changed).chains) == import_graph.MAX_CHAINS


def test_nothing_is_read_for_a_change_without_python() -> None:
    assert search({TEST: "import a"}, "README.md") == ImportSearch((TEST,), (), 0, complete=True)


def test_sources_with_odd_escapes_warn_nobody() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert search({TEST: "x = '\\d'\nimport a", "a.py": ""}, "a.py").complete
    assert not caught


@given(st.text(alphabet="import from.ab*()\n\t;:=\"'\\\x00", max_size=200))
def test_no_text_raises(text: str) -> None:
    found = search({TEST: text, "a/__init__.py": text, "b.py": ""}, "b.py")
    assert all(chain[0] == TEST and chain[-1] == "b.py" for chain in found.chains)
