"""`mlm analyze` as a person or a script runs it: answers, exit codes, and how fast it starts."""

from __future__ import annotations

import argparse
import json
import os
import pty
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from job_logs import failed, job_log, step

from analyzers.reading import layout
from bot.cli import analyze

OOM = """Traceback (most recent call last):
  File "/opt/megatron-lm/pretrain_gpt.py", line 12, in <module>
    main()
  File "/opt/megatron-lm/megatron/core/models/gpt/gpt_model.py", line 99, in forward
    x = torch.empty(1)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB
"""
#: With it Python keeps no compiled modules, and we keep no parsed rules.
UNWRITTEN = ("PYTHONDONTWRITEBYTECODE",)
JOB = "gpt/gpt3_mcore_te_tp1_pp1 - latest"


def mlm(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bot.cli.main", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **options,
    )


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for rank in range(2):
            archive.writestr(f"logs/1/none_ab/attempt_0/{rank}/stderr.log", OOM if rank else "")
            archive.writestr(f"logs/1/none_ab/attempt_0/{rank}/stdout.log", "")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.log"
    path.write_bytes(b"".join(job_log(step("bash job.sh", "task-1-0/0 training", failed())).chunks()))
    return path


def test_json_is_the_contract(artifact: Path, log: Path) -> None:
    done = mlm("analyze", str(artifact), "--job-log", str(log), "--job-name", JOB, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["passed"], answer["category"], answer["culprit_ranks"]) == (
        1,
        False,
        "cuda_oom",
        [1],
    )
    assert answer["location"] == "megatron/core/models/gpt/gpt_model.py:99"
    assert answer["evidence"]["file"] == "logs/1/none_ab/attempt_0/1/stderr.log"
    assert answer["read"]["files"] == 5
    assert [command["command"].split()[2] for command in answer["commands"]] == ["python"]


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_words_for_people(artifact: Path, form: str) -> None:
    done = mlm("analyze", str(artifact), "--job-name", JOB, "--format", form)
    assert done.returncode == 0
    assert "CUDA out of memory" in done.stdout
    assert "\x1b[" not in done.stdout


def test_a_job_without_an_artifact(log: Path) -> None:
    answer = json.loads(mlm("analyze", "--job-log", str(log), "--format", "json").stdout)
    assert (answer["category"], answer["evidence"]["file"]) == ("unknown", "job.log")


def test_the_answer_goes_to_a_file(artifact: Path, tmp_path: Path) -> None:
    done = mlm("analyze", str(artifact), "--format", "json", "-o", str(tmp_path / "out.json"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads((tmp_path / "out.json").read_text())["category"] == "cuda_oom"
    done = mlm("analyze", str(artifact), "-o", str(tmp_path / "nowhere" / "out.txt"))
    assert done.returncode == 2
    assert "No such file" in done.stderr


def test_what_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    for words, sentence in [
        (["analyze", str(tmp_path / "nowhere")], "nowhere: No such file or directory"),
        (["analyze"], "give a PATH, a --job-log, or both"),
        (["analyze", "x", "--format", "xml"], "invalid choice"),
        (["fly"], "invalid choice"),
        ([], "COMMAND"),
    ]:
        done = mlm(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr


def test_nothing_to_analyse_is_its_own_exit_code(tmp_path: Path) -> None:
    done = mlm("analyze", str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"mlm analyze: {tmp_path}: there is no log here to analyse\n"
    (tmp_path / "a.zip").write_bytes(b"PK\3\4 and then the connection broke")
    done = mlm("analyze", str(tmp_path / "a.zip"))
    assert done.returncode == 3
    assert "a.zip: it has no zip directory at its end" in done.stderr


def test_colour_is_for_terminals_that_want_it(artifact: Path) -> None:
    def on_terminal(**extra: str) -> bytes:
        leader, follower = pty.openpty()
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | extra
        subprocess.run(
            [sys.executable, "-m", "bot.cli.main", "analyze", str(artifact)],
            stdout=follower,
            stderr=subprocess.DEVNULL,
            check=True,
            env=environment,
        )
        os.close(follower)
        seen = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # Linux ends a terminal whose other side is closed with EIO
                break
            if not piece:
                break
            seen += piece
        os.close(leader)
        return seen

    assert b"\x1b[" in on_terminal()
    assert b"\x1b[" not in on_terminal(NO_COLOR="1")


def test_standard_input(artifact: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bot.cli.main", "analyze", "-", "--format", "json"],
        input=artifact.read_bytes(),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["category"] == "cuda_oom"


def test_without_native_blocks_the_answer_is_the_same(artifact: Path, log: Path) -> None:
    """What has no wheel for a platform is left out there; `None` in `sys.modules` makes an import fail."""
    words = ["analyze", str(artifact), "--job-log", str(log), "--job-name", JOB, "--format", "json"]
    script = (
        "import sys; sys.modules |= dict.fromkeys(['ahocorasick_rs', 'isal', 'stringzilla', '_sha2', '_sha256']);"
        "from bot.cli.main import main; main(sys.argv[1:])"
    )
    pure = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    assert json.loads(pure.stdout)["category"] == "cuda_oom"
    assert pure.stdout == mlm(*words).stdout


def test_analyze_loads_little(artifact: Path) -> None:
    """Start-up is felt: no server, no other command, and nothing of the standard library that takes long."""
    heavy = {"dbos", "aiohttp", "sqlalchemy", "gidgethub", "bot.cli.serve", "bot.cli.demo", "pydantic", "rich"}
    slow = {"argparse", "asyncio", "dataclasses", "inspect", "logging", "pathlib", "shutil", "subprocess", "tempfile"}
    script = "import sys; from bot.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", *UNWRITTEN)}
    for _ in range(2):  # the first may have to parse the rules
        done = subprocess.run(
            [sys.executable, "-c", script, "analyze", str(artifact), "-o", os.devnull],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert "analyzers.analyze" in done.stdout.split()
    assert (heavy | slow) & set(done.stdout.split()) == set()


WORDS = st.sampled_from(
    [
        *("logs.zip", "-", "", "a b", "json", "text", "markdown"),
        *("--job-log", "--job-name", "--repo", "--changed-files", "--format", "-o", "--output"),
        *("--form", "--format=json", "-ofile", "--", "-x", "-1", "--help"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=6))
def test_plain_words_are_read_as_argparse_reads_them(words: list[str]) -> None:
    parser = argparse.ArgumentParser()
    analyze.add_parser(parser.add_subparsers())
    plain = analyze.read_words(words)
    if plain is not None:
        asked = parser.parse_args(["analyze", *words])
        assert plain == analyze.Options(**{name: getattr(asked, name) for name in analyze.Options.__match_args__})


@pytest.mark.parametrize("words", [["x"], ["-"], ["x", "--job-log", "y", "-o", "z"], ["--format", "json", "x"]])
def test_what_people_type_is_plain(words: list[str]) -> None:
    assert analyze.read_words(words) is not None


def test_an_answer_that_nobody_reads_ends_in_silence(artifact: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "bot.cli.main", "analyze", str(artifact)],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a full device")
def test_an_answer_that_cannot_be_written_is_a_sentence(artifact: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bot.cli.main", "analyze", str(artifact)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (2, "mlm analyze: standard output: No space left on device\n")


def test_ctrl_c_ends_quickly_and_leaves_nothing(tmp_path: Path) -> None:
    """What standard input had sent so far lies in a file without a name."""
    script = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a test run in the background ignores it
        "from bot.cli.main import main\n"
        "sys.exit(main(['analyze', '-']))"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"iteration 1\n" * 1_000_000)  # more than fits into the pipe: it is being read
        process.stdin.flush()
        time.sleep(0.5)
        assert list(tmp_path.iterdir()) == []
        process.send_signal(signal.SIGINT)
        said = process.stderr.read() if process.stderr else b""
        assert process.wait(20) == 130
    assert said == b""
    assert list(tmp_path.iterdir()) == []


def test_progress_is_shown_for_long_work_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bot.archives import Budget

    logs = {f"1/none_ab12cd34/attempt_0/{rank}/{stream}.log": 1 for rank in range(4) for stream in ("stdout", "stderr")}
    now = [0.0]
    monkeypatch.setattr(analyze.time, "monotonic", lambda: now[0])
    for shown, expected in [(True, "\rread 3 MB, 4 ranks ...\r\x1b[K"), (False, "")]:
        progress = analyze._Progress(shown=shown)
        start = now[0]
        for later_s, megabytes in [(0.1, 1), (0.6, 3), (0.61, 4)]:
            now[0] = start + later_s
            progress.update(Budget(read=logs, total=megabytes << 20))
        progress.clear()
        assert capsys.readouterr().err == expected


def test_progress_stays_in_one_line_and_counts_each_name_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bot.archives import Budget

    now, looked = [0.0], []
    place = layout.place
    monkeypatch.setattr(analyze.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(layout, "place", lambda name: (looked.append(name), place(name))[1])
    monkeypatch.setattr(analyze, "_width", lambda _: 20)
    progress, budget = analyze._Progress(shown=True), Budget(total=12345 << 20)
    for rank in range(3):
        budget.read[f"1/none_ab12cd34/attempt_0/{rank}/stdout.log"] = 1
        now[0] += 1
        progress.update(budget)
    told = ["read 12345 MB, 1 ra", "read 12345 MB, 2 ra", "read 12345 MB, 3 ra"]
    assert capsys.readouterr().err.split("\r")[1:] == told
    assert looked == list(budget.read)
