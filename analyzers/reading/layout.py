"""From the path of a log inside the artifact to what it is: which test, which start, which rank, which stream.

Unit jobs upload `<repeat>/<run id>/attempt_<k>/<rank>/{stdout,stderr}.log`; functional ones the same under `logs/` or
under the name of the test, several tests in one artifact; srun and nemo-run weave all ranks into one file.
"""

from __future__ import annotations

import re
from enum import StrEnum

from analyzers.patterns import pattern
from analyzers.records import dataclass


class Kind(StrEnum):
    """What a log holds."""

    RANK = "rank"  # one stream of one process
    LAUNCHER = "launcher"  # torchrun's own output, often with dmesg or nvidia-smi behind it
    NCCL = "nccl"  # NCCL_DEBUG_FILE: all ranks of a node
    WOVEN = "woven"  # the output of several ranks, and of the launcher, in one file
    RESULTS = "results"  # JUnit XML that stands in no rank's folder
    JOB = "job"  # the CI job's own log, with the output of some ranks in it


@dataclass(frozen=True, order=True)
class RunKey:
    """One start of the workers, or what one node has of it: the folder `node`, "" if there is none.

    `folder` is the launcher's random name, else the node's, "" if there is neither; the rest counts from 0.
    """

    test: str
    repeat: int
    folder: str
    attempt: int
    node: str = ""


@dataclass(frozen=True)
class Place:
    """A log's place. `local_rank` is the rank in its path: global only where one node ran (see `[rankN]:` prefixes)."""

    name: str
    kind: Kind
    run: RunKey
    local_rank: int | None = None
    stream: str = ""


_ATTEMPT = pattern(r"attempt_(\d{1,4})")
_NUMBER = pattern(r"\d{1,6}")
_TEXT = pattern(r"\.(?:log|out|err|txt|stdout|stderr)(?:\.\d+)?$")
#: Launchers other than torchrun name the rank in the file: "rank3.log", "train_rank_12.err".
_RANKED = pattern(r"(?:^|[_.-])rank[_.-]?(\d{1,6})(?=[_.-])")
#: A Flight Recorder dump. Any prefix may be set, so a number after one of the usual words is asked for.
FLIGHT_DUMP = pattern(
    r"(?:^|[/_.-])(?:dump|trace_rank|(?:nccl|comm_lib|fr)_trace|flight_recorder)[_.-](?:rank[_.-]?)?(?P<rank>\d{1,7})"
    r"(?:\.(?:json|pkl|pickle|bin|dump))?$",
    re.IGNORECASE,
)
#: Golden values, or the values that a run logged to be held against them.
GOLDEN_VALUES = pattern(r"(?:^|/)(?P<base>golden_values[\w.-]*?)(?P<second>_2nd)?\.json$")
#: Documents beside the logs: torch's error file of a rank, pytest's results.
ERROR_FILE, JUNIT = "error file", "results"
_ERROR_FILE = pattern(r"(?:torchelastic_)?error(?:_file)?\.json")
_JUNIT = pattern(r"(?:junit|xunit|pytest|test)[\w.-]*\.xml$|(?:junit|results?|report)\.xml$", re.IGNORECASE)
#: A folder per node: its launcher is one of those that started the run together.
_NODE = pattern(r"(?:node|host|machine)[_-]?(?:rank[_-]?)?\d{1,4}")
#: Folders that hold no logs of the workers.
_FOREIGN = frozenset({"tensorboard", "wandb", "checkpoints", "coverage"})


def place(name: str) -> Place | None:
    """Say what the file at `name` is; None for what is not a log (events, goldens, markers, hidden folders)."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if not parts or any(part.startswith(".") or part in _FOREIGN for part in parts):
        return None
    last = parts[-1]
    ranked = len(parts) >= 2 and _NUMBER.fullmatch(parts[-2]) is not None
    if ranked and _ERROR_FILE.fullmatch(last):
        return Place(name, Kind.RANK, _run_key(parts[:-2]), int(parts[-2]), ERROR_FILE)
    if last[-4:].lower() == ".xml" and _JUNIT.search(last):
        if ranked:
            return Place(name, Kind.RANK, _run_key(parts[:-2]), int(parts[-2]), JUNIT)
        return Place(name, Kind.RESULTS, _run_key(parts[:-1]), stream=JUNIT)
    if not _TEXT.search(last) or "tfevents" in last:
        return None
    if last.startswith("nccl_debug"):
        return Place(name, Kind.NCCL, _run_key(parts[:-1]))
    if last.startswith(("launcher", "torchrun")):
        return Place(name, Kind.LAUNCHER, _run_key(parts[:-1]))
    if ranked and _is_stream(last):
        stream = "stderr" if "err" in last else "stdout"
        return Place(name, Kind.RANK, _run_key(parts[:-2]), int(parts[-2]), stream)
    if named := _RANKED.search(last):
        stream = "stderr" if "err" in last else "stdout"
        return Place(name, Kind.RANK, _run_key(parts[:-1]), int(named[1]), stream)
    return Place(name, Kind.WOVEN, _run_key(parts[:-1]), stream="stderr" if last.endswith(".err") else "stdout")


def is_read(name: str) -> bool:
    """Say whether the analysis ever looks into a file of this name: a log, a dump or golden values."""
    return place(name) is not None or bool(FLIGHT_DUMP.search(name) or GOLDEN_VALUES.search(name))


def _is_stream(last: str) -> bool:
    return last.startswith(("stdout", "stderr", "out", "err"))


def _run_key(folders: list[str]) -> RunKey:
    rest = list(folders)
    attempt = folder = ""
    if rest and (found := _ATTEMPT.fullmatch(rest[-1])):
        attempt = found[1]
        rest.pop()
    if len(rest) >= 2 and not _NUMBER.fullmatch(rest[-1]) and _NUMBER.fullmatch(rest[-2]):
        folder = rest.pop()
    repeat = rest.pop() if rest and _NUMBER.fullmatch(rest[-1]) else "0"
    node = "".join(part for part in rest if _NODE.fullmatch(part))
    test = "/".join(part for part in rest if part != "logs" and not _NODE.fullmatch(part))
    return RunKey(test, int(repeat), folder or node, int(attempt or 0), node)
