"""The verdict in one sentence, for people."""

from __future__ import annotations

from collections.abc import Sequence

from analyzers.comparison import Drift, GoldenComparison, MetricDifference
from analyzers.model import Attempt, Category, Error
from analyzers.patterns import pattern
from analyzers.verdict.accusation import Blame
from analyzers.verdict.reason import bare_head, bare_reason, reason_line

#: What the culprit did, after "rank 3"; the plural reads alike.
_WORDS = {
    Category.CUDA_OOM: "ran out of GPU memory",
    Category.HOST_OOM: "died for want of host memory",
    Category.CUDA_ERROR: "hit a CUDA error",
    Category.GPU_HARDWARE: "found no working GPU",
    Category.COLLECTIVE_TIMEOUT: "did not reach the collective that the others waited in",
    Category.NETWORK: "failed on the network",
    Category.PORT_COLLISION: "found the port in use",
    Category.DISK_FULL: "found the disk full",
    Category.NUMERICS_NAN: "found NaN or Inf",
    Category.CRASH_NATIVE: "crashed",
    Category.CRASH_PYTHON: "raised an exception",
    Category.TEST_ASSERTION: "failed an assertion",
    Category.TEST_ERROR: "failed a test",
    Category.COLLECTION: "failed before any test ran",
    Category.DEPENDENCY: "lacked a dependency, or had the wrong version",
}
_MESSAGE_CHARS = 160
#: Of a message whose reason stands in another line, this much of the first one.
_HEAD_CHARS = 60
#: Of more ranks than this the rest is counted.
_MOST_RANKS = 12
#: The process group that a watchdog speaks for.
_OF_GROUP = pattern(r"^\[PG [^\]]*\] ")
#: Added where one start failed, another passed, and their order is not known.
UNORDERED = "another start passed, and nothing in the logs tells which of the two came last"


def summarise(blame: Blame) -> str:
    """Return one sentence: who did what, where, and how many died of it."""
    finding = blame.finding
    message = _short(finding.error)
    if not blame.culprits:
        what = finding.category.value.replace("_", " ")
        return f"{what}: {message}" if message else what
    text = f"{_ranks(blame.culprits)} {_WORDS.get(finding.category, 'failed')}"
    hung = finding.category is Category.COLLECTIVE_TIMEOUT
    if finding.location:
        text += f" {'at' if hung else 'in'} {finding.location}"
    text += f": {message}" if message else ""
    if blame.victims:
        fate = "waited" if hung else "died of it"
        text += f"; {len(blame.victims)} other rank{'s' if len(blame.victims) > 1 else ''} {fate}"
    return text


def say_passed(attempts: Sequence[Attempt]) -> str:
    """Return `passes after a restart; start 1 failed: port_collision, rank 0`, or that nothing failed."""
    earlier = []
    for test in dict.fromkeys(attempt.test for attempt in attempts):
        own = [attempt for attempt in attempts if attempt.test == test]
        if own[-1].category is None:
            earlier += [(number, one) for number, one in enumerate(own, start=1) if one.category]
    if not earlier:
        return "nothing failed"
    told = "; ".join(f"start {number}{_of_test(one)} failed: {_failure(one)}" for number, one in earlier[:5])
    more = f"; and {len(earlier) - 5} more" if len(earlier) > 5 else ""
    return f"passes after a restart; {told}{more}"


def _of_test(attempt: Attempt) -> str:
    return f" of {attempt.test}" if attempt.test else ""


def _failure(attempt: Attempt) -> str:
    return f"{attempt.category}" + (f", {_ranks(attempt.ranks)}" if attempt.ranks else "")


def say_golden(comparison: GoldenComparison) -> str:
    """Return in words what the numbers look like, by the first metric that differs."""
    kinds = {
        Drift.DRIFT: "looks like drift",
        Drift.REGRESSION: "looks like a regression",
        Drift.MISSING: "values are missing",
        Drift.UNCLEAR: "no log tells by how much",
    }
    more = len(comparison.metrics) - 1
    told = say_metric(comparison.metrics[0])
    return f"{kinds[comparison.kind]}: {told}" + (f", and {more} more metric{'s' if more > 1 else ''}" if more else "")


def say_metric(one: MetricDifference) -> str:
    """Return where one metric differs and by how much: `lm loss differs from step 10 on, by up to 0.025%`."""
    if one.first_step is None:
        return f"{one.metric} differs" if one.compared else f"{one.metric}: no values to compare were found"
    if one.compared == 1:
        return f"{one.metric} differs by {_percent(one)}"
    noun = "step" if one.steps_known else "compared value"
    return f"{one.metric} differs from {noun} {one.first_step} on, by {_percent(one)}"


def say_checks(one: MetricDifference) -> str:
    """Return which of the two checks a metric failed: `exact failed, approximate passed`."""
    words = {True: "passed", False: "failed"}
    checks = [("exact", one.exact), ("approximate", one.approximate)]
    return ", ".join(f"{name} {words[passed]}" for name, passed in checks if passed is not None)


def _percent(one: MetricDifference) -> str:
    if one.largest_relative is None:
        return "what cannot be measured (NaN, infinite, absent, or 0 expected)"
    much = f"{100 * one.largest_relative:.2g}%" if one.largest_relative < 1 else f"{one.largest_relative:.3g} times"
    return much if one.compared == 1 else f"up to {much}"


def _short(error: Error) -> str:
    said = _telling(error.message)
    name = (error.type or "").rpartition(".")[2]
    text = f"{name}: {said}" if name and said else name or said
    return text if len(text) <= _MESSAGE_CHARS else text[: _MESSAGE_CHARS - 3] + "..."


def _telling(message: str) -> str:
    """Return the words of a message that say why: of several lines it is not always the first that does."""
    lines = [line.strip() for line in message.split("\n") if line.strip()] or [""]
    place = reason_line(lines)
    why = _OF_GROUP.sub("", bare_reason(lines[place]))
    if not place:
        return f"{lines[0]} {lines[1]}" if lines[0].endswith(":") and lines[1:] else lines[0]
    head = bare_head(lines[0]).rstrip(": ")
    if len(head) > _HEAD_CHARS:
        head = f"{head[:_HEAD_CHARS].rpartition(' ')[0]} ..."
    return f"{head}: {why}" if head else why


def _ranks(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 4 and ranks[-1] - ranks[0] == len(ranks) - 1:  # sorted, each once
        return f"ranks {ranks[0]} to {ranks[-1]}"
    if len(ranks) > _MOST_RANKS:
        return f"ranks {', '.join(map(str, ranks[:_MOST_RANKS]))} and {len(ranks) - _MOST_RANKS} more"
    return f"ranks {', '.join(str(rank) for rank in ranks[:-1])} and {ranks[-1]}"
