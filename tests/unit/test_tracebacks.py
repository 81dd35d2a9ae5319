from __future__ import annotations

import pytest

from analyzers.model import Source
from analyzers.parsers.chains import primary
from analyzers.parsers.frames import in_repository, innermost
from analyzers.parsers.rank_log import RankLogReader
from analyzers.parsers.readings import StreamReading
from analyzers.parsers.tracebacks import Link
from analyzers.reading.layout import place
from analyzers.rules import RuleSet
from tests.logs import SITE, raised, source

CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"
LIBRARY = f"{SITE}/lib/x.py:1 f"
OURS = "megatron/core/a.py:7 f"


def read(text: str, name: str = "1/none_ab12cd34/attempt_0/3/stderr.log") -> StreamReading:
    reader = RankLogReader(RuleSet([]))
    log: Source = source(text, name)
    where = place(name)
    assert where is not None
    return reader.read(log, where).streams[0]


def told(text: str) -> tuple[str, str, int]:
    trace = primary(read(text).chains[-1])
    return trace.type, trace.message, trace.at_line


def test_an_exception_with_its_place() -> None:
    stream = read("noise\n" + raised("pkg.mod.SomeLimitHit: too much\nof it", OURS, LIBRARY, rank=3))
    trace = stream.chains[0][0]
    assert (trace.type, trace.message, trace.at_line) == ("pkg.mod.SomeLimitHit", "too much\nof it", 7)
    frame = innermost(trace.frames)
    assert frame is not None
    assert (frame.path, frame.line) == ("megatron/core/a.py", 7)
    assert trace.uncaught


@pytest.mark.parametrize(
    ("first", "link", "second", "counts"),
    [
        (raised("ValueError: low", LIBRARY), CAUSE, raised("OSError: high", OURS), "ValueError"),
        (raised("KeyError: 'k'", OURS), CAUSE, raised("ConfigError: no k", OURS), "ConfigError"),
        (raised("KeyError: 'k'", OURS), CONTEXT, raised("TypeError: fallback", OURS), "TypeError"),
        (raised("ImportError: apex", OURS), CONTEXT, raised("TypeError: fallback", OURS), "TypeError"),
        (raised("RuntimeError: stream", LIBRARY), CONTEXT, raised("RuntimeError: pos", OURS), "RuntimeError"),
        (raised("ValueError: ours", OURS), CONTEXT, raised("OSError: while closing", OURS), "ValueError"),
        ("pkg.ConnectError: no traceback\n", CAUSE, raised("OSError: hub", OURS), "OSError"),
        (raised("subprocess.CalledProcessError: ninja", LIBRARY), CAUSE, raised("BuildError: x", OURS), "BuildError"),
        (raised("CalledProcessError: make", OURS), CAUSE, raised("BuildError: x", OURS), "CalledProcessError"),
    ],
)
def test_which_exception_of_a_chain_counts(first: str, link: str, second: str, counts: str) -> None:
    assert told(first + link + second)[0] == counts


WORKER = raised("pkg.WorkerError: of rank 0", OURS) + raised("OSError: no key", LIBRARY).replace("):", "): (RANK 0)", 1)


@pytest.mark.parametrize(
    ("text", "type_", "line"),
    [
        (raised("OSError: killed", LIBRARY) + CAUSE + raised("RuntimeError: gone", OURS, LIBRARY), "OSError", 7),
        (WORKER, "OSError", 7),
        (
            raised("OSError: inner", "megatron/core/b.py:3 g") + CAUSE + raised("RuntimeError: outer", OURS),
            "OSError",
            3,
        ),
    ],
)
def test_the_way_through_the_repository_is_known_by_what_was_raised_from_it(text: str, type_: str, line: int) -> None:
    trace = primary(read(text).chains[-1])
    frame = innermost(trace.frames)
    assert frame is not None
    assert (trace.type.rpartition(".")[2], frame.line) == (type_, line)


@pytest.mark.parametrize("code_lines", [2, 40])
def test_why_a_kernel_does_not_compile_stands_below_its_code(code_lines: int) -> None:
    code = "".join(f"    x{n} = tl.load(x)\n{chr(10) if n == 1 else ''}" for n in range(code_lines))
    message = f"triton.compiler.errors.CompilationError: at 4:34:\n{code}              ^\nNameError('s is not defined')"
    lines = told(raised(message, OURS, rank=1) + "[rank1]: later\n")[1].split("\n")
    assert (lines[0], lines[-2], lines[-1]) == ("at 4:34:", "^", "NameError('s is not defined')")
    assert len(lines) <= 10


def test_a_quoted_traceback_is_the_original() -> None:
    inner = "Original " + raised("ValueError: too long", "megatron/core/datasets/rows.py:24 pad")
    outer = raised("ValueError: Caught ValueError in DataLoader worker process 1.\n" + inner, LIBRARY)
    assert told(outer)[1] == "too long"


def test_a_childs_traceback_inside_its_parents() -> None:
    outer = raised("torch.multiprocessing.spawn.ProcessRaisedException: ", LIBRARY)
    inner = "\n-- Process 3 terminated with the following error:\n" + raised("ValueError: in the child", OURS)
    assert told(outer + inner)[1] == "in the child"


def test_the_first_of_a_group_counts() -> None:
    text = """  + Exception Group Traceback (most recent call last):
  |   File "/opt/megatron-lm/megatron/core/a.py", line 3, in f
  |     raise ExceptionGroup("many", errors)
  | ExceptionGroup: many (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/opt/megatron-lm/megatron/core/b.py", line 5, in g
    |     raise ValueError("first")
    | ValueError: first
    +---------------- 2 ----------------
    | Traceback (most recent call last):
    |   File "/opt/megatron-lm/megatron/core/c.py", line 6, in h
    |     raise TypeError("second")
    | TypeError: second
    +------------------------------------
"""
    assert told(text) == ("ValueError", "first", 9)


def test_a_traceback_printed_as_a_list_is_read() -> None:
    frame = """'  File "/opt/megatron-lm/megatron/a.py", line 4, in f\\n'"""
    listed = f"""['Traceback (most recent call last):\\n', {frame}, "ValueError: it's bad\\n"]\n"""
    assert told(listed) == ("ValueError", "it's bad", 1)


def test_finalizers_threads_and_log_calls_are_harmless() -> None:
    for head in (
        "Exception ignored in: <function X.__del__ at 0x7f>",
        "--- Logging error ---",
        "Exception in thread T1:",
    ):
        assert read(f"{head}\n{raised('AttributeError: gone', OURS)}").chains[0][0].harmless


def test_other_threads_lines_do_not_end_a_traceback() -> None:
    text = raised("ValueError: x", OURS, "megatron/core/b.py:9 g").split("\n")
    text.insert(3, "[W702 01:00:02.000459934 ProcessGroupNCCL.cpp:5023] a warning of another thread")
    assert told("\n".join(text))[0] == "ValueError"


@pytest.mark.parametrize("rank", [3, None], ids=["by torch's hook", "by the interpreter"])
def test_what_the_rank_prints_on_stdout_meanwhile_is_no_exception(rank: int | None) -> None:
    """srun writes both streams of a rank into one file; a tag before a colon looks like an exception's class."""
    text = raised("ValueError: low", OURS, LIBRARY, rank=rank).splitlines(keepends=True)
    text[3:3] = ["asyncio: mode=Mode.STRICT\n", "plugins: anyio-4.9.0\n"] + ["Tokenizer: ready\n"] * (rank is not None)
    stream = read("".join(f"3: {line}" for line in text), "1/attempt_0/log_task-1.out")
    trace = stream.chains[0][0]
    assert (trace.type, trace.message, [frame.line for frame in trace.frames]) == ("ValueError", "low", [7, 1])


def test_an_expected_exception_with_another_text_is_an_assertion() -> None:
    chain = raised("ValueError: low", OURS) + CONTEXT + raised("AssertionError: Regex pattern did not match.", OURS)
    assert told(chain)[0] == "AssertionError"


def test_a_traceback_that_is_cut_off_is_no_exception() -> None:
    chains = read(raised("ValueError: x", OURS).rsplit("\n", 2)[0]).chains
    assert not any(trace.type for chain in chains for trace in chain)


def test_a_traceback_far_down_a_long_log_has_its_line() -> None:
    text = "iteration ok\n" * 50_000 + raised("ValueError: x", OURS)
    assert told(text) == ("ValueError", "x", 50_004)


@pytest.mark.parametrize("rank", [None, 3])
def test_a_thousand_frames_still_end_with_the_exception(rank: int | None) -> None:
    ways = ("megatron/core/a.py:7 f", "megatron/core/b.py:9 g")
    error = "RecursionError: maximum recursion depth exceeded"
    text = raised(error, *(ways[frame % 2] for frame in range(996)), rank=rank)
    assert told(text + "\n" + "bye\n" * 100) == ("RecursionError", "maximum recursion depth exceeded", 2 * 996 + 2)


def test_a_shells_next_command_is_no_part_of_the_message() -> None:
    assert told(raised("ValueError: x", OURS) + "+ exit 1\n+ cleanup\n")[:2] == ("ValueError", "x")


def test_the_link_between_two_is_kept() -> None:
    chain = read(raised("ValueError: a", OURS) + CAUSE + raised("OSError: b", OURS)).chains[0]
    assert [trace.link for trace in chain] == [Link.NONE, Link.CAUSE]


def test_two_exceptions_in_one_printed_list_are_one_chain() -> None:
    first = """'Traceback (most recent call last):\\n', '  File "a.py", line 1, in f\\n', 'KeyError: 1\\n'"""
    for second in (
        first.replace("KeyError: 1", "ValueError: b"),
        """'  File "b.py", line 3\\n', 'SyntaxError: no\\n'""",
    ):
        stream = read(f"it couldn't: [{first}, {second}]\n" + raised("RuntimeError: c", OURS))
        assert [len(chain) for chain in stream.chains] == [2, 1]
        assert len(stream.during) == len(stream.chains)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/opt/megatron-lm/megatron/core/a.py", "megatron/core/a.py"),
        ("/workspace/Megatron-LM/pretrain_gpt.py", "pretrain_gpt.py"),
        ("tests/unit_tests/test_a.py", "tests/unit_tests/test_a.py"),
        (f"{SITE}/torch/nn/modules/module.py", None),
        ("../venv/lib/python3.12/site-packages/zmq/x.py", None),
        ("zmq/backend/cython/_zmq.py", None),
        ("/usr/lib/python3.12/shutil.py", None),
        ("<frozen importlib._bootstrap>", None),
    ],
)
def test_frames_of_the_repository_are_told_from_others(path: str, found: str | None) -> None:
    assert in_repository(path) == found


def test_pytests_root_tells_the_repository() -> None:
    assert in_repository("/srv/app/lib/x.py", "/srv/app") == "lib/x.py"
