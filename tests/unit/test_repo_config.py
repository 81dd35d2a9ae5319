"""A repository's own settings: what is right counts, what is wrong is said."""

from __future__ import annotations

import pytest

from config.repo import MAX_BYTES, default_config, load_repo_config
from handlers.job_names import is_consequence, read_name


def test_without_a_file_the_defaults_hold() -> None:
    config = load_repo_config(None)
    assert config == default_config()
    assert config.workflow == "CICD Megatron-LM"
    assert config.problems == ()
    assert {"Run tests", "Run functional tests", "container::lts"} <= config.ci_labels


def test_settings_are_laid_over_the_defaults_one_by_one() -> None:
    config = load_repo_config(b"limits: {author_reruns_per_day: 9}\njobs: {plan: setup}\nworkflow: CI\n")
    assert config.problems == ()
    assert config.limits.author_reruns_per_day == 9
    assert config.limits.rerun_days == 30
    assert config.jobs.plan == "setup"
    assert config.jobs.unit == default_config().jobs.unit
    assert config.workflow == "CI"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("workflw: CI", "did you mean 'workflow'"),
        ("mutating: []", "unknown key 'mutating'"),
        ("limits: {author_reruns_per_day: many}", "limits.author_reruns_per_day"),
        ("limits: {rerun_days: 60}", "limits.rerun_days"),
        ("limits: {unheard_of: 1}", "limits.unheard_of"),
        ("jobs: {unit: '('}", "not a regular expression: missing )"),
        ("jobs: {unit: '(?!a)b'}", "cannot look ahead"),
        ("jobs: {consequences: ['(?<=a)b']}", "cannot look ahead, behind"),
        (r"jobs: {lint: '(a)\1'}", r"invalid escape sequence: \1"),
        ("jobs: {build: '(a{1000}){1000}'}", "invalid repetition size"),
        ("commands: {rerun: [anyone]}", "costs GPU time"),
        ("commands: {cancel: ['role:triage']}", "costs GPU time"),
        ("commands: {rerun: ['role:root']}", "none of anyone"),
        ("mirror_branch: copies", "{number}"),
        ("plans: []", "label is null"),
        ("- a\n- b", "must be a table"),
        ("a: [", "not valid YAML (line"),
        ("a: &x [1]\nb: *x", "aliases"),
        ("x: '" + "y" * MAX_BYTES + "'", "larger than"),
        ("\ud800", "not valid YAML"),
        ("x: " + "[" * 60_000, "not valid YAML"),
        ("x: " + "9" * 5_000, "not valid YAML"),
        ("x: 2026-99-99", "not valid YAML"),
        ("mirror_branch: 'pull-request/{number}{x}'", "no other braces"),
        ("vetting: {command: '/ok {sha.__class__}'}", "no other braces"),
    ],
)
def test_a_mistake_is_said_and_the_rest_still_works(text: str, problem: str) -> None:
    extra = "trustees: [ada]\n" if text[0] not in "-ax\ud800" else ""
    config = load_repo_config((extra + text).encode("utf-8", "surrogatepass"))
    assert problem in config.problems[0]
    assert config.trustees == (("ada",) if extra else ())
    assert config.limits == default_config().limits
    assert config.commands == default_config().commands


def test_an_empty_file_is_no_mistake() -> None:
    assert load_repo_config(b"# nothing yet\n").problems == ()


def test_a_pattern_of_a_repository_takes_linear_time() -> None:
    """Python's own expressions would take longer than anybody waits for each of these."""
    patterns = ("(a+)+$", "(a|a)*$", "(.*a){20}", "(x+x+)+y")
    config = load_repo_config(f"jobs: {{unit: '{patterns[0]}', consequences: {list(patterns)}}}\n".encode())
    assert config.problems == ()
    assert (config.jobs.unit, config.jobs.consequences) == (patterns[0], patterns)
    for name in ("a" * 5_000 + "!", "x" * 5_000):
        assert read_name(name, config.jobs, runner_labels=(name,)).kind == "other"
        assert not is_consequence(name, config.jobs)
