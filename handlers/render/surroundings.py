"""Words for where a failure stands: its relation to the change, said as evidence, and the owners of the place."""

from __future__ import annotations

from analyzers.comparison import Drift
from analyzers.model import Diagnosis
from analyzers.surroundings import ClueKind, JobRecipe, Relation, RelationName
from analyzers.verdict.summary import say_checks, say_metric

from .redaction import redact_text
from .safe_text import code, prose

#: Owners and clues that are shown; what follows is rarely read.
SHOWN = 4

RELATION = {
    RelationName.NEW: "points to this change",
    RelationName.ALSO_ON_BASE: "also seen without this change",
    RelationName.KNOWN_FLAKY: "known to fail now and then",
    RelationName.INFRASTRUCTURE: "points to the infrastructure",
    RelationName.UNKNOWN: "unclear",
}

NUMBERS = {
    Drift.DRIFT: "look like drift: the approximate check passes, and three digits agree",
    Drift.REGRESSION: "look like a regression",
    Drift.MISSING: "are missing",
    Drift.UNCLEAR: "are not told",
}


def text_rows(found: Diagnosis) -> list[tuple[str, str]]:
    """Return labelled lines for a terminal; a label of "" continues the one above."""
    rows: list[tuple[str, str]] = []
    if found.golden is not None:
        rows.append(("numbers", NUMBERS[found.golden.kind]))
        rows += [("", line) for line in _metrics(found)]
    if found.relation is not None:
        rows.append(("change", RELATION[found.relation.name]))
        rows += [("", redact_text(clue.text)) for clue in found.relation.evidence[:SHOWN]]
    if found.owners:
        rows.append(("owners", " ".join(found.owners[:SHOWN])))
    if found.recipe is not None:
        rows.append(("recipe", _recipe(found.recipe)))
    return rows


def _adds_nothing(relation: Relation) -> bool:
    return relation.name is RelationName.UNKNOWN and all(
        clue.kind is ClueKind.NOT_TOUCHED for clue in relation.evidence
    )


def _metrics(found: Diagnosis) -> list[str]:
    metrics = found.golden.metrics if found.golden else ()
    lines = []
    for one in metrics[:SHOWN]:
        checks = say_checks(one)
        lines.append(redact_text(say_metric(one) + (f" ({checks})" if checks else "")))
    return lines + ([f"and {len(metrics) - SHOWN} more metrics"] if len(metrics) > SHOWN else [])


def _recipe(recipe: JobRecipe) -> str:
    """Say what CI runs the job with; what the recipes leave open is left out."""
    named = (
        ("environment", recipe.environments),
        ("tag", recipe.tags),
        ("platform", recipe.platforms),
        ("scope", recipe.scopes),
    )
    words = [f"{name} {' or '.join(values)}" for name, values in named if values]
    words += [f"n_repeat {recipe.n_repeat}"] if recipe.n_repeat is not None else []
    words += [f"time limit {recipe.time_limit_s} s"] if recipe.time_limit_s is not None else []
    return redact_text(", ".join(words))


def markdown_lines(found: Diagnosis, *, place_told: bool = False) -> list[str]:
    """Return list items. Owners stand in code: naming them must not call them.

    Args:
        place_told: the line about the place already says whether the change touches that file.
    """
    lines = []
    if found.golden is not None:
        told = "; ".join(prose(line) for line in _metrics(found))
        lines.append(f"- **Numbers:** {NUMBERS[found.golden.kind]}. {told}")
    if found.relation is not None and not (place_told and _adds_nothing(found.relation)):
        clues = [clue for clue in found.relation.evidence if not (place_told and clue.kind is ClueKind.CHANGED_FILE)]
        said = " ".join(prose(redact_text(clue.text)) for clue in clues[:SHOWN])
        lines.append(f"- **This change:** {RELATION[found.relation.name]}{f'. {said}' if said else ''}")
    if found.owners:
        lines.append(f"- **Owners:** {', '.join(code(owner) for owner in found.owners[:SHOWN])}")
    return lines
