"""Secrets in log text become `[redacted:kind]` before anything is stored or posted.

CI masks known secrets in job logs only; the contents of artifacts are not masked. One kind per line, so that a test can
prove each. Commit SHAs and digests are no secrets: bare hexadecimal is never touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from analyzers.comparison import GoldenComparison
from analyzers.model import Command, Diagnosis, Error, Evidence, Read, Skipped
from analyzers.patterns import pattern
from analyzers.records import replace
from analyzers.surroundings import Relation

from .clean_text import clean
from .wraps import redact_wrapped

#: The value part of a setting: quoted, or up to the next blank.
_VALUE = r"""(?:"[^"\n]{1,4096}"|'[^'\n]{1,4096}'|[^\s"',;&]{4,4096})"""

#: Each kind: literals of which one stands in every secret of it, in lower case, and what it looks like. The literals
#: are looked for first: most texts hold none of them. With a group named `keep`, that part stays and the rest goes.
KINDS: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = (
    (
        "private-key",
        ("private key",),
        pattern(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[\s\S]{0,16384}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|[\s\S]{0,16384})"
        ),
    ),
    ("mask", ("::add-mask::",), pattern(r"(?P<keep>::add-mask::)[^\n]+")),
    (
        "authorization",
        ("authorization",),
        pattern(
            r"(?i)(?P<keep>\b(?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?)(?!\[redacted)"
            r"[^\s'\"]+(?:[ \t]+[^\s'\",]+)?"
        ),
    ),
    ("authorization", ("bearer ",), pattern(r"(?P<keep>\b[Bb]earer )[A-Za-z0-9._~+/=-]{12,}")),
    ("url-password", ("://",), pattern(r"(?P<keep>\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://)[^\s/'\"<>]{1,1024}@")),
    (
        "cookie",
        ("cookie",),
        pattern(r"(?i)(?P<keep>\b(?:set-)?cookie['\"]?\s*[:=]\s*['\"]?)[\w!#$%&*.^~|-]{1,64}=[^\n'\"]{1,4096}"),
    ),
    ("netrc", ("machine",), pattern(r"(?P<keep>\bmachine\s+\S+\s+login\s+\S+\s+password\s+)\S+")),
    (
        "github-token",
        ("gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_"),
        pattern(r"\bgh[opsur]_[A-Za-z0-9_.\-]{16,}|gh[opsur]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{16,}"),
    ),
    (
        "gitlab-token",
        ("glpat-", "glptt-", "glrt-", "glcbt-", "gldt-"),
        pattern(r"\bgl(?:pat|ptt|rt|cbt|dt)-[A-Za-z0-9_\-.]{16,}"),
    ),
    ("aws-key", ("akia", "asia", "abia", "acca"), pattern(r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}")),
    ("huggingface-token", ("hf_", "api_org_"), pattern(r"\b(?:hf|api_org)_[A-Za-z0-9]{20,}\b")),
    ("nvidia-token", ("nvapi-",), pattern(r"\bnvapi-[A-Za-z0-9_\-]{16,}")),
    ("wandb-key", ("wandb_v",), pattern(r"\bwandb_v\d_[A-Za-z0-9_]{16,}")),
    (
        "wandb-key",
        ("wandb", "w&b"),
        pattern(r"(?i)(?P<keep>\b(?:wandb|w&b)\b[^\n]{0,80}?(?:api[_ -]?key|login|password)\W{1,10})[0-9a-f]{40}\b"),
    ),
    (
        "slack-token",
        ("xox", "hooks.slack.com/"),
        pattern(r"\bxox[a-z]-[A-Za-z0-9-]{10,}|https://hooks\.slack\.com/services/[A-Za-z0-9/_]+"),
    ),
    (
        "api-key",
        ("sk-", "aiza", "npm_", "pypi-"),
        pattern(r"\bsk-[A-Za-z0-9_-]{20,}|\bAIza[0-9A-Za-z_-]{35}|\bnpm_[A-Za-z0-9]{36}|\bpypi-[A-Za-z0-9_-]{40,}"),
    ),
    (
        "api-key",
        ("sk_live_", "sk_test_", "ya29.", "akcp", "dapi", "dop_v1_", "age-secret-key-"),
        pattern(
            r"\bsk_(?:live|test)_[A-Za-z0-9]{16,}|\bya29\.[A-Za-z0-9_-]{20,}|\bAKCp[A-Za-z0-9]{60,}|\bdapi[0-9a-f]{32}"
            r"|\bdop_v1_[0-9a-f]{64}|\bAGE-SECRET-KEY-1[0-9A-Z]{50,}"
        ),
    ),
    ("jwt", ("eyj",), pattern(r"\beyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,3}")),
    (
        "signature",
        ("sig=", "x-amz-", "x-goog-signature=", "token="),
        pattern(
            r"(?i)(?P<keep>[?&](?:sig|x-amz-(?:signature|credential|security-token)|x-goog-signature|token)=)[^\s&'\"]{8,}"
        ),
    ),
    (
        "setting",
        ("password", "passwd", "secret", "token", "api_key", "apikey", "access_key", "private_key", "credential"),
        pattern(
            r"(?P<keep>\b[A-Za-z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS?)(?:_ID)?"
            r"['\"]?\s*[=:]\s*)(?!\[redacted)" + _VALUE
        ),
    ),
    (
        "setting",
        ("secret", "token", "password", "passwd", "api_key", "apikey"),
        pattern(
            r"(?P<keep>\b(?:aws_)?(?:secret_access_key|session_token|client_secret|password|passwd|api_?key|access_token|auth_token)"
            r"['\"]?\s*[=:]\s*)(?!\[redacted)(?!None\b|True\b|False\b|null\b)" + _VALUE
        ),
    ),
    (
        "setting",
        # as cloud SDKs and headers spell it
        ("secret", "account_key", "accountkey", "x-", "session_token", "sessiontoken"),
        pattern(
            r"(?i)(?P<keep>\b(?:\w{0,40}secret_?access_?key|\w{0,40}account_?key|x-[\w-]{0,40}(?:api-?key|token)"
            r"|\w{0,40}session_?token)"
            r"['\"]?\s*[=:]\s*)(?!\[redacted)" + _VALUE
        ),
    ),
    (
        "setting",
        ("token", "secret"),  # a short word may be anything (`pad_token`), a long one with letters and digits is a key
        pattern(
            r"(?P<keep>\b(?:[a-z0-9]+_)?(?:token|secret)['\"]?\s*[=:]\s*['\"]?)(?=[\w-]*[a-zA-Z])(?=[\w-]*\d)"
            r"(?![0-9a-f]+\b)[\w-]{16,4096}"
        ),
    ),
    (
        "argument",
        ("--password", "--passwd", "--token", "--secret", "--api-key", "--api_key"),
        pattern(r"(?P<keep>(?<![\w-])--(?:password|passwd|token|secret|api[-_]key)[ =])(?!\[redacted)" + _VALUE),
    ),
    ("argument", ("curl",), pattern(r"(?P<keep>\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =]?)" + _VALUE)),
    (
        "argument",
        ("docker login", "podman login", "sshpass"),
        pattern(r"(?P<keep>\b(?:docker login|podman login|sshpass)\b[^\n]{0,200}?\s-p ?)" + _VALUE),
    ),
    ("nvidia-token", ("$oauthtoken:",), pattern(r"(?P<keep>\$oauthtoken:)[A-Za-z0-9+/=_-]{8,}")),
    (
        "registry-auth",
        ('"auth"', "_authtoken="),
        pattern(r"(?P<keep>\"auth\"\s*:\s*)\"[A-Za-z0-9+/=]{8,}\"|(?P<keep2>_authToken=)\S+"),
    ),
)


#: What Python's patterns take for i, i, s and k where they ignore case, and `lower` does not.
ODD_CASES = str.maketrans("\u0130\u0131\u017f\u212a", "iisk")
#: A line of a key in PEM form; digests are plain hexadecimal.
KEY_LINE = pattern(r"(?<!\S)(?=\S*\d)(?=\S*[a-z])(?=\S*[A-Z])(?P<body>[A-Za-z0-9+/]{60,76}={0,2})[ \t]*$")
KEY_REST = pattern(r"[A-Za-z0-9+/]{2,76}={0,2}[ \t]*$")


def redact(text: str) -> str:
    """Replace what looks like a secret. Call it on cleaned text: a colour inside a token would hide it."""
    text = redact_wrapped(_without_key_bodies(text), _possible)
    plain = _plain(text)
    for kind, hints, secret in KINDS:
        if any(hint in plain for hint in hints):
            text, times = secret.subn(lambda match, kind=kind: _kept(match) + f"[redacted:{kind}]", text)  # type: ignore[misc]
            plain = _plain(text) if times else plain
    return text


def _possible(text: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return the kinds of which there may be a secret in the text."""
    plain = _plain(text)
    return [(kind, secret) for kind, hints, secret in KINDS if any(hint in plain for hint in hints)]


def _plain(text: str) -> str:
    """Return the text in which to look for hints: in lower case, as patterns that ignore it see it."""
    return (text if text.isascii() else text.translate(ODD_CASES)).lower()


def _without_key_bodies(text: str) -> str:
    """Take out lines of a key whose first line, which says what it is, lies outside of the excerpt."""
    rows = text.split("\n")
    bodies = [KEY_LINE.search(row) for row in rows]
    kept: list[str] = []
    column: int | None = None  # where the key's lines begin, behind a prefix such as the rank's
    for row, body, next_body in zip(rows, bodies, [*bodies[1:], None], strict=True):
        if body and column is None and next_body:
            column = body.start("body")
            kept.append(f"{row[:column]}[redacted:private-key]")
        elif column is None or not (body or KEY_REST.fullmatch(row, column)):
            column = None
            kept.append(row)
        elif not body:
            column = None  # the key's last, shorter line
    return "\n".join(kept)


def _kept(match: re.Match[str]) -> str:
    return "".join(part for name, part in match.groupdict().items() if part)


def redact_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Redact an excerpt as one text, so that a key over several lines is seen whole."""
    joined = "\n".join(clean(line).replace("\n", " ") for line in lines)
    return tuple(redact(joined).split("\n")) if joined else ()


def redact_text(text: str) -> str:
    """Clean, then redact."""
    return redact(clean(text))


def redact_diagnosis(diagnosis: Diagnosis) -> Diagnosis:
    """Return the diagnosis without secrets and invisible characters: the form in which it is stored and shown."""
    error, evidence = diagnosis.error, diagnosis.evidence
    return replace(
        diagnosis,
        summary=redact_text(diagnosis.summary),
        error=error and Error(type=error.type and redact_text(error.type), message=redact_text(error.message)),
        location=diagnosis.location and redact_text(diagnosis.location),
        failed_tests=tuple(redact_text(test) for test in diagnosis.failed_tests),
        evidence=evidence
        and Evidence(file=redact_text(evidence.file), line=evidence.line, excerpt=redact_lines(evidence.excerpt)),
        relation=diagnosis.relation and _redact_relation(diagnosis.relation),
        golden=diagnosis.golden and _redact_golden(diagnosis.golden),
        also_seen=tuple(replace(seen, file=redact_text(seen.file)) for seen in diagnosis.also_seen),
        commands=tuple(
            Command(title=redact_text(command.title), command=redact_text(command.command))
            for command in diagnosis.commands
        ),
        read=Read(
            files=diagnosis.read.files,
            bytes=diagnosis.read.bytes,
            skipped=tuple(Skipped(redact_text(item.name), redact_text(item.why)) for item in diagnosis.read.skipped),
        ),
    )


def _redact_golden(golden: GoldenComparison) -> GoldenComparison:
    return replace(golden, metrics=tuple(replace(one, metric=redact_text(one.metric)) for one in golden.metrics))


def _redact_relation(relation: Relation) -> Relation:
    evidence = (replace(clue, text=redact_text(clue.text)) for clue in relation.evidence)
    return replace(relation, evidence=tuple(evidence))
