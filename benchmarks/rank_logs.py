"""Makes the artifact of a failed training job of any size: the same arguments give the same bytes.

Each rank has a stdout.log (seven eighths: iterations, `\\r` bars) and a stderr.log (NCCL INFO, warnings), as realistic
logs have them: they pack about eight times. One rank runs out of GPU memory near the end, the others are ended by
their launcher. What was planted, and on which line, is returned, so that a measurement can be checked.

usage: python benchmarks/rank_logs.py OUT.zip [--ranks 8] [--mb-per-rank 60]
"""

from __future__ import annotations

import argparse
import random
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CULPRIT = 5
FOLDER = "1/none_9f2c41ab/attempt_0"
#: Lines are made in blocks of so many steps; a block is made once per rank and repeated with other numbers.
STEPS = 2_000


@dataclass(frozen=True)
class Planted:
    """One line that must be found: the member it stands in, its 1-based number, its beginning."""

    member: str
    line: int
    text: str


def write_zip(path: Path, *, ranks: int, mb_per_rank: float) -> list[Planted]:
    """Write the artifact to `path` and return what was planted in it."""
    planted: list[Planted] = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for rank in range(ranks):
            for stream in ("stdout", "stderr"):
                name = f"{FOLDER}/{rank}/{stream}.log"
                size = int(mb_per_rank * 1e6 * (7 / 8 if stream == "stdout" else 1 / 8))
                info = zipfile.ZipInfo(name)
                info.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(info, "w", force_zip64=True) as member:
                    lines = 0
                    for block in member_blocks(stream, rank, size):
                        member.write(block)
                        lines += block.count(b"\n")
                    if stream == "stderr" and rank == CULPRIT % ranks:
                        member.write("".join(line + "\n" for line in OUT_OF_MEMORY).encode())
                        planted.append(Planted(name, lines + len(OUT_OF_MEMORY), OUT_OF_MEMORY[-1][:40]))
                    elif stream == "stderr":
                        member.write(ENDED.encode())
    return planted


def member_blocks(stream: str, rank: int, size_bytes: int) -> Iterator[bytes]:
    """Yield one log in blocks of about a megabyte, `size_bytes` in all or a little more."""
    dice = random.Random(f"{stream}{rank}")
    lines = stdout_lines if stream == "stdout" else stderr_lines
    step = made = 0
    while made < size_bytes:
        block = "".join(lines(rank, step, dice)).encode()
        block = block[: size_bytes - made]
        block = block[: block.rfind(b"\n") + 1] or block + b"\n"
        yield block
        made += len(block)
        step += STEPS
        if len(block) < 10_000:
            return


def stdout_lines(rank: int, first: int, dice: random.Random) -> Iterator[str]:
    for step in range(first, first + STEPS):
        clock = f"2026-03-{step // 86_400 % 28 + 1:02d} {step // 3600 % 24:02d}:{step // 60 % 60:02d}:{step % 60:02d}"
        yield (
            f" [{clock}] iteration {step:8d}/ 5000000 | consumed samples: {step * 256:12d} | elapsed time per iteration"
            f" (ms): {dice.uniform(400, 430):.1f} | throughput per GPU (TFLOP/s/GPU): {dice.uniform(380, 420):.1f} |"
            f" learning rate: 1.400000E-04 | global batch size:   256 | lm loss: {dice.uniform(2, 3):.6E} |"
            f" loss scale: 1.0 | grad norm: {dice.uniform(0.2, 0.9):.3f} | number of skipped iterations:   0 |"
            f" num zeros: {dice.randrange(10**9):11d} | params norm: {dice.uniform(900, 999):.6f} |"
            f" number of nan iterations:   0 | mem-allocated-bytes: {dice.randrange(10**10, 10**11)} |\n"
        )
        if step % 3 == 0:
            tokens = dice.choices(range(9000), k=8)
            yield f"  rank {rank}: load balancing loss: {dice.uniform(1, 2):.6f}, tokens per expert: {tokens}\n"
        if step % 10 == 0:
            bars = [
                f"validation: {percent:3d}%|{'#' * (percent // 5):20}| {percent}/100" for percent in range(0, 101, 20)
            ]
            yield "\r".join(bars) + "\n"
        if step % 50 == 0:
            slowest = dice.uniform(311, 330)
            yield "(min, max) time across ranks (ms):\n"
            yield f"    forward-backward ....: ({dice.uniform(300, 310):.2f}, {slowest:.2f})\n"


def stderr_lines(rank: int, first: int, dice: random.Random) -> Iterator[str]:
    host = f"ip-10-0-{rank // 8}-87"
    for step in range(first, first + STEPS):
        yield (
            f"{host}:{3433 + rank}:{4100 + rank} [{rank % 8}] NCCL INFO Channel {step % 24:02d}/0 : {rank}[{rank % 8}]"
            f" -> {rank + 1}[{(rank + 1) % 8}] via P2P/IPC/read comm 0x{dice.getrandbits(40):x} nRanks 08\n"
        )
        if step % 4 == 0:
            yield (
                "/opt/venv/lib/python3.12/site-packages/torch/utils/checkpoint.py:86: UserWarning: None of the inputs"
                f" have requires_grad=True. Gradients will be None (step {step})\n  warnings.warn(\n"
            )
        if step % 40 == 0:
            yield f"WARNING:megatron.core.utils:{step} fused kernel is not used: length {dice.randrange(4096)}\n"


OUT_OF_MEMORY = (
    f"[rank{CULPRIT}]: Traceback (most recent call last):",
    f'[rank{CULPRIT}]:   File "/opt/megatron-lm/pretrain_gpt.py", line 310, in <module>',
    f"[rank{CULPRIT}]:     pretrain(",
    f'[rank{CULPRIT}]:   File "/opt/megatron-lm/megatron/core/transformer/attention.py", line 412, in forward',
    f"[rank{CULPRIT}]:     probs = torch.softmax(scores.float(), dim=-1)",
    f"[rank{CULPRIT}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 5 is full.",
)
ENDED = (
    "W0301 10:02:11.224000 3028 torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal, shutting"
    " down workers\n"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--mb-per-rank", type=float, default=60.0)
    options = parser.parse_args()
    for planted in write_zip(options.out, ranks=options.ranks, mb_per_rank=options.mb_per_rank):
        print(f"{planted.member}:{planted.line}: {planted.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
