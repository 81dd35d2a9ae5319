"""The start is refused with the variable's name, never with a secret or a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from config.settings import SettingsError, load_settings, say_unknown, unknown_variables

SECRET = "a-secret-that-nobody-may-see"


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@pytest.fixture(scope="module")
def rsa_pem() -> str:
    return pem(rsa.generate_private_key(65537, 2048))


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch, rsa_pem: str, tmp_path: Path) -> pytest.MonkeyPatch:
    monkeypatch.setenv("MLM_GITHUB_APP_ID", "7")
    monkeypatch.setenv("MLM_GITHUB_PRIVATE_KEY", rsa_pem)
    monkeypatch.setenv("MLM_GITHUB_WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("MLM_DATA_DIR", str(tmp_path))
    return monkeypatch


def refused() -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load_settings()
    return caught.value.lines


def test_the_defaults(env: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = load_settings()
    assert settings.github_api_url == "https://api.github.com"
    assert settings.database_url == f"sqlite:///{tmp_path}/mlm.db"
    assert (settings.host, settings.port, settings.log_format) == ("127.0.0.1", 8080, "json")
    assert settings.webhook_secrets == (SECRET.encode(),)
    assert settings.executor_id
    assert SECRET not in repr(settings)


def test_everything_that_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("APP_ID", "PRIVATE_KEY", "WEBHOOK_SECRET"):
        monkeypatch.setenv(f"MLM_GITHUB_{name}", "")
    assert refused() == (
        "MLM_GITHUB_APP_ID: is missing",
        "MLM_GITHUB_PRIVATE_KEY: is missing (or set MLM_GITHUB_PRIVATE_KEY_FILE)",
        "MLM_GITHUB_WEBHOOK_SECRET: is missing",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_APP_ID", "seven"),
        ("GITHUB_APP_ID", "0"),
        ("GITHUB_API_URL", "http://github.example/api/v3"),
        ("GITHUB_API_URL", "https://user:pw@github.example"),
        ("GITHUB_API_URL", "https://github.example:x"),
        ("GITHUB_API_URL", "ftp://github.example"),
        ("GITHUB_WEBHOOK_SECRET", "short"),
        ("GITHUB_WEBHOOK_SECRET_OLD", "short"),
        ("GITHUB_PRIVATE_KEY", "-----BEGIN PRIVATE KEY-----\nnonsense"),
        ("DATABASE_URL", "mysql://user:hunter2@db/mlm"),
        ("DATABASE_URL", "sqlite:///relative.db"),
        ("EXECUTOR_ID", "a b"),
        ("PORT", "65536"),
        ("LOG_FORMAT", "xml"),
        ("LABEL_DEBOUNCE_S", "-1"),
        ("VIEWER_TOKEN", "short"),
    ],
)
def test_a_bad_value_is_named_and_not_shown(env: pytest.MonkeyPatch, name: str, value: str) -> None:
    env.setenv(f"MLM_{name}", value)
    (line,) = refused()
    assert line.startswith(f"MLM_{name}: ")
    assert value not in line or len(value) < 2


def test_a_key_of_another_kind_is_refused(env: pytest.MonkeyPatch) -> None:
    env.setenv("MLM_GITHUB_PRIVATE_KEY", pem(ec.generate_private_key(ec.SECP256R1())))
    assert "RSA" in refused()[0]


def test_a_key_may_come_from_a_file_or_in_one_line(env: pytest.MonkeyPatch, rsa_pem: str, tmp_path: Path) -> None:
    env.setenv("MLM_GITHUB_PRIVATE_KEY", rsa_pem.replace("\n", "\\n"))
    assert load_settings().github_private_key.get_secret_value() == rsa_pem

    path = tmp_path / "key.pem"
    path.write_text(rsa_pem)
    env.setenv("MLM_GITHUB_PRIVATE_KEY_FILE", str(path))
    assert "not both" in refused()[0]
    env.delenv("MLM_GITHUB_PRIVATE_KEY")
    assert load_settings().github_private_key.get_secret_value() == rsa_pem


def test_a_key_file_that_cannot_be_read_is_told_once(env: pytest.MonkeyPatch, tmp_path: Path) -> None:
    env.delenv("MLM_GITHUB_PRIVATE_KEY")
    env.setenv("MLM_GITHUB_PRIVATE_KEY_FILE", str(tmp_path / "absent.pem"))
    assert refused() == ("MLM_GITHUB_PRIVATE_KEY_FILE: cannot be read: No such file or directory",)


def test_two_secrets_during_a_rotation(env: pytest.MonkeyPatch) -> None:
    env.setenv("MLM_GITHUB_WEBHOOK_SECRET_OLD", "the-secret-of-yesterday")
    assert load_settings().webhook_secrets == (SECRET.encode(), b"the-secret-of-yesterday")


def test_a_misspelt_variable_is_found() -> None:
    names = ["MLM_PORT", "MLM_GITHUB_WEBHOK_SECRET", "PATH"]
    assert unknown_variables(names) == ("MLM_GITHUB_WEBHOK_SECRET",)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("GITHUB_APP_ID", "seven", "must be a whole number"),
        ("GITHUB_APP_ID", "0", "must be greater than 0"),
        ("GITHUB_WEBHOOK_SECRET", "short", "must have 16 characters or more"),
        ("VIEWER_TOKEN", "short", "must have 16 characters or more"),
        ("PORT", "65536", "must be 65535 or less"),
        ("LOG_FORMAT", "xml", "must be 'json' or 'console'"),
        ("LABEL_DEBOUNCE_S", "-1", "must be 0 or more"),
        ("SWEEP_EVERY_S", "often", "must be a number"),
        ("DOWNLOAD_MAX", "lots", "must be a number of bytes, or one with a unit, such as 2GiB"),
        ("DOWNLOAD_MAX", "2 bananas", "has the unit bananas, which is none; write it like 2GiB or 500MB"),
    ],
)
def test_a_bad_value_is_told_in_an_operators_words(env: pytest.MonkeyPatch, name: str, value: str, words: str) -> None:
    env.setenv(f"MLM_{name}", value)
    assert refused() == (f"MLM_{name}: {words}",)


def test_the_setting_that_was_meant_is_named() -> None:
    assert say_unknown(["MLM_GITHUB_APPID", "MLM_LUNCH", "HOME"]) == (
        "MLM_GITHUB_APPID is no setting of mlm and is ignored; did you mean MLM_GITHUB_APP_ID?",
        "MLM_LUNCH is no setting of mlm and is ignored",
    )


def test_a_mistyped_name_is_told_although_the_start_is_refused(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLM_")}
    done = subprocess.run(
        [sys.executable, "-m", "bot.cli.main", "serve"],
        env=environment | {"MLM_GITHUB_APPID": "1", "MLM_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[:2] == [
        "MLM_GITHUB_APPID is no setting of mlm and is ignored; did you mean MLM_GITHUB_APP_ID?",
        "MLM_GITHUB_APP_ID: is missing",
    ]
