"""The demo's page: safe to have open, and true to what the simulated GitHub holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from bot.demo.ci_plan import LINTING
from bot.demo.director import Director
from bot.demo.markdown import render_markdown
from bot.demo.page import Page


class Browser:
    """Asks the page as a browser would."""

    def __init__(self, director: Director, url: str, session: aiohttp.ClientSession) -> None:
        self.director = director
        self.url = url
        self.session = session

    async def get(self, path: str, **more: Any) -> tuple[aiohttp.ClientResponse, str]:
        async with self.session.get(self.url + path, **more) as answer:
            return answer, await answer.text()

    async def act(self, action: str, **asked: str) -> dict[str, str]:
        async with self.session.post(f"{self.url}/act/{action}", json=asked, headers={"X-Demo": "1"}) as answer:
            assert answer.status == 200, await answer.text()
            return dict(await answer.json())

    async def parts(self) -> dict[str, str]:
        async with self.session.get(f"{self.url}/parts") as answer:
            return dict(await answer.json())


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    director = Director(pace_s=0.01)
    page = Page(director, port=0)
    url = await page.start()
    async with director.github, aiohttp.ClientSession() as session:
        director.github.state.web_url = url
        await director.set_stage()
        yield Browser(director, url, session)
    await page.close()


async def test_the_page_shows_the_pull_request_and_loads_nothing_from_elsewhere(browser: Browser) -> None:
    answer, text = await browser.get("/")
    assert answer.url.path == "/demo-org/Megatron-LM/pull/42"
    assert "Compute the attention mask inside the softmax" in text
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "http://" not in text.replace(browser.url, "").replace("http://www.w3.org", "")
    assert "https://" not in text
    for path in ("/static/demo.css", "/static/demo.js", "/static/icon.svg"):
        assert (await browser.get(path))[0].status == 200


@pytest.mark.parametrize("headers", [{}, {"X-Demo": "1", "Host": "evil.example"}])
async def test_other_sites_cannot_press_the_buttons(browser: Browser, headers: dict[str, str]) -> None:
    async with browser.session.post(f"{browser.url}/act/push", json={}, headers=headers) as answer:
        assert answer.status == 403


async def test_the_parts_are_sent_once_until_they_change(browser: Browser) -> None:
    await browser.act("pass")
    await browser.director.github.until(lambda: browser.director.newest_run().status == "completed")
    first, _ = await browser.get("/parts")
    again, _ = await browser.get("/parts", headers={"If-None-Match": first.headers["ETag"]})
    await browser.act("label", name="bug")
    changed, _ = await browser.get("/parts", headers={"If-None-Match": first.headers["ETag"]})
    assert (first.status, again.status, changed.status) == (200, 304, 200)


async def test_a_label_is_clicked_on_and_off(browser: Browser) -> None:
    await browser.act("label", name="Run tests")
    assert 'data-name="Run tests" aria-pressed="true"' in (await browser.parts())["labels"]
    await browser.act("label", name="Run tests")
    assert 'data-name="Run tests" aria-pressed="false"' in (await browser.parts())["labels"]


async def test_a_comment_is_shown_without_what_could_run(browser: Browser) -> None:
    await browser.act(
        "comment", **{"as": "mallory", "body": "**hello** <img src=x onerror=alert(1)><script>x</script>"}
    )
    shown = (await browser.parts())["timeline"]
    assert "<strong>hello</strong>" in shown
    assert "onerror" not in shown
    assert "script" not in shown


async def test_what_is_wrong_with_a_comment_is_said(browser: Browser) -> None:
    assert (await browser.act("comment", **{"as": "ada", "body": " "}))["tone"] == "no"


async def test_a_run_waits_at_its_tests_until_one_is_made_to_fail(browser: Browser) -> None:
    github, run = browser.director.github, browser.director.newest_run()
    oom = "tests/unit_tests/models/**/*.py - latest"
    await github.until(lambda: oom in run.attempt.jobs)
    await browser.act("fail", failure="cuda-oom")
    await github.until(lambda: run.status == "completed")
    job = github.job(run, oom)
    assert (run.conclusion, job.conclusion) == ("failure", "failure")
    path = f"/demo-org/Megatron-LM/actions/runs/{run.id}/job/{job.id}"
    assert "torch.distributed.elastic.multiprocessing.errors.ChildFailedError" in (await browser.get(path))[1]
    assert len(github.artifacts(run)) == 1


async def test_a_fault_of_the_code_comes_back_until_somebody_pushes(browser: Browser) -> None:
    github, director = browser.director.github, browser.director
    await browser.act("fail", failure="lint")
    run = director.newest_run()
    for _ in range(2):
        await github.until(lambda: run.status == "completed")
        assert github.job(run, LINTING).conclusion == "failure"
        await browser.act("rerun")
    await browser.act("push")
    await browser.act("pass")
    await github.until(lambda: director.newest_run().status == "completed")
    assert director.newest_run() is not run
    assert director.newest_run().conclusion == "success"


async def test_a_job_of_a_completed_run_fails_by_being_run_again(browser: Browser) -> None:
    github, run = browser.director.github, browser.director.newest_run()
    await browser.act("pass")
    await github.until(lambda: run.status == "completed")
    await browser.act("fail", failure="hang")
    await github.until(lambda: run.attempt_number == 2 and run.status == "completed")
    assert run.conclusion == "failure"


async def test_an_unvetted_push_starts_no_ci_until_a_maintainer_says_so(browser: Browser) -> None:
    director = browser.director
    before = director.newest_run()
    await browser.act("push-unvetted")
    await browser.act("comment", **{"as": "mallory", "body": f"/ok to test {director.pull.head_sha}"})
    assert director.newest_run() is before
    await browser.act("comment", **{"as": "grace", "body": f"/ok to test {director.pull.head_sha}"})
    assert director.newest_run().head_sha == director.pull.head_sha


async def test_pages_that_are_not_there_say_so(browser: Browser) -> None:
    for path in ("/demo-org/Megatron-LM/pull/7", "/demo-org/Megatron-LM/blob/main/x.py", "/a/b/actions/runs/1/job/x"):
        answer, text = await browser.get(path)
        assert (answer.status, "Not in the demo" in text) == (404, True)


def test_markdown_keeps_details_and_tables_and_drops_marks() -> None:
    shown = render_markdown("<!-- hidden -->\n<details><summary>More</summary>\n\n| a |\n|---|\n| b |\n\n</details>")
    assert "<details>" in shown
    assert "<table>" in shown
    assert "hidden" not in shown
