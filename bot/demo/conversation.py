"""What people and the App do on a pull request, and the events that tell of it."""

from __future__ import annotations

from typing import Any

from bot.demo.errors import ApiError
from bot.demo.shapes_pull import comment_json, issue_json, label_json, pull_json
from bot.demo.state import Comment, Commit, Label, Pull, Reaction, Repo, State, TimelineItem, User
from bot.demo.webhooks import Webhooks

Json = dict[str, Any]
LONGEST_BODY = 65_536
REACTIONS = frozenset({"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"})


class Conversation:
    """Comments, reactions, labels, pushes. `by` is whoever does it; a bot's deeds are told like anybody's."""

    def __init__(self, state: State, hooks: Webhooks) -> None:
        self._state = state
        self._hooks = hooks

    def add_comment(self, repo: Repo, pull: Pull, by: User, body: str, *, app_id: int | None = None) -> Comment:
        """Post a comment.

        Raises:
            ApiError: 403 on a locked pull request, unless `by` may write; 422 for a body that is empty or too long.
        """
        if pull.locked and repo.roles.get(by.login, "none") not in {"admin", "maintain", "write"}:
            raise ApiError(403, "Unable to create comment because issue is locked.")
        check_body(body)
        now = self._state.clock()
        comment = Comment(self._state.next_id("comment"), pull.number, by, body, now, now, app_id)
        repo.comments[comment.id] = comment
        pull.updated_at = now
        self._tell_comment(repo, pull, comment, "created", by)
        return comment

    def edit_comment(self, repo: Repo, comment: Comment, by: User, body: str) -> None:
        """Replace a comment's text; GitHub tells what it was before."""
        check_body(body)
        before, comment.body, comment.updated_at = comment.body, body, self._state.clock()
        changes = {"body": {"from": before}}
        self._tell_comment(repo, repo.pulls[comment.pull], comment, "edited", by, changes=changes)

    def delete_comment(self, repo: Repo, comment: Comment, by: User) -> None:
        del repo.comments[comment.id]
        self._tell_comment(repo, repo.pulls[comment.pull], comment, "deleted", by)

    def _tell_comment(self, repo: Repo, pull: Pull, comment: Comment, action: str, by: User, **more: Any) -> None:
        fields = {
            "issue": issue_json(self._state, repo, pull),
            "comment": comment_json(self._state, repo, comment),
            **more,
        }
        self._hooks.emit(repo, "issue_comment", action, by, fields)

    def react(self, comment: Comment, by: User, content: str) -> tuple[Reaction, bool]:
        """Add a reaction; the second value is False when it was there already.

        Raises:
            ApiError: 422 for a content that GitHub does not know.
        """
        if content not in REACTIONS:
            raise ApiError(422, "Validation Failed")
        for reaction in comment.reactions:
            if reaction.user.id == by.id and reaction.content == content:
                return reaction, False
        reaction = Reaction(self._state.next_id("reaction"), by, content, self._state.clock())
        comment.reactions.append(reaction)
        return reaction, True

    def add_label(self, repo: Repo, pull: Pull, name: str, by: User) -> None:
        """Add a label (made when the repository has none of this name); no event when it was there already."""
        if name in pull.labels:
            return
        label = repo.labels.setdefault(name, Label(self._state.next_id("label"), name))
        pull.labels[name] = label
        self._tell_label(repo, pull, label, "labeled", by)

    def remove_label(self, repo: Repo, pull: Pull, name: str, by: User) -> None:
        """Take a label off.

        Raises:
            ApiError: 404 when the pull request does not have it.
        """
        label = pull.labels.pop(name, None)
        if label is None:
            raise ApiError(404, "Label does not exist")
        self._tell_label(repo, pull, label, "unlabeled", by)

    def _tell_label(self, repo: Repo, pull: Pull, label: Label, action: str, by: User) -> None:
        pull.updated_at = self._state.clock()
        pull.timeline.append(TimelineItem(pull.updated_at, action, by.login, label.name))
        self._tell_pull(repo, pull, action, by, label=label_json(self._state, repo, label))

    def _tell_pull(self, repo: Repo, pull: Pull, action: str, by: User, **more: Any) -> None:
        fields = {"number": pull.number, "pull_request": pull_json(self._state, repo, pull), **more}
        self._hooks.emit(repo, "pull_request", action, by, fields)

    def push(self, repo: Repo, pull: Pull, by: User, *, message: str, mirror: bool) -> str:
        """A new head commit; with `mirror` the copy bot follows at once (a trusted author), else it stays behind."""
        before = pull.head_sha
        pull.head_sha = self.commit(repo, (before,), message)
        pull.merge_commit_sha = self.commit(
            repo, (repo.branches[pull.base_ref], pull.head_sha), f"Merge {pull.head_sha}"
        )
        pull.updated_at = self._state.clock()
        if mirror:
            repo.branches[pull.mirror_branch] = pull.head_sha
        if not pull.fork:
            repo.branches[pull.head_ref] = pull.head_sha
        pull.timeline.append(TimelineItem(pull.updated_at, "pushed", by.login, pull.head_sha[:7]))
        self._tell_pull(repo, pull, "synchronize", by, before=before, after=pull.head_sha)
        return pull.head_sha

    def commit(self, repo: Repo, parents: tuple[str, ...], message: str) -> str:
        """Add a commit that no branch points at yet and return its SHA."""
        sha = self._state.new_sha(repo.full_name, message)
        repo.commits[sha] = Commit(sha, parents, message, self._state.clock())
        return sha

    def open_pull(self, repo: Repo, pull: Pull) -> None:
        repo.pulls[pull.number] = pull
        self._tell_pull(repo, pull, "opened", pull.author)

    def close_pull(self, repo: Repo, pull: Pull, by: User, *, merged: bool) -> None:
        pull.state, pull.merged, pull.closed_at = "closed", merged, self._state.clock()
        pull.updated_at = pull.closed_at
        pull.timeline.append(TimelineItem(pull.closed_at, "merged" if merged else "closed", by.login, ""))
        self._tell_pull(repo, pull, "closed", by)


def check_body(body: Any) -> str:
    """The comment's text, or GitHub's refusal.

    Raises:
        ApiError: 422 when it is no string, empty, or longer than 65,536 characters.
    """
    if not isinstance(body, str):
        raise ApiError(422, "Invalid request.\n\nFor 'properties/body', nil is not a string.")
    if not body.strip():
        raise ApiError(422, "Validation Failed", errors=[_body_error("missing_field", "body can't be blank")])
    if len(body) > LONGEST_BODY:
        longest = f"Body is too long (maximum is {LONGEST_BODY} characters)"
        raise ApiError(422, "Validation Failed", errors=[_body_error("unprocessable", longest)])
    return body


def _body_error(code: str, message: str) -> Json:
    return {"resource": "IssueComment", "code": code, "field": "data", "message": message}
