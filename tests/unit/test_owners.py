"""CODEOWNERS: the last matching line decides, and what GitHub does not understand is not understood here either."""

import time

import pytest

from analyzers.verdict.owners import MAX_BYTES, Ownership, find_owners

FILE = """\
# everybody else
/* @org/root

*.py @org/python  # not @someone
megatron/core/ @org/core @org/nemo
megatron/core/optimizer/muon.py @org/core me@example.org @org/core
docs/* @writer
/build/**/cache/ @org/build
apps/
apps/github
a\\ b/ @spaces
"""


@pytest.mark.parametrize(
    ("path", "owners", "line"),
    [
        ("setup.cfg", ("@org/root",), 2),
        ("setup.py", ("@org/python",), 4),
        ("megatron/core/a/b.py", ("@org/core", "@org/nemo"), 5),
        ("megatron/core/optimizer/muon.py", ("@org/core", "me@example.org"), 6),
        ("docs/index.md", ("@writer",), 7),
        ("docs/deep/index.md", (), None),
        ("build/x/y/cache/z", ("@org/build",), 8),
        ("build/cache/z", ("@org/build",), 8),
        ("apps/x.py", (), 9),
        ("x/apps/y.py", (), 9),
        ("a b/c", ("@spaces",), 11),
        ("other/file.txt", (), None),
    ],
)
def test_the_last_matching_line_decides(path: str, owners: tuple[str, ...], line: int | None) -> None:
    found = find_owners(path, FILE)
    assert (found.owners, found.line) == (owners, line)


def test_lines_that_github_skips_are_skipped() -> None:
    text = "*.py @a\n!x.py @b\nx.[ch] @c\nx.[p @d\n\\#x.py @e\n"
    assert find_owners("x.py", text) == Ownership(("@a",), "*.py", 1)
    assert find_owners("x.c", text) == Ownership()


def test_a_file_that_github_ignores_has_no_owners() -> None:
    assert find_owners("x.py", "* @a\n" + "#" * MAX_BYTES).owners == ()
    assert find_owners("x.py", "* @a\n").owners == ("@a",)


def test_windows_line_ends() -> None:
    assert find_owners("x.py", "*.py @a\r\n*.md @b\r\n").owners == ("@a",)


def test_a_hostile_pattern_costs_no_time() -> None:
    text = "*a*a*a*a*a*a*a*a*a*ab @x\n/**/**/**/**/**/b @x\n" * 50 + "a" * 100_000 + " @x\n"
    started = time.monotonic()
    assert find_owners("a" * 500, text) == Ownership()
    assert find_owners("a/" * 300, text) == Ownership()
    assert time.monotonic() - started < 5
