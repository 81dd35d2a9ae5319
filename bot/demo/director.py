"""What the demo's buttons do, and which jobs are going to fail."""

from __future__ import annotations

from bot.demo.actions_state import Job, Run
from bot.demo.ci_plan import plan_for
from bot.demo.errors import ApiError
from bot.demo.failures.catalogue import CATALOGUE, PackagedFailure
from bot.demo.failures.scene import Scene
from bot.demo.github import SimulatedGitHub
from bot.demo.player import Outcome
from bot.demo.said import Said, Watched, can_join, is_clean
from bot.demo.state import Label, Pull, Repo, Role

REPOSITORY = "demo-org/Megatron-LM"
#: Seconds that one wave of jobs takes.
PACE_S = 0.5
LABELS = {
    "Run tests": "0e8a16",
    "Run functional tests": "1d76db",
    "container::lts": "d4c5f9",
    "bug": "d73a4a",
}
#: Who one can be on the page: login, role, and what that means.
PEOPLE: tuple[tuple[str, Role, str], ...] = (
    ("ada", "read", "wrote this pull request"),
    ("grace", "write", "maintains the repository"),
    ("mallory", "none", "has no rights here"),
)
AUTHOR, MAINTAINER = "ada", "grace"
_BODY = (
    "Computes the mask inside the softmax, so that the full score matrix is never masked twice.\n\n"
    "Numerically equal to before; the golden values should not move."
)


class Director:
    """Sets the stage and carries out what the page asks for."""

    def __init__(self, *, pace_s: float = PACE_S) -> None:
        self.github = SimulatedGitHub(pace_s=pace_s, script=self._script)
        self._planned: dict[str, PackagedFailure] = {}
        self._pull: Pull | None = None
        self.ready = False  # the stage is set
        self.said = Said("")  # what came of the button that was pressed last

    @property
    def pull(self) -> Pull:
        if self._pull is None:
            raise LookupError("the stage is not set yet")
        return self._pull

    @property
    def repo(self) -> Repo:
        return self.github.repo

    async def set_stage(self) -> None:
        """One repository, one pull request, CI under way and waiting at its unit tests."""
        github = self.github
        repo = github.add_repo(REPOSITORY)
        for name, color in LABELS.items():
            repo.labels[name] = Label(github.state.next_id("label"), name, color)
        for login, role, _ in PEOPLE:
            github.add_user(login, role)
        files = ("megatron/core/transformer/attention.py", "tests/unit_tests/transformer/test_attention.py")
        self._pull = await github.open_pull(
            author=AUTHOR, title="Compute the attention mask inside the softmax", number=42, files=files
        )
        self._pull.body = _BODY
        await self._start_held()
        self.ready = True

    async def _start_held(self) -> None:
        run = await self.github.start_run(self.pull)
        self.github.player.hold(run)

    def newest_run(self) -> Run:
        """The newest run of the pull request."""
        runs = [run for run in self.repo.runs.values() if run.pull == self.pull.number]
        return max(runs, key=lambda run: run.id)

    def _script(self, repo: Repo, run: Run, job: Job) -> Outcome | None:
        failure = self._planned.get(job.spec.name)
        if failure is None:
            return None
        if not failure.persists:
            del self._planned[job.spec.name]
        sha = self.github.parts.actions.sha_under_test(repo, run)
        remains = failure.build(Scene(job.spec.name, job.started_at or job.created_at, sha))
        return Outcome(remains.conclusion, remains.log, remains.artifact, remains.step)

    async def fail(self, failure_id: str) -> Said:
        """Make a job fail: in the run under way if it is reached there, else in a run where nothing else goes wrong."""
        failure = CATALOGUE[failure_id]
        run = self.newest_run()
        joins = run.status != "completed" and can_join(run, failure, self._planned.values())
        labels = run.attempt.labels_read if joins and run.attempt.plan else self.pull.labels
        if failure.needs_goldens and plan_for(labels).lightweight:
            return Said("With the label Run tests no golden values are compared: take it off first.", "no")
        if joins:
            self._planned[failure.job_name] = failure
            self.github.player.let_go(run)
            return self._announce(failure, run)
        self._planned = {failure.job_name: failure}
        if is_clean(run, failure) and run.head_sha == self.pull.head_sha:
            await self.github.rerun_job(run, failure.job_name, by=MAINTAINER)
            return self._announce(failure, run, "its job runs again")
        sha = await self.github.push(self.pull, message=f"Try something ({failure.id})")
        run = await self.github.start_run(self.pull)
        return self._announce(failure, run, f"{AUTHOR} pushed {sha[:7]}, and CI starts anew")

    def _announce(self, failure: PackagedFailure, run: Run, how: str = "") -> Said:
        told = f"{failure.title}: {how + ', ' if how else ''}on its way."
        return Said(told, watched=Watched(failure.title, failure.job_name, run, run.attempt_number))

    async def let_pass(self) -> Said:
        """Everything that is still running succeeds."""
        run = self.newest_run()
        self._planned.clear()
        self.github.player.let_go(run)
        if run.status == "completed":
            return Said("The run is completed. Push a commit or re-run it to see it pass.", "no")
        return Said("The rest of this run passes.")

    async def push_unvetted(self) -> Said:
        """The author pushes, and nobody has vetted it: the copy of the branch stays behind, CI does not start."""
        sha = await self.github.push(self.pull, message="One more idea", mirror=False)
        return Said(f"Pushed {sha[:7]}. Nobody has vetted it, so CI stays away from it.")

    async def push(self) -> Said:
        """The author pushes a fix: nothing that was wrong with the code is wrong any more, and CI starts anew."""
        self._planned.clear()
        sha = await self.github.push(self.pull, message="Address review")
        await self._start_held()
        return Said(f"Pushed {sha[:7]}; CI has started on it.")

    async def rerun(self) -> Said:
        """The maintainer re-runs all jobs."""
        try:
            await self.github.rerun(self.newest_run(), by=MAINTAINER)
        except ApiError as error:
            return Said(error.message, "no")
        return Said("All jobs run again.")

    async def toggle_label(self, name: str) -> Said:
        """The maintainer adds a label, or takes it off."""
        if name in self.pull.labels:
            await self.github.unlabel(self.pull, name, MAINTAINER)
            return Said(f"Removed {name}.")
        await self.github.label(self.pull, name, MAINTAINER)
        return Said(f"Added {name}.")

    async def press(self, check_id: str, identifier: str, login: str) -> Said:
        """Somebody presses a button of a check run.

        Raises:
            KeyError: there is no such check run, or it has no such button.
        """
        found = [check for check in self.github.checks(self.pull) if str(check.id) == check_id]
        labels = {action["identifier"]: action["label"] for check in found for action in check.actions}
        label = labels[identifier]
        await self.github.press(found[0], identifier, by=login)
        return Said(f"{login} pressed {label}. The bot answers in a comment, or in its check.")

    async def comment(self, login: str, body: str) -> Said:
        """Somebody comments."""
        try:
            await self.github.comment(self.pull, login, body)
        except ApiError as error:
            return Said(error.message, "no")
        if login == MAINTAINER and body.strip() == f"/ok to test {self.pull.head_sha}":
            self.github.player.hold(await self.github.vet(self.pull))
            return Said("Vetted: CI starts on this commit.")
        return Said("Comment posted.")
