"""Pull requests, issues, labels, comments and reactions in the JSON shapes of GitHub's REST API."""

from __future__ import annotations

import hashlib
from typing import Any

from bot.demo.shapes_repo import app_json, node_id, repo_json, user_json
from bot.demo.state import Comment, Label, Pull, Reaction, Repo, State, User, stamp

Json = dict[str, Any]


def label_json(state: State, repo: Repo, label: Label) -> Json:
    return {
        "id": label.id,
        "node_id": node_id("LA", label.id),
        "url": f"{state.api_url}/repos/{repo.full_name}/labels/{label.name}".replace(" ", "%20"),
        "name": label.name,
        "color": label.color,
        "default": False,
        "description": None,
        "archived_at": None,
        "archived_by": None,
    }


def _association(repo: Repo, user: User) -> str:
    return {"admin": "OWNER", "none": "CONTRIBUTOR"}.get(repo.roles.get(user.login, "none"), "CONTRIBUTOR")


def _addresses(state: State, repo: Repo, pull: Pull) -> dict[str, str]:
    """The addresses that both `_links` and the `..._url` fields name."""
    api = f"{state.api_url}/repos/{repo.full_name}"
    one, issue = f"{api}/pulls/{pull.number}", f"{api}/issues/{pull.number}"
    return {
        "self": one,
        "html": f"{state.web_url}/{repo.full_name}/pull/{pull.number}",
        "issue": issue,
        "comments": f"{issue}/comments",
        "review_comments": f"{one}/comments",
        "review_comment": f"{api}/pulls/comments{{/number}}",
        "commits": f"{one}/commits",
        "statuses": f"{api}/statuses/{pull.head_sha}",
    }


def pull_simple_json(state: State, repo: Repo, pull: Pull) -> Json:
    """A pull request as lists show it."""
    links = _addresses(state, repo, pull)
    return {
        "url": links["self"],
        "id": pull.id,
        "node_id": node_id("PR", pull.id),
        "diff_url": f"{links['html']}.diff",
        "patch_url": f"{links['html']}.patch",
        **{f"{name}_url": url for name, url in links.items() if name != "self"},
        "number": pull.number,
        "state": pull.state,
        "locked": pull.locked,
        "active_lock_reason": None,
        "title": pull.title,
        "user": user_json(state, pull.author),
        "body": pull.body,
        "labels": [label_json(state, repo, label) for label in pull.labels.values()],
        "milestone": None,
        "created_at": stamp(pull.created_at),
        "updated_at": stamp(pull.updated_at),
        "closed_at": stamp(pull.closed_at) if pull.closed_at else None,
        "merged_at": stamp(pull.closed_at) if pull.merged and pull.closed_at else None,
        "merge_commit_sha": pull.merge_commit_sha,
        "assignee": None,
        "assignees": [],
        "requested_reviewers": [],
        "requested_teams": [],
        "head": _side(state, repo, pull, head=True),
        "base": _side(state, repo, pull, head=False),
        "_links": {name: {"href": url} for name, url in links.items()},
        "author_association": _association(repo, pull.author),
        "auto_merge": None,
        "draft": pull.draft,
    }


def _side(state: State, repo: Repo, pull: Pull, *, head: bool) -> Json:
    owner = pull.author if head and pull.fork else repo.owner
    shown = repo_json(state, repo)
    if head and pull.fork:
        shown |= {
            "id": repo.id + pull.author.id,
            "full_name": f"{owner.login}/{repo.name}",
            "owner": user_json(state, owner),
            "fork": True,
        }
    return {
        "label": f"{owner.login}:{pull.head_ref if head else pull.base_ref}",
        "ref": pull.head_ref if head else pull.base_ref,
        "sha": pull.head_sha if head else repo.branches[pull.base_ref],
        "user": user_json(state, owner),
        "repo": shown,
    }


def pull_json(state: State, repo: Repo, pull: Pull) -> Json:
    """The answer of GET /repos/{owner}/{repo}/pulls/{number}, and `pull_request` of webhooks."""
    return {
        **pull_simple_json(state, repo, pull),
        "merged": pull.merged,
        "mergeable": True,
        "rebaseable": True,
        "mergeable_state": "draft" if pull.draft else "blocked",
        "merged_by": None,
        "comments": len(repo.comments_of(pull.number)),
        "review_comments": 0,
        "maintainer_can_modify": pull.fork,
        "commits": 1,
        "additions": 10 * len(pull.files),
        "deletions": len(pull.files),
        "changed_files": len(pull.files),
    }


def file_json(state: State, repo: Repo, pull: Pull, path: str) -> Json:
    web = f"{state.web_url}/{repo.full_name}"
    return {
        "sha": hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest(),
        "filename": path,
        "status": "modified",
        "additions": 10,
        "deletions": 1,
        "changes": 11,
        "blob_url": f"{web}/blob/{pull.head_sha}/{path}",
        "raw_url": f"{web}/raw/{pull.head_sha}/{path}",
        "contents_url": f"{state.api_url}/repos/{repo.full_name}/contents/{path}?ref={pull.head_sha}",
        "patch": "@@ -1 +1 @@",
    }


def reaction_rollup(reactions: list[Reaction], url: str) -> Json:
    """The counts of each kind of reaction."""
    contents = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
    counts = {content: sum(reaction.content == content for reaction in reactions) for content in contents}
    return {"url": f"{url}/reactions", "total_count": len(reactions), **counts}


def comment_json(state: State, repo: Repo, comment: Comment) -> Json:
    api = f"{state.api_url}/repos/{repo.full_name}/issues"
    url = f"{api}/comments/{comment.id}"
    app = state.apps.get(comment.app_id) if comment.app_id else None
    return {
        "id": comment.id,
        "node_id": node_id("IC", comment.id),
        "url": url,
        "html_url": f"{state.web_url}/{repo.full_name}/pull/{comment.pull}#issuecomment-{comment.id}",
        "issue_url": f"{api}/{comment.pull}",
        "user": user_json(state, comment.user),
        "created_at": stamp(comment.created_at),
        "updated_at": stamp(comment.updated_at),
        "author_association": _association(repo, comment.user),
        "body": comment.body,
        "reactions": reaction_rollup(comment.reactions, url),
        "performed_via_github_app": app_json(state, app) if app else None,
    }


def reaction_json(state: State, reaction: Reaction) -> Json:
    return {
        "id": reaction.id,
        "node_id": node_id("REA", reaction.id),
        "user": user_json(state, reaction.user),
        "content": reaction.content,
        "created_at": stamp(reaction.at),
    }


def issue_json(state: State, repo: Repo, pull: Pull) -> Json:
    """The pull request as the issue that `issue_comment` events carry; no head SHA is in it (domain 2.6)."""
    url = f"{state.api_url}/repos/{repo.full_name}/issues/{pull.number}"
    web = f"{state.web_url}/{repo.full_name}/pull/{pull.number}"
    link = {
        "url": url.replace("/issues/", "/pulls/"),
        "html_url": web,
        "diff_url": f"{web}.diff",
        "patch_url": f"{web}.patch",
        "merged_at": None,
    }
    return {
        "url": url,
        "repository_url": f"{state.api_url}/repos/{repo.full_name}",
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": web,
        "id": pull.id + 1,
        "node_id": node_id("I", pull.id),
        "number": pull.number,
        "title": pull.title,
        "user": user_json(state, pull.author),
        "labels": [label_json(state, repo, label) for label in pull.labels.values()],
        "state": pull.state,
        "locked": pull.locked,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "comments": len(repo.comments_of(pull.number)),
        "created_at": stamp(pull.created_at),
        "updated_at": stamp(pull.updated_at),
        "closed_at": stamp(pull.closed_at) if pull.closed_at else None,
        "author_association": _association(repo, pull.author),
        "active_lock_reason": None,
        **({} if pull.plain_issue else {"draft": pull.draft, "pull_request": link}),
        "body": pull.body,
        "reactions": reaction_rollup([], url),
        "timeline_url": f"{url}/timeline",
        "performed_via_github_app": None,
        "state_reason": None,
    }
