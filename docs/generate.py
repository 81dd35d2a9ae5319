"""Write the pages that are made from the code: docs/rules.md and docs/commands.md. Run by `make docs`; a test holds them current."""

from __future__ import annotations

from pathlib import Path

from config.rule_files import rule_documents

DOCS = Path(__file__).parent


def rules_page() -> str:
    """The table of rules: every id with its category, whom it blames, and which program prints such a line."""
    rows = [f"| `{rule['id']}` | `{rule['category']}` | {rule['blames']} | {rule['source']} |" for rule in rule_documents()]
    head = ["# Rules", "Made from `config/rules/*.yaml` by `make docs`. The first rule that matches a line counts.", ""]
    return "\n".join([*head, "| rule | category | blames | source |", "|---|---|---|---|", *rows, ""])


PAGES = {"rules.md": rules_page}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
