"""What people do beside commenting on a pull request: reviews, plain issues, buttons of a check run."""

from __future__ import annotations

from typing import Any, Literal

from bot.demo.check_state import CheckRun
from bot.demo.endpoint import Parts
from bot.demo.shapes_checks import own_check_json, suite_event_json
from bot.demo.shapes_pull import pull_simple_json
from bot.demo.shapes_review import review_comment_json, review_json
from bot.demo.state import Comment, Installation, Pull, Repo, User


class TalkVerbs:
    """The part of `SimulatedGitHub` that deals with reviews, issues and check runs of Apps."""

    parts: Parts

    async def open_issue(self, repo: Repo, *, author: str = "ada", title: str = "A question") -> Pull:
        """Open an issue that is no pull request; comments on it work as on one."""
        state, sha = self.parts.state, repo.branches[repo.default_branch]
        now, number = state.clock(), max(repo.pulls, default=0) + 1
        user, base = state.user(author), repo.default_branch
        made = Pull(
            state.next_id("pull"), number, title, "", user, "", sha, base, sha, now, now, fork=False, plain_issue=True
        )
        repo.pulls[number] = made
        return made

    def transfer_issue(self, issue: Pull, *, to: Repo) -> Pull:
        """Move an issue with its comments to another repository, where it gets a new number; the old one is gone."""
        old, number = self._repo_with(issue), max(to.pulls, default=0) + 1
        del old.pulls[issue.number]
        for comment in old.comments_of(issue.number):
            to.comments[comment.id] = old.comments.pop(comment.id)
            comment.pull = number
        issue.number = number
        to.pulls[number] = issue
        return issue

    def transfer_repo(self, repo: Repo, *, to: Installation) -> None:
        """Give a repository to another account, with the App: all stays but its name and installation."""
        for installation in self.parts.state.installations.values():
            installation.repo_ids.discard(repo.id)
        repo.owner = to.account
        to.repo_ids.add(repo.id)

    async def review(self, pull: Pull, user: str, body: str) -> Comment:
        """A person submits a review that says `body`."""
        return await self._remark(pull, user, body, kind="review")

    async def review_comment(self, pull: Pull, user: str, body: str) -> Comment:
        """A person comments on a line of the diff."""
        return await self._remark(pull, user, body, kind="review_comment")

    async def _remark(self, pull: Pull, user: str, body: str, *, kind: Literal["review", "review_comment"]) -> Comment:
        state, repo = self.parts.state, self._repo_with(pull)
        who, now = state.user(user), state.clock()
        remark = Comment(state.next_id("comment"), pull.number, who, body, now, now, kind=kind)
        repo.comments[remark.id] = remark
        shown: dict[str, Any] = {"pull_request": pull_simple_json(state, repo, pull)}
        if kind == "review":
            shown["review"] = review_json(state, repo, pull, remark)
            self.parts.hooks.emit(repo, "pull_request_review", "submitted", who, shown)
        else:
            shown["comment"] = review_comment_json(state, repo, pull, remark)
            self.parts.hooks.emit(repo, "pull_request_review_comment", "created", who, shown)
        await self.parts.hooks.settle()
        return remark

    def _repo_with(self, pull: Pull) -> Repo:
        for repo in self.parts.state.repos.values():
            if repo.pulls.get(pull.number) is pull:
                return repo
        raise LookupError(f"no repository holds {pull!r}")

    def checks(self, pull: Pull) -> list[CheckRun]:
        """The check runs that Apps made for the present head, oldest first."""
        return [check for check in self._repo_with(pull).checks.values() if check.head_sha == pull.head_sha]

    async def press(self, check: CheckRun, identifier: str, by: str) -> None:
        """A person presses a button of a check run.

        Raises:
            LookupError: the check run has no such button.
        """
        if identifier not in {action["identifier"] for action in check.actions}:
            raise LookupError(f"{check.name} has no button {identifier!r}")
        await self._tell_owner(check, "requested_action", by, requested_action={"identifier": identifier})

    async def rerequest(self, check: CheckRun, by: str) -> None:
        """A person presses "Re-run" beside a check run of an App."""
        await self._tell_owner(check, "rerequested", by)

    async def rerequest_suite(self, check: CheckRun, by: str) -> None:
        """A person presses "Re-run all checks" of the App that made this one."""
        repo, who = self._repo_of_check(check), self.parts.state.user(by)
        fields = {"check_suite": suite_event_json(self.parts.state, repo, check)}
        self.parts.hooks.emit(repo, "check_suite", "rerequested", who, fields, only_app=check.app_id)
        await self.parts.hooks.settle()

    async def _tell_owner(self, check: CheckRun, action: str, by: str, **more: Any) -> None:
        """Only the App that made a check run hears of its buttons."""
        repo, who = self._repo_of_check(check), self.parts.state.user(by)
        fields = {"check_run": own_check_json(self.parts.state, repo, check), **more}
        self.parts.hooks.emit(repo, "check_run", action, who, fields, only_app=check.app_id)
        await self.parts.hooks.settle()

    def _repo_of_check(self, check: CheckRun) -> Repo:
        return next(repo for repo in self.parts.state.repos.values() if check.id in repo.checks)

    def add_team(self, slug: str, *logins: str, repo: Repo) -> list[User]:
        """A team of the repository's owner."""
        repo.teams[slug] = set(logins)
        return [self.parts.state.user(login) for login in logins]
