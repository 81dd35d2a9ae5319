"""The literals that make a line interesting, and how they are looked for in every byte of a log.

A search over all bytes is fast for a few dozen short keys only, so each anchor is found by a key: a part of it that it
may share with others. A line with a key is then looked at for the anchors themselves. Thus the number of rules does not
matter to the cost per byte, and what is found does not depend on the choice of the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from math import prod

from analyzers.reading.literals import PATTERNS_PER_SEARCH, Search, complete_search, separate_search
from analyzers.records import dataclass

#: A key that several anchors share has so many bytes, any other is the rarest part of its anchor of at most this size.
SHARED_BYTES, KEY_BYTES = 5, 8
#: The vector search tells keys apart by their first bytes: rare ones spare it looking twice.
_TELLING_BYTES = 4
#: A shared key that is expected more often than this (per byte of ordinary logs) would cost more than it spares.
_TOO_COMMON = 1e-6

#: What healthy logs are full of. A part of an anchor that stands in here is no key that anchors should share.
ORDINARY = """\
2026-03-14 10:02:11,224 INFO megatron.core.utils [rank 3] building GPT model ... done, time elapsed: 1.21 s
 [2026-03-14 10:02:11.224] iteration 1200/ 5000 | consumed samples: 38400 | elapsed time per iteration (ms): 412.1
 | throughput per GPU (TFLOP/s/GPU): 402.1 | learning rate: 1.400000E-04 | global batch size: 256 | lm loss: 2.31E+00
 | load_balancing_loss: 1.1 | loss scale: 1.0 | grad norm: 0.512 | num zeros: 0 | params norm: 912.1 |
 number of skipped iterations: 0 | number of nan iterations: 0 | mem-allocated-bytes: 71234567890 |
ip-10-0-12-87:3433:4100 [3] NCCL INFO Channel 02/0 : 3[3] -> 4[4] via P2P/IPC/read comm 0x5581 nRanks 08 busId
NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics); Using network Libfabric
/opt/venv/lib/python3.12/site-packages/torch/utils/checkpoint.py:86: UserWarning: None of the inputs have
 requires_grad=True. Gradients will be None
WARNING:megatron.core.transformer: fused kernel is not used; falling back to unfused attention, please set
DeprecationWarning: the function is deprecated and will be removed in a future release, use torch.distributed
saving checkpoint at iteration 1000 to /mnt/checkpoints in torch_dist format; successfully saved checkpoint from
validation loss at iteration 1000 | lm loss value: 2.1 | lm loss PPL: 8.1 | time across ranks (ms): forward-back
tests/unit_tests/models/test_gpt_model.py::TestGPTModel::test_constructor[case-000001] PASSED [ 10%]
E0314 W0314 I0314 10:02:11.224000 3028 torch/distributed/elastic/multiprocessing/api.py:1028] rank: 3, world_size
wandb: Tracking run with wandb; downloading model from huggingface_hub cache, loading tokenizer, memory allocated
"""


@dataclass(frozen=True)
class Anchor:
    """A literal that makes a line interesting, with the number of lines after it that belong to it.

    `most` caps floods: further lines with this anchor are told only if something else asks for them, and counted up to
    `counted`; then the anchor is looked for no more.
    """

    literal: str
    after: int = 0
    most: int = 1_000

    @property
    def counted(self) -> int:
        """How many are counted: enough to know a flood; beyond it each log would pay for lines that nobody is told."""
        return 2 * self.most


@dataclass(frozen=True)
class KeySearch:
    """Compiled keys. `find` gives (index of the key, start, end); in `own` are those that are whole anchors."""

    keys: tuple[bytes, ...]
    own: frozenset[bytes]
    find: Search


class Anchors:
    """A compiled set of anchors; build it once, use it for any number of logs, from any thread."""

    def __init__(self, anchors: Sequence[Anchor]) -> None:
        """Compile; of two anchors with one literal the wider is kept."""
        widest: dict[str, Anchor] = {}
        for anchor in anchors:
            known = widest.get(anchor.literal)
            if known is None or anchor.after > known.after:
                widest[anchor.literal] = anchor
        self.anchors = tuple(widest.values())
        #: Per anchor: up to which count it is told, and up to which it is counted.
        self.limits = tuple((anchor.most, anchor.counted) for anchor in self.anchors)
        self._literals = tuple(anchor.literal.encode() for anchor in self.anchors)
        if any(b"\n" in literal or not literal for literal in self._literals):
            raise ValueError("an anchor is a part of one line")
        #: (index of the anchor, start, end) of all occurrences of all anchors in one line.
        self.find_in_line = complete_search(self._literals)
        self._searches: dict[tuple[frozenset[int], frozenset[bytes]], KeySearch] = {}

    def search(self, dropped: frozenset[int], noisy: frozenset[bytes]) -> KeySearch:
        """Return a search that hits each line with an anchor, and a few more.

        Args:
            dropped: indices of anchors that need no longer be found.
            noisy: keys that stand in too many lines without an anchor.
        """
        known = self._searches.get((dropped, noisy))
        if known is None:
            wanted = [literal for index, literal in enumerate(self._literals) if index not in dropped]
            gone = [literal for index, literal in enumerate(self._literals) if index in dropped]
            keys = choose_keys(wanted, gone=gone, noisy=noisy)
            known = KeySearch(keys, frozenset(wanted), separate_search(keys))
            self._searches[dropped, noisy] = known
        return known


def choose_keys(
    literals: Sequence[bytes], *, gone: Sequence[bytes] = (), noisy: AbstractSet[bytes] = frozenset()
) -> tuple[bytes, ...]:
    """Choose keys such that each literal holds one: few and rare enough for a fast search, if that can be had.

    Args:
        gone: literals that the log is full of; no part of theirs is a good key.
        noisy: keys that are known to be common.
    """

    def is_good(part: bytes) -> bool:
        return part not in noisy and not any(part in literal for literal in gone)

    holders = {
        part: those
        for part, those in _holders(literals).items()
        if len(those) > 1 and part not in _ORDINARY and commonness(part) < _TOO_COMMON and is_good(part)
    }
    left = dict.fromkeys(literals)
    keys: list[bytes] = []
    while holders and len(left) + len(keys) > PATTERNS_PER_SEARCH:
        best = max(holders, key=lambda part: (len(holders[part]), -commonness(part), part))
        covered = holders.pop(best)
        if len(covered) < 2:
            break
        keys.append(best)
        for literal in covered:
            del left[literal]
        holders = {part: those - covered for part, those in holders.items()}
    return (*(_own_key(literal, is_good) for literal in left), *keys)


def commonness(part: bytes) -> float:
    """Return how often the telling bytes of a key may be met, as if each byte stood alone."""
    return prod(_FREQUENCY[byte] for byte in part[:_TELLING_BYTES])


def _holders(literals: Iterable[bytes]) -> dict[bytes, set[bytes]]:
    holders: dict[bytes, set[bytes]] = {}
    for literal in literals:
        for part in _parts(literal, SHARED_BYTES):
            holders.setdefault(part, set()).add(literal)
    return holders


def _own_key(literal: bytes, is_good: Callable[[bytes], bool]) -> bytes:
    parts = sorted(_parts(literal, KEY_BYTES), key=lambda part: (commonness(part), part))
    return next((part for part in parts if is_good(part)), literal)


def _parts(literal: bytes, size: int) -> set[bytes]:
    return {literal[start : start + size] for start in range(max(1, len(literal) - size + 1))}


_ORDINARY = ORDINARY.encode()
_FREQUENCY = [(_ORDINARY.count(byte) + 0.3) / len(_ORDINARY) for byte in range(256)]
