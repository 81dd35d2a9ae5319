"""A repository's own settings: `.github/mlm.yml` on its default branch, over the Megatron-LM defaults beside this file.

A mistake in the file never stops the bot: what is wrong is said in `RepoConfig.problems`, the rest of the file counts.
"""

from __future__ import annotations

import difflib
import re
from functools import cache
from importlib import resources
from typing import Annotated, Any

import re2  # type: ignore[import-untyped]
import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

#: Where the file lives, always read from the default branch: a pull request must not choose its own rules.
PATH = ".github/mlm.yml"
MAX_BYTES = 64 * 1024
ROLES = ("read", "triage", "write", "maintain", "admin")
#: Weaker than `role:write`: not enough for what costs GPU time.
WEAK = frozenset({"anyone", "role:read", "role:triage"})
GRANT = re.compile(
    rf"anyone|author|trustees|role:(?:{'|'.join(ROLES)})|user:[A-Za-z0-9-]{{1,39}}"
    r"|team:[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}"
)

#: What RE2 calls parts of Python's own expressions that it leaves out for the sake of its linear time.
BEYOND_RE2 = ("invalid perl operator", "invalid escape sequence")


def _regex(text: str) -> str:
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(text, options)
    except UnicodeEncodeError:
        raise ValueError("not a regular expression: it is no text") from None
    except re2.error as error:
        why = error.args[0].decode(errors="replace")
        beyond = " (patterns are RE2's: they cannot look ahead, behind or back)" if why.startswith(BEYOND_RE2) else ""
        raise ValueError(f"not a regular expression: {why}{beyond}") from None
    return text


def _grant(text: str) -> str:
    if not GRANT.fullmatch(text):
        raise ValueError(
            f"{text!r} is none of anyone, author, trustees, role:<{'|'.join(ROLES)}>, user:<login>, team:<org>/<team>"
        )
    return text


Regex = Annotated[str, Field(max_length=500), AfterValidator(_regex)]
Grant = Annotated[str, AfterValidator(_grant)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Vetting(_Part):
    """How a person lets CI run on a commit of a stranger."""

    command: str = Field(max_length=200)
    who: str = Field(max_length=200)


class JobNames(_Part):
    """Patterns for whole job names, by kind. RE2: a repository's pattern takes linear time on any name."""

    unit: Regex
    functional: Regex
    lint: Regex
    build: Regex
    plan: str
    gb200_runner: Regex
    consequences: tuple[Regex, ...]


class PlanRule(_Part):
    """What is tested when `label` is the first of the list that a pull request has; None: it has none of them."""

    label: str | None
    scope: str
    n_repeat: int = Field(ge=1, le=1000)
    lightweight: bool


class Limits(_Part):
    """Ceilings on what people and labels may start."""

    author_reruns_per_day: int = Field(ge=0, le=100)
    label_reruns_per_run: int = Field(ge=0, le=50)
    gpu_jobs_per_user_day: int = Field(ge=0, le=1_000_000)
    gpu_jobs_per_pull_day: int = Field(ge=0, le=1_000_000)
    gpu_jobs_per_day: int = Field(ge=0, le=1_000_000)
    reruns_per_run: int = Field(ge=1, le=50)
    rerun_days: int = Field(ge=1, le=30)


class Retry(_Part):
    """When a failed run is started again without being asked: never, unless the repository says so."""

    enabled: bool
    categories: tuple[str, ...]
    max_leaves: int = Field(ge=1, le=50)
    gpu_jobs_per_day: int = Field(ge=0, le=1_000_000)


class CheckSettings(_Part):
    """Our check run. `required`: red blocks a merge where a branch rule names the check."""

    enabled: bool
    required: bool


class RepoConfig(_Part):
    """The settings of one repository. `problems` are Markdown-free sentences about what the file got wrong."""

    workflow: str | None
    mirror_branch: str
    vetting: Vetting
    jobs: JobNames
    plans: tuple[PlanRule, ...]
    scope_aliases: dict[str, str]
    scope_words: dict[str, str]
    images: dict[str, str]
    default_image: str
    extras: dict[str, str]
    commands: dict[str, tuple[Grant, ...]]
    mutating: tuple[str, ...]
    trustees: tuple[str, ...]
    bots: tuple[str, ...]  # logins with their "[bot]"
    run_words: dict[str, str]
    mute_label: str = Field(min_length=1, max_length=50)
    queue_environment: str
    app: str | None
    limits: Limits
    retry: Retry
    check: CheckSettings
    #: The operator's ceilings (`config/caps.py`); a repository's file cannot name them.
    cap: dict[str, tuple[Grant, ...]] = {}
    cap_trustees: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> RepoConfig:
        if self.mirror_branch.count("{number}") != 1 or _braces(self.mirror_branch, "number"):
            raise ValueError("mirror_branch must hold {number} once, and no other braces")
        if _braces(self.vetting.command, "sha"):
            raise ValueError("vetting.command may hold {sha}, and no other braces")
        if not self.plans or self.plans[-1].label is not None:
            raise ValueError("plans must end with a line whose label is null")
        for verb in self.mutating:
            if weak := WEAK.intersection(self.commands.get(verb, ())):
                raise ValueError(f"{verb} cannot be opened to {', '.join(sorted(weak))}: it costs GPU time")
        return self

    @property
    def ci_labels(self) -> frozenset[str]:
        """Labels that change what CI does."""
        return frozenset({*(rule.label for rule in self.plans if rule.label), *self.images, *self.extras})


#: PyYAML's own reader takes minutes for 60,000 opening brackets; libyaml refuses them. PyYAML may be built without it.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _braces(template: str, name: str) -> bool:
    """Say whether there is anything else to fill in."""
    return any(brace in template.replace(f"{{{name}}}", "") for brace in "{}")


@cache
def _default_document() -> dict[str, Any]:
    text = resources.files("config").joinpath("workloads.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    return document


@cache
def default_config() -> RepoConfig:
    """Return the Megatron-LM defaults."""
    return RepoConfig.model_validate(_default_document())


def load_repo_config(raw: bytes | None) -> RepoConfig:
    """Lay the repository's file over the defaults, key by key.

    Args:
        raw: the file's bytes, None if the repository has none.
    Returns:
        Always a usable configuration; each key that is unknown or wrong is left at its default and told in `problems`.
    """
    if raw is None:
        return default_config()
    own, problem = _read(raw)
    problems = [problem] if problem else []
    document = dict(_default_document())
    for key, value in own.items():
        if key not in _default_document() or key == "mutating":
            problems.append(_unknown(key, known=[name for name in document if name != "mutating"]))
            continue
        candidate = {**document, key: _merged(document[key], value)}
        try:
            RepoConfig.model_validate(candidate)
        except ValidationError as error:
            problems.append(_why(key, error))
        else:
            document = candidate
    return RepoConfig.model_validate({**document, "problems": tuple(problems)})


def _merged(default: Any, own: Any) -> Any:
    """Settings grouped under one key are taken over one by one; tables of labels and lists are replaced whole."""
    if not isinstance(default, dict) or not isinstance(own, dict):
        return own
    of_labels = any(":" in name or " " in name for name in default)
    return own if of_labels else {**default, **own}


def _read(raw: bytes) -> tuple[dict[str, Any], str]:
    """Return the document and a problem ("" if none); aliases are refused, they can blow up a small file."""
    if len(raw) > MAX_BYTES:
        return {}, f"{PATH} is larger than {MAX_BYTES // 1024} KiB and was not read"
    try:
        text = raw.decode()
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_LOADER)):
            return {}, f"{PATH} uses YAML aliases and was not read"
        document = yaml.load(text, Loader=_LOADER)  # noqa: S506 (both are safe loaders)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # ValueError: no UTF-8, a day that no month has, a number of too many digits.
        mark = getattr(error, "problem_mark", None)
        return {}, f"{PATH} is not valid YAML" + (f" (line {mark.line + 1})" if mark else "")
    if document is None:
        return {}, ""
    if not isinstance(document, dict):
        return {}, f"{PATH} must be a table of settings"
    return {str(key): value for key, value in document.items()}, ""


def _unknown(key: str, *, known: list[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    return f"{PATH}: unknown key {key[:60]!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _why(key: str, error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or key
    return f"{PATH}: {where[:80]}: {first['msg'].removeprefix('Value error, ')[:200]}; the default is used"
