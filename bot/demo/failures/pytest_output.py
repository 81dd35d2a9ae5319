"""What pytest prints on one rank, with colours (FORCE_COLOR is set in CI) and with -s and -rA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.demo.failures.scene import RankOutput, Scene

GREEN, RED, YELLOW, BOLD, RESET = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"


@dataclass(frozen=True)
class Frame:
    """A traceback entry: source lines before the failing one, and the failing line itself."""

    path: str
    line: int
    function: str
    before: tuple[str, ...]
    failing: str


@dataclass(frozen=True)
class TestFailure:
    """One failed test as pytest reports it; the last frame raised."""

    node_id: str
    frames: tuple[Frame, ...]
    error_type: str
    message: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.node_id.partition("::")[2].replace("::", ".")


def header(collected: int) -> list[str]:
    return [
        f"{BOLD}============================= test session starts =============================={RESET}",
        "platform linux -- Python 3.12.3, pytest-8.4.1, pluggy-1.6.0 -- /opt/venv/bin/python3",
        "cachedir: .pytest_cache",
        "rootdir: /opt/megatron-lm",
        "configfile: pyproject.toml",
        "plugins: cov-7.1.0, mock-3.16.0, timeout-2.5.0, random-order-1.2.0, xdist-3.8.0",
        f"{BOLD}collecting ... {RESET}collected {collected} items",
        "",
    ]


def passed_lines(tests: Sequence[str], rank: int, ranks: int) -> list[str]:
    """Tests that passed; the first one prints what it says while it sets the process group up."""
    lines = []
    for index, test in enumerate(tests):
        if index == 0:
            lines += [f"{test} Initializing torch.distributed with rank: {rank}, world_size: {ranks}"]
            lines += [f"{GREEN}PASSED{RESET}"]
        else:
            lines += [f"{test} {GREEN}PASSED{RESET}"]
    return lines


def padded_tests(tests: Sequence[str], scene: Scene) -> list[str]:
    """`tests`, and parametrized copies of the last until the log has the wanted size."""
    padded = list(tests)
    size = sum(len(test) for test in tests)
    while size < scene.bytes_per_rank:
        padded.append(f"{tests[-1]}[case-{len(padded):06d}]")
        size += len(padded[-1]) + len(f" {GREEN}PASSED{RESET}\n")
    return padded


def hanging(scene: Scene, rank: int, tests: Sequence[str], current: str) -> RankOutput:
    """A rank that was ended in the middle of `current`: no result, no summary."""
    done = padded_tests(tests, scene)
    return RankOutput([*header(len(done) + 1), *passed_lines(done, rank, scene.ranks), f"{current} "])


def failing(scene: Scene, rank: int, tests: Sequence[str], failure: TestFailure) -> RankOutput:
    """A rank on which the last test failed and which got as far as its summary."""
    done = padded_tests(tests, scene)
    lines = [
        *header(len(done) + 1),
        *passed_lines(done, rank, scene.ranks),
        f"{failure.node_id} {RED}FAILED{RESET}",
        "",
        *failures_section(failure),
        f"\x1b[36m{BOLD}=========================== short test summary info ============================{RESET}",
        *(f"{GREEN}PASSED{RESET} {_bold_id(test)}" for test in tests),
        f"{RED}FAILED{RESET} {_bold_id(failure.node_id)} - {_cut(f'{failure.error_type}: {failure.message[0]}')}",
        (
            f"{RED}================= {BOLD}1 failed{RESET}, {GREEN}{len(done)} passed{RESET}{RED} in 41.27s{RESET}"
            f"{RED} =================={RESET}"
        ),
    ]
    return RankOutput(lines)


def failures_section(failure: TestFailure) -> list[str]:
    lines = [
        "=================================== FAILURES ===================================",
        f"{RED}{BOLD}{f' {failure.title} ':_^80}{RESET}",
        "",
    ]
    for frame in failure.frames[:-1]:
        lines += [*_source(frame), "", f"{BOLD}{RED}{frame.path}{RESET}:{frame.line}: ", "_ " * 40, ""]
    last = failure.frames[-1]
    lines += _source(last)
    first, *rest = failure.message
    lines.append(f"{BOLD}{RED}E       {failure.error_type}: {first}{RESET}")
    lines += [f"{BOLD}{RED}E       {line}{RESET}" for line in rest]
    short = failure.error_type.rpartition(".")[2]
    return [*lines, "", f"{BOLD}{RED}{last.path}{RESET}:{last.line}: {short}"]


def _source(frame: Frame) -> list[str]:
    return [
        f"    \x1b[94mdef\x1b[39;49;00m \x1b[92m{frame.function}\x1b[39;49;00m(self):",
        *(f"        {line}" for line in frame.before),
        f">       {frame.failing}",
    ]


def _bold_id(node_id: str) -> str:
    path, _, name = node_id.partition("::")
    return f"{path}::{BOLD}{name}{RESET}"


def _cut(text: str, width: int = 90) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
