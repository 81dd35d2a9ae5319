"""Each security point has its named tests, and they exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
NAMED = re.compile(r"`(?P<path>tests/[\w/.]+\.py)::(?P<test>test_\w+)`")


def test_each_point_names_tests_that_exist() -> None:
    rows = re.findall(r"^\| S(\d+) \|.*$", (ROOT / "docs/security.md").read_text(), re.MULTILINE)
    assert rows == [str(number) for number in range(1, 23)]
    for line in (ROOT / "docs/security.md").read_text().splitlines():
        if not line.startswith("| S"):
            continue
        named = list(NAMED.finditer(line))
        assert named, line
        for one in named:
            text = (ROOT / one["path"]).read_text()
            assert re.search(rf"^(?:async )?def {one['test']}\(", text, re.MULTILINE), one.group()
