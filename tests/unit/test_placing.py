"""What the comment says about a cause's place: this change's part in it, and whose part of the repository it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fakes import make_diagnosis, make_finding, make_job
from test_report import report_of

from analyzers.model import Category, Command
from config.repo import default_config
from handlers.context import RefusedError
from handlers.placing import place_cause, read_codeowners

OWNERS = "* @acme/everyone\n/megatron/core/ @acme/core @someone someone@example.com\n"


class Repository:
    """Its files by path; a path that is refused raises."""

    def __init__(self, files: dict[str, bytes], *, refused: bool = False) -> None:
        self.files, self.refused, self.asked = files, refused, []

    async def file(self, path: str) -> bytes | None:
        self.asked.append(path)
        if self.refused:
            raise RefusedError("Resource not accessible by integration", status=403)
        return self.files.get(path)


def ctx(repository: Repository) -> Any:
    return SimpleNamespace(github=repository)


async def test_the_first_codeowners_file_counts() -> None:
    repository = Repository({"CODEOWNERS": b"* @root\xff", "docs/CODEOWNERS": b"* @docs"})
    assert await read_codeowners([make_finding()], ctx(repository)) == "* @root\ufffd"
    assert repository.asked == [".github/CODEOWNERS", "CODEOWNERS"]


async def test_nothing_is_fetched_for_failures_without_a_place() -> None:
    repository = Repository({})
    nowhere = make_finding(diagnosis=make_diagnosis(location=None))
    assert await read_codeowners([nowhere], ctx(repository)) is None
    assert repository.asked == []


async def test_a_refusal_leaves_the_owners_out() -> None:
    assert await read_codeowners([make_finding()], ctx(Repository({}, refused=True))) is None


def test_owners_are_named_and_not_called() -> None:
    body = report_of(make_job(), findings=(make_finding(),), codeowners=OWNERS)
    assert "- **Owners:** `@acme/core`, `@someone`, `someone@example.com`" in body
    assert "@" not in body.replace("`@acme/core`", "").replace("`@someone`", "").replace("`someone@example.com`", "")


def test_a_changed_file_points_to_this_change() -> None:
    files = frozenset({"megatron/core/attention.py"})
    body = report_of(make_job(), findings=(make_finding(),), changed_files=files)
    assert "- **This change:** points to this change\n" in body
    assert body.count("that this pull request changes") == 1


def test_what_the_place_already_says_is_not_said_twice() -> None:
    body = report_of(make_job(), findings=(make_finding(),), changed_files=frozenset({"README.md"}))
    assert "not changed by this pull request" in body
    assert "**This change:**" not in body


def test_a_changed_test_case_folder_is_told() -> None:
    found = make_diagnosis(category=Category.GOLDEN_MISMATCH, location="tests/functional_tests/common.py:3")
    finding = make_finding(make_job("gpt/gpt_small - latest"), diagnosis=found)
    changed = frozenset({"tests/functional_tests/test_cases/gpt/gpt_small/model_config.yaml"})
    placed = place_cause(finding, changed, None, default_config())
    assert placed.relation is not None
    assert placed.relation.name == "new"
    assert "the test case's own files" in placed.relation.evidence[0].text


def test_the_golden_values_of_this_very_run_are_fetched() -> None:
    refresh = Command("Take them", 'python download.py --pipeline-id "$RUN_ID" --only-failing')
    finding = make_finding(make_job("gpt/a - latest"), diagnosis=make_diagnosis(commands=(refresh,)))
    assert "--pipeline-id 7 --only-failing" in report_of(make_job("gpt/a - latest"), findings=(finding,))


def test_a_network_failure_is_not_this_change() -> None:
    found = make_diagnosis(category=Category.NETWORK, retryable=True)
    body = report_of(make_job(), findings=(make_finding(diagnosis=found),), changed_files=frozenset())
    assert "- **This change:** points to the infrastructure" in body
