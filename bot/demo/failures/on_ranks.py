"""Failures of unit test jobs on eight ranks: one rank fails, the others wait for it and are ended."""

from __future__ import annotations

from bot.demo.failures.launcher import unit_job
from bot.demo.failures.pytest_output import Frame, TestFailure, failing, hanging
from bot.demo.failures.scene import Remains, Scene

_GPT = "tests/unit_tests/models/test_gpt_model.py"
_GPT_TESTS = (
    f"{_GPT}::TestGPTModel::test_constructor",
    f"{_GPT}::TestGPTModel::test_set_input_tensor",
    f"{_GPT}::TestGPTModel::test_embedding_shape",
)
_FORWARD = f"{_GPT}::TestGPTModel::test_forward_long_sequence"


def _one_fails(scene: Scene, rank: int, tests: tuple[str, ...], failure: TestFailure) -> Remains:
    outputs = {other: hanging(scene, other, tests, failure.node_id) for other in range(scene.ranks)}
    outputs[rank] = failing(scene, rank, tests, failure)
    codes = dict.fromkeys(range(scene.ranks), -15) | {rank: 1}
    return unit_job(scene, outputs, codes, first=rank)


def cuda_oom(scene: Scene) -> Remains:
    """Rank 5 runs out of GPU memory in the attention's softmax; the others wait in the next all-reduce."""
    message = (
        "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 5 has a total capacity of 79.10 GiB of which 11.42 GiB "
        "is free. Including non-PyTorch memory, this process has 67.67 GiB memory in use. Of the allocated memory "
        "64.98 GiB is allocated by PyTorch, and 1.21 GiB is reserved by PyTorch but unallocated. If reserved but "
        "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
        "fragmentation."
    )
    frames = (
        Frame(_GPT, 141, "test_forward_long_sequence", ("model = self.model.cuda()",), "logits = model(tokens)"),
        Frame(
            "megatron/core/transformer/attention.py",
            412,
            "forward",
            ("scores = torch.baddbmm(bias, query, key)",),
            "probs = torch.softmax(scores.float(), dim=-1)",
        ),
    )
    failure = TestFailure(_FORWARD, frames, "torch.OutOfMemoryError", (message,))
    return _one_fails(scene, 5, _GPT_TESTS, failure)


def assertion(scene: Scene) -> Remains:
    """One assertion fails on rank 2 only: its shard is off by one."""
    test = "tests/unit_tests/transformer/test_attention.py"
    frames = (
        Frame(
            test,
            88,
            "test_mask_covers_own_shard",
            ("start, end = shard_bounds(rank, world_size, 4096)",),
            "assert end - start == 4096 // world_size",
        ),
    )
    failure = TestFailure(
        f"{test}::TestAttention::test_mask_covers_own_shard", frames, "AssertionError", ("assert 511 == (4096 // 8)",)
    )
    tests = (f"{test}::TestAttention::test_constructor", f"{test}::TestAttention::test_forward")
    return _one_fails(scene, 2, tests, failure)


def port_collision(scene: Scene) -> Remains:
    """Another process on the node holds the coordinator's port; rank 0 cannot bind it."""
    test = "tests/unit_tests/inference/test_coordinator.py"
    frames = (
        Frame(test, 37, "test_reply_is_routed", (), "coordinator = Coordinator(port=29600)"),
        Frame(
            "megatron/core/inference/data_parallel_inference_coordinator.py",
            97,
            "__init__",
            ("self.socket = self.context.socket(zmq.ROUTER)",),
            'self.socket.bind(f"tcp://127.0.0.1:{port}")',
        ),
    )
    message = ("Address already in use (addr='tcp://127.0.0.1:29600')",)
    failure = TestFailure(f"{test}::TestCoordinator::test_reply_is_routed", frames, "zmq.error.ZMQError", message)
    return _one_fails(scene, 0, (f"{test}::TestCoordinator::test_constructor",), failure)


def segfault(scene: Scene) -> Remains:
    """Rank 6 dies of a segmentation fault inside a C++ extension; faulthandler prints its stack."""
    test = "tests/unit_tests/dist_checkpointing/test_async_save.py"
    node_id = f"{test}::TestAsyncSave::test_writer_process"
    outputs = {
        rank: hanging(scene, rank, (f"{test}::TestAsyncSave::test_constructor",), node_id)
        for rank in range(scene.ranks)
    }
    site, core = "/opt/venv/lib/python3.12/site-packages", "/opt/megatron-lm/megatron/core"
    outputs[6].stderr += [
        "Fatal Python error: Segmentation fault",
        "",
        "Current thread 0x00007f2b1c9d7740 (most recent call first):",
        f'  File "{core}/dist_checkpointing/strategies/filesystem_async.py", line 214 in copy_to_host',
        f'  File "/opt/megatron-lm/{test}", line 61 in test_writer_process',
        f'  File "{site}/_pytest/python.py", line 159 in pytest_pyfunc_call',
        f'  File "{site}/pluggy/_callers.py", line 121 in _multicall',
        f'  File "{site}/_pytest/main.py", line 396 in pytest_runtestloop',
        "",
        "Extension modules: numpy._core._multiarray_umath, torch._C, transformer_engine_torch (total: 3)",
    ]
    codes = dict.fromkeys(range(scene.ranks), -15) | {6: -11}
    return unit_job(scene, outputs, codes, first=6)


def hang(scene: Scene) -> Remains:
    """Rank 3 never enters an all-reduce; the watchdogs of the seven others end them after ten minutes."""
    test = "tests/unit_tests/pipeline_parallel/test_schedules.py"
    node_id = f"{test}::TestSchedules::test_interleaved_loss_is_reduced"
    outputs = {
        rank: hanging(scene, rank, (f"{test}::TestSchedules::test_get_schedule",), node_id)
        for rank in range(scene.ranks)
    }
    for rank, output in outputs.items():
        output.stderr += _absent_rank(scene) if rank == 3 else _watchdog(scene, rank, test)
    codes = dict.fromkeys(range(scene.ranks), -6) | {3: -15}
    return unit_job(scene, outputs, codes, first=0)


def _watchdog(scene: Scene, rank: int, test: str) -> list[str]:
    def line(microseconds: int, place: str, text: str) -> str:
        return f"[rank{rank}]:[E{scene.at:%m%d %H:%M:%S}.{microseconds + rank:06d}829 {place}] {text}"

    group = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    caught = (
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=118, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        f"Timeout(ms)=600000) ran for {600_020 + 7 * rank} milliseconds before timing out."
    )
    status = "PG status: last enqueued work: 118, last completed work: 117"
    site = "/opt/venv/lib/python3.12/site-packages/torch/distributed"
    return [
        line(327_000, "ProcessGroupNCCL.cpp:689", f"[Rank {rank}] {caught}"),
        line(
            327_200,
            "ProcessGroupNCCL.cpp:2303",
            f"{group}  failure detected by watchdog at work sequence id: 118 {status}",
        ),
        line(327_800, "ProcessGroupNCCL.cpp:733", "Stack trace of the failed collective: "),
        f"#0 all_reduce from {site}/distributed_c10d.py:3068",
        "#1 reduce_losses from /opt/megatron-lm/megatron/core/pipeline_parallel/schedules.py:603",
        f"#2 test_interleaved_loss_is_reduced from /opt/megatron-lm/{test}:129",
        "",
        line(
            328_000,
            "ProcessGroupNCCL.cpp:747",
            "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent "
            "GPU operations might run on corrupted/incomplete data.",
        ),
        line(
            328_100, "ProcessGroupNCCL.cpp:761", "To avoid data inconsistency, we are taking the entire process down."
        ),
        "terminate called after throwing an instance of 'c10::DistBackendError'",
        f"  what():  {group} Process group watchdog thread terminated with exception: [Rank {rank}] {caught}",
        "Fatal Python error: Aborted",
    ]


def _absent_rank(scene: Scene) -> list[str]:
    def line(nanoseconds: int, number: int, text: str) -> str:
        at = f"{scene.at:%m%d %H:%M:%S}.{nanoseconds}"
        return f"[rank3]:[E{at} ProcessGroupNCCL.cpp:{number}] [PG ID 0 PG GUID 0(default_pg) Rank 3] {text}"

    dump = (
        "Received a dump signal due to a collective timeout from  rank 0 and we will try our best to dump the debug "
        "info. Last enqueued NCCL work: 117, last completed NCCL work: 117."
    )
    return [
        line(651846582, 1849, "Observed flight recorder dump signal from another rank via TCPStore."),
        line(651974333, 1914, dump),
    ]
