"""The command line where it is used wrong, or in an odd place: a sentence and an exit status, never a traceback."""

from __future__ import annotations

import bz2
import lzma
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from test_cli_analyze import OOM, mlm

SENTENCES = {
    "analyze x --formt json": "mlm analyze: error: there is no option --formt; did you mean --format?",
    "analyze x y": "mlm analyze: error: one word too many: y",
    "demo --port 65536": "mlm demo: error: argument --port: '65536' is no number from 0 to 65535",
    "serve --port 1": "mlm serve: error: there is no option --port",
}


@pytest.mark.parametrize("line", SENTENCES)
def test_a_mistake_is_told_by_the_command_that_was_meant(line: str) -> None:
    done = mlm(*line.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == SENTENCES[line]


def test_it_tells_its_version() -> None:
    done = mlm("--version")
    assert (done.returncode, done.stdout) == (0, f"mlm-bot {version('mlm-bot')}\n")


@pytest.mark.parametrize("pack", [lzma.compress, bz2.compress])
def test_a_packing_that_is_not_read_is_no_log_without_an_error(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    packed = tmp_path / "logs.tar.packed"
    packed.write_bytes(pack(OOM.encode()))
    for words in (["analyze", str(packed)], ["analyze", "--job-log", str(packed)]):
        done = mlm(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{packed}: it is packed with " in done.stderr


@pytest.mark.parametrize(
    ("closed", "words", "status", "sentence"),
    [
        (">&-", [], 2, "mlm analyze: standard output: it is closed\n"),
        ("<&-", ["-"], 2, "mlm analyze: standard input: it is closed\n"),
        ("2>&-", ["nowhere"], 2, ""),
        ("2>/dev/full", ["nowhere"], 2, ""),
        ("2>&-", [], 0, ""),
    ],
)
def test_a_stream_that_is_closed_or_full(
    tmp_path: Path, closed: str, words: list[str], status: int, sentence: str
) -> None:
    log = tmp_path / "job.log"
    log.write_text(OOM)
    command = shlex.join([sys.executable, "-m", "bot.cli.main", "analyze", *(words or [str(log)])])
    done = subprocess.run(["sh", "-c", f"{command} {closed}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, sentence)
    assert done.stdout == "" or status == 0
