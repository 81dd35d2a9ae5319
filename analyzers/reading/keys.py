"""Keys: parts of the anchors that are quickly found in every byte of a log.

The vector search (Teddy, in the `aho-corasick` crate) looks at the first four bytes of its keys only, and at these by
their half bytes: keys in one of its buckets lend each other theirs. A place that fits a bucket is looked at again, and
that costs as much as passing over a hundred bytes. So the keys are rare, few, and in buckets with their like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from math import prod

from analyzers.reading.literals import FEW_PATTERNS, PATTERNS_PER_SEARCH, rounds

#: A key that several anchors share has so many bytes, any other is a rare part of its anchor of at most this size.
SHARED_BYTES, KEY_BYTES = 4, 8
#: The vector search tells keys apart by their first bytes: rare ones spare it looking twice.
_TELLING_BYTES = 4
#: A shared key that is expected more often than this (per byte of ordinary logs) would cost more than it spares.
_TOO_COMMON = 2e-6
#: Of so many of its rarest parts that one becomes the key of an anchor which fits best into a bucket.
_OPTIONS = 4
#: The buckets of the vector search for few and for many keys; the key at place n goes into bucket n modulo this.
_BUCKETS_OF_FEW, _BUCKETS = 8, 16

#: What healthy logs are full of. A part of an anchor that stands in here is no key that anchors should share.
ORDINARY = """\
2026-03-14 10:02:11,224 INFO megatron.core.utils [rank 3] building GPT model ... done, time elapsed: 1.21 s
 [2026-03-14 10:02:11.224] iteration 1200/ 5000 | consumed samples: 38400 | elapsed time per iteration (ms): 412.1
 | throughput per GPU (TFLOP/s/GPU): 402.1 | learning rate: 1.400000E-04 | global batch size: 256 | lm loss: 2.31E+00
 | load_balancing_loss: 1.1 | loss scale: 1.0 | grad norm: 0.512 | num zeros: 0 | params norm: 912.1 |
 number of skipped iterations: 0 | number of nan iterations: 0 | mem-allocated-bytes: 71234567890 |
 [2026-11-29 23:57:48.903] iteration   38651/ 5000000 | consumed samples:      9894656 | lm loss: 6.978542E-01 |
 loss scale: 65536.0 | grad norm: 9.743 | num zeros: 87041653 | params norm: 1083.469 | moe_aux_loss: 3.560987E-02
(min, max) time across ranks (ms):
    forward-backward ...............................: (298.47, 316.05)
    all-grads-sync .................................: (0.05, 37.96)
validation:  80%|################    | 80/100 [00:31<00:07,  2.58it/s] ===== started, called, calling, failed over
ip-10-0-12-87:3433:4100 [3] NCCL INFO Channel 02/0 : 3[3] -> 4[4] via P2P/IPC/read comm 0x5581 nRanks 08 busId
ip-10-0-7-196:29853:31764 [6] NCCL INFO comm 0x7f9be3d4a06c rank 6 nranks 8 cudaDev 6 - Init COMPLETE; timing local
NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics); Using network Libfabric
/opt/venv/lib/python3.12/site-packages/torch/utils/checkpoint.py:86: UserWarning: None of the inputs have
 requires_grad=True. Gradients will be None
WARNING:megatron.core.transformer: fused kernel is not used; falling back to unfused attention, please set
DeprecationWarning: the function is deprecated and will be removed in a future release, use torch.distributed
saving checkpoint at iteration 1000 to /mnt/checkpoints in torch_dist format; successfully saved checkpoint from
validation loss at iteration 1000 | lm loss value: 2.1 | lm loss PPL: 8.1 | time across ranks (ms): forward-back
tests/unit_tests/models/test_gpt_model.py::TestGPTModel::test_constructor[case-000001] PASSED [ 10%]
tests/unit_tests/data/test_builder.py::test_waiting_after_training[nccl-tp8_pp2-bf16-False] PASSED [ 67%]
E0314 W0314 I0314 10:02:11.224000 3028 torch/distributed/elastic/multiprocessing/api.py:1028] rank: 3, world_size
wandb: Tracking run with wandb; downloading model from huggingface_hub cache, loading tokenizer, memory allocated
tokens per expert: [5839, 127, 4460, 8091, 2613] expert-model-parallel-size 4, CUDA_DEVICE_MAX_CONNECTIONS=1
"""


def choose_keys(
    literals: Sequence[bytes], *, gone: Sequence[bytes] = (), noisy: AbstractSet[bytes] = frozenset()
) -> tuple[bytes, ...]:
    """Choose keys such that each literal holds one: few and rare enough for a fast search, if that can be had.

    Args:
        gone: literals that the log is full of; no part of theirs is a good key.
        noisy: keys that are known to be common.
    """
    is_good = _judge(gone, noisy)
    shared, left = _shared_keys(literals, is_good)
    options = [[key] for key in shared] + [_own_keys(literal, is_good) for literal in left]
    return tuple(key for first, end in rounds(len(options)) for key in _in_buckets(options[first:end]))


def refill(
    keys: Sequence[bytes],
    good: Sequence[bool],
    literals: Sequence[bytes],
    *,
    gone: Sequence[bytes] = (),
    noisy: AbstractSet[bytes] = frozenset(),
) -> tuple[bytes, ...]:
    """Put other keys in the places of those that are good no more; choosing all anew takes twenty times as long.

    The good keys keep their places, and so their buckets. A place that nothing needs takes a second copy of one of its
    bucket, which costs the search nothing.

    Args:
        good: per key, whether it stays.
        literals: those without a key, no more than there are places.
        gone: as `choose_keys` takes it.
        noisy: likewise.
    """
    is_good = _judge(gone, noisy)
    new = iter([_own_keys(literal, is_good)[0] for literal in literals])
    filled = [key if stays else next(new, b"") for key, stays in zip(keys, good, strict=True)]
    for first, end in rounds(len(keys)):
        count = _BUCKETS_OF_FEW if end - first <= FEW_PATTERNS else _BUCKETS
        for place in range(first, end):
            if not filled[place]:
                bucket = filled[first + (place - first) % count : end : count]
                filled[place] = max(bucket) or max(filled)
    return tuple(key for key in filled if key)


def _judge(gone: Sequence[bytes], noisy: AbstractSet[bytes]) -> Callable[[bytes], bool]:
    return lambda part: part not in noisy and not any(part in literal for literal in gone)


def commonness(part: bytes) -> float:
    """Return how often the telling bytes of a key may be met, as if each byte stood alone."""
    return prod(_FREQUENCY[byte] for byte in part[:_TELLING_BYTES])


def _shared_keys(literals: Sequence[bytes], is_good: Callable[[bytes], bool]) -> tuple[list[bytes], list[bytes]]:
    """Return keys that several literals share, as many as are needed, and the literals that hold none of them."""
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
    return keys, list(left)


def _holders(literals: Iterable[bytes]) -> dict[bytes, set[bytes]]:
    holders: dict[bytes, set[bytes]] = {}
    for literal in literals:
        for part in _parts(literal, SHARED_BYTES):
            holders.setdefault(part, set()).add(literal)
    return holders


def _own_keys(literal: bytes, is_good: Callable[[bytes], bool]) -> list[bytes]:
    """Return parts of a literal that may become its key, the rarest first."""
    parts = [part for part in _parts(literal, KEY_BYTES) if is_good(part)]
    return sorted(parts, key=lambda part: (commonness(part), part))[:_OPTIONS] or [literal]


def _parts(literal: bytes, size: int) -> set[bytes]:
    return {literal[start : start + size] for start in range(max(1, len(literal) - size + 1))}


#: Per telling byte, where in the ordinary text its lower and its upper half may stand, as sets of bits.
_Fit = tuple[int, ...]
_NOTHING: _Fit = (0,) * (2 * _TELLING_BYTES)


class _Bucket:
    """Keys that lend each other their half bytes; `most` fit in."""

    def __init__(self, most: int) -> None:
        self.keys: list[bytes] = []
        self.most = most
        self.fit = _NOTHING
        self.places = 0

    def costs(self, fit: _Fit) -> int:
        """Count the places of the ordinary text that will fit the bucket, and did not yet, with one more key."""
        a, b, c, d, e, f, g, h = self.fit
        i, j, k, m, n, o, p, q = fit
        places = (a | i) & (b | j) & (c | k) & (d | m) & (e | n) & (f | o) & (g | p) & (h | q)
        return places.bit_count() - self.places

    def add(self, key: bytes, fit: _Fit, costs: int) -> None:
        self.keys.append(key)
        self.fit = tuple(one | other for one, other in zip(self.fit, fit, strict=True))
        self.places += costs


def _in_buckets(options: Sequence[Sequence[bytes]]) -> list[bytes]:
    """Take one key of each option, and order them such that few places of an ordinary log fit a bucket."""
    count = _BUCKETS_OF_FEW if len(options) <= FEW_PATTERNS else _BUCKETS
    buckets = [_Bucket(len(range(number, len(options), count))) for number in range(count)]
    for keys in sorted(options, key=lambda keys: (len(keys), -commonness(keys[0]))):
        open_to_it = [bucket for bucket in buckets if len(bucket.keys) < bucket.most]
        while len(open_to_it) > 1 and not open_to_it[-2].keys:
            open_to_it.pop()  # one empty bucket is like the other
        ways = ((bucket.costs(fit), bucket, key, fit) for key in keys for fit in (_fit(key),) for bucket in open_to_it)
        costs, bucket, key, fit = min(ways, key=lambda way: way[0])
        bucket.add(key, fit, costs)
    return [bucket.keys[row] for row in range(len(options)) for bucket in buckets if row < len(bucket.keys)]


def _fit(key: bytes) -> _Fit:
    halves: list[int] = []
    for at, byte in enumerate(key[:_TELLING_BYTES]):
        halves += (_LOW[byte & 15] >> at, _HIGH[byte >> 4] >> at)
    return (*halves, *(-1,) * (2 * _TELLING_BYTES - len(halves)))


def _bits(wanted: Iterable[int]) -> int:
    """Return where in the ordinary text one of these bytes stands, the first place being the lowest bit."""
    table = bytearray(b"0" * 256)
    for byte in wanted:
        table[byte] = ord("1")
    return int(_ORDINARY[::-1].translate(bytes(table)), 2)


_ORDINARY = ORDINARY.encode()
_FREQUENCY = [(_ORDINARY.count(byte) + 0.3) / len(_ORDINARY) for byte in range(256)]
_LOW = [_bits(range(half, 256, 16)) for half in range(16)]
_HIGH = [_bits(range(16 * half, 16 * half + 16)) for half in range(16)]
