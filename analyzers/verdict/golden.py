"""Where the results leave their golden values: by what the check printed, and by the files where they are at hand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from analyzers.comparison import GoldenComparison, MetricDifference
from analyzers.model import Diagnosis, Skipped, Source
from analyzers.parsers.golden_files import read_series
from analyzers.parsers.golden_series import Series, compare, judge, with_told
from analyzers.patterns import pattern
from analyzers.reading.layout import GOLDEN_VALUES
from analyzers.records import dataclass, replace

#: Where the repository keeps its golden values; such a path inside an artifact is a copy of them.
_KEPT = "test_cases/"
_FAILED = pattern(r"The following metrics failed: (?P<names>.+)")
_RESUMED = "test_resume_checkpoint_pipeline"


@dataclass(frozen=True)
class _Files:
    """The two sides of the comparison, as far as there are files of them."""

    actual: Mapping[str, Series]
    golden: Mapping[str, Series]


def explain_golden(
    diagnosis: Diagnosis, told: GoldenComparison | None, sources: Sequence[Source], kept: Sequence[Source]
) -> tuple[GoldenComparison | None, tuple[Skipped, ...]]:
    """Return which metrics differ, from which step on and by how much; None if nothing tells it.

    What the check printed is what it saw, so files add to it only what it leaves out: the numbers of the steps, and
    metrics of which it printed no values.

    Args:
        told: what the job's log tells.
        sources: the artifact; `kept`: golden values of the repository for this job, of the commit under test.
    Returns:
        The comparison, and the files that should have helped but could not be read.
    """
    files, skipped = _open(diagnosis, sources, kept)
    from_log = {one.metric: one for one in told.metrics} if told else {}
    names = list(from_log) or _names(diagnosis)
    differences = [
        found for name in dict.fromkeys(names) if (found := _difference(name, from_log.get(name), files)) is not None
    ]
    if not differences:
        return told, skipped
    in_log = any(one.compared for one in from_log.values())
    return GoldenComparison(judge(differences), tuple(differences), "log" if in_log else "files"), skipped


def _difference(metric: str, told: MetricDifference | None, files: _Files) -> MetricDifference | None:
    actual, golden = files.actual.get(metric), files.golden.get(metric)
    if told is not None and told.compared:
        return _with_step(told, (golden, actual))
    if actual is None or golden is None:
        return told
    found = compare(metric, actual, golden)
    if told is not None and told.approximate not in (None, found.approximate):
        return told  # the files are not those that were compared: golden values of another commit, perhaps
    found = with_told(found, exact=told.exact, approximate=told.approximate) if told else found
    return found if found.differing else told


def _with_step(told: MetricDifference, files: Iterable[Series | None]) -> MetricDifference:
    """The check prints values without their steps: a file with as many values knows them."""
    series = next((one for one in files if one is not None and len(one.values) == told.compared), None)
    if series is None or told.first_step is None:
        return told
    return replace(told, first_step=sorted(series.values)[told.first_step - 1], steps_known=True)


def _names(diagnosis: Diagnosis) -> list[str]:
    found = _FAILED.search(diagnosis.error.message if diagnosis.error else "")
    return [name.strip() for name in found["names"].split(",")] if found else []


def _open(
    diagnosis: Diagnosis, sources: Sequence[Source], kept: Sequence[Source]
) -> tuple[_Files, tuple[Skipped, ...]]:
    own = [(source, named) for source in sources if (named := GOLDEN_VALUES.search(source.name))]
    actual = [(source, named) for source, named in own if _KEPT not in source.name and not named["second"]]
    second = [(source, named) for source, named in own if _KEPT not in source.name and named["second"]]
    if any(_RESUMED in test for test in diagnosis.failed_tests):
        files, skipped = _read_both(_only(second), _only(actual))
        return _Files(_second_half(files.actual), _second_half(files.golden)), skipped
    one = _only(actual)
    base = GOLDEN_VALUES.search(one.name) if one else None
    copies = [source for source, _ in own if _KEPT in source.name]
    golden = [
        source
        for source in (*kept, *copies)
        if base and (named := GOLDEN_VALUES.search(source.name)) and named["base"] == base["base"]
    ]
    return _read_both(one, golden[0] if golden else None)


def _only(found: Iterable[tuple[Source, re.Match[str]]]) -> Source | None:
    """Several tests in one artifact: nothing tells which of their files the failed check has read."""
    files = [source for source, _ in found]
    return files[0] if len(files) == 1 else None


def _read_both(actual: Source | None, golden: Source | None) -> tuple[_Files, tuple[Skipped, ...]]:
    sides = [read_series(source) if source else {} for source in (actual, golden)]
    skipped = tuple(side for side in sides if isinstance(side, Skipped))
    read = [{} if isinstance(side, Skipped) else side for side in sides]
    return _Files(*read), skipped


def _second_half(series: Mapping[str, Series]) -> dict[str, Series]:
    """After a checkpoint was loaded only the steps of the second half are compared."""
    return {
        metric: Series({step: value for step, value in one.values.items() if step > max(one.values) // 2})
        for metric, one in series.items()
        if one.values
    }
