"""Who may ask: App JWTs, installation tokens and their permissions, rate limits."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import jwt

from bot.demo.errors import NOT_ACCESSIBLE, NOT_FOUND, ApiError
from bot.demo.state import App, Installation, Repo, State, Token

TOKEN_LIVES = timedelta(hours=1)
#: GitHub refuses an App JWT whose `exp` lies further ahead (domain 2.2); a little leeway for the clocks.
LONGEST_JWT_S = 600 + 60
LEEWAY_S = 5
ENTERPRISE_VERSION = "3.16.0"
FOREIGN_REPO = "There is at least one repository that does not exist or is not accessible to the parent installation."
_LEVELS = {"read": 1, "write": 2, "admin": 3}


@dataclass
class Budget:
    """The primary rate limit of one installation; `used` can be set by a test."""

    limit: int = 5000
    used: int = 0
    reset: int = 0

    def headers(self) -> dict[str, str]:
        return {
            "x-ratelimit-limit": str(self.limit),
            "x-ratelimit-remaining": str(max(self.limit - self.used, 0)),
            "x-ratelimit-used": str(self.used),
            "x-ratelimit-reset": str(self.reset),
            "x-ratelimit-resource": "core",
        }


class Access:
    """Checks credentials and hands out tokens."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.budget = Budget()
        #: Former full names of repositories, which GitHub goes on to answer to.
        self.renamed: dict[str, Repo] = {}

    def app_of(self, header: str) -> App:
        """The App whose JWT this is.

        Raises:
            ApiError: 401, in GitHub's words.
        """
        scheme, _, value = header.partition(" ")
        if scheme.lower() != "bearer" or value.count(".") != 2:
            raise ApiError(401, "A JSON web token could not be decoded")
        for app, key in [(one, key) for one in self._state.apps.values() for key in one.public_keys_pem]:
            try:
                claims = jwt.decode(
                    value,
                    key,
                    algorithms=["RS256"],
                    issuer=str(app.id),
                    # By our own clock, below.
                    options={"require": ["iat", "exp", "iss"], "verify_exp": False, "verify_iat": False},
                )
            except jwt.InvalidTokenError:
                continue
            self._check_times(claims)
            return app
        raise ApiError(401, "A JSON web token could not be decoded")

    def _check_times(self, claims: dict[str, Any]) -> None:
        now = self._state.clock().timestamp()
        if claims["exp"] < now - LEEWAY_S:
            raise ApiError(401, "'Expiration time' claim ('exp') is too far in the past")
        if claims["exp"] - claims["iat"] > LONGEST_JWT_S or claims["exp"] - now > LONGEST_JWT_S:
            raise ApiError(401, "'Expiration time' claim ('exp') is too far in the future")
        if claims["iat"] > now + LEEWAY_S:
            raise ApiError(
                401, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
            )

    def token_of(self, header: str) -> Token:
        """The installation token in an Authorization header ("token" or "Bearer").

        Raises:
            ApiError: 401 when it is unknown or expired.
        """
        scheme, _, value = header.partition(" ")
        token = self._state.tokens.get(value) if scheme.lower() in {"token", "bearer"} else None
        if token is None or token.expires_at <= self._state.clock():
            raise ApiError(401, "Bad credentials")
        return token

    def issue(self, app: App, installation: Installation, wanted: dict[str, Any]) -> Token:
        """A token of one hour, narrowed to what was asked for.

        Raises:
            ApiError: 422 for a repository or permission that the installation does not have.
        """
        token = Token(
            value=f"ghs_{app.id}_{secrets.token_urlsafe(24)}.{secrets.token_urlsafe(24)}",  # no fixed length since 2026
            installation_id=installation.id,
            repo_ids=self._narrowed_repos(installation, wanted),
            permissions=self._narrowed_permissions(app, wanted),
            expires_at=self._state.clock() + TOKEN_LIVES,
        )
        self._state.tokens[token.value] = token
        return token

    def _narrowed_repos(self, installation: Installation, wanted: dict[str, Any]) -> frozenset[int]:
        if "repository_ids" not in wanted and "repositories" not in wanted:
            return frozenset(installation.repo_ids)
        names = set(wanted.get("repositories", []))
        ids = set(wanted.get("repository_ids", []))
        ids |= {repo_id for repo_id in installation.repo_ids if self._state.repos[repo_id].name in names}
        if not ids or not ids <= installation.repo_ids:
            raise ApiError(422, FOREIGN_REPO)
        return frozenset(ids)

    def _narrowed_permissions(self, app: App, wanted: dict[str, Any]) -> dict[str, str]:
        asked: dict[str, str] = wanted.get("permissions") or app.permissions
        for name, level in asked.items():
            if _LEVELS.get(app.permissions.get(name, ""), 0) < _LEVELS.get(level, 9):
                raise ApiError(422, "The permissions requested are not granted to this installation.")
        return {**asked, "metadata": "read"}

    def repo_for(self, token: Token, full_name: str) -> Repo:
        """The repository, if the token reaches it.

        Raises:
            ApiError: 404, which tells nothing about a repository that one may not see.
        """
        repo = self._state.repo(full_name)
        if repo is None or repo.id not in token.repo_ids:
            raise ApiError(404, NOT_FOUND)
        return repo

    def require(self, token: Token, needs: tuple[str, ...]) -> None:
        """Refuse unless the token has one of the permissions, each spelled "name:level".

        Raises:
            ApiError: 403 "Resource not accessible by integration".
        """
        for need in needs:
            name, _, level = need.partition(":")
            if _LEVELS.get(token.permissions.get(name, ""), 0) >= _LEVELS[level]:
                return
        if needs:
            accepted = "; ".join(need.replace(":", "=") for need in needs)
            raise ApiError(403, NOT_ACCESSIBLE, headers={"X-Accepted-GitHub-Permissions": accepted})

    def headers(self) -> dict[str, str]:
        """What every answer tells about the server: its limits, which an Enterprise Server has none of."""
        if self._state.enterprise:
            return {"X-GitHub-Enterprise-Version": ENTERPRISE_VERSION}
        return self.budget.headers()

    def spend(self) -> None:
        """Count one request against the primary limit, where there is one.

        Raises:
            ApiError: 403 when the limit is used up.
        """
        if self._state.enterprise:
            return
        now = int(self._state.clock().timestamp())
        if self.budget.reset <= now:
            self.budget.used, self.budget.reset = 0, now + 3600
        if self.budget.used >= self.budget.limit:
            raise ApiError(403, "API rate limit exceeded for installation.")
        self.budget.used += 1
