"""The bot's own words for each category: what it is, and whether a plain re-run is worth the GPU time."""

from __future__ import annotations

from analyzers.model import Category, Confidence, Diagnosis
from analyzers.records import dataclass


@dataclass(frozen=True)
class Words:
    """`title` completes "…" or "… on rank 5"; `rerun` says why a re-run would help, `no_rerun` why not."""

    title: str
    rerun: str
    no_rerun: str


WORDS: dict[Category, Words] = {
    Category.LINT: Words("Lint failed", "the linter itself could not run", "the same code fails the same check"),
    Category.CONTAINER_BUILD: Words(
        "The container build failed",
        "the build broke on something outside the code",
        "the same sources build the same way",
    ),
    Category.IMAGE_PULL: Words(
        "The container image could not be pulled",
        "registries recover",
        "the registry refuses it again; an image that is missing must be built by the whole run",
    ),
    Category.DEPENDENCY: Words(
        "A dependency is missing or does not fit",
        "the package index may have been away",
        "the same packages will be installed",
    ),
    Category.COLLECTION: Words(
        "Tests could not be collected",
        "the cause lies outside the code",
        "the same code and options stop pytest again",
    ),
    Category.TEST_ASSERTION: Words(
        "A test failed", "the test is known to waver", "an assertion about the same code fails again"
    ),
    Category.TEST_ERROR: Words(
        "A test broke", "the cause lies outside the code", "the same code raises the same error"
    ),
    Category.CRASH_PYTHON: Words(
        "The program crashed", "the cause lies outside the code", "the same code raises the same error"
    ),
    Category.CRASH_NATIVE: Words(
        "A native crash", "a crash may depend on timing", "the same code is likely to crash again"
    ),
    Category.CUDA_OOM: Words(
        "Out of GPU memory", "another process held the memory", "the same code needs the same memory"
    ),
    Category.HOST_OOM: Words(
        "Out of host memory", "another process held the memory", "the same code needs the same memory"
    ),
    Category.CUDA_ERROR: Words(
        "A CUDA error", "the device may have been in a bad state", "a faulty kernel or index fails again"
    ),
    Category.GPU_HARDWARE: Words(
        "A GPU or its link failed", "another machine is likely to work", "the same machine will fail again"
    ),
    Category.COLLECTIVE_TIMEOUT: Words(
        "A collective operation hung",
        "a slow or lost peer may not repeat",
        "ranks that disagree once tend to do so again",
    ),
    Category.NETWORK: Words("The network failed", "network trouble passes", "the address itself is wrong"),
    Category.PORT_COLLISION: Words("A port was taken", "another port will be free", "the port is fixed in the code"),
    Category.DISK_FULL: Words("The disk was full", "another machine has room", "the job writes more than fits"),
    Category.NUMERICS_NAN: Words(
        "The loss became NaN or infinite",
        "the cause lies outside the code",
        "a NaN that goes away by itself is not fixed",
    ),
    Category.GOLDEN_MISMATCH: Words(
        "Results differ from the golden values",
        "the comparison itself could not run",
        "the same code computes the same values",
    ),
    Category.JOB_TIMEOUT: Words(
        "The job ran out of time", "the machine may have been slow", "the same work takes the same time"
    ),
    Category.CANCELLED: Words("The job was cancelled", "nothing failed in it", "a newer run replaced it"),
    Category.RUNNER_LOST: Words(
        "The machine was lost", "another machine is likely to work", "the job brings its machine down"
    ),
    Category.UNKNOWN: Words(
        "The cause was not found", "the logs name no error in the code", "not before the cause is known."
    ),
}

#: Where timing or a machine has a part: what failed once may pass, though nothing was repaired.
UNSURE = frozenset(
    {
        Category.COLLECTIVE_TIMEOUT,
        Category.CRASH_NATIVE,
        Category.CUDA_ERROR,
        Category.GPU_HARDWARE,
        Category.JOB_TIMEOUT,
        Category.RUNNER_LOST,
    }
)

#: Titles that say more than the category's own, by what the error's message holds.
CLOSER = ((Category.DEPENDENCY, "The lockfile at `uv.lock` needs to be updated", "uv.lock is out of date"),)

#: What GitHub writes into the log of a job whose run gave way to a newer one of its concurrency group.
REPLACED = "higher priority waiting request"

CONFIDENCE = {
    Confidence.HIGH: "",
    Confidence.MEDIUM: "Probably so: the logs leave some doubt.",
    Confidence.LOW: "A guess: the logs do not prove it.",
}


def title(diagnosis: Diagnosis) -> str:
    """Name the failure in a few words of our own."""
    if diagnosis.category is None:
        return "The job is red, but its logs show no failure"
    message = diagnosis.error.message if diagnosis.error else ""
    for category, held, closer in CLOSER:
        if category is diagnosis.category and held in message:
            return closer
    return WORDS[diagnosis.category].title


def is_unrecognised(diagnosis: Diagnosis) -> bool:
    """Whether the logs show no failure at all, so that nothing but the CI service can say that there was one."""
    return diagnosis.category is Category.UNKNOWN and diagnosis.error is None


def doubt(diagnosis: Diagnosis) -> str:
    """Say how sure the answer is; nothing where it is sure, or where there is no answer to doubt."""
    return "" if diagnosis.error is None else CONFIDENCE[diagnosis.confidence]


def rerun_advice(diagnosis: Diagnosis) -> str:
    """Say in words whether to try again."""
    words = WORDS[diagnosis.category or Category.UNKNOWN]
    if diagnosis.retryable:
        return f"may help: {words.rerun}."
    if diagnosis.category in {None, Category.UNKNOWN}:
        return words.no_rerun
    if diagnosis.category is Category.CANCELLED and not _was_replaced(diagnosis):
        return "helps only if nobody stopped it on purpose: the logs do not say who did."
    return f"{'is unlikely to help' if diagnosis.category in UNSURE else 'will not help'}: {words.no_rerun}."


def _was_replaced(diagnosis: Diagnosis) -> bool:
    """Only these words tell a newer run from a person or a machine that stopped the job."""
    message = diagnosis.error.message if diagnosis.error else ""
    excerpt = diagnosis.evidence.excerpt if diagnosis.evidence else ()
    return any(REPLACED in line for line in (message, *excerpt))
