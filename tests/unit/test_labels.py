"""What CI makes of labels, and what its log says that it made of them."""

from __future__ import annotations

import pytest
from fakes import HEAD

from config.repo import default_config
from handlers.plans import Plan, plan_for, read_plan, read_tested_sha
from handlers.render import replies

CONFIG = default_config()
T, F, LTS = "Run tests", "Run functional tests", "container::lts"


@pytest.mark.parametrize(
    ("labels", "plan"),
    [
        ([], ("L0", 5, False, "dev")),
        ([T], ("L1", 1, True, "dev")),
        ([F], ("L1", 5, False, "dev")),
        ([F, T], ("L1", 1, True, "dev")),
        ([LTS], ("L0", 5, False, "lts")),
        ([LTS, F], ("L1", 5, False, "lts")),
        (["Run MBridge tests"], ("L0", 5, False, "dev", "run_mbridge")),
        (["Run NeMoRL tests", T], ("L1", 1, True, "dev", "run_nemo_rl")),
        (["run tests", "documentation"], ("L0", 5, False, "dev")),
    ],
)
def test_the_first_matching_label_decides(labels: list[str], plan: tuple[object, ...]) -> None:
    assert plan_for(labels, CONFIG).effect == plan


def test_an_outranked_label_is_told() -> None:
    wanted = plan_for([F, T], CONFIG)
    assert wanted.outranked == (F,)
    assert "`Run tests` outranks `Run functional tests`" in replies.outranked(wanted)
    assert replies.outranked(plan_for([T, LTS], CONFIG)) == ""


LOG = """2026-09-01T10:00:00.0Z ##[group]Run PR_NUMBER=42
2026-09-01T10:00:00.0Z \x1b[36;1mecho "scope=$SCOPE" | tee -a $GITHUB_OUTPUT\x1b[0m
2026-09-01T10:00:00.0Z \x1b[36;1m  SCOPE=L0; N_REPEAT=5; LIGHTWEIGHT=false\x1b[0m
2026-09-01T10:00:01.0Z + echo sha={sha}
2026-09-01T10:00:01.0Z sha={sha}
2026-09-01T10:00:02.0Z + echo scope={scope}
2026-09-01T10:00:02.0Z scope={scope}
2026-09-01T10:00:02.0Z n_repeat=1
2026-09-01T10:00:02.0Z lightweight=true
2026-09-01T10:00:02.0Z lts=true
2026-09-01T10:00:02.0Z run_mbridge=true
2026-09-01T10:00:02.0Z run_nemo_rl=false
"""


@pytest.mark.parametrize("scope", ["L1", "mr-github"])
def test_the_plan_jobs_log_is_read(scope: str) -> None:
    log = LOG.replace("{scope}", scope).replace("{sha}", HEAD)
    assert read_plan(log, CONFIG) == Plan("L1", 1, lightweight=True, image="lts", extras=("run_mbridge",))
    assert read_tested_sha(log) == HEAD


@pytest.mark.parametrize("log", ["", "scope=L1\n", "scope=L1\nn_repeat=x\nlightweight=true\n", "sha=\n", "sha=$SHA\n"])
def test_a_log_that_does_not_say_is_no_plan(log: str) -> None:
    assert read_plan(log, CONFIG) is None
    assert read_tested_sha(log) is None
