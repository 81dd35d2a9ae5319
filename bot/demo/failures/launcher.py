"""The job log around a test run: nemo-run's lines, rank 0 as it is teed, torchrun's summary, the result box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from bot.demo.actions_state import Job, JobSpec
from bot.demo.ci_plan import GPU_RUNNER
from bot.demo.failures.scene import RankOutput, Remains, Scene, rank_tree
from bot.demo.job_log import JobLog, head_lines

SIGNALS = {-15: "SIGTERM", -11: "SIGSEGV", -6: "SIGABRT"}
_API = "torch/distributed/elastic/multiprocessing/api.py"
_RULER = "\x1b[1;36m" + "─" * 72 + "\x1b[0m"
_TASK = "task-1-0/0 "


def opening(scene: Scene) -> JobLog:
    """The log from the runner's first words to the start of the tests."""
    job = Job(0, 0, 1, JobSpec(scene.job_name, "unit", (), GPU_RUNNER), scene.sha, scene.at)
    unit = scene.test_case.startswith("tests/")
    inputs = [
        "with:",
        f"  test_case: {scene.test_case}",
        "  timeout: 60",
        f"  is_unit_test: {str(unit).lower()}",
        f"  container-image: registry.example/megatron-lm:{scene.sha}-aws-h100",
        f"  sha: {scene.sha}",
        "  platform: dgx_h100",
    ]
    return (
        JobLog(scene.at)
        .add(head_lines(job))
        .group("Run ./.github/actions", inputs)
        .group("Pull container", [f"Digest: sha256:{scene.sha}", "Status: Downloaded newer image"])
        .add(["##[group]Logs", "+ /bin/bash job.sh"])
    )


def exit_lines(scene: Scene, codes: Mapping[int, int], *, first: int) -> list[str]:
    """What torchrun prints when rank `first` has failed: warnings, the traceback, its summary of all ranks.

    Args:
        codes: exit code per rank, negative for a signal.
        first: the rank that torchrun takes for the root cause.
    """
    stamp = f"{scene.at:%m%d %H:%M:%S}.224000 3028 {_API}"
    ended = [rank for rank, code in codes.items() if code == -15]
    return [
        *(f"W{stamp}:1028] Sending process {scene.pid(rank)} closing signal SIGTERM" for rank in ended),
        (
            f"E{stamp}:1002] failed (exitcode: {codes[first]}) local_rank: {first} (pid: {scene.pid(first)}) "
            "of binary: /opt/venv/bin/python3"
        ),
        "Traceback (most recent call last):",
        '  File "<frozen runpy>", line 198, in _run_module_as_main',
        '  File "/opt/venv/lib/python3.12/site-packages/torch/distributed/run.py", line 994, in <module>',
        "    main()",
        '  File "/opt/venv/lib/python3.12/site-packages/torch/distributed/launcher/api.py", line 317, in launch_agent',
        "    raise ChildFailedError(",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 60,
        "coverage FAILED",
        "-" * 60,
        "Failures:",
        *_failures(scene, codes, first),
        "-" * 60,
        "Root Cause (first observed failure):",
        *_failure(scene, 0, first, codes[first]),
        "=" * 60,
    ]


def _failures(scene: Scene, codes: Mapping[int, int], first: int) -> Iterable[str]:
    others = [rank for rank, code in codes.items() if rank != first and code != 0]
    if not others:
        return ["  <NO_OTHER_FAILURES>"]
    return [line for index, rank in enumerate(others, 1) for line in _failure(scene, index, rank, codes[rank])]


def _failure(scene: Scene, index: int, rank: int, code: int) -> list[str]:
    name = f"  ({SIGNALS[code]})" if code in SIGNALS else ""
    cause = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    if code in SIGNALS:
        cause = f"Signal {-code} ({SIGNALS[code]}) received by PID {scene.pid(rank)}"
    return [
        f"[{index}]:",
        f"  time      : {scene.at:%Y-%m-%d_%H:%M:%S}",
        "  host      : ip-10-0-12-87",
        f"  rank      : {rank} (local_rank: {rank})",
        f"  exitcode  : {code} (pid: {scene.pid(rank)}){name}",
        "  error_file: <N/A>",
        f"  traceback : {cause}",
    ]


def closing(log: JobLog, scene: Scene, excerpt: list[str], excerpt_path: str) -> bytes:
    """The end of a failed test job's log, from "Check result" on; the upload's lines come after it."""
    shown = excerpt[-40:]
    bar = "═" * 74
    log.add(["exit_code=1", "##[endgroup]", "##[error]Process completed with exit code 1."])
    log.add([f"\x1b[1;36m   {excerpt_path} — last 40 lines\x1b[0m", _RULER, *shown, _RULER, ""])
    box = [
        f"╔{bar}╗",
        f"║{'':74}║",
        f"║   ❌  FAILED  (exit code: 1){'':46}║",
        f"║   {scene.test_case}",
        f"║{'':74}║",
        f"╚{bar}╝",
    ]
    log.add([f"\x1b[1;31m{line}\x1b[0m" for line in box])
    log.add([f"##[error]❌ {scene.test_case} — FAILED (exit 1)", "##[error]Process completed with exit code 1."])
    return log.render()


def unit_job(scene: Scene, outputs: dict[int, RankOutput], codes: Mapping[int, int], *, first: int) -> Remains:
    """Everything that a failed unit test job leaves, from what its ranks printed and how they ended."""
    teed = [f"{_TASK}[default0]:{line}" for line in outputs[0].stdout]
    log = opening(scene)
    log.add([f"{_TASK}Running prod test suite.", *teed])
    log.add([_TASK + line for line in exit_lines(scene, codes, first=first)], pause=timedelta(seconds=41))
    path = f"assets_dir/logs/1/{scene.run_folder}/attempt_0/{first}/stdout.log"
    return Remains(closing(log, scene, outputs[first].stdout, path), rank_tree(scene, outputs), "Run main script")
