"""What the operator allows at most, whatever a repository says."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.caps import Caps, CapsError, read_caps
from config.repo import default_config, load_repo_config


def test_the_lower_limit_and_the_smaller_list_count() -> None:
    own = load_repo_config(b"bots: ['a[bot]', 'b[bot]']\nlimits: {gpu_jobs_per_day: 50, author_reruns_per_day: 9}\n")
    caps = Caps(bots=("b[bot]", "c[bot]"), limits={"gpu_jobs_per_day": 2000, "author_reruns_per_day": 1})
    found = caps.over(own)
    assert (found.limits.gpu_jobs_per_day, found.limits.author_reruns_per_day) == (50, 1)
    assert found.bots == ("b[bot]",)
    assert found.limits.gpu_jobs_per_pull_day == default_config().limits.gpu_jobs_per_pull_day


def test_without_a_file_nothing_changes() -> None:
    assert Caps().over(default_config()) == default_config()


def test_a_repository_cannot_raise_its_own_ceiling() -> None:
    found = load_repo_config(b"cap: {rerun: [anyone]}\ncap_trustees: [eve]\nmutating: []\n")
    assert (found.cap, found.cap_trustees) == ({}, ())
    assert len(found.problems) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("commands: {rerun: [everybody]}", "commands.rerun.0"),
        ("comands: {}", "comands"),
        ("limits: {gpu_jobs: 1}", "unknown name gpu_jobs"),
        ("[", "not valid YAML"),
        (None, "cannot be read"),
    ],
)
def test_a_mistake_stops_the_start(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "caps.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CapsError, match=words):
        read_caps(path)
