"""`unknown` names what may have been the cause, the best guess first."""

from __future__ import annotations

from analyzers.analyze import analyze
from analyzers.model import Category, Diagnosis, Role
from analyzers.rules import RuleSet
from config.rule_files import rule_documents
from handlers.render.report import render_diagnosis
from handlers.render.text import render_text
from tests.logs import bundle, raised, ranks, torchrun_summary

WENT_ON = "".join(f"step {n} of the shutdown\n" for n in range(100))
FILE = "1/none_ab12cd34/attempt_0"


def left_silently(*, guesses: int) -> Diagnosis:
    """Rank 1 leaves with exit code 3, long after what its log shows; rank 0 has survived something, too."""
    errors = [f"{kind}Error: cannot read the {kind} table" for kind in ("Value", "Type", "OS", "Arithmetic")][:guesses]
    own = "".join(raised(error, "megatron/core/a.py:7 f") + "\n" + "going on\n" * 10 for error in errors) + WENT_ON
    other = raised("LookupError: no such key", "megatron/core/b.py:7 g") + WENT_ON if guesses else WENT_ON
    files = {**ranks({0: other, 1: own}, of=2), "launcher.log": torchrun_summary([(1, 3)])}
    rules = RuleSet.from_documents(rule_documents(), prove=False)
    return analyze(bundle(files), rules)


def test_the_suspects_last_survived_errors_are_the_best_guesses() -> None:
    found = left_silently(guesses=2)
    assert (found.category, found.culprit_ranks) == (Category.UNKNOWN, (1,))
    assert [(seen.ranks, seen.file, seen.line) for seen in found.also_seen] == [
        ((1,), f"{FILE}/1/stderr.log", 19),
        ((1,), f"{FILE}/1/stderr.log", 4),
        ((0,), f"{FILE}/0/stderr.log", 4),
    ]
    assert {seen.role for seen in found.also_seen} == {Role.CAUSE}


def test_there_are_never_more_than_three() -> None:
    assert len(left_silently(guesses=4).also_seen) == 3


def test_people_are_told() -> None:
    found = left_silently(guesses=1)
    text, markdown = render_text(found, color=False), render_diagnosis(found)
    assert f"Or one of these\n  crash_python on rank 1, {FILE}/1/stderr.log:4\n" in text
    shown = markdown.partition("<details>")[0]
    assert "Or one of these:\n\n- `crash_python` on rank 1, another candidate: " in shown


def test_nothing_is_guessed_where_nothing_was_seen() -> None:
    found = left_silently(guesses=0)
    assert (found.category, found.also_seen) == (Category.UNKNOWN, ())
    assert "Or one of these" not in render_text(found, color=False) + render_diagnosis(found)
