"""The members of an artifact and the job's log, through the analysis to the comment. Members end at 0x1e; each one's
first byte says which file it is: a rank's log, the launcher's, JUnit XML, a dump, an error file, golden values.
"""

from __future__ import annotations

import json

from analyzers.analyze import analyze
from analyzers.model import Bundle, Source
from analyzers.verdict.commands import suggest_commands
from bot.diagnose import packaged_fixes, packaged_rules
from bot.store.findings import diagnosis_from_text, diagnosis_to_text
from handlers.render.redaction import redact_diagnosis
from handlers.render.report import render_diagnosis
from handlers.render.text import render_text
from tests.logs import source

END = b"\x1e"
START = "1/none_ab12cd34/attempt_0"
NAMES = (
    f"{START}/0/stderr.log",
    f"{START}/1/stderr.log",
    f"{START}/0/stdout.log",
    f"{START}/launcher.log",
    f"{START}/0/junit.xml",
    "results.xml",
    f"{START}/0/error.json",
    "nccl_trace_rank_0",
    "nccl_trace_rank_1.json",
    "golden_values_dev.json",
    "golden_values_dev_2nd.json",
    "nccl_debug.log",
    "train.log",
    f"{START.replace('_0', '_1')}/0/stderr.log",
    "job.log",
)


def packed(files: dict[str, bytes]) -> bytes:
    """Return the input that stands for these files; the names are among `NAMES`."""
    return END.join(bytes([NAMES.index(name)]) + content for name, content in files.items())


def run(data: bytes) -> None:
    logs: dict[str, Source] = {}
    for member in data.split(END)[:6]:
        if member:
            name = NAMES[member[0] % len(NAMES)]
            logs[name] = source(member[1:], name)
    job_log = logs.pop("job.log", None)
    bundle = Bundle(tuple(logs.values()), job_log, "tests/unit_tests/models/**/*.py - latest")
    found = analyze(bundle, packaged_rules())
    assert found.passed == (found.category is None)
    everyone = [*found.culprit_ranks, *found.victim_ranks, *found.silent_ranks]
    assert len(everyone) == len(set(everyone))
    commands = suggest_commands(found, packaged_fixes(), job_name=bundle.job_name)
    assert all(command.command.isprintable() for command in commands)
    json.dumps(found.as_json())
    shown = redact_diagnosis(found)
    json.dumps(shown.as_json(), ensure_ascii=False).encode()
    assert len(render_diagnosis(shown)) <= 60_000
    render_text(found, color=True, width=80).encode()
    kept = diagnosis_to_text(shown)
    assert diagnosis_to_text(diagnosis_from_text(kept)) == kept
