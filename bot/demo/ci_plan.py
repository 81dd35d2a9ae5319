"""The jobs of the simulated `CICD Megatron-LM` workflow: names, needs and what labels change (domain 3.2, 3.3, 3.6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from bot.demo.actions_state import JobSpec, Plan

WORKFLOW_NAME = "CICD Megatron-LM"
WORKFLOW_PATH = ".github/workflows/cicd-main.yml"
GPU_RUNNER = "nvidia-ci-aws-gpu-x8"

UNIT_BUCKETS = (
    "tests/unit_tests/data/**/*.py",
    "tests/unit_tests/dist_checkpointing/**/*.py",
    "tests/unit_tests/dist_checkpointing/models/**/*.py",
    "tests/unit_tests/inference/**/*.py",
    "tests/unit_tests/models/**/*.py",
    "tests/unit_tests/pipeline_parallel/**/*.py",
    "tests/unit_tests/test_model_configs.py",
    "tests/unit_tests/transformer/**/*.py",
    "tests/unit_tests/transformer/moe/**/*.py",
    "tests/unit_tests/**/*.py",
)
#: By scope; each name is <model>/<test case>.
FUNCTIONAL_TESTS = {
    "L0": (
        "gpt/gpt3_mcore_te_tp1_pp1_dist_optimizer_no_mmap_bin_files",
        "gpt/gpt3_mcore_te_tp2_pp2_mla",
        "moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_optimizer",
        "t5/t5_mcore_te_tp2_pp1_vp1_sequence_parallel",
    ),
    "L1": (
        "bert/bert_mcore_tp1_pp2",
        "gpt/gpt3_mcore_te_tp1_pp1_dist_optimizer_no_mmap_bin_files",
        "gpt/gpt3_mcore_te_tp2_pp2_mla",
        "gpt/gpt3_mcore_te_tp4_pp1_resume_torch_dist_dist_optimizer",
        "hybrid/hybrid_mr_mcore_te_tp1_pp1_cp1_dgx_a100_1N8G",
        "moe/gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_optimizer",
        "t5/t5_mcore_te_tp2_pp1_vp1_sequence_parallel",
        "t5/t5_mcore_tp1_pp1_vp1",
    ),
}
EXTERNAL = "is-not-external-contributor"
PRE_FLIGHT = "pre-flight / pre-flight"
CONFIGURE = "configure"
LINTING = "linting"
WAIT = "cicd-wait-in-queue"
MATRIX = "cicd-container-build / cicd-compute-build-matrix"
BUILD = "cicd-container-build / Build CI container (aws-h100)"
PARSE_UNIT = "cicd-parse-unit-tests"
GATE = "cicd-integration-gate"
PARSE_INTEGRATION = "cicd-parse-integration-tests-h100"
FINAL = "Nemo_CICD_Test"
COVERAGE = "Coverage (unit-test)"
#: Red because something else is (domain 3.3).
CONSEQUENCES = frozenset({FINAL, COVERAGE})
UNEXPANDED = "${{ matrix.model }}/${{ matrix.test_case }} - latest"

_TEST_STEPS = (
    "Set up job",
    "Checkout",
    "Create run-script (unit test)",
    "Pull container",
    "Run main script",
    "Check result",
    "Upload coverage",
    "Upload logs",
    "Post Checkout",
    "Complete job",
)


def plan_for(labels: Collection[str]) -> Plan:
    """What `configure` makes of the labels on a push to a mirror branch (domain 3.2, first match wins)."""
    lts = "container::lts" in labels
    if "Run tests" in labels:
        return Plan(scope="L1", n_repeat=1, lightweight=True, lts=lts)
    if "Run functional tests" in labels:
        return Plan(scope="L1", n_repeat=5, lts=lts)
    return Plan(scope="L0", n_repeat=5, lts=lts)


def job_specs(plan: Plan, *, buckets: Iterable[str] = UNIT_BUCKETS) -> dict[str, JobSpec]:
    """Every job of one attempt by name, in an order in which each comes after all that it needs."""
    units = [
        JobSpec(f"{bucket} - latest", "unit", (BUILD, PARSE_UNIT), GPU_RUNNER, steps=_TEST_STEPS) for bucket in buckets
    ]
    unit_names = tuple(spec.name for spec in units)
    functional = [
        JobSpec(f"{name} - latest", "functional", (PARSE_INTEGRATION,), GPU_RUNNER, steps=_TEST_STEPS)
        for name in FUNCTIONAL_TESTS[plan.scope]
    ]
    leaves = (LINTING, BUILD, *unit_names, *(spec.name for spec in functional))
    specs = [
        JobSpec(EXTERNAL, "setup"),
        JobSpec(PRE_FLIGHT, "setup", (EXTERNAL,)),
        JobSpec(
            CONFIGURE, "configure", (PRE_FLIGHT,), steps=("Set up job", "Resolve SHA", "Configure", "Complete job")
        ),
        JobSpec(LINTING, "lint", (PRE_FLIGHT,), steps=("Set up job", "Checkout", "Run linting", "Complete job")),
        JobSpec(WAIT, "setup", (PRE_FLIGHT, LINTING)),
        JobSpec(MATRIX, "setup", (CONFIGURE, WAIT)),
        JobSpec(BUILD, "build", (MATRIX,), steps=("Set up job", "Checkout", "Build and push", "Complete job")),
        JobSpec(PARSE_UNIT, "setup", (BUILD,)),
        *units,
        JobSpec(GATE, "gate", (WAIT, BUILD, *unit_names), always=True),
        JobSpec(PARSE_INTEGRATION, "setup", (CONFIGURE, GATE, *unit_names)),
        *functional,
        JobSpec(FINAL, "report", leaves, always=True),
        JobSpec(COVERAGE, "report", (FINAL,), always=True),
    ]
    return {spec.name: spec for spec in specs}


def dependents(specs: dict[str, JobSpec], names: Iterable[str]) -> set[str]:
    """`names` and everything that needs one of them, however far down."""
    found = set(names)
    for spec in specs.values():  # in order: whatever is needed has been seen before
        if found.intersection(spec.needs):
            found.add(spec.name)
    return found
