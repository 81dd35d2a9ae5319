"""The house rules that a machine can check: layers, sizes, purity, and that the documents name what the code has."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("bot", "handlers", "analyzers", "config")
#: One way only: webhook -> bot -> handlers -> analyzers -> comment.
MAY_IMPORT = {
    "bot": {"bot", "handlers", "analyzers", "config"},
    "handlers": {"handlers", "analyzers", "config"},
    "analyzers": {"analyzers"},
    "config": {"config"},
}
#: The analysis is a function of its bytes: no network, no files, no processes, no clock, no chance.
IMPURE_MODULES = {
    "aiohttp",
    "asyncio",
    "dbos",
    "gidgethub",
    "http",
    "os",
    "pathlib",
    "random",
    "requests",
    "secrets",
    "shutil",
    "socket",
    "sqlalchemy",
    "sqlite3",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "urllib",
}
IMPURE_CALLS = {"open", "exec", "eval", "__import__", "print", "input"}
IMPURE_ATTRIBUTES = {("datetime", "now"), ("datetime", "today"), ("datetime", "utcnow"), ("date", "today")}
MODULE_LINES, TEST_LINES, FUNCTION_LINES, USUAL_FUNCTION_LINES = 300, 400, 50, 30
MISSING_NOUNS = re.compile(r"(^|_)(util|utils|helper|helpers|common|misc)(_|$)")


def modules(*packages: str) -> list[Path]:
    found = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    assert found
    return found


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function of a module with its length in lines, the docstring apart."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
            yield f"{name_of(path)}::{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1 - docstring


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_flow_one_way(package: str) -> None:
    wrong = [
        f"{name_of(path)} imports {name}"
        for path in modules(package)
        for name in imported(ast.parse(path.read_text()))
        if name in PACKAGES and name not in MAY_IMPORT[package]
    ]
    assert wrong == []


def test_the_analysis_is_pure() -> None:
    wrong = []
    for path in modules("analyzers"):
        tree = ast.parse(path.read_text())
        wrong += [f"{name_of(path)} imports {name}" for name in imported(tree) if name in IMPURE_MODULES]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
                wrong.append(f"{name_of(path)}:{node.lineno} calls {node.func.id}()")
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and (node.value.id, node.attr) in IMPURE_ATTRIBUTES
            ):
                wrong.append(f"{name_of(path)}:{node.lineno} reads the clock")
    assert wrong == []


def test_handlers_open_nothing() -> None:
    wrong = [
        f"{name_of(path)} imports {name}"
        for path in modules("handlers")
        for name in imported(ast.parse(path.read_text()))
        if name in IMPURE_MODULES - {"asyncio"}
    ]
    assert wrong == []


def test_no_module_is_long() -> None:
    def long(paths: list[Path], most: int) -> list[str]:
        sizes = {name_of(path): len(path.read_text().splitlines()) for path in paths}
        return [f"{name}: {lines} lines" for name, lines in sizes.items() if lines > most]

    assert long(modules(*PACKAGES), MODULE_LINES) == []
    assert long(sorted((ROOT / "tests").rglob("*.py")), TEST_LINES) == []


def test_functions_are_short() -> None:
    lengths = [pair for path in modules(*PACKAGES) for pair in functions(path)]
    assert [f"{name}: {lines} lines" for name, lines in lengths if lines > FUNCTION_LINES] == []
    usual = [lines for _, lines in lengths if lines <= USUAL_FUNCTION_LINES]
    assert len(usual) >= 0.9 * len(lengths)


def test_files_are_named_for_what_they_hold() -> None:
    assert [name_of(path) for path in modules(*PACKAGES) if MISSING_NOUNS.search(path.stem)] == []


def test_tracked_text_names_no_machine() -> None:
    """A path of the machine that something was written on says nothing to a reader elsewhere."""
    pattern = r"(^|[^A-Za-z0-9_.])/work/"
    where = ["--", ".", ":!uv.lock", ":!tests/cases", f":!{name_of(Path(__file__))}"]
    found = subprocess.run(
        ["git", "grep", "-nIE", pattern, *where], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 1, found.stdout + found.stderr


def test_the_documents_name_every_setting() -> None:
    from config.settings import Settings

    operating = (ROOT / "docs/operating.md").read_text()
    names = [f"MLM_{field.upper()}" for field in Settings.model_fields]
    assert [name for name in names if f"`{name}`" not in operating] == []


def test_the_documents_name_every_figure_and_every_line_of_the_log_that_there_is() -> None:
    """An alarm on a figure that does not exist never fires."""
    from bot.web.metrics import Metrics

    operating = (ROOT / "docs/operating.md").read_text()
    families = Metrics().registry.collect()
    names = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    assert set(re.findall(r"\bmlm_[a-z_]+\b", operating)) == names
    code = "".join(path.read_text() for path in modules("bot", "handlers"))
    values = re.findall(r'\{(?:outcome|kind|what)=~?"([a-z_|\\\\]+)"\}', operating)
    assert len(values) > 5
    assert [one for found in values for one in found.split("\\|") if f'"{one}"' not in code] == []
    lines = set(re.findall(r"`((?:task|github|sweep|delivery|database|report|command|feedback)\.[a-z_]+)`", operating))
    assert [line for line in lines if f'"{line}"' not in code] == []


def test_the_documents_name_every_category() -> None:
    from analyzers.model import Category

    analysis = (ROOT / "docs/analysis.md").read_text()
    assert [name for name in Category if f"`{name}`" not in analysis] == []


def test_the_design_names_every_task_and_every_key_of_an_answer() -> None:
    from analyzers.model import Confidence, Diagnosis
    from handlers.tasks import TASKS

    design = (ROOT / "docs/design.md").read_text()
    assert [name for name in TASKS if f"`{name}`" not in design] == []
    answer = Diagnosis(passed=True, category=None, retryable=False, confidence=Confidence.HIGH, summary="").as_json()
    assert [key for key in answer if f'"{key}"' not in design and f"`{key}`" not in design] == []


def test_the_pages_made_from_the_code_are_current() -> None:
    generate = runpy.run_path(str(ROOT / "docs/generate.py"))
    for name, page in generate["pages"]().items():
        assert (ROOT / "docs" / name).read_text() == page, f"run `make docs`: docs/{name} is out of date"
