"""An Enterprise Server has its API below a path, names itself in headers, and tells nothing of rate limits."""

from __future__ import annotations

from pathlib import Path

from stories import MODELS, red_run, replies, report, surprises
from world import World

from bot.demo.github import SimulatedGitHub


async def test_a_failure_is_explained_and_a_rerun_obeyed_below_a_path(tmp_path: Path) -> None:
    world = World(tmp_path / "data", github=SimulatedGitHub(enterprise=True))
    github = world.github
    github.add_repo("NVIDIA/Megatron-LM")
    github.add_user("ada", "write")
    async with world:
        assert world.settings.github_api_url == f"{github.state.web_url}/api/v3"
        pull, run = await red_run(world, MODELS)
        assert "No module named" in report(world, pull)
        job_id = github.job(run, MODELS).id
        comment = await github.comment(pull, "ada", "/mlm rerun unit models")
        await world.idle(within_s=60)
        assert [seen.path for seen in github.asked("POST", "/rerun$")] == [
            f"/api/v3/repos/NVIDIA/Megatron-LM/actions/jobs/{job_id}/rerun"
        ]
        assert (run.attempt_number, github.reactions(comment)) == (2, ["rocket"])
        where = f"{github.state.web_url}/NVIDIA/Megatron-LM/actions/runs/{run.id}"
        assert replies(world, pull) == [
            (
                f"Started [`CICD Megatron-LM`]({where}), attempt 2: `tests/unit_tests/models/**/*.py`, with the gates; "
                "the jobs that were skipped follow if it passes.\n"
            )
        ]
        assert f"]({where}" in report(world, pull)
        assert {seen.path.startswith("/api/v3/") for seen in github.requests if seen.server == "api"} == {True}
        assert github.deliveries[-1].request_headers["X-GitHub-Enterprise-Host"] == "github.example.com"
    assert surprises(world) == []
