"""The list of packaged failures, as the demo page offers them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.demo.ci_plan import BUILD, LINTING
from bot.demo.failures import before_tests, golden, on_ranks
from bot.demo.failures.scene import Remains, Scene


@dataclass(frozen=True)
class PackagedFailure:
    """One choice of the menu.

    `job_name` is the job that it makes fail; `persists`: the code is at fault, so that a re-run fails again until
    somebody pushes. Otherwise the machine was, and the next attempt passes. `needs_goldens`: it happens only where
    results are compared.
    """

    id: str
    title: str
    job_name: str
    build: Callable[[Scene], Remains]
    persists: bool = True
    needs_goldens: bool = False


def _unit(bucket: str) -> str:
    return f"tests/unit_tests/{bucket} - latest"


CATALOGUE = {
    failure.id: failure
    for failure in (
        PackagedFailure("cuda-oom", "GPU out of memory on rank 5 of 8", _unit("models/**/*.py"), on_ranks.cuda_oom),
        PackagedFailure(
            "hang",
            "NCCL hang: rank 3 never joins an all-reduce",
            _unit("pipeline_parallel/**/*.py"),
            on_ranks.hang,
            persists=False,
        ),
        PackagedFailure(
            "assertion", "One test assertion on one rank", _unit("transformer/**/*.py"), on_ranks.assertion
        ),
        PackagedFailure(
            "segfault",
            "Segmentation fault in a C++ extension",
            _unit("dist_checkpointing/**/*.py"),
            on_ranks.segfault,
            persists=False,
        ),
        PackagedFailure(
            "port", "Port already in use", _unit("inference/**/*.py"), on_ranks.port_collision, persists=False
        ),
        PackagedFailure(
            "golden",
            "Golden values do not match",
            "gpt/gpt3_mcore_te_tp1_pp1_dist_optimizer_no_mmap_bin_files - latest",
            golden.golden_mismatch,
            needs_goldens=True,
        ),
        PackagedFailure("lint", "Formatting (black)", LINTING, before_tests.black),
        PackagedFailure("lock", "Container build: uv.lock is stale", BUILD, before_tests.stale_lock),
    )
}
