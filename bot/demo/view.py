"""What the demo page shows, taken from the state of the simulated GitHub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.demo.actions_state import Job, Run
from bot.demo.check_state import CheckRun
from bot.demo.director import LABELS, Director
from bot.demo.markdown import render_markdown
from bot.demo.said import Said
from bot.demo.state import Comment, Label, Pull, Repo, State

EMOJI = {
    "+1": "👍",
    "-1": "👎",
    "laugh": "😄",
    "confused": "😕",
    "heart": "❤️",
    "hooray": "🎉",
    "rocket": "🚀",
    "eyes": "👀",
}
_AVATAR_HUES = 360
_EVENT_WORDS = {
    "labeled": "added the label",
    "unlabeled": "removed the label",
    "pushed": "pushed",
    "closed": "closed this",
    "merged": "merged this",
    "run": "",
}


@dataclass(frozen=True)
class Entry:
    """One line of the timeline; `html` is set for comments, `text` for events."""

    at: datetime
    kind: str
    actor: str
    bot: bool
    html: str = ""
    words: str = ""
    text: str = ""
    anchor: str = ""
    edited: bool = False
    color: str = ""
    look: str = ""
    reactions: tuple[tuple[str, int, str], ...] = ()


@dataclass(frozen=True)
class JobRow:
    """A job in the list of checks. `look` is its conclusion, or its status while it has none."""

    id: int
    name: str
    look: str
    took: str


@dataclass(frozen=True)
class CheckCard:
    """A check run of an App; `buttons` are identifier, label and description of each."""

    id: int
    name: str
    look: str
    title: str
    html: str
    buttons: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class PageView:
    """Everything that the templates need; equal views render the same page."""

    repo: Repo
    pull: Pull
    labels: tuple[Label, ...]
    entries: tuple[Entry, ...]
    run: Run
    jobs: tuple[JobRow, ...]
    cards: tuple[CheckCard, ...]
    counts: tuple[tuple[str, int], ...]
    held: bool
    waiting: bool
    said: Said


def page_view(director: Director) -> PageView:
    repo, pull, run = director.repo, director.pull, director.newest_run()
    jobs = tuple(_job_row(job) for job in sorted(run.jobs, key=_urgency))
    counts = Counter(row.look for row in jobs)
    running_tests = any(job.spec.kind == "unit" and job.status == "in_progress" for job in run.jobs)
    held = director.github.player.is_held(run)
    return PageView(
        repo=repo,
        pull=pull,
        labels=tuple(repo.labels[name] for name in LABELS),
        entries=_entries(director.github.state, repo, pull),
        run=run,
        jobs=jobs,
        cards=tuple({check.name: _check_card(check) for check in director.github.checks(pull)}.values()),
        counts=tuple((look, counts[look]) for look in _ORDER if counts[look]),
        held=held,
        waiting=held and running_tests,
        said=director.said.now(),
    )


_ORDER = ("failure", "timed_out", "cancelled", "in_progress", "queued", "waiting", "success", "skipped")


def _look(job: Job) -> str:
    return job.conclusion or job.status


def _urgency(job: Job) -> tuple[int, int]:
    return (_ORDER.index(_look(job)), job.id)


def _job_row(job: Job) -> JobRow:
    took = ""
    if job.started_at and job.completed_at and job.conclusion != "skipped":
        took = f"{max((job.completed_at - job.started_at).total_seconds(), 0):.0f}s"
    return JobRow(job.id, job.name, _look(job), took)


def _check_card(check: CheckRun) -> CheckCard:
    return CheckCard(
        id=check.id,
        name=check.name,
        look=check.conclusion or check.status,
        title=check.title or "",
        html=render_markdown(check.summary or ""),
        buttons=tuple((one["identifier"], one["label"], one["description"]) for one in check.actions),
    )


def _entries(state: State, repo: Repo, pull: Pull) -> tuple[Entry, ...]:
    body = Entry(
        at=pull.created_at, kind="comment", actor=pull.author.login, bot=False, html=render_markdown(pull.body)
    )
    comments = [_comment_entry(comment) for comment in repo.comments_of(pull.number)]
    events = [
        Entry(
            at=item.at,
            kind=item.kind,
            actor=item.actor,
            bot=state.user(item.actor).type == "Bot",
            words=_EVENT_WORDS[item.kind],
            text=item.text,
            look=item.look,
            color=repo.labels[item.text].color if item.text in repo.labels else "",
        )
        for item in pull.timeline
    ]
    return (body, *sorted([*comments, *events], key=lambda entry: entry.at))


def _comment_entry(comment: Comment) -> Entry:
    return Entry(
        at=comment.created_at,
        kind="comment",
        actor=comment.user.login,
        bot=comment.user.type == "Bot",
        html=render_markdown(comment.body),
        anchor=f"issuecomment-{comment.id}",
        edited=comment.updated_at != comment.created_at,
        reactions=_reactions(comment),
    )


def _reactions(comment: Comment) -> tuple[tuple[str, int, str], ...]:
    by_content: dict[str, list[str]] = {}
    for reaction in comment.reactions:
        by_content.setdefault(reaction.content, []).append(reaction.user.login)
    return tuple((EMOJI[content], len(who), ", ".join(who)) for content, who in by_content.items())


def avatar_hue(login: str) -> int:
    """A colour for somebody without a picture, the same each time (degrees)."""
    return sum(ord(letter) * (index + 7) for index, letter in enumerate(login)) % _AVATAR_HUES


def log_lines(log: bytes | None) -> Sequence[str]:
    """The job's log for reading: without time stamps and colours."""
    return [_plain(line) for line in (log or b"").decode("utf-8", "replace").removeprefix("\ufeff").split("\n")]


def _plain(line: str) -> str:
    stamp, _, rest = line.partition(" ")
    text = rest if stamp.endswith("Z") and stamp[:2] == "20" else line
    parts = text.split("\x1b[")
    return parts[0] + "".join(part.partition("m")[2] for part in parts[1:])
