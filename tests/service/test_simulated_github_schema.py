"""Every answer and every webhook of the simulated GitHub fits GitHub's published schema (githubkit's typed models)."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from typing import Any

import pytest
from demo_client import REPO, Client, listening_client
from pydantic import TypeAdapter, ValidationError

from bot.demo.github import SimulatedGitHub

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # githubkit's own, about where its models live
    from githubkit.versions import WebhooksVersionSwitcher
    from githubkit.versions.v2022_11_28 import models
    from githubkit.webhooks import verify

parse = WebhooksVersionSwitcher()("2022-11-28").parse
MODELS = "tests/unit_tests/models/**/*.py - latest"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with listening_client() as client:
        client.github.repo.files[".github/mlm.yml"] = b"version: 1\n"
        yield client


def fits(model: Any, body: Any) -> None:
    """Fail with the places that do not fit; a few, since one wrong branch of a union names every field."""
    try:
        TypeAdapter(model).validate_python(body)
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:20]]
        pytest.fail("\n".join(wrong))


async def play_everything(github: SimulatedGitHub) -> tuple[Any, Any]:
    """Make every kind of event happen once."""
    pull = await github.open_pull(labels=["bug"])
    run = await github.start_run(pull)
    await github.finish_job(run, MODELS, "failure", artifact={"1/none_ab/attempt_0/0/stderr.log": "boom"})
    await github.finish_run(run)
    await github.rerun(run, by="ada", failed_only=True)
    await github.cancel_run(run)
    await github.label(pull, "Run tests")
    await github.unlabel(pull, "Run tests")
    comment = await github.comment(pull, "ada", "/mlm help")
    await github.edit(comment, "/mlm help rerun")
    await github.review(pull, "ada", "Looks good")
    await github.review_comment(pull, "ada", "A nit")
    await github.comment(await github.open_issue(github.repo), "ada", "How?")
    await github.push(pull)
    return pull, run


OUTPUT = {"title": "Nothing failed", "summary": "All is well"}
BUTTON = {"label": "Re-run failed", "description": "Run the failed jobs again", "identifier": "rerun-failed"}


async def make_check(client: Client, sha: str) -> Any:
    """Create a check run as an App does."""
    body = {"name": "mlm-bot / diagnosis", "head_sha": sha, "conclusion": "neutral", "output": OUTPUT}
    status, answer = await client.ask("POST", f"{REPO}/check-runs", json={**body, "actions": [BUTTON]})
    assert status == 201, answer
    return answer


async def test_every_webhook_fits_the_published_schema(client: Client) -> None:
    pull, run = await play_everything(client.github)
    await make_check(client, pull.head_sha)
    (check,) = client.github.checks(pull)
    await client.github.press(check, "rerun-failed", by="ada")
    await client.github.rerequest(check, by="ada")
    await client.github.rerequest_suite(check, by="ada")
    await client.github.rerun(run, by="ada")
    await client.github.hold_in_queue(run)
    await client.github.close_pull(pull, merged=True)
    seen = set()
    for event, body, signature in client.told:
        assert verify(client.github.webhook_secret, body, signature)
        seen.add((event, parse(event, body).action))
    assert seen == {
        *(("check_run", action) for action in ("completed", "requested_action", "rerequested")),
        ("check_suite", "rerequested"),
        ("pull_request_review", "submitted"),
        ("pull_request_review_comment", "created"),
        ("issue_comment", "created"),
        ("issue_comment", "edited"),
        *(("pull_request", action) for action in ("opened", "labeled", "unlabeled", "synchronize", "closed")),
        *(("workflow_job", action) for action in ("queued", "waiting", "in_progress", "completed")),
        *(("workflow_run", action) for action in ("requested", "in_progress", "completed")),
    }


async def test_every_answer_fits_the_published_schema(client: Client) -> None:
    github = client.github
    pull, run = await play_everything(github)
    job, comment = run.jobs[0], github.comments(pull)[0]
    artifact = github.artifacts(run)[0]
    issue, actions = f"{REPO}/issues/{pull.number}", f"{REPO}/actions/runs/{run.id}"
    merge = pull.merge_commit_sha
    fits(models.InstallationToken, await client.renew_token(repository_ids=[github.repo.id]))
    check = await make_check(client, pull.head_sha)
    github.add_team("mcore", "ada", repo=github.repo)
    expected = {
        ("GET", REPO): models.FullRepository,
        ("GET", f"{REPO}/pulls/{pull.number}"): models.PullRequest,
        ("GET", f"{REPO}/pulls/{pull.number}/files"): list[models.DiffEntry],
        ("GET", f"{REPO}/commits/{pull.head_sha}/pulls"): list[models.PullRequestSimple],
        ("GET", f"{REPO}/git/ref/heads/pull-request/{pull.number}"): models.GitRef,
        ("GET", f"{REPO}/git/commits/{merge}"): models.GitCommit,
        ("GET", f"{REPO}/collaborators/ada/permission"): models.RepositoryCollaboratorPermission,
        ("GET", f"{REPO}/contents/.github/mlm.yml"): models.ContentFile,
        ("GET", f"{REPO}/actions/runs?branch=pull-request/1"): models.ReposOwnerRepoActionsRunsGetResponse200,
        ("GET", actions): models.WorkflowRun,
        ("GET", f"{actions}/jobs?filter=all"): models.ReposOwnerRepoActionsRunsRunIdJobsGetResponse200,
        (
            "GET",
            f"{actions}/attempts/1/jobs",
        ): models.ReposOwnerRepoActionsRunsRunIdAttemptsAttemptNumberJobsGetResponse200,
        ("GET", f"{actions}/artifacts"): models.ReposOwnerRepoActionsRunsRunIdArtifactsGetResponse200,
        ("GET", f"{REPO}/actions/jobs/{job.id}"): models.Job,
        ("GET", f"{REPO}/check-runs/{job.id}"): models.CheckRun,
        ("GET", f"{REPO}/check-runs/{check['id']}"): models.CheckRun,
        ("GET", f"{REPO}/check-runs/{check['id']}/annotations"): list[models.CheckAnnotation],
        ("GET", f"{REPO}/commits/{pull.head_sha}/check-runs"): models.ReposOwnerRepoCommitsRefCheckRunsGetResponse200,
        ("GET", "/orgs/NVIDIA/teams/mcore/memberships/ada"): models.TeamMembership,
        ("GET", f"{REPO}/actions/artifacts/{artifact.id}"): models.Artifact,
        ("GET", f"{issue}/comments"): list[models.IssueComment],
        ("POST", f"{issue}/comments"): models.IssueComment,
        ("GET", f"{REPO}/issues/comments/{comment.id}"): models.IssueComment,
        ("POST", f"{REPO}/issues/comments/{comment.id}/reactions"): models.Reaction,
        ("GET", f"{REPO}/issues/comments/{comment.id}/reactions"): list[models.Reaction],
        ("GET", f"{issue}/labels"): list[models.Label],
        ("POST", f"{issue}/labels"): list[models.Label],
        ("POST", f"{actions}/rerun"): models.EmptyObject,
        ("GET", f"{REPO}/pulls?state=open&sort=updated&direction=desc"): list[models.PullRequestSimple],
        ("GET", "/installation/repositories"): models.InstallationRepositoriesGetResponse200,
        ("GET", "/rate_limit"): models.RateLimitOverview,
        ("GET", f"{REPO}/no/such/thing"): models.BasicError,
    }
    sent = {"/comments": {"body": "hello"}, "/reactions": {"content": "eyes"}, "/labels": {"labels": ["Run tests"]}}
    for (method, path), model in expected.items():
        body = next((body for end, body in sent.items() if path.endswith(end)), None) if method == "POST" else None
        status, answer = await client.ask(method, path, json=body)
        created = method == "POST" and not path.endswith("/labels")
        assert status == (404 if model is models.BasicError else 201 if created else 200), (path, answer)
        fits(model, answer)


async def test_what_the_app_itself_sees_fits_the_published_schema(client: Client) -> None:
    await client.github.open_pull()
    await client.github.settle()
    delivery = client.github.deliveries[0]
    for path, model in {
        "/app": models.Integration,
        f"{REPO}/installation": models.Installation,
        "/app/installations": list[models.Installation],
        "/app/hook/deliveries?status=success": list[models.HookDeliveryItem],
        f"/app/hook/deliveries/{delivery.id}": models.HookDelivery,
    }.items():
        status, answer = await client.ask("GET", path, app=True)
        assert status == 200, answer
        fits(model, answer)
    status, _ = await client.ask("POST", f"/app/hook/deliveries/{delivery.id}/attempts", app=True)
    await client.github.settle()
    assert status == 202
    assert [again.guid for again in client.github.deliveries if again.redelivery] == [delivery.guid]
