"""Endpoints of a pull request: itself, its files, labels, comments and reactions."""

from __future__ import annotations

from bot.demo.conversation import Conversation, check_body
from bot.demo.endpoint import Answer, Call, Endpoint
from bot.demo.errors import NOT_ACCESSIBLE, NOT_FOUND, ApiError
from bot.demo.shapes_pull import comment_json, file_json, label_json, pull_json, reaction_json
from bot.demo.state import Comment, stamp


def _talk(call: Call) -> Conversation:
    return Conversation(call.state, call.parts.hooks)


async def get_pull(call: Call) -> Answer:
    return Answer(pull_json(call.state, call.repo, call.pull()))


async def list_files(call: Call) -> Answer:
    pull = call.pull()
    return Answer(items=[file_json(call.state, call.repo, pull, path) for path in pull.files])


async def list_comments(call: Call) -> Answer:
    """Ascending by id (domain 2.6); `since` is compared with the time of the last change."""
    found = call.repo.comments_of(call.pull().number)
    since = call.query("since")
    if since:
        found = [comment for comment in found if stamp(comment.updated_at) >= since]
    return Answer(items=[comment_json(call.state, call.repo, comment) for comment in found])


async def create_comment(call: Call) -> Answer:
    body = check_body(call.body.get("body"))
    comment = _talk(call).add_comment(call.repo, call.pull(), call.bot, body, app_id=call.calling_app.id)
    shown = comment_json(call.state, call.repo, comment)
    return Answer(shown, 201, headers={"Location": shown["url"]})


def _comment(call: Call) -> Comment:
    found = call.repo.comments.get(call.number("comment"))
    kind = "review_comment" if "/pulls/comments/" in call.request.path else "issue"
    if found is None or found.kind != kind:
        raise ApiError(404, NOT_FOUND)
    return found


def _own_comment(call: Call) -> Comment:
    """GitHub lets an App change only what it wrote itself, unless it administers the repository."""
    comment = _comment(call)
    if comment.app_id != call.calling_app.id:
        raise ApiError(403, NOT_ACCESSIBLE)
    return comment


async def get_comment(call: Call) -> Answer:
    return Answer(comment_json(call.state, call.repo, _comment(call)))


async def edit_comment(call: Call) -> Answer:
    comment = _own_comment(call)
    _talk(call).edit_comment(call.repo, comment, call.bot, check_body(call.body.get("body")))
    return Answer(comment_json(call.state, call.repo, comment))


async def delete_comment(call: Call) -> Answer:
    _talk(call).delete_comment(call.repo, _own_comment(call), call.bot)
    return Answer(status=204)


async def list_reactions(call: Call) -> Answer:
    wanted = call.query("content")
    found = [reaction for reaction in _comment(call).reactions if wanted in {None, reaction.content}]
    return Answer(items=[reaction_json(call.state, reaction) for reaction in found])


async def create_reaction(call: Call) -> Answer:
    reaction, new = _talk(call).react(_comment(call), call.bot, str(call.body.get("content")))
    return Answer(reaction_json(call.state, reaction), 201 if new else 200)


async def delete_reaction(call: Call) -> Answer:
    comment, wanted = _comment(call), call.number("reaction")
    for reaction in comment.reactions:
        if reaction.id == wanted:
            if reaction.user.id != call.bot.id:
                raise ApiError(403, NOT_ACCESSIBLE)
            comment.reactions.remove(reaction)
            return Answer(status=204)
    raise ApiError(404, NOT_FOUND)


async def list_labels(call: Call) -> Answer:
    return Answer(items=[label_json(call.state, call.repo, label) for label in call.pull().labels.values()])


async def add_labels(call: Call) -> Answer:
    pull = call.pull()
    names = call.body.get("labels")
    if not isinstance(names, list):
        raise ApiError(422, "Invalid request.\n\nFor 'properties/labels', nil is not an array.")
    for name in names:
        _talk(call).add_label(call.repo, pull, str(name), call.bot)
    return Answer([label_json(call.state, call.repo, label) for label in pull.labels.values()])


async def remove_label(call: Call) -> Answer:
    pull = call.pull()
    _talk(call).remove_label(call.repo, pull, call.request.match_info["name"], call.bot)
    return Answer([label_json(call.state, call.repo, label) for label in pull.labels.values()])


_REPO = "/repos/{owner}/{repo}"
_ISSUE, _COMMENT = _REPO + "/issues/{number}", _REPO + "/issues/comments/{comment}"
_REVIEW_COMMENT = _REPO + "/pulls/comments/{comment}"
_TALK_READ = ("issues:read", "pull_requests:read")
_TALK_WRITE = ("issues:write", "pull_requests:write")
#: With issues:write alone, reactions on pull requests were refused in practice (domain 2.2).
_REACT = ("pull_requests:write",)
ENDPOINTS = (
    Endpoint("GET", _REPO + "/pulls/{number}", get_pull, ("pull_requests:read",)),
    Endpoint("GET", _REPO + "/pulls/{number}/files", list_files, ("pull_requests:read",)),
    Endpoint("GET", _ISSUE + "/comments", list_comments, _TALK_READ),
    Endpoint("POST", _ISSUE + "/comments", create_comment, _TALK_WRITE),
    Endpoint("GET", _COMMENT, get_comment, _TALK_READ),
    Endpoint("PATCH", _COMMENT, edit_comment, _TALK_WRITE),
    Endpoint("DELETE", _COMMENT, delete_comment, _TALK_WRITE),
    Endpoint("GET", _COMMENT + "/reactions", list_reactions, _TALK_READ),
    Endpoint("POST", _COMMENT + "/reactions", create_reaction, _REACT),
    Endpoint("DELETE", _COMMENT + "/reactions/{reaction}", delete_reaction, _REACT),
    Endpoint("GET", _REVIEW_COMMENT + "/reactions", list_reactions, ("pull_requests:read",)),
    Endpoint("POST", _REVIEW_COMMENT + "/reactions", create_reaction, _REACT),
    Endpoint("DELETE", _REVIEW_COMMENT + "/reactions/{reaction}", delete_reaction, _REACT),
    Endpoint("GET", _ISSUE + "/labels", list_labels, _TALK_READ),
    Endpoint("POST", _ISSUE + "/labels", add_labels, _TALK_WRITE),
    Endpoint("DELETE", _ISSUE + "/labels/{name}", remove_label, _TALK_WRITE),
)
