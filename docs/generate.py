"""Write the pages that are made from the code: docs/rules.md and docs/commands.md.

Run by `make docs`; a test holds them current. The prose around each table is in docs/made/.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from string import Template

from analyzers.rules import RuleSet
from config.repo import default_config
from config.rule_files import rule_documents
from handlers.commands.registry import VERBS
from handlers.commands.vocabulary import ALIASES

DOCS = Path(__file__).parent


def rules_table() -> str:
    """Every rule with its category, whom it blames, and which program prints such a line."""
    rules = RuleSet.from_documents(rule_documents())
    rows = [f"| `{rule.id}` | `{rule.category}` | {rule.blames} | {rule.source} |" for rule in rules]
    return "\n".join(["| rule | category | blames | source |", "|---|---|---|---|", *rows])


def _grants(grants: Iterable[str]) -> str:
    return ", ".join(f"`{grant}`" for grant in grants)


def commands_table() -> str:
    """Every command, with who may give it by default and its other names."""
    allowed = default_config().commands
    rows = []
    for verb in VERBS.values():
        usage = "<br>".join(f"`{line}`" for line in verb.usage)
        also = ", ".join(f"`{alias}`" for alias, name in ALIASES.items() if name == verb.name)
        who = _grants(allowed[verb.name])
        who += "".join(f"<br>`{line}`: {_grants(allowed[right])}" for line, right in verb.apart.items())
        rows.append(f"| {usage} | {verb.summary} | {who} | {also} |")
    return "\n".join(["| command | what it does | who, by default | also |", "|---|---|---|---|", *rows])


TABLES = {"rules.md": rules_table, "commands.md": commands_table}


def pages() -> dict[str, str]:
    """Each made page by its name."""
    return {
        name: Template((DOCS / "made" / name).read_text()).substitute(table=table()) for name, table in TABLES.items()
    }


if __name__ == "__main__":
    for page_name, text in pages().items():
        (DOCS / page_name).write_text(text)
