"""Which part of a path lies inside the repository under test."""

from __future__ import annotations

import pytest

from analyzers.parsers.frames import in_repository


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("/opt/megatron-lm/megatron/core/utils.py", "megatron/core/utils.py"),
        ("/srv/ci/megatron/megatron/core/utils.py", "megatron/core/utils.py"),
        ("/srv/ci/megatron/tests/unit_tests/conftest.py", "tests/unit_tests/conftest.py"),
        ("/srv/ci/megatron/pretrain_gpt.py", "pretrain_gpt.py"),
        ("/home/me/src/Megatron-LM/megatron/core/tools/x.py", "megatron/core/tools/x.py"),
        ("/opt/megatron-lm/tools/run_inference.py", "tools/run_inference.py"),
        (
            "/opt/megatron-lm/megatron/core/distributed/fsdp/src/megatron_fsdp/x.py",
            "megatron/core/distributed/fsdp/src/megatron_fsdp/x.py",
        ),
        ("/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", None),
        ("zmq/backend/cython/socket.pyx", None),
    ],
)
def test_a_path_is_told_from_the_root_of_the_repository(path: str, inside: str | None) -> None:
    assert in_repository(path) == inside


def test_the_root_that_pytest_names_wins() -> None:
    assert in_repository("/srv/tests/lib/core.py", "/srv/tests") == "lib/core.py"
