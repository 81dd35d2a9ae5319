"""What the operator of the bot allows at most, whatever a repository's own settings say (`MLM_CAPS_FILE`)."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from .repo import Grant, Limits, RepoConfig


class CapsError(Exception):
    """The file cannot be used; the message says why, in a sentence."""


class Caps(BaseModel):
    """Ceilings for all repositories. An action needs the repository's leave AND the operator's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    commands: dict[str, tuple[Grant, ...]] = {}  # by right; a right that is not named is left to the repository
    trustees: tuple[str, ...] = ()  # whom `trustees` means in `commands` above
    bots: tuple[str, ...] | None = None  # the only bots that a repository may list; null: any
    limits: dict[str, int] = {}  # the lower of this and the repository's counts

    def over(self, config: RepoConfig) -> RepoConfig:
        """Return the repository's settings as far as the operator allows them."""
        own = config.limits.model_dump()
        lower = {name: min(value, self.limits.get(name, value)) for name, value in own.items()}
        bots = config.bots if self.bots is None else tuple(bot for bot in config.bots if bot in self.bots)
        return config.model_copy(
            update={
                "limits": Limits.model_validate(lower),
                "bots": bots,
                "cap": self.commands,
                "cap_trustees": self.trustees,
            }
        )


def read_caps(path: Path) -> Caps:
    """Read the operator's file.

    Raises:
        CapsError: it cannot be read, or is not what is expected; a typing mistake must not open what was to be shut.
    """
    try:
        caps = Caps.model_validate(yaml.safe_load(path.expanduser().read_text()) or {})
    except OSError as error:
        raise CapsError(f"cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise CapsError("is not valid YAML") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CapsError(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None
    if unknown := set(caps.limits) - set(Limits.model_fields):
        raise CapsError(f"limits: unknown name {min(unknown)}")
    return caps
