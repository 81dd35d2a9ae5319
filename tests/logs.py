"""Builds logs and artifacts for tests of the analyzers, as torch 2.13, pytest 8 and the launch scripts print them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analyzers.model import Bundle, Source

ROOT = "/opt/megatron-lm"
SITE = "/opt/venv/lib/python3.12/site-packages"
FOLDER = "1/none_ab12cd34/attempt_0"


def source(content: bytes | str, name: str = "1/attempt_0/0/stderr.log", *, chunk_bytes: int = 1 << 20) -> Source:
    """A log held in memory, read in chunks of the size asked for."""
    data = content.encode() if isinstance(content, str) else content

    def chunks() -> Iterator[bytes]:
        for at in range(0, len(data), chunk_bytes):
            yield data[at : at + chunk_bytes]

    return Source(name, chunks, len(data))


def bundle(
    files: Mapping[str, str | bytes],
    *,
    job_log: str | None = None,
    job_name: str | None = None,
    chunk_bytes: int = 1 << 20,
) -> Bundle:
    """An artifact held in memory: path inside it -> content."""
    sources = tuple(source(content, name, chunk_bytes=chunk_bytes) for name, content in files.items())
    return Bundle(sources, source(job_log, "job.log") if job_log is not None else None, job_name)


def ranks(
    stderr: Mapping[int, str], *, stdout: Mapping[int, str] | None = None, of: int = 4, folder: str = FOLDER
) -> dict[str, str]:
    """The tree of one start of `of` ranks; those that are not named say nothing."""
    told = stdout or {}
    files = {f"{folder}/{rank}/stderr.log": stderr.get(rank, "") for rank in range(of)}
    return files | {f"{folder}/{rank}/stdout.log": told.get(rank, "") for rank in range(of)}


def raised(error: str, *frames: str, rank: int | None = None) -> str:
    """A traceback that nobody caught; a frame is "path:line function", the path absolute or in the repository."""
    lines = ["Traceback (most recent call last):"]
    for frame in frames:
        place, _, function = frame.partition(" ")
        path, _, line = place.rpartition(":")
        path = path if path.startswith("/") else f"{ROOT}/{path}"
        lines += [f'  File "{path}", line {line}, in {function or "main"}', "    call()"]
    lines += error.split("\n")
    prefix = "" if rank is None else f"[rank{rank}]: "
    return "".join(f"{prefix}{line}\n" for line in lines)


def peer_died(rank: int) -> str:
    """What NCCL makes of another rank's death."""
    return raised(
        "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, "
        "remote process exited or there was a network error, NCCL version 2.27.7\n"
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
        "Last error:\nsocketPollConnect: connect returned Connection refused",
        "megatron/training/training.py:1631 train_step",
        f"{SITE}/torch/distributed/distributed_c10d.py:2934 all_reduce",
        rank=rank,
    )


def watchdog(rank: int, *, seq: int = 7, op: str = "ALLREDUCE", numel: int = 64, second: float = 10.0) -> str:
    """The three lines that matter of a rank whose NCCL watchdog fired."""
    group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    stamp = f"E702 01:10:{second:012.9f}"
    told = f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000)"
    return (
        f"[rank{rank}]:[{stamp} ProcessGroupNCCL.cpp:685] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"{told} ran for 600004 milliseconds before timing out.\n"
        f"[rank{rank}]:[{stamp} ProcessGroupNCCL.cpp:2252] {group}  failure detected "
        f"by watchdog at work sequence id: {seq} PG status: last enqueued work: {seq}, last completed work: {seq - 1}\n"
        f"[rank{rank}]:[{stamp} ProcessGroupNCCL.cpp:2068] {group} Process group watchdog thread terminated with "
        f"exception: [Rank {rank}] Watchdog caught collective operation timeout: {told}\n"
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        f"  what():  {group} Process group watchdog thread terminated with "
        f"exception: [Rank {rank}] Watchdog caught collective operation timeout: {told}\n"
        "Fatal Python error: Aborted\n\n"
    )


def pytest_log(results: Mapping[str, str], *, sections: str = "", closing: str | None = "") -> str:
    """pytest's output: node id -> result ("" while it runs). `closing`: None if the process never came to it."""
    lines = ["============================= test session starts ==============================", f"rootdir: {ROOT}", ""]
    lines += [f"{node_id} {result}" for node_id, result in results.items()]
    text = "\n".join(lines) + "\n"
    if closing is None:
        return text
    bad = sum(result in ("FAILED", "ERROR") for result in results.values())
    counts = f"{bad} failed, {len(results) - bad} passed" if bad else f"{len(results)} passed"
    return (
        f"{text}\n{sections}{closing}============================== {counts} in 9.12s ==============================\n"
    )


def failure(title: str, error: str, *places: str) -> str:
    """One report in pytest's short style; a place is "path:line function", outermost first."""
    lines = [f"_____________________ {title} _____________________"]
    for place in places:
        path, _, function = place.partition(" ")
        lines += [f"{path}: in {function}", "    call()"]
    lines += [f"E   {line}" for line in error.split("\n")]
    return "\n".join(lines) + "\n"


def failures(*reports: str) -> str:
    """A FAILURES section."""
    return f"=================================== FAILURES ===================================\n{''.join(reports)}"


def torchrun_summary(exits: Sequence[tuple[int, int]]) -> str:
    """The launcher's last words; the first exit is its root cause."""
    entries = [
        f"[{place}]:\n  time      : 2026-07-02_01:10:14\n  host      : node-1\n"
        f"  rank      : {rank} (local_rank: {rank})\n"
        f"  exitcode  : {code} (pid: {4000 + rank})\n  error_file: <N/A>\n  traceback : Signal or not\n"
        for place, (rank, code) in enumerate(exits)
    ]
    return (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        f"{'=' * 60}\ncoverage FAILED\n{'-' * 60}\nFailures:\n"
        f"{''.join(entries[1:]) or '  <NO_OTHER_FAILURES>'}\n{'-' * 60}\n"
        f"Root Cause (first observed failure):\n{entries[0]}{'=' * 60}\n"
    )
