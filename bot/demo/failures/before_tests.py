"""Failures before any test runs: linting and the container build. No artifact, only the job's log."""

from __future__ import annotations

from datetime import timedelta

from bot.demo.actions_state import Job, JobSpec
from bot.demo.failures.scene import Remains, Scene
from bot.demo.job_log import JobLog, head_lines


def _opening(scene: Scene) -> JobLog:
    job = Job(0, 0, 1, JobSpec(scene.job_name, "lint"), scene.sha, scene.at)
    checkout = ["with:", f"  ref: {scene.sha}", "  fetch-depth: 1"]
    return JobLog(scene.at).add(head_lines(job)).group("Run actions/checkout@v5", checkout)


def _closing(log: JobLog) -> bytes:
    tail = ["##[error]Process completed with exit code 1.", "Post job cleanup.", "Cleaning up orphan processes"]
    return log.add(tail).render()


def black(scene: Scene) -> Remains:
    """black would reformat the file that this pull request changes."""
    path = "megatron/core/transformer/attention.py"
    log = _opening(scene)
    log.group("Run tools/autoformat.sh", ["\x1b[36;1m./tools/autoformat.sh\x1b[0m", "shell: /usr/bin/bash -e {0}"])
    log.add(
        [
            f"+ CHANGED_FILES={path}",
            f"+ black --skip-magic-trailing-comma --skip-string-normalization --check --diff --verbose {path}",
            "Identified `/home/runner/_work/Megatron-LM/Megatron-LM` as project root containing a .git directory.",
            "line_length: 100",
            f'Found input source: "{path}"',
            f"--- {path}\t{scene.at:%Y-%m-%d %H:%M:%S}.650907+00:00",
            f"+++ {path}\t{scene.at:%Y-%m-%d %H:%M:%S}.245172+00:00",
            "@@ -409,5 +409,5 @@",
            "         scores = torch.baddbmm(bias, query, key)",
            "-        probs = torch.softmax(scores.float(),dim = -1)",
            "+        probs = torch.softmax(scores.float(), dim=-1)",
            "         return probs",
            f"would reformat {path}",
            "",
            "Oh no! 💥 💔 💥",
            "1 file would be reformatted.",
        ],
        pause=timedelta(seconds=2),
    )
    return Remains(_closing(log), None, "Run linting")


def stale_lock(scene: Scene) -> Remains:
    """The image build stops at `uv sync --locked`: pyproject.toml was changed, uv.lock was not."""
    log = _opening(scene)
    log.group("Run docker/build-push-action@v6", ["with:", "  file: ./docker/Dockerfile.ci.dev", "  push: true"])
    command = "uv sync --locked --extra dev --extra mlm --link-mode copy"
    failed = "did not complete successfully: exit code: 1"
    error = "error: The lockfile at `uv.lock` needs to be updated, but `--locked` was provided."
    log.add(
        [
            "#1 [internal] load build definition from Dockerfile.ci.dev",
            "#1 DONE 0.0s",
            "#13 [main 6/12] COPY pyproject.toml uv.lock /workspace/",
            "#13 DONE 0.1s",
            f"#14 [main 7/12] RUN {command}",
            "#14 1.306 Using CPython 3.12.3 interpreter at: /usr/bin/python3.12",
            "#14 2.911 Resolved 312 packages in 1.48s",
            f"#14 2.930 {error}",
            "#14 2.930 ",
            "#14 2.930 hint: To update the lockfile, run `uv lock`.",
            f'#14 ERROR: process "/bin/sh -c {command}" {failed}',
            "------",
            f" > [main 7/12] RUN {command}:",
            f"2.930 {error}",
            "------",
            f'ERROR: failed to build: failed to solve: process "/bin/sh -c {command}" {failed}',
            f"##[error]buildx failed with: ERROR: failed to build: failed to solve: process {failed}",
        ],
        pause=timedelta(seconds=9),
    )
    return Remains(_closing(log), None, "Build and push")
