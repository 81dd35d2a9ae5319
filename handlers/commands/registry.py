"""All commands. Help, docs and permissions are made from this one table."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from handlers.context import Context
from handlers.render.safe_text import code

from . import answers, labelling, looking, telling
from .asking import Ask, Outcome, Verb
from .grammar import Help
from .rerun import rerun


async def _help(command: Help, ask: Ask, ctx: Context) -> Outcome:
    """List what this person may do here, or explain one command."""
    if command.verb is not None and command.verb in VERBS:
        return Outcome(_entry(VERBS[command.verb]))
    apart = {line: right for verb in VERBS.values() for line, right in verb.apart.items()}
    here = {name: name for name in VERBS if ask.pull is not None or not VERBS[name].needs_pull}
    allowed = await answers.allowed_verbs(here | apart, ask, ctx)
    closed = apart.keys() - allowed
    lines = [_entry(VERBS[name], closed) for name in allowed if name in VERBS]
    more = "" if len(lines) == len(VERBS) and not closed else "\n\nOther commands need more rights, or a pull request."
    return Outcome("What you can type here, one command a line:\n\n" + "\n".join(lines) + more)


def _entry(verb: Verb, closed: AbstractSet[str] = frozenset()) -> str:
    return f"- {', '.join(code(usage) for usage in verb.usage if usage not in closed)}: {verb.summary}"


VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb(
            "rerun",
            (
                "/mlm rerun failed",
                "/mlm rerun unit models",
                "/mlm rerun functional <test>",
                "/mlm rerun lint",
                "/mlm rerun build",
                '/mlm rerun job "<name or id>"',
                "/mlm rerun all",
            ),
            "run jobs of the newest attempt again. `--dry-run` only tells what would be started; `--now` cancels a "
            "run in progress instead of waiting for it; `--sha <hash>` only if that is the head; `--force` for a job "
            "that passed; `--h100` or `--gb200` for one platform.",
            rerun,
            mutates=True,
            apart={"/mlm rerun all": "rerun-all"},
        ),
        Verb(
            "run",
            ("/mlm run tests", "/mlm run functional", "/mlm run lts", "/mlm run mbridge", "/mlm run nemo-rl"),
            "set the label and make CI read it; several words work together.",
            labelling.run,
            mutates=True,
        ),
        Verb("cancel", ("/mlm cancel",), "cancel the newest run of this commit.", answers.cancel, mutates=True),
        Verb("analyze", ("/mlm analyze",), "read the logs of the failed jobs again.", answers.analyze),
        Verb("status", ("/mlm status",), "how the newest run stands.", answers.status),
        Verb("queue", ("/mlm queue",), "how long the run has waited for approval, and behind whom.", looking.queue),
        Verb("logs", ("/mlm logs", "/mlm logs <job>"), "links to logs and artifacts.", looking.logs),
        Verb("labels", ("/mlm labels",), "what the labels ask for, and what CI really does.", answers.labels),
        Verb("label", ("/mlm label <name>",), "add a label that CI reads.", labelling.label, mutates=True),
        Verb("unlabel", ("/mlm unlabel <name>",), "take such a label off.", labelling.unlabel, mutates=True),
        Verb(
            "mute",
            ("/mlm mute", "/mlm mute job <job>"),
            "no comments unless asked, or none about a job.",
            telling.mute,
            mutates=True,
        ),
        Verb("unmute", ("/mlm unmute", "/mlm unmute job <job>"), "comment again.", telling.unmute, mutates=True),
        Verb(
            "flaky",
            ("/mlm flaky <test> #<issue>",),
            "record a test that is known to fail now and then.",
            telling.flaky,
            mutates=True,
        ),
        Verb(
            "feedback",
            ("/mlm feedback right", "/mlm feedback wrong [category]"),
            "tell whether the analysis was right.",
            telling.feedback,
        ),
        Verb("why", ("/mlm why",), "what I did last here, by whose word and why.", looking.why),
        Verb("help", ("/mlm help",), "this list.", _help, needs_pull=False),
        Verb("ping", ("/mlm ping",), "am I there?", answers.ping, needs_pull=False),
        Verb("version", ("/mlm version",), "which version I am.", answers.version, needs_pull=False),
    )
}
