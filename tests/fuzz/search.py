"""Look for inputs that break an entry, led by coverage: `python tests/fuzz/search.py ENTRY [SECONDS]`, see `make fuzz`.

Starts from the kept corpus. What it finds interesting is lost with the folder it works in; what breaks the entry is
written to the present folder as `crash-...` (or `timeout-...`): mend the fault, then add the input to the corpus.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from pathlib import Path

import atheris

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))  # started as a script, it stands in tests/fuzz
#: Ours, and the parser of Markdown, whose blind corners are ours too.
INSTRUMENTED = ["analyzers", "bot", "handlers", "config", "markdown_it"]


def main() -> None:
    entry, limit_s = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    with atheris.instrument_imports(include=INSTRUMENTED):
        harness = importlib.import_module(f"tests.fuzz.{entry}")
    with tempfile.TemporaryDirectory() as work:
        folder = shutil.copytree(HERE / "corpus" / entry, Path(work, entry))
        options = [f"-max_total_time={limit_s}", "-timeout=20", "-rss_limit_mb=4096", "-max_len=20000"]
        atheris.Setup([sys.argv[0], *options, str(folder)], harness.run)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
