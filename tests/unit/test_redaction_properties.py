"""Whatever a secret looks like within its kind, and however a log splits it: it is not shown. Hashes stay readable."""

from __future__ import annotations

import base64
import random
import string
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.log import redactor
from handlers.render.redaction import redact_lines, redact_text
from handlers.render.safe_text import code, fence, prose

WORD = string.ascii_letters + string.digits
URL_SAFE = WORD + "_-"


def text(alphabet: str, least: int, most: int) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=least, max_size=most)


def jwt_part(least: int = 12) -> st.SearchStrategy[str]:
    return st.binary(min_size=least, max_size=60).map(lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("="))


#: kind -> (what stands in the log, the part that must not be seen)
SECRETS: dict[str, st.SearchStrategy[tuple[str, str]]] = {
    "github": st.tuples(st.sampled_from(["ghp_", "gho_", "ghu_", "ghs_", "ghr_"]), text(WORD, 36, 60)).map(
        lambda parts: ("".join(parts), parts[1])
    ),
    "github with dots": st.tuples(text(string.digits, 4, 8), jwt_part(), jwt_part()).map(
        lambda parts: (f"ghs_{parts[0]}_{parts[1]}.{parts[2]}", parts[2])
    ),
    "fine-grained": st.tuples(text(WORD, 22, 22), text(WORD, 59, 59)).map(
        lambda parts: (f"github_pat_{parts[0]}_{parts[1]}", parts[1])
    ),
    "aws": text(string.ascii_uppercase + string.digits, 16, 16).map(lambda key: (f"AKIA{key}", key)),
    "aws secret": text(WORD + "/+", 40, 40).map(lambda key: (f"AWS_SECRET_ACCESS_KEY={key}", key)),
    "url": st.tuples(text(WORD, 1, 12), text(WORD + "!$*-_.", 6, 40)).map(
        lambda parts: (f"https://{parts[0]}:{parts[1]}@pypi.example.com/simple", parts[1])
    ),
    "basic": st.binary(min_size=6, max_size=40).map(
        lambda raw: (f"Authorization: Basic {base64.b64encode(raw).decode()}", base64.b64encode(raw).decode())
    ),
    "bearer": text(URL_SAFE, 16, 80).map(lambda key: (f"authorization: Bearer {key}", key)),
    "huggingface": text(WORD, 34, 40).map(lambda key: (f"hf_{key}", key)),
    "wandb": text("0123456789abcdef", 40, 40).map(lambda key: (f"WANDB_API_KEY={key}", key)),
    "ngc": text(URL_SAFE, 60, 70).map(lambda key: (f"nvapi-{key}", key)),
    "netrc": text(WORD + "!#%", 8, 40).map(lambda key: (f"machine api.wandb.ai login user password {key}", key)),
    "mask": text(WORD + " ", 8, 40).map(lambda key: key.strip() + "x" * 8).map(lambda key: (f"::add-mask::{key}", key)),
    "jwt": st.tuples(jwt_part(), jwt_part(), jwt_part()).map(
        lambda parts: (f"eyJ{parts[0]}.{parts[1]}.{parts[2]}", parts[2])
    ),
    "pem": st.binary(min_size=48, max_size=400).map(
        lambda raw: (
            f"-----BEGIN RSA PRIVATE KEY-----\n{base64.encodebytes(raw).decode()}-----END RSA PRIVATE KEY-----",
            base64.encodebytes(raw).decode().split("\n")[0],
        )
    ),
}
COLOURS = ("\x1b[1m", "\x1b[0m", "\x1b[31;1m", "\x1b[K", "\u200b", "\x00", "\u202e")


@st.composite
def split(draw: st.DrawFn, secret: str) -> str:
    """Colours, zero-width characters and the like between the characters of a secret."""
    places = draw(st.lists(st.tuples(st.integers(0, len(secret)), st.sampled_from(COLOURS)), max_size=4))
    for place, mark in sorted(places, reverse=True):
        secret = secret[:place] + mark + secret[place:]
    return secret


@pytest.mark.parametrize("kind", SECRETS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_secret_of_any_shape_is_never_shown(kind: str, data: Any) -> None:
    whole, secret = data.draw(SECRETS[kind])
    hidden = data.draw(split(whole))
    prefix = data.draw(st.sampled_from(["", "[rank0]: ", "[default3]:", "2026-01-01T00:00:00.1234567Z ", "export X "]))
    for shown in (
        redact_text(prefix + hidden),
        fence((prefix + hidden).split("\n")),
        code(prefix + hidden, limit=4000),
    ):
        assert secret not in shown
        assert "[redacted:" in shown
    assert secret not in prose(prefix + hidden, limit=4000)


#: What stands in the middle of a secret where a launcher or a terminal broke it.
BREAKS = ("\n[rank0]: ", "\n[default3]:", "[rank12]:", "[default0]: ", "\n2026-01-01T00:00:00.1234567Z [rank0]: ")


def made_up(kind: str, chance: random.Random) -> tuple[str, str]:
    """A secret as they are given out: hypothesis's own are mostly zeros, which no guess takes for a secret."""

    def word(alphabet: str, length: int) -> str:
        return "".join(chance.choices(alphabet, k=length))

    capitals, hexadecimal = string.ascii_uppercase + string.digits, "0123456789abcdef"
    jwt = ".".join(word(URL_SAFE, length) for length in (30, 60, 43))
    secret = {
        "aws": word(capitals, 16),
        "wandb": word(hexadecimal, 40),
        "basic": base64.b64encode(chance.randbytes(30)).decode(),
        "jwt": jwt,
        "github with dots": jwt,
    }.get(kind) or word(WORD, 60)
    before, behind = {
        "github": ("ghp_", ""),
        "github with dots": ("ghs_12345_eyJ", ""),
        "fine-grained": ("github_pat_", ""),
        "aws": ("AKIA", ""),
        "aws secret": ("AWS_SECRET_ACCESS_KEY=", ""),
        "url": ("https://me:", "@pypi.example.com/simple"),
        "basic": ("Authorization: Basic ", ""),
        "bearer": ("authorization: Bearer ", ""),
        "huggingface": ("hf_", ""),
        "wandb": ("WANDB_API_KEY=", ""),
        "ngc": ("nvapi-", ""),
        "jwt": ("eyJ", ""),
    }[kind]
    return f"{before}{secret}{behind}", secret


@pytest.mark.parametrize("mark", BREAKS)
@pytest.mark.parametrize("kind", sorted({*SECRETS} - {"mask", "netrc", "pem"}))
def test_a_secret_that_a_rank_prefix_breaks_is_never_shown(kind: str, mark: str) -> None:
    """Wherever it is broken; what comes behind it stays."""
    chance = random.Random(7)
    for _ in range(3):
        whole, secret = made_up(kind, chance)
        begin = whole.index(secret)
        # Letters alone may be a word: then the piece behind the break stays, and the one before it does not.
        for at in (at for at in range(begin + 1, begin + len(secret) - 8) if any(map(str.isdigit, whole[at:]))):
            for follows in ("", "\n[rank0]: RuntimeError: after", " and after"):
                shown = redact_text(f"[rank0]: {whole[:at]}{mark}{whole[at:]}{follows}")
                left = [secret[i : i + 8] for i in range(len(secret) - 8) if secret[i : i + 8] in shown]
                assert not left, (whole, at, shown)
                assert shown.endswith(follows), shown


@pytest.mark.parametrize("kind", ["github", "wandb", "ngc", "jwt"])
def test_a_secret_at_the_edge_of_a_terminal_is_never_shown(kind: str) -> None:
    whole, secret = made_up(kind, random.Random(11))
    shown = redact_text(f"{'x' * 50} {whole[:-12]}\n{whole[-12:]}\nafter")
    assert secret[-12:] not in shown
    assert shown.endswith("\nafter")


@pytest.mark.parametrize("prefix", ["\n", "\n[rank0]: ", "\n[default1]:"])
@pytest.mark.parametrize(
    "line",
    [
        "HOME=/root",
        'File "/opt/venv2/lib/a.py", line 3, in run',
        "megatron/core/moe2/router.py:12 failed",
        "step100 done",
        "RuntimeError: NCCL error",
        "PATH=/usr/local/cuda-12/bin:/bin",
        "2026-01-01 00:00:00 INFO started",
        "torch.distributed.elastic2 exited",
    ],
)
def test_the_line_behind_a_secret_stays(prefix: str, line: str) -> None:
    for secret in ("HF_TOKEN=abcdef123456", f"ghp_{'a1B2' * 9}", "Authorization: Bearer abcdefgh12345678"):
        shown = redact_text(f"[rank0]: {secret}{prefix}{line}")
        assert shown.endswith(f"]{prefix}{line}")


@given(st.binary(min_size=48, max_size=300), st.integers(0, 7))
@settings(max_examples=40, deadline=None)
def test_a_key_over_lines_of_a_rank_is_never_shown(raw: bytes, rank: int) -> None:
    body = base64.encodebytes(raw).decode().strip().split("\n")
    lines = ["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----", "after"]
    shown = "\n".join(redact_lines(f"[rank{rank}]: {line}" for line in lines))
    assert not any(line in shown for line in body)
    assert shown.endswith("after")


@given(st.text("0123456789abcdef", min_size=7, max_size=64), st.uuids(), st.integers(0, 10**12))
@settings(max_examples=80, deadline=None)
def test_hashes_ids_and_numbers_stay_readable(sha: str, one: uuid.UUID, number: int) -> None:
    for line in (
        f"HEAD is now at {sha}",
        f"run {one} of {number}",
        f"sha256:{sha}",
        f"loss {number}.5e-3 at step {number}",
    ):
        assert redact_text(line) == line


@pytest.mark.parametrize("kind", SECRETS)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_our_own_log_shows_no_secret_either(kind: str, data: Any) -> None:
    """What a person typed, a name, or a library's exception may hold one; names and ids of ours stay as they are."""
    whole, secret = data.draw(SECRETS[kind])
    line = {"event": "command.done", "line": f"why {data.draw(split(whole))}", "more": [{"why": repr(whole)}]}
    shown = redactor([])(None, "", {**line, "delivery": "fd7b2c1e-3f7c-4a5e-9a5a-1c2d3e4f5a6b"})
    assert isinstance(shown, dict)
    assert secret not in str(shown["line"])
    assert "[redacted:" in str(shown["line"])
    assert kind == "pem" or secret not in str(shown["more"])
    assert (shown["event"], shown["delivery"]) == ("command.done", "fd7b2c1e-3f7c-4a5e-9a5a-1c2d3e4f5a6b")
