"""The data files beside this module, as plain documents: the rules, and what to type next.

Parsing YAML takes longer than the whole analysis of a small artifact. So what was parsed is kept where Python keeps
compiled modules, in the form that it keeps them in and under the same conditions: the files have the same sizes and
times, and the folder may be written. Who could put something else there could as well replace the modules.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib
from _thread import get_ident
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

FOLDER = os.path.dirname(__file__)
_CHECKSUM_BYTES = 4
#: What was begun so long before has not been finished, and never will be.
_ABANDONED_AFTER_S = 60


@cache
def rule_documents() -> tuple[Any, ...]:
    """Return the documents of config/rules/*.yaml in the order of their names, which is the order of the rules."""
    return tuple(documents(os.path.join(FOLDER, "rules"), _kept("rules")))


@cache
def fix_document() -> Any:
    """Return config/fixes.yaml: per category, what to type next."""
    return documents(os.path.join(FOLDER, "fixes.yaml"), _kept("fixes"))[0]


def documents(path: str, kept: str | None) -> list[Any]:
    """Return the document of a YAML file, or of all in a folder in the order of their names.

    Args:
        kept: where the parsed documents are kept; None for nowhere.
    """
    files = [path]
    if os.path.isdir(path):
        files = [os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".yaml")]
    return list(_remembered(kept, files, None, lambda: _parse(files)))


def remembered(name: str, source: str, of: Any, make: Callable[[], Any]) -> Any:
    """Return what `make` makes, or has made in an earlier process.

    Args:
        name: of the file beside the compiled modules.
        source: the path of the code that makes it: if it has changed, it is made anew.
        of: what it is made of; this and what is made are plain lists, tuples, strings, bytes and numbers.
    """
    return _remembered(_kept(name), [source], of, make)


def _remembered(kept: str | None, files: Sequence[str], of: Any, make: Callable[[], Any]) -> Any:
    facts = [[os.path.basename(file), stat.st_size, int(stat.st_mtime)] for file in files for stat in (os.stat(file),)]
    known = _read_kept(kept) if kept else None
    if isinstance(known, list) and len(known) == 2 and known[0] == [facts, of]:
        return known[1]
    made = make()
    if kept and not sys.dont_write_bytecode:
        _keep(kept, [[facts, of], made])
    return made


def _kept(name: str) -> str | None:
    """Return where to keep parsed documents; None where Python itself keeps nothing, as inside of a zip file."""
    cached = __spec__.cached if __spec__ else None
    return f"{os.path.dirname(cached)}/{name}.{sys.implementation.cache_tag}.parsed" if cached else None


def _parse(files: Sequence[str]) -> list[Any]:
    import yaml  # noqa: PLC0415 (slow to load)

    # The C loader is ten times as fast; PyYAML is sometimes built without it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    parsed = []
    for file in files:
        with open(file, encoding="utf-8") as text:
            parsed.append(yaml.load(text, Loader=loader))  # noqa: S506  (both are safe loaders)
    return parsed


def _read_kept(kept: str) -> Any:
    try:
        with open(kept, "rb") as file:
            checksum, content = file.read(_CHECKSUM_BYTES), file.read()
        if checksum != _checksum(content):  # a machine that lost its power may leave zeros in the middle
            return None
        return marshal.loads(content)  # noqa: S302 (as the compiled module beside it is read)
    except (OSError, ValueError, EOFError, TypeError):  # not kept yet, or nothing of ours: as good as nothing
        return None


def _checksum(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECKSUM_BYTES, "little")


def _keep(kept: str, content: Any) -> None:
    part = f"{kept}.{os.getpid()}.{get_ident()}"  # others may be at it too
    try:
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        with open(part, "wb") as file:
            dumped = marshal.dumps(content)
            file.write(_checksum(dumped) + dumped)
        _sweep(kept, os.stat(part).st_mtime)
        os.replace(part, kept)
    except OSError:  # a package that may not be written is the rule in an image; then it is parsed each time
        if os.path.exists(part):
            os.unlink(part)


def _sweep(kept: str, now_s: float) -> None:
    """Delete what processes that were killed while they kept the same have left of it."""
    with os.scandir(os.path.dirname(kept)) as there:
        left = [one for one in there if one.name.startswith(f"{os.path.basename(kept)}.")]
    for one in left:
        try:
            if now_s - one.stat().st_mtime > _ABANDONED_AFTER_S:
                os.unlink(one.path)
        except FileNotFoundError:  # finished just now, or deleted by another
            continue
