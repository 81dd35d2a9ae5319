"""Log text in a comment: shown, never obeyed; no secret survives; nothing harmless is lost."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from markdown_it import MarkdownIt

from analyzers.model import Category, Confidence, Diagnosis, Error, Evidence
from handlers.commands.lines import command_lines
from handlers.render.clean_text import clean
from handlers.render.redaction import redact_diagnosis, redact_text
from handlers.render.safe_text import code, fence, link, prose, ranks
from tests.fuzz.markdown import github_html

HOSTILE = [
    "`" * 80 + " @team <img src=x> " + "`" * 81,
    "x\n" + "`" * 255 + "\n@team <img src=x>\n" + "`" * 299,
    "``` @team <img src=x onerror=alert(1)> <!-- mlm-bot:report:1 --> fixes #1",
    "@NVIDIA/mcore-engineers please look",
    "closes #12 and GH-7 and 1a2b3c4d5e6f and org/repo#5",
    "[click](javascript:alert(1)) ![x](http://evil/x.png) <script>x</script>",
    "&commat;user &#64;user www.evil.com https://evil.com a@b.com",
    "- [ ] todo | cell | `tick` ``two`` *b* _i_ ~~s~~ $x$ :smile:",
    "line\n/ok to test 1234567\n/mlm rerun all\n@bot run",
    "\x1b]8;;http://evil\x07x\x1b]8;;\x07 \u202egnp.exe \u200b@\u200buser",
    "`" * 40,
    "",
    "see evil.com, (evil.org) and attention.py",
]


def html_of(markdown: str) -> str:
    """Render as GitHub's parser would, HTML allowed, links found in text."""
    return MarkdownIt("gfm-like", {"html": True}).render(markdown)


def outside_code(html: str) -> str:
    """What is left of a page when all code is taken out."""
    return re.sub(r"<code[^>]*>.*?</code>", "", html, flags=re.DOTALL)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("show", [code, prose, lambda text: fence(text.split("\n"))], ids=["code", "prose", "fence"])
def test_nothing_in_log_text_is_acted_upon(text: str, show: Callable[[str], str]) -> None:
    shown = show(text)
    markdown = f"before {shown} after" if "\n" not in shown else shown
    rest = outside_code(html_of(markdown)) + outside_code(github_html(markdown))
    for forbidden in ("<img", "<script", "<a ", "@", "#", "GH-", "javascript", "<table", "<li", "<em", "<strong"):
        assert forbidden not in rest, rest
    assert "<!--" not in shown
    assert command_lines(shown).texts == ()
    assert not [line for line in shown.split("\n") if line.strip().startswith(("/ok", "/mlm", "@"))]


@pytest.mark.parametrize("word", ["at.1a2b3c4d5e6f", "sha=1a2b3c4d5e6f", "a,GH-7", "evil.com.", "x.py"])
def test_a_reference_within_a_word_is_shown_as_code(word: str) -> None:
    assert prose(f"see {word}") == f"see `{word.rstrip('.')}`" + "." * word.endswith(".")


def test_plain_sentences_stay_plain() -> None:
    text = "rank 5 ran out of GPU memory in CoreAttention.forward; 7 ranks died of it"
    assert prose(text) == text
    assert prose("see (megatron/core/a.py:3), ok") == "see (`megatron/core/a.py:3`), ok"


def test_a_command_to_type_can_be_copied() -> None:
    assert code("/mlm rerun unit models") == "`/mlm rerun unit models`"


@pytest.mark.parametrize(
    ("url", "linked"),
    [
        ("https://github.com/o/r/actions/runs/1", True),
        ("javascript:alert(1)", False),
        ("https://x/) [y](http://z", False),
        ("https://user:pw@host/x", False),
    ],
)
def test_only_plain_addresses_become_links(url: str, linked: bool) -> None:
    assert (link("x", url) == f"[x]({url})") is linked


A, B = "a1B2" * 9, "0123456789abcdef" * 2 + "01234567"
SECRETS = [
    ("github-token", f"ghp_{A}", A),
    ("github-token", "ghs_12345_eyJhbGciOi.eyJpc3Mi.c2lnbmF0dXJl", "c2lnbmF0dXJl"),
    ("github-token", f"github_pat_{A}", A),
    ("aws-key", "AKIAIOSFODNN7EXAMPLE", "AKIAIOSF"),
    ("aws-key", "ASIAIOSFODNN7EXAMPLE", "ASIAIOSF"),
    ("url-password", "https://me:hunter22@example.com/simple", "hunter22"),
    ("authorization", "Authorization: Bearer abcdefgh12345678", "abcdefgh"),
    ("authorization", "authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("authorization", "{'Authorization': 'token sesame'}", "sesame"),
    ("huggingface-token", "hf_" + A, A),
    ("nvidia-token", "nvapi-" + A, A),
    ("wandb-key", f"wandb login {B}", B),
    ("setting", f"WANDB_API_KEY={B}", B),
    ("netrc", "machine api.wandb.ai login user password sesame99", "sesame99"),
    ("mask", "::add-mask::super secret value", "super secret"),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P", "dozjgNry"),
    ("private-key", "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----", "MIIEow"),
    ("setting", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "K7MDENG"),
    ("setting", "export HF_TOKEN='abc def ghi'", "def"),
    ("setting", "password: hunter2222", "hunter"),
    ("signature", "https://x.blob.core.windows.net/a?se=1&sig=abc%2Fdef%3Dghijk", "ghijk"),
    ("slack-token", "xoxb-1234567890-abcdefghij", "abcdefghij"),
    ("gitlab-token", "glpat-abcdefghij1234567890", "abcdefghij"),
    ("api-key", "sk-abcdefghijklmnopqrstuvwx", "abcdefghij"),
    ("registry-auth", '"auth": "dXNlcjpwYXNzd29yZA=="', "dXNlcjpw"),
    ("url-password", "https://me:hunter@22@example.com/simple", "22@"),
    ("setting", '"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfi"', "wJalr"),
    ("setting", "AccountKey=wJalrXUtnFEMIK7MDENG==;EndpointSuffix=x", "wJalr"),
    ("setting", "X-Api-Key: wJalrXUtnFEMIK7MDENG", "wJalr"),
    ("cookie", "Set-Cookie: sid=wJalrXUtnFEMI; Path=/", "wJalr"),
    ("cookie", "-H 'Cookie: a=1; user_session=wJalrXUtnFEMI'", "wJalr"),
    ("setting", '"SessionToken": "IQoJb3JpZ2luX2VjEJr//"', "IQoJ"),
    ("api-key", "sk_live_abcdefghij0123456789", "abcdefghij"),
    ("api-key", "ya29.a0AfH6SMBabcdefghijklmnop", "a0AfH6"),
    ("api-key", "AKCp" + A + A, A),
    ("api-key", "dapi" + B[:32], B[:32]),
    ("api-key", "AGE-SECRET-KEY-1" + "QPZRY9X8" * 7, "QPZRY9X8"),
    ("setting", "hf_token=wJalrXUtnFEMI0K7MDENG", "wJalr"),
    ("argument", "login --password hunter22", "hunter22"),
    ("argument", "curl -s -u me:hunter22 https://x", "hunter22"),
    ("argument", "docker login -u me -p hunter22 nvcr.io", "hunter22"),
    ("nvidia-token", "$oauthtoken:ZmFrZWZha2VmYWtl", "ZmFr"),
]


@pytest.mark.parametrize(("kind", "text", "secret"), SECRETS)
def test_secrets_are_taken_out(kind: str, text: str, secret: str) -> None:
    shown = redact_text(f"[rank0]: env {text} end")
    assert f"[redacted:{kind}]" in shown
    assert secret not in shown
    assert shown.startswith("[rank0]: env ")


@pytest.mark.parametrize(
    "text",
    [
        "HEAD is now at 1a2b3c4d5e6f7081920a1b2c3d4e5f6071829304 Merge",
        "digest: sha256:" + "ab" * 32,
        "number of tokens: 4096",
        "max_tokens = 128",
        "tokenizer: GPT2BPETokenizer",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "https://download.pytorch.org/whl/cu126",
        "pad_token=<|endoftext|> eos_token: 50256",
        "KeyError: key: decoder.layers.0.self_attention.linear_qkv.weight",
        "digests:\n" + "ab12" * 16 + "\n" + "cd34" * 16,
        "curl -sSfL -o x https://host/a/b --retry 3",
        "Cookie: none was sent",
        "dapi.version: 12 of dapi0123",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact_text(text) == text


def test_a_secret_split_by_colours_is_found() -> None:
    token = "ghp_" + "a1B2" * 9
    assert "a1B2" not in redact_text(f"\x1b[1m{token[:7]}\x1b[0m{token[7:]}")


def test_a_secret_broken_by_a_rank_prefix_is_found() -> None:
    shown = redact_text(f"ghp_{A[:20]}\n[rank0]: {A[20:]}\n[rank0]: next")
    assert shown == "[redacted:github-token]\n[rank0]: next"


@pytest.mark.parametrize("prefix", ["", "[rank0]: ", "2026-12-01T10:00:00Z "])
@pytest.mark.parametrize("last", ["", "c3RvcA==\n", "c3RvcA==\n-----END RSA PRIVATE KEY-----\n"])
def test_a_key_whose_first_line_is_cut_off_is_found(prefix: str, last: str) -> None:
    lines = "".join(prefix + line for line in f"{'MIIEpAI1' * 8}\n{'abcdEF12' * 8}\n{last}".splitlines(keepends=True))
    shown = redact_text(f"before\n{lines}{prefix}RuntimeError after\n")
    assert shown.startswith(f"before\n{prefix}[redacted:private-key]\n")
    assert shown.endswith(f"{prefix}RuntimeError after\n")
    assert not [part for part in ("MIIE", "abcd", "c3Rv") if part in shown]


def test_a_diagnosis_is_redacted_everywhere() -> None:
    token = "ghp_" + "a1B2" * 9
    diagnosis = Diagnosis(
        passed=False,
        category=Category.NETWORK,
        retryable=True,
        confidence=Confidence.HIGH,
        summary=f"clone of https://x:{token}@github.com failed",
        error=Error(f"Err{token}", token),
        failed_tests=(f"t.py::test[{token}]",),
        evidence=Evidence(
            f"{token}.log", 1, (token, "-----BEGIN PRIVATE KEY-----", "abc", "-----END PRIVATE KEY-----")
        ),
    )
    shown = repr(redact_diagnosis(diagnosis))
    assert token not in shown
    assert "abc" not in shown


def test_clean_and_ranks() -> None:
    assert clean("a\x1b[31mb\x1b[0m\x00c\r\nd\u202e\ud800") == "abc\nd"
    assert ranks([7, 0, 1, 2, 5]) == "0–2, 5, 7"
    many = ranks([*range(0, 512, 2), 3])
    assert many == "0, 2–4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32 and 239 more"
