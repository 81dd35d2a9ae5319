"""`mlm serve` without anything that it does not need: no place to write but its data folder, no network but GitHub."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from served import COMMAND, Served, environment

from bot.demo.github import SimulatedGitHub
from tests.hostile_artifacts import HOSTILE, LOG, zipped

LOCKDOWN = Path(__file__).parent.parent / "lockdown"
#: The engine's reader of schedules asks Python for the word size, which asks the program `file`; it does without.
ASKED_BY_CRONITER = "subprocess.Popen file"
#: A mount namespace of its own in which nothing but the folder may be written to, also by native code.
READ_ONLY = """
mount --make-rprivate / && mount --bind "$1" "$1" && mount -o remount,bind,ro / || exit 77
cd "$1" && shift && exec "$@"
"""
JOB = "tests/unit_tests/models/**/*.py - latest"


def locked_down(github: SimulatedGitHub, folder: Path) -> dict[str, str]:
    """As in a container: the image is read-only, there is no home, and no folder for temporary files."""
    env = environment(github, folder)
    kept = {name: value for name, value in env.items() if name.startswith("MLM_")}
    return kept | {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "TMPDIR": "/nonexistent",
        "PYTHONPATH": str(LOCKDOWN),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LOCKDOWN_FOLDER": str(folder),
    }


@pytest.mark.parametrize("kind", sorted({*HOSTILE} - {"nested"}))
def test_an_analysis_needs_nothing_but_to_read(tmp_path: Path, kind: str) -> None:
    """No network, no other program, nothing written: archives inside of others alone take a file without a name."""
    (tmp_path / "logs.zip").write_bytes(HOSTILE[kind][0]())
    env = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(LOCKDOWN),
        "LOCKDOWN_FOLDER": str(tmp_path),
        "HOME": "/nonexistent",
    }
    script = "import sys; from bot.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "analyze", str(tmp_path / "logs.zip"), "--format", "json"]
    done = subprocess.run(command, env=env | {"PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, check=False)
    assert done.returncode in {0, 3}, done.stderr.decode()
    assert HOSTILE[kind][1] in (done.stdout + done.stderr).decode()
    assert (tmp_path / "attempts").read_text() == ""


def open_to_others(folder: Path) -> list[str]:
    """What is kept and may be read by others on the machine: logs of private repositories and what was found there."""
    kept = [path for path in folder.rglob("*") if path.name != "attempts"]
    assert {"mlm.db", "files"} <= {path.name for path in kept}
    return [path.name for path in kept if path.stat().st_mode & 0o077]


def read_only_root(folder: Path) -> list[str]:
    """The start of a command that runs so, as far as this machine lets us."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", READ_ONLY, "sh", str(folder)]
    outside = folder.parent / "outside"
    probe = f"! touch {shlex.quote(str(outside))} && touch inside && rm inside"
    try:
        tried = subprocess.run([*command, "sh", "-c", probe], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if tried.returncode:
        pytest.skip(f"no mount namespace may be made here: {tried.stderr.decode()}")
    return command


async def explain_and_end(github: SimulatedGitHub, bot: Served) -> None:
    """A failed job with an archive in its artifact is explained, and the bot stops when it is told to."""
    inner = zipped({LOG: b"[rank0]: ModuleNotFoundError: No module named 'flash_attn'\n"})
    github.set_webhook_url(f"{bot.url}/webhook")
    pull = await github.open_pull(author="ada")
    run = await github.start_run(pull)
    await github.finish_job(run, JOB, "failure", artifact=zipped({"logs.zip": inner}))
    await github.until(lambda: github.comments(pull, by_app=True), within_s=100)
    (comment,) = github.comments(pull, by_app=True)
    assert "flash_attn" in comment.body
    assert await bot.end(15) == 0


async def test_it_needs_its_data_folder_and_github_and_nothing_else(tmp_path: Path) -> None:
    """Whatever else Python tries is refused; nothing else was tried."""
    async with SimulatedGitHub() as github:
        github.add_repo("NVIDIA/Megatron-LM")
        async with Served(locked_down(github, tmp_path)) as bot:
            await explain_and_end(github, bot)
    assert open_to_others(tmp_path) == []
    tried = set((tmp_path / "attempts").read_text().splitlines())
    assert tried <= {ASKED_BY_CRONITER}, "nothing else that is refused was even tried"


async def test_a_root_that_is_mounted_read_only_is_enough(tmp_path: Path) -> None:
    """The same by the kernel, which sees what native code opens as well: SQLite's own files, for one."""
    data = tmp_path / "data"
    data.mkdir()
    command = read_only_root(data)
    async with SimulatedGitHub() as github:
        github.add_repo("NVIDIA/Megatron-LM")
        env = environment(github, data, HOME="/nonexistent", TMPDIR="/nonexistent")
        async with Served(env, command=[*command, *COMMAND]) as bot:
            await explain_and_end(github, bot)
