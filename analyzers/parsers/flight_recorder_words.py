"""The verdict as a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from analyzers.parsers.flight_recorder_model import Culprit, Reason

_PHRASES = {
    Reason.BEHIND: "never entered {operation}",
    Reason.ABSENT: "left no dump, and its peers wait for it in {operation}",
    Reason.STALLED: "entered {operation} and never finished it, though it {expected}",
    Reason.STOPPED: "stopped issuing work while waiting in {operation} ({expected})",
    Reason.NOT_STARTED: "issued {operation} but its GPU never started it, though its peers' did",
    Reason.OPERATION: "called {operation} where its peers called {expected}",
    Reason.INPUT_SIZE: "brought another input size to {operation} than its peers ({expected})",
    Reason.OUTPUT_SIZE: "brought another output size to {operation} than its peers ({expected})",
    Reason.DTYPE: "brought another type to {operation} than its peers ({expected})",
    Reason.ELSEWHERE: "stood in {operation} while its peers waited for it elsewhere",
    Reason.ORDER: "got into a ring of ranks that wait for each other, at {operation}",
    Reason.TOGETHER: "entered {operation} like its peers, and nobody finished it",
}


def in_words(
    culprits: Sequence[Culprit], suspects: Sequence[Culprit], waiting: Sequence[int], absent: Sequence[int] = ()
) -> str:
    """Say who hung the job, how it shows, and who waits."""
    if not culprits and not suspects:
        wait = f"{ranks_in_words(waiting).capitalize()} wait" if waiting else "No rank waits"
        return f"{wait}; the dumps tell nobody apart." if waiting else f"{wait} in any operation."
    said = "; ".join(_clauses(culprits)) or "The dumps accuse nobody for certain"
    if suspects:
        said += f". Less certain: {'; '.join(_clauses(suspects))}"
    if waiting:
        said += f". {ranks_in_words(waiting).capitalize()} {'waits' if len(waiting) == 1 else 'wait'} because of that"
    if silent := set(absent) - {each.rank for each in (*culprits, *suspects)}:
        said += f". {ranks_in_words(silent).capitalize()} left no dump"
    return said[0].upper() + said[1:] + "."


def _clauses(accused: Sequence[Culprit]) -> list[str]:
    alike: dict[tuple[Reason, str, int, str | None], list[Culprit]] = {}
    for each in accused:
        alike.setdefault((each.reason, each.group.name, each.seq, each.expected), []).append(each)
    return [f"{ranks_in_words(each.rank for each in some)} {_phrase(some[0])}" for some in alike.values()]


def _phrase(each: Culprit) -> str:
    operation = f"{each.operation} #{each.seq} of {each.group.title}"
    return _PHRASES[each.reason].format(operation=operation, expected=each.expected or "something else")


def ranks_in_words(ranks: Iterable[int]) -> str:
    """Write sorted ranks as people do: "rank 3", "ranks 0-3 and 7"."""
    spans: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if spans and spans[-1][1] == rank - 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    listed = ", ".join(texts[:-1]) + " and " + texts[-1] if len(texts) > 1 else "".join(texts)
    return f"{'rank' if listed.isdecimal() else 'ranks'} {listed}"
