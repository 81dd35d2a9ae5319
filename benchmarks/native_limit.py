"""What the scan's blocks take without any Python around them: the program in native/, where it can be built.

It needs cargo, a C compiler and ISA-L's header (Debian: libisal-dev).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from measure import Cost
from scan_logs import keys_that_last

from analyzers.parsers.rank_log import RankLogReader
from bot.archives.nested import mapped
from bot.diagnose import packaged_rules
from bot.zip_directory import data_range, read_directory

FOLDER = Path(__file__).parent / "native"
PROGRAM = FOLDER / "target" / "release" / "native-limit"
THREADS = 2


def build() -> bool:
    """Build the program if its sources are newer; say whether it is there."""
    sources = (FOLDER / "Cargo.toml", FOLDER / "build.rs", *(FOLDER / "src").iterdir())
    if PROGRAM.exists() and PROGRAM.stat().st_mtime >= max(one.stat().st_mtime for one in sources):
        return True
    cargo = shutil.which("cargo")
    if cargo is None:
        return False
    done = subprocess.run(
        [cargo, "build", "--release", "--quiet"], cwd=FOLDER, check=False, capture_output=True, text=True
    )
    if done.returncode:
        print(f"the native limit is not measured, as it cannot be built here:\n{done.stderr}", file=sys.stderr)
    return done.returncode == 0


def run(archive: Path, plan: str) -> Cost:
    """Measure it on an archive; its times begin when its keys are compiled."""
    done = subprocess.run([PROGRAM, archive, str(THREADS)], input=plan, check=True, capture_output=True, text=True)
    told = json.loads(done.stdout)
    return Cost(told["wall_s"], told["cpu_s"])


def plan_of(archive: Path) -> str:
    """Return what the program is told: the keys that the scan looks for, and where the packed bytes of each log lie."""
    with archive.open("rb") as file:
        data = mapped(file)
    entries, _ = read_directory(data, label=archive.name, max_entries=10_000)
    places = [place for entry in entries if (place := data_range(data, entry)) is not None]
    keys = keys_that_last(RankLogReader(packaged_rules()).anchors).keys
    lines = [*(f"key {key.hex()}" for key in keys), *(f"member {begin} {end}" for begin, end in places)]
    return "\n".join(lines) + "\n"
