"""The first real error of the step that failed, whatever stands around it."""

from __future__ import annotations

import pytest
from job_logs import failed, line_of, read, step

from analyzers.model import Category, Finding

BUILD = "docker/build-push-action@v6"
SOLVE = 'ERROR: failed to build: failed to solve: process "/bin/sh -c make" did not complete successfully: exit code: 1'


def only(*output: str, command: str = BUILD) -> Finding:
    return read(step(command, *output, failed())).findings[0]


def vertex(number: int, *output: str) -> list[str]:
    lines = [f"#{number} {place}.{number} {text}" for place, text in enumerate(output)]
    return [*lines, f'#{number} ERROR: process "/bin/sh -c make" did not complete successfully: exit code: 1']


def test_another_steps_errors_do_not_count() -> None:
    found = only(
        '#9 3.1 csrc/other.cu(1): error: identifier "kGone" is undefined',
        "#12 1.0 c++: warning: -Werror=format-security ignored",
        *vertex(
            21,
            "FAILED: build/a.o",
            'csrc/a.cu(142): error: identifier "kChunks" is undefined',
            '1 error detected in the compilation of "csrc/a.cu".',
            "ninja: build stopped: subcommand failed.",
            "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.",
            "ERROR: Failed building wheel for scan",
        ),
        "#9 CANCELED",
        SOLVE,
    )
    assert found.category is Category.CONTAINER_BUILD
    assert found.error.message.endswith('csrc/a.cu(142): error: identifier "kChunks" is undefined')


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("csrc/scan.cpp:14:10: fatal error: torch/extension.h: No such file or directory", Category.CONTAINER_BUILD),
        ("y.cpp:1:19: error: ‘foo’ was not declared in this scope", Category.CONTAINER_BUILD),
        ("nvcc fatal   : Unsupported gpu architecture 'compute_130'", Category.CONTAINER_BUILD),
        ("z.cpp:(.text+0x5): undefined reference to `foo()'", Category.CONTAINER_BUILD),
        ("/usr/bin/ld: cannot find -lcudart: No such file or directory", Category.CONTAINER_BUILD),
        ("CMake Error at CMakeLists.txt:31 (find_package):", Category.CONTAINER_BUILD),
        ("c++: fatal error: Killed signal terminated program cc1plus", Category.HOST_OOM),
        ("E: Unable to locate package libnccl9", Category.DEPENDENCY),
        ("E: Failed to fetch http://archive.ubuntu.com/ubuntu/x.deb  404  Not Found", Category.NETWORK),
        ("ERROR: No matching distribution found for torch==99.0", Category.DEPENDENCY),
        ("ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/", Category.DEPENDENCY),
        ("curl: (6) Could not resolve host: astral.sh", Category.NETWORK),
        ("curl: (22) The requested URL returned error: 404", Category.DEPENDENCY),
        ("fatal: unable to access 'https://github.com/a/b.git/': Could not resolve host: github.com", Category.NETWORK),
        ("fatal: couldn't find remote ref refs/heads/gone", Category.DEPENDENCY),
        ("tar: usr/lib/libcudnn.so.9: Cannot write: No space left on device", Category.DISK_FULL),
        ("error: failed to write to file: No space left on device (os error 28)", Category.DISK_FULL),
        ("ModuleNotFoundError: No module named 'torch'", Category.DEPENDENCY),
        ("RuntimeError: The detected CUDA version (12.8) mismatches.", Category.CONTAINER_BUILD),
    ],
)
def test_kinds_of_first_errors(line: str, category: Category) -> None:
    found = only(*vertex(7, "working", line, "make: *** [Makefile:9: all] Error 1"), SOLVE)
    assert found.category is category
    assert line in (found.error.message, f"{found.error.type}: {found.error.message}")


def test_a_classic_builder_without_numbered_steps() -> None:
    found = only(
        "Step 5/12 : RUN make",
        " ---> Running in 8d2f",
        "a.c:3:1: error: expected ';' before '}' token",
        "make: *** [Makefile:2: a.o] Error 1",
        "The command '/bin/sh -c make' returned a non-zero code: 2",
    )
    assert found.error.message == "a.c:3:1: error: expected ';' before '}' token"


def test_nothing_but_the_wrapper_is_better_than_nothing() -> None:
    found = only(*vertex(4, "hm"), SOLVE)
    assert found.category is Category.CONTAINER_BUILD
    assert "did not complete successfully: exit code: 1" in found.error.message


def test_uv_tells_a_chain_and_the_answer_tells_it_whole() -> None:
    """uv 0.7 draws the chain and wraps it; the error that git printed is the deepest."""
    sha = "9f3c1e07d5b84aa6c2e1f08b7d6a5c4e3b2a1908"
    job = step(
        "uv sync",
        "  × Failed to download and build `tool @",
        "  │ git+https://github.com/example/tool.git@9f3c`",
        "  ├─▶ Git operation failed",
        "  ├─▶ failed to clone into: /home/runner/.cache/uv/git-v0/db/c41a",
        f"  ├─▶ failed to fetch commit `{sha}`",
        "  ╰─▶ process didn't exit successfully: `/usr/bin/git fetch",
        "      'https://github.com/example/tool.git'` (exit status: 128)",
        "      --- stderr",
        f"      fatal: remote error: upload-pack: not our ref {sha}",
        "",
        failed(),
    )
    found = read(job).findings[0]
    assert found.category is Category.DEPENDENCY
    assert "`tool @ git+https://github.com/example/tool.git@9f3c`: " in found.error.message
    assert f"failed to fetch commit `{sha}`" in found.error.message
    assert f"fatal: remote error: upload-pack: not our ref {sha}" in found.error.message
    assert found.evidence.line == line_of("not our ref", job)


@pytest.mark.parametrize(
    "output",
    [
        (
            "  × No solution found when resolving dependencies:",
            "  ╰─▶ Because your project depends on numpy>=2.0 and numpy<1.26, we can",
            "      conclude that your project's requirements are unsatisfiable.",
        ),
        (
            "error: No solution found when resolving dependencies",
            (
                "  cause: Because your project depends on numpy>=2.0 and numpy<1.26, we can conclude that your"
                " project's requirements are unsatisfiable."
            ),
        ),
        (
            "  × No solution found when resolving dependencies:",
            (
                "  ╰─▶ Because numpy was not found in the package registry and your project depends on numpy>=2.0 and"
                " numpy<1.26, we can"
            ),
            "      conclude that your project's requirements are unsatisfiable.",
        ),
    ],
    ids=["0.7", "0.13", "not found"],
)
def test_uv_says_why_there_is_no_solution(output: tuple[str, ...]) -> None:
    job = step("uv sync --locked", *output, failed())
    found = read(job).findings[0]
    assert found.category is Category.DEPENDENCY
    assert "No solution found when resolving" in found.error.message
    assert "depends on numpy>=2.0 and numpy<1.26, we can conclude that your project's req" in found.error.message
    assert found.evidence.line == line_of("No solution found", job)


def test_the_backends_exception_counts_not_uvs_words_about_it() -> None:
    found = only(
        "  × Failed to build `pkg @ file:///pkg`",
        "  ├─▶ The build backend returned an error",
        "  ╰─▶ Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)",
        "",
        "      [stderr]",
        "      Traceback (most recent call last):",
        '        File "<string>", line 14, in <module>',
        "      RuntimeError: The detected CUDA version (12.8) mismatches the version",
        "      that was used to compile PyTorch (13.0).",
        "",
        command="uv sync",
    )
    assert found.error.type == "RuntimeError"
    assert found.error.message.endswith("mismatches the version that was used to compile PyTorch (13.0).")
    assert "Failed to build `pkg @ file:///pkg`" in found.error.message


@pytest.mark.parametrize(
    ("line", "category", "retryable"),
    [
        ("Error response from daemon: toomanyrequests: You have reached your limit.", Category.IMAGE_PULL, True),
        ("Error response from daemon: manifest for r.io/ci:1 not found: manifest unknown", Category.IMAGE_PULL, False),
        (
            "Error response from daemon: pull access denied for a/b, repository does not exist",
            Category.IMAGE_PULL,
            False,
        ),
        ('Error response from daemon: Head "https://r.io/v2/": no basic auth credentials', Category.IMAGE_PULL, False),
        (
            'Error response from daemon: Get "https://r.io/v2/": net/http: TLS handshake timeout',
            Category.IMAGE_PULL,
            True,
        ),
        ("failed to register layer: write /usr/lib/libcublas.so: no space left on device", Category.DISK_FULL, True),
        ("denied: Your authorization token has expired. Reauthenticate and try again.", Category.IMAGE_PULL, True),
    ],
)
def test_pulls_are_told_apart(line: str, category: Category, retryable: bool) -> None:
    job = step('echo "::group::Pull container"', "##[group]Pull container", "+ docker pull r.io/ci:1", line, failed())
    after = step("logs_report=logs", "##[error]❌ tests/unit_tests/x.py — FAILED (exit skipped)", failed())
    report = read(job, after)
    found = report.findings[0]
    assert (found.category, found.retryable, found.error.message) == (category, retryable, line)
    assert found.evidence.line == line_of(line, job, after)
    assert report.failed_step == 'echo "::group::Pull container"'


def test_a_compiler_inside_of_uvs_box() -> None:
    found = only(
        "  × Failed to build `pkg @ file:///pkg`",
        "  ├─▶ The build backend returned an error",
        "  ╰─▶ Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)",
        "",
        "      [stderr]",
        "      csrc/bad.cpp:1:10: fatal error: torch/extension.h: No such file or",
        "      directory",
        "          1 | #include <torch/extension.h>",
        "            |          ^~~~~~~~~~~~~~~~~~~",
        "      compilation terminated.",
        command="uv sync",
    )
    assert found.category is Category.CONTAINER_BUILD
    assert found.error.message.endswith(
        ": csrc/bad.cpp:1:10: fatal error: torch/extension.h: No such file or directory"
    )


def test_troubles_that_were_overcome_are_forgotten() -> None:
    refused = "Error response from daemon: toomanyrequests: You have reached your limit."
    pulled = "Status: Downloaded newer image for r.io/ci:1"
    assert read(step("pull.sh", refused, "retrying", pulled, "Did not finish.", failed())).findings == ()
    dropped = "curl: (6) Could not resolve host: astral.sh"
    task = "task-1-0/0 training ..."
    assert read(step("bash job.sh", dropped, "retrying", task, "Did not finish.", failed())).findings == ()
    assert read(step("bash job.sh", task, dropped, failed())).findings != ()


def test_any_tools_error_line_is_better_than_the_wrapper_but_only_inside_the_failed_step() -> None:
    advice = (
        "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed."
    )
    found = only(*vertex(7, advice, "error: externally-managed-environment", "× This environment is managed"), SOLVE)
    assert (found.category, found.error.message) == (Category.CONTAINER_BUILD, "error: externally-managed-environment")
    assert only(*vertex(7, "/bin/sh: 1: nvcc: not found"), SOLVE).error.message == "/bin/sh: 1: nvcc: not found"
    assert read(step("docker rm ci", "Error: No such container: ci", failed())).findings == ()
