"""Which line of a message says why: compilers, NCCL and the C++ runtime do not say it in the first."""

from __future__ import annotations

from collections.abc import Sequence

from analyzers.patterns import pattern

#: The message of Triton's compiler begins with a place in the kernel and shows its code; the reason is the last line.
_PLACE_IN_KERNEL = pattern(r"^(?:[\w.]+: )?at \d+:\d+:$")
#: NCCL names the call that failed, and what it means; the words for what went wrong follow this line.
_LAST_ERROR = "Last error:"
#: libstdc++ names the exception's class; what the exception says is the next line.
_TERMINATE = "terminate called after"
#: What a compiler, a shell or a kernel's assertion says, in the midst of what was tried. Of a full disk the whole line
#: tells; that is asked once, at its begin, and each word is tried from its first letter only: else it takes the square.
_REASON = pattern(
    r"(?P<full>^\s*+(?=\S.*: [Nn]o space left on device\b))?"
    r"(?P<why>Assertion `.*failed|(?<!\S)\S+(?:\(\d+\)|:\d+:\d+): (?:fatal )?error: .*|(?<!\S)\S+: not found$"
    r"|(?(full).*|(?!))|(?<!\S)\S+: undefined symbol: .*|ptxas (?:fatal|error) +: .*)"
)


def reason_line(lines: Sequence[str]) -> int:
    """Return the index of the line that says why; 0, the first, unless another one is known to say more."""
    first = lines[0]
    if _PLACE_IN_KERNEL.match(first):
        return len(lines) - 1
    if first.startswith(_TERMINATE) and len(lines) > 1:
        return 1
    if "NCCL error in: " in first and _LAST_ERROR in lines[:-1]:
        return lines.index(_LAST_ERROR) + 1
    return next((place for place, line in enumerate(lines) if place and _REASON.search(line)), 0)


def bare_reason(line: str) -> str:
    """Return the reason without what stands before it in its line."""
    found = _REASON.search(line)
    return found["why"] if found else line


def bare_head(first: str) -> str:
    """Return of a first line what is worth saying beside the reason: "" if it only leads up to it."""
    if _PLACE_IN_KERNEL.match(first) or first.startswith(_TERMINATE):
        return ""
    return "NCCL error" if first.startswith("NCCL error in: ") else first.partition(": [")[0]
