"""Which of several causes explains the others, where ranks have failed of different things."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analyzers.model import Category, Confidence, Finding
from analyzers.patterns import pattern
from analyzers.verdict.accusation import SIGTERM, Exits
from analyzers.verdict.fingerprint import normalise
from analyzers.verdict.story import RankStory

#: When ranks fail of different things, the one that stands nearer to the start of this list explains the others.
EXPLAINS = (
    Category.GPU_HARDWARE,
    Category.HOST_OOM,
    Category.DISK_FULL,
    Category.CUDA_OOM,
    Category.CUDA_ERROR,
    Category.NUMERICS_NAN,
    Category.PORT_COLLISION,
    Category.DEPENDENCY,
    Category.COLLECTION,
    Category.CRASH_NATIVE,
    Category.NETWORK,
)
#: Whoever talks to another process (a manager, a server that another rank runs) sees no more of its end than these.
_OF_A_PEER = frozenset(
    {
        "ActorDiedError",  # ray
        "Again",  # zmq
        "BrokenPipeError",
        "BrokenProcessPool",
        "CancelledError",
        "ConnectionAbortedError",
        "ConnectionRefusedError",
        "ConnectionResetError",
        "EOFError",
        "Empty",
        "IncompleteReadError",
        "ServerDisconnectedError",
        "TimeoutError",
        "nixlRemoteDisconnectError",
    }
)
#: The rule that knows them by the number of the error; any other knows more.
_BY_NUMBER = "connection-errno"
#: NCCL's word for whatever it did not expect: a peer that leaves while it connects is such a thing.
_UNEXPECTED = "nccl-internal"
_ON_THIS_NODE = pattern(r"\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0)\b|\[::1?\]")
_HELPER_GONE = pattern(r"^(?:DataLoader worker \(pid\(s\) [\d, ]+\)|Pin memory thread) exited unexpectedly")
#: The other side does not answer any more: its link is down, or its process has gone.
_RETRIES_SPENT = pattern(r"Got completion from peer .*(?:status=\w*\(?|with error )1[23]\b")


def may_be_a_peers(finding: Finding) -> bool:
    """Whether an error may only say that another process is gone: the cause as long as nobody has one of its own."""
    said = finding.error.message
    if finding.category is Category.NETWORK and (_ON_THIS_NODE.search(said) or _RETRIES_SPENT.search(said)):
        return True
    if finding.rule == _UNEXPECTED:
        return True
    if finding.rule not in (None, _BY_NUMBER):
        return False
    return (finding.error.type or "").rpartition(".")[2] in _OF_A_PEER or bool(_HELPER_GONE.search(said))


def first_cause(stories: Mapping[int, RankStory], causes: Mapping[int, Finding], exits: Exits) -> Finding:
    """Choose among different causes.

    The earlier test comes first, as all ranks run the same tests in the same order and those that go on after one has
    failed run into false errors; then what is no peer's end, what explains the others, what the launcher saw first,
    the lowest rank.
    """
    first_at = min((e.at for e in exits.exits if e.at and e.exit_code != SIGTERM), default=None)
    early = {e.rank for e in exits.exits if e.at and first_at and (e.at - first_at).total_seconds() <= 1}

    woven = len({finding.evidence.file for finding in causes.values()}) == 1

    def weight(item: tuple[int, Finding]) -> tuple[int, bool, int, bool, bool, int, int]:
        rank, finding = item
        place = EXPLAINS.index(finding.category) if finding.category in EXPLAINS else len(EXPLAINS)
        unsure = finding.confidence is not Confidence.HIGH
        line = finding.evidence.line if woven else 0  # a file of several ranks is written as time goes by
        late = bool(early) and rank not in early
        return stories[rank].position, may_be_a_peers(finding), place, unsure, late, line, rank

    return min(causes.items(), key=weight)[1]


def is_same(one: Finding, other: Finding) -> bool:
    """Whether two ranks have failed of the same thing."""
    if (one.category, one.error.type) != (other.category, other.error.type):
        return False
    if one.location and other.location:
        return one.location == other.location
    return normalise(one.error.message) == normalise(other.error.message)


def earliest(findings: Sequence[Finding]) -> Finding:
    """Return the lowest rank's finding; where all stand in one file, the first in it."""
    if len({finding.evidence.file for finding in findings}) == 1:
        return min(findings, key=lambda finding: finding.evidence.line)
    return min(findings, key=lambda finding: finding.rank or 0)
