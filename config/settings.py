"""What differs between two installations of the bot: read once from the environment at start, prefix `MLM_`.

A missing or bad value stops the start with one line per variable (`SettingsError`); no value is ever echoed, because
any of them may be a secret.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import ByteSize, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from config.caps import Caps, CapsError, read_caps

PREFIX = "MLM_"
PUBLIC_API = "https://api.github.com"
#: GitHub's own keys have 2048 bits; anything shorter was not made by GitHub.
MIN_KEY_BITS = 2048
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/(?:\*|[A-Za-z0-9._-]+)|[1-9][0-9]*")
EXECUTOR_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: How much a name must be like a setting's (0 to 1, difflib) to be taken for a typing mistake.
LIKENESS = 0.8
#: What is wrong with a value, by pydantic's type of error; in braces what it knows about the limit.
FAULTS = {
    "too_short": "must have {min_length} characters or more",
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be {ge:g} or more",
    "less_than_equal": "must be {le:g} or less",
    "literal_error": "must be {expected}",
    "byte_size": "must be a number of bytes, or one with a unit, such as 2GiB",
    "byte_size_unit": "has the unit {unit}, which is none; write it like 2GiB or 500MB",
}


class SettingsError(Exception):
    """The start is refused; `lines` holds one sentence per variable, each beginning with the variable's name."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def _default_executor_id() -> str:
    name = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()).strip("-._")
    return name[:64] or "mlm"


class Settings(BaseSettings):
    """All settings of `mlm serve`. Times are in seconds, sizes in bytes (or "2GiB")."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    github_api_url: str = PUBLIC_API
    github_app_id: int = Field(gt=0)
    github_private_key_file: Path | None = None
    github_private_key: SecretStr = Field(default=SecretStr(""), validate_default=True)
    github_webhook_secret: SecretStr = Field(min_length=16)  # no default: unsigned deliveries are refused
    github_webhook_secret_old: SecretStr | None = Field(default=None, min_length=16)  # accepted during a rotation
    github_download_hosts: str = ""  # more hosts, comma-separated, that downloads may be redirected to

    repositories: str = ""  # "owner/name", "owner/*" or ids, comma-separated; none: wherever the App is installed

    data_dir: Path = Path("mlm-data")
    database_url: str = Field(default="", validate_default=True)
    executor_id: str = Field(default_factory=_default_executor_id)

    host: str = "127.0.0.1"  # TLS ends in a proxy; a container sets 0.0.0.0
    port: int = Field(default=8080, ge=0, le=65535)  # 0: any free port
    viewer_token: SecretStr | None = Field(default=None, min_length=16)  # None: the pages are closed
    log_format: Literal["json", "console"] = "json"

    label_debounce_s: float = Field(default=10.0, ge=0, le=600)
    write_pause_s: float = Field(default=1.0, ge=0, le=60)
    sweep_every_s: float = Field(default=600.0, ge=0, le=86_400)  # 0: never look for missed deliveries
    shutdown_grace_s: float = Field(default=8.0, ge=0, le=300)

    download_max: ByteSize = Field(default=ByteSize(2 * 1024**3), gt=0)  # one artifact or log
    downloads_keep: ByteSize = Field(default=ByteSize(10 * 1024**3), gt=0)  # all that is kept on disk
    analysis_workers: int = Field(default=2, ge=1, le=32)
    analysis_limit_s: float = Field(default=300.0, gt=0, le=3600)

    caps_file: Path | None = None  # what repositories may allow at most

    @field_validator("caps_file")
    @classmethod
    def _check_caps(cls, path: Path | None) -> Path | None:
        try:
            if path is not None:
                read_caps(path)
        except CapsError as error:
            raise ValueError(str(error)) from None
        return path

    @field_validator("github_api_url")
    @classmethod
    def _check_api_url(cls, url: str) -> str:
        return _http_url(url)

    @field_validator("github_private_key_file")
    @classmethod
    def _check_key_file(cls, path: Path | None) -> Path | None:
        if path is not None:
            _check_rsa_key(_read_key(path))
        return path

    @field_validator("github_private_key")
    @classmethod
    def _check_key(cls, key: SecretStr, info: ValidationInfo) -> SecretStr:
        if "github_private_key_file" not in info.data:
            return key  # the file is bad, which is told already
        path: Path | None = info.data["github_private_key_file"]
        if path is not None and key.get_secret_value():
            raise ValueError("set this or MLM_GITHUB_PRIVATE_KEY_FILE, not both")
        if path is not None:
            return SecretStr(_read_key(path))
        # Environments that cannot hold line breaks carry them as a backslash and an n.
        pem = key.get_secret_value().replace("\\n", "\n")
        if not pem:
            raise ValueError("is missing (or set MLM_GITHUB_PRIVATE_KEY_FILE)")
        _check_rsa_key(pem)
        return SecretStr(pem)

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @field_validator("database_url")
    @classmethod
    def _check_database_url(cls, url: str, info: ValidationInfo) -> str:
        if not url and "data_dir" in info.data:
            return f"sqlite:///{info.data['data_dir']}/mlm.db"
        if not url.startswith(("sqlite:////", "postgresql://")):
            raise ValueError("must be sqlite:////absolute/path or postgresql://user:password@host/name")
        return url

    @field_validator("repositories")
    @classmethod
    def _check_repositories(cls, listed: str) -> str:
        for entry in filter(None, (part.strip() for part in listed.split(","))):
            if REPOSITORY.fullmatch(entry) is None:
                raise ValueError("must be owner/name, owner/* or ids, comma-separated")
        return listed

    @field_validator("executor_id")
    @classmethod
    def _check_executor_id(cls, name: str) -> str:
        if EXECUTOR_ID.fullmatch(name) is None:
            raise ValueError("must be 1 to 64 letters, digits, dots, dashes or underscores")
        return name

    @property
    def caps(self) -> Caps:
        """The operator's ceilings; none without a file."""
        return read_caps(self.caps_file) if self.caps_file is not None else Caps()

    @property
    def webhook_secrets(self) -> tuple[bytes, ...]:
        """The secrets that a delivery may be signed with, the current one first."""
        both = (self.github_webhook_secret, self.github_webhook_secret_old)
        return tuple(secret.get_secret_value().encode() for secret in both if secret is not None)

    def serves(self, repo_id: int, full_name: str) -> bool:
        """Say whether we work for a repository: all of them, or those that are listed.

        A listed name stops counting when the repository is renamed or transferred; a listed id goes on.
        """
        listed = {entry.strip().lower() for entry in self.repositories.split(",") if entry.strip()}
        name = full_name.lower()
        return not listed or bool(listed & {name, f"{name.partition('/')[0]}/*", str(repo_id)})

    @property
    def download_hosts(self) -> tuple[str, ...]:
        """Hosts beyond GitHub's own that a download may be redirected to."""
        return tuple(host.strip().lower() for host in self.github_download_hosts.split(",") if host.strip())


def load_settings() -> Settings:
    """Read the environment.

    Raises:
        SettingsError: a variable is missing or bad; every one of them is named.
    """
    try:
        return Settings()
    except ValidationError as error:
        raise SettingsError(tuple(_lines(error))) from None


def unknown_variables(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names with our prefix that no setting reads: most likely a typing mistake."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    return tuple(sorted(name for name in names if name.upper().startswith(PREFIX) and name.upper() not in known))


def say_unknown(names: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence for each name with our prefix that no setting reads, with the setting that was likely meant."""
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    told = []
    for name in unknown_variables(names):
        meant = get_close_matches(name.upper(), known, n=1, cutoff=LIKENESS)
        guess = f"; did you mean {meant[0]}?" if meant else ""
        told.append(f"{name} is no setting of mlm and is ignored{guess}")
    return tuple(told)


def _lines(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_input=False, include_url=False):
        name = PREFIX + "_".join(str(part) for part in fault["loc"]).upper()
        if fault["type"] == "missing":
            yield f"{name}: is missing"
        else:
            yield f"{name}: {_words(fault)}"


def _words(fault: ErrorDetails) -> str:
    """Say what a setting must be; pydantic's own words speak of inputs and validation."""
    told = FAULTS.get(fault["type"])
    return told.format(**fault.get("ctx", {})) if told else fault["msg"].removeprefix("Value error, ")


def _http_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        port_fits = parts.port is None or parts.port > 0
    except ValueError:
        raise ValueError("is no URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_fits:
        raise ValueError("must be an https:// URL")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must hold neither a user, a query nor a fragment")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise ValueError("must be https: tokens travel over it (http is fine on loopback only)")
    return url.rstrip("/")


def _read_key(path: Path) -> str:
    try:
        return path.expanduser().read_text("ascii")
    except OSError as error:
        raise ValueError(f"cannot be read: {os.strerror(error.errno or 0)}") from None
    except UnicodeDecodeError:
        raise ValueError("is no PEM file") from None


def _check_rsa_key(pem: str) -> None:
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError):
        # TypeError: it is encrypted with a password.
        raise ValueError("is no private key in PEM form without a password") from None
    if not isinstance(key, RSAPrivateKey) or key.key_size < MIN_KEY_BITS:
        raise ValueError(f"is no RSA key of {MIN_KEY_BITS} bits or more, which is what GitHub hands out")
