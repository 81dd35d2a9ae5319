"""From paths to a diagnosis: the analyzers on what lies on disk. Blocking; call it off the event loop."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from analyzers import reading
from analyzers.analyze import RunAll, Task, analyze, one_by_one
from analyzers.model import Diagnosis, Source
from analyzers.parsers.readings import LogReading
from analyzers.records import dataclass, replace
from analyzers.rules import RuleSet
from analyzers.surroundings import JobRecipe
from analyzers.verdict.commands import Fix, read_fixes, suggest_commands
from bot.archives import Budget, Limits, Opened, open_bundle
from config.rule_files import fix_document, remembered, rule_documents

#: More threads than this wait for each other's Python code; fewer bytes than that are read before threads have started.
MOST_THREADS = 4
THREADS_FROM_BYTES = 16 * 1024**2
#: Of smaller logs than this on the average Python's part is the larger one, and that cannot be done at once.
THREADS_FROM_BYTES_EACH = 600 * 1024


@dataclass(frozen=True)
class JobFiles:
    """What a checkout of the tested commit knows about one job: how CI runs it, and its golden values."""

    recipe: JobRecipe | None = None
    goldens: tuple[Source, ...] = ()


@cache
def packaged_rules() -> RuleSet:
    """Return the rules of config/rules; their proofs are run by the tests and at the start of the service."""
    return RuleSet.from_documents(rule_documents(), prove=False, remember=_remember_keys)


def _remember_keys(literals: tuple[bytes, ...], choose: Callable[[], tuple[bytes, ...]]) -> tuple[bytes, ...]:
    """Choosing takes as long as reading a small artifact; the source is not loaded if the keys are known."""
    source = os.path.join(os.path.dirname(reading.__file__), "keys.py")
    return tuple(remembered("keys", source, literals, choose))


@cache
def packaged_fixes() -> tuple[Fix, ...]:
    """Return what config/fixes.yaml offers to type next."""
    return read_fixes(fix_document())


@dataclass(frozen=True)
class ReadArtifact:
    """What the logs of an artifact said, whatever job asks: several jobs of one run may ask for the same artifact.

    `hindered`: this machine's disk kept us from some of them, so that it is no answer for another time.
    """

    readings: tuple[LogReading, ...] = ()
    read: Mapping[str, int] = MappingProxyType({})
    problems: Mapping[str, str] = MappingProxyType({})
    hindered: bool = False

    def joined(self, other: ReadArtifact) -> ReadArtifact:
        """Return what both said, of other logs of the same artifact each."""
        read, problems = {**self.read, **other.read}, {**self.problems, **other.problems}
        return ReadArtifact(self.readings + other.readings, read, problems, self.hindered or other.hindered)


def diagnose_artifact(
    path: str, *, job_log: str | None, job_name: str, known: ReadArtifact | None
) -> tuple[Diagnosis, ReadArtifact]:
    """Diagnose as `diagnose_path` does; return with it what the artifact said, and read nothing again that is known.

    Args:
        known: what this very archive, or some of its logs, said before.
    Raises:
        UnreadableError: a path cannot be read at all.
    """
    opened = open_bundle(path, job_log=job_log, job_name=job_name)
    known = known or ReadArtifact()
    names = {reading.place.name for reading in known.readings}
    return _diagnose_rest(opened, lambda name: name not in names, known)


def read_members(path: str, names: Container[str], *, most_bytes: int) -> ReadArtifact:
    """Read some logs of an archive of which perhaps nothing else has arrived yet.

    Args:
        most_bytes: how much may come out of them.
    """
    opened = open_bundle(path, budget=Budget(limits=Limits(total_bytes=most_bytes)))
    return _diagnose_rest(opened, lambda name: name in names, ReadArtifact())[1]


def _diagnose_rest(
    opened: Opened, wanted: Callable[[str], bool], known: ReadArtifact
) -> tuple[Diagnosis, ReadArtifact]:
    """Diagnose from what is known and from the wanted files; return all that is known then."""
    rest = tuple(source for source in opened.bundle.sources if wanted(source.name))
    opened = replace(opened, bundle=replace(opened.bundle, sources=rest))
    said: list[ReadArtifact] = []

    def run_all(tasks: Sequence[Task]) -> Iterable[LogReading]:
        budget, before = opened.budget, set(opened.budget.read) | set(opened.budget.problems)
        readings = tuple(_in_threads(opened)(tasks))
        # The job's own log was read before: it is not the artifact's.
        read = {name: done for name, done in budget.read.items() if name not in before}
        problems = {name: why for name, why in budget.problems.items() if name not in before}
        budget.take_over(known.read, known.problems)
        said.append(known.joined(ReadArtifact(readings, read, problems, budget.hindered)))
        return said[0].readings

    return _diagnose(opened, run_all, JobFiles()), said[0]


def _in_threads(opened: Opened) -> RunAll:
    """Run readings in threads where there is enough to read: inflating and searching release the interpreter's lock."""
    sizes = [source.size_bytes or 0 for source in opened.bundle.sources]
    threads = min(_processors(), MOST_THREADS)
    if threads < 2 or sum(sizes) < max(THREADS_FROM_BYTES, THREADS_FROM_BYTES_EACH * len(sizes)):
        return one_by_one

    def run(tasks: Sequence[Task]) -> Iterable[LogReading]:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (small artifacts are done before it is loaded)

        with ThreadPoolExecutor(threads) as pool:
            try:
                return list(pool.map(lambda task: task(), tasks))
            except BaseException:
                opened.budget.cancel()  # Ctrl-C, mostly: the other threads are in the middle of their logs
                raise

    return run


def _processors() -> int:
    """Return how many processors we may use: in a container fewer than there are. Only Linux tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def diagnose_path(
    path: str | None,
    *,
    job_log: str | None = None,
    job_name: str | None = None,
    watch: Callable[[Budget], None] | None = None,
    checked_out: JobFiles | None = None,
) -> Diagnosis:
    """Diagnose one job from its artifact (folder, archive or "-") and its log.

    Args:
        watch: is told now and then, in any thread, how far the reading has come.
        checked_out: what a checkout of the tested commit knows about the job.
    Raises:
        UnreadableError: a path cannot be read at all.
    """
    opened = open_bundle(path, job_log=job_log, job_name=job_name, budget=Budget(watch=watch))
    return _diagnose(opened, _in_threads(opened), checked_out or JobFiles())


def _diagnose(opened: Opened, run_all: RunAll, known: JobFiles) -> Diagnosis:
    bundle = replace(opened.bundle, goldens=known.goldens)
    diagnosis = analyze(bundle, packaged_rules(), run_all=run_all)
    if not diagnosis.passed:
        diagnosis = replace(diagnosis, recipe=known.recipe)
    commands = diagnosis.commands or suggest_commands(diagnosis, packaged_fixes(), job_name=bundle.job_name)
    told = {skipped.name for skipped in diagnosis.read.skipped}
    trouble = tuple(skipped for skipped in opened.trouble() if skipped.name not in told)
    read = replace(diagnosis.read, skipped=diagnosis.read.skipped + trouble)
    return replace(diagnosis, commands=commands, read=read)
