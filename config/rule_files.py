"""The data files beside this module, as plain documents: the rules, and what to type next."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

#: The C loader is ten times as fast and start-up is felt on a command line; PyYAML is sometimes built without it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def rule_documents() -> tuple[Any, ...]:
    """Return the documents of config/rules/*.yaml in the order of their names, which is the order of the rules."""
    folder = files("config") / "rules"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return tuple(_load(f"rules/{name}") for name in names)


@cache
def fix_document() -> Any:
    """Return config/fixes.yaml: per category, what to type next."""
    return _load("fixes.yaml")


def _load(name: str) -> Any:
    text = (files("config") / name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=_LOADER)  # noqa: S506  (both are safe loaders)
