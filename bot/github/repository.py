"""One repository on GitHub, as the handlers see it (`handlers.context.GitHub`).

Paths are built from numbers, checked names and templates that encode what they are given; never from a URL in data.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.github.app import AppIdentity
from bot.github.client import Installation, Method
from bot.github.payloads import (
    ArtifactData,
    CommitData,
    ContentData,
    FileData,
    JobData,
    MembershipData,
    PermissionData,
    PullData,
    ReactionData,
    RefData,
    RunData,
)
from handlers.context import Artifact, Job, Place, Pull, Reaction, RefusedError, Repo, Role, Run

#: Runs are listed newest first and a busy branch has tens of thousands; nobody asks about older ones.
MOST_RUNS = 300
#: Whatever else is open has not been touched for months.
MOST_PULLS = 1_000
FULL_NAME = re.compile(r"(?P<owner>[A-Za-z0-9][A-Za-z0-9_-]{0,99})/(?P<name>(?!\.{1,2}$)[A-Za-z0-9._-]{1,100})")
SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
REPO = "/repos/{owner}/{repo}"
REACTIONS: Mapping[Place, str] = {
    "comment": "/issues/comments/{comment_id}/reactions",
    "review_comment": "/pulls/comments/{comment_id}/reactions",
}
#: `org/team-slug`, as people mention a team.
TEAM = re.compile(r"(?P<org>[A-Za-z0-9][A-Za-z0-9-]{0,38})/(?P<team>[A-Za-z0-9._-]{1,100})")


def split_name(full_name: str) -> tuple[str, str]:
    """Return owner and name.

    Raises:
        ValueError: not a name that GitHub would give.
    """
    found = FULL_NAME.fullmatch(full_name)
    if found is None:
        raise ValueError(f"not a repository name: {full_name!r}")
    return found["owner"], found["name"]


def checked_sha(text: str) -> str:
    """Return a full commit hash as it is.

    Raises:
        ValueError: it is none; a branch name would be answered too, and mean another commit tomorrow.
    """
    if SHA.fullmatch(text) is None:
        raise ValueError(f"not a full commit hash: {text!r}")
    return text


class RepoGitHub:
    """Reads are cached by ETag and tried again when GitHub is unwell; writes are paced and never blindly repeated."""

    def __init__(self, installation: Installation, repo: Repo, app: AppIdentity) -> None:
        self._installation = installation
        self._repo = repo
        self._app = app
        self._owner, self._name = split_name(repo.full_name)

    async def pull(self, number: int) -> Pull:
        return PullData.model_validate(await self._get("/pulls/{pull_number}", pull_number=number)).to_pull()

    async def open_pulls(self) -> Sequence[Pull]:
        """Return the open pull requests, the one that changed last first, 1,000 at most."""
        found = await self._pages(
            "/pulls{?state,sort,direction,per_page}", most=MOST_PULLS, state="open", sort="updated", direction="desc"
        )
        return tuple(PullData.model_validate(item).to_pull() for item in found)

    async def pulls_of_commit(self, sha: str) -> Sequence[Pull]:
        """Return the pull requests that hold the commit; none if this repository does not know the commit."""
        try:
            found = await self._pages("/commits/{commit_sha}/pulls{?per_page}", commit_sha=checked_sha(sha))
        except RefusedError as exc:
            if exc.status == 422 and "No commit found" in exc.message:
                return ()
            raise
        return tuple(PullData.model_validate(item).to_pull() for item in found)

    async def changed_files(self, number: int) -> Sequence[str]:
        """Return the paths that the pull request changes, new names for renamed ones (GitHub lists 3,000 at most)."""
        found = await self._pages("/pulls/{pull_number}/files{?per_page}", pull_number=number)
        return tuple(FileData.model_validate(item).filename for item in found)

    async def branch_sha(self, branch: str) -> str | None:
        """Return the commit at the tip of the branch; None if there is no such branch."""
        try:
            found = await self._get("/git/ref/{ref}", ref=f"heads/{branch}")
        except RefusedError as exc:
            if exc.status == 404:
                return None
            raise
        return RefData.model_validate(found).object.sha

    async def commit_parents(self, sha: str) -> Sequence[str]:
        found = CommitData.model_validate(await self._get("/git/commits/{commit_sha}", commit_sha=checked_sha(sha)))
        return tuple(parent.sha for parent in found.parents)

    async def run(self, run_id: int) -> Run:
        found = await self._get("/actions/runs/{run_id}", run_id=run_id)
        return RunData.model_validate(found).to_run(self._repo.id)

    async def runs(
        self, *, head_sha: str | None = None, branch: str | None = None, status: str | None = None
    ) -> Sequence[Run]:
        """Return runs, newest first, 300 at most; `status` is a status or a conclusion."""
        found = await self._pages(
            "/actions/runs{?head_sha,branch,status,per_page}",
            items_in="workflow_runs",
            most=MOST_RUNS,
            head_sha=None if head_sha is None else checked_sha(head_sha),
            branch=branch,
            status=status,
        )
        return tuple(RunData.model_validate(item).to_run(self._repo.id) for item in found)

    async def jobs(self, run_id: int, *, every_attempt: bool = False) -> Sequence[Job]:
        """Return the jobs of the newest attempt, those carried over included, or of all attempts."""
        which = "all" if every_attempt else "latest"
        found = await self._pages(
            "/actions/runs/{run_id}/jobs{?filter,per_page}", items_in="jobs", run_id=run_id, filter=which
        )
        return tuple(JobData.model_validate(item).to_job() for item in found)

    async def job(self, job_id: int) -> Job:
        return JobData.model_validate(await self._get("/actions/jobs/{job_id}", job_id=job_id)).to_job()

    async def artifacts(self, run_id: int) -> Sequence[Artifact]:
        """Return the artifacts of every attempt of the run."""
        found = await self._pages("/actions/runs/{run_id}/artifacts{?per_page}", items_in="artifacts", run_id=run_id)
        read = (ArtifactData.model_validate(item).to_artifact(run_id) for item in found)
        return tuple(artifact for artifact in read if artifact is not None)

    async def rerun(self, run_id: int) -> None:
        await self._write("POST", "/actions/runs/{run_id}/rerun", run_id=run_id)

    async def rerun_failed(self, run_id: int) -> None:
        await self._write("POST", "/actions/runs/{run_id}/rerun-failed-jobs", run_id=run_id)

    async def rerun_job(self, job_id: int) -> None:
        await self._write("POST", "/actions/jobs/{job_id}/rerun", job_id=job_id)

    async def cancel(self, run_id: int) -> None:
        """Ask for the run's end; refused with 409 where it has ended, also by an earlier try of this call."""
        await self._write("POST", "/actions/runs/{run_id}/cancel", repeatable=True, run_id=run_id)

    async def role(self, login: str) -> Role:
        """Return the role of the account now. `read` says nothing: everybody has it on a public repository."""
        try:
            found = await self._get("/collaborators/{username}/permission", username=login)
        except RefusedError as exc:
            if exc.status == 404:
                return "none"
            raise
        answer = PermissionData.model_validate(found)
        return answer.role_name or answer.permission

    async def in_team(self, team: str, login: str) -> bool:
        """Say whether the account is an active member of `org/team-slug`.

        Raises:
            RefusedError: 403 or 422 if the App may not read the members of teams.
        """
        found = TEAM.fullmatch(team)
        if found is None:
            return False
        path = "/orgs/{org}/teams/{team_slug}/memberships/{username}"
        try:
            answer = await self._installation.get(
                self._repo, path, teams=True, org=found["org"], team_slug=found["team"], username=login
            )
        except RefusedError as exc:
            if exc.status == 404:
                return False
            raise
        return MembershipData.model_validate(answer).state == "active"

    async def add_labels(self, pull: int, labels: Sequence[str]) -> None:
        path = "/issues/{issue_number}/labels"
        await self._write("POST", path, data={"labels": list(labels)}, repeatable=True, issue_number=pull)

    async def remove_label(self, pull: int, label: str) -> None:
        """Take a label off; without effect if it is not there."""
        try:
            path = "/issues/{issue_number}/labels/{label}"
            await self._write("DELETE", path, repeatable=True, issue_number=pull, label=label)
        except RefusedError as exc:
            if exc.status != 404:
                raise

    async def react(self, comment_id: int, content: Reaction, *, place: Place = "comment") -> None:
        if place in REACTIONS:
            data = {"content": content}
            await self._write("POST", REACTIONS[place], data=data, repeatable=True, comment_id=comment_id)

    async def unreact(self, comment_id: int, content: Reaction, *, place: Place = "comment") -> None:
        """Take back our reaction; without effect if there is none."""
        if place not in REACTIONS:
            return
        path = REACTIONS[place]
        found = await self._pages(path + "{?content,per_page}", comment_id=comment_id, content=content)
        for reaction in (ReactionData.model_validate(item) for item in found):
            mine = reaction.user is not None and reaction.user.login == self._app.login
            if mine and reaction.content == content:
                await self._delete_reaction(path + "/{reaction_id}", comment_id, reaction.id)

    async def _delete_reaction(self, path: str, comment_id: int, reaction_id: int) -> None:
        try:
            await self._write("DELETE", path, repeatable=True, comment_id=comment_id, reaction_id=reaction_id)
        except RefusedError as exc:
            if exc.status != 404:
                raise

    async def file(self, path: str) -> bytes | None:
        """Return the file on the default branch; None if there is no file of that path.

        Raises:
            RefusedError: 413 for one over 1 MB, whose content GitHub leaves out.
        """
        try:
            found = await self._get("/contents/{path}", path=path)
        except RefusedError as exc:
            if exc.status == 404:
                return None
            raise
        if isinstance(found, list):  # a folder
            return None
        entry = ContentData.model_validate(found)
        if entry.type != "file":
            return None
        if entry.encoding != "base64" or entry.content is None:
            raise RefusedError(f"{path} is too large to read", status=413)
        return base64.b64decode(entry.content)

    async def _get(self, path: str, /, **values: Any) -> Any:
        return await self._installation.get(self._repo, REPO + path, **self._names(), **values)

    async def _pages(self, path: str, /, **values: Any) -> list[Any]:
        return await self._installation.pages(self._repo, REPO + path, **self._names(), **values)

    async def _write(self, method: Method, path: str, /, **values: Any) -> Any:
        return await self._installation.write(self._repo, method, REPO + path, **self._names(), **values)

    def _names(self) -> dict[str, Any]:
        return {"owner": self._owner, "repo": self._name}
