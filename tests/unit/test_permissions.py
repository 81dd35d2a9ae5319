"""Who may do what, whatever GitHub answers."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import NOW, make_pull

from config.repo import RepoConfig, default_config, load_repo_config
from handlers.context import RefusedError
from handlers.permissions import at_least, may, spend_author_budget


class Roles:
    """GitHub, as far as roles go; it counts how often it is asked."""

    def __init__(self, roles: dict[str, str | int]) -> None:
        self.roles = roles
        self.asked = 0

    async def role(self, login: str) -> str:
        self.asked += 1
        answer = self.roles.get(login, 404)
        if isinstance(answer, int):
            raise RefusedError("no", status=answer)
        return answer


class Memory:
    """The store, as far as budgets go."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}

    async def once(self, key: str, value: dict[str, Any]) -> dict[str, Any]:
        return self.rows.setdefault(key, value)

    async def forget(self, key: str) -> None:
        self.rows.pop(key, None)


class Scene:
    """The parts of a Context that permissions look at."""

    def __init__(self, roles: dict[str, str | int], config: RepoConfig | None = None) -> None:
        self.github = Roles(roles)
        self.store = Memory()
        self.config = config or default_config()

    def now(self):  # type: ignore[no-untyped-def]  # noqa: ANN201
        return NOW


@pytest.mark.parametrize(
    ("right", "people", "roles", "allowed"),
    [
        ("rerun", ["ada"], {"ada": "write"}, True),
        ("rerun", ["ada"], {"ada": "maintain"}, True),
        ("rerun", ["ada"], {"ada": "admin"}, True),
        ("rerun", ["ada"], {"ada": "triage"}, False),
        ("rerun", ["ada"], {"ada": "read"}, False),
        ("rerun", ["ada"], {"ada": "super-duper"}, False),
        ("rerun", ["ada"], {}, False),
        ("rerun", ["ada"], {"ada": 403}, False),
        ("rerun", ["ada"], {"ada": 500}, False),
        ("rerun", ["eve"], {"eve": "read"}, True),
        ("rerun-all", ["eve"], {"eve": "read"}, False),
        ("rerun", ["robot[bot]"], {"robot[bot]": "admin"}, False),
        ("rerun", ["ada", "mallory"], {"ada": "write", "mallory": "read"}, False),
        ("rerun", ["mallory", "ada"], {"ada": "write", "mallory": "read"}, False),
        ("analyze", ["bob"], {"bob": "read"}, True),
        ("help", ["nobody"], {}, True),
        ("no-such-right", ["ada"], {"ada": "admin"}, False),
    ],
)
async def test_table(right: str, people: list[str], roles: dict[str, str | int], allowed: bool) -> None:
    verdict = await may(right, people, make_pull(author="eve"), Scene(roles))  # type: ignore[arg-type]
    assert verdict.allowed is allowed


async def test_nobody_at_all_is_refused() -> None:
    assert not (await may("help", [], None, Scene({}))).allowed  # type: ignore[arg-type]


async def test_trusted_and_listed_people_need_no_role() -> None:
    scene = Scene({}, load_repo_config(b"trustees: [Ada]\ncommands: {rerun: [trustees, 'user:bob']}\n"))
    assert (await may("rerun", ["ada"], make_pull(), scene)).allowed  # type: ignore[arg-type]
    assert (await may("rerun", ["Bob"], make_pull(), scene)).allowed  # type: ignore[arg-type]
    assert scene.github.asked == 0


async def test_a_budget_is_paid_once_per_command_and_given_back() -> None:
    scene, pull = Scene({}), make_pull()
    paid = [await spend_author_budget(pull, "eve", spender=who, ctx=scene) for who in "aabc"]  # type: ignore[arg-type]
    assert paid[0] == paid[1]
    assert len(set(paid)) == 3
    assert await spend_author_budget(pull, "eve", spender="d", ctx=scene) is None  # type: ignore[arg-type]
    await scene.store.forget(str(paid[2]))
    assert await spend_author_budget(pull, "eve", spender="d", ctx=scene) is not None  # type: ignore[arg-type]


def test_roles_are_ordered() -> None:
    assert [at_least("write", role) for role in ("read", "write", "admin")] == [True, True, False]
    assert not at_least("none", "read")
