"""Lets runs go by themselves, a wave of jobs per `pace_s`; in manual mode only what a test finishes is finished."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from bot.demo.actions_state import Conclusion, Job, Run
from bot.demo.artifacts import Content
from bot.demo.ci import Actions
from bot.demo.ci_plan import GPU_RUNNER
from bot.demo.state import Repo


@dataclass(frozen=True)
class Outcome:
    """How a job is going to end."""

    conclusion: Conclusion
    log: bytes | None = None
    artifact: Content | None = None
    step: str | None = None


#: Asked once for each job that starts; None: it ends as it naturally would.
Script = Callable[[Repo, Run, Job], Outcome | None]


class Player:
    """Plays unfinished runs in the background. A held run stops before its tests end, until it is let go."""

    def __init__(self, actions: Actions, script: Script, *, pace_s: float) -> None:
        self._actions = actions
        self._script = script
        self._pace_s = pace_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: set[tuple[int, int]] = set()

    def hold(self, run: Run) -> None:
        """Keep the tests of this attempt running until `let_go`."""
        self._held.add((run.id, run.attempt_number))

    def let_go(self, run: Run) -> None:
        self._held.discard((run.id, run.attempt_number))

    def is_held(self, run: Run) -> bool:
        return (run.id, run.attempt_number) in self._held

    def play(self, repo: Repo, run: Run) -> None:
        """Play the newest attempt to its end."""
        task = asyncio.create_task(self._play(repo, run, run.attempt_number))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _play(self, repo: Repo, run: Run, attempt: int) -> None:
        while run.attempt_number == attempt and run.status != "completed":
            for job in run.jobs:
                self._actions.start_job(repo, run, job)
            await asyncio.sleep(self._pace_s)
            if run.attempt_number != attempt:
                return
            for job in [job for job in run.jobs if job.status == "in_progress"]:
                if not (self.is_held(run) and job.spec.runner_label == GPU_RUNNER):
                    self._finish(repo, run, job)

    def _finish(self, repo: Repo, run: Run, job: Job) -> None:
        end = self._script(repo, run, job)
        if end is None:
            self._actions.finish_job(repo, run, job)
        else:
            self._actions.finish_job(repo, run, job, end.conclusion, log=end.log, artifact=end.artifact, step=end.step)
