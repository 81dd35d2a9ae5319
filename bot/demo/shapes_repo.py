"""Users, repositories, commits and files in the JSON shapes of GitHub's REST API, version 2022-11-28.

Every field that the published schema requires is there; `tests/service/test_simulated_github_schema.py` checks it.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from bot.demo.state import App, Commit, Repo, Role, State, User, stamp

Json = dict[str, Any]

_USER_URLS = (
    ("followers_url", "/followers"),
    ("following_url", "/following{/other_user}"),
    ("gists_url", "/gists{/gist_id}"),
    ("starred_url", "/starred{/owner}{/repo}"),
    ("subscriptions_url", "/subscriptions"),
    ("organizations_url", "/orgs"),
    ("repos_url", "/repos"),
    ("events_url", "/events{/privacy}"),
    ("received_events_url", "/received_events"),
)
_REPO_URLS = (
    ("archive_url", "/{archive_format}{/ref}"),
    ("assignees_url", "/assignees{/user}"),
    ("blobs_url", "/git/blobs{/sha}"),
    ("branches_url", "/branches{/branch}"),
    ("collaborators_url", "/collaborators{/collaborator}"),
    ("comments_url", "/comments{/number}"),
    ("commits_url", "/commits{/sha}"),
    ("compare_url", "/compare/{base}...{head}"),
    ("contents_url", "/contents/{+path}"),
    ("contributors_url", "/contributors"),
    ("deployments_url", "/deployments"),
    ("downloads_url", "/downloads"),
    ("events_url", "/events"),
    ("forks_url", "/forks"),
    ("git_commits_url", "/git/commits{/sha}"),
    ("git_refs_url", "/git/refs{/sha}"),
    ("git_tags_url", "/git/tags{/sha}"),
    ("hooks_url", "/hooks"),
    ("issue_comment_url", "/issues/comments{/number}"),
    ("issue_events_url", "/issues/events{/number}"),
    ("issues_url", "/issues{/number}"),
    ("keys_url", "/keys{/key_id}"),
    ("labels_url", "/labels{/name}"),
    ("languages_url", "/languages"),
    ("merges_url", "/merges"),
    ("milestones_url", "/milestones{/number}"),
    ("notifications_url", "/notifications{?since,all,participating}"),
    ("pulls_url", "/pulls{/number}"),
    ("releases_url", "/releases{/id}"),
    ("stargazers_url", "/stargazers"),
    ("statuses_url", "/statuses/{sha}"),
    ("subscribers_url", "/subscribers"),
    ("subscription_url", "/subscription"),
    ("tags_url", "/tags"),
    ("teams_url", "/teams"),
    ("trees_url", "/git/trees{/sha}"),
)


def node_id(kind: str, number: int) -> str:
    """An opaque id like GraphQL's."""
    return base64.urlsafe_b64encode(f"{kind}{number}".encode()).decode().rstrip("=")


def user_json(state: State, user: User) -> Json:
    api, web = f"{state.api_url}/users/{user.login}", f"{state.web_url}/{user.login}"
    return {
        "login": user.login,
        "id": user.id,
        "node_id": node_id("U", user.id),
        "avatar_url": f"{state.web_url}/avatars/{user.id}",
        "gravatar_id": "",
        "url": api,
        "html_url": web,
        **{name: api + path for name, path in _USER_URLS},
        "type": user.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def minimal_repo_json(state: State, repo: Repo) -> Json:
    api, web = f"{state.api_url}/repos/{repo.full_name}", f"{state.web_url}/{repo.full_name}"
    return {
        "id": repo.id,
        "node_id": node_id("R", repo.id),
        "name": repo.name,
        "full_name": repo.full_name,
        "owner": user_json(state, repo.owner),
        "private": repo.private,
        "html_url": web,
        "description": "Research on training transformer models at scale",
        "fork": False,
        "url": api,
        **{name: api + path for name, path in _REPO_URLS},
    }


def repo_json(state: State, repo: Repo) -> Json:
    """The full repository, as webhooks and `base.repo` carry it."""
    web = f"{state.web_url}/{repo.full_name}"
    at = stamp(repo.created_at)
    open_pulls = sum(pull.state == "open" for pull in repo.pulls.values())
    return {
        **minimal_repo_json(state, repo),
        "git_url": f"git:{web.partition(':')[2]}.git",
        "ssh_url": f"git@github.example:{repo.full_name}.git",
        "clone_url": f"{web}.git",
        "svn_url": web,
        "mirror_url": None,
        "homepage": None,
        "language": "Python",
        "license": None,
        "forks_count": 0,
        "forks": 0,
        "stargazers_count": 0,
        "watchers_count": 0,
        "watchers": 0,
        "size": 1024,
        "default_branch": repo.default_branch,
        "open_issues_count": open_pulls,
        "open_issues": open_pulls,
        "is_template": False,
        "topics": [],
        "has_issues": True,
        "has_projects": False,
        "has_wiki": False,
        "has_pages": False,
        "has_downloads": False,
        "has_discussions": False,
        "archived": False,
        "disabled": False,
        "visibility": "private" if repo.private else "public",
        "pushed_at": at,
        "created_at": at,
        "updated_at": at,
        "allow_forking": True,
        "web_commit_signoff_required": False,
    }


def full_repo_json(state: State, repo: Repo) -> Json:
    """The answer of GET /repos/{owner}/{repo}."""
    return {**repo_json(state, repo), "subscribers_count": 0, "network_count": 0, "permissions": _pull_only()}


def _pull_only() -> Json:
    return {"admin": False, "maintain": False, "push": False, "triage": False, "pull": True}


def git_commit_json(state: State, repo: Repo, commit: Commit) -> Json:
    api, web = f"{state.api_url}/repos/{repo.full_name}/git", f"{state.web_url}/{repo.full_name}/commit"
    author = {"name": "A. Author", "email": "author@example.com", "date": stamp(commit.at)}
    tree = hashlib.sha1(commit.sha.encode(), usedforsecurity=False).hexdigest()
    return {
        "sha": commit.sha,
        "node_id": node_id("C", int(commit.sha[:8], 16)),
        "url": f"{api}/commits/{commit.sha}",
        "html_url": f"{web}/{commit.sha}",
        "author": author,
        "committer": author,
        "message": commit.message,
        "tree": {"sha": tree, "url": f"{api}/trees/{tree}"},
        "parents": [{"sha": sha, "url": f"{api}/commits/{sha}", "html_url": f"{web}/{sha}"} for sha in commit.parents],
        "verification": {
            "verified": False,
            "reason": "unsigned",
            "signature": None,
            "payload": None,
            "verified_at": None,
        },
    }


def ref_json(state: State, repo: Repo, branch: str, sha: str) -> Json:
    api = f"{state.api_url}/repos/{repo.full_name}/git"
    return {
        "ref": f"refs/heads/{branch}",
        "node_id": node_id("REF", int(sha[:8], 16)),
        "url": f"{api}/refs/heads/{branch}",
        "object": {"type": "commit", "sha": sha, "url": f"{api}/commits/{sha}"},
    }


def content_json(state: State, repo: Repo, path: str, data: bytes) -> Json:
    api = f"{state.api_url}/repos/{repo.full_name}"
    web = f"{state.web_url}/{repo.full_name}"
    sha = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    url, git, html = f"{api}/contents/{path}", f"{api}/git/blobs/{sha}", f"{web}/blob/{repo.default_branch}/{path}"
    return {
        "type": "file",
        "encoding": "base64",
        "size": len(data),
        "name": path.rpartition("/")[2],
        "path": path,
        "content": base64.encodebytes(data).decode(),
        "sha": sha,
        "url": url,
        "git_url": git,
        "html_url": html,
        "download_url": f"{web}/raw/{repo.default_branch}/{path}",
        "_links": {"git": git, "self": url, "html": html},
    }


def permission_json(state: State, user: User, role: Role) -> Json:
    """`permission` is the legacy word; `role_name` is the exact role (domain 2.6)."""
    legacy = {"maintain": "write", "triage": "read"}.get(role, role)
    ranks = ["read", "triage", "write", "maintain", "admin"]
    rank = ranks.index(role) if role in ranks else -1
    granted = dict(zip(("pull", "triage", "push", "maintain", "admin"), (i <= rank for i in range(5)), strict=True))
    return {
        "permission": legacy,
        "role_name": role,
        "user": {**user_json(state, user), "role_name": role, "permissions": granted},
    }


def app_json(state: State, app: App) -> Json:
    return {
        "id": app.id,
        "slug": app.slug,
        "node_id": node_id("A", app.id),
        "client_id": f"Iv23li{app.id:014d}",
        "owner": user_json(state, app.owner),
        "name": app.slug,
        "description": "",
        "external_url": "https://github.example/apps/" + app.slug,
        "html_url": f"{state.web_url}/apps/{app.slug}",
        "created_at": stamp(app.created_at),
        "updated_at": stamp(app.created_at),
        "permissions": app.permissions,
        "events": list(app.events),
    }
