"""Reviews and their comments in the JSON shapes of GitHub's webhooks."""

from __future__ import annotations

from typing import Any

from bot.demo.shapes_pull import reaction_rollup
from bot.demo.shapes_repo import node_id, user_json
from bot.demo.state import Comment, Pull, Repo, State, stamp

Json = dict[str, Any]


def review_json(state: State, repo: Repo, pull: Pull, review: Comment) -> Json:
    web = f"{state.web_url}/{repo.full_name}/pull/{pull.number}#pullrequestreview-{review.id}"
    api = f"{state.api_url}/repos/{repo.full_name}/pulls/{pull.number}"
    return {
        "id": review.id,
        "node_id": node_id("PRR", review.id),
        "user": user_json(state, review.user),
        "body": review.body,
        "commit_id": pull.head_sha,
        "submitted_at": stamp(review.created_at),
        "updated_at": stamp(review.updated_at),
        "state": "commented",
        "html_url": web,
        "pull_request_url": api,
        "author_association": "CONTRIBUTOR",
        "_links": {"html": {"href": web}, "pull_request": {"href": api}},
    }


def review_comment_json(state: State, repo: Repo, pull: Pull, comment: Comment) -> Json:
    api = f"{state.api_url}/repos/{repo.full_name}/pulls"
    url, one = f"{api}/comments/{comment.id}", f"{api}/{pull.number}"
    web = f"{state.web_url}/{repo.full_name}/pull/{pull.number}#discussion_r{comment.id}"
    return {
        "id": comment.id,
        "node_id": node_id("PRRC", comment.id),
        "url": url,
        "pull_request_review_id": comment.id + 1,
        "diff_hunk": "@@ -1 +1 @@",
        "path": pull.files[0] if pull.files else "README.md",
        "position": 1,
        "original_position": 1,
        "line": 1,
        "original_line": 1,
        "start_line": None,
        "original_start_line": None,
        "start_side": None,
        "side": "RIGHT",
        "commit_id": pull.head_sha,
        "original_commit_id": pull.head_sha,
        "user": user_json(state, comment.user),
        "body": comment.body,
        "created_at": stamp(comment.created_at),
        "updated_at": stamp(comment.updated_at),
        "html_url": web,
        "pull_request_url": one,
        "author_association": "CONTRIBUTOR",
        "_links": {"self": {"href": url}, "html": {"href": web}, "pull_request": {"href": one}},
        "reactions": reaction_rollup(comment.reactions, url),
    }
