"""The text of a comment to commands."""

from __future__ import annotations

import time

import pytest

from handlers.commands.grammar import Help, Plain, Rerun, Unclear, parse_line, typed
from handlers.commands.lines import LINKS_WITHIN, MAX_BODY, MAX_COMMANDS, command_lines
from handlers.commands.registry import VERBS
from handlers.commands.vocabulary import VERBS as KNOWN


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("/mlm rerun unit models", ["rerun unit models"]),
        ("/MLM help", ["help"]),
        ("@mlm-bot ping", ["ping"]),
        ("/mlm-bot ping", ["ping"]),
        ("thanks!\n\n/mlm rerun failed\nand more text", ["rerun failed"]),
        ("some text\n/mlm rerun failed", ["rerun failed"]),
        ("/mlm rerun unit tests/unit_tests/models/**/*.py", ["rerun unit tests/unit_tests/models/**/*.py"]),
        ("/mlm rerun\r\n/mlm status\r\n", ["rerun", "status"]),
        ("/mlm\u00a0rerun \u201ca b\u201d \u2014 why", ['rerun "a b" -- why']),
        ("/mlm rerun job `linting`", ["rerun job linting"]),
        ("/mlm rerun job `a b - latest`", ['rerun job "a b - latest"']),
        ("   /mlm help", ["help"]),
        ("\u00a0/mlm help", ["help"]),
        ("[log](http://a) and [rank0]: x\n/mlm help", ["help"]),
        ("[a]: http://b\n\n[a]\n/mlm help", ["help"]),
    ],
)
def test_a_command_starts_its_line(body: str, lines: list[str]) -> None:
    assert list(command_lines(body).texts) == lines


@pytest.mark.parametrize(
    "body",
    [
        "please /mlm rerun",
        "> /mlm rerun all",
        "- /mlm rerun all",
        "1. /mlm rerun all",
        "# /mlm rerun all",
        "    /mlm rerun all",
        "text\n    /mlm rerun all",
        "```\n/mlm rerun all\n```",
        "~~~\n/mlm rerun all",
        "`/mlm rerun all`",
        "`a\n/mlm rerun all\nb`",
        "<!--\n/mlm rerun all\n-->",
        "text <!-- x\n/mlm rerun all\n-->",
        "<details>\n/mlm rerun all\n</details>",
        "[x\n/mlm rerun all\n](http://a)",
        "[x\n/mlm rerun all\n]\n\n[x /mlm rerun all]: http://a",
        "/mlm rerun all\n===",
        "[/mlm rerun all](http://a)",
        "![x\n/mlm rerun all\n](http://a)",
        "&#47;mlm rerun all",
        "/mlmx rerun",
        "/mlm/rerun",
        "mlm rerun",
        "",
    ],
)
def test_anything_else_is_no_command(body: str) -> None:
    assert command_lines(body).texts == ()


@pytest.mark.parametrize("tail", ["", "\n\nThank you!", "\n" * 5 + "[rank1]: after\n" * 50])
def test_a_long_comment_is_read_to_its_end(tail: str) -> None:
    """Somebody pastes a log, with a fence or without one, and asks for something above, within and below."""
    log = '[rank0]: Traceback (most recent call last):\n[rank0]:   File "a.py", line 3, in <module>\n' * 300
    assert len(log) > LINKS_WITHIN
    for body in (
        f"/mlm help\n{log}",
        f"/mlm help\n\n```\n/mlm rerun\n{log}```",
        f"{log}\n/mlm help",
        f"`x`\n\n/mlm help\n{log}",
    ):
        assert command_lines(body + tail).texts == ("help",)


@pytest.mark.parametrize(
    "around",
    [
        "[x\n{}\n](http://a)",
        "![x\n{}\n](http://a)",
        "[x [y\n{}\n](b)\n](c)",
        "`x\n{}\ny`",
        "<a b='\n{}\n'>",
        "[x\n{} ](y)",
    ],
)
def test_beyond_what_is_read_with_links_nothing_quoted_runs(around: str) -> None:
    body = "word " * LINKS_WITHIN + "\n" + around.format("/mlm rerun all")
    assert command_lines(body).texts == ()
    assert command_lines(body + "\n\n/mlm help").texts == ("help",)


#: What a reader of Markdown reads again and again: brackets in brackets, runs that nothing closes, lists, addresses.
COSTLY = (
    "[",
    "![",
    "![[](",
    "[a](",
    "[a][",
    "`[",
    "`a``b",
    "<a ",
    "<a@b.c>",
    "&#",
    "*a_",
    "> > ",
    "- ",
    "- a\n",
    "[a]: b\n",
    "> a\n",
    "\n",
    " ",
    "\t",
)


@pytest.mark.parametrize("piece", COSTLY)
def test_no_comment_takes_long(piece: str) -> None:
    """The time is a multiple of what plain words take: it grows with the length, whatever the machine has to do."""
    size = MAX_BODY // 8
    words, costly = (f"{text * (size // len(text))}"[:-20] + "\n/mlm help\n" for text in ("word\n\n", piece))
    assert any(fastest(costly) < 5 * fastest(words) for _ in range(5))


def fastest(body: str) -> float:
    """Seconds of the processor; the best of three."""
    took_s = []
    for _ in range(3):
        began_s = time.process_time()
        command_lines(body)
        took_s.append(time.process_time() - began_s)
    return min(took_s)


def test_at_most_five_commands() -> None:
    found = command_lines("/mlm ping\n" * 8)
    assert (len(found.texts), found.dropped) == (MAX_COMMANDS, 3)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("", Help()),
        ("?", Help()),
        ("help rerun", Help("rerun")),
        ("help retest", Help("rerun")),
        ("rerun", Rerun()),
        ("retry", Rerun()),
        ("Rerun failed, please!", Rerun()),
        ("rerun all", Rerun("all")),
        ("rerun unit", Rerun("unit")),
        ("rerun unit all", Rerun("unit")),
        ("rerun unit models", Rerun("unit", ("models",))),
        ("rerun unit models, moe", Rerun("unit", ("models", "moe"))),
        ("rerun unit models.", Rerun("unit", ("models",))),
        ("rerun functional gpt/gpt3_mla", Rerun("functional", ("gpt/gpt3_mla",))),
        ("rerun gpt3_mla", Rerun("any", ("gpt3_mla",))),
        ("rerun job 'a b - latest'", Rerun("job", ("a b - latest",))),
        ("rerun job 12345", Rerun("job", ("12345",))),
        ("please rerun the failed tests", Rerun()),
        ("rerun the failed jobs --dry-run", Rerun(dry_run=True)),
        ("rerun all tests", Rerun("all")),
        ("rerun the unit tests", Rerun("unit")),
        ("rerun unit models bucket", Rerun("unit", ("models",))),
        ("rerun job linting", Rerun("job", ("linting",))),
        ("rerun lint --dry-run", Rerun("lint", dry_run=True)),
        ("rerun unit moe --gb200 --force", Rerun("unit", ("moe",), force=True, gb200=True)),
        ("rerun unit models -- it hung again", Rerun("unit", ("models",))),
        ("rerun failed --now --sha ABCDEF0", Rerun(now=True, sha="abcdef0")),
        ("rerun --sha=abcdef012 unit moe", Rerun("unit", ("moe",), sha="abcdef012")),
        ("run nemo-rl --dry-run", Plain("run", ("nemo-rl",), dry_run=True)),
        ("flaky tests/a.py::test_b #12", Plain("flaky", ("tests/a.py::test_b", "#12"))),
        ("stop", Plain("cancel")),
        ("explain", Plain("analyze")),
        ("ping", Plain("ping")),
    ],
)
def test_commands_are_read(line: str, command: object) -> None:
    assert parse_line(line) == command


@pytest.mark.parametrize(
    ("line", "words", "nearest"),
    [
        ("rerunn unit models", "no command rerunn", "/mlm rerun unit models"),
        ("statsu", "no command statsu", "/mlm status"),
        ("xyzzy", "no command xyzzy", "/mlm help"),
        ("rerun --sha xyz", "needs a commit hash", "/mlm rerun failed --sha <hash>"),
        ("rerun all models", "takes no further words", "/mlm rerun all"),
        ("cancel unit models", "takes no further words", "/mlm cancel"),
        ("stop 97000000", "takes no further words", "/mlm cancel"),
        ("rerun job", "Which job", '/mlm rerun job "<exact name>"'),
        ("rerun --dryrun", "no option --dryrun", "/mlm rerun --dry-run"),
        ("rerun all --dryrun", "no option --dryrun", "/mlm rerun all --dry-run"),
        ("rerun unit 'a b' c d e --dryrun", "no option --dryrun", "/mlm rerun unit 'a b' c d e --dry-run"),
        ("reurn faild", "no command reurn", "/mlm rerun failed"),
        ("rerunn models --fource --now", "no command rerunn", "/mlm rerun models --force --now"),
        ("version; /mlm ping", "One command a line", "/mlm ping"),
        ("version; /mlm ping", "One command a line", "/mlm version"),
        ("rerun failed @mlm-bot statsu", "One command a line", "/mlm status"),
        ("rerun the tests", "rerun what", "/mlm rerun failed"),
        ("rerun --noww", "no option --noww", "/mlm rerun --now"),
        ("rerun --gb200 --h100", "exclude", ""),
        ("rerun 'unit models", "not closed", "/mlm rerun unit models"),
        ("reurn 'unit models", "not closed", "/mlm rerun unit models"),
        ("'", "not closed", ""),
        ("rerun " + "x" * 400, "at most 300", ""),
        ("ping --force", "no option", ""),
        ("mute --dry-run", "mute has no option --dry-run", ""),
        ("unmute --dry-run", "unmute has no option --dry-run", ""),
        ("analyze --dry-run", "analyze has no option --dry-run", ""),
        ("cancel --dryrun", "no option --dryrun", "/mlm cancel --dry-run"),
    ],
)
def test_mistakes_are_answered_not_guessed(line: str, words: str, nearest: str) -> None:
    found = parse_line(line)
    assert isinstance(found, Unclear)
    assert words in found.why
    assert nearest in (found.nearest or ("",))


@pytest.mark.parametrize(
    "line", ["rerun all --dryrun", "reurn faild --foo", "version; /mlm pign", "statsu", "canzel x --dryrun"]
)
def test_only_what_is_understood_is_proposed(line: str) -> None:
    found = parse_line(line)
    assert isinstance(found, Unclear)
    for proposal in found.nearest:
        assert not isinstance(parse_line(proposal.removeprefix("/mlm ")), Unclear)


@pytest.mark.parametrize(
    "line",
    [
        "rerun",
        "rerun all --now",
        "rerun unit models,'a b/**/*.py' --force --gb200",
        "rerun moe --sha abcdef0",
        """rerun "it's",b""",
        """rerun 'a "b"',"c d'e" --now""",
        r"rerun 'a\b'",
    ],
)
def test_a_rerun_can_be_typed_again(line: str) -> None:
    parsed = parse_line(line)
    assert isinstance(parsed, Rerun)
    assert parse_line(typed(parsed)) == parsed


def test_grammar_and_registry_know_the_same_verbs() -> None:
    assert set(KNOWN) == set(VERBS)


def test_a_comment_of_many_code_spans_is_read_in_linear_time() -> None:
    """It is read before the delivery is answered, on the server's loop: anybody could stop all other deliveries."""
    body = "`a ``b " * 9_000 + "\n/mlm ping"
    before = time.process_time()
    assert command_lines(body).texts[-1] == "ping"
    assert time.process_time() - before < 2
