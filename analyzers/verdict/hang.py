"""Nobody failed, everybody waited: which rank is behind, absent, or in another operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from analyzers.model import Category, Confidence, Finding, Role
from analyzers.records import replace
from analyzers.verdict.story import RankStory

#: Each pair of ranks counts these on its own.
_POINT_TO_POINT = ("SEND", "RECV", "COALESCED")


def find_laggards(stories: Mapping[int, RankStory]) -> tuple[tuple[int, ...], Finding] | None:
    """Return the ranks that the others waited for, and the finding to show; None if nobody ran into a time-out.

    In the order of what proves most: a rank in an earlier or another operation than the others, by its own watchdog or
    its own status line, even if it went on later; else the ranks that say nothing of a time-out while all others do.
    """
    waiting = {rank: story for rank, story in stories.items() if _waited(story)}
    if not waiting:
        return _left_alone(stories)
    told = [story for story in stories.values() if story.last is not None]
    odd = _in_another_operation(waiting, complete=len(waiting) == len(told))
    if odd:
        own = [story.first for rank in odd if (story := stories[rank]).first is not None]
        finding = min((f for f in own if f), key=lambda f: f.rank or 0)
        sure = len(told) == len(stories)  # else a rank without a log may have been in any operation
        return odd, finding if sure else replace(finding, confidence=Confidence.MEDIUM)
    late = _came_later(stories, waiting)
    if late:  # of several, one may have waited for another in a group whose time was not yet up
        found = _first_to_say(waiting)
        return late, found if len(late) == 1 else replace(found, confidence=Confidence.MEDIUM)
    absent = tuple(rank for rank, story in stories.items() if rank not in waiting and not story.finished)
    absent = _without_peer_errors(stories, absent) or absent
    absent = tuple(rank for rank in absent if stories[rank].last is not None) or absent  # a log was seen to stop
    finding = _first_to_say(waiting)
    others = [story for rank, story in stories.items() if rank not in waiting]
    seen = [story for story in others if story.last is not None]
    if seen and all(story.finished for story in seen):
        # The others are through with everything: these entered an operation that nobody else would come to.
        return tuple(waiting), replace(finding, confidence=Confidence.MEDIUM if seen == others else Confidence.LOW)
    if not absent or len(absent) * 2 > len(stories):
        return _behind(stories), replace(finding, confidence=Confidence.LOW)
    if len(absent) > 1 and all(stories[rank].last is None for rank in absent):
        return absent, replace(finding, confidence=Confidence.MEDIUM)  # a log may have got lost on its way
    return absent, finding


def _waited(story: RankStory) -> bool:
    first = story.first
    waits = first is not None and first.category is Category.COLLECTIVE_TIMEOUT and first.role is Role.CONSEQUENCE
    return bool(story.timeouts) or waits


def _in_another_operation(waiting: Mapping[int, RankStory], *, complete: bool) -> tuple[int, ...]:
    """Compare, group by group, where each rank's own watchdog fired: the few that disagree with the most are odd.

    Where lines name no group and nobody is absent (`complete`), the few wait for ranks of the most.
    """
    by_group: dict[str, dict[int, tuple[int, str]]] = {}
    for rank, story in waiting.items():
        for event in story.timeouts:
            if event.seq is not None and not event.signature.startswith(_POINT_TO_POINT):
                by_group.setdefault(event.group, {}).setdefault(rank, (event.seq, event.signature))
    for group, places in by_group.items():
        counts = Counter(places.values()).most_common()
        if len(counts) < 2:
            continue
        most, count = counts[0]
        if not group and not _is_one_group(places.values()) and not (complete and count * 2 > len(places)):
            continue
        if count * 2 > len(places):
            return tuple(rank for rank, place in places.items() if place != most)
        lowest = min(seq for seq, _ in places.values())
        behind = tuple(rank for rank, (seq, _) in places.items() if seq == lowest)
        if len(behind) < len(places):
            return behind
    return ()


def _is_one_group(places: Iterable[tuple[int, str]]) -> bool:
    """Whether the lines may be of one process group, which they do not name: counters of different groups differ."""
    numbers, signatures = zip(*places, strict=True)
    return len(set(numbers)) == 1 or len(set(signatures)) == 1


def _left_alone(stories: Mapping[int, RankStory]) -> tuple[tuple[int, ...], Finding] | None:
    """Those who lost a peer that had done everything it had to do: they were in an operation too many."""
    lost = {
        rank: story.first
        for rank, story in stories.items()
        if story.first and story.first.role is Role.CONSEQUENCE and story.states
    }
    others = [story for rank, story in stories.items() if rank not in lost]
    if not lost or not others or not all(story.finished and story.last is not None for story in others):
        return None
    first = next(iter(lost.values()))
    found = replace(first, category=Category.COLLECTIVE_TIMEOUT, retryable=None, confidence=Confidence.LOW)
    return tuple(lost), found


def _came_later(stories: Mapping[int, RankStory], waiting: Mapping[int, RankStory]) -> tuple[int, ...]:
    """The ranks that had not come to the operation when the others' time was up, by their status line of then."""
    waited: dict[str, int] = {}
    for event in (event for story in waiting.values() for event in story.timeouts):
        if event.group and event.seq is not None and not event.signature.startswith(_POINT_TO_POINT):
            waited[event.group] = min(event.seq, waited.get(event.group, event.seq))
    return tuple(
        rank
        for rank, story in stories.items()
        if rank not in waiting
        and any(event.enqueued is not None and event.enqueued < waited.get(event.group, 0) for event in story.states)
    )


def _behind(stories: Mapping[int, RankStory]) -> tuple[int, ...]:
    """The ranks whose status line counts fewer operations than the others'."""
    enqueued = {
        rank: max(event.enqueued for event in story.states if event.enqueued is not None)
        for rank, story in stories.items()
        if any(event.enqueued is not None for event in story.states)
    }
    if len(set(enqueued.values())) < 2:
        return ()
    lowest = min(enqueued.values())
    return tuple(rank for rank, count in enqueued.items() if count == lowest)


def _without_peer_errors(stories: Mapping[int, RankStory], ranks: tuple[int, ...]) -> tuple[int, ...]:
    """A rank that lost its peer was waiting too."""
    return tuple(rank for rank in ranks if (first := stories[rank].first) is None or first.role is not Role.CONSEQUENCE)


def _first_to_say(waiting: Mapping[int, RankStory]) -> Finding:
    """The earliest time-out where the lines have times, else the lowest rank's."""
    stories = [story for story in waiting.values() if story.first is not None]
    timed = [story for story in stories if story.when is not None]
    chosen = min(timed, key=lambda story: (story.when or 0.0, story.rank)) if timed else stories[0]
    if chosen.first is None:
        raise ValueError("a story of waiting without a finding")
    return chosen.first
