"""A comment: which of its lines are commands, what they mean, and that no answer to them commands anything."""

from __future__ import annotations

from handlers.commands.grammar import Rerun, Unclear, parse_line, typed
from handlers.commands.lines import MAX_COMMANDS, MAX_LINE, command_lines
from handlers.render.safe_text import code, prose


def run(data: bytes) -> None:
    body = data.decode("utf-8", "surrogateescape")  # lone surrogates, too
    lines = command_lines(body)
    assert len(lines.texts) <= MAX_COMMANDS
    for line in (*lines.texts, body.split("\n", 1)[0]):
        parsed = parse_line(line)
        answer = code("/mlm " + line, limit=300)
        if isinstance(parsed, Unclear):
            answer += "\n" + prose(parsed.why)
            for hint in parsed.nearest:
                answer += "\n" + code(hint, limit=300)
                assert "<" in hint or not isinstance(parse_line(hint.removeprefix("/mlm").strip()), Unclear), hint
        elif isinstance(parsed, Rerun):
            again = typed(parsed)
            assert len(again) > MAX_LINE or not isinstance(parse_line(again), Unclear), again
        assert command_lines(answer).texts == ()
    quoted = "".join(f"> {line}\n" for line in body.replace("\r", "\n").split("\n"))
    assert command_lines(quoted).texts == ()
