"""The text of one command to a value; a mistake is a value too."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .corrections import corrected
from .lines import MAX_LINE
from .vocabulary import (
    ALIASES,
    ARTICLES,
    NAMES,
    NOUNS,
    PLAIN,
    PLAIN_OPTIONS,
    POLITE,
    RERUN_OPTIONS,
    TARGETS,
    THE_RUN,
    Target,
)

#: Seven digits are what GitHub shows; fewer could mean many commits.
SHORT_SHA = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True)
class Rerun:
    """`rerun [target] [selectors]`; a bare `rerun` means what failed."""

    target: Target = "failed"
    selectors: tuple[str, ...] = ()
    dry_run: bool = False
    force: bool = False
    gb200: bool | None = None
    now: bool = False
    sha: str | None = None

    @property
    def right(self) -> str:
        """The key of the permission table."""
        return "rerun-all" if self.target == "all" else "rerun"


@dataclass(frozen=True)
class Help:
    """`help [verb]`."""

    verb: str | None = None

    @property
    def right(self) -> str:
        """The key of the permission table."""
        return "help"


@dataclass(frozen=True)
class Plain:
    """Any other verb. `words` is what stood behind it, for the verb itself to make sense of."""

    verb: str
    words: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def right(self) -> str:
        """The key of the permission table."""
        return self.verb


@dataclass(frozen=True)
class Unclear:
    """Not understood, never executed. `why` is a plain sentence, `nearest` are commands to copy."""

    why: str
    nearest: tuple[str, ...] = ()


Command = Rerun | Help | Plain
Parsed = Command | Unclear


def typed(command: Rerun) -> str:
    """Return the line that means this re-run, without its `/mlm`."""
    flags = {"--dry-run": command.dry_run, "--force": command.force, "--now": command.now}
    platform = {True: "--gb200", False: "--h100", None: ""}[command.gb200]
    words = [
        "rerun",
        "" if command.target == "any" else command.target,
        ",".join(quoted(word) for word in command.selectors),
        *(flag for flag, given in flags.items() if given),
        platform,
        f"--sha {command.sha}" if command.sha else "",
    ]
    return " ".join(word for word in words if word)


def quoted(word: str) -> str:
    """Put a word into quotes where the grammar or a shell's habits need them."""
    if not any(mark in word for mark in " *?['\"\\"):
        return word
    # A shell would act upon these within double quotes; where they are not, one more quotation mark is enough.
    return f'"{word}"' if "'" in word and not any(mark in word for mark in '"\\$`!') else shlex.quote(word)


def parse_line(line: str) -> Parsed:
    """Read one command line without its `/mlm`; what is not understood comes with lines that would be."""
    parsed = _read(line)
    if not isinstance(parsed, Unclear):
        return parsed
    # Quotation marks make a line longer.
    readable = tuple(one for one in parsed.nearest if len(one.removeprefix("/mlm").strip()) <= MAX_LINE)
    return Unclear(parsed.why, nearest=readable)


def _read(line: str) -> Parsed:
    if len(line) > MAX_LINE:
        return Unclear(f"A command may have at most {MAX_LINE} characters.")
    text = f" {line} ".split(" -- ", 1)[0].strip()
    try:
        words = shlex.split(text)
    except ValueError:
        return Unclear("A quotation mark is not closed.", nearest=_unquoted(text))
    if any(word.casefold() in NAMES for word in words):
        return _several(words)
    words = _without_courtesy(words)
    parsed = _parse(words)
    if isinstance(parsed, Unclear) and not parsed.nearest:
        return Unclear(parsed.why, nearest=_proposals(words))
    return parsed


def _unquoted(text: str) -> tuple[str, ...]:
    """Propose the line without its quotation marks, if it then makes sense."""
    words = text.replace("'", "").replace('"', "").split()
    if any(word.casefold() in NAMES for word in words):
        return _several(words).nearest
    plain = shlex.join(["/mlm", *words])
    return (plain,) if words and not isinstance(_parse(words), Unclear) else _proposals(words)


def _proposals(words: list[str]) -> tuple[str, ...]:
    """Correct every word that is near a known one; only what is then understood is proposed."""
    lines = [
        f"/mlm {' '.join(shlex.quote(word) for word in better)}"
        for better in corrected(words)
        if not isinstance(_parse(better), Unclear)
    ]
    unknown = bool(words) and words[0].casefold() not in {*PARSERS, *ALIASES}
    return tuple(dict.fromkeys(lines)) or (("/mlm help",) if unknown else ())


def _several(words: list[str]) -> Unclear:
    """Two commands on one line are told apart, not guessed."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word.casefold() in NAMES:
            parts.append([])
        else:
            parts[-1].append(word.rstrip(";,&|") or "")
    cleaned = [_without_courtesy([word for word in part if word]) for part in parts]
    lines = [_proposals(part)[:1] for part in cleaned if part]
    return Unclear(
        "One command a line, each at the start of its own.", nearest=tuple(one for line in lines for one in line)
    )


def _parse(words: list[str]) -> Parsed:
    if not words:
        return Help()
    verb = ALIASES.get(words[0].casefold(), words[0].casefold())
    if parse := PARSERS.get(verb):
        return parse(verb, words[1:])
    return Unclear(f"There is no command {verb[:40]}.")


def _without_courtesy(words: list[str]) -> list[str]:
    """`Rerun failed, please!` is `rerun failed`."""
    if words and words[0].casefold() in POLITE:
        words = words[1:]
    while words:
        bare = words[-1].rstrip(".!,;:") if words[-1] not in {".", ".."} else words[-1]
        if bare and bare.casefold() not in POLITE:
            return [*words[:-1], bare]
        words = words[:-1]
    return words


def _parse_help(_verb: str, words: list[str]) -> Parsed:
    topic = words[0].casefold() if words else None
    return Help(ALIASES.get(topic, topic) if topic else None)


def _parse_plain(verb: str, words: list[str]) -> Parsed:
    options = {word for word in words if word.startswith("--")}
    if extra := sorted(options - set(PLAIN_OPTIONS.get(verb, ()))):
        return _bad_option(verb, extra[0])
    rest = tuple(word for word in words if not word.startswith("--"))
    if verb == "cancel" and any(word.casefold() not in ARTICLES | THE_RUN for word in rest):
        why = "cancel takes no further words: it stops the newest run of this commit, as a whole."
        return Unclear(why, nearest=("/mlm cancel",))
    return Plain(verb, rest, dry_run="--dry-run" in options)


def _take_sha(words: list[str]) -> tuple[list[str], str | None]:
    """Split off `--sha SHA` or `--sha=SHA`; "" stands for one that is missing."""
    for place, word in enumerate(words):
        name, _, value = word.partition("=")
        if name.casefold() == "--sha":
            value = value or (words[place + 1] if place + 1 < len(words) else "")
            rest = words[place + (1 if "=" in word else 2) :]
            return [*words[:place], *rest], value.casefold()
    return words, None


def _parse_rerun(verb: str, words: list[str]) -> Parsed:
    words, sha = _take_sha(words)
    if sha is not None and not SHORT_SHA.fullmatch(sha):
        return Unclear("--sha needs a commit hash, seven digits at least.", nearest=("/mlm rerun failed --sha <hash>",))
    options = {word.casefold() for word in words if word.startswith("--")}
    if extra := sorted(options - set(RERUN_OPTIONS)):
        return _bad_option(verb, extra[0])
    if {"--gb200", "--h100"} <= options:
        return Unclear("--gb200 and --h100 exclude each other.")
    rest = _without_filling([word for word in words if not word.startswith("--")])
    if rest is None:
        return Unclear("rerun what?", nearest=("/mlm rerun failed", "/mlm rerun all"))
    target: Target = "failed"
    if rest:
        first = rest[0].casefold()
        target, rest = (first, rest[1:]) if first in TARGETS else ("any", rest)
    selectors = tuple(part for word in rest for part in _alternatives(word))
    if problem := _wrong_number(target, selectors):
        return problem
    gb200 = True if "--gb200" in options else False if "--h100" in options else None
    if target in {"unit", "functional"} and selectors == ("all",):
        selectors = ()
    return Rerun(
        target,
        selectors,
        dry_run="--dry-run" in options,
        force="--force" in options,
        gb200=gb200,
        now="--now" in options,
        sha=sha,
    )


def _without_filling(words: list[str]) -> list[str] | None:
    """`the failed tests` is `failed`; None if nothing is left of what was said."""
    rest = [word for word in words if word.casefold() not in ARTICLES]
    if len(rest) > 1 and rest[-1].casefold() in NOUNS and rest[0].casefold() in {*TARGETS} - {"job"}:
        rest = rest[:-1]
    only_noun = len(rest) == 1 and rest[0].casefold() in NOUNS - {"job"}
    return None if only_noun or (words and not rest) else rest


def _alternatives(word: str) -> list[str]:
    return [part for part in word.split(",") if part]


def _wrong_number(target: Target, selectors: tuple[str, ...]) -> Unclear | None:
    if target in {"failed", "all", "lint", "build"} and selectors:
        better = shlex.join(["/mlm", "rerun", *selectors])
        return Unclear(f"rerun {target} takes no further words.", nearest=(f"/mlm rerun {target}", better))
    if target == "job" and not selectors:
        return Unclear("Which job? Name it, or give its id.", nearest=('/mlm rerun job "<exact name>"',))
    return None


def _bad_option(verb: str, option: str) -> Unclear:
    return Unclear(f"{verb} has no option {option[:40]}.")


PARSERS: Mapping[str, Callable[[str, list[str]], Parsed]] = {
    "rerun": _parse_rerun,
    "help": _parse_help,
    **dict.fromkeys(PLAIN, _parse_plain),
}
