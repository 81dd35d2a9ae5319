"""What was read or found once is not read again: by no other job, worker or process, but never across repositories."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import pickle
import tempfile
import time
import zipfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from analyzers.model import Category
from bot.analysis import AnalysisPool
from bot.analysis_worker import Answer, Said, diagnose_files, unknown
from bot.answers import Answers, question
from bot.diagnose import diagnose_artifact, diagnose_path, read_members
from bot.github.shelf import Room, collect
from bot.release import MADE_OF, ROOT, analysis_key
from handlers.context import Fetched
from tests.logs import raised

CASES = Path(__file__).parent.parent / "cases"
ONE = Fetched("logs", "/x/one.zip", digest="sha256:1")
OTHER = Fetched("more logs", "/x/other.zip", digest="sha256:2")
LOG = Fetched("job.log", "/x/job.log", digest="sha256:3")


def tell_what_is_known(
    job_name: str, _log: Fetched | None, artifacts: Sequence[Fetched], known: Mapping[str, Said]
) -> Answer:
    """Runs in the worker process: reading takes a while, unless it is known what was read."""
    read = [one.digest for one in artifacts if not known.get(one.digest)]
    time.sleep(0.3 if read else 0.0)
    return Answer(
        unknown(f"{job_name} read {read} knew {sorted(filter(known.get, known))} {time.monotonic_ns()}"),
        dict.fromkeys(read, (b"said",)),
    )


@asynccontextmanager
async def pool(folder: Path | None = None, *, workers: int = 1) -> AsyncIterator[AnalysisPool]:
    made = AnalysisPool(workers=workers, limit_s=60.0, diagnose=tell_what_is_known, folder=folder)
    try:
        yield made
    finally:
        await made.close()


def kept_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def ask(analysis: AnalysisPool, name: str, *artifacts: Fetched, repo: int = 1, log: Fetched | None = None) -> str:
    found = await analysis.for_repo(repo).diagnose(job_name=name, job_log=log, artifacts=artifacts)
    return found.summary


async def test_an_artifact_is_read_once_however_many_jobs_ask_at_once() -> None:
    async with pool(workers=2) as analysis:
        asked = [ask(analysis, f"job {number}", *files) for number, files in enumerate([(ONE,)] * 3 + [(OTHER, ONE)])]
        told = await asyncio.gather(*asked)
        assert sum("'sha256:1'" in one.split(" knew ")[0] for one in told) == 1
        assert "read [] knew ['sha256:1', 'sha256:2']" in await ask(analysis, "last", ONE, OTHER)


async def test_the_same_question_has_one_answer_at_once_and_later() -> None:
    async with pool() as analysis:
        told = await asyncio.gather(*(ask(analysis, "a", ONE, log=LOG) for _ in range(3)))
        told += await asyncio.gather(*(ask(analysis, "b", log=LOG) for _ in range(2)))
        moved = replace(ONE, path="/y/again.zip")
        told.append(await ask(analysis, "a", moved, log=LOG))
        assert told[0] == told[1] == told[2] == told[5]
        assert told[3] == told[4] != told[0]
        assert await ask(analysis, "a", ONE, log=replace(LOG, digest="sha256:4")) != told[0]


async def test_what_has_no_digest_is_read_each_time() -> None:
    async with pool() as analysis:
        unnamed = replace(ONE, digest="")
        assert await ask(analysis, "a", unnamed) != await ask(analysis, "a", unnamed)
        assert await ask(analysis, "a") != await ask(analysis, "a")


async def test_repositories_share_nothing(tmp_path: Path) -> None:
    """The same bytes may be another repository's secret; whether somebody has them, too."""
    async with pool(tmp_path) as analysis:
        first = await ask(analysis, "a", ONE, repo=1)
        second = await ask(analysis, "a", ONE, repo=2)
        assert "read ['sha256:1'] knew []" in first
        assert "read ['sha256:1'] knew []" in second
        assert first != second
    assert {path.parts[-3] for path in kept_in(tmp_path)} == {"1", "2"}


async def test_answers_outlive_the_process_but_not_the_release(tmp_path: Path) -> None:
    async with pool(tmp_path) as analysis:
        first = await ask(analysis, "a", ONE, log=LOG)
    async with pool(tmp_path) as analysis:
        assert await ask(analysis, "a", ONE, log=LOG) == first
    keys = {question(1, job_name="a", job_log=LOG, artifacts=(ONE,), analysis=release) for release in ("1", "2")}
    assert len(keys) == 2


async def test_an_answer_that_cannot_be_kept_or_read_is_found_anew(tmp_path: Path) -> None:
    diagnosis = replace(unknown("why"), culprit_ranks=(3,))
    asked = "0" * 64
    await Answers(tmp_path).keep(1, asked, replace(diagnosis, summary=f"why ghp_{'a1' * 18}"))
    (file,) = kept_in(tmp_path)
    assert "ghp_" not in file.read_text()
    await Answers(tmp_path).keep(1, asked, diagnosis)
    assert await Answers(tmp_path).recall(1, asked) == diagnosis
    assert await Answers(tmp_path).recall(2, asked) is None
    file.write_text(file.read_text()[:-10])
    assert await Answers(tmp_path).recall(1, asked) is None
    assert not file.exists()
    file.write_bytes(b"\xff\xfe")  # whatever else a machine without power may leave
    assert await Answers(tmp_path).recall(1, asked) is None
    file.mkdir()
    assert await Answers(tmp_path).recall(1, asked) is None
    in_the_way = tmp_path / "full"
    in_the_way.write_text("")
    await Answers(in_the_way).keep(1, asked, diagnosis)


async def test_an_answer_that_the_disk_spoilt_is_found_anew(tmp_path: Path) -> None:
    """A full disk, or a file that vanished before it was read, is no property of the file."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr(
            "1/none_ab/attempt_0/1/stderr.log", raised("ValueError: boom", "megatron/core/a.py:3 f", rank=1)
        )
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inner.zip", inner.getvalue())
    files = [Fetched("logs", str(path), digest="sha256:1")]
    analysis = AnalysisPool(workers=1, limit_s=60.0, folder=tmp_path / "spool")
    try:
        repo = analysis.for_repo(1)
        lost = [replace(files[0], path=str(tmp_path / "gone.zip"))]
        assert (await repo.diagnose(job_name="a", job_log=None, artifacts=lost)).category is Category.UNKNOWN
        assert (await repo.diagnose(job_name="a", job_log=None, artifacts=files)).culprit_ranks == (1,)
    finally:
        await analysis.close()
    with pytest.MonkeyPatch.context() as full:
        full.setattr(tempfile, "TemporaryFile", refuse)
        hindered = diagnose_files("a", None, files, {})
    assert "No space left" in hindered.diagnosis.read.skipped[0].why
    assert (hindered.lasting, hindered.said) == (False, {})
    assert diagnose_files("a", None, files, {}).lasting


async def test_old_answers_are_thrown_away_with_the_downloads(tmp_path: Path) -> None:
    await Answers(tmp_path).keep(1, "0" * 64, unknown("why"))
    (file,) = kept_in(tmp_path)
    assert collect(tmp_path, Room(max_age_s=3600), now_s=time.time() + 3700) > 0
    assert not file.exists()


def test_the_release_is_told_by_all_that_the_analysis_is_made_of() -> None:
    assert len(analysis_key()) == 12
    assert all(list(ROOT.glob(pattern)) for pattern in MADE_OF)


def test_an_artifact_of_two_jobs_is_unpacked_once(tmp_path: Path) -> None:
    """The second job's answer is that of a fresh reading, complaints included, without reading the logs again."""
    path = tmp_path / "a.zip"
    log = raised("ValueError: boom", "megatron/core/a.py:3 f", rank=1)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1/none_ab/attempt_0/1/stderr.log", log)
        archive.writestr("1/none_ab/attempt_0/0/stderr.log", "x" * 50)
    raw = path.read_bytes().replace(b"x" * 50, b"y" * 50)
    path.write_bytes(raw)
    files = [Fetched("logs", str(path), digest="sha256:1")]
    first = diagnose_files("a", None, files, {})
    assert "checksum" in first.diagnosis.read.skipped[0].why
    path.write_bytes(bytes(len(raw) // 2) + raw[len(raw) // 2 :])  # what it holds is gone; its list is not
    assert diagnose_files("a", None, files, first.said) == Answer(first.diagnosis)
    assert diagnose_path(str(path), job_name="a") != first.diagnosis


@pytest.mark.parametrize("case", [path.name for path in sorted(CASES.iterdir()) if (path / "artifact").is_dir()][1::9])
def test_an_answer_from_what_is_known_is_the_same(case: str) -> None:
    artifact, log = str(CASES / case / "artifact"), CASES / case / "job.log"
    job_log = str(log) if log.exists() else None

    first, said = diagnose_artifact(artifact, job_log=job_log, job_name="a", known=None)
    for _ in range(2):
        known = pickle.loads(pickle.dumps(said))
        again, said = diagnose_artifact(artifact, job_log=job_log, job_name="a", known=known)
        assert again == first
    other, _ = diagnose_artifact(artifact, job_log=None, job_name="b", known=said)
    assert other == diagnose_path(artifact, job_name="b")
    names = [name for name in said.read if not name.endswith(".gz")]
    some = read_members(artifact, set(names[::2]), most_bytes=10**9)
    assert {reading.place.name for reading in some.readings} <= set(names[::2])
    assert diagnose_artifact(artifact, job_log=job_log, job_name="a", known=some)[0] == first
