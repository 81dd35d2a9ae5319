"""What may happen to the logs of a job without changing what went wrong in it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from logs import source
from scoring import Case

from analyzers.model import Bundle, Diagnosis


@dataclass(frozen=True)
class Job:
    """A job's logs in memory: path inside the artifact -> content."""

    files: dict[str, bytes]
    log: bytes | None
    name: str | None

    def bundle(self) -> Bundle:
        sources = tuple(source(content, name) for name, content in self.files.items())
        return Bundle(sources, source(self.log, "job.log") if self.log is not None else None, self.name)


Mutation = Callable[[Job, Diagnosis, random.Random], Job]

_RANK_PATH = re.compile(r"^(?P<head>.*?)(?P<rank>\d+)/(?P<stream>std(?:out|err)\.log)$")
_FOLDER = re.compile(rb"\bnone_[a-z0-9_]{8}\b")


def load(case: Case) -> Job:
    root = case.artifact
    paths = sorted(path for path in root.rglob("*") if path.is_file()) if root else []
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths} if root else {}
    return Job(files, case.job_log.read_bytes() if case.job_log else None, case.job_name)


def shuffle_members(job: Job, _: Diagnosis, chance: random.Random) -> Job:
    """The order in which an archive names its members means nothing."""
    names = list(job.files)
    chance.shuffle(names)
    return replace(job, files={name: job.files[name] for name in names})


def rename_starts(job: Job, _: Diagnosis, chance: random.Random) -> Job:
    """The launcher's folder names are random: other names, and so another order of them."""
    everything = b"\n".join([*(name.encode() for name in job.files), job.log or b""])
    names: dict[bytes, bytes] = {}
    for found in sorted(set(_FOLDER.findall(everything))):
        names[found] = b"none_" + "".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789_", k=8)).encode()

    def rename(text: bytes) -> bytes:
        return _FOLDER.sub(lambda match: names.get(match[0], match[0]), text)

    files = {rename(name.encode()).decode(): rename(content) for name, content in job.files.items()}
    return Job(files, rename(job.log) if job.log is not None else None, job.name)


#: How logs name a rank: in prefixes, in the launcher's summary, in words, by NCCL's "host:pid:tid [device]".
_RANK_NAME = re.compile(
    rb"(\[rank|\[default|\b[Rr]ank |\brank *: |\blocal_rank(?:: |=)|dict_keys\(\[|:\d+:\d+ \[)(\d+)\b"
)


#: "Ranks 1, 3 failed to pass monitoredBarrier".
_RANK_LIST = re.compile(rb"(?<=\bRanks )\d+(?:, \d+)*")


def permute_ranks(job: Job, _: Diagnosis, chance: random.Random) -> Job:
    """What happened to a rank happens to another one, everywhere that a rank is named. Only within one node."""
    order = new_ranks(job, chance)

    def new(rank: bytes) -> bytes:
        return str(order.get(int(rank), int(rank))).encode()

    def rename(text: bytes) -> bytes:
        text = _RANK_LIST.sub(lambda match: b", ".join(new(rank) for rank in match[0].split(b", ")), text)
        return _RANK_NAME.sub(lambda match: match[1] + new(match[2]), text)

    files = {}
    for name, text in job.files.items():
        told = _RANK_PATH.match(name)
        moved = f"{told['head']}{order.get(int(told['rank']), told['rank'])}/{told['stream']}" if told else name
        files[moved] = rename(text)
    return replace(job, files=files, log=rename(job.log) if job.log is not None else None)


def new_ranks(job: Job, chance: random.Random) -> dict[int, int]:
    """A new number for each rank that has a log."""
    ranks = sorted({int(told["rank"]) for name in job.files if (told := _RANK_PATH.match(name))})
    shuffled = ranks.copy()
    chance.shuffle(shuffled)
    return dict(zip(ranks, shuffled, strict=True))


#: The clocks of Python's logging and of c10d ("E1201 16:57:42.645000"), as programs print them.
_STAMP = re.compile(rb"\b(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)|(?<=[EWIF])(\d{4} \d\d:\d\d:\d\d)")


def skew_a_clock(job: Job, _: Diagnosis, chance: random.Random) -> Job:
    """One rank's clock goes wrong by a minute."""
    ranks = sorted({found["head"] + found["rank"] for name in job.files if (found := _RANK_PATH.match(name))})
    if not ranks:
        return job
    folder, by = chance.choice(ranks) + "/", timedelta(minutes=chance.choice((-1, 1)))

    def shift(match: re.Match[bytes]) -> bytes:
        form = "%Y-%m-%d" + match[1].decode()[10] + "%H:%M:%S" if match[1] else "%m%d %H:%M:%S"
        text = (match[1] or match[2]).decode()
        year = "" if match[1] else "2024 "  # a leap year, so that any day of a month can be read
        try:
            moved = datetime.strptime(year + text, ("%Y " if year else "") + form) + by  # noqa: DTZ007
        except ValueError:
            return match[0]
        return moved.strftime(form).encode()

    files = {name: _STAMP.sub(shift, text) if name.startswith(folder) else text for name, text in job.files.items()}
    return replace(job, files=files)


HARMLESS = (
    b"ERROR: transient Error while probing the fabric, ignoring it",
    b"INFO: 0 errors, 0 failures, Exception handling enabled",
    b"WARNING:root:Error: option --legacy is deprecated and ignored",
    b"failed to open the tuning cache, going on without it",
    b"[INFO] will raise RuntimeError if the timeout (600 s) is exceeded",
)


def add_harmless_lines(job: Job, _: Diagnosis, chance: random.Random) -> Job:
    """Programs speak of errors all the time: at the beginning of each rank's output, and behind what it printed."""
    files = dict(job.files)
    for name, text in job.files.items():
        if _RANK_PATH.match(name) and text:
            lines = b"".join(chance.choice(HARMLESS) + b"\n" for _ in range(5))
            files[name] = lines + text
            if name.endswith("stdout.log") and text.endswith(b"\n"):
                files[name] += chance.choice(HARMLESS) + b"\n"
    return replace(job, files=files)


def drop_a_victim(job: Job, found: Diagnosis, chance: random.Random) -> Job:
    """A victim's log is lost."""
    if not found.victim_ranks:
        return job
    lost = str(chance.choice(found.victim_ranks))
    kept = {
        name: text for name, text in job.files.items() if not (told := _RANK_PATH.match(name)) or told["rank"] != lost
    }
    return replace(job, files=kept)


def write_crlf(job: Job, _: Diagnosis, _chance: random.Random) -> Job:
    """Lines end as on Windows."""
    files = {name: text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") for name, text in job.files.items()}
    return replace(job, files={name: files[name] if _RANK_PATH.match(name) else job.files[name] for name in files})


def weave_in_blank_lines(job: Job, _: Diagnosis, chance: random.Random) -> Job:
    """A progress bar and an empty line end up before and after what a rank printed."""
    bar = b"\rloading: 10%|#         | 1/10\rloading: 100%|##########| 10/10\n\n"
    files = {
        name: bar + text if _RANK_PATH.match(name) and text and chance.random() < 0.5 else text
        for name, text in job.files.items()
    }
    return replace(job, files=files)


def cut(job: Job, chance: random.Random) -> Job:
    """Every log ends, and some begin, at any byte."""
    files = {}
    for name, text in job.files.items():
        start = chance.choice((0, 0, 0, chance.randrange(len(text) + 1)))
        files[name] = text[start : chance.randint(start, len(text))]
    log = job.log[: chance.randrange(len(job.log) + 1)] if job.log is not None else None
    return replace(job, files=files, log=log)
