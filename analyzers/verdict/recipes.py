"""Recipes: what the repository under test says about the job that failed (bucket, environment, repeats, time limit).

A recipe is a YAML file with a `spec` and `products`; each product multiplies one test case by lists of values. The
text comes from a pull request's checkout, so it is bounded in size, depth and number of rows, and may hold no aliases.

Source: Megatron-LM d98e8a64dd, tests/test_utils/python_scripts/recipe_parser.py (expansion, scope names) and
tests/test_utils/recipes/ (the files).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, Field

from analyzers.patterns import pattern
from analyzers.records import dataclass
from analyzers.surroundings import JobRecipe

#: The largest recipe of Megatron-LM has 18 KB, 4 levels and some hundred rows.
MAX_BYTES = 256 * 1024
MAX_DEPTH = 20
MAX_ROWS = 2_000

#: Scopes were renamed after cost tiers; both names are still in the files. The last two also say when they run.
LEGACY_SCOPES: Mapping[str, tuple[str, tuple[str, ...] | None]] = {
    "mr-github-slim": ("L0", None),
    "mr-github": ("L1", None),
    "nightly": ("L2", ("nightly",)),
    "weekly": ("L3", ("weekly",)),
}
#: Scopes that name no trigger run on each of these.
DEFAULT_CADENCE = ("pr", "nightly", "mergegroup")

#: The `model` of all unit buckets.
UNIT_MODEL = "unit-tests"

_SCRIPT = pattern(r"\bTRAINING_SCRIPT_PATH=(?:\./)?([\w./-]{1,200}\.py)\b")


Kind = Literal["unit", "functional"]
Value = TypeVar("Value", int, str)


class RecipeError(ValueError):
    """A recipe that cannot be used; the message says why."""


@dataclass(frozen=True)
class Workload:
    """One row of an expanded recipe. `None` where neither the product nor the spec says it; scopes carry new names."""

    file: str
    model: str
    test_case: str
    environment: str | None = None
    platform: str | None = None  # "dgx_h100"
    tag: str | None = None
    scope: str | None = None
    cadence: tuple[str, ...] = DEFAULT_CADENCE
    n_repeat: int | None = None
    time_limit_s: int | None = None
    gpus: int | None = None  # per node
    nodes: int | None = None
    training_script: str | None = None


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


_Values = Annotated[list[Any], BeforeValidator(_as_list)]


class _Product(BaseModel):
    test_case: Annotated[list[str], BeforeValidator(_as_list), Field(min_length=1)]
    cadence: list[str] | None = None
    products: list[dict[str, _Values]] | None = None


class _Spec(BaseModel):
    model: str
    environment: str | None = None
    platforms: str | None = None
    tag: str | None = None
    scope: str | None = None
    n_repeat: int | None = None
    time_limit: int | None = None
    gpus: int | None = None
    nodes: int | None = None
    script: str | None = None


class _Recipe(BaseModel):
    spec: dict[str, Any]
    products: list[_Product] | None = None


def resolve_scope(scope: str) -> str:
    """Return the tier that a scope is called today ("mr-github" is "L1"); a name without alias stays as it is."""
    return LEGACY_SCOPES[scope][0] if scope in LEGACY_SCOPES else scope


def read_recipe(name: str, text: str) -> tuple[Workload, ...]:
    """Expand one recipe file, rows in the order of the file.

    A product's values override the spec's; lists multiply, except `cadence`. Of several test cases in one product only
    the first counts, as in CI.

    Raises:
        RecipeError: no recipe, too large, too deep, too many rows, or with YAML aliases.
    """
    try:
        recipe = _Recipe.model_validate(_load(text))
        rows: list[Workload] = []
        for product in recipe.products or ():
            rows += _rows(name, recipe.spec, product, room=MAX_ROWS - len(rows))
    except RecipeError as why:
        raise RecipeError(f"{name}: {why}") from why
    except (yaml.YAMLError, ValueError, OverflowError) as why:  # ValueError: a number or a date that is none
        raise RecipeError(f"{name}: no readable recipe ({type(why).__name__})") from why
    return tuple(rows)


@dataclass(frozen=True)
class CiJob:
    """A test job, as its name tells it. None where the name does not say it: then it matters not."""

    kind: Kind
    test_case: str  # of a functional job; a unit job's bucket glob
    model: str | None = None
    platform: str | None = None  # "h100", "gb200"
    tag: str | None = None  # "latest", "legacy"; if some rows have it, the others are left aside
    scopes: frozenset[str] = frozenset()  # those that this CI runs; if some rows have one, the others are left aside


def find_recipe(workloads: Iterable[Workload], job: CiJob) -> JobRecipe | None:
    """Gather the rows that a job runs; None when no recipe has it."""
    rows = [row for row in workloads if row.test_case == job.test_case and job.kind == _kind(row)]
    rows = [row for row in rows if job.model in (None, row.model) and job.platform in (None, _place(row))]
    rows = [row for row in rows if job.tag in (None, row.tag)] or rows
    rows = [row for row in rows if row.scope in job.scopes] or rows
    if not rows:
        return None
    return JobRecipe(
        kind=job.kind,
        model=rows[0].model,
        test_case=job.test_case,
        bucket=job.test_case if job.kind == "unit" else None,
        environments=_each(row.environment for row in rows),
        platforms=_each(row.platform for row in rows),
        tags=_each(row.tag for row in rows),
        scopes=_each(row.scope for row in rows),
        n_repeat=_agreed(row.n_repeat for row in rows),
        time_limit_s=_agreed(row.time_limit_s for row in rows),
        gpus=_agreed(row.gpus for row in rows),
        nodes=_agreed(row.nodes for row in rows),
        training_script=_agreed(row.training_script for row in rows),
        files=_each(row.file for row in rows),
    )


def _kind(row: Workload) -> Kind:
    return "unit" if row.model == UNIT_MODEL else "functional"


def _place(row: Workload) -> str:
    """Name a row's platform as CI's job names do; a row that names none is told by its folder."""
    return row.platform.removeprefix("dgx_") if row.platform else row.file.rpartition("/")[0].rpartition("/")[2]


def _rows(name: str, spec: dict[str, Any], product: _Product, *, room: int) -> list[Workload]:
    rows: list[Workload] = []
    for block in product.products or ():
        # A cadence says when a row runs; it is one value that happens to be a list.
        explicit = [str(value) for value in block["cadence"]] if "cadence" in block else product.cadence
        axes = {key: values for key, values in block.items() if key != "cadence"}
        if math.prod(map(len, axes.values())) > room - len(rows):
            raise RecipeError(f"more than {MAX_ROWS} rows")
        for chosen in itertools.product(*axes.values()):
            values = {**spec, **dict(zip(axes, chosen, strict=True))}
            rows.append(_workload(name, product.test_case[0], _Spec.model_validate(values), explicit))
    return rows


def _workload(name: str, test_case: str, spec: _Spec, explicit: list[str] | None) -> Workload:
    _, implied = LEGACY_SCOPES.get(spec.scope or "", ("", None))
    script = _SCRIPT.search(spec.script or "")
    return Workload(
        file=name,
        model=spec.model,
        test_case=test_case,
        environment=spec.environment,
        platform=spec.platforms,
        tag=spec.tag,
        scope=None if spec.scope is None else resolve_scope(spec.scope),
        cadence=tuple(explicit) if explicit is not None else implied or DEFAULT_CADENCE,
        n_repeat=spec.n_repeat,
        time_limit_s=spec.time_limit,
        gpus=spec.gpus,
        nodes=spec.nodes,
        training_script=script[1] if script else None,
    )


def _load(text: str) -> Any:
    """Read bounded YAML. Events are counted before anything is built: an alias can make a small text enormous."""
    if len(text) > MAX_BYTES:
        raise RecipeError(f"larger than {MAX_BYTES} bytes")
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise RecipeError("YAML aliases are not read")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise RecipeError(f"nested deeper than {MAX_DEPTH}")
    return yaml.load(text, Loader=yaml.CSafeLoader)


def _each(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if value is not None}))


def _agreed(values: Iterable[Value | None]) -> Value | None:
    said = set(values)
    return said.pop() if len(said) == 1 else None
