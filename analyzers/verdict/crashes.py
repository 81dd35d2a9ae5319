"""What kind of failure a crash below Python is: a rank's own, or the abort that another rank's end leads to."""

from __future__ import annotations

from collections.abc import Sequence

from analyzers.model import Category, Confidence, Finding, Role
from analyzers.parsers.frames import Frame
from analyzers.parsers.native import TIMED_OUT, Crash
from analyzers.records import replace
from analyzers.rules import RuleSet
from analyzers.verdict.category import Kind, Scene, classify
from analyzers.verdict.findings import of_crash
from analyzers.verdict.stuck import kind_of_time_limit

#: C++ exceptions of torch.distributed and gloo: whatever they say, another rank was to answer.
_OF_PEERS = frozenset(f"c10::Dist{what}Error" for what in ("Backend", "Network", "Store")) | {
    "gloo::IoException",
    "gloo::TimeoutException",
}
#: A thread was left running: how many a process ends that was ended by something else.
_UNTOLD = "terminate called without an active exception"
#: Where multiprocessing begins a process of its own; a forked one's stack holds its parent's below it.
_BEGINS_CHILD = ("/multiprocessing/process.py", "/multiprocessing/popen_", "/multiprocessing/spawn.py")
_BEGINS_PROCESS = ("<module>", "_run_module_as_main")


def is_childs(frames: Sequence[Frame]) -> bool:
    """Whether a stack, outermost frame first, is that of a child which a test started, not of pytest's own process.

    What crashes while the interpreter ends has no frame, or none that a program begins with.
    """
    if any(part in frame.path for frame in frames for part in _BEGINS_CHILD):
        return True
    own = any("/_pytest/" in frame.path for frame in frames)
    return bool(frames) and frames[0].function in _BEGINS_PROCESS and not own


def kind_of_crash(rules: RuleSet, crash: Crash, *, has_timeouts: bool) -> Kind | None:
    """Tell a crash of its own from the abort that ends a process which waited too long; None if others say more."""
    if crash.signal == TIMED_OUT:
        return kind_of_time_limit(crash.frames)
    if crash.signal != "SIGABRT":
        return Kind(Category.CRASH_NATIVE)
    what = crash.message.partition("\n")[2]
    told = classify(rules, f"  what():  {what}", "", Scene.SCRIPT)
    if told.rule is None:
        told = classify(rules, what, "", Scene.SCRIPT) if what else told
    if told.rule is not None and told.role is Role.CAUSE and told.category is not Category.CRASH_NATIVE:
        return told
    if has_timeouts:
        return None  # the watchdog's own line says more
    if told.rule is None and crash.exception in _OF_PEERS:
        return Kind(Category.NETWORK, Role.CONSEQUENCE)
    return told if told.rule is not None else Kind(Category.CRASH_NATIVE)


def crashed(rank: int, file: str, crash: Crash, kind: Kind) -> Finding:
    """What a crash tells, and how much that is worth."""
    found = of_crash(rank, file, crash, kind)
    return replace(found, confidence=Confidence.LOW) if crash.message == _UNTOLD else found
