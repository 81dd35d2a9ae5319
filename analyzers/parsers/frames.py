"""Which frames of a stack are in the repository under test, and where."""

from __future__ import annotations

from analyzers.patterns import pattern
from analyzers.records import dataclass

#: Installed code, the interpreter's own, and what has no file.
_OUTSIDE = pattern(
    r"(?:site|dist)-packages/|/lib/python\d|^/usr/|^<|(?:^|/)\.?v?env/|^\.\./|/(?:mini)?conda\d?/|/tmp/torchinductor"
)
#: Top folders of Megatron-LM. A relative path that starts elsewhere may be a compiled module's (`zmq/backend/...`).
_TOPS = frozenset({"megatron", "tests", "tools", "examples", "tasks", "scripts", "benchmarks", "src"})
#: Of these, the ones that a folder above the checkout is hardly named after.
_PACKAGES = frozenset({"megatron", "tests"})
#: Scripts that stand at the root of the repository and are run by the launcher.
_SCRIPT = pattern(r"(?:(?:pretrain|train|run|main|setup|conftest|model_provider)[\w-]*|\w+_builders)\.py")


@dataclass(frozen=True)
class Frame:
    """One line of a stack: the path as printed, the 1-based line, the function's name."""

    path: str
    line: int
    function: str = ""


def in_repository(path: str, root: str | None = None) -> str | None:
    """Return the path relative to the root of the repository under test, None for a frame of anything else.

    Args:
        path: as printed in a traceback, absolute or relative to the root.
        root: pytest's `rootdir`, if the log names it.
    """
    if _OUTSIDE.search(path):
        return None
    if root and path.startswith(root.rstrip("/") + "/"):
        return path[len(root.rstrip("/")) + 1 :]
    parts = path.split("/")
    if not path.startswith("/"):
        return path if parts[0] in _TOPS or (len(parts) == 1 and _SCRIPT.fullmatch(path)) else None
    place = _top(parts)
    if place is not None:
        return "/".join(parts[place:])
    return parts[-1] if _SCRIPT.fullmatch(parts[-1]) else None


def _top(parts: list[str]) -> int | None:
    """Return where an absolute path enters the repository; the checkout may be named like a part of it."""
    places = [
        place
        for place, part in enumerate(parts[:-1])
        if place and part in _TOPS and parts[place + 1] not in _TOPS
        if part != "megatron" or not parts[place + 1].endswith(".py")  # the package holds only packages
    ]
    sure = (place for place in places if parts[place] in _PACKAGES)
    return next(sure, places[0] if places else None)


def innermost(frames: list[Frame] | tuple[Frame, ...], root: str | None = None) -> Frame | None:
    """Return the last of the frames (outermost first) that is in the repository, its path made relative."""
    for frame in reversed(frames):
        path = in_repository(frame.path, root)
        if path is not None:
            return Frame(path, frame.line, frame.function)
    return None
