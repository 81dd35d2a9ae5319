"""The simulated GitHub, for the demo and for every service test.

    async with SimulatedGitHub() as github:
        github.set_webhook_url("http://127.0.0.1:8080/webhook")
        github.add_repo("NVIDIA/Megatron-LM")
        github.add_user("ada", "write")
        pull = await github.open_pull(author="ada")
        run = await github.start_run(pull)
        await github.finish_job(run, "tests/unit_tests/models/**/*.py - latest", "failure", log=text, artifact=folder)
        await github.finish_run(run)
        await github.comment(pull, "ada", "/mlm rerun unit models")
        assert [comment.body for comment in github.comments(pull)] == [...]

Every method that changes something returns when the App has answered all webhooks of it (which says nothing about the
work that the App does afterwards: see `until`). Where `repo` is left out, the first repository is meant.

Manual mode (`pace_s=None`): jobs end only by `finish_job` and `finish_run`, also after the App has re-run something.
Otherwise runs play by themselves, one wave of jobs per `pace_s` seconds, each job ending as `script` says.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from bot.demo.actions_state import Run
from bot.demo.conversation import Conversation
from bot.demo.github_faults import FaultVerbs
from bot.demo.github_runs import RunVerbs
from bot.demo.github_talk import TalkVerbs
from bot.demo.player import Player, Script
from bot.demo.state import Comment, Delivery, Installation, Pull, Repo, Role, State, User
from bot.demo.wiring import api_path, api_site, make_key_pair, new_app, new_parts


class SimulatedGitHub(RunVerbs, TalkVerbs, FaultVerbs):
    """One GitHub with one App; REST API and artifact storage on two loopback ports."""

    def __init__(
        self,
        *,
        pace_s: float | None = None,
        script: Script = lambda *_: None,
        slug: str = "mlm-bot",
        enterprise: bool = False,
    ) -> None:
        self.parts = new_parts()
        self.parts.state.enterprise = enterprise
        self.app = new_app(self.parts.state, slug=slug)
        self.talk = Conversation(self.parts.state, self.parts.hooks)
        self.plays_by_itself = pace_s is not None
        self.player = Player(self.parts.actions, script, pace_s=pace_s or 0.0)
        if self.plays_by_itself:
            self.parts.actions.on_begin = self.player.play
        self._api = api_site(self.parts)

    async def start(self) -> None:
        state = self.parts.state
        host = await self._api.start()
        state.api_url = host + api_path(state)
        state.storage_url = await self.parts.storage.start()
        state.web_url = state.web_url or host
        await self.parts.hooks.start()

    async def close(self) -> None:
        await self.player.close()
        await self.parts.hooks.close()
        await self._api.close()
        await self.parts.storage.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def state(self) -> State:
        return self.parts.state

    @property
    def api_url(self) -> str:
        """For MLM_GITHUB_API_URL."""
        return self.parts.state.api_url

    @property
    def app_id(self) -> int:
        return self.app.id

    @property
    def private_key_pem(self) -> str:
        return self.app.private_key_pem

    def add_key(self) -> None:
        """Make the App another private key, which `private_key_pem` is from now on; the older ones are good as well."""
        self.app.private_key_pem, public_key_pem = make_key_pair()
        self.app.public_keys_pem.append(public_key_pem)

    def delete_oldest_key(self) -> None:
        """Refuse what is signed with it from now on."""
        del self.app.public_keys_pem[0]

    @property
    def webhook_secret(self) -> str:
        return self.app.webhook_secret

    def set_webhook_url(self, url: str | None) -> None:
        """Where events go; None: they fail, as when the App is down (`state.deliveries` remembers them)."""
        self.app.webhook_url = url

    def add_repo(self, full_name: str = "NVIDIA/Megatron-LM", *, private: bool = False, installed: bool = True) -> Repo:
        """A repository with a first commit; the App gets installed on it (one installation per owner)."""
        owner, _, name = full_name.partition("/")
        state = self.parts.state
        account = state.user(owner, kind="Organization")
        repo = Repo(state.next_id("repo"), account, name, state.clock(), private=private)
        state.repos[repo.id] = repo
        repo.branches["main"] = self.talk.commit(repo, (), "First commit")
        if installed:
            self.installation(owner).repo_ids.add(repo.id)
        return repo

    def installation(self, owner: str) -> Installation:
        """The App's installation on this account, made when there is none."""
        state = self.parts.state
        for found in state.installations.values():
            if found.account.login == owner:
                return found
        made = Installation(state.next_id("installation"), self.app.id, state.user(owner, kind="Organization"))
        state.installations[made.id] = made
        return made

    def add_user(self, login: str, role: Role = "none", *, repo: Repo | None = None) -> User:
        """A person, and their role on the repository; "none" is an outsider."""
        (repo or self.repo).roles[login] = role
        if role == "none":
            del (repo or self.repo).roles[login]
        return self.parts.state.user(login)

    @property
    def repo(self) -> Repo:
        """The first repository."""
        return next(iter(self.parts.state.repos.values()))

    async def open_pull(  # noqa: PLR0913 - each is a fact of a pull request that some test needs to differ
        self,
        *,
        author: str = "ada",
        title: str = "Fuse the attention mask",
        number: int | None = None,
        files: Sequence[str] = ("megatron/core/transformer/attention.py",),
        labels: Sequence[str] = (),
        fork: bool = True,
        draft: bool = False,
        mirror: bool = True,
        repo: Repo | None = None,
    ) -> Pull:
        """Open a pull request; with `mirror` the copy bot has pushed its head to `pull-request/<n>`."""
        repo, state = repo or self.repo, self.parts.state
        user, base = state.user(author), repo.branches[repo.default_branch]
        head = self.talk.commit(repo, (base,), title)
        pull = Pull(
            id=state.next_id("pull"),
            number=number or max(repo.pulls, default=0) + 1,
            title=title,
            body="",
            author=user,
            head_ref="fused-mask",
            head_sha=head,
            base_ref=repo.default_branch,
            merge_commit_sha=self.talk.commit(repo, (base, head), f"Merge {head} into {base}"),
            created_at=state.clock(),
            updated_at=state.clock(),
            fork=fork,
            draft=draft,
            files=list(files),
        )
        if mirror:
            repo.branches[pull.mirror_branch] = head
        self.talk.open_pull(repo, pull)
        for name in labels:
            self.talk.add_label(repo, pull, name, user)
        await self.settle()
        return pull

    async def push(self, pull: Pull, *, message: str = "Address review", mirror: bool = True) -> str:
        """The author pushes; without `mirror` the copy of the branch stays behind. Returns the new head."""
        sha = self.talk.push(self.repo_of(pull), pull, pull.author, message=message, mirror=mirror)
        await self.settle()
        return sha

    async def vet(self, pull: Pull) -> Run:
        """What a trusted user's `/ok to test <sha>` brings about: the mirror branch follows, and CI runs on it."""
        self.repo_of(pull).branches[pull.mirror_branch] = pull.head_sha
        return await self.start_run(pull)

    async def close_pull(self, pull: Pull, *, by: str | None = None, merged: bool = False) -> None:
        self.talk.close_pull(self.repo_of(pull), pull, self._who(pull, by), merged=merged)
        await self.settle()

    async def label(self, pull: Pull, name: str, by: str | None = None) -> None:
        self.talk.add_label(self.repo_of(pull), pull, name, self._who(pull, by))
        await self.settle()

    async def unlabel(self, pull: Pull, name: str, by: str | None = None) -> None:
        self.talk.remove_label(self.repo_of(pull), pull, name, self._who(pull, by))
        await self.settle()

    async def comment(self, pull: Pull, user: str, body: str) -> Comment:
        """A person comments."""
        comment = self.talk.add_comment(self.repo_of(pull), pull, self._who(pull, user), body)
        await self.settle()
        return comment

    async def edit(self, comment: Comment, body: str, *, by: str | None = None, repo: Repo | None = None) -> None:
        """Somebody (the author when left out) edits a comment."""
        editor = self.parts.state.user(by) if by else comment.user
        self.talk.edit_comment(repo or self.repo, comment, editor, body)
        await self.settle()

    def comments(self, pull: Pull, *, by_app: bool | None = None) -> list[Comment]:
        """The comments, oldest first; `by_app` picks the App's own, or everybody else's."""
        found = self.repo_of(pull).comments_of(pull.number)
        return [comment for comment in found if by_app is None or (comment.app_id == self.app.id) == by_app]

    def reactions(self, comment: Comment) -> list[str]:
        """The App's reactions to a comment, oldest first."""
        return [reaction.content for reaction in comment.reactions if reaction.user.id == self.app.user.id]

    def _who(self, pull: Pull, login: str | None) -> User:
        return self.parts.state.user(login) if login else pull.author

    async def settle(self) -> None:
        """Return when every webhook sent so far has been answered."""
        await self.parts.hooks.settle()

    async def until(self, true: Callable[[], Any], *, within_s: float = 10.0, why: str = "") -> Any:
        """Wait until `true()` is; return its value.

        Raises:
            TimeoutError: it was not within `within_s`.
        """
        try:
            async with asyncio.timeout(within_s):
                while not (value := true()):  # noqa: ASYNC110 - what is waited for may be anything
                    await asyncio.sleep(0.01)
                return value
        except TimeoutError as error:
            raise TimeoutError(f"not within {within_s} s: {why or true}") from error

    @property
    def deliveries(self) -> list[Delivery]:
        return self.parts.state.deliveries

    async def deliver(
        self, event: str, payload: dict[str, Any], *, guid: str | None = None, headers: dict[str, str] | None = None
    ) -> int:
        """POST any event to the App now; `headers` override the right ones. Returns the App's status."""
        delivery = self.parts.hooks.record(self.app, event, payload, guid=guid or str(uuid.uuid4()))
        return await self.parts.hooks.send(delivery, headers=headers)

    async def redeliver(self, delivery: Delivery) -> int:
        """Deliver it again under the same GUID. Returns the App's status."""
        hooks = self.parts.hooks
        again = hooks.record(self.app, delivery.event, delivery.payload, guid=delivery.guid, redelivery=True)
        return await hooks.send(again)
