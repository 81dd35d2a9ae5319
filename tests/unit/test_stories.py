"""The net under the stories catches what it should: it is itself held against requests that no bot may make."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from stories import surprises

REPO = "/repos/NVIDIA/Megatron-LM"


@pytest.mark.parametrize(
    ("method", "path", "status", "caught"),
    [
        ("POST", f"{REPO}/issues/1/comments", 201, False),
        ("POST", f"{REPO}/actions/runs/7/rerun", 201, False),
        ("GET", f"{REPO}/contents/.github/mlm.yml", 404, False),
        ("POST", f"{REPO}/actions/workflows/7/dispatches", 204, True),
        ("DELETE", f"{REPO}/issues/comments/1", 204, True),
        ("PUT", f"{REPO}/pulls/1/merge", 200, True),
        ("POST", f"{REPO}/issues/1/comments", 422, True),
        ("GET", f"{REPO}/actions/rnus", 404, True),
    ],
)
def test_what_is_caught(method: str, path: str, status: int, *, caught: bool) -> None:
    seen = SimpleNamespace(server="api", method=method, path=path, status=status)
    world = SimpleNamespace(github=SimpleNamespace(requests=[seen]))
    assert bool(surprises(world)) is caught  # type: ignore[arg-type]
