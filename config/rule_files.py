"""The data files beside this module, as plain documents: the rules, and what to type next.

Parsing YAML takes longer than the whole analysis of a small artifact. So what was parsed is kept where Python keeps
compiled modules, under the same conditions: the files are unchanged, and the folder may be written.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


@cache
def rule_documents() -> tuple[Any, ...]:
    """Return the documents of config/rules/*.yaml in the order of their names, which is the order of the rules."""
    return tuple(_documents("rules", sorted((FOLDER / "rules").glob("*.yaml"))))


@cache
def fix_document() -> Any:
    """Return config/fixes.yaml: per category, what to type next."""
    return _documents("fixes", [FOLDER / "fixes.yaml"])[0]


def _documents(name: str, files: Sequence[Path]) -> list[Any]:
    state = [[file.name, stat.st_size, stat.st_mtime_ns] for file in files for stat in (file.stat(),)]
    kept = Path(cache_from_source(str(FOLDER / f"{name}.yaml"))).with_suffix(".json")
    known = _read_kept(kept)
    if known is not None and known["state"] == state:
        return list(known["documents"])
    documents = [_parse(file) for file in files]
    if not sys.dont_write_bytecode:
        _keep(kept, {"state": state, "documents": documents})
    return documents


def _parse(file: Path) -> Any:
    import yaml  # noqa: PLC0415 (slow to load)

    # The C loader is ten times as fast; PyYAML is sometimes built without it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(file.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506  (both are safe loaders)


def _read_kept(kept: Path) -> Any:
    try:
        return json.loads(kept.read_bytes())
    except (OSError, ValueError):  # not kept yet, or not written to its end: as good as nothing
        return None


def _keep(kept: Path, content: dict[str, Any]) -> None:
    part = kept.with_suffix(f".{os.getpid()}")
    try:
        kept.parent.mkdir(exist_ok=True)
        part.write_text(json.dumps(content), encoding="utf-8")
        part.replace(kept)
    except OSError:  # a package that may not be written is the rule in an image; then it is parsed each time
        part.unlink(missing_ok=True)
