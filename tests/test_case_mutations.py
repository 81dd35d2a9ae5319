"""The verdict over each case stands, or is given with less confidence, when what cannot matter is changed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, partial

import mutations
import pytest
from mutations import Job, Mutation
from scoring import Case, all_cases

from analyzers.analyze import Task, analyze
from analyzers.model import Confidence, Diagnosis, Source
from analyzers.parsers import job_log
from analyzers.parsers.job_report import JobReport
from analyzers.parsers.readings import LogReading
from analyzers.reading.layout import Place
from analyzers.rules import RuleSet
from bot.diagnose import packaged_rules

CASES = {case.folder.name: case for case in all_cases()}
HARMLESS: tuple[Mutation, ...] = (
    mutations.shuffle_members,
    mutations.rename_starts,
    mutations.skew_a_clock,
    mutations.add_harmless_lines,
    mutations.drop_a_victim,
    mutations.write_crlf,
    mutations.weave_in_blank_lines,
)
SURE = [Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH]
CUTS = 3
READ_JOB_LOG = job_log.read_job_log


class Subject:
    """A case and its verdict. A log that a change leaves as it was is read once: reading it is a pure function."""

    def __init__(self, case: Case) -> None:
        self.case, self.job = case, mutations.load(case)
        self._read: dict[tuple[Place, bytes], LogReading] = {}
        self._reports: dict[bytes, JobReport] = {}

    @cached_property
    def first(self) -> Diagnosis:
        return self.diagnose(self.job)

    def diagnose(self, job: Job) -> Diagnosis:
        return analyze(job.bundle(), packaged_rules(), run_all=self._run_all)

    def diagnose_changed(self, job: Job) -> Diagnosis:
        """The verdict over a job; the first one where not even the order of its logs is another."""
        same = (list(job.files.items()), job.log) == (list(self.job.files.items()), self.job.log)
        return self.first if same else self.diagnose(job)

    def read_job_log(self, source: Source, rules: RuleSet) -> JobReport:
        text = b"".join(source.chunks())
        if text not in self._reports:
            self._reports[text] = READ_JOB_LOG(source, rules)
        return self._reports[text]

    def _run_all(self, tasks: Sequence[Task]) -> Iterable[LogReading]:
        for task in tasks:
            assert isinstance(task, partial)
            source, place = task.args
            key = place, b"".join(source.chunks())
            if key not in self._read:
                self._read[key] = task()
            yield self._read[key]


@pytest.fixture(scope="module", params=CASES)
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """One case after the other, so that its tests share what was read."""
    subject = Subject(CASES[request.param])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_log, "read_job_log", subject.read_job_log)
        yield subject


def chance_of(case: Case, mutation: Mutation) -> random.Random:
    return random.Random(f"{case.folder.name} {mutation.__name__}")


def test_what_cannot_matter_moves_no_verdict(subject: Subject) -> None:
    first = subject.first
    for mutation in HARMLESS:
        changed = mutation(subject.job, first, chance_of(subject.case, mutation))
        found = subject.diagnose_changed(changed)
        same = (found.category, found.culprit_ranks) == (first.category, first.culprit_ranks)
        less_sure = SURE.index(found.confidence) < SURE.index(first.confidence)
        assert same or (less_sure and not first.passed), (mutation.__name__, found.summary, first.summary)


def test_no_rank_is_special(subject: Subject) -> None:
    """Ranks that change places, in paths and wherever they are named, take the blame with them."""
    job, first = subject.job, subject.first
    order = mutations.new_ranks(job, chance_of(subject.case, mutations.permute_ranks))
    if len(order) < 2 or not {*first.culprit_ranks, *first.victim_ranks} <= order.keys():
        return  # one process, or ranks of several nodes, whose folders name the rank on the node
    found = subject.diagnose(mutations.permute_ranks(job, first, chance_of(subject.case, mutations.permute_ranks)))
    moved = tuple(sorted(order[rank] for rank in first.culprit_ranks))
    assert (found.category, found.culprit_ranks) == (first.category, moved), found.summary


def test_logs_cut_at_any_byte_are_read(subject: Subject) -> None:
    chance = random.Random(subject.case.folder.name)
    for _ in range(CUTS):
        cut = mutations.cut(subject.job, chance)
        found = subject.diagnose(cut)
        ranks = [*found.culprit_ranks, *found.victim_ranks, *found.silent_ranks]
        assert len(ranks) == len(set(ranks))
        assert found.passed == (found.category is None)
        if subject.case.expect.get("passed") and found.evidence is not None:
            whole = cut.files.get(found.evidence.file, b"").endswith(b"\n")  # cut between two lines: nothing shows it
            assert whole or found.confidence is not Confidence.HIGH, found.summary
