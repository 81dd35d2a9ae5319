"""All commands. Help, docs and permissions are made from this one table."""

from __future__ import annotations

from handlers.context import Context
from handlers.render.safe_text import code

from . import answers
from .asking import Ask, Outcome, Verb
from .grammar import Help
from .rerun import rerun


async def _help(command: Help, ask: Ask, ctx: Context) -> Outcome:
    """List what this person may do here, or explain one command."""
    if command.verb is not None and command.verb in VERBS:
        return Outcome(_entry(VERBS[command.verb]))
    rights = {name: name for name in VERBS if ask.pull is not None or not VERBS[name].needs_pull}
    allowed = await answers.allowed_verbs(rights, ask, ctx)
    lines = [_entry(VERBS[name]) for name in allowed]
    more = "" if len(allowed) == len(VERBS) else "\n\nOther commands need more rights, or a pull request."
    return Outcome("What you can type here, one command a line:\n\n" + "\n".join(lines) + more)


def _entry(verb: Verb) -> str:
    return f"- {', '.join(code(usage) for usage in verb.usage)}: {verb.summary}"


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
            "run jobs of the newest attempt again; `--dry-run` only tells what would be started.",
            rerun,
            mutates=True,
        ),
        Verb("cancel", ("/mlm cancel",), "cancel the newest run of this commit.", answers.cancel, mutates=True),
        Verb("analyze", ("/mlm analyze",), "read the logs of the failed jobs again.", answers.analyze),
        Verb("status", ("/mlm status",), "how the newest run stands.", answers.status),
        Verb("labels", ("/mlm labels",), "what the labels ask for, and what CI really does.", answers.labels),
        Verb("help", ("/mlm help",), "this list.", _help, needs_pull=False),
        Verb("ping", ("/mlm ping",), "am I there?", answers.ping, needs_pull=False),
        Verb("version", ("/mlm version",), "which version I am.", answers.version, needs_pull=False),
    )
}
